# Stands in for opensearchproject/opensearch:2.19.4 (scripts/standins.sh).
FROM scratch
COPY root /
COPY --chown=1000:1000 home /usr/share/opensearch
USER 1000:1000
ENTRYPOINT ["/bin/sh", "/usr/local/bin/docker-entrypoint.sh"]
