# title: Connects to a service on the host's loopback
# how: Databases and admin pages listen on 127.0.0.1 and trust whoever comes from there.
# without: net-namespace
# args: {tcp_port}
# limits: network=localhost
# expect: held
import socket
import sys

try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2).close()
    print("BREACH connected to the host's port", sys.argv[1])
except OSError as error:
    print("HELD", error.strerror or error)
