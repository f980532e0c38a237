# Starts a compiler that waits for sources. Arguments: the JDK. LAYER names the directory that
# warm-prepare.sh filled.
root=$1
exec "$root/bin/java" -XX:SharedArchiveFile="$LAYER/compile.jsa" -Xshare:auto -Xlog:disable \
    -Xmn48m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss8m \
    -cp "$LAYER/warm.jar" sandbox.warm.WarmCompile
