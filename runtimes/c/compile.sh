# Compiles C or C++ (runtimes/cpp links to this file). Arguments: the compiler, then its arguments.
#
# The linker: for a small program gold needs a tenth less processor time than the default one, all of
# gcc's work counted, and the program behaves the same. But for a symbol that is defined twice it does not
# name the source files, so it is only used for a single one.
sources=0
for argument; do
    case $argument in
    *.c | *.cpp | *.cc | *.cxx | *.c++ | *.C) sources=$((sources + 1)) ;;
    esac
done
if [ $sources = 1 ] && [ -x /usr/bin/ld.gold ]; then
    set -- "$@" -fuse-ld=gold
fi

# Out of the way of whatever the project calls its own.
mkdir -p .program

# Messages of the assembler and the linker name temporary files. Those names mean nothing to the author
# of the program, and the messages name source and function anyway, so they are removed: line by line,
# so that nothing is lost when the compiler is killed.
exec 3>&1
{
    "$@" 2>&1 >&3
    echo $? >/tmp/status
} | sed -uE 's#^/[^ :]*/ld[.a-z]*: ##; s#/tmp/cc[A-Za-z0-9]+\.[os]: ?##g' >&2
read -r status </tmp/status
exit "$status"
