"""Runs each suite of a GoogleTest program in a process of its own, so that a broken device or a hang
affects only that suite."""

import concurrent.futures
import os
import re
import time

import runs
from runs import CUT, OutOfTime, call, left

AT_ONCE = max(1, min(6, (os.cpu_count() or 1) // 2))  # suites that run at once


def tests_of(program, chosen="*"):
    """The names of the suites and of their tests, and the program's output if there are no tests."""
    _, text, _ = call([program, "--gtest_list_tests", "--gtest_filter=" + chosen], 60)
    suites, names = {}, None
    for line in text.splitlines():
        word = line.split("#")[0].rstrip()
        if re.fullmatch(r"\S+\.", word):
            names = suites.setdefault(word, [])
        elif re.fullmatch(r"  \S+", word) and names is not None:
            names.append(word.strip())
    return suites, "" if suites else text


def ended_in(word, text):
    return set(re.findall(r"^\[ +" + word + r" +\] (\S+?)(?:, where .*)? \(\d+ ms\)$", text, re.M))


class Outcome:
    def __init__(self):
        # words: output of failed runs
        self.passed, self.failed, self.skipped, self.words = 0, [], [], []
        self.left_out = []  # suites that the time limit left out or cut off
        self.gave_up = False  # the remaining tests were not tried

    def add(self, other):
        self.passed += other.passed
        for name in ("failed", "skipped", "left_out", "words"):
            getattr(self, name).extend(getattr(other, name))

    def __str__(self):
        left = f", {len(self.left_out)} suites left out or cut off for want of time" if self.left_out else ""
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return (
            f"{self.passed} passed, {len(self.failed)} failed{skipped}{left}"
            + "".join("\n        " + name for name in self.failed + self.left_out)
            + "".join("\n        skipped: " + name for name in self.skipped)
            + ("\n        the others were not tried" if self.gave_up else "")
        )

    def is_good(self):
        return self.passed > 0 and not self.failed and not self.left_out


def run_suite(program, suite, names, suite_seconds, test_seconds, end):
    """Runs a suite. If it fails, each test that did not pass runs a second time, alone. So every failed
    test is named, including those that fail only together with others."""
    outcome = Outcome()
    tests = [suite + name for name in names]

    def run(chosen, seconds):
        try:
            code, text, _ = call(
                [program, "--gtest_filter=" + ":".join(chosen)], min(seconds, end - time.monotonic())
            )
        except OutOfTime:
            code, text = CUT, ""
        passed, skipped = ended_in("OK", text) & set(chosen), ended_in("SKIPPED", text) & set(chosen)
        outcome.passed += len(passed)
        outcome.skipped += sorted(skipped)
        failed = ended_in("FAILED", text) & set(chosen)
        # The end of all time ended it, not its own limit: only tests that have failed are failures.
        is_cut = code == CUT and time.monotonic() >= end - 0.5
        missing = [test for test in chosen if test not in passed | skipped]
        if is_cut:
            missing = [test for test in missing if test in failed]
            outcome.left_out += [suite + "* (cut off)"] if not outcome.left_out else []
        if missing or (code != 0 and not is_cut):
            outcome.words.append(text)
        return 0 if is_cut else code, failed, missing

    if time.monotonic() > end:
        outcome.left_out.append(suite + "*")
        return outcome
    begin = time.monotonic()
    code, failed_together, missing = run(tests, suite_seconds)
    for test in missing:
        if time.monotonic() > end:
            outcome.failed.append(test + " (with its suite; not tried alone)")
            continue
        code_alone, _, missing_alone = run([test], test_seconds)
        if code_alone != 0 or missing_alone:
            outcome.failed.append(test)
    if (code != 0 or missing) and not outcome.failed:  # each passes alone
        outcome.failed += [
            test + " (with its suite; it passes alone)" for test in sorted(failed_together)
        ] or [suite + "* (together)"]
    print(
        f"      {suite}* {outcome.passed} of {len(tests)} passed in {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    return outcome


def run_isolated(program, chosen="*", suite_seconds=150, test_seconds=60, all_seconds=280, at_once=AT_ONCE):
    """Runs several suites at once. The results are in the program's order."""
    outcome, end = Outcome(), time.monotonic() + min(all_seconds, left() - min(20, runs.SECONDS / 20))
    suites, output = tests_of(program, chosen)
    if not suites:
        outcome.words.append(output)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for found in pool.map(
            lambda suite: run_suite(program, suite[0], suite[1], suite_seconds, test_seconds, end),
            suites.items(),
        ):
            outcome.add(found)
    return outcome


def run_if_any_runs(program, first, chosen="*"):
    """Runs the tests of `first` before all others. If no test passes, the others would fail for the
    same reason, each twice, and take minutes."""
    outcome = run_isolated(program, first)
    if outcome.is_good():
        return run_isolated(program, chosen)
    outcome.gave_up = True
    return outcome
