# Compiles the standard library once. Argument: the go command.
#
# What it leaves is a build cache for `go build`, and beside it what compile.sh needs to call the
# compiler and the linker without the go command: where they are, and where each package's compiled
# form is.
go=$1
here=/opt/layers/go-std
export GOCACHE="$PWD/layer"
mkdir -p layer

"$go" list -export -f '{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}' std |
    sed "s#=$PWD/layer/#=$here/#" >layer/importcfg.link || exit

# Programs may not import the library's internal packages, so the compiler is not told of them. The
# linker also gets what a program can ask about its own build.
grep -Ev '^packagefile (.*/)?(internal|vendor)(/|=)' layer/importcfg.link >layer/importcfg
printf 'package main\nfunc main() {}\n' >main.go
"$go" build -x -o program main.go 2>&1 | grep '^modinfo ' >>layer/importcfg.link
"$go" env GOTOOLDIR >layer/tools
"$go" env GOVERSION >layer/version
