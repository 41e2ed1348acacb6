"""Runs the compiler on kernels with wgmma. Fails if ptxas reports (C7500 to C7599) that it serialises
products or adds waits for them. Neither changes a bit, but the products lose their speed."""

import re
import subprocess
import sys

run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
sys.stderr.write(run.stdout)
sys.exit(run.returncode or (1 if re.search(r"\(C75\d\d\)", run.stdout) else 0))
