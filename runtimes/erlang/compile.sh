# compile ESCRIPT ENTRY: makes the entry a script, and checks it.
#
# escript throws the first line away, whether it is a #! line or not, and without one begins to count
# behind it. So a file that has none gets a line to lose, and its lines keep their numbers.
set -eu
escript=$1 entry=$2
case $(head -c 2 "$entry") in
    '#!') cat "$entry" ;;
    *) echo % && cat "$entry" ;;
esac >program.escript
"$escript" -s program.escript >messages 2>&1 && code=0 || code=$?
# Messages name the file that the user wrote; the lines they quote are of the other and are left out.
sed -e "s|^program[.]escript:|$entry:|" -e '/^% *[0-9]*|/d' -e '/^$/d' messages >&2
exit "$code"
