# title: Leaves a message in System V shared memory
# how: Segments outlive their makers. The first run writes a message into the segment with an agreed
#   number, the second reads it: two runs that should know nothing of each other talk.
# without: ipc-namespace
# args: {shm_key} {secret}
# then: _shared-memory-second.py
# expect: held
import ctypes
import sys

IPC_CREAT = 0o1000
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
# On the host the segment exists and belongs to the tester; inside, a private one is made.
segment = libc.shmget(ctypes.c_int(int(sys.argv[1], 0)), ctypes.c_size_t(0), 0)
if segment < 0:
    segment = libc.shmget(ctypes.c_int(int(sys.argv[1], 0)), ctypes.c_size_t(4096), IPC_CREAT | 0o666)
address = libc.shmat(segment, None, 0) if segment >= 0 else None
if address not in (None, ctypes.c_void_p(-1).value):
    message = b"left:" + sys.argv[2].encode() + b"\0"
    ctypes.memmove(address + 1024, message, len(message))
    print("left a message")
