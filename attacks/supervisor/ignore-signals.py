# title: Ignores every signal it can
# how: A polite request to end is not heard; only SIGKILL works, and it has to come soon after.
# without: wall-time
# limits: timeout=1s
# expect: timeout
import signal
import time

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
end = time.monotonic() + 3
while time.monotonic() < end:
    time.sleep(0.1)
print("BREACH ran for three seconds")
