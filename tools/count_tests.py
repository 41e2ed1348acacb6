"""Counts the cases in the log of a `meson test`: those of GoogleTest, unittest, Cargo and Go. Any other
program counts as one case.

usage: count_tests.py TESTLOG.json STATUS COUNTS   appends "passed failed skipped" to COUNTS
"""

import json
import re
import sys

GOOGLE = {"OK": 0, "FAILED": 1, "SKIPPED": 2}


def count_google(text):
    """Every case ends with one line that has its time. The summary repeats some lines without the time."""
    counts = [0, 0, 0]
    for word in re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] \S.*\(\d+ ms\)$", text, re.M):
        counts[GOOGLE[word]] += 1
    return counts


def count_unittest(text):
    total = re.findall(r"^Ran (\d+) tests? in ", text, re.M)
    if not total:
        return [0, 0, 0]
    last = re.findall(r"^(?:OK|FAILED)(?: \((.*)\))?$", text, re.M)
    parts = dict(part.split("=") for part in last[-1].split(", ")) if last and last[-1] else {}
    failed = sum(int(parts.get(name, 0)) for name in ("failures", "errors", "unexpected successes"))
    skipped = int(parts.get("skipped", 0))
    return [max(0, int(total[-1]) - failed - skipped), failed, skipped]


def count_cargo(text):
    """Cargo prints a line for each program of tests."""
    totals = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", text, re.M)
    return [sum(map(int, numbers)) for numbers in zip(*totals)] or [0, 0, 0]


def count_go(text):
    """Go prints a line for each case. The lines of cases inside of others are indented."""
    found = re.findall(r"^--- (PASS|FAIL|SKIP): \S+ \(", text, re.M)
    return [found.count(word) for word in ("PASS", "FAIL", "SKIP")]


def count_program(entry):
    text = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    counts = [
        sum(numbers)
        for numbers in zip(*(count(text) for count in (count_google, count_unittest, count_cargo, count_go)))
    ]
    result = entry["result"]
    if result in ("SKIP", "EXPECTEDFAIL"):
        return counts if sum(counts) else [0, 0, 1]
    if result == "OK":
        return counts if sum(counts) else [1, 0, 0]
    # A program that was killed between its cases has failed all the same.
    return counts if counts[1] else [counts[0], 1, counts[2]]


def main():
    log, status, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    counts = [0, 0, 0]
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            for line in file:
                counts = [a + b for a, b in zip(counts, count_program(json.loads(line)))]
    except OSError as error:
        print(f"no log of the tests: {error}")
    if status != 0 and counts[1] == 0:
        counts[1] = 1
    print("{} passed, {} failed, {} skipped in this build".format(*counts))
    with open(out, "a", encoding="utf-8") as file:
        file.write("{} {} {}\n".format(*counts))


if __name__ == "__main__":
    main()
