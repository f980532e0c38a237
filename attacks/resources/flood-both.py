# title: Splits its output over both streams
# how: Each stream stays below the limit, which is on the two together. It stops at 96 KiB.
# without: output
# limits: output=64K
# expect: output_limit
# breach: completed
import os

line = b"x" * 1023 + b"\n"
for _ in range(48):
    os.write(1, line)
    os.write(2, line)
