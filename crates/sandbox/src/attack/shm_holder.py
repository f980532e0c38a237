# Holds what only a process of its own can hold for the attacks: a System V shared memory segment, and
# itself, as a process to look for. It removes the segment, and the directory of the other canaries in
# case its parent was killed, when its standard input ends.
import ctypes
import random
import shutil
import signal
import sys

IPC_CREAT, IPC_EXCL, IPC_RMID, SIZE = 0o1000, 0o2000, 0, 4096

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
secret, directory = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
segment = -1
for _ in range(100):
    key = random.SystemRandom().randrange(1 << 20, 1 << 31)
    segment = libc.shmget(key, ctypes.c_size_t(SIZE), IPC_CREAT | IPC_EXCL | 0o666)
    if segment >= 0:
        break
try:
    address = libc.shmat(segment, None, 0)
    if segment < 0 or address == ctypes.c_void_p(-1).value:
        sys.exit("no shared memory segment could be made")
    text = secret.encode() + b"\0"
    ctypes.memmove(address, text, len(text))
    print(key, flush=True)
    sys.stdin.read()
finally:
    libc.shmctl(segment, IPC_RMID, None)
    shutil.rmtree(directory, ignore_errors=True)
