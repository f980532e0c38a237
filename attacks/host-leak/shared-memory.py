# title: Reads a System V shared memory segment of the host
# how: Segments are found by number and this one is open to all; databases keep their buffers in such.
# without: ipc-namespace
# args: {shm_key}
# expect: held
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
SHM_RDONLY = 0o10000

segment = libc.shmget(ctypes.c_int(int(sys.argv[1], 0)), ctypes.c_size_t(0), 0)
address = libc.shmat(segment, None, SHM_RDONLY) if segment >= 0 else None
if address is None or address == ctypes.c_void_p(-1).value:
    print("HELD", os.strerror(ctypes.get_errno()))
else:
    print("BREACH", ctypes.string_at(address, 64).split(b"\0")[0].decode(errors="replace"))
