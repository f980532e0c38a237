# title: Reads the host's table of abstract sockets
# how: /proc/self/net/unix names every listening service of the network namespace.
# without: net-namespace
# args: {abstract_socket}
# expect: held
import sys

try:
    with open("/proc/self/net/unix", errors="replace") as table:
        seen = sys.argv[1].lstrip("@") in table.read()
    print("BREACH the host's socket is in the table" if seen else "HELD the table does not have it")
except OSError as error:
    print("HELD", error.strerror)
