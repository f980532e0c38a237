# title: Leaves dead children lying about
# how: A child that nobody waits for keeps its process number. It stops at 100.
# without: pids
# limits: pids=16
# expect: held
import os

count = 0
try:
    while count < 100:
        if os.fork() == 0:
            os._exit(0)
        count += 1
    print("BREACH 100 dead children")
except OSError as error:
    print(f"HELD after {count}: {error.strerror}")
