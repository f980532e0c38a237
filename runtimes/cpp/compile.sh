# Compiles C++. Arguments: the compiler, then everything it is to be told.
#
# The linker: gold needs a tenth less processor time for a small program than the default one, all of
# gcc's work counted, and the program behaves the same. But of a symbol that is defined twice it does not
# say in which sources, so it is only used for a single one.
sources=0
for argument; do
    case $argument in
    *.cpp | *.cc | *.cxx | *.c++ | *.C) sources=$((sources + 1)) ;;
    esac
done
if [ $sources = 1 ] && [ -x /usr/bin/ld.gold ]; then
    set -- "$@" -fuse-ld=gold
fi

# Out of the way of whatever the project calls its own.
mkdir -p .program

# What the assembler and the linker say names temporary files. Their names mean nothing to the author
# of the program, and the source and the function are told anyway, so they are taken out. Line by line,
# so that nothing is lost when the compiler is stopped.
exec 3>&1
{
    "$@" 2>&1 >&3
    echo $? >/tmp/status
} | sed -uE 's#^/[^ :]*/ld[.a-z]*: ##; s#/tmp/cc[A-Za-z0-9]+\.[os]: ?##g' >&2
read -r status </tmp/status
exit "$status"
