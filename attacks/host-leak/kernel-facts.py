# title: Reads what /proc tells about the machine
# how: Version, symbols, modules, interrupts and command line tell an attacker which kernel bug to use
#   and what the neighbours do.
# without: proc-private
# expect: held
import os

names = ("version", "kallsyms", "modules", "interrupts", "cmdline", "diskstats", "loadavg", "meminfo",
         "keys", "sysvipc/shm")
seen = [name for name in names if os.path.exists(f"/proc/{name}")]
if seen:
    print("BREACH /proc shows", *seen)
else:
    print("HELD /proc shows only processes")
