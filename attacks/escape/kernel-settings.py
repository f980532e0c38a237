# title: Reaches the kernel's settings under /proc/sys
# how: A writable core_pattern runs a program of the attacker's choice on the host, as root, at the next
#   crash; sysrq-trigger stops the machine. They are opened, never written; being able to read them is
#   already too much.
# without: proc-private
# expect: held
import os
import sys

last = ""
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger"):
    for mode in (os.O_WRONLY, os.O_RDONLY):
        try:
            os.close(os.open(path, mode))
            print("BREACH opened", path)
            sys.exit()
        except OSError as error:
            last = f"{path}: {error.strerror}"
print("HELD", last)
