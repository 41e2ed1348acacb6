"""That the softmax of attention by warpgroups is computed while products run, in the machine code, where the assembler may move waits.
usage: machine_code_test.py CUOBJDUMP OBJECT"""
import re
import subprocess
import sys

code = subprocess.run([sys.argv[1], '-sass', sys.argv[2]], check=True, stdout=subprocess.PIPE, text=True).stdout
kernels = re.split(r'Function : ', code)[1:]
failures = []
for kernel in kernels:
    name = kernel.split()[0]
    order = re.findall(r'\s(MUFU\.EX2|WARPGROUP\.DEPBAR\S*\s+gsb0, 0x\d)', kernel)
    of_scores = [i for i, what in enumerate(order) if what.endswith('0x1')]
    if len(of_scores) != 1:
        failures.append(f'{name}: {len(of_scores)} waits for scores alone, not one')
        continue
    behind = order[of_scores[0] + 1:]
    exponentials = next((i for i, what in enumerate(behind) if what != 'MUFU.EX2'), len(behind))
    # Of a block of 64 keys or 128: a thread's scores, and two rows' sums before.
    if exponentials not in (34, 66):
        failures.append(f'{name}: {exponentials} exponentials between the two waits, not 34 or 66')
print(f'{len(kernels) - len(failures)} of {len(kernels)} kernels compute the softmax while products run')
for failure in failures:
    print(failure)
if not kernels:
    print('no kernels')
sys.exit(1 if failures or not kernels else 0)
