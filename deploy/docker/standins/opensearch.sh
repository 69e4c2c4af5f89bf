# The part of the official image's entry point that docker-compose.yaml relies on: the server with the configuration that
# is mounted, and no demonstration.
set -eu
[ "$DISABLE_INSTALL_DEMO_CONFIG" = true ]
cd /usr/share/opensearch
# shellcheck disable=SC2086 # Options are several words.
exec /usr/lib/jvm/java-17-openjdk-amd64/bin/java $OPENSEARCH_JAVA_OPTS -Xss1m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
	-Djava.security.manager=allow -Djava.awt.headless=true -Dfile.encoding=UTF-8 -Djava.locale.providers=SPI,COMPAT -Djna.nosys=true \
	-Dio.netty.noUnsafe=true -Dlog4j2.disable.jmx=true -Djava.io.tmpdir=/tmp \
	-Djava.util.concurrent.ForkJoinPool.common.threadFactory=org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory \
	-Dopensearch.path.home=/usr/share/opensearch -Dopensearch.path.conf=/usr/share/opensearch/config \
	-Dopensearch.distribution.type=docker -Dopensearch.bundled_jdk=false -cp 'lib/*' org.opensearch.bootstrap.OpenSearch
