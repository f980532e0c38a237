# args: {shm_key}
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
segment = libc.shmget(ctypes.c_int(int(sys.argv[1], 0)), ctypes.c_size_t(0), 0)
address = libc.shmat(segment, None, 0) if segment >= 0 else None
if address in (None, ctypes.c_void_p(-1).value):
    print("HELD", os.strerror(ctypes.get_errno()))
else:
    found = ctypes.string_at(address + 1024, 128).split(b"\0")[0].decode(errors="replace")
    print("BREACH", found) if found.startswith("left:") else print("HELD the segment is empty")
