# Installs what was fetched, for the Node in $1.
set -e
cp lock package-lock.json
"$1" -e '
    const { dependencies } = require("./package-lock.json").packages[""];
    fs.writeFileSync("package.json", JSON.stringify({ dependencies }));'
"$1" "$PACKAGE_MANAGER/bin/npm-cli.js" ci --offline --ignore-scripts --no-bin-links --no-audit \
    --no-fund --no-update-notifier --logs-max=0 --cache "$PWD/fetched"
mv node_modules layer
