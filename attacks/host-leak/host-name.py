# title: Learns the host's name
# how: The name often tells the owner, the site and the role of a machine.
# without: uts-namespace
# args: {host_name}
# expect: held
import socket
import sys

name = socket.gethostname()
print(f"BREACH the host is {name}" if name == sys.argv[1] else f"HELD the name inside is {name}")
