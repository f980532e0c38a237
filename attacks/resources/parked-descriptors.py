# title: Parks open files in a socket
# how: A descriptor sent over a socket stays open while nobody receives it and is in no process's table,
#   so that a limit per process could be passed at will. It stops at 200.
# without: open-files
# limits: open-files=32
# expect: held
import os
import socket

left, right = socket.socketpair()
left.setblocking(False)
count = 0
try:
    while count < 200:
        descriptor = os.open("/dev/null", os.O_RDONLY)
        socket.send_fds(left, [b"x"], [descriptor])
        os.close(descriptor)
        count += 1
    print("BREACH 200 open files in flight")
except OSError as error:
    print(f"HELD after {count}: {error.strerror}")
