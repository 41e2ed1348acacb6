"""Advices about questions and their answers in contexts."""

import json

from .data_test import BERT, BERT_FILES, TEXT, lines, table
from .rows import Advice, AdviceTest, instead, plus, prints, run, shows, steps, without

SIZES = "--batch 2 --seq 32 --vram 32MiB --threads 1 --steps 2 --eval-batches 1 --out OUT"
BEGIN = f"train --model bert --from-scratch {SIZES} --data"
CONTEXT = "the ship is in the hold. the crew is in the sea."


def article(number, question="is the ship in?", answer="hold", start=19, context=CONTEXT):
    asked = {"id": str(number), "question": question, "answers": [{"text": answer, "answer_start": start}]}
    return {"paragraphs": [{"context": context, "qas": [asked]}]}


def squad(changed=None, count=20):
    """Articles with a question each; `changed` are some of them by their numbers."""
    articles = [(changed or {}).get(i, article(i)) for i in range(count)]
    return json.dumps({"version": "1.1", "data": articles})


def learned(count):
    return prints(rf"examples +{count} texts with a question")


def answers(count):
    def check(test, done):
        found = [json.loads(line) for line in done.stdout.splitlines()]
        test.assertEqual(len(found), count)
        test.assertTrue(all("answer" in one for one in found))

    return check


LONG = article(3, question="ship " * 31)
FILES = {
    **BERT_FILES,
    "wide/config.json": json.dumps({**BERT, "vocab_size": 300}),
    "text.txt": TEXT,
    "squad.json": squad(),
    "asked.jsonl": lines({"question": "is the ship in?", "context": CONTEXT} for i in range(3)),
    "one-bad.json": squad({3: article(3, answer="sea")}),
    "two-bad.json": squad({3: article(3, answer="sea"), 5: article(5, start=400)}),
    "long.json": squad({3: LONG}),
    "strides.json": squad({3: article(3, context=CONTEXT + " " + CONTEXT)}),
    "labels.csv": table("text,label", lambda i: f"ship {i} sails,{'abc'[i % 3]}"),
}

ROWS = [
    Advice(
        "{}, question {}: {}; --skip-bad-questions leaves the question out",
        f"{BEGIN} one-bad.json",
        plus("--skip-bad-questions", prints("19 texts .*; 1 more left out: 1 bad"), steps(2)),
    ),
    Advice(
        "{}, question {}: {} (and {} more such questions); --skip-bad-questions leaves them out",
        f"{BEGIN} two-bad.json",
        plus("--skip-bad-questions", prints("18 texts .*; 2 more left out: 2 bad"), steps(2)),
    ),
    Advice(
        "{}: the question has {} tokens with special tokens, which leave no room for its context in a sample "
        "of {}; give a longer --seq, or leave such questions out with --skip-bad-questions",
        f"{BEGIN} long.json",
        instead("--seq 32", "--seq 48", learned(20), steps(2)),
        plus("--skip-bad-questions", learned(19), steps(2)),
    ),
    Advice(
        "{}: the question has {} tokens with special tokens, which leave no room for its context in a sample "
        "of {} beside a --doc-stride of {}; give a longer --seq or a smaller --doc-stride, or leave such "
        "questions out with --skip-bad-questions",
        f"{BEGIN} strides.json --doc-stride 30",
        instead("--seq 32", "--seq 48", learned(20), steps(2)),
        instead("--doc-stride 30", "--doc-stride 8", learned(21), steps(2)),
        plus("--skip-bad-questions", learned(19), steps(2)),
    ),
    Advice(
        "{}: questions need a tokenizer that keeps the question and the context apart; name a tokenizer.json "
        "or vocab.txt with --tokenizer",
        f"{BEGIN.replace('bert', 'wide')} squad.json --tokenizer byte",
        instead("--tokenizer byte", "--tokenizer bert/vocab.txt", learned(20), steps(2)),
    ),
    Advice(
        "--label-smoothing {}: is not supported for --task spans",
        f"{BEGIN} squad.json --label-smoothing 0.1",
        without("--label-smoothing 0.1", learned(20), steps(2)),
    ),
    Advice(
        "--doc-stride, --skip-bad-questions, --n-best, --max-answer-length and --null-threshold: are for "
        "questions (--task spans), and --data {} has none",
        f"{BEGIN} labels.csv --doc-stride 4",
        without(
            "--doc-stride 4", prints("30, each with one of 3 labels|each with one of 3 labels"), steps(2)
        ),
        instead("labels.csv", "squad.json", learned(20), steps(2)),
    ),
    Advice(
        "--task spans: expected SQuAD's JSON, or JSON of {}, as --data {}",
        f"{BEGIN} labels.csv --task spans",
        instead("labels.csv", "squad.json", learned(20), steps(2)),
    ),
    Advice(
        "{}: is not for questions (--data {})",
        f"{BEGIN} squad.json --text-field context",
        without("--text-field context", learned(20), steps(2)),
    ),
    Advice(
        "--document-end: is for language models; questions are documents in any case",
        f"{BEGIN} squad.json --document-end 3",
        without("--document-end 3", learned(20), steps(2)),
    ),
    Advice(
        "--preference {}: is for pairs of answers, and --data {} has questions",
        f"{BEGIN} squad.json --preference dpo",
        without("--preference dpo", learned(20), steps(2)),
    ),
    Advice(
        "{} finds answers in contexts: expected SQuAD's JSON, or JSON of {}, as --data {}",
        "eval --model run --data labels.csv",
        instead("labels.csv", "squad.json", prints("exact")),
    ),
    Advice(
        "--data {}: the model finds answers in contexts: expected SQuAD's JSON, or JSON of {}",
        "classify --model run --data labels.csv",
        instead("labels.csv", "asked.jsonl", answers(3)),
    ),
    Advice(
        "--question: --text is required, the context",
        "classify --model run --question ship?",
        plus("--text 'the ship is in the hold.'", answers(1)),
    ),
    Advice(
        "--text: the model finds answers to a --question in the text",
        "classify --model run --text ship",
        plus("--question 'is the ship in?'", answers(1)),
    ),
    Advice(
        "--data is required, or --question and --text: the questions to answer",
        "classify --model run",
        plus("--data asked.jsonl", answers(3)),
        plus("--text 'the ship is in.' --question 'is the ship in?'", answers(1)),
    ),
    Advice(
        "--top: is for labels, and this model finds answers",
        "classify --model run --data asked.jsonl --top 2",
        without("--top 2", answers(3)),
    ),
    Advice(
        "--question, --doc-stride, --skip-bad-questions, --n-best, --max-answer-length and --null-threshold: "
        "are for models that find answers (train --task spans); {} does not",
        "classify --model labels --text ship --question ship?",
        without("--question ship?", prints("[abc] ")),
        instead("--model labels", "--model run", answers(1)),
    ),
]


class QuestionsAdvice(AdviceTest):
    rows = ROWS
    files = FILES
    prepare = (
        f"{BEGIN} squad.json".replace("OUT", "run"),
        f"{BEGIN} labels.csv".replace("OUT", "labels"),
    )

    def test_rows(self):
        self.follow_rows()

    def test_an_evaluation_reads_the_settings_of_its_run(self):
        for name, content in FILES.items():
            self.write(name, content)
        out = self.call(f"{BEGIN} strides.json --doc-stride 8 --skip-bad-questions").out.name
        done = self.call(f"eval --model {out} --vram 32MiB --data strides.json --all --json")
        shows(texts=21, questions=20)(self, done)
