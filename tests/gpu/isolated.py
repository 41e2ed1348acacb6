"""A GoogleTest program's tests, a process for each suite: what one of them does to the device, or that it never ends, is no other's."""
import re
import time

from runs import call


def tests_of(program, chosen="*"):
    """The names of its suites, with their tests'."""
    _, text, _ = call([program, "--gtest_list_tests", "--gtest_filter=" + chosen], 60)
    suites, names = {}, None
    for line in text.splitlines():
        word = line.split("#")[0].rstrip()
        if re.fullmatch(r"\S+\.", word):
            names = suites.setdefault(word, [])
        elif re.fullmatch(r"  \S+", word) and names is not None:
            names.append(word.strip())
    return suites


def passed_in(text):
    return re.findall(r"^\[ +OK \] (\S+?)(?:, where .*)? \(\d+ ms\)$", text, re.M)


class Outcome:
    def __init__(self):
        self.passed, self.failed, self.left_out, self.last_words = 0, [], [], ""

    def __str__(self):
        left = f", {len(self.left_out)} suites left out for want of time" if self.left_out else ""
        return f"{self.passed} passed, {len(self.failed)} failed{left}" + "".join("\n        " + name for name in self.failed + self.left_out)

    def is_good(self):
        return self.passed > 0 and not self.failed and not self.left_out


def run_isolated(program, chosen="*", suite_seconds=150, test_seconds=60, all_seconds=280):
    """Where a suite fails, each of its tests that did not pass is tried again by itself: so all that fail have names."""
    outcome, end = Outcome(), time.monotonic() + all_seconds
    for suite, names in tests_of(program, chosen).items():
        if time.monotonic() > end:
            outcome.left_out.append(suite + "*")
            continue
        tests = [suite + name for name in names]
        code, text, _ = call([program, "--gtest_filter=" + ":".join(tests)], suite_seconds)
        passed = set(passed_in(text)) & set(tests)
        outcome.passed += len(passed)
        alone = [] if code == 0 else [test for test in tests if test not in passed]
        for test in alone:
            if time.monotonic() > end:
                outcome.failed.append(test + " (with its suite; not tried alone)")
                continue
            code, said, _ = call([program, "--gtest_filter=" + test], test_seconds)
            outcome.passed += code == 0
            if code != 0:
                outcome.failed.append(test)
                outcome.last_words = outcome.last_words or said
        if code != 0 and not alone:   # it passed them all, and then failed
            outcome.failed.append(suite + "*")
            outcome.last_words = outcome.last_words or text
    return outcome
