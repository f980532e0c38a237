"""A pipeline of programs, an exit code, a timeout, a pool of processes and a plain fork."""

import multiprocessing
import os
import subprocess
import sys


def cube(number):
    return number**3


if __name__ == "__main__":
    words = subprocess.run(["sort", "-u"], input="pear\napple\npear\nfig\n", text=True, capture_output=True)
    print(words.stdout.split())

    first = subprocess.Popen(["seq", "1", "1000"], stdout=subprocess.PIPE)
    second = subprocess.run(["wc", "-l"], stdin=first.stdout, capture_output=True, text=True)
    print("lines:", second.stdout.strip(), "first ended with", first.wait())

    failed = subprocess.run([sys.executable, "-c", "import sys; print('bye', file=sys.stderr); sys.exit(7)"],
                            capture_output=True, text=True)
    print("child:", failed.returncode, repr(failed.stderr))

    try:
        subprocess.run(["sleep", "60"], timeout=0.2)
    except subprocess.TimeoutExpired as error:
        print("too slow:", error.cmd)

    with multiprocessing.Pool(2) as pool:
        print(pool.map(cube, range(6)))

    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        os.write(write, b"from the child")
        os._exit(5)
    os.close(write)
    _, status = os.waitpid(child, 0)
    print(os.read(read, 100), os.waitstatus_to_exitcode(status))
