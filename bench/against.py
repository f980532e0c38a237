#!/usr/bin/env python3
"""Compares the latency of two builds in interleaved pairs.

    bench/against.py BEFORE AFTER [--pairs N] [--case TEXT]... [--limit RATIO]

BEFORE and AFTER are directories that contain `sandbox-run` and `sandboxd`. Each pair runs one case once with
each build, in alternating order, so that load on the machine affects both. `cli` cases start the command line
for each execution: `--warm` with the helper that the first of them started, `--server` with a running `sandboxd` of
the same build on loopback, and `--version` without an execution. `server` cases send a request to a running `sandboxd` of each build, whose executions go
through the library: `cold` with `warm = off`, `warm` with the default. Both wait between executions, so that none
pays for the one before it. `clients` cases do not: they measure the throughput of four connections, as time per
execution, and with it the processor time that a sandbox costs before and after its program.

Prints, for each case, both medians and their ratio with a 95 % confidence interval (bootstrap over the pairs).
Exits with 1 if the interval of a case is entirely above the limit.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WARM_UP = 8
# Between executions, in seconds: what the last one left is removed, and the next sandbox prepared.
PAUSE = 0.02
# The same for a runtime that is started ahead.
WARM_PAUSE = 0.12
RESAMPLES = 2000
CLIENTS = 4
EXECUTIONS_PER_CLIENT = 8

PROGRAMS = {
    "bash": ("bash", "echo Hello"),
    "python": ("python", 'print("Hello")'),
    "node": ("javascript", 'console.log("Hello")'),
    "c": ("c", '#include <stdio.h>\nint main(void) { puts("Hello"); }'),
    "rust": ("rust", 'fn main() { println!("Hello") }'),
}
CLI_CASES = {
    "cli bash": ("bash", []),
    "cli bash, localhost": ("bash", ["--network", "localhost"]),
    "cli bash, --warm": ("bash", ["--warm"]),
    "cli python": ("python", []),
    "cli node": ("node", []),
    "cli c, cached": ("c", []),
    "cli --version": (None, ["--version"]),
}
REMOTE_CASES = {
    "cli bash, --server": ("bash", "on"),
}
SERVER_CASES = {
    "server bash, cold": ("bash", "off"),
    "server python, cold": ("python", "off"),
    "server node, cold": ("node", "off"),
    "server c, cached, cold": ("c", "off"),
    "server rust, cached, cold": ("rust", "off"),
    "server python, warm": ("python", "on"),
    "server node, warm": ("node", "on"),
    "server c, cached, warm": ("c", "on"),
    "clients python, warm": ("python", "on"),
    "clients c, cached, warm": ("c", "on"),
}


class Build:
    """One build, with a store of its own and at most one server."""

    def __init__(self, directory, place):
        self.directory = Path(directory).resolve()
        self.place = Path(place)
        # The socket of the helper is in the second, which others must not be able to enter.
        own = {"SANDBOX_RUN_STORE": str(self.place / "store"), "XDG_RUNTIME_DIR": str(self.place)}
        self.environment = os.environ | own
        self.server = None
        self.address = None
        self.connections = []

    def start_server(self, warm):
        data = self.place / f"data-{warm}"
        data.mkdir()
        settings = {
            "LISTEN": "127.0.0.1:0", "LOG": "json", "WARM": warm, "REQUESTS_PER_MINUTE": "1000000000",
            "BURST": "1000000000",
        }
        environment = self.environment | {f"SANDBOXD_{name}": text for name, text in settings.items()}
        # The user's own settings are not read.
        environment["XDG_CONFIG_HOME"] = str(data)
        command = [self.directory / "sandboxd", "--data-dir", data]
        with open(data / "log", "wb") as log:
            self.server = subprocess.Popen(
                command, cwd=data, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
            )
        self.address = self.wait_for_address(data / "log")
        self.connections = [http.client.HTTPConnection(self.address, timeout=60) for _ in range(CLIENTS)]

    def wait_for_address(self, log):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.server.poll() is None:
            for line in log.read_text().splitlines(keepends=True):
                if line.endswith("\n") and "address" in json.loads(line):
                    return json.loads(line)["address"]
            time.sleep(0.01)
        sys.exit(f"error: {self.directory}/sandboxd does not start:\n{log.read_text()}")

    def stop_server(self):
        if self.server:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(30)
            self.server = None

    def stop_helper(self):
        command = [self.directory / "sandbox-run", "warm", "stop"]
        subprocess.run(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, program, options):
        command = [self.directory / "sandbox-run", *options]
        if program:
            language, code = PROGRAMS[program]
            command += ["--quiet", "--lang", language, "--code", code]
        null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1)]
        started = time.perf_counter()
        process = os.posix_spawn(command[0], command, self.environment, file_actions=null)
        _, status = os.waitpid(process, 0)
        took = time.perf_counter() - started
        if status != 0:
            raise RuntimeError(f"{self.directory}/sandbox-run ended with status {status}")
        return took

    def request(self, program, connection=0):
        language, code = PROGRAMS[program]
        body = json.dumps({"language": language, "code": code})
        started = time.perf_counter()
        client = self.connections[connection]
        client.request("POST", "/api/v1/execute", body, {"Content-Type": "application/json"})
        response = client.getresponse()
        text = response.read()
        took = time.perf_counter() - started
        if response.status != 200 or json.loads(text)["status"] != "completed":
            raise RuntimeError(f"{response.status}: {text.decode()}")
        return took

    def request_in_parallel(self, program):
        def send(connection):
            for _ in range(EXECUTIONS_PER_CLIENT):
                self.request(program, connection)

        started = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(send, range(CLIENTS)))
        return (time.perf_counter() - started) / (CLIENTS * EXECUTIONS_PER_CLIENT)


def measure(builds, once, pairs, pause):
    """Times of both builds, pair by pair."""

    def rested(build):
        time.sleep(pause)
        return once(build)

    for _ in range(WARM_UP):
        for build in builds:
            rested(build)
    times = []
    for number in range(pairs):
        order = builds if number % 2 == 0 else builds[::-1]
        taken = {build: rested(build) for build in order}
        times.append([taken[build] for build in builds])
    return times


def interval(times):
    """The middle 95 % of the ratio of medians over resampled pairs."""
    generator = random.Random(0)
    ratios = sorted(ratio(generator.choices(times, k=len(times))) for _ in range(RESAMPLES))
    return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40 - 1]


def ratio(times):
    before, after = (statistics.median(side) for side in zip(*times))
    return after / before


def report(name, times, limit):
    """Prints a row; returns whether the case became slower than the limit permits."""
    before, after = (statistics.median(side) * 1000 for side in zip(*times))
    low, high = interval(times)
    is_slower = low > limit
    mark = "  SLOWER" if is_slower else ""
    print(f"{name:27} {before:8.2f} {after:8.2f} {after / before:7.3f}   {low:.3f} to {high:.3f}{mark}", flush=True)
    return is_slower


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--case", action="append", default=[], help="only cases whose names contain this; repeatable")
    parser.add_argument("--limit", type=float, default=1.05)
    arguments = parser.parse_args()

    def wanted(cases):
        names = arguments.case or [""]
        return {name: case for name, case in cases.items() if any(part in name for part in names)}

    slower = []
    with tempfile.TemporaryDirectory() as place:
        builds = []
        for name in ("before", "after"):
            (Path(place) / name).mkdir(mode=0o700)
            builds.append(Build(getattr(arguments, name), Path(place) / name))

        def compare(name, once, pause=PAUSE):
            try:
                times = measure(builds, once, arguments.pairs, pause)
            except RuntimeError as error:
                print(f"{name:27} left out: {error}", file=sys.stderr)
                return
            if report(name, times, arguments.limit):
                slower.append(name)

        print(f"{'ms, medians':27} {'before':>8} {'after':>8} {'ratio':>7}   95 % interval")
        try:
            for name, (program, options) in wanted(CLI_CASES).items():
                compare(name, lambda build: build.run(program, options))
        finally:
            for build in builds:
                build.stop_helper()
        for warm in ("off", "on"):
            cases = {name: case for name, case in wanted(REMOTE_CASES | SERVER_CASES).items() if case[1] == warm}
            try:
                for build in builds if cases else []:
                    build.start_server(warm)
                for name, (program, _) in cases.items():
                    if name in REMOTE_CASES:
                        compare(name, lambda build: build.run(program, ["--server", f"http://{build.address}"]))
                    elif name.startswith("clients"):
                        compare(name, lambda build: build.request_in_parallel(program))
                    else:
                        compare(name, lambda build: build.request(program), WARM_PAUSE if warm == "on" else PAUSE)
            finally:
                for build in builds:
                    build.stop_server()
    if slower:
        print(f"slower than {arguments.limit} times: {'; '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
