# title: Uses up the inotify instances
# how: They are counted per user: a program that takes all leaves none for others with the same id. It
#   stops at 100.
# without: open-files, rlimits
# limits: open-files=32
# optional: a host that allows fewer than 100 instances per user
# expect: held
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
count = 0
while count < 100 and libc.inotify_init() >= 0:
    count += 1
if count == 100:
    print("BREACH 100 inotify instances")
else:
    print(f"HELD after {count}: {os.strerror(ctypes.get_errno())}")
