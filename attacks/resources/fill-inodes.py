# title: Makes more files than any quota in bytes can see
# how: Empty files use no blocks, but each is kernel memory. It stops at 8000.
# without: disk
# limits: disk=4M
# expect: held
import os

os.mkdir("many")
count = 0
try:
    while count < 8000:
        os.close(os.open(f"many/{count}", os.O_CREAT | os.O_WRONLY))
        count += 1
    print("BREACH 8000 empty files")
except OSError as error:
    print(f"HELD after {count}: {error.strerror}")
