# title: Leaves files in every writable directory
# how: If /tmp, /dev/shm or the work directory were the same for two runs, the second would read what the
#   first left, or run into a trap it laid.
# without: none
# why-no-pair: every run has its writable directories made for it; there is no other kind to switch to.
# args: {secret}
# then: _temporary-files-second.py
# expect: held
import os
import sys

for directory in (".", "/tmp", "/dev/shm", "/var/tmp", "/run/lock"):
    try:
        with open(os.path.join(directory, "left-by-first-run"), "w") as file:
            file.write(sys.argv[1])
        print("left a file in", directory)
    except OSError as error:
        print(directory, error.strerror)
