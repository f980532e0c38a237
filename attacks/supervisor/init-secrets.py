# title: Looks into the sandbox's init through /proc
# how: Init was born outside: its environment, memory, descriptors and root could still hold what the
#   sandbox hides.
# without: none
# why-no-pair: init is undumpable, has another user id and, to Landlock, lies outside the program's
#   domain; each alone is enough.
# expect: held
import os
import sys

last = ""
for process in ("1", str(os.getppid())):
    for name in ("environ", "mem", "maps", "auxv", "stack"):
        try:
            with open(f"/proc/{process}/{name}", "rb") as file:
                if name == "mem" or file.read(1):
                    print("BREACH", process, name)
                    sys.exit()
        except OSError as error:
            last = f"/proc/{process}/{name}: {error.strerror}"
    for name in ("root", "cwd", "exe"):
        try:
            print("BREACH", process, name, os.readlink(f"/proc/{process}/{name}"))
            sys.exit()
        except OSError as error:
            last = f"/proc/{process}/{name}: {error.strerror}"
    try:
        print("BREACH", process, "fd", len(os.listdir(f"/proc/{process}/fd")))
        sys.exit()
    except OSError as error:
        last = f"/proc/{process}/fd: {error.strerror}"
print("HELD", last)
