# Compiles Java and finds the class to start. Arguments: javac, the entry file, all sources.
javac=$1 entry=$2
shift 2

# Code that came as text is Main.java, but its public class may have another name, and the compiler
# wants the file to have the same. A single file may be called anything, as with `java FILE`.
if [ "$entry" = Main.java ] || { [ $# = 1 ] && [ "$entry" = "${entry##*/}" ]; }; then
    modifiers='((abstract|final|sealed|non-sealed|strictfp) +)*'
    kind='(class|interface|enum|record)'
    public=$(sed -nE "s/^[[:space:]]*public +$modifiers$kind +([A-Za-z0-9_\$]+).*/\4/p" "$entry")
    first=$(echo "$public" | head -n 1)
    if [ -n "$first" ] && [ ! -e "$first.java" ] && ! echo "$public" | grep -qx "${entry%.java}"; then
        mv "$entry" "$first.java"
        for source; do
            shift
            [ "$source" = "$entry" ] && source=$first.java
            set -- "$@" "$source"
        done
        entry=$first.java
    fi
fi

# The compiler lives for a moment: the optimising compiler, a parallel collector and counters for
# observers would cost more than they bring. With its classes from an archive it takes less than half
# of its usual time for a short program.
"$javac" -J-XX:SharedArchiveFile="$LAYER/javac.jsa" -J-Xshare:auto -J-Xlog:disable \
    -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData -J-Xss8m \
    -encoding UTF-8 -cp 'lib/*' -d .program/classes "$@" || exit

# Whether classes have a main method, by the names and types that their files mention; prints those
# that do.
with_main() {
    grep -lsF -- '([Ljava/lang/String;)V' "$@" | while IFS= read -r class; do
        grep -lF main "$class"
    done
}
start() {
    echo "$1" | sed 's#^\./##; s#\.class$##; s#/#.#g' >../main
    exit
}

cd .program/classes || exit
stem=${entry##*/}
stem=${stem%.java}
# The usual case: a class of the entry file's name, in no package.
[ -n "$(with_main "./$stem.class")" ] && start "$stem"

# Of several classes those that come from the entry file, and of these the one of its name, or else
# the one that stands first in it.
all=$(find . -name '*.class' ! -name '*$*' | sort | while IFS= read -r class; do
    with_main "$class"
done)
from_entry=$(echo "$all" | while IFS= read -r class; do
    grep -lsFe "$stem.java" "$class"
done)
all=${from_entry:-$all}
names=$(grep -oE "(class|interface|enum|record) +[A-Za-z0-9_\$]+" "../../$entry" | sed 's/.* //')
for name in $stem $names; do
    chosen=$(echo "$all" | grep -F "/$name.class" | head -n 1)
    [ -n "$chosen" ] && start "$chosen"
done
[ -n "$all" ] && start "$(echo "$all" | head -n 1)"

# Newer versions also start a main method without arguments.
for pattern in "$stem.class" '*.class'; do
    chosen=$(find . -name "$pattern" ! -name '*$*' -exec grep -lF main {} + | head -n 1)
    [ -n "$chosen" ] && start "$chosen"
done
echo "error: no class has a method 'public static void main(String[])'" >&2
exit 1
