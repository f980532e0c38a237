# title: Makes a file of a terabyte
# how: A file with a hole uses no blocks, but whoever copies, hashes or collects it reads all of it.
# without: rlimits
# expect: held
import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
descriptor = os.open("giant", os.O_CREAT | os.O_WRONLY)
try:
    os.ftruncate(descriptor, 1 << 40)
    print("BREACH a file of a terabyte")
except OSError as error:
    print("HELD ftruncate:", error.strerror)
os.unlink("giant")
