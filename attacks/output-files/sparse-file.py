# title: Leaves a file that is mostly hole to collect
# how: It takes no room on the program's disk and becomes 32 MiB in the collector's memory.
# without: output
# limits: output=64K
# collect: out/*
# expect: output_limit
# breach: completed
import os

os.mkdir("out")
with open("out/sparse", "w") as file:
    file.truncate(32 << 20)
