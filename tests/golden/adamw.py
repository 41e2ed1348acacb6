"""Makes adamw.h: weights of torch.optim.AdamW after 100 steps. Run: python adamw.py > adamw.h

Initial weights and gradients come from an integer formula that the test repeats, so the file holds only
hyperparameters and results."""

import torch

COUNT, STEPS = 12, 100
CASES = [  # learning rate, beta1, beta2, epsilon, weight decay
    (1e-3, 0.9, 0.999, 1e-8, 0.01),
    (3e-4, 0.9, 0.95, 1e-8, 0.1),
    (1e-2, 0.8, 0.99, 1e-6, 0.0),
    (1e-3, 0.95, 0.98, 1e-3, 0.5),
]


def number(step, element):
    """In [-1, 1), a multiple of 2^-15: exact in fp32."""
    return ((step * 7919 + element * 104729 + 12345) * 2654435761 % 2**32 // 2**16 - 2**15) / 2**15


def trained(case):
    rate, beta1, beta2, epsilon, decay = case
    weight = torch.tensor([number(0, i) for i in range(COUNT)], dtype=torch.float32, requires_grad=True)
    optimizer = torch.optim.AdamW(
        [weight], lr=rate, betas=(beta1, beta2), eps=epsilon, weight_decay=decay, foreach=False
    )
    for step in range(1, STEPS + 1):
        weight.grad = torch.tensor([number(step, i) for i in range(COUNT)], dtype=torch.float32)
        optimizer.step()
    return weight.detach().tolist()


print(
    "// Made by adamw.py with torch", torch.__version__.split("+")[0] + ": weights after 100 steps of AdamW."
)
print("#pragma once\n")
print("namespace stw::golden {\n")
print(f"inline constexpr int adamw_count = {COUNT}, adamw_steps = {STEPS};")
print("struct AdamWCase { double learning_rate, beta1, beta2, epsilon, decay; float weight[adamw_count]; };")
print("inline constexpr AdamWCase adamw_cases[] = {")
for case in CASES:
    weights = [f"{w:.9g}f" for w in trained(case)]
    print("    {" + ", ".join(f"{x:g}" for x in case) + ",")
    print("     {" + ", ".join(weights[:6]) + ",")
    print("      " + ", ".join(weights[6:]) + "}},")
print("};\n\n}  // namespace stw::golden")
