# compile COBC ENTRY SOURCE...: the program that is named first is where it begins.
set -eu
cobc=$1 entry=$2
shift 2
for source; do
    shift
    [ "$source" = "$entry" ] || set -- "$@" "$source"
done
exec "$cobc" -x -O -o program "$entry" "$@"
