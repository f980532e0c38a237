# title: Closes its streams and goes on
# how: Whoever takes the end of output for the end of the program forgets about it. It ends by itself
#   after three seconds.
# without: wall-time
# limits: timeout=1s
# expect: timeout
# breach: completed
import os
import time

for descriptor in range(3):
    os.close(descriptor)
time.sleep(3)
os._exit(0)
