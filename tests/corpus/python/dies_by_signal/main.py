"""Sends itself a signal for which it has no handler."""

import os
import signal

print("before", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
print("never printed")
