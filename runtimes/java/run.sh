# Runs a Java program. Arguments: the JDK, the memory limit in MB, the program's own arguments.
root=$1 limit=$2
shift 2

# The limit is the kernel's: the heap may be larger, so that a program that wants too much is ended
# for that and not by an exception when some array does not fit. Below 32 GB references are small.
heap=$((limit * 4))
[ $heap -gt 31000 ] && heap=31000
[ $heap -lt $limit ] && heap=$limit

# The serial collector, with a young generation of fixed size and little room to spare: the heap then
# follows what the program needs and not what the host has. With the usual settings a program that
# held 110 MB took 330, and such ones 190 to 240, for a tenth more processor time.
# Deep recursion is common in programs for judges, so the stack is larger than usual. It is not as large
# as can be: to unwind an overflow takes several times its size, and that must fit into the limit.
read -r main </work/.program/main
exec "$root/bin/java" -Xmx${heap}m -Xms$((limit / 4))m -Xmn$((limit / 8))m \
    -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20 -XX:+UseSerialGC -XX:-UsePerfData -Xss24m \
    -Dfile.encoding=UTF-8 -cp '/work/.program/classes:/work:/work/lib/*' "$main" "$@"
