# prepare SCALAC PROGRAM: compiles a small program, and keeps the classes the compiler loaded for it.
set -eu
scalac=$1
mkdir layer classes
printf '%s' "$2" >program.scala
# Without a word about the few classes that cannot be kept.
"$scalac" -J-XX:+UseSerialGC -J-XX:ArchiveClassesAtExit=layer/classes.jsa -J-Xlog:disable \
    -d classes program.scala
