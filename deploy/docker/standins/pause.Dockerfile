# Stands in for what keeps the namespaces of a pod (scripts/standins.sh).
FROM scratch
COPY bin/busybox /busybox
ENTRYPOINT ["/busybox", "sleep", "infinity"]
