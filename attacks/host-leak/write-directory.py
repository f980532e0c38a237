# title: Writes a file into a directory of the host
# how: The directory is writable by everyone on the host; a file left there outlives the sandbox.
# without: fresh-root, landlock
# args: {host_dir}
# expect: held
import os
import sys

path = os.path.join(sys.argv[1], "written-from-inside")
try:
    with open(path, "w") as file:
        file.write("out\n")
    print("BREACH wrote", path)
except OSError as error:
    print("HELD", error.strerror)
