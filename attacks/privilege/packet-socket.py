# title: Listens to raw frames
# how: A packet socket sees and forges everything on the wires of its namespace; its code has given root
#   away more than once.
# without: capabilities, seccomp
# expect: held
# violations: socket
import socket

AF_PACKET, ALL_PROTOCOLS = 17, 0x0300
try:
    socket.socket(AF_PACKET, socket.SOCK_RAW, ALL_PROTOCOLS).close()
    print("BREACH a packet socket was opened")
except OSError as error:
    print("HELD socket:", error.strerror)
