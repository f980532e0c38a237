# compile NASM SOURCE...: assembles each source and links them all.
set -eu
nasm=$1
shift
objects=
number=0
for source; do
    number=$((number + 1))
    "$nasm" -f elf64 -o "/tmp/$number.o" "$source"
    objects="$objects /tmp/$number.o"
done
# Whoever brings the kernel's entry point wants no other one linked in before it.
start=
if nm $objects | grep -q ' T _start$'; then
    start=-nostartfiles
fi
exec gcc -no-pie -z noexecstack $start -o program $objects -lm
