# title: Keeps its memory in files without a name
# how: memfd_create makes files that lie in no directory, so no disk quota counts them; each is kept
#   small, to stay below the limit on file size.
# without: memory
# limits: memory=48M
# expect: memory_limit
import os

block = bytes(1 << 20)
for number in range(16):
    descriptor = os.memfd_create(f"block-{number}")
    for _ in range(16):
        os.write(descriptor, block)
print("BREACH 256 MiB in memory files")
