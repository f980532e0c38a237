"""Handlers, their order, chains of causes, groups, and context managers."""

import contextlib
import sys
import traceback


def order():
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error
        finally:
            print("first finally")
    except ValueError as error:
        return f"{error} because of {error.__cause__!r}"
    else:
        return "not reached"
    finally:
        print("second finally")


print(order())


def overrides():
    try:
        return "from try"
    finally:
        return "from finally"


print(overrides())


@contextlib.contextmanager
def door(name):
    print("open", name)
    try:
        yield
    except ArithmeticError as error:
        print("door", name, "holds back", type(error).__name__)
    finally:
        print("close", name)


with door("outer"), door("inner"):
    1 / 0
try:
    raise ExceptionGroup("several", [ValueError(1), TypeError("t"), ValueError(2)])
except* ValueError as group:
    print("values:", [error.args[0] for error in group.exceptions])
except* TypeError as group:
    print("types:", len(group.exceptions))
try:
    {}["missing"]
except LookupError:
    print(traceback.format_exc().splitlines()[-1])
sys.stdout.flush()
print("on stderr", file=sys.stderr)
