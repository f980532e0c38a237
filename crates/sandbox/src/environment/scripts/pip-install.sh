# Installs what was fetched into a directory that will be shown at $2, for the Python in $1.
set -e
mkdir -p built
find fetched built -name '*.whl' >wheels
"$1" "$PACKAGE_MANAGER" install --no-index --no-deps --no-compile --no-input --no-cache-dir \
    --disable-pip-version-check --target layer -r wheels
# Compiled once, since the directory will be read-only. The usual check by time would not hold, as a
# layer keeps no times; the paths are those in tracebacks. A file for another Python may not compile.
"$1" -m compileall -q --invalidation-mode unchecked-hash -s layer -p "$2" layer \
    >/dev/null 2>&1 || true
