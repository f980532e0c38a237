# title: Leaves pipes and sockets where results are collected
# how: Opening a named pipe that nobody writes to blocks for ever, and a socket or device is no file to
#   copy. The collector must not touch them.
# without: none
# why-no-pair: a collector that opens such files is not among the things that can be switched on.
# collect: out/**
# only-collected: out/honest.txt
# expect: held
import os
import socket
import stat

os.mkdir("out")
with open("out/honest.txt", "w") as file:
    file.write("honest\n")
os.mkfifo("out/pipe")
listener = socket.socket(socket.AF_UNIX)
listener.bind("out/socket")
for name, kind, device in (("null", stat.S_IFCHR, os.makedev(1, 3)), ("whiteout", stat.S_IFCHR, 0)):
    try:
        os.mknod(f"out/{name}", kind | 0o666, device)
    except OSError:
        pass  # as it should be; the pipe and the socket are enough
os.mkdir("out/closed", 0)
print("HELD unless the collector opens one")
