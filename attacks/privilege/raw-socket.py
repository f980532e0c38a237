# title: Forges IP packets
# how: A raw socket sends packets with any content and sender. The family is one that ordinary programs
#   use, so the filter has to look at the type as well; behind it the capability is missing.
# without: capabilities, seccomp
# expect: held
# violations: socket
import socket

try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    print("BREACH a raw socket was opened")
except OSError as error:
    print("HELD socket:", error.strerror)
