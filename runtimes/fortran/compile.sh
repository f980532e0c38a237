# compile GFORTRAN ENTRY SOURCE...: a module must be compiled before what uses it.
set -eu
gfortran=$1 entry=$2
shift 2
for source; do
    shift
    [ "$source" = "$entry" ] || set -- "$@" "$source"
done
exec "$gfortran" -O2 -J/tmp -o program "$@" "$entry"
