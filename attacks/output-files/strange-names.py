# title: Leaves files with hostile names where results are collected
# how: Line breaks and terminal commands in names forge log lines and lists; a directory deeper than any
#   path may be long breaks whoever joins names in a fixed buffer or recurses without end.
# without: none
# why-no-pair: a collector that takes any name is not among the things that can be switched on.
# collect: out/**
# only-collected: out/honest.txt
# expect: held
import os

os.mkdir("out")
with open("out/honest.txt", "w") as file:
    file.write("honest\n")
for name in (b"two\nlines", b"\x1b[2Jscreen", b"..\n", b"\r..", b"\xff\xfe", b"tab\there", b"\x7f"):
    os.close(os.open(b"out/" + name, os.O_CREAT | os.O_WRONLY))
start = os.open(".", os.O_RDONLY)
os.chdir("out")
for _ in range(60):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
with open("deep.txt", "w") as file:
    file.write("too deep to name\n")
os.fchdir(start)
print("HELD unless such a name comes out")
