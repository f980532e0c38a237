# title: Climbs out with ../..
# how: Paths with more parents than the tree is deep, and descriptors on the root directory from which
#   ".." is asked again, both try to come out above the sandbox's root.
# without: fresh-root
# args: {host_file}
# expect: held
import os
import sys

target = sys.argv[1].lstrip("/")
root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
attempts = [
    (None, "../" * 40 + target),
    (None, "/usr/lib/" + "../" * 40 + target),
    (None, "/proc/self/cwd/" + "../" * 40 + target),
    (root, "../../" + target),
]
last = ""
for directory, path in attempts:
    try:
        descriptor = os.open(path, os.O_RDONLY, dir_fd=directory)
        print("BREACH", os.read(descriptor, 80).decode(errors="replace").strip())
        sys.exit()
    except OSError as error:
        last = error.strerror
print("HELD", last)
