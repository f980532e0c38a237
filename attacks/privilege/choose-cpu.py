# title: Chooses the CPUs that it runs on
# how: Widens or moves its affinity. A program that was bound to one CPU would use all of them, and one that may
#   choose can move next to a neighbor and watch the caches that they then share.
# without: seccomp
# expect: held
# violations: sched_setaffinity
import os

before = os.sched_getaffinity(0)
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
    os.sched_setaffinity(0, {min(before)})
    print(f"BREACH moved from {sorted(before)} to {sorted(os.sched_getaffinity(0))}")
except OSError as error:
    print(f"HELD sched_setaffinity: {error.strerror}")
