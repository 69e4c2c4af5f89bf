# Stands in for openfga/openfga:v1.22.1 (scripts/standins.sh).
FROM scratch
COPY bin/openfga /openfga
COPY bin/grpc_health_probe /usr/local/bin/
ENTRYPOINT ["/openfga"]
