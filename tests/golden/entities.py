"""Prints entities.h: results of seqeval 1.2.2 (default mode) for sequences of tags, including malformed
ones. Run once by a person (see README.md)."""

import random
import warnings

from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

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


# The letters of an entity of several words: its first one, those inside, the last one. Then a single word.
SCHEMES = {
    "IOB1": (IOB1, "III", "I"),
    "IOB2": (IOB2, "BII", "B"),
    "BIOES": (IOBES, "BIE", "S"),
    "BILOU": (BILOU, "BIL", "U"),
}


def in_scheme(draw, name):
    """A sequence without errors, of at most five entities."""
    _, (first, inside, last), single = SCHEMES[name]
    tags, before = ["O"] * draw.randrange(2), ""
    for _ in range(draw.randrange(1, 6)):
        kind, words = draw.choice(["PER", "LOC", "A-B"]), draw.randrange(1, 4)
        letters = [single] if words == 1 else [first] + [inside] * (words - 2) + [last]
        if name == "IOB1" and before == kind:
            letters[0] = "B"
        tags += [f"{letter}-{kind}" for letter in letters]
        gap = draw.randrange(3)
        tags += ["O"] * gap
        before = "" if gap else kind
    return tags


def scheme_cases(draw):
    """Sequences with the entities of seqeval's strict mode, which knows all schemes. Its default mode finds
    the same ones, and does not know L and U: they are E and S there."""
    cases = []
    for name, (scheme, _, _) in SCHEMES.items():
        for _ in range(25):
            tags = in_scheme(draw, name)
            [strict] = Entities([tags], scheme=scheme).entities
            entities = [(e.tag, e.start, e.end) for e in strict]
            as_bioes = [{"L": "E", "U": "S"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]
            assert entities == [(kind, a, b + 1) for kind, a, b in get_entities(as_bioes)], tags
            cases.append((name, tags, " ".join(f"{kind}:{a}:{b}" for kind, a, b in entities)))
    for _ in range(25):  # tags of BILOU in any order
        tags = [draw.choice(["O", "B-PER", "I-PER", "L-PER", "U-PER", "L-LOC", "I-LOC"]) for _ in range(8)]
        as_bioes = [{"L": "E", "U": "S"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]
        found = [f"{kind}:{a}:{b + 1}" for kind, a, b in get_entities(as_bioes)]
        cases.append(("", tags, " ".join(found)))
    return cases


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
    print("};\n")
    print("struct SchemeCase { const char *scheme, *tags, *entities; };   // scheme: empty if any\n")
    print("inline constexpr SchemeCase scheme_cases[] = {")
    for name, tags, entities in scheme_cases(draw):
        print(f'    {{"{name}", "{" ".join(tags)}", "{entities}"}},')
    print("};\n\n}  // namespace command::golden")


if __name__ == "__main__":
    main()
