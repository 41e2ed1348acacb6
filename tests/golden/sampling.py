"""Prints sampling.h: the tokens that transformers leaves for sampling, and their probabilities, for
settings of temperature, top-k and top-p. Needs torch and transformers: python3 sampling.py > sampling.h"""

import random

import torch
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

TOKENS = 40


def logits_of(draw, spread):
    numbers = [round(draw.gauss(0, spread), 3) for _ in range(TOKENS)]
    assert len(set(numbers)) == TOKENS  # transformers does not define the order of equal logits
    return numbers


def left_of(logits, temperature, top_k, top_p):
    steps = LogitsProcessorList([TemperatureLogitsWarper(temperature)])  # the order of generate()
    if top_k:
        steps.append(TopKLogitsWarper(top_k))
    if top_p:
        steps.append(TopPLogitsWarper(top_p))
    scores = steps(torch.zeros(1, 1, dtype=torch.long), torch.tensor([logits], dtype=torch.float64))[0]
    chances = scores.softmax(0)
    tokens = sorted((i for i in range(TOKENS) if scores[i] > -float("inf")), key=lambda i: -logits[i])
    return [(token, chances[token].item()) for token in tokens]


def main():
    draw = random.Random(3)
    settings = (
        (0, 0),
        (0, 0.1),
        (0, 0.5),
        (0, 0.9),
        (0, 0.99),
        (5, 0.5),
        (5, 0.9),
        (20, 0.9),
        (1, 0.9),
        (100, 0.7),
    )
    logits = [logits_of(draw, spread) for spread in (0.5, 2)]
    print(
        "// The tokens that transformers 5.24 leaves to draw from: tests/golden/sampling.py.\n"
        "#pragma once\n#include <cstdint>\n#include <utility>\n#include <vector>\n"
    )
    print("namespace stw::golden {\n")
    print("inline const std::vector<float> sampling_logits[] = {")
    for numbers in logits:
        print(f"    {{{', '.join(f'{x:.3f}f' for x in numbers)}}},")
    print(
        "};\n\nstruct SamplingCase {\n  int logits;\n  double temperature;\n  uint32_t top_k;\n"
        "  double top_p;\n"
        "  std::vector<std::pair<int32_t, double>> left;   // tokens and their probabilities, "
        "the most probable first\n};\n"
    )
    print("inline const SamplingCase sampling_cases[] = {")
    for i, numbers in enumerate(logits):
        for temperature in (0.3, 1.0, 2.5):
            for top_k, top_p in settings:
                left = ", ".join(
                    f"{{{token}, {chance:.9g}}}"
                    for token, chance in left_of(numbers, temperature, top_k, top_p)
                )
                print(f"    {{{i}, {temperature}, {top_k}, {top_p}, {{{left}}}}},")
    print("};\n\n}  // namespace stw::golden")


if __name__ == "__main__":
    main()
