"""Makes preferences.h: losses and gradients of pairs of documents, from PyTorch's logsigmoid and autograd
in fp64. Run: python preferences.py > preferences.h

The losses are written as in TRL (1.16: DPOTrainer, and its trainers of CPO and ORPO). The tokens' losses
and references come from an integer formula that the test repeats, so the file holds only settings and
results."""

import torch
import torch.nn.functional as F

PROMPT = 2  # leading tokens of each document, which have no target
DOCUMENTS = [7, 5, 4, 9, 6, 6]  # tokens; alternately chosen and rejected, end to end
CASES = [  # kind, beta, margin, smoothing, answer share
    ("dpo", 0.1, 0, 0, 0),
    ("dpo", 0.5, 0, 0.2, 0.3),
    ("ipo", 0.1, 0, 0, 0),
    ("ipo", 0.7, 0, 0, 0.2),
    ("simpo", 2.0, 1.0, 0, 0),
    ("simpo", 2.5, 0.3, 0.1, 0.5),
    ("orpo", 0.1, 0, 0, 0),
    ("orpo", 1.5, 0, 0, 0.4),
]


def number(index, seed):
    """In (0, 4), a multiple of 2^-12: exact in fp32."""
    return ((index * 7919 + seed * 104729 + 12345) * 2654435761 % 2**32 // 2**18 + 1) / 2**12


def loss_of(case, losses, reference, targets):
    kind, beta, margin, smoothing, share = case
    log_probabilities, total, begin = -losses, 0, 0
    for pair in range(0, len(DOCUMENTS), 2):
        sums, references, counts = [], [], []
        for length in DOCUMENTS[pair : pair + 2]:
            rows = slice(begin, begin + length)
            sums.append((log_probabilities[rows] * targets[rows]).sum())
            references.append((reference[rows] * targets[rows]).sum())
            counts.append(targets[rows].sum())
            begin += length
        chosen, rejected = (s / n for s, n in zip(sums, counts))

        def either_way(logits):
            return -F.logsigmoid(logits) * (1 - smoothing) - F.logsigmoid(-logits) * smoothing

        if kind == "dpo":
            loss = either_way(beta * ((sums[0] - references[0]) - (sums[1] - references[1])))
        elif kind == "ipo":
            loss = (
                (sums[0] - references[0]) / counts[0] - (sums[1] - references[1]) / counts[1] - 1 / (2 * beta)
            ) ** 2
        elif kind == "simpo":
            loss = either_way(beta * (chosen - rejected - margin / beta))
        else:
            odds = (chosen - rejected) - (torch.log1p(-torch.exp(chosen)) - torch.log1p(-torch.exp(rejected)))
            loss = -chosen - beta * F.logsigmoid(odds)
        total = total + loss - share * chosen
    return total


rows = sum(DOCUMENTS)
targets = torch.cat(
    [
        torch.tensor([0.0] * (PROMPT - 1) + [1.0] * (length - PROMPT) + [0.0], dtype=torch.float64)
        for length in DOCUMENTS
    ]
)
reference = torch.tensor([-number(i, 2) for i in range(rows)], dtype=torch.float64)
print(
    "// Made by preferences.py with torch",
    torch.__version__.split("+")[0] + ": losses of pairs, and their derivatives by the tokens' losses.",
)
print("#pragma once\n\nnamespace stw::golden {\n")
print(
    f"inline constexpr int preference_prompt = {PROMPT}, "
    f"preference_documents[] = {{{', '.join(map(str, DOCUMENTS))}}}, preference_rows = {rows};"
)
print(
    "struct PreferenceCase { const char* kind; double beta, margin, smoothing, answer_share, loss; "
    "double weight[preference_rows]; };"
)
print("inline constexpr PreferenceCase preference_cases[] = {")
for case in CASES:
    losses = torch.tensor([number(i, 1) for i in range(rows)], dtype=torch.float64, requires_grad=True)
    loss = loss_of(case, losses, reference, targets)
    loss.backward()
    numbers = [f"{x:.12g}" for x in losses.grad.tolist()]
    print(f'    {{"{case[0]}", ' + ", ".join(f"{x:g}" for x in case[1:]) + f", {loss.item():.12g},")
    lines = [", ".join(numbers[i : i + 8]) for i in range(0, rows, 8)]
    print("     {" + ",\n      ".join(lines) + "}},")
print("};\n\n}  // namespace stw::golden")
