# The part of the official image's entry point that docker-compose.yaml relies on: the first
# start makes the database POSTGRES_DB of POSTGRES_USER, whose password is in POSTGRES_PASSWORD_FILE.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --auth-local trust --auth-host scram-sha-256 >/dev/null
	echo "CREATE DATABASE $POSTGRES_DB;" | postgres --single -D "$PGDATA" postgres >/dev/null
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
fi
exec postgres -c listen_addresses='*' "$@"
