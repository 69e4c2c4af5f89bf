# Stands in for prom/prometheus (scripts/standins.sh).
FROM scratch
COPY root /
COPY --chown=65534:65534 data /prometheus
USER 65534:65534
ENTRYPOINT ["/usr/bin/prometheus"]
