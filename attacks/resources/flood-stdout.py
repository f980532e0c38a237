# title: Prints without end
# how: Whoever keeps all output in memory dies of it. It stops at 4 MiB.
# without: output
# limits: output=64K
# expect: output_limit
line = "x" * 1023
for _ in range(4096):
    print(line)
print("BREACH 4 MiB printed")
