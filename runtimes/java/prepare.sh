# Makes an archive of the compiler's own classes, loaded and checked. Arguments: javac, a program that
# makes it use most of itself.
mkdir layer
echo "$2" >Sample.java
exec "$1" -J-XX:ArchiveClassesAtExit=layer/javac.jsa -J-XX:+UseSerialGC -J-Xlog:disable \
    -d classes Sample.java
