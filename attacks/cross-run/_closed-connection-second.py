# args: {tcp_port}
import sys

LISTEN = "0A"
wanted = f":{int(sys.argv[1]):04X}"
try:
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in list(table)[1:]]
    traces = [row for row in rows if row[2].endswith(wanted) and row[3] != LISTEN]
    print("BREACH the other run's connection is in the table" if traces else "HELD no trace of it")
except OSError as error:
    print("HELD", error.strerror)
