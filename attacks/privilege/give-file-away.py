# title: Gives a file to root
# how: A program file owned by root with the set-user-id bit is a door to root; giving files away is the
#   first half of making one.
# without: capabilities
# root-only: yes
# expect: held
import os

open("mine", "w").close()
try:
    os.chown("mine", 0, 0)
    print("BREACH the file belongs to user", os.stat("mine").st_uid)
except OSError as error:
    print("HELD chown:", error.strerror)
