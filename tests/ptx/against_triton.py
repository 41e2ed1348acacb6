"""Runs kernels of another compiler in the interpreter of PTX. Triton's products and attention are right on
real devices, so they must be right here too. This checks how the interpreter reads the PTX manual (places of
fragments, swizzled matrices and descriptors; what waits for what) against an independent reading that
hardware has confirmed.

    PYTHON_WITH_TRITON tests/ptx/against_triton.py build/tests/ptx/ptx_run

Torch's wheel brings Triton; no GPU is needed. Prints a line for each kernel and ends with 1 if one is
wrong."""

import argparse
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(
    a_at,
    b_at,
    c_at,
    M,
    N,
    K,
    a_step,
    b_step,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    A_TRANSPOSED: tl.constexpr,
    B_TRANSPOSED: tl.constexpr,
):
    m = tl.program_id(0) // (N // BN) * BM + tl.arange(0, BM)
    n = tl.program_id(0) % (N // BN) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_at + (m[:, None] + k[None, :] * a_step if A_TRANSPOSED else m[:, None] * a_step + k[None, :])
    b = b_at + (k[:, None] + n[None, :] * b_step if B_TRANSPOSED else k[:, None] * b_step + n[None, :])
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += BK * a_step if A_TRANSPOSED else BK
        b += BK if B_TRANSPOSED else BK * b_step
    tl.store(c_at + m[:, None] * N + n[None, :], sums)


@triton.jit
def attention(q_at, k_at, v_at, o_at, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Causal, one head; scores in units of log 2."""
    first = tl.program_id(0) * BM
    m, n, d = first + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_at + m[:, None] * D + d[None, :])
    k = k_at + n[None, :] * D + d[:, None]
    v = v_at + n[:, None] * D + d[None, :]
    largest, total, sums = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    for j in range(0, first + BM, BN):
        s = tl.where(m[:, None] >= (j + n)[None, :], tl.dot(q, tl.load(k)) * scale, -1e30)
        now = tl.maximum(largest, tl.max(s, 1))
        p, kept = tl.exp2(s - now[:, None]), tl.exp2(largest - now)
        total = total * kept + tl.sum(p, 1)
        sums = tl.dot(p.to(q_at.dtype.element_ty), tl.load(v), sums * kept[:, None])
        largest = now
        k += BN * D
        v += BN * D
    tl.store(o_at + m[:, None] * D + d[None, :], sums / total[:, None])


@triton.jit
def value_gradient(q_at, k_at, do_at, dv_at, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """dV of attention without a mask and without division by the softmax's sum: the transpose of exp2(scale q
    k'), times dO."""
    n, m, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BM), tl.arange(0, D)
    k = tl.load(k_at + n[None, :] * D + d[:, None])
    sums = tl.zeros((BN, D), tl.float32)
    for i in range(0, T, BM):
        q = tl.load(q_at + (i + m)[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(q, k) * scale).to(q_at.dtype.element_ty)
        sums = tl.dot(tl.trans(p), tl.load(do_at + (i + m)[:, None] * D + d[None, :]), sums)
    tl.store(dv_at + n[:, None] * D + d[None, :], sums)


class Machine:
    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)

    def run(self, kernel, constants, capability, warps, stages, blocks, arguments):
        """Arguments: (Triton's type, array or number); arrays are changed in place."""
        names = [name for name in kernel.arg_names if name not in constants]
        signature = {name: kind for name, (kind, _) in zip(names, arguments)} | {
            name: "constexpr" for name in constants
        }
        attributes = {
            (i,): [["tt.divisibility", 16]] for i, (kind, _) in enumerate(arguments) if kind != "fp32"
        }
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
        compiled = triton.compile(
            source,
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": warps, "num_stages": stages},
        )
        text = self.folder / "kernel.ptx"
        text.write_text(compiled.asm["ptx"])
        words = []
        for name, (_, value) in zip(names, arguments):
            if isinstance(value, numpy.ndarray):
                words.append(str(self.folder / name))
                value.tofile(words[-1])
            else:
                words.append(str(value))
        done = subprocess.run(
            [
                self.program,
                text,
                kernel.__name__,
                str(blocks),
                str(32 * warps),
                str(compiled.metadata.shared),
                *words,
                "0",
                "0",
            ],
            capture_output=True,
            text=True,
        )  # two pointers that Triton adds
        for word, (_, value) in zip(words, arguments):
            if isinstance(value, numpy.ndarray):
                value[:] = numpy.fromfile(word, value.dtype).reshape(value.shape)
        return done.stdout.strip() if done.returncode == 0 else "died: " + done.stderr.strip()


def bits(values, kind):
    """`values` as 16-bit numbers. bf16 truncates, so the values must be exact in it."""
    values = numpy.ascontiguousarray(values, numpy.float32)
    return (
        values.astype(numpy.float16).view(numpy.uint16)
        if kind == "fp16"
        else (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    )


def products(machine, random):
    m, n, k = 256, 512, 320
    a, b = random.integers(-8, 9, (m, k)), random.integers(-8, 9, (k, n))
    for capability, a_transposed, b_transposed, (bm, bn, warps), kind in itertools.product(
        (90, 80),
        (False, True),
        (False, True),
        ((128, 128, 4), (128, 256, 8), (64, 128, 4), (64, 64, 4)),
        ("bf16", "fp16"),
    ):
        c = numpy.full((m, n), numpy.nan, numpy.float32)
        printed = machine.run(
            product,
            {"BM": bm, "BN": bn, "BK": 64, "A_TRANSPOSED": a_transposed, "B_TRANSPOSED": b_transposed},
            capability,
            warps,
            3,
            m // bm * (n // bn),
            [
                ("*" + kind, bits(a.T if a_transposed else a, kind)),
                ("*" + kind, bits(b.T if b_transposed else b, kind)),
                ("*fp32", c),
                ("i32", m),
                ("i32", n),
                ("i32", k),
                ("i32", m if a_transposed else k),
                ("i32", k if b_transposed else n),
            ],
        )
        name = (
            f"product {bm} x {bn}, {'transposed' if a_transposed else 'straight'} by "
            f"{'transposed' if b_transposed else 'straight'}"
        )
        yield capability, kind, name, numpy.abs(c - a @ b).max(), 0, printed  # whole numbers: exact


def attentions(machine, random):
    length, scale = 256, 0.125
    for capability, d, (bm, bn, warps), kind in itertools.product(
        (90, 80), (64, 128), ((128, 128, 8), (64, 64, 4), (128, 64, 4)), ("bf16", "fp16")
    ):
        q, k, v = (random.integers(-32, 33, (length, d)) / 16 for _ in range(3))
        weights = numpy.where(numpy.tril(numpy.ones((length, length))) > 0, numpy.exp2(q @ k.T * scale), 0)
        o = numpy.full((length, d), numpy.nan, numpy.float32)
        shape = {"D": d, "BM": bm, "BN": bn}
        inputs = [("*" + kind, bits(x, kind)) for x in (q, k, v)]
        printed = machine.run(
            attention, shape, capability, warps, 2, length // bm, [*inputs, ("*fp32", o), ("fp32", scale)]
        )
        allowed = (
            8e-3 if kind == "bf16" else 1e-3
        )  # weights are rounded to 16 bits, by half an ulp at most, and multiplied by |v| <= 2
        yield (
            capability,
            kind,
            f"attention {bm} x {bn}, heads of {d}",
            numpy.abs(o - weights / weights.sum(1, keepdims=True) @ v).max(),
            allowed,
            printed,
        )
        scale_of_gradient = scale / 32  # exp2 stays below 2 ** 4
        weights = numpy.exp2(q @ k.T * scale_of_gradient)
        dv = numpy.full((length, d), numpy.nan, numpy.float32)
        printed = machine.run(
            value_gradient,
            shape,
            capability,
            warps,
            1 if capability == 80 and d == 128 else 2,
            length // bn,
            [*inputs, ("*fp32", dv), ("i32", length), ("fp32", scale_of_gradient)],
        )
        allowed *= numpy.abs(weights.T).sum(1).max() / 2
        yield (
            capability,
            kind,
            f"gradient of values {bm} x {bn}, heads of {d}",
            numpy.abs(dv - weights.T @ v).max(),
            allowed,
            printed,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("ptx_run")
    options = parser.parse_args()
    wrong = total = 0
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(options.ptx_run, folder)
        for cases in (products, attentions):
            for capability, kind, name, error, allowed, printed in cases(
                machine, numpy.random.default_rng(1)
            ):
                right = bool(error <= allowed)
                total, wrong = total + 1, wrong + (not right)
                print(
                    f"sm_{capability} {kind} {name}: {'' if right else 'WRONG, '}largest error "
                    f"{error:.2g} of {allowed:.2g}; {printed}",
                    flush=True,
                )
    print(f"{total - wrong} of {total} right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
