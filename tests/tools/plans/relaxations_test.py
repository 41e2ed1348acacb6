"""What `stowage plan` says if a request does not fit: every line is a command that fits, with its figures."""

import json
import shlex
import sys

from support import DOES_NOT_FIT, DONE, ROOT, USAGE, CommandTest

sys.path.insert(0, str(ROOT / "tools" / "bench"))
from relaxations import difference, with_flags  # noqa: E402

# Presets, cards and ways to train; and whether some line keeps all parameters and needs no host memory.
REQUESTS = {
    "--model qwen2.5-0.5b --batch 64 --seq 1024 --device rtx4060 --vram 6GiB --states 32": True,
    "--model gpt2-medium --batch 64 --seq 1024 --device rtx3060 --vram 3GiB --master split8": True,
    "--model llama-3b --batch 32 --seq 1024 --device rtx4060": False,
    "--model bert-base --labels 3 --batch 64 --seq 512 --device rtx3060 --vram 1700MiB": True,
    "--model smollm-360m --batch 8 --seq 2048 --device rtx4060 --vram 3GiB --fused-update": True,
    "--model smollm-135m --batch 8 --seq 512 --device h100 --vram 2GiB --attention cudnn": True,
    "--model gpt2 --batch 8 --seq 256 --device cpu --threads 2 --vram 1GiB --states 8": True,
    "--model gpt2 --batch 64 --seq 1024 --device rtx3060 --vram 5GiB --micro-batch 16 --recompute none": True,
    "--model gpt2-large --batch 16 --seq 1024 --device rtx4060 --vram 2GiB --lora 8": False,
    "--model gpt2-xl --batch 16 --seq 1024 --device rtx4060 --vram 1700MiB --lora 8 --quantize nf4": False,
}


