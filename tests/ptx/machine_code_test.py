"""Checks the machine code of attention by warpgroups, in which the assembler may move waits. The softmax must
be computed while a product runs. While the gradient's first products run, the next data must be loaded by
asynchronous copies only, because the code would wait for a plain load.
usage: machine_code_test.py CUOBJDUMP OBJECT OBJECT_OF_GRADIENT"""

import re
import subprocess
import sys


def kernels_of(path):
    code = subprocess.run([sys.argv[1], "-sass", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(kernel.split()[0], kernel) for kernel in re.split(r"Function : ", code)[1:]]


def fault_of_softmax(kernel, allowed):
    """`allowed`: the numbers of exponentials that a thread may compute between the wait for the scores and
    the wait for the other product."""
    order = re.findall(r"\s(MUFU\.EX2|WARPGROUP\.DEPBAR\S*\s+gsb0, 0x\d)", kernel)
    of_scores = [i for i, what in enumerate(order) if what.endswith("0x1")]
    if len(of_scores) != 1:
        return f"{len(of_scores)} waits for scores alone, not one"
    after = order[of_scores[0] + 1 :]
    exponentials = next((i for i, what in enumerate(after) if what != "MUFU.EX2"), len(after))
    if exponentials in allowed:
        return None
    return f"{exponentials} exponentials between the two waits, not {' or '.join(map(str, allowed))}"


def fault_of_forward(kernel):
    # A thread computes two exponentials to rescale the sums of its two rows, and then one for each of its
    # scores: 32 or 64 for a block of 64 or 128 keys.
    return fault_of_softmax(kernel, (34, 66))


def fault_of_gradient(kernel):
    order = re.findall(r"\s(HGMMA|WARPGROUP\.DEPBAR|LDGSTS|LDG|STS|STG)\b", kernel)
    if "HGMMA" not in order:
        return "no products"
    while_they_run = order[order.index("HGMMA") : order.index("WARPGROUP.DEPBAR")]
    if "LDGSTS" not in while_they_run:
        return "no copies between the first products and their wait"
    others = sorted({what for what in while_they_run if what not in ("HGMMA", "LDGSTS")})
    if others:
        return f"{', '.join(others)} between the first products and their wait"
    return fault_of_softmax(kernel, (32,))  # 64 rows of the others, for each size of heads.


failures, count = [], 0
for path, fault_of in ((sys.argv[2], fault_of_forward), (sys.argv[3], fault_of_gradient)):
    kernels = kernels_of(path)
    if not kernels:
        failures.append(f"{path}: no kernels")
    for name, kernel in kernels:
        count += 1
        fault = fault_of(kernel)
        if fault:
            failures.append(f"{name}: {fault}")
print(f"{count} kernels, {len(failures)} faults")
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
