# title: Hands leaked descriptors on to a program it starts
# how: A leak need not be used by the program itself: whatever it starts without closing anything gets the
#   descriptor too.
# without: closed-descriptors
# expect: held
import subprocess
import sys

look = """
import os
print(*[number for number in range(3, 1024) if os.path.lexists(f"/proc/self/fd/{number}")])
"""
child = subprocess.run([sys.executable, "-c", look], close_fds=False, stdout=subprocess.PIPE, text=True)
passed = child.stdout.split()
print("BREACH passed on:", *passed) if passed else print("HELD nothing passed on")
