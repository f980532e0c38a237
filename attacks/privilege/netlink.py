# title: Talks to kernel subsystems over netlink
# how: Netlink leads to the packet filter, IPsec and device events, which unprivileged programs have no
#   business with and which have been broken into again and again.
# without: seccomp
# expect: held
# violations: socket
import socket

AF_NETLINK = 16
last = ""
for name, protocol in (("netfilter", 12), ("xfrm", 6), ("device events", 15), ("socket diagnosis", 4)):
    try:
        socket.socket(AF_NETLINK, socket.SOCK_RAW, protocol).close()
        print("BREACH a netlink socket to", name)
        break
    except OSError as error:
        last = error.strerror
else:
    print("HELD socket:", last)
