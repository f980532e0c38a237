#!/usr/bin/env python3
"""Compares a runtime that waited for its program with one that was started for it.

    driver.py python|javascript|typescript|java|java-compile [--program PATH] [--only TEXT] [--fork] [--time]

Every case runs twice outside any sandbox, in the same directory: by the cold command, and by a warm
runtime that gets the same command as its job. Both streams, the way the process ended and the files it
left must be the same. Cases are in cases_*.py, how each runtime is started in starts.py.
"""
import argparse
import ctypes
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from starts import STARTS

DEADLINE = 60


def masked(text):
    """Addresses differ from run to run."""
    return re.sub(rb"0x[0-9a-f]{6,}", b"0x", bytes(text))


class Ended:
    """How a run went, as far as somebody outside can tell."""

    def __init__(self, process, out, err, directory):
        self.out, self.err, self.code = masked(out), masked(err), process.returncode
        self.files = sorted(
            (str(path.relative_to(directory)), path.is_file() and hash(path.read_bytes()))
            for path in Path(directory).rglob("*"))

    def facts(self):
        return {"stdout": self.out, "stderr": self.err, "code": self.code, "files": self.files}


class Member:
    """The child of a template that has ended, adopted by this process, with the template's pipes."""

    def __init__(self, template):
        self.stdin, self.stdout, self.stderr = template.stdin, template.stdout, template.stderr
        template.wait()
        pipe = os.fstat(template.stdin.fileno()).st_ino
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        self.pid = next(int(child) for child in children if stdin_of(child) == pipe)
        self.returncode = None

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self):
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def stdin_of(pid):
    try:
        return os.stat(f"/proc/{pid}/fd/0").st_ino
    except OSError:
        return None


def adopt_orphans():
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def place(directory, files):
    for name, text in files.items():
        path = Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def empty(directory):
    for path in Path(directory).iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def start(command, environment, directory):
    return subprocess.Popen(
        command, env=environment, cwd=directory, bufsize=0,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


def job_of(directory, command, environment):
    fields = [directory, str(len(command)), *command]
    fields += [f"{name}={value}" for name, value in environment.items()]
    body = b"".join(os.fsencode(field) + b"\0" for field in fields)
    return struct.pack(">I", len(body)) + body


def collect(stream, into, arrived):
    while piece := os.read(stream.fileno(), 65536):
        with arrived:
            into += piece
            arrived.notify_all()


def finish(process, case, directory):
    """Plays the case's part (input, signals) and waits for the end."""
    out, err, arrived = bytearray(), bytearray(), threading.Condition()
    readers = [threading.Thread(target=collect, args=(stream, into, arrived))
               for stream, into in ((process.stdout, out), (process.stderr, err))]
    for reader in readers:
        reader.start()
    alarm = threading.Timer(DEADLINE, process.kill)
    alarm.start()
    try:
        for awaited, action in case.steps:
            with arrived:
                arrived.wait_for(lambda: awaited in out, DEADLINE)
            if isinstance(action, signal.Signals):
                process.send_signal(action)
            else:
                process.stdin.write(action)
        for at in range(0, len(case.stdin), 65536):
            process.stdin.write(case.stdin[at:at + 65536])
        process.stdin.close()
    except BrokenPipeError:
        pass
    for reader in readers:
        reader.join()
    process.wait()
    alarm.cancel()
    return Ended(process, out, err, directory)


def run_cold(runtime, case, directory):
    place(directory, case.files)
    process = start(runtime.cold(case), runtime.environment(case), directory)
    return finish(process, case, directory)


def run_warm(runtime, case, directory):
    command, environment = runtime.warm(directory)
    process = start(command, environment, directory)
    ready = os.read(process.stdout.fileno(), 6)
    if ready != b"ready\n":
        process.kill()
        raise SystemExit(f"not ready: {ready!r} {process.stderr.read()!r}")
    if runtime.fork:
        process = Member(process)
    time.sleep(case.wait)  # A runtime waits for a while; its clocks must not mind.
    place(directory, case.files)
    process.stdin.write(job_of(directory, runtime.cold(case), runtime.environment(case)))
    return finish(process, case, directory)


def compare(runtime, case, directory):
    results = []
    for run in (run_cold, run_warm):
        empty(directory)
        results.append(run(runtime, case, directory).facts())
    cold, warm = results
    different = [fact for fact in cold if cold[fact] != warm[fact] and fact not in case.may_differ]
    print(("differs  " if different else "same     ") + case.name, flush=True)
    for fact in different:
        print(f"    {fact}\n      cold: {cold[fact]!r}\n      warm: {warm[fact]!r}")
    return not different


def measure(runtime, case, directory, times=15):
    """Prints milliseconds from the job to the first output and to the end, beside a cold start."""
    figures = {"cold": [], "first output": [], "end": []}
    for _ in range(times):
        empty(directory)
        place(directory, case.files)
        began = time.perf_counter()
        process = start(runtime.cold(case), runtime.environment(case), directory)
        process.communicate()
        figures["cold"].append(time.perf_counter() - began)
        empty(directory)
        process = start(*runtime.warm(directory), directory)
        os.read(process.stdout.fileno(), 6)
        time.sleep(0.05)
        place(directory, case.files)
        began = time.perf_counter()
        process.stdin.write(job_of(directory, runtime.cold(case), runtime.environment(case)))
        process.stdin.close()
        os.read(process.stdout.fileno(), 65536)
        figures["first output"].append(time.perf_counter() - began)
        process.wait()
        figures["end"].append(time.perf_counter() - began)
    print(case.name + ", median ms: " + ", ".join(
        f"{name} {statistics.median(values) * 1000:.2f}" for name, values in figures.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("language", choices=STARTS)
    parser.add_argument("--program", help="the runtime's executable (for Java: the JDK's directory)")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--fork", action="store_true", help="Python: the member is a child of the template")
    parser.add_argument("--time", action="store_true", help="measure the first of the cases instead")
    options = parser.parse_args()
    os.umask(0o022)
    if options.fork:
        adopt_orphans()
    with tempfile.TemporaryDirectory() as scratch:
        directory = os.path.join(os.path.realpath(scratch), "work")
        os.mkdir(directory)
        runtime = STARTS[options.language](scratch, options)
        cases = [case for case in runtime.cases() if options.only in case.name]
        if options.time:
            measure(runtime, cases[0], directory)
            return
        good = sum([compare(runtime, case, directory) for case in cases])
        print(f"{good} of {len(cases)} the same")
        sys.exit(good != len(cases))


if __name__ == "__main__":
    main()
