# Checks and translates TypeScript. Arguments: the compiler, the entry file.
tsc=$1 entry=$2
packages=${tsc%/@typescript/*}

# In any case: errors stop it, and what it writes is kept apart from the sources until it runs. The
# types of Node.js come with the toolchain, unless the project brings its own.
set -- --pretty false --noEmit false --noEmitOnError --emitDeclarationOnly false --composite false \
    --incremental false --declaration false --sourceMap false --inlineSourceMap --skipLibCheck \
    --rewriteRelativeImportExtensions --rootDir . --outDir .program --sourceRoot "$PWD" \
    --typeRoots "node_modules/@types,$packages/@types"

if [ -e tsconfig.json ]; then
    grep -q '"types"' tsconfig.json || set -- "$@" --types node
    exec "$tsc" --project tsconfig.json "$@" >&2
fi

# Without a configuration: what the compiler does by itself, which is to be strict, but what is caught
# has any type, as most programs are written. The library is that of Node.js, not a browser's.
set -- "$@" --ignoreConfig --types node --target es2022 --lib es2023 --moduleDetection force \
    --resolveJsonModule --useUnknownInCatchVariables false

# A .ts file is a CommonJS module, in which imports need no extension, unless package.json says
# otherwise. What only an ES module may do, to await at its top or to use import.meta, makes it one.
"$tsc" "$@" --module nodenext "$entry" >/tmp/messages && exit
if grep -qE 'error TS(1309|1470|1378|1343):' /tmp/messages; then
    rm -rf .program
    exec "$tsc" "$@" --module esnext --moduleResolution bundler "$entry" >&2
fi
cat /tmp/messages >&2
exit 1
