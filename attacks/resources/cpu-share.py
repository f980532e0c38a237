# title: Takes more than its share of a CPU
# how: Spins for a second and a half and compares the CPU time it got with the time on the clock. It was
#   given a tenth; half as much again is too much.
# without: cpu
# limits: cpus=0.1
# expect: held
import time

began, used = time.monotonic(), time.process_time()
while time.monotonic() - began < 1.5:
    pass
share = (time.process_time() - used) / (time.monotonic() - began)
print(f"{'BREACH' if share > 0.15 else 'HELD'} got {share:.2f} of a CPU")
