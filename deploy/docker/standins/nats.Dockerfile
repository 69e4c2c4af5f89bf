# Stands in for nats:2.15.2-alpine (scripts/standins.sh).
FROM scratch
COPY bin /bin
RUN ["/bin/busybox", "--install", "/bin"]
ENTRYPOINT ["/bin/nats-server"]
