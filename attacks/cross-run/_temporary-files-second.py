import os
import sys

for directory in (".", "/tmp", "/dev/shm", "/var/tmp", "/run/lock"):
    try:
        print("BREACH", directory, open(os.path.join(directory, "left-by-first-run")).read())
        sys.exit()
    except OSError:
        pass
print("HELD nothing was left")
