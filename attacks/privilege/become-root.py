# title: Becomes root inside
# how: With a capability left over, setuid(0) would give the program the sandbox's own root, and with it
#   everything the init process may do.
# without: capabilities
# root-only: yes
# expect: held
import os

try:
    os.setresuid(0, 0, 0)
    print("BREACH now user", os.geteuid())
except OSError as error:
    print("HELD setresuid:", error.strerror)
