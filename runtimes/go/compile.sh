# Compiles a Go program. Arguments: the go command, the entry file.
go=$1 entry=$2
case $entry in
*/*) directory=${entry%/*} ;;
*) directory=. ;;
esac

# Out of the way of whatever the project calls its own.
mkdir -p .program
out=.program/program

# The go command spends most of a small build on finding out what there is to do. Where that is plain,
# one package without a module that needs nothing but the compiler, the compiler and the linker are
# called as it would call them, in less than half the time.
plain() {
    [ ! -e go.mod ] && [ ! -e go.work ] && [ "$directory" = . ] || return 1
    for file in *.go *.s *.c *.syso; do
        # A file name can be a build constraint (name_linux.go, name_test.go), or look like an option.
        case $file in
        '*.'*) ;;
        *.s | *.c | *.syso | *_* | -* | @*) return 1 ;;
        esac
    done
    # Another package than main is a library, which the go command tells from a program.
    [ -z "$(grep -LE '^package main([^A-Za-z0-9_]|$)' ./*.go)" ] || return 1
    # Build constraints, embedded files, settings of the runtime, and C.
    ! grep -qE '^[[:space:]]*//(go:(build|embed|debug|linkname)| ?\+build)|import +"C"|^[[:space:]]+"C"' ./*.go
}

if plain; then
    read -r tools <"$GOCACHE/tools"
    read -r version <"$GOCACHE/version"
    # No debugging information: it does not change what the program does or prints, stack traces
    # included, and there is less to write (a fifth of the time of `go build`).
    if "$tools/compile" -o /tmp/main.a -p main -complete -dwarf=false -pack -goversion "$version" \
        -nolocalimports -importcfg "$GOCACHE/importcfg" -trimpath "$PWD=>." *.go >/tmp/messages; then
        exec "$tools/link" -o $out -importcfg "$GOCACHE/importcfg.link" -buildmode=exe -s -w \
            /tmp/main.a
    fi
    # An import that is not there is explained better by the go command.
    if ! grep -q 'could not import' /tmp/messages; then
        cat /tmp/messages >&2
        exit 1
    fi
fi

# The cache would be cleared of what was not used for five days, and everything in it bears the same
# old date. This says that it was cleared just now.
date +%s >"$GOCACHE/trim.txt"

# Without a module the files of the directory are the program, as with `go run *.go`.
package=./$directory
if [ ! -e go.mod ] && [ ! -e go.work ]; then
    package=$(for file in "$directory"/*.go; do
        case $file in *_test.go) ;; *) printf '%s\n' "$file" ;; esac
    done)
fi
# A name may have spaces and stars in it, but no line break.
IFS='
'
set -f
"$go" build -ldflags='-s -w' -o $out $package 2>/tmp/messages
status=$?
if [ $status = 0 ] && ! head -c 4 $out | grep -q ELF; then
    echo "$entry: this is a library, and a program is package main" >/tmp/messages
    status=1
fi
# Where the library lies here is no business of the program's author.
if [ -s /tmp/messages ]; then
    root=${go%/bin/go}
    sed -e "s# ($root/src/[^)]*)##" -e "s#$root/src/##g" -e "s# in $PWD\$##" -e "s#$PWD/##g" \
        -e 's#^\./##' -e '/^# /d' /tmp/messages >&2
fi
# Files that need C are left out without a word, and what is then missing does not say why.
if [ $status != 0 ]; then
    grep -rnE --include='*.go' '^(import)?[[:space:]]*"C"' . |
        sed -E 's#^\./([^:]*:[0-9]+):.*#\1: import "C": there is no C compiler for Go programs here#' >&2
fi
exit $status
