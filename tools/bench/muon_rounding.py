"""Measures how far Muon's update with bf16 products differs from the fp64 update, for several ways to
round, and for torch.optim.Muon.

usage: PYTHON_WITH_TORCH muon_rounding.py     one line of a table for each kind of matrix"""

import torch

A, B, C = 3.4445, -4.7750, 2.0315
SHAPES = ((768, 3072), (64, 4096), (512, 4096), (1000, 1000))


def bf16(x):
    return x.bfloat16().float()


def fp16(x):
    """Rounds numbers of at most 1. The scale keeps small ones out of the subnormal range."""
    return (x * 4096).half().float() / 4096


def exact(u):
    x = u.double() / u.double().norm()
    for _ in range(5):
        gram = x @ x.T
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x


def rounded(u, half=bf16, keeps_x=True, a_in_b=False, exact_gram=False):
    """keeps_x: X stays in fp32 and only operands are rounded; a_in_b: X = (a·I + B)·X; exact_gram: b·A
    with an unrounded A."""
    x = half(u / u.norm()) if not keeps_x else u / u.norm()
    for _ in range(5):
        h = half(x)
        gram = h @ h.T
        a = half(gram)
        b = B * (gram if exact_gram else a) + C * a @ a
        if a_in_b:
            x = half(b + A * torch.eye(len(b))) @ h
        else:
            x = A * x + half(b) @ h
        if not keeps_x:
            x = half(x)
    return x


def of_torch(u):
    """The iteration of torch.optim.Muon."""
    x = u.bfloat16()
    x = x / x.norm()
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return x.float()


def matrices(rows, columns):
    noise = torch.randn(rows, columns)
    yield "normally distributed", noise
    yield "rank 32 and 1 % of noise", torch.randn(rows, 32) @ torch.randn(32, columns) / 6 + 1e-2 * noise
    left, right = torch.linalg.qr(torch.randn(rows, rows))[0], torch.linalg.qr(torch.randn(columns, rows))[0]
    yield "singular values from 1 to 1e-6", (left * torch.logspace(0, -6, rows)) @ right.T
    yield "rows from 1 to 1e-4", noise * torch.logspace(0, -4, rows)[:, None]


WAYS = (
    ("ours", rounded),
    ("X in bf16", lambda u: rounded(u, keeps_x=False)),
    ("a·I in B", lambda u: rounded(u, a_in_b=True)),
    ("b·A not rounded", lambda u: rounded(u, exact_gram=True)),
    ("torch", of_torch),
    ("ours in fp16", lambda u: rounded(u, fp16)),
)


def main():
    torch.manual_seed(0)
    print("| matrix | | fp64 | " + " | ".join(name for name, _ in WAYS) + " |")
    print("|---" * (3 + len(WAYS)) + "|")
    for rows, columns in SHAPES:
        for what, u in matrices(rows, columns):
            expected = exact(u)
            row = [f"{rows} × {columns}", what, f"{torch.linalg.svdvals(expected)[-1]:.3f}"]
            for _, way in WAYS:
                x = way(u)
                error = ((x - expected).square().mean() / expected.square().mean()).sqrt()
                row.append(f"{100 * error:.2f}, {torch.linalg.svdvals(x)[-1]:.3f}")
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
