# title: Reads the host's boot clock
# how: The boot clock is the same in every program on a machine and so a way to know it again. With a
#   clock of its own a sandbox starts at zero. The offset between the two can still be read, so this
#   protection gives programs their own clocks; it does not hide the host's uptime from one that looks for it.
# without: time-namespace
# expect: held
import time

try:
    offsets = dict(line.split(None, 1) for line in open("/proc/self/timens_offsets"))
    seconds, nanoseconds = offsets["boottime"].split()
except OSError as error:
    seconds, nanoseconds = "0", "0"
if (seconds, nanoseconds) == ("0", "0"):
    print("BREACH the host has been up for", round(time.clock_gettime(time.CLOCK_BOOTTIME)), "seconds")
else:
    print("HELD the boot clock has an offset of its own")
