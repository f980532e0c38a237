"""Half a megabyte in long and short lines."""

import sys

for number in range(10_000):
    sys.stdout.write(f"{number:05d} " + "abcdefghij" * 4 + f" {number * number:09d}\n")
