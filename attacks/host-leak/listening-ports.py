# title: Reads the host's table of open ports
# how: /proc/self/net/tcp lists every socket of the network namespace, whoever owns it.
# without: net-namespace
# args: {tcp_port}
# expect: held
import sys

wanted = f":{int(sys.argv[1]):04X}"
try:
    with open("/proc/self/net/tcp") as table:
        found = [line for line in table if line.split()[1].endswith(wanted)]
    print("BREACH the host's listener is in the table" if found else "HELD the table does not have it")
except OSError as error:
    print("HELD", error.strerror)
