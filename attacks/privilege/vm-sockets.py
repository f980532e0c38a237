# title: Opens a socket to the hypervisor
# how: AF_VSOCK belongs to no network namespace: from inside a virtual machine it reaches services of the
#   machine's own host.
# without: seccomp
# optional: kernels without VM sockets
# expect: held
# violations: socket
import socket

AF_VSOCK = 40
try:
    socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()
    print("BREACH a VM socket was opened")
except OSError as error:
    print("HELD socket:", error.strerror)
