"""Runs one module of CPython's regression tests and prints one line for each test method.

    python3 run-module.py test_json [resource=NAME] [without=METHOD]...

`resource=` switches on one more kind of test that CPython's runner leaves out unless asked, and
`without=` leaves out one test method.

A line is the test's name, a tab, its outcome, a tab, and for anything but `ok` the reason. A test is
announced with the outcome `started` first, so that one which takes the whole process down is known
by name. The last line is `end`. What the tests print themselves goes to standard error.

The same file runs bare and inside the sandbox, and knows nothing of either.
"""

import faulthandler
import importlib
import os
import sys
import unittest

from test import support

# Kinds of tests that are always on. The others, as in CPython's own runner, are off unless asked for:
# they are costly, or would leave the host.
RESOURCES = ("subprocess",)


class Lines(unittest.TestResult):
    """A result that writes each outcome at once."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.outcome = None

    def line(self, test, outcome, reason=""):
        one_line = " ".join(str(reason).split())
        print(test.id(), outcome, one_line, sep="\t", file=self.out, flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.outcome = ("ok", "")
        self.line(test, "started")

    def stopTest(self, test):
        self.line(test, *self.outcome)
        self.outcome = None
        super().stopTest(test)

    def record(self, test, outcome, reason):
        # Outside a test method it is a class's or module's set-up that failed or was skipped.
        if self.outcome is None:
            self.line(test, outcome, reason)
        # Of several, as with subtests, the first that is not a skip counts.
        elif self.outcome[0] in ("ok", "skip"):
            self.outcome = (outcome, reason)

    def addSkip(self, test, reason):
        self.record(test, "skip", reason)

    def addFailure(self, test, err):
        self.failed(test, "fail", err)

    def addError(self, test, err):
        self.failed(test, "error", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.failed(test, "fail" if issubclass(err[0], test.failureException) else "error", err)

    def addExpectedFailure(self, test, err):
        self.record(test, "expected-failure", err[1])

    def addUnexpectedSuccess(self, test):
        self.record(test, "unexpected-success", "")

    def failed(self, test, outcome, err):
        print(test.id(), self._exc_info_to_string(err, test), sep="\n", file=sys.stderr)
        self.record(test, outcome, f"{err[0].__name__}: {err[1]}")


def keep_stdout_for_ourselves():
    """Tests print, close and replace standard output: our lines go to a copy that they do not know."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)
    return out


def behave_like_the_usual_interpreter():
    """The sandbox's recipe for Python sets these. Tests of the defaults are to find the defaults."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False


def enter_directories_of_its_own():
    """Below the directory that the caller made for this run, and throws away after."""
    os.mkdir("tmp")
    os.environ["TMPDIR"] = os.path.abspath("tmp")
    os.mkdir("here")
    os.chdir("here")


def run_module(name, run_suite):
    """Finds the module's tests in the way of CPython's own runner."""
    module = importlib.import_module("test." + name)
    if hasattr(module, "test_main"):
        # Some modules prepare themselves in a function, and hand their suite to the runner from there.
        support._run_suite = run_suite
        module.test_main()
    else:
        run_suite(unittest.defaultTestLoader.loadTestsFromModule(module))


def leave_out(suite, methods):
    """The same tests without the methods of these names."""
    kept = unittest.TestSuite() if methods else suite
    for test in suite if methods else ():
        if isinstance(test, unittest.TestSuite):
            kept.addTest(leave_out(test, methods))
        elif test.id().rpartition(".")[2] not in methods:
            kept.addTest(test)
    return kept


def main(name, options):
    named = [option.partition("=")[::2] for option in options]
    resources = [value for key, value in named if key == "resource"]
    methods = {value for key, value in named if key == "without"}
    out = keep_stdout_for_ourselves()
    faulthandler.enable(sys.__stderr__)
    behave_like_the_usual_interpreter()
    enter_directories_of_its_own()
    support.use_resources = [*RESOURCES, *resources]
    try:
        run_module(name, lambda suite: leave_out(suite, methods).run(Lines(out)))
    except unittest.SkipTest as reason:
        print("test." + name, "skip", reason, sep="\t", file=out)
    print("end", file=out, flush=True)
    # A test may leave a thread behind, which must not keep the process; all is said.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
