"""Prints entities.h: results of seqeval 1.2.2 (default mode) for sequences of tags, including malformed
ones. Run once by a person (see README.md)."""

import random
import warnings

from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

TAGS = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-LOC", "E-LOC", "S-PER", "B", "I", "B-A-B", "I-A-B"]


def sequences(draw):
    fixed = [
        "B-PER I-PER O B-LOC",
        "I-PER I-PER O",
        "I-PER I-LOC I-LOC",
        "B-PER B-PER I-PER",
        "B-PER I-LOC",
        "O I-PER B-PER",
        "I-PER B-PER I-PER I-PER",
        "B-LOC E-LOC E-LOC I-LOC",
        "S-PER I-PER S-PER",
        "B I I O I B",
        "B-A-B I-A-B I-B",
        "O O O",
        "O",
    ]
    return [s.split() for s in fixed] + [
        [draw.choice(TAGS) for _ in range(draw.randrange(1, 12))] for _ in range(60)
    ]


def main():
    warnings.simplefilter("ignore")  # seqeval warns about malformed tags
    draw = random.Random(5)
    wanted = sequences(draw)
    given = [[tag if draw.random() < 0.7 else draw.choice(TAGS) for tag in tags] for tags in wanted]
    print("// Results of seqeval 1.2.2 for sequences of tags. Made by tests/golden/entities.py.")
    print("#pragma once\n\nnamespace command::golden {\n")
    print(
        "struct TagsCase { const char *tags, *answers, *entities; };   // entities of tags: TYPE:FIRST:END\n"
    )
    print("inline constexpr TagsCase tags_cases[] = {")
    for tags, answers in zip(wanted, given):
        entities = " ".join(f"{kind}:{first}:{last + 1}" for kind, first, last in get_entities(tags))
        print(f'    {{"{" ".join(tags)}", "{" ".join(answers)}", "{entities}"}},')
    print("};\n")
    print(
        "struct TypeCase { const char* type; double precision, recall, f1; unsigned wanted; };"
        "   // of all cases together; the last one of all types\n"
    )
    print("inline constexpr TypeCase type_cases[] = {")
    types = sorted({kind for tags in wanted + given for kind, _, _ in get_entities(tags)})
    for kind, *figures in zip(types, *precision_recall_fscore_support(wanted, given)):
        print(f'    {{"{kind}", {", ".join(repr(float(x)) for x in figures[:3])}, {int(figures[3])}}},')
    micro = precision_recall_fscore_support(wanted, given, average="micro")
    print(f'    {{"", {", ".join(repr(float(x)) for x in micro[:3])}, {int(micro[3])}}},')
    print("};\n\n}  // namespace command::golden")


if __name__ == "__main__":
    main()
