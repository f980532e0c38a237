#!/usr/bin/env python3
"""Prints the cases of a language as JSON, for tests that run them inside.

    cases.py python|javascript|java|java-compile

Cases that go on after a signal or an answer are left out. Contents and input are lists of bytes.
"""
import json
import sys

from cases_java import COMPILE, RUN
from cases_javascript import CASES as JAVASCRIPT
from cases_python import CASES as PYTHON

LANGUAGES = {
    "python": ("main.py", PYTHON),
    "javascript": ("main.js", JAVASCRIPT),
    "java": ("Main.java", RUN),
    "java-compile": ("Main.java", COMPILE),
}


def octets(text):
    return list(text if isinstance(text, bytes) else text.encode())


def main():
    entry, cases = LANGUAGES[sys.argv[1]]
    cases = [case.with_entry(entry) for case in cases if not case.steps]
    json.dump([{
        "name": case.name,
        "files": [[name, octets(text)] for name, text in case.files.items()],
        "args": case.args,
        "stdin": octets(case.stdin),
        "env": case.environment,
        "same_stderr": "stderr" not in case.may_differ,
    } for case in cases], sys.stdout)


if __name__ == "__main__":
    main()
