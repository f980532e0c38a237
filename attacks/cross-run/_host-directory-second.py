# args: {host_dir}
import sys

try:
    print("BREACH", open(f"{sys.argv[1]}/left-by-first-run").read())
except OSError as error:
    print("HELD", error.strerror)
