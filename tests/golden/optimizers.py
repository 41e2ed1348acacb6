"""Makes optimizers.h: parameters after steps of torch.optim.SGD, Adafactor and Muon. Run: python
optimizers.py > optimizers.h

Initial parameters and gradients come from an integer formula that the tests repeat, so the file holds only
hyperparameters and results."""

import torch

STEPS, MUON_STEPS = 100, 10
MATRIX, VECTOR = (6, 10), (7,)
SGD = [  # learning rate, momentum, nesterov, weight decay
    (1e-2, 0.9, False, 0.01),
    (1e-2, 0.9, True, 0.01),
    (3e-2, 0.0, False, 0.1),
]
ADAFACTOR = [
    (1e-2, 0.0),
    (1e-2, 0.1),
    (0.3, 0.01),
]  # learning rate (0.3: more than 1 / sqrt(t) from step 12), weight decay
MUON = [
    (6, 10, 0.02, 0.95, 0.1),
    (10, 6, 0.02, 0.95, 0.1),
]  # rows, columns, learning rate, momentum, weight decay


def number(step, element):
    """In [-1, 1), a multiple of 2^-15: exact in fp32."""
    return ((step * 7919 + element * 104729 + 12345) * 2654435761 % 2**32 // 2**16 - 2**15) / 2**15


def numbers(step, shape, first):
    count = torch.Size(shape).numel()
    return torch.tensor([number(step, first + i) for i in range(count)], dtype=torch.float32).reshape(shape)


def trained(shape, steps, make, first=0):
    weight = numbers(0, shape, first).requires_grad_()
    optimizer = make([weight])
    for step in range(1, steps + 1):
        weight.grad = numbers(step, shape, first)
        optimizer.step()
    return weight.detach().flatten().tolist()


def array(values, indent):
    lines = [
        ", ".join(f"{v:.9g}f" if v % 1 else f"{v:.1f}f" for v in values[i : i + 8])
        for i in range(0, len(values), 8)
    ]
    return "{" + (",\n" + " " * (indent + 1)).join(lines) + "}"


def scalar(x):
    return str(x).lower() if isinstance(x, bool) else f"{x:g}"


def case(scalars, *arrays):
    print("    {" + ", ".join(map(scalar, scalars)) + ",")
    print(",\n".join("     " + array(a, 5) for a in arrays) + "},")


print(
    "// Made by optimizers.py with torch",
    torch.__version__.split("+")[0] + ": parameters after `steps` steps.",
)
print("#pragma once\n")
print("namespace stw::golden {\n")
print(f"inline constexpr int matrix_count = {MATRIX[0] * MATRIX[1]}, vector_count = {VECTOR[0]};")
print(f"inline constexpr int steps = {STEPS}, muon_steps = {MUON_STEPS};\n")
print(
    "struct SgdCase { double learning_rate, momentum; bool nesterov; double decay; "
    "float matrix[matrix_count]; };"
)
print("inline constexpr SgdCase sgd_cases[] = {")
for c in SGD:
    rate, momentum, nesterov, decay = c
    case(
        c,
        trained(
            MATRIX,
            STEPS,
            lambda p: torch.optim.SGD(
                p, lr=rate, momentum=momentum, nesterov=nesterov, weight_decay=decay, foreach=False
            ),
        ),
    )
print("};\n")
print(
    "struct AdafactorCase { double learning_rate, decay; float matrix[matrix_count], vector[vector_count]; };"
)
print("inline constexpr AdafactorCase adafactor_cases[] = {")
for c in ADAFACTOR:
    make = lambda p: torch.optim.Adafactor(p, lr=c[0], weight_decay=c[1], foreach=False)
    case(c, trained(MATRIX, STEPS, make), trained(VECTOR, STEPS, make, 1000))
print("};\n")
print("// Iterates in bf16; the learning rate is adjusted to match AdamW's update.")
print(
    "struct MuonCase { int rows, columns; double learning_rate, momentum, decay; "
    "float matrix[matrix_count]; };"
)
print("inline constexpr MuonCase muon_cases[] = {")
for c in MUON:
    rows, columns, rate, momentum, decay = c
    case(
        c,
        trained(
            (rows, columns),
            MUON_STEPS,
            lambda p: torch.optim.Muon(
                p,
                lr=rate,
                momentum=momentum,
                weight_decay=decay,
                nesterov=True,
                adjust_lr_fn="match_rms_adamw",
            ),
        ),
    )
print("};\n\n}  // namespace stw::golden")
