# title: Learns where it sits in the host's cgroup tree
# how: The path names the service, container or execution around the program, and so its neighbours.
# without: cgroup-namespace
# root-only: yes
# expect: held
paths = {line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup")}
print("HELD every group is /" if paths <= {"/"} else f"BREACH {' '.join(sorted(paths))}")
