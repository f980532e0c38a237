# Shared by the scripts in this folder: where things live, and how we speak to the user.
# Sourced, never run. Every caller has already set `set -euo pipefail`.
# shellcheck shell=bash

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Everything we build or download stays out of the clone, so that a clone can be thrown away, mounted
# read-only or shared, and so that a second clone need not build or download it all again.
cache=${SANDBOX_RUN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sandbox-run}
export SANDBOX_RUN_CACHE=$cache
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export PATH=$cache/tools/bin:$PATH

# Tests and scripts add one line, `name: reason`, to this file for each thing they could not do on this
# host. Skips are counted, so that they are noticed.
export SANDBOX_RUN_SKIP_LOG=${SANDBOX_RUN_SKIP_LOG:-$cache/skipped.log}

# Tests at once: half as many again as cores, because most of them wait for processes to start and exit.
export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$(((3 * $(nproc) + 1) / 2))}

mkdir -p "$cache"

say() { printf '%s\n' "$*"; }
warn() { printf 'note: %s\n' "$*" >&2; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# heading TEXT: one line that is easy to find in a long log, with the time of day.
heading() { printf '\n=== %s  %s\n' "$(date +%H:%M:%S)" "$*"; }

have() { command -v "$1" >/dev/null 2>&1; }

# A script that is an entry point starts the count afresh, unless its caller counts over several.
start_counting_skips() {
    [[ -n ${SANDBOX_RUN_KEEP_SKIP_LOG:-} ]] || : >"$SANDBOX_RUN_SKIP_LOG"
}

# skipped NAME REASON: say loudly that something was not done, and count it.
skipped() {
    printf '\n!!! SKIPPED %s: %s\n\n' "$1" "$2" >&2
    printf '%s: %s\n' "$1" "$2" >>"$SANDBOX_RUN_SKIP_LOG"
}
