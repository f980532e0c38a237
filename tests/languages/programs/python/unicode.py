import sys

line = sys.stdin.readline()
print("grüße, 世界")
print(line, end="")
open("ü-文.txt", "w").write(line)
