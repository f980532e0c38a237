# Runs a Java program. Arguments: the JDK, the memory limit in MB, the program's own arguments.
root=$1 limit=$2
shift 2

# The limit is the kernel's: the heap may be larger, so that a program that wants too much is ended
# for that and not by an exception when some array does not fit. Below 32 GB references are small.
heap=$((limit * 4))
[ $heap -gt 31000 ] && heap=31000
[ $heap -lt $limit ] && heap=$limit

# The serial collector gives a heap that follows what the program needs, not what the host has. Deep
# recursion is common in programs for judges, so the stack is larger than usual. It is not as large as
# can be: to unwind an overflow takes several times its size, and that must fit into the usual limit.
read -r main </work/.program/main
exec "$root/bin/java" -Xmx${heap}m -Xms$((limit / 4))m -Xss24m -XX:+UseSerialGC -XX:-UsePerfData \
    -Dfile.encoding=UTF-8 -cp '/work/.program/classes:/work:/work/lib/*' "$main" "$@"
