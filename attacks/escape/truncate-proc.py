# title: Truncates a file of /proc
# how: Truncating needs no open file and no right to write through one, so the rules on opening for writing do
#   not see it. Its own /proc/self/comm belongs to the program and changes nothing, so only the rule on truncating
#   can refuse it.
# without: landlock-truncate
# expect: held
import os

try:
    os.truncate("/proc/self/comm", 0)
    print("BREACH a file of /proc was truncated")
except OSError as error:
    print("HELD truncate:", error.strerror)
