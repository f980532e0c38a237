# compile OCAMLOPT SOURCE...: a module must be compiled before what uses it.
set -eu
ocamlopt=$1
shift
if [ $# -gt 1 ]; then
    # Names with spaces are the price of asking the compiler's own tool for the order.
    set -- $("$(dirname "$ocamlopt")/ocamldep" -sort "$@")
fi
exec "$ocamlopt" -I +unix -I +str unix.cmxa str.cmxa -o program "$@"
