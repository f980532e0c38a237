# title: Connects to an abstract socket of the host
# how: Abstract sockets have a name but no file, so no mount or permission guards them; desktop and
#   container services listen on such. Both the network namespace and Landlock's scope keep it out.
# without: net-namespace, landlock-scope
# args: {abstract_socket}
# expect: held
import socket
import sys

with socket.socket(socket.AF_UNIX) as client:
    try:
        client.connect("\0" + sys.argv[1].lstrip("@"))
        print("BREACH connected to", sys.argv[1])
    except OSError as error:
        print("HELD", error.strerror)
