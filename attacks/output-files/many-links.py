# title: Leaves one file under many names to collect
# how: A hard link costs no room, but every name is collected in full: 16 KiB become a megabyte.
# without: output
# limits: output=64K
# collect: out/*
# expect: output_limit
# breach: completed
import os

os.mkdir("out")
with open("out/0", "w") as file:
    file.write("x" * 16384)
for number in range(1, 64):
    os.link("out/0", f"out/{number}")
