# title: Sleeps past its time
# how: A sleeping program uses no CPU time, so only the wall clock can end it.
# without: wall-time
# limits: timeout=1s
# expect: timeout
import time

time.sleep(3)
print("BREACH slept for three seconds")
