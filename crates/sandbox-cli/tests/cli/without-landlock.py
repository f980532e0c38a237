"""Run a command on a kernel that seems to have no Landlock: without-landlock.py COMMAND [ARGS...]

A system-call filter answers ENOSYS to the three calls of Landlock, as a kernel does that has none.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_RET_ERRNO = 0x00050000
FIRST_CALL, LAST_CALL = 444, 446

# Load the number; between the first and the last: refuse; else allow.
PROGRAM = [
    (0x20, 0, 0, 0),
    (0x35, 0, 2, FIRST_CALL),
    (0x25, 1, 0, LAST_CALL),
    (0x06, 0, 0, SECCOMP_RET_ERRNO | errno.ENOSYS),
    (0x06, 0, 0, SECCOMP_RET_ALLOW),
]

code = b"".join(struct.pack("=HBBI", *instruction) for instruction in PROGRAM)
instructions = ctypes.create_string_buffer(code)
filter_program = struct.pack("@HP", len(PROGRAM), ctypes.addressof(instructions))
libc = ctypes.CDLL(None, use_errno=True)
if os.geteuid() != 0:
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0) != 0:
    sys.exit("cannot install the filter: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
