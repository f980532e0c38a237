# title: Opens a socket to the kernel's cryptography
# how: AF_ALG loads modules and runs drivers on behalf of anybody; several holes were reached this way.
# without: seccomp
# optional: kernels without the user interface to their cryptography
# expect: held
# violations: socket
import socket

AF_ALG = 38
try:
    socket.socket(AF_ALG, socket.SOCK_SEQPACKET).close()
    print("BREACH a cryptography socket was opened")
except OSError as error:
    print("HELD socket:", error.strerror)
