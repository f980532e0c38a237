# title: Plants a program in the system's directories
# how: Tries to create, change or link files in /, /usr, /etc, /dev and in the interpreter's own
#   directories, where the next run would execute them.
# without: none
# why-no-pair: read-only mounts, ownership by an unmapped user and Landlock all forbid it; no single one
#   can be taken away to let it through.
# expect: held
import os
import sys

last = ""
for directory in ("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/dev", os.path.dirname(sys.executable)):
    try:
        path = os.path.join(directory, "planted-by-attack")
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755))
        os.unlink(path)
        print("BREACH created a file in", directory)
        sys.exit()
    except OSError as error:
        last = f"{directory}: {error.strerror}"
for path in ("/etc/passwd", "/etc/hosts", "/usr/bin/env", os.path.realpath(sys.executable)):
    try:
        os.close(os.open(path, os.O_WRONLY))
        print("BREACH opened for writing:", path)
        sys.exit()
    except OSError as error:
        last = f"{path}: {error.strerror}"
print("HELD", last)
