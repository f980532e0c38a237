"""Handlers, an alarm, a blocked signal, and one that interrupts a wait."""

import os
import signal
import threading

seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(signal.Signals(number).name))
os.kill(os.getpid(), signal.SIGUSR1)
print(seen)


class Alarm(Exception):
    pass


def ring(number, frame):
    raise Alarm


signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    threading.Event().wait(30)
except Alarm:
    print("woken by the alarm")

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
print("while blocked:", len(seen), signal.sigpending() == {signal.SIGUSR1})
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
print("afterwards:", len(seen))

signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGTERM)
print("still here")
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
