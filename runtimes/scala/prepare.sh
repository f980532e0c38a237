# prepare SCALAC PROGRAM: compiles a small program, and keeps the classes the compiler loaded for it.
set -eu
scalac=$1
mkdir layer classes
printf '%s' "$2" >program.scala
# It is told of classes that cannot be kept; they are loaded as ever.
"$scalac" -J-XX:+UseSerialGC -J-XX:ArchiveClassesAtExit=layer/classes.jsa -J-Xlog:cds=off -J-Xlog:cds+dynamic=off \
    -d classes program.scala
