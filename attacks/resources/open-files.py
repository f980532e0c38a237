# title: Opens files without end
# how: Each open file is kernel memory and one entry less in the host's table. It stops at 200.
# without: open-files
# limits: open-files=32
# expect: held
import os

count = 0
try:
    while count < 200:
        os.open("/dev/null", os.O_RDONLY)
        count += 1
    print("BREACH 200 open files")
except OSError as error:
    print(f"HELD after {count}: {error.strerror}")
