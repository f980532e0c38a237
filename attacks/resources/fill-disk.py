# title: Fills the disk
# how: Writes two-megabyte files to the work directory until there is no room; it stops at four times its
#   quota.
# without: disk
# limits: disk=8M
# expect: held
import sys

block = bytes(1 << 20)
written = 0
try:
    for number in range(16):
        with open(f"block-{number}", "wb") as file:
            for _ in range(2):
                file.write(block)
                file.flush()
                written += 1
except OSError as error:
    print(f"HELD after {written} MiB: {error.strerror}")
    sys.exit()
print(f"BREACH {written} MiB on disk")
