# title: Reads a host file through the root link of every process
# how: /proc/PID/root leads to the root directory of that process; if one of them had the host's root,
#   every file of the host would lie behind it.
# without: fresh-root
# args: {host_file}
# expect: held
import os
import sys

target = sys.argv[1]
last = "no process seen"
for name in sorted(os.listdir("/proc")):
    if not (name.isdigit() or name in ("self", "thread-self")):
        continue
    for link in ("root", "cwd"):
        try:
            with open(f"/proc/{name}/{link}{target}") as file:
                print("BREACH", f"/proc/{name}/{link}", file.read(80).strip())
                sys.exit()
        except OSError as error:
            last = f"/proc/{name}/{link}: {error.strerror}"
print("HELD", last)
