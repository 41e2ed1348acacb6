"""Advices about labels of texts and of words, and about the answers of classifiers."""

import json

from .data_test import BERT_FILES, lines, table
from .rows import (
    Advice,
    AdviceTest,
    instead,
    labels,
    plus,
    prints,
    run,
    same_as,
    shows,
    steps,
    without,
)

SIZES = "--batch 2 --seq 32 --vram 32MiB --threads 1 --steps 2 --eval-batches 1 --out OUT"
BEGIN = f"train --model nano {SIZES} --data"
WORDS = f"train --model bert --from-scratch {SIZES} --data"
FROM = "train --model {} " + SIZES + " --data"
MODELS = {
    "abc": f"{BEGIN} labels.csv",
    "spam": f"{BEGIN} spam.csv",
    "many": f"{BEGIN} lists.jsonl",
    "number": f"{BEGIN} numbers.csv --task number",
    "tags": f"{WORDS} words.conll",
    "language": f"{BEGIN} text.txt",
}


def conll(rows, count=40):
    return "".join(rows(i) + "\n\n" for i in range(count))


def learned(what):
    return prints(rf"examples +{what}")


def answers(count, key="label"):
    """A line for each text, with a label (or a number) in it."""

    def check(test, done):
        found = [json.loads(line) for line in done.stdout.splitlines()]
        test.assertEqual(len(found), count)
        for one in found:
            test.assertTrue(one if key is None else key in one, one)

    return check


FILES = {
    **BERT_FILES,
    "text.txt": "the ship is in the hold. " * 200,
    "labels.csv": table("text,label", lambda i: f"ship {i} sails,{'abc'[i % 3]}"),
    "spam.csv": table("text,label", lambda i: f"ship {i} sails,{['spam', 'ham'][i % 2]}"),
    "numbers.csv": table("text,label", lambda i: f"ship {i} sails,{i % 7 + 0.5}"),
    "stars.csv": table("text,label", lambda i: f"ship {i} sails,{i % 5 + 1}"),
    "shares.csv": table("text,label", lambda i: f"ship {i} sails,{i % 4}.5%"),
    "equal.jsonl": lines(
        {"text": f"ship {i} sails", "labels": [i % 3 + 0.5, i % 3 + 0.5]} for i in range(40)
    ),
    "broken.csv": table("text,label", lambda i: f"ship {i} sails,{i % 7 + 0.5 if i else 'none'}"),
    "whole.csv": table("text,label", lambda i: f"ship {i} sails,{i % 7 + 0.5 if i else 1}"),
    "topics.csv": table("text,topic,label", lambda i: f"ship {i} sails,{'ab'[i % 2]},id {i}", 200),
    "parts.csv": table("text,label", lambda i: f"ship {i} sails,{'a|b' if i % 2 else 'c'}"),
    "lists.jsonl": lines(
        {"text": f"ship {i} sails", "labels": [["a", "b"], ["c"]][i % 2]} for i in range(40)
    ),
    "bits.jsonl": lines({"text": f"ship {i} sails", "labels": [i % 2, 1 - i % 2, 1]} for i in range(40)),
    "truths.jsonl": lines(
        {"text": f"ship {i} sails", "labels": [[0], [1], [1, 0], []][i % 4]} for i in range(40)
    ),
    "values.jsonl": lines({"text": f"ship {i} sails", "labels": [i % 3 + 0.5, 2]} for i in range(40)),
    "numbered.jsonl": lines({"text": f"ship {i} sails", "labels": [i % 2, i % 3 + 5]} for i in range(40)),
    "words.conll": conll(lambda i: f"ship B-SHIP\nis O\n{['hold O', 'plan B-PLAN'][i % 2]}"),
    "other.conll": conll(lambda i: f"ship B-SEA\nis O\n{['hold O', 'plan B-AIR'][i % 2]}"),
    "three.conll": conll(lambda i: f"ship NN B-NP\nis VB O\nhold {['NN', 'XX'][i % 2]} B-VP"),
    "tagged.jsonl": lines({"tokens": ["ship", "is"], "ner_tags": [i % 2, 0]} for i in range(40)),
    "columns.conll": conll(lambda i: f"ship {i} NN x\nis {i} VB y"),
    "first.conll": conll(lambda i: f"B-SHIP ship NN\nO is VB"),
    "upos.conllu": "# global.columns = ID FORM UPOS UD:NER\n"
    + conll(lambda i: f"1\tship\tNOUN\tB-SHIP\n2\tis\t{['VERB', 'AUX'][i % 2]}\tO"),
    "squad.jsonl": lines(
        {
            "question": "which ship ?",
            "context": f"ship {i} sails",
            "answers": {"text": ["ship"], "answer_start": [0]},
        }
        for i in range(40)
    ),
    "texts.jsonl": lines({"text": f"ship {i} sails"} for i in range(40)),
    "long.conll": conll(lambda i: "\n".join("ship O" for _ in range(36))),
}

