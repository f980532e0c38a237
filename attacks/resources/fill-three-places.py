# title: Fills every writable directory up to the quota
# how: If each of the work directory, /tmp and /dev/shm had a quota of its own, a program would get three
#   times what it was given.
# without: disk
# limits: disk=8M
# expect: held
import sys

block = bytes(1 << 20)
written = 0
try:
    for directory in (".", "/tmp", "/dev/shm"):
        for number in range(3):
            with open(f"{directory}/attack-block-{number}", "wb") as file:
                for _ in range(2):
                    file.write(block)
                    file.flush()
                    written += 1
except OSError as error:
    print(f"HELD after {written} MiB: {error.strerror}")
    sys.exit()
print(f"BREACH {written} MiB in three places")
