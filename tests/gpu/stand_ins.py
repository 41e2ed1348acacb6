"""Programs that rehearse.py puts in the place of the real ones. They have the real names, take the real
flags, and write the files that the real ones write. REHEARSED, an environment variable, says how they behave:

    healthy   all is right, and wgmma is fast
    failing   kernels with wgmma end with an error
    hanging   kernels with wgmma never end
    slow      wgmma is slower than mma.sync, and the kernel tests do not end in time
    wrong     wgmma gives wrong values, which repeat

The stand-in of the command lets the real one (REAL_STOWAGE) plan every run with the same flags, for an H100,
before it writes that run's files. So a flag, a preset or a size that the command would refuse on a card fails
here too."""

STOWAGE = """#!{python}
import json, os, subprocess, sys, time
MODE, REAL, TREE = os.environ["REHEARSED"], os.environ["REAL_STOWAGE"], os.environ["REHEARSAL_TREE"]
words = ["h100" if word == "cuda" else word for word in sys.argv[1:]]
if words[0] != "train":
    os.execv(REAL, [REAL, *words])
ONLY_TRAIN = {{"--from-scratch": 0, "--data": 1, "--out": 1, "--eval-batches": 1, "--steps": 1,
              "--schedule": 1, "--save-every": 1, "--tokenizer": 1, "--profile": 1}}
given, plan, i = {{}}, ["plan"], 1
while i < len(words):
    count = ONLY_TRAIN.get(words[i])
    if count is None:
        plan.append(words[i])
        i += 1
    else:
        given[words[i]] = words[i + 1] if count else ""
        i += 1 + count
planned = subprocess.run([REAL, *plan, "--json"], stdout=subprocess.PIPE, text=True)
if planned.returncode != 0:
    sys.exit(planned.returncode)
if not os.path.exists(given["--data"]):
    sys.exit("no file " + given["--data"])
kernels = " ".join(words)
wgmma = "wgmma" in kernels
if wgmma and MODE == "failing":
    sys.exit("CUDA error: an illegal instruction was encountered")
out = given["--out"]
os.makedirs(out)
with open(out + "/plan.json", "w") as file:
    file.write(planned.stdout)
arena = json.loads(planned.stdout)["bytes"]["arena"]
with open(TREE + "/used", "w") as file:
    file.write(f"{{os.getpid()}} {{500 + (arena >> 20) + 640}}")
if wgmma and MODE == "hanging":
    time.sleep(600)
speed = (300e3 if MODE == "slow" else 560e3) if wgmma else 520e3 if "cublaslt" in kernels else 380e3
loss = 5.5 if wgmma and MODE == "wrong" else 5.0
if "--profile" in given:
    events = [dict(name=name, ph="X", tid=1, args=dict(flops=10**12, bytes=10**9, measured_us=2000.0))
              for name in ("linear", "attention", "linear_weight_gradient", "add")]
    with open(given["--profile"], "w") as file:
        json.dump(dict(traceEvents=events), file)
with open(out + "/metrics.jsonl", "w") as file:
    for step in range(int(given["--steps"])):
        row = dict(step=step + 1, loss=loss - step / 100, tokens_per_second=speed)
        print(json.dumps(row), file=file, flush=True)
        if int(given["--steps"]) >= 1000: time.sleep(0.05)
with open(out + "/model.safetensors", "w") as file:
    file.write("wgmma" if wgmma else "other kernels")
"""

# Repeats what the probe on the emulated device printed, and the figures that it wrote.
PROBE = """#!{python}
import os, sys, time
MODE, TREE = os.environ["REHEARSED"], os.environ["REHEARSAL_TREE"]
broken = MODE in ("failing", "hanging", "wrong")
if "once" in sys.argv:
    sys.exit(0)
with open(TREE + "/probe-lines.txt") as file:
    for line in file:
        if not (broken and "wgmma" in line): print(line, end="", flush=True)
with open(TREE + "/probe-figures.tsv") as file, open(sys.argv[sys.argv.index("--figures") + 1], "a") as out:
    for line in file:
        if not (broken and "wgmma" in line): out.write(line)
    # what only a card can say
    out.write("gain of without the fence, up\\t1.01\\nbits without the fence\\t1\\n")
    if broken: out.write("values wgmma\\t0\\n")
why = dict(failing="ended by signal 6", hanging="ran past its time", wrong="wgmma 64x128 is 3.1e-01 off")
if broken: print("FAIL  forward 4096 x 768 -> 2304, wgmma   " + why[MODE])
sys.exit(1 if broken else 0)
"""

# A GoogleTest program.
TESTS = """#!{python}
import fnmatch, os, sys, time
MODE = os.environ["REHEARSED"]
SUITES = {{"Add.": ["Agrees", "Rounds"], "TensorProduct.": ["Agrees"], "ProductTiles.": ["Reads"]}}
chosen, _, but = next(w.split("=", 1)[1] for w in sys.argv if w.startswith("--gtest_filter=")).partition("-")
matches = lambda name, filters: any(fnmatch.fnmatchcase(name, one) for one in filters.split(":"))
bad = False
for suite, tests in SUITES.items():
    names = [n for n in tests if matches(suite + n, chosen or "*") and not (but and matches(suite + n, but))]
    if "--gtest_list_tests" in sys.argv:
        if names: print(suite)
        for name in names: print("  " + name)
        continue
    for name in names:
        print("[ RUN      ]", suite + name, flush=True)
        if MODE == "slow" and suite != "Add.": time.sleep(600)
        fails = MODE == "wrong" and suite == "TensorProduct."
        bad |= fails
        print("[  FAILED  ]" if fails else "[       OK ]", suite + name, "(1 ms)", flush=True)
sys.exit(1 if bad else 0)
"""

# The PyTorch side: the config that it is given must be GPT-2's.
PEER = """import json, sys
with open(sys.argv[2]) as file:
    config = json.load(file)
assert sys.argv[1] == "train" and config["n_layer"] == 12 and config["vocab_size"] == 50257, config
for mode, speed in (("eager, short", 250e3), ("compile", 455e3)):
    found = dict(peer="torch", card="NVIDIA H100 80GB HBM3", mode=mode, micro_batch=64, vocabulary=50304)
    print(json.dumps(found | dict(attention="default", tokens_per_second=speed)), flush=True)
"""

NVIDIA_SMI = """#!{python}
import os, sys
words = " ".join(sys.argv)
if "memory.used" in words:
    used = 500
    try:
        with open(os.environ["REHEARSAL_TREE"] + "/used") as file:
            process, most = file.read().split()
        os.kill(int(process), 0)
        used = int(most)
    except (OSError, ValueError):
        pass
    print(used)
elif "compute_cap" in words and "name" in words: print("NVIDIA H100 80GB HBM3, 9.0")
elif "compute_cap" in words: print("9.0")
else: print("580.159, 81559 MiB")
"""

# Each of the replaced programs' options has a value.
RUN_IT = """#!/bin/sh
while case "$1" in --*) true ;; *) false ;; esac; do shift 2; done
"$@" || exit
echo "    {output}"
"""
# Without this option, ncu would lock the card's clocks.
NCU = """#!/bin/sh
case "$*" in *"--clock-control none"*) ;; *) echo "this would lock the clocks"; exit 9 ;; esac
""" + RUN_IT.removeprefix("#!/bin/sh\n")
