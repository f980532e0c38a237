# title: Joins another group
# how: Extra groups open files that are closed to the program's own user and group.
# without: capabilities
# root-only: yes
# expect: held
import os

try:
    os.setresgid(0, 0, 0)
    print("BREACH now in group", os.getegid())
except OSError as error:
    print("HELD setresgid:", error.strerror)
