# title: Leaves a file in a directory that everyone may write
# how: /var/tmp and its like are shared by all; what the first run leaves there the second finds.
# without: fresh-root, landlock
# args: {host_dir} {secret}
# then: _host-directory-second.py
# expect: held
import sys

try:
    with open(f"{sys.argv[1]}/left-by-first-run", "w") as file:
        file.write(sys.argv[2])
    print("left a file")
except OSError as error:
    print(error.strerror)
