# title: Burns CPU time in several processes
# how: Four processes use 0.7 seconds each, so that none of them alone passes the limit of one second;
#   only the sum does.
# without: cpu-time
# limits: cpu-time=1s timeout=20s
# expect: timeout
import os
import time

for _ in range(4):
    if os.fork() == 0:
        while time.process_time() < 0.7:
            pass
        os._exit(0)
for _ in range(4):
    os.wait()
print("BREACH 2.8 seconds of CPU time in four processes")
