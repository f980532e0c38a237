# title: Learns how long the host has been up
# how: The boot clock tells when the machine last got its patches, and being the same in every sandbox
#   it recognises the machine again. Without an offset of its own the program reads the host's clock.
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
