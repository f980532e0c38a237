# title: Leaves links to the host's files where results are collected
# how: A collector that follows links reads the host's files with its own rights. Some point at files,
#   some at directories, some would be hard links, and one keeps changing between a directory and a link
#   to the host's while the collector looks.
# without: none
# why-no-pair: a collector that follows links is not among the things that can be switched on.
# args: {host_file} {host_dir}
# collect: out/**
# only-collected: out/honest.txt
# expect: held
import os
import sys

host_file, host_dir = sys.argv[1:3]
os.mkdir("out")
with open("out/honest.txt", "w") as file:
    file.write("honest\n")
for name, target in {
    "file": host_file,
    "shadow": "/etc/shadow",
    "environment": "/proc/self/environ",
    "init-root": "/proc/1/root/etc/shadow",
    "descriptor": "/proc/self/fd/3",
    "climb": "../" * 30 + host_file.lstrip("/"),
    "loop": "loop",
    "nowhere": "/does/not/exist",
    "directory": host_dir,
    "parent": "..",
    "root": "/",
}.items():
    os.symlink(target, f"out/{name}")
for number, path in enumerate((host_file, "/etc/passwd", "/proc/self/environ", "/usr/bin/env")):
    try:
        os.link(path, f"out/hard-{number}")
    except OSError:
        pass  # as it should be: the host's files lie on other mounts
os.mkdir("real")
if os.fork() == 0:
    # Goes on for as long as it is left alive, which should be no longer than its parent.
    for _ in range(200_000):
        try:
            os.rename("real", "out/swap")
            os.rename("out/swap", "real")
            os.symlink(host_dir, "out/swap")
            os.unlink("out/swap")
        except OSError:
            pass
    os._exit(0)
print("HELD unless a link is followed")