class RelaxationsTest(CommandTest):
    def refusal(self, request):
        plan = self.plan(*shlex.split(request), expect=DOES_NOT_FIT)
        return plan, plan["relaxations"]

    def test_every_line_gives_what_it_says(self):
        for request, trains_all in REQUESTS.items():
            words = shlex.split(request)
            plan, lines = self.refusal(request)
            self.assertLessEqual(len(lines), 8, request)
            self.assertTrue(all(line["fits"] for line in lines), request)
            self.assertNotIn("shortage", plan)
            others = [line["change"] for line in lines if "host_memory" not in line["change"]]
            self.assertTrue(others, request)
            full = [x for x in others if not any(word in x for word in ("lora", "seq", "model", "quantize"))]
            self.assertEqual(bool(full), trains_all, (request, others))
            for line in lines:
                flags = shlex.split(line["flags"])
                followed = self.plan(*with_flags(words, line["flags"]))
                self.assertEqual(difference(line, followed), "", (request, line))
                if "--host-memory" in flags:
                    self.check_least_host_memory(words, line)
                if "--seq" in flags:
                    longer = str(int(flags[flags.index("--seq") + 1]) + 8)
                    words_of_line = with_flags(words, line["flags"])
                    self.plan(*with_flags(words_of_line, "--seq " + longer), expect=DOES_NOT_FIT)
                parts = line["change"].split(", ")
                for other in others:  # no line contains another one
                    if other != line["change"]:
                        self.assertFalse(set(other.split(", ")) <= set(parts), (request, line))

    def check_least_host_memory(self, words, line):
        least = line["least_host_bytes"]
        self.assertLessEqual(least, line["host_bytes"])
        for host, code in ((least, DONE), (least - 1, DOES_NOT_FIT)):
            self.plan(*with_flags(words, f"{line['flags']} --host-memory {host}"), expect=code)

    def test_host_memory_with_other_changes(self):
        """Neither host memory alone nor the other changes alone make these fit."""
        for request, last in [
            ("--model nano --threads 2 --vram 1MiB", "seq"),
            ("--model smollm-360m --batch 8 --seq 512 --vram 130MiB", "nf4"),
            ("--model qwen3-8b --batch 16 --seq 1024 --vram 700MiB", "model qwen3-1.7b"),
        ]:
            words = shlex.split(request)
            plan, lines = self.refusal(request)
            self.assertNotIn("shortage", plan)
            self.assertEqual(len(lines), 1, request)
            self.assertIn("host_memory", lines[0]["change"])
            self.assertIn(last, lines[0]["change"])
            followed = self.plan(*with_flags(words, lines[0]["flags"]))
            self.assertEqual(difference(lines[0], followed), "", (request, lines[0]))
            self.check_least_host_memory(words, lines[0])

    def test_the_closest_line_comes_first(self):
        _, lines = self.refusal("--model bert-large --labels 3 --batch 64 --seq 512 --device l4 --vram 3GiB")
        changes = [line["change"] for line in lines]
        kinds = ["host_memory", "master", "optimizer", "lora", "model"]
        at = [next(k for k, kind in enumerate(kinds) if change.startswith(kind)) for change in changes]
        self.assertEqual(at, sorted(at), changes)
        self.assertEqual([line["changes_numerics"] for line in lines], [False] + [True] * (len(lines) - 1))
        self.assertEqual(lines[0]["effect"], "")
        self.assertTrue(all(line["effect"] for line in lines[1:]))

    def test_a_setting_that_changes_nothing_is_enough(self):
        _, lines = self.refusal(
            "--model qwen2.5-0.5b --batch 32 --seq 1024 --device rtx4060 --micro-batch 32 --recompute none"
        )
        self.assertEqual(lines[0]["flags"], "--micro-batch auto")
        self.assertTrue(all(not line["changes_numerics"] for line in lines))

    def test_what_the_command_refuses_is_not_offered(self):
        nano = "--model nano --batch 8 --threads 2 --vram 9MiB"
        self.assertTrue(any("fused_update" in x["change"] for x in self.refusal(nano)[1]))
        self.assertFalse(any("fused_update" in x["change"] for x in self.refusal(nano + " --clip 1")[1]))
        self.refused(
            *("plan", *shlex.split(nano), "--fused-update", "--micro-batch", 1),
            expect=USAGE,
            says=["a fused update"],
        )
        # Adapters of random weights are useless, so a run does not offer them.
        data = self.write("data.txt", "the quick brown fox " * 500)
        words = ["train", *shlex.split(nano), "--data", data, "--steps", 1, "--out", self.path("out")]
        lines = self.refused(*words, expect=DOES_NOT_FIT, says=["nano does not fit"]).stdout
        self.assertIn("instead     --", lines)
        self.assertNotIn("--lora", lines)
        for flags, word in (("--beta1 0.8", "adafactor"), ("--skip-outliers 3", "--fused-update")):
            self.assertIn(word, lines)
            others = self.refused(*words, *shlex.split(flags), expect=DOES_NOT_FIT).stdout
            self.assertIn("instead     --", others)
            self.assertNotIn(word, others)

    def test_a_shortage_says_what_binds(self):
        for request, says in (
            ("--model llama-1b --batch 4 --vram 300MiB --device l4", ["reserve", "card", "rtx5060ti"]),
            ("--model llama-8b --batch 4 --vram 1GiB --device l4 --lora 8", ["weights", "smallest card"]),
            ("--model nano --batch 4 --vram 1KiB --threads 1", ["weights", "smallest budget"]),
        ):
            plan, lines = self.refusal(request)
            self.assertFalse(any(line["fits"] for line in lines))
            for word in says:
                self.assertIn(word, plan["shortage"])
            for line in lines:  # what is missing is exact
                words = with_flags(shlex.split(request), line["flags"])
                needs = self.plan(*words, expect=DOES_NOT_FIT)["minimum_vram_bytes"]
                self.assertEqual(needs, line["peak_bytes"], (request, line))

    def test_a_sequence_of_one_token(self):
        words = ["plan", "--model", "gpt2-large", "--batch", 8, "--device", "rtx4060", "--vram", "2GiB"]
        error = self.refused(*words, "--max", "seq", expect=DOES_NOT_FIT, says=["not even", "with --"])
        flags = error.stderr.split("with ")[1].split(" it does")[0]
        answer = self.run_command(*words, *shlex.split(flags), "--max", "seq", "--json")
        self.assertGreater(json.loads(answer.stdout)["longest_sequence"], 0)

    def test_a_budget_beyond_the_card(self):
        words = ["plan", "--model", "gpt2", "--batch", 8, "--device", "rtx4060", "--json"]
        lines = self.run_command(*words, "--vram", "9GiB").stderr.splitlines()
        self.assertEqual(len(lines), 1)
        self.assertIn("rtx4060 has only 8 GiB", lines[0])
        self.assertEqual(self.run_command(*words, "--vram", "8GiB").stderr, "")

    def test_automatic_micro_batch(self):
        words = ["--model", "nano", "--batch", 8, "--threads", 2, "--vram", "32MiB"]
        self.assertEqual(self.plan(*words, "--micro-batch", "auto"), self.plan(*words))
