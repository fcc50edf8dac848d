# shellcheck shell=bash
# server.sh: private PostgreSQL installations and throw-away servers.
#
# For scripts that source it: test/tools/run-tests, demo/run and
# test/bench/run.  They work on a copy of the project and of the PostgreSQL
# installation inside one scratch folder, so that nothing of the machine and
# nothing of the checkout changes, and no other server is disturbed.
#
#   begin_scratch NAME    make $scratch, removed when the script ends
#   as_server_user CMD    run CMD as a user who may run a server
#   copy_project          $tree: a clean copy of the project
#   copy_postgres         $bin: the programs of a private installation
#   build_and_install     build $tree into the private installation
#   start_server NAME CONF_LINE...
#                         start a server; sets PGHOST, PGPORT, PGUSER
#   stop_server NAME
#   keep_scratch          leave servers and files behind at the end
#
# PostgreSQL refuses to run as root, so as root everything happens as user
# postgres.

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
major=${PG_MAJOR:-15}
pg_config=${PG_CONFIG:-/usr/lib/postgresql/$major/bin/pg_config}
server_user=postgres
scratch=

as_server_user()
{
	if [ "$(id -u)" -eq 0 ]
	then
		runuser -u "$server_user" -- "$@"
	else
		"$@"
	fi
}

begin_scratch()
{
	# A unix socket's path has at most 107 bytes: a deep TMPDIR is not used.
	scratch=$(TMPDIR=/tmp mktemp -d -t "pg-evidence-$1-XXXXXX")
	chmod 755 "$scratch"
	[ "$(id -u)" -ne 0 ] || chown "$server_user:" "$scratch"
	# The checkout may be in a folder that the server's user cannot enter.
	cd "$scratch"
	mkdir "$scratch/servers" "$scratch/socket" "$scratch/tmp"
	give_to_server_user "$scratch/servers" "$scratch/socket" "$scratch/tmp"
	clean_environment
	export PGHOST=$scratch/socket PGPORT=5432 PGUSER=postgres TMPDIR=$scratch/tmp
	trap end_scratch EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# The servers and files of this script outlive it.
keep_scratch()
{
	trap - EXIT
}

# What the caller has set for other servers, other locales or other makes
# must not reach ours.
clean_environment()
{
	local name

	for name in "${!PG@}"
	do
		case $name in
			PG_MAJOR | PG_CONFIG | PG_TEST_*) ;;
			*) unset "$name" ;;
		esac
	done
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TZ
	export HOME=$scratch LC_ALL=C
}

# Tests that were cut short may have left programs and servers of their own
# in the scratch folder, so every one that works below it is stopped.
end_scratch()
{
	local status=$? pid_file process

	# A second signal must not leave half of it behind, and neither must a
	# command that fails.
	trap '' HUP INT TERM
	set +e
	cd /
	# Processes end while we look at them; what remains is found below.
	find /proc/[0-9]*/cwd -maxdepth 0 -lname "$scratch/tree*" 2>/dev/null |
		while IFS=/ read -r _ _ process _
		do
			kill -TERM "$process" 2>/dev/null
		done
	while read -r pid_file
	do
		# A killed server has left the file, and then pg_ctl only complains.
		process=$(head -n 1 "$pid_file")
		as_server_user "$bin/pg_ctl" -D "${pid_file%/*}" -m immediate \
			-w -s stop </dev/null
		if [ -e "$pid_file" ] && is_server_of "$process" "${pid_file%/*}"
		then
			echo "the server in ${pid_file%/*}, process $process, does not stop" >&2
			status=1
		fi
	done < <(find "$scratch" -name postmaster.pid 2>/dev/null)
	rm -rf "$scratch" || status=1
	exit "$status"
}

# Process numbers come again; a server works in its own folder.
is_server_of()
{
	[ "$(readlink "/proc/$1/cwd")" = "$2" ]
}

give_to_server_user()
{
	[ "$(id -u)" -ne 0 ] || chown -R "$server_user:" "$@"
}

# The copy leaves out what git would not commit, as far as that matters:
# history, and objects that another compiler or user may have made.
copy_project()
{
	tree=$scratch/tree
	mkdir "$tree"
	tar -C "$project" --exclude=./.git --exclude='*.o' --exclude='*.so' \
		--exclude=./evidence.zip -cf - . | tar -C "$tree" --no-same-owner -xf -
	chmod -R u+w "$tree"
	give_to_server_user "$tree"
	as_server_user make -s -C "$tree" clean >/dev/null
}

# PostgreSQL finds its files relative to its programs, so a copy of its two
# folders, in Debian's layout, is an installation of its own.
copy_postgres()
{
	local lib share

	lib=$(dirname "$("$pg_config" --bindir)")
	share=$("$pg_config" --sharedir)
	mkdir -p "$scratch/pg/$(dirname "${lib#/usr/}")" \
		"$scratch/pg/$(dirname "${share#/usr/}")"
	cp -a "$lib" "$scratch/pg/${lib#/usr/}"
	cp -a "$share" "$scratch/pg/${share#/usr/}"
	ln -s /usr/include "$scratch/pg/include"
	give_to_server_user "$scratch/pg"
	bin=$scratch/pg/${lib#/usr/}/bin
	export PG_CONFIG=$bin/pg_config
	export PATH=$bin:$PATH
}

# CC in the environment picks another compiler than the server's.
build_and_install()
{
	as_server_user make -s -j"$(nproc)" -C "$tree" all ${CC:+CC="$CC"}
	as_server_user make -s -C "$tree" install PROGRAM_BINDIR="$bin" ${CC:+CC="$CC"}
}

# One initdb serves all servers of a script.
init_template()
{
	local template=$scratch/servers.template

	[ ! -e "$template" ] || return 0
	mkdir "$template"
	give_to_server_user "$template"
	as_server_user "$bin/initdb" -D "$template" -U postgres -A trust -N \
		--no-locale -E UTF8 >"$scratch/initdb.log" 2>&1 ||
		{ cat "$scratch/initdb.log" >&2; return 1; }
	cat >>"$template/postgresql.conf" <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$scratch/socket'
		shared_preload_libraries = 'pg_evidence'
		timezone = 'UTC'
		log_line_prefix = '%m [%p] %b %a '
	CONF
}

start_server()
{
	local name=$1 data

	data=$scratch/servers/$1
	shift
	init_template
	rm -rf "$data"
	cp -a "$scratch/servers.template" "$data"
	printf '%s\n' "$@" >>"$data/postgresql.conf"
	if ! as_server_user "$bin/pg_ctl" -D "$data" -l "$data/server.log" -w -s start
	then
		tail -n 40 "$data/server.log" >&2
		return 1
	fi
}

# A server that has crashed, or does not end when told to, is a fault; the end
# of the script stops it by force.
stop_server()
{
	as_server_user "$bin/pg_ctl" -D "$scratch/servers/$1" -m fast -t 180 -w -s stop
}
