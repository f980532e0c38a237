# Fetches npm packages and all they need, with the npm in $PACKAGE_MANAGER under the Node in $1: what
# the file "packages" asks for, or exactly what the file "lock" says. No script of a package is run.
set -e
node="$1"
npm() {
    "$node" "$PACKAGE_MANAGER/bin/npm-cli.js" "$@" --ignore-scripts --no-bin-links --no-audit \
        --no-fund --no-update-notifier --omit-lockfile-registry-resolved --fetch-retries=1 \
        --logs-max=0 --loglevel=http --cache "$PWD/fetched"
}
if [ -f lock ]; then
    cp lock package-lock.json
    "$node" -e '
        const { dependencies } = require("./package-lock.json").packages[""];
        fs.writeFileSync("package.json", JSON.stringify({ dependencies }));'
else
    echo '{}' >package.json
    set --
    while read -r package; do set -- "$@" "$package"; done <packages
    npm install --package-lock-only "$@"
    cp package-lock.json lock
fi
# Installing is what fills the cache; that is all that is kept of it.
npm ci
rm -rf node_modules
