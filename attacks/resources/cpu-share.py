# title: Takes more than its share of a CPU
# how: Spins for a second and a half and compares the CPU time it got with the time on the clock. It was
#   given a tenth; more than a quarter is too much.
# without: cpu
# limits: cpus=0.1
# expect: held
import time

start = time.monotonic()
while time.monotonic() - start < 1.5:
    pass
share = time.process_time() / (time.monotonic() - start)
print(f"{'BREACH' if share > 0.25 else 'HELD'} got {share:.2f} of a CPU")
