# common.sh: what the demos have in common.  Source it after
# test/lib/server.sh.

bold='' dim='' plain=''
if [ -t 1 ]
then
	bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

heading()
{
	printf '\n%s%s%s\n' "$bold" "$1" "$plain"
}

# sql ROLE ARGUMENT...: run psql as a role, quietly; variables and files come
# as psql's own options.
sql()
{
	local role=$1

	shift
	"$bin/psql" -X -q -A -t -P pager=off -v ON_ERROR_STOP=1 -U "$role" -d postgres "$@"
}

as_anna()
{
	PGUSER=anna PGDATABASE=postgres "$bin/pg_evidence" "$@"
}

# make_server CONF_LINE...: build, install into a private PostgreSQL, start it.
make_server()
{
	copy_project
	copy_postgres
	build_and_install >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log" >&2; exit 1; }

	# The key of the fingerprints that stand for network addresses.
	(umask 077 && printf 'demo:%s\n' "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" \
		>"$scratch/fingerprint.key")
	give_to_server_user "$scratch/fingerprint.key"
	start_server demo "pg_evidence.database = 'postgres'" \
		"pg_evidence.fingerprint_key_file = '$scratch/fingerprint.key'" "$@"
}

fill_log()
{
	sql postgres -f "$project/demo/roles.sql" >/dev/null
	sql postgres -v events="$events" -f "$project/demo/events.sql" >/dev/null
	sql postgres -c "SELECT '   ' || rpad(action, 18) || count(*)
		FROM evidence.audit_log GROUP BY action ORDER BY count(*) DESC"
}

# request_as_anna: ask for the last 30 days; prints the id.
request_as_anna()
{
	sql anna -v purpose="$purpose" <<-'SQL'
		SELECT evidence.request_audit_export(now() - interval '30 days', now(), :'purpose');
	SQL
}
