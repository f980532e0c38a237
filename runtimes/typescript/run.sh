# Runs what was compiled. Arguments: the memory limit in MB, the entry file, the program's arguments.
limit=$1 entry=$2
shift 2
# Beside the sources, so that a program finds its files where it expects them (__dirname).
cp -R /work/.program/. /work && rm -r /work/.program
case $entry in
*.mts) entry=${entry%.mts}.mjs ;;
*.cts) entry=${entry%.cts}.cjs ;;
*) entry=${entry%.*}.js ;;
esac
exec /usr/bin/node --experimental-detect-module --enable-source-maps \
    --max-old-space-size="$limit" "$entry" "$@"
