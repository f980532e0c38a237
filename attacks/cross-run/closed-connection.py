# title: Leaves the trace of a connection
# how: A closed TCP connection lingers in its network namespace for a minute. If two runs share one, or a
#   namespace is used again, the second reads the first's port numbers: a message.
# without: net-namespace
# args: {tcp_port}
# limits: network=localhost
# then: _closed-connection-second.py
# expect: held
import socket
import sys

port = int(sys.argv[1])
server = socket.socket()
try:
    server.bind(("127.0.0.1", port))
    server.listen()
except OSError:
    server = None  # the host's own listener is there and will do
client = socket.create_connection(("127.0.0.1", port), 2)
accepted = server.accept()[0] if server else None
# The side that closes first keeps the trace.
client.shutdown(socket.SHUT_WR)
if accepted:
    accepted.close()
client.close()
print("left a closed connection")
