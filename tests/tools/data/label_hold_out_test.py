"""Labels and tags all of whose texts are held out."""

import json

from support import SMALL, CommandTest


class LabelHoldOutTest(CommandTest):
    def trained(self, labels, *more):
        return self.trained_on(
            [{"text": f"ship {i:03} sails", "label": label} for i, label in enumerate(labels)], *more
        )

    def trained_on(self, rows, *more):
        data = self.write("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        result = self.run_command(
            "train", *SMALL, "--steps", 1, "--overwrite", "--out", self.path("run"), "--data", data, *more
        )
        return [line for line in result.stderr.splitlines() if "trained on" in line], result.stdout

    def test_the_last_text_of_a_label_is_trained_on(self):
        warnings, output = self.trained([f"rare {i}" if i < 30 else "ab"[i % 2] for i in range(60)])
        self.assertEqual(warnings, [])
        self.assertIn("held out in 6 of the 60 texts", output)
        lists = [[f"rare {i}", "a"] if i < 30 else ["ab"[i % 2]] for i in range(60)]
        self.assertEqual(self.trained(lists)[0], [])
        # Each text is the only one of its label.
        (warning,) = self.trained([f"id {i:03}" for i in range(60)])[0]
        self.assertIn("x.jsonl: 6 of its labels, such as", warning)

    def test_the_last_text_of_a_tag_is_trained_on(self):
        def tagged(tags, *more):
            return self.trained_on(
                [{"tokens": ["ship", f"{i:03}"], "tags": ["O", tag]} for i, tag in enumerate(tags)], *more
            )

        warnings, output = tagged([f"B-rare{i}" if i < 30 else "BI"[i % 2] + "-x" for i in range(60)])
        self.assertEqual(warnings, [])
        self.assertIn("held out in 6 of the 60 texts", output)
        tail = ["BI"[i % 2] + "-x" for i in range(54)] + ["B-y"] * 6
        self.assertEqual(tagged(tail)[0], [])
        (warning,) = tagged(tail, "--eval-tail")[0]
        self.assertIn('1 of its labels, such as "B-y"', warning)
        (warning,) = tagged([f"B-{i:03}" for i in range(60)])[0]  # each text is the only one of its tag
        self.assertIn("x.jsonl: 6 of its labels, such as", warning)

    def test_a_label_without_a_text_is_named(self):
        labels = ["ab"[i % 2] for i in range(54)] + ["c"] * 6
        self.assertEqual(self.trained(labels)[0], [])
        (warning,) = self.trained(labels, "--eval-tail")[0]
        self.assertIn(
            'x.jsonl: 1 of its labels, such as "c", is in no text that is trained on, and the model does not '
            "learn it; --eval-batches 0 trains on all texts",
            warning,
        )
        (several,) = self.trained([[label] for label in labels], "--eval-tail")[0]
        self.assertIn('1 of its labels, such as "c"', several)
        (unused,) = self.trained([i % 2 for i in range(60)], "--label-names", "a,b,c")[0]
        self.assertIn('such as "c", is in no text', unused)

    def test_all_is_trained_on_without_evaluations(self):
        labels = ["ab"[i % 2] for i in range(54)] + ["c"] * 6
        data = [{"text": f"ship {i:03}", "label": label} for i, label in enumerate(labels)]
        path = self.write("y.jsonl", "".join(json.dumps(row) + "\n" for row in data))
        words = ["train", *SMALL[: SMALL.index("--eval-batches")], "--eval-batches", 0, "--steps", 1]
        result = self.run_command(*words, "--out", self.path("all"), "--data", path)
        self.assertNotIn("trained on, and", result.stderr)
