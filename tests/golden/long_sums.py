"""Measures the error of PyTorch's fp32 sums over many terms and writes long_sums.h.

usage: long_sums.py > long_sums.h     (torch 2.15 with MKL, one thread)

An error is max|difference| / max|reference| against fp64 over the same fp32 numbers, the mean of five
draws. The shapes are as narrow as those of the test that compares the kernels with these figures
(tests/kernels/long_sums_test.cpp)."""

import sys

import torch

TOKENS, VOCABULARIES, DRAWS = (16384, 131072), (50257, 151936), 5
INPUTS, FEATURES, ROWS = 64, 64, 16


def error(found, reference):
    return ((found.double() - reference).abs().max() / reference.abs().max()).item()


def weight_gradient(tokens):
    dy, x = torch.randn(tokens, FEATURES), torch.randn(tokens, INPUTS)
    return error(dy.T @ x, dy.double().T @ x.double())


def bias_gradient(tokens):
    dy = torch.randn(tokens, FEATURES)
    return error(dy.sum(0), dy.double().sum(0))


def norm_gradient(tokens):
    dy, x, weight = torch.randn(tokens, FEATURES), torch.randn(tokens, FEATURES), torch.ones(FEATURES)

    def gradient(x, dy, weight):
        weight = weight.clone().requires_grad_()
        torch.nn.functional.layer_norm(x, (FEATURES,), weight).backward(dy)
        return weight.grad

    return error(gradient(x, dy, weight), gradient(x.double(), dy.double(), weight.double()))


def embedding_gradient(tokens):
    """With 8 tokens, all of which are frequent."""
    dy, token = torch.randn(tokens, FEATURES), torch.randint(8, (tokens,))

    def gradient(dy):
        table = torch.zeros(8, FEATURES, dtype=dy.dtype, requires_grad=True)
        torch.nn.functional.embedding(token, table).backward(dy)
        return table.grad

    return error(gradient(dy), gradient(dy.double()))


def loss_case(vocabulary):
    logits, target = 2 * torch.randn(ROWS, vocabulary), torch.randint(vocabulary, (ROWS,))

    def run(logits):
        logits = logits.clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(logits, target, reduction="none")
        loss.sum().backward()
        return loss.detach(), logits.grad

    return run(logits), run(logits.double())


def head_gradient(vocabulary):
    """The gradient of the head's input: a sum over the vocabulary."""
    (_, dlogits), _ = loss_case(vocabulary)
    weight = 0.02 * torch.randn(vocabulary, INPUTS)
    return error(dlogits @ weight, dlogits.double() @ weight.double())


def loss(vocabulary):
    (found, _), (reference, _) = loss_case(vocabulary)
    return error(found, reference)


def loss_gradient(vocabulary):
    (_, found), (_, reference) = loss_case(vocabulary)
    return error(found, reference)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    print(
        __doc__.split("\n")[0]
        .replace("How far", "// How far")
        .replace(": writes long_sums.h.", ". Written by long_sums.py, which says how; not edited.")
    )
    print("#pragma once\n#include <cstdint>\n\nnamespace stw::kernels::test {\n")
    print("struct PyTorchError { int64_t terms; double error; };")
    for measure, sizes in (
        (weight_gradient, TOKENS),
        (bias_gradient, TOKENS),
        (norm_gradient, TOKENS),
        (embedding_gradient, TOKENS),
        (head_gradient, VOCABULARIES),
        (loss, VOCABULARIES),
        (loss_gradient, VOCABULARIES),
    ):
        figures = []
        for terms in sizes:
            figures.append(f"{{{terms}, {sum(measure(terms) for _ in range(DRAWS)) / DRAWS:.2e}}}")
            print(measure.__name__, figures[-1], file=sys.stderr)
        print(f"inline constexpr PyTorchError of_{measure.__name__}[] = {{{', '.join(figures)}}};")
    print("\n}  // namespace stw::kernels::test")


if __name__ == "__main__":
    main()