ROWS = [
    # Numbers or names.
    Advice(
        "--data {}: its labels are numbers: learn them as numbers with --task number, or as names with "
        "--task label",
        f"{BEGIN} numbers.csv",
        plus("--task number", learned("40, each with a number"), steps(2)),
        plus("--task label", labels("0.5", "1.5", "2.5", "3.5", "4.5", "5.5", "6.5")),
    ),
    Advice(
        "--data {}: its labels are numbers: learn them as numbers with --task number, or as names with "
        "--task labels",
        f"{BEGIN} numbered.jsonl",
        plus("--task labels", labels("0", "1", "5", "6", "7")),
    ),
    Advice(
        '--data {}: its labels are numbers: learn them as numbers with --task number (not as "{}" in {}: '
        "{}), or as names "
        "with --task label",
        f"{BEGIN} shares.csv",
        plus("--task label", learned("40, each with one of 4 labels")),
        run(f"{BEGIN} numbers.csv --task number", learned("40, each with a number")),
    ),
    Advice(
        "--data {}: its labels are numbers: learn them as numbers with --task number",
        f"{BEGIN} equal.jsonl",
        plus("--task number", learned("40, each with 2 numbers")),
    ),
    Advice(
        '{}: the label "{}" is not a number, and the others are: leave this text out, or make names of all '
        "labels "
        "with --task label",
        f"{BEGIN} broken.csv",
        plus("--task label", learned("40, each with one of 8 labels")),
        instead("broken.csv", "whole.csv --task number", learned("40, each with a number")),
    ),
    Advice(
        "{}: its {} labels are numbers, and are learned as names without an order; --task number learns "
        "them as "
        "numbers",
        f"{BEGIN} stars.csv",
        plus("--task number", learned("40, each with a number")),
    ),
    Advice(
        "--label-names: is for labels, and --task number learns numbers",
        f"{BEGIN} numbers.csv --task number --label-names a,b",
        without("--label-names a,b", learned("40, each with a number")),
    ),
    # Several labels.
    Advice(
        "{}: has a list of labels, and --task label learns one; --task labels learns several",
        f"{BEGIN} lists.jsonl --task label",
        instead("--task label", "--task labels", labels("a", "b", "c")),
    ),
    Advice(
        "--data {}: --task labels of a .csv file needs --label-separator: the text between the labels of a "
        "field",
        f"{BEGIN} parts.csv --task labels",
        plus("--label-separator '|'", labels("a", "b", "c")),
    ),
    Advice(
        '--label-separator "{}": no field "{}" of {} has it; leave it out to learn one label of a text, or '
        "say "
        "--task labels",
        f"{BEGIN} labels.csv --label-separator ';'",
        without("--label-separator ';'", labels("a", "b", "c"), learned("40, each with one of 3 labels")),
        plus("--task labels", labels("a", "b", "c"), learned("40, each with any of 3 labels")),
    ),
    Advice(
        "--label-separator: is for .csv files, and --data {} is not one",
        f"{BEGIN} lists.jsonl --label-separator '|'",
        without("--label-separator '|'", labels("a", "b", "c")),
    ),
    Advice(
        "--data {}: its lists have {} ones and zeros, one for each label: name the {} labels in this order "
        "with "
        '--label-names NAME,…, or write the names of a text\'s labels, ["…", …]',
        f"{BEGIN} bits.jsonl",
        plus("--label-names odd,even,all", labels("odd", "even", "all")),
        instead("bits.jsonl", "lists.jsonl", labels("a", "b", "c")),
    ),
    Advice(
        "--data {}: its labels are 0 and 1 alone: name them with --label-names NAME,NAME, or write their "
        "names",
        f"{BEGIN} truths.jsonl",
        plus("--label-names no,yes", steps(2)),
    ),
    Advice(
        "--label-names: expected {} names, one for each of the ones and zeros in {}, found {}",
        f"{BEGIN} bits.jsonl --label-names odd,even",
        instead("odd,even", "odd,even,all", labels("odd", "even", "all")),
    ),
    Advice(
        '--label-names: expected different names, found "{}" twice',
        f"{BEGIN} bits.jsonl --label-names odd,odd,all",
        instead("odd,odd,all", "odd,even,all", labels("odd", "even", "all")),
    ),
    Advice(
        '--label-names: expected different names, found "{}", a number',
        f"{BEGIN} bits.jsonl --label-names odd,2,all",
        instead("odd,2,all", "odd,even,all", labels("odd", "even", "all")),
    ),
    Advice(
        "--label-names: expected two names or more, with commas between them",
        f"{BEGIN} bits.jsonl --label-names odd",
        instead("--label-names odd", "--label-names odd,even,all", labels("odd", "even", "all")),
    ),
    Advice(
        "--label-names: is for labels and tags, and --data {} has none",
        f"{BEGIN} text.txt --label-names a,b",
        without("--label-names a,b", prints(r"data +text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        '{}: has the label "{}" twice: expected each label once; --task number learns lists of numbers, as '
        "many for "
        "each text",
        f"{BEGIN} twice.jsonl --task labels",
        instead("--task labels", "--task number", prints(r"examples +40, each with 2 numbers")),
    ),
    # Columns, and too many labels.
    Advice(
        "{}: its {} texts have {} different labels: a label with fewer than {} texts is hardly learned; "
        "--label-field names another column",
        f"{BEGIN} topics.csv",
        plus("--label-field topic", labels("a", "b")),
    ),
    Advice(
        '{}: {} of its labels, such as "{}", {} in no text that is trained on, and the model does not '
        "learn {}; "
        "--eval-batches 0 trains on all texts",
        f"{BEGIN} topics.csv",
        instead("--eval-batches 1", "--eval-batches 0", prints("none held out")),
    ),
    # Tasks.
    Advice(
        "--task labels: --data {} has no labels: expected a .csv file, or a .jsonl file of texts that have a "
        '"label"',
        f"{BEGIN} text.txt --task labels",
        without("--task labels", prints(r"data +text\.txt: [\d,]+ tokens to train on"), steps(2)),
        instead("text.txt", "lists.jsonl", labels("a", "b", "c")),
    ),
    Advice(
        "--task label: expected a .csv or .jsonl file of texts with labels, and --data {} has no labels",
        f"{BEGIN} text.txt --task label",
        without("--task label", prints(r"data +text\.txt: [\d,]+ tokens to train on"), steps(2)),
        instead("text.txt", "labels.csv", labels("a", "b", "c")),
    ),
    Advice(
        '--task tokens: is for words and tags; expected a .conll file, or a .jsonl file of {"tokens": […], '
        '"tags": '
        "[…]} as --data {}",
        f"{WORDS} labels.csv --task tokens",
        instead("labels.csv", "words.conll", labels("B-PLAN", "B-SHIP", "O")),
        without("--task tokens", labels("a", "b", "c")),
    ),
    Advice(
        "--task {}: --data {} has tags of words, which are for --task tokens",
        f"{WORDS} words.conll --task label",
        instead("--task label", "--task tokens", labels("B-PLAN", "B-SHIP", "O")),
    ),
    Advice(
        "--label-smoothing: is for losses over a softmax, and the task labels has none",
        f"{BEGIN} lists.jsonl --label-smoothing 0.1",
        without("--label-smoothing 0.1", labels("a", "b", "c")),
    ),
    Advice(
        "--z-loss: is for losses over a softmax, and the task {} has none",
        f"{BEGIN} numbers.csv --task number --z-loss 0.1",
        without("--z-loss 0.1", learned("40, each with a number")),
    ),
    # Heads.
    Advice(
        '{}: "{}" is not one of the model\'s {} labels ({}); --new-head draws a new head for the labels of '
        "the data",
        f"{FROM.format('spam')} labels.csv",
        plus("--new-head", labels("a", "b", "c"), prints("a new head for 3 labels")),
    ),
    Advice(
        "{}: has a list of labels, but the model gives each text one label; --new-head draws a new head "
        "for the "
        "labels of the data",
        f"{FROM.format('spam')} lists.jsonl",
        plus("--new-head", labels("a", "b", "c")),
    ),
    Advice(
        '{}: expected a finite number, found "{}"; --new-head draws a new head for the labels of the data',
        f"{FROM.format('number')} labels.csv",
        plus("--new-head", labels("a", "b", "c")),
    ),
    Advice(
        '{}: "{}" is not one of the model\'s {} labels ({}); --new-head draws a new head for the labels of '
        "the data",
        f"{FROM.format('tags')} other.conll",
        plus("--new-head", labels("B-AIR", "B-SEA", "O")),
    ),
    Advice(
        "--label-names: the model already has other labels, {}; --new-head draws a new head for these names",
        f"{FROM.format('many')} bits.jsonl --label-names odd,even,all",
        plus("--new-head", labels("odd", "even", "all")),
    ),
    Advice(
        "--new-head: is for texts or words with labels, and --data {} has none for the task",
        f"{BEGIN} text.txt --new-head",
        without("--new-head", prints(r"data +text\.txt: [\d,]+ tokens to train on"), steps(2)),
        instead("text.txt", "labels.csv", labels("a", "b", "c")),
    ),
    Advice(
        "--task {}: {} has a head for the task {}; --new-head draws a new one",
        f"{FROM.format('spam')} numbers.csv --task number",
        plus("--new-head", learned("40, each with a number"), steps(2)),
    ),
    Advice(
        "--data {}: has questions, and {} has a head for the task {}; --new-head draws a new one",
        f"{FROM.format('tags')} squad.jsonl",
        plus("--new-head", prints("texts with a question"), steps(2)),
    ),
    Advice(
        "--task masked: {} has a head for the task {}; begin with a model without it, such as the one that "
        "it was trained from",
        f"{FROM.format('tags')} texts.jsonl --task masked",
        instead("tags", "bert --from-scratch", prints("hidden"), steps(2)),
    ),
    # Words.
    Advice(
        "{}: its tags are numbers; give their names with --label-names NAME,…, in the order of their numbers",
        f"{WORDS} tagged.jsonl",
        plus("--label-names O,SHIP", labels("O", "SHIP")),
    ),
    Advice(
        "{}: columns {} and {} look like tags; its lines are read as {}; choose the tags with "
        "--label-field {} or "
        "--label-field {}",
        f"{WORDS} chunks.conll",
        plus("--label-field 2", labels("B-NP", "B-VP", "O")),
        plus("--label-field 3", labels("B-SHIP", "O")),
    ),
    Advice(
        "{}: it is not certain which column has the tags; its lines are read as {}; choose the tags with "
        "--label-field {} or --label-field {}",
        f"{WORDS} unsure.conll",
        plus("--label-field 2", labels("A", "L")),
        plus("--label-field 3", labels("NOUN", "VERB")),
    ),
    Advice(
        "{}: it is not certain which column has the words; its lines are read as {}; name the column of "
        "words with "
        "--text-field N (1 is the first column, -1 the last one)",
        f"{WORDS} first.conll",
        plus("--text-field 2", labels("B-SHIP", "O")),
    ),
    Advice(
        "{}: {}name the column of words with --text-field N, and that of tags with --label-field N (1 is "
        "the first "
        "column, -1 the last one)",
        f"{WORDS} swapped.conll",
        plus("--text-field 2 --label-field 1", labels("NOUN", "VERB")),
        plus("--text-field -1 --label-field 1", labels("NOUN", "VERB")),
    ),
    Advice(
        "{}: CoNLL-U Plus has several columns of tags; its lines are read as {}; choose the tags with "
        "--label-field "
        "UPOS or --label-field UD:NER",
        f"{WORDS} upos.conllu",
        plus("--label-field UPOS", labels("AUX", "NOUN", "VERB")),
        plus("--label-field UD:NER", labels("B-SHIP", "O")),
    ),
    Advice(
        "--label-field {}: {} has no such column: expected a number from 1 to {}, or -1 for the last one",
        f"{WORDS} words.conll --label-field 3",
        instead("--label-field 3", "--label-field 2", same_as(f"{WORDS} words.conll")),
        instead("--label-field 3", "--label-field -1", same_as(f"{WORDS} words.conll")),
    ),
    Advice(
        "--label-field {}: {} has no such column: expected a number from 1 to {}, or -1 for the last one, "
        "or one of {}, "
        "or COLUMN:ENTRY, as MISC:name",
        f"{WORDS} misc.conllu --label-field MISC:nam",
        instead("MISC:nam", "MISC:name", labels("B", "I")),
        instead("MISC:nam", "4", labels("NOUN", "VERB")),
        instead("MISC:nam", "UPOS", labels("NOUN", "VERB")),
    ),
    Advice(
        "{}: CoNLL-U has several columns of tags; its lines are read as {}; choose the tags with "
        "--label-field UPOS or "
        "--label-field {}",
        f"{WORDS} several.conllu",
        plus("--label-field UPOS", labels("NOUN", "VERB")),
        plus("--label-field XPOS", labels("N", "V")),
    ),
    Advice(
        "{}: CoNLL-U has several columns of tags; its lines are read as {}; choose the tags with "
        "--label-field MISC:{}",
        f"{WORDS} entity.conllu",
        plus("--label-field MISC:name", labels("B-SHIP", "O")),
    ),
    Advice(
        "{}: is words; there is no tokenizer (--tokenizer)",
        f"{BEGIN} words.conll --tokenizer ids",
        instead("--tokenizer ids", "--tokenizer byte", labels("B-PLAN", "B-SHIP", "O")),
    ),
    Advice(
        "--text-field {}: {} has no such column: expected a number from 1 to {}, or -1 for the last one",
        f"{WORDS} words.conll --text-field 3",
        instead("--text-field 3", "--text-field 1", same_as(f"{WORDS} words.conll")),
    ),
    Advice(
        "{} has {}, and {} has {}; read files of one format together, or name their columns with "
        "--text-field and "
        "--label-field",
        f"{WORDS} words.conll three.conll",
        plus("--text-field 1 --label-field 2", learned("80, with 240 words")),
        without("three.conll", labels("B-PLAN", "B-SHIP", "O")),
    ),
    Advice(
        "--text-field {}: a word is a whole column, not an entry of one",
        f"{WORDS} misc.conllu --text-field MISC:name --label-field UPOS",
        instead("--text-field MISC:name", "--text-field FORM", labels("NOUN", "VERB")),
    ),
    # The answers.
    Advice(
        "--text or --data is required: the texts to classify",
        "classify --model abc --json",
        plus("--text ship", answers(1)),
        plus("--data labels.csv", answers(40)),
    ),
    Advice(
        "--text {}: is classified as a text, though there is a file of that name; --data reads files",
        "classify --model abc --json --text labels.csv",
        instead("--text labels.csv", "--data labels.csv", answers(40)),
    ),
    Advice(
        "--pair-field: is for tables and JSON of texts (--data)",
        "classify --model abc --json --text ship --pair-field pair",
        without("--pair-field pair", answers(1)),
    ),
    Advice(
        "--threshold: is for models that give a text any number of labels; {} gives it {}",
        "classify --model abc --json --text ship --threshold 0.1",
        without("--threshold 0.1", answers(1)),
        instead("--model abc", "--model many", answers(1, None)),
    ),
    Advice(
        "--top excludes --threshold",
        "classify --model many --json --text ship --threshold 0.001 --top 2",
        without("--top 2", answers(1, None)),
        without("--threshold 0.001", answers(1, None)),
    ),
    Advice(
        "--top: is for labels; {} gives a text numbers",
        "classify --model number --json --text ship --top 2",
        without("--top 2", answers(1, "number")),
    ),
    Advice(
        "--top: is for labels of whole texts, but this model labels words",
        "classify --model tags --json --text 'ship is' --top 2",
        without("--top 2", prints(r"\[")),
    ),
    Advice(
        "{} of {} texts are cut to {} tokens: words past that have no label; give a longer --seq",
        "classify --model tags --json --data long.conll --seq 16",
        instead("--seq 16", "--seq 40", answers(40, None)),
        instead("--seq 16", "--seq 48", answers(40, None)),
    ),
    Advice(
        "--positive-label: is for models that give a text or a word one of two labels; {} does not",
        "eval --model abc --data labels.csv --all --json --positive-label a",
        without("--positive-label a", shows(part="all")),
        run(
            "eval --model spam --data spam.csv --all --positive-label ham", prints('F1 .* of the label "ham"')
        ),
    ),
    Advice(
        "--positive-label {}: the model's labels are {}",
        "eval --model spam --data spam.csv --all --positive-label eggs",
        instead("eggs", "spam", prints('F1 .* of the label "spam"')),
    ),
]


class LabelsTest(AdviceTest):
    rows = ROWS
    files = {
        **FILES,
        "twice.jsonl": lines({"text": f"ship {i} sails", "labels": [3, 3 + i % 2]} for i in range(40)),
        "chunks.conll": conll(lambda i: f"ship B-NP B-SHIP\nis {['O', 'B-VP'][i % 2]} O"),
        "unsure.conll": conll(lambda i: "ship A NOUN\nis L VERB"),
        "swapped.conll": conll(lambda i: f"NOUN ship{i % 9}\nVERB is{i % 9}"),
        "entity.conllu": conll(
            lambda i: "1\tship\tship\t_\t_\t_\t0\t_\t_\tname=B-SHIP\n2\tis\tis\t_\t_\t_\t1\t_\t_\tname=O"
        ),
        "several.conllu": conll(
            lambda i: "1\tship\tship\tNOUN\tN\t_\t0\t_\t_\t_\n2\tis\tis\tVERB\tV\t_\t1\t_\t_\t_"
        ),
        "misc.conllu": conll(
            lambda i: "1\tship\tship\tNOUN\t_\t_\t0\t_\t_\tname=B\n2\tis\tis\tVERB\t_\t_\t1\t_\t_\tname=I"
        ),
    }
    prepare = tuple(words.replace("OUT", name) for name, words in MODELS.items())

    def test_rows(self):
        self.follow_rows()

    def test_what_would_not_help_is_not_advised(self):
        for name in ("words.conll", "long.conll"):
            self.write(name, FILES[name])
        self.write("bert/config.json", FILES["bert/config.json"])
        self.write("bert/vocab.txt", FILES["bert/vocab.txt"])
        self.call(MODELS["tags"].replace("OUT", "tagger"))
        self.write("damaged.conll", FILES["words.conll"] + "ship\n")  # another head would not mend this line
        said = self.call(f"{FROM.format('tagger')} damaged.conll", anyhow=True).stderr
        self.assertIn('found 1: "ship"\n', said)
        self.write("longer.conll", FILES["long.conll"].replace("ship O", "ship O\nis O"))
        said = self.call("classify --model tagger --data longer.conll --seq 48").stderr
        self.assertIn("words past that have no label, and the model has no more positions\n", said)
        rows = "1\tship\tship\tNOUN\t_\t_\t0\t_\t_\t_\n2\tsea\tsea\tNOUN\t_\t_\t1\t_\t_\t_\n\n"
        self.write("alike.conllu", rows * 20)
        said = self.call(f"{WORDS} alike.conllu", anyhow=True).stderr
        self.assertRegex(
            said, r"no column of CoNLL-U has different tags; its lines are read as [^;]*; [^;]*\n$"
        )
