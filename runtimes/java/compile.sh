# Compiles Java and finds the class to start. Arguments: javac, the entry file, all sources.
javac=$1 entry=$2
shift 2

# Code that came as text is Main.java, but its public class may have another name, and the compiler
# wants the file to have the same.
if [ "$entry" = Main.java ]; then
    public=$(sed -nE 's/^[[:space:]]*public +((abstract|final|sealed|non-sealed|strictfp) +)*(class|interface|enum|record) +([A-Za-z_$][A-Za-z0-9_$]*).*/\4/p' Main.java)
    # One with the name Main needs nothing, and of several the compiler shall complain.
    case $public in
    '' | *Main* | *[!A-Za-z0-9_$]*) ;;
    *)
        if [ ! -e "$public.java" ]; then
            mv Main.java "$public.java"
            entry=$public.java
            for source; do
                shift
                [ "$source" = Main.java ] && source=$entry
                set -- "$@" "$source"
            done
        fi
        ;;
    esac
fi

# The compiler lives for a moment: the optimising compiler, a parallel collector and counters for
# observers would cost more than they bring. With its classes from an archive it takes less than half
# of its usual time for a short program.
"$javac" -J-XX:SharedArchiveFile="$LAYER/javac.jsa" -J-Xshare:auto -J-Xlog:disable \
    -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -J-XX:-UsePerfData -J-Xss8m \
    -encoding UTF-8 -cp 'lib/*' -d .program/classes "$@" || exit

# Classes with a main method, by the names and types that their files mention. Of several those that
# come from the entry file, and of these the one of its name, or else the one that stands first in it.
cd .program/classes || exit
stem=${entry##*/}
stem=${stem%.java}
with_main() {
    find . -name '*.class' ! -name '*$*' -exec grep -lF '([Ljava/lang/String;)V' {} + | sort |
        while IFS= read -r class; do
            grep -qF main "$class" && echo "$class"
        done
}
all=$(with_main)
if [ "$(echo "$all" | wc -l)" -gt 1 ]; then
    from_entry=$(echo "$all" | while IFS= read -r class; do
        grep -qF "$stem.java" "$class" && echo "$class"
    done)
    all=${from_entry:-$all}
    for name in "$stem" $(grep -oE '(class|interface|enum|record) +[A-Za-z0-9_$]+' "../../$entry" | sed 's/.* //'); do
        chosen=$(echo "$all" | grep -E "/$name\.class\$")
        [ -n "$chosen" ] && break
    done
fi
# Newer versions also start a main method without arguments; then the file's name is what there is.
main=${chosen:-${all:-$(find . -name "$stem.class")}}
main=$(echo "$main" | head -n 1 | sed 's#^\./##; s#\.class$##' | tr / .)
if [ -z "$main" ]; then
    echo "error: no class has a method 'public static void main(String[])'" >&2
    exit 1
fi
echo "$main" >../main
