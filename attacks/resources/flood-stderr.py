# title: Prints errors without end
# how: The error stream is easily forgotten when output is counted. It stops at 4 MiB.
# without: output
# limits: output=64K
# expect: output_limit
import sys

line = "x" * 1023 + "\n"
for _ in range(4096):
    sys.stderr.write(line)
print("BREACH 4 MiB of errors printed")
