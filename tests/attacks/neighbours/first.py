"""Watches and locks everything it can name, then says what it saw of others. Runs beside `second.py`."""

import ctypes
import fcntl
import os
import resource
import sys
import time

IN_ALL_EVENTS = 0xFFF
libc = ctypes.CDLL(None, use_errno=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

names = open("/meet/names").read().splitlines()
watcher = libc.inotify_init1(os.O_NONBLOCK)
watched, locked, kept = {}, 0, []
for name in names:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        continue
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked += 1
    except OSError:
        pass
    kept.append(handle)
# After it has opened everything itself: what it sees now is somebody else's doing.
for name in names:
    number = libc.inotify_add_watch(watcher, name.encode(), IN_ALL_EVENTS)
    if number >= 0:
        watched[number] = name
print("watched", len(watched), "locked", locked, flush=True)
open("/meet/ready", "w").close()
while not os.path.exists("/meet/done"):
    time.sleep(0.01)
seen = set()
while True:
    try:
        events = os.read(watcher, 1 << 16)
    except BlockingIOError:
        break
    while events:
        number, _mask, _cookie, length = (int.from_bytes(events[at : at + 4], sys.byteorder) for at in (0, 4, 8, 12))
        seen.add(watched.get(number, "?"))
        events = events[16 + length :]
for name in sorted(seen):
    print("SAW", name)
