# title: Keeps its memory in temporary files
# how: Files in /dev/shm are memory. The disk limit is set high here, so that the memory limit has to
#   count them.
# without: memory
# limits: memory=48M disk=256M
# expect: memory_limit
block = bytes(1 << 20)
for number in range(12):
    with open(f"/dev/shm/block-{number}", "wb") as file:
        for _ in range(16):
            file.write(block)
print("BREACH 192 MiB in temporary files")
