# title: Reads a file in the host's /var
# how: The file is readable by everyone on the host; it must not exist inside.
# without: fresh-root
# args: {host_file}
# expect: held
import sys

try:
    with open(sys.argv[1]) as file:
        print("BREACH", file.read(80).strip())
except OSError as error:
    print("HELD", error.strerror)
