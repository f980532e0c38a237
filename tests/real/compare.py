"""Compares what run-module.py printed bare and inside, and holds the differences against the file
that explains them.

    python3 compare.py RESULTS DIFFERENCES [--list-unexplained] MODULE...

RESULTS holds the directories `bare` and `inside` with one file for each module.
"""

import os
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

FAILED = ("fail", "error", "unfinished", "unexpected-success")
ABSENT = ("absent", "the test was not run at all")
UNFINISHED = ("unfinished", "the process ended, or its time was up")


@dataclass
class Difference:
    """One test method with two outcomes."""

    module: str
    test: str
    bare: str
    inside: str
    reason: str


class Explanation:
    """One pattern of test names in the file of differences, with the outcomes it speaks of."""

    def __init__(self, cause, pattern, outcomes):
        self.why = cause["why"]
        self.sometimes = "only_where" in cause
        self.pattern = pattern
        self.bare = outcomes["bare"]
        self.inside = outcomes["inside"]
        self.expression = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        self.used = 0

    def explains(self, difference):
        return (
            (self.bare, self.inside) == (difference.bare, difference.inside)
            and self.expression.fullmatch(difference.test) is not None
        )

    def is_stale(self, modules):
        """Whether the difference did not occur, though its module was run and it occurs everywhere."""
        ran = any(self.pattern.startswith(f"test.{module}.") for module in modules)
        return ran and not self.used and not self.sometimes


def read_outcomes(path, module):
    """From a test's name to its outcome and reason."""
    outcomes = {}
    times_started = Counter()
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for line in lines:
        if line.count("\t") != 2:
            continue  # The end, or the beginning of a line whose writer was killed.
        name, outcome, reason = line.split("\t")
        if outcome == "started":
            times_started[name] += 1
            outcome, reason = UNFINISHED
        # A few suites hold one test more than once.
        again = f" #{times_started[name]}" if times_started[name] > 1 else ""
        outcomes[name + again] = (outcome, reason)
    if "end" not in lines:
        outcomes[f"test.{module} as a whole"] = UNFINISHED
    return outcomes


def read_explanations(path):
    causes = tomllib.loads(path.read_text())["cause"]
    user = "root" if os.geteuid() == 0 else "ordinary user"
    return [
        Explanation(cause, pattern, outcomes)
        for cause in causes
        if cause.get("only_as", user) == user
        for pattern, outcomes in cause["tests"].items()
    ]


def find_differences(module, bare, inside):
    for test in sorted(bare.keys() | inside.keys()):
        outside, _ = bare.get(test, ABSENT)
        within, reason = inside.get(test, ABSENT)
        if outside != within:
            yield Difference(module, test, outside, within, reason)


class Comparison:
    """All modules of a run."""

    def __init__(self, results, explanations, modules):
        self.explanations = explanations
        self.modules = modules
        self.rows = []
        self.bare_outcomes = Counter()
        self.explained = []
        self.unexplained = []
        self.broken = []
        for module in modules:
            self.add(module, results)
        self.stale = [one for one in explanations if one.is_stale(modules)]

    def add(self, module, results):
        bare = read_outcomes(results / "bare" / module, module)
        inside = read_outcomes(results / "inside" / module, module)
        # A test that fails outside too says nothing about the sandbox: it does not belong in the list.
        self.broken += [(module, test, *bare[test]) for test in bare if bare[test][0] in FAILED]
        self.bare_outcomes.update(outcome for outcome, _ in bare.values())
        differences = list(find_differences(module, bare, inside))
        for difference in differences:
            explanation = next((one for one in self.explanations if one.explains(difference)), None)
            if explanation:
                explanation.used += 1
            (self.explained if explanation else self.unexplained).append(difference)
        tests = len(bare.keys() | inside.keys())
        self.rows.append((module, tests, tests - len(differences), len(differences)))

    def is_good(self):
        return not (self.unexplained or self.stale or self.broken)

    def modules_to_run_again(self):
        wanting = {one.module for one in self.unexplained} | {module for module, *_ in self.broken}
        return [module for module in self.modules if module in wanting]

    def print(self):
        print(f"{'module':36}{'tests':>7}{'same':>7}{'different':>11}")
        for module, tests, same, different in self.rows:
            print(f"{module:36}{tests:7}{same:7}{different or '-':>11}")
        self.print_explained()
        for one in self.unexplained:
            print(f"UNEXPLAINED {one.test}: {one.bare} bare, {one.inside} inside: {one.reason[:300]}")
        for one in self.stale:
            print(f"STALE {one.pattern}: no longer {one.bare} bare and {one.inside} inside")
        for _, test, outcome, reason in self.broken:
            print(f"BROKEN {test}: {outcome} bare: {reason[:300]}")
        self.print_totals()

    def print_explained(self):
        counts = Counter()
        for one in self.explanations:
            counts[one.why] += one.used
        for why, count in counts.items():
            if count:
                print(f"\n{count} different: {' '.join(why.split())}")
        print()

    def print_totals(self):
        tests = sum(row[1] for row in self.rows)
        same = sum(row[2] for row in self.rows)
        print(
            f"{len(self.rows)} modules, {tests} tests ({self.bare_outcomes['ok']} pass bare, "
            f"{self.bare_outcomes['skip']} skip): {same} same, {tests - same} different; "
            f"{len(self.explained)} explained, {len(self.unexplained)} unexplained, "
            f"{len(self.stale)} stale, {len(self.broken)} broken bare"
        )


def main(results, differences, *rest):
    only_list = "--list-unexplained" in rest
    modules = [word for word in rest if not word.startswith("--")]
    comparison = Comparison(Path(results), read_explanations(Path(differences)), modules)
    if only_list:
        print(*comparison.modules_to_run_again(), sep="\n", end="")
        return 0
    comparison.print()
    return 0 if comparison.is_good() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
