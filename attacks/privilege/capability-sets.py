# title: Looks for a capability in any of its sets
# how: What is permitted, inherited, ambient or merely left in the bounding set can come back at the
#   next exec.
# without: capabilities
# expect: held
left = []
for line in open("/proc/self/status"):
    if line.startswith("Cap"):
        name, value = line.split()
        if int(value, 16) != 0:
            left.append(name + value)
if left:
    print("BREACH", *left)
else:
    print("HELD all five sets are empty")
