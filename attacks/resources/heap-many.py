# title: Spreads its memory over many processes
# how: Eight children hold 24 MiB each: none is large, all together are three times the limit.
# without: memory
# limits: memory=64M
# expect: memory_limit
import os
import sys
import time

children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        block = bytearray(b"x") * (24 << 20)
        time.sleep(1.5)
        os._exit(0)
    children.append(child)
ended = [os.waitpid(child, 0)[1] for child in children]
if any(ended):
    # Some child was killed for memory; a program that notices gives up.
    sys.exit(1)
print("BREACH 192 MiB in eight processes")
