# title: Leaves thousands of files to collect
# how: Each costs the collector an open, a record and memory; together they pass the output limit.
# without: output
# limits: output=64K
# collect: out/*
# expect: output_limit
# breach: completed
import os

os.mkdir("out")
for number in range(3000):
    with open(f"out/{number}", "w") as file:
        file.write("x" * 100)
