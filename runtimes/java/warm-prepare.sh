# Makes what waiting virtual machines are started with. Arguments: the JDK, then the texts of WarmJob,
# WarmRun, WarmCompile and Sample.
root=$1
mkdir -p layer warm/classes
printf "%s\n" "$2" >warm/WarmJob.java
printf "%s\n" "$3" >warm/WarmRun.java
printf "%s\n" "$4" >warm/WarmCompile.java
printf "%s\n" "$5" >warm/Sample.java
"$root/bin/javac" --add-exports java.base/jdk.internal.vm.annotation=ALL-UNNAMED \
    -d warm/classes warm/WarmJob.java warm/WarmRun.java warm/WarmCompile.java || exit
cp warm/Sample.java warm/classes/
"$root/bin/jar" --create --file layer/warm.jar -C warm/classes . || exit

# An archive of the compiler's classes, made by the compiler's own command: an archive that is made with a
# file on the class path is good only for that path, and a layer is used at another place than it is made at.
exec "$root/bin/javac" -J-XX:ArchiveClassesAtExit=layer/compile.jsa -J-XX:+UseSerialGC -J-Xlog:disable \
    -d warm/sample warm/Sample.java
