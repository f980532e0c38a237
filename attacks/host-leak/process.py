# title: Finds a process of the host
# how: getpgid answers for every process that can be named, whoever owns it; "no such process" is the
#   only answer that gives nothing away.
# without: pid-namespace
# args: {host_pid}
# root-only: yes
# expect: held
import os
import sys

try:
    print("BREACH the process is in group", os.getpgid(int(sys.argv[1])))
except OSError as error:
    print("HELD", error.strerror)
