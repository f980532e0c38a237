# title: Reads the names behind its descriptors
# how: The links in /proc/self/fd tell the host path of whatever is open, the standard streams included.
# without: closed-descriptors
# expect: held
import os

leaked = []
for number in os.listdir("/proc/self/fd"):
    try:
        name = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue  # the descriptor of the listing itself
    harmless = name.startswith(("pipe:", "socket:", "/memfd:")) or name == "/dev/null"
    if int(number) > 2 or not harmless:
        leaked.append(f"{number} -> {name}")
print("BREACH", ", ".join(leaked)) if leaked else print("HELD pipes and /dev/null only")
