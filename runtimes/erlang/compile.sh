# compile ERL PROGRAM ENTRY SOURCE...: lets PROGRAM, which is Erlang, do the work.
set -eu
erl=$1 program=$2
shift 2
# The compiler takes no #! line; what is run later is not this file.
sed -i '1s/^#!/%%/' "$1"
exec "$erl" -noinput -boot no_dot_erlang -eval "$program" -extra "$@" >&2
