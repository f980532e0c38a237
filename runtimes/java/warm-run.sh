# Starts a virtual machine that waits for a compiled program. Arguments: the JDK, the memory limit in MB.
# LAYER names the directory that warm-prepare.sh filled; the program does not see the variable.
root=$1 limit=$2 layer=$LAYER
unset LAYER

# The same as in run.sh, for the same reasons.
heap=$((limit * 4))
[ $heap -gt 31000 ] && heap=31000
[ $heap -lt $limit ] && heap=$limit

# Whether a part of the class path is a directory is found out at the start.
mkdir -p /work/.program/classes
exec "$root/bin/java" -Xmx${heap}m -Xms$((limit / 4))m -Xmn$((limit / 8))m \
    -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20 -XX:+UseSerialGC -XX:-UsePerfData -Xss24m \
    -Dfile.encoding=UTF-8 -Xbootclasspath/a:"$layer/warm.jar" \
    -cp '/work/.program/classes:/work:/work/lib/*' sandbox.warm.WarmRun "$root" "$limit"
