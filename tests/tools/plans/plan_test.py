"""`stowage plan`: the bytes add up, fit the budget, and are the same every time."""

import json
import os
import pathlib
import re
import unittest

from support import DOES_NOT_FIT, DONE, USAGE, CommandTest

CLASSES = [
    "parameters",
    "gradients",
    "optimizer",
    "saved_activations",
    "transient",
    "workspace",
    "inputs",
    "padding",
]
NANO = ["--model", "nano", "--threads", "2"]


class PlanTest(CommandTest):
    def check_adds_up(self, plan):
        size = plan["bytes"]
        self.assertEqual(sum(size[name] for name in CLASSES), size["arena"])
        self.assertEqual(size["arena"] + size["reserve"], size["peak"])
        batch, micro = plan["request"]["global_batch"], plan["micro_batch"]
        self.assertEqual(plan["accumulation_steps"], -(-batch // micro))
        self.assertEqual((plan["accumulation_steps"] - 1) * micro + plan["last_micro_batch"], batch)

    def test_adds_up_at_every_budget(self):
        for budget in ["16MiB", "20MiB", "24MiB", "32MiB", "1GiB"]:
            plan = self.plan(*NANO, "--vram", budget)
            self.assertTrue(plan["fits"])
            self.assertLessEqual(plan["bytes"]["peak"], plan["request"]["vram_bytes"])
            self.check_adds_up(plan)

    def test_json_has_the_fields_of_the_format(self):
        plan = self.plan(*NANO, "--vram", "64MiB")
        self.assertEqual((plan["format"], plan["version"]), ("stowage-plan", 1))
        for name in [
            "fingerprint",
            "fits",
            "model",
            "device",
            "request",
            "numerics",
            "recompute",
            "offload",
            "bytes",
            "predicted",
            "search",
            "layout",
            "loss_chunks",
        ]:
            self.assertIn(name, plan)
        self.assertEqual(plan["model"]["architecture"], "gpt2")
        self.assertEqual(plan["layout"]["arena_bytes"], plan["bytes"]["arena"])

    def test_same_request_same_bytes(self):
        words = ["plan", *NANO, "--vram", "20MiB", "--json"]
        self.assertEqual(self.run_command(*words).stdout, self.run_command(*words).stdout)

    def test_a_plan_that_does_not_fit_is_an_answer(self):
        result = self.run_command("plan", *NANO, "--vram", "1MiB", "--json", expect=DOES_NOT_FIT)
        plan = json.loads(result.stdout)
        self.assertFalse(plan["fits"])
        least = plan["minimum_vram_bytes"]
        self.assertRegex(
            result.stderr,
            r"^stowage: error: nano does not fit in 1 MiB: the smallest budget that works "
            r"is [0-9.]+ MiB \([0-9,]+ bytes\)\n$",
        )
        self.assertIn(f"{least:,}", result.stderr)
        self.assertTrue(self.plan(*NANO, "--vram", least)["fits"])
        self.assertFalse(self.plan(*NANO, "--vram", least - 1, expect=DOES_NOT_FIT)["fits"])

    def test_large_numbers_have_commas(self):
        """Those of parameters, bytes and tokens a second, as in the output of train."""
        config = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 32, "n_layer": 1}
        model = self.write("config.json", json.dumps({**config, "n_head": 2}))
        small = ["--model", model, "--threads", 1, "--batch", 2, "--seq", 32]
        report = self.run_command("plan", *small, "--vram", "32MiB").stdout
        self.assertIn("gpt2, 23,008 parameters, ", report)
        self.assertRegex(report, r"\d,\d{3} to \d+,\d{3} tokens/s estimated")
        none = self.run_command("plan", *small, "--vram", "64KiB", expect=DOES_NOT_FIT).stdout
        self.assertRegex(none, r"the smallest budget that works is .* \([\d,]+,\d{3} bytes\)")
        largest = self.run_command("plan", "--max", "model", "--vram", "80GiB", "--batch", 4).stdout
        self.assertRegex(largest, r", \d,\d{3},\d{3},\d{3} parameters, .* tokens/s\n$")
        for text in (report, none, largest):
            self.assertNotRegex(text, r"\d{4} (parameters|bytes|tokens/s)")

    def test_suggested_changes_are_flags_that_save_the_bytes(self):
        several = ["--batch", 4, "--seq", 256, "--vram", 1]
        for words in (
            several,
            [*several, "--recompute", "full", "--states", "32"],
            [*several, "--precision", "bf16", "--micro-batch", 2],
            ["--batch", 1, "--seq", 32, "--vram", 1, "--gradients", "bf16", "--recompute", "none"],
        ):
            given = {words[i]: words[i + 1] for i in range(0, len(words), 2)}
            plan = self.plan(*NANO, *words, expect=DOES_NOT_FIT)
            self.assertTrue(plan["relaxations"], words)
            for line in plan["relaxations"]:
                flags = dict(given)
                for part in line["change"].split(", "):
                    name, _, value = part.partition(" ")
                    flags["--" + name.replace("_", "-")] = value
                changed = self.plan(
                    *NANO,
                    *[word for flag in flags.items() for word in flag if word != ""],
                    expect=DOES_NOT_FIT,
                )
                self.assertEqual(changed["minimum_vram_bytes"], line["peak_bytes"], (words, line))
                self.assertEqual(
                    changed["minimum_vram_bytes"],
                    plan["minimum_vram_bytes"] - line["saves_bytes"],
                    (words, line),
                )

    def test_offload(self):
        least = json.loads(
            self.run_command("plan", *NANO, "--vram", "1MiB", "--json", expect=DOES_NOT_FIT).stdout
        )
        words = [*NANO, "--states", "32", "--vram", least["minimum_vram_bytes"] // 2]
        self.plan(*words, expect=DOES_NOT_FIT)
        plan = self.plan(*words, "--host-memory", "1GiB")
        self.check_adds_up(plan)
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["request"]["host_bytes"], 1 << 30)
        self.assertLessEqual(sum(entry["bytes"] for entry in plan["offload"]), plan["bytes"]["host"])
        self.assertLessEqual({"tensors", "blocks", "outside_blocks", "bytes"}, set(plan["offload"][0]))
        self.assertGreater(plan["predicted"]["copied_bytes"], 0)
        report = self.run_command("plan", *words, "--host-memory", "1GiB").stdout
        self.assertRegex(
            report,
            r"offload +optimizer states of blocks 0-\d and everything else: [0-9.]+ MiB in host memory",
        )
        self.assertRegex(report, r"and [0-9.]+ MiB of host memory")
        refusal = self.run_command("plan", *words, expect=DOES_NOT_FIT).stdout
        self.assertRegex(
            refusal,
            r"instead +--host-memory [0-9]+MiB: [0-9,]+ tokens/s, peak [0-9.]+ MiB; the same result; takes "
            r"[0-9.]+ MiB, [0-9]+MiB are enough\n",
        )
        enough = re.search(r"([0-9]+MiB) are enough", refusal)[1]
        self.run_command("plan", *words, "--host-memory", enough)

    def test_report_is_readable(self):
        report = self.run_command("plan", *NANO, "--vram", "64MiB").stdout
        for word in ["gradients", "optimizer", "peak", "micro-batch"]:
            self.assertIn(word, report)

    def test_default_budget_is_the_available_memory(self):
        self.assertTrue(self.plan("--model", "nano")["fits"])

    def test_spellings_of_bytes(self):
        for text, count in [
            ("1GiB", 2**30),
            ("1073741824", 2**30),
            ("1024 MiB", 2**30),
            ("1gib", 2**30),
            ("1GB", 10**9),
            ("1.5GiB", 3 * 2**29),
            ("0.0625GiB", 2**26),
            ("64000000B", 64000000),
        ]:
            self.assertEqual(self.plan(*NANO, "--vram", text)["request"]["vram_bytes"], count, text)

    def test_invalid_byte_counts_are_refused(self):
        for text in [
            "",
            "8G",
            "-1",
            "1.2.3GiB",
            "1.GiB",
            "GiB",
            "17179869184GiB",
            "99999999999999999999",
            "8GiBs",
            "0",
        ]:
            self.refused("plan", *NANO, f"--vram={text}", expect=USAGE, says=["--vram"])

    def test_two_plans_are_compared(self):
        paths = []
        for name, words in [
            ("small", ["--vram", "12MiB"]),
            ("large", ["--vram", "1GiB"]),
            ("host", ["--vram", "6MiB", "--host-memory", "64MiB"]),
        ]:
            paths.append(self.folder / f"{name}.json")
            paths[-1].write_text(self.run_command("plan", *NANO, *words, "--json").stdout)
        plans = [json.loads(path.read_text()) for path in paths]
        for a, b in [(0, 1), (1, 2)]:
            text = self.run_command("plan", "--compare", paths[a], paths[b]).stdout
            rows = {line[:24].strip(): line[24:].split() for line in text.splitlines()}
            for name, key in [
                ("micro-batch", "micro_batch"),
                ("accumulation steps", "accumulation_steps"),
                ("loss chunks", "loss_chunks"),
            ]:
                self.assertEqual(rows[name][:2], [str(plans[a][key]), str(plans[b][key])])
            for name, key in [("runs of recompute", "recompute"), ("kinds of offload", "offload")]:
                counts = [str(len(plan[key])) if plan[key] else "none" for plan in (plans[a], plans[b])]
                self.assertEqual(rows[name][:2], counts)
                self.assertEqual("differs" in rows[name], plans[a][key] != plans[b][key])
        self.assertTrue(plans[0]["recompute"] and plans[2]["offload"])
        other = self.folder / "other.json"
        other.write_text(paths[0].read_text().replace('"version": 1', '"version": 99'))
        self.refused("plan", "--compare", paths[0], other, says=["other.json", "version 1, found 99"])

    def test_every_output_has_a_file_of_its_own(self):
        path = self.folder / "out"
        self.refused(
            "plan", *NANO, "--html", path, "--csv", path, expect=USAGE, says=["--html, --svg and --csv"]
        )
        self.assertFalse(path.exists())

    def test_frontier(self):
        points = json.loads(self.run_command("plan", *NANO, "--frontier", "--json").stdout)["frontier"]
        self.assertGreater(len(points), 5)
        for before, after in zip(points, points[1:]):
            self.assertLess(before["peak_bytes"], after["peak_bytes"])
            self.assertLessEqual(before["tokens_per_second"], after["tokens_per_second"])
        # With a point's peak as the budget, the plan is that point.
        for point in (points[0], points[len(points) // 2], points[-1]):
            plan = json.loads(
                self.run_command(
                    "plan", *NANO, "--states", "32", "--vram", point["peak_bytes"], "--json"
                ).stdout
            )
            self.assertEqual(plan["bytes"]["peak"], point["peak_bytes"])
            self.assertEqual(plan["predicted"]["step_seconds"], point["step_seconds"])
        self.assertIn("knee", self.run_command("plan", *NANO, "--frontier").stdout)

    def test_errors_name_the_flag(self):
        encoder = ["--model", "bert-base", "--batch", 4, "--seq", 64]
        for words, says in (
            (["--model", "nano", "--batch", 99999999999], "--batch: expected a whole number from 1 to "),
            (encoder + ["--task", "label", "--labels", 1], "--labels 1, expected 2 to "),
            (encoder + ["--task", "masked", "--texts", 3], "--texts is for encoders with an output for each"),
            (NANO + ["--csv", ""], "--csv: expected text, found nothing"),
        ):
            self.refused("plan", *words, expect=USAGE, says=[says])

    def test_masters_of_fp16_lie_in_host_memory(self):
        """They come before gradients and weights, whose copies cost more, so that less host memory is enough
        and more does not slow a plan down."""
        words = (
            "--model bert-1.3b --labels 2 --batch 32 --seq 512 --precision fp16 --device a100-80gb".split()
        )
        speeds = []
        for host in ("7760MiB", "8600MiB", "12GiB"):
            run = self.run_command("plan", *words, "--vram", "8GiB", "--host-memory", host, "--json")
            plan = json.loads(run.stdout)
            self.assertIn("masters", [row["tensors"] for row in plan["offload"]])
            speeds.append(plan["predicted"]["tokens_per_second"])
        self.assertEqual(speeds, sorted(speeds))

    def test_a_frontier_with_host_memory(self):
        """A plan with fewer copies that needs more memory but is no faster is not a point of the frontier."""
        self.write(
            "wide/config.json",
            json.dumps(
                {
                    "model_type": "llama",
                    "vocab_size": 256,
                    "max_position_embeddings": 512,
                    "hidden_size": 4096,
                    "intermediate_size": 4096,
                    "num_hidden_layers": 2,
                    "num_attention_heads": 32,
                }
            ),
        )
        words = [
            "--model",
            self.path("wide"),
            "--device",
            "rtx4090",
            "--batch",
            8,
            "--seq",
            512,
            "--vram",
            "24GiB",
            "--host-memory",
            "100MiB",
        ]
        points = json.loads(self.run_command("plan", *words, "--frontier", "--json").stdout)["frontier"]
        self.assertGreater(len(points), 5)
        for before, after in zip(points, points[1:]):
            self.assertLess(before["peak_bytes"], after["peak_bytes"])
            self.assertGreater(before["step_seconds"], after["step_seconds"])
        self.assertEqual(points[-1]["step_seconds"], self.plan(*words)["search"]["unlimited_seconds"])

    def test_the_largest_sequence_and_model_that_fit(self):
        words = [
            "plan",
            "--model",
            "smollm-135m",
            "--batch",
            8,
            "--device",
            "rtx4060",
            "--recompute",
            "none",
            "--vram",
            "2500MiB",
        ]
        most = json.loads(self.run_command(*words, "--max", "seq", "--json").stdout)["longest_sequence"]
        self.assertTrue(json.loads(self.run_command(*words, "--seq", most, "--json").stdout)["fits"])
        self.assertLess(most, 2048)
        self.refused(*words, "--seq", most + 1, expect=DOES_NOT_FIT)
        words = ["plan", "--batch", 8, "--seq", 512, "--device", "rtx4060", "--max", "model"]
        answer = json.loads(self.run_command(*words, "--json").stdout)
        self.assertGreater(answer["parameters"], 300e6)
        self.assertLessEqual(answer["peak_bytes"], 8 << 30)
        # Offloaded parameters count too: of the 1.6e9 parameters, 3.1 GB in 16 bits, some are in host memory.
        host = [
            "plan",
            "--batch",
            1,
            "--seq",
            128,
            "--device",
            "rtx4090",
            "--vram",
            "2GiB",
            "--host-memory",
            "16GiB",
        ]
        self.assertTrue(json.loads(self.run_command(*host, "--model", "gpt2-xl", "--json").stdout)["fits"])
        self.assertEqual(
            json.loads(self.run_command(*host, "--max", "model", "--json").stdout)["largest_model"], "gpt2-xl"
        )
        self.refused(*words, "--vram", "1KiB", expect=DOES_NOT_FIT, says=["no preset"])
        # Presets that the task does not suit are left out.
        for task, models in (
            (["--task", "masked"], ["bert-large", "bert-1.3b", "deberta-v3-large", "roberta-large"]),
            (["--task", "tokens", "--labels", 3], ["qwen3-0.6b"]),
            (["--labels", 3, "--texts", 2], ["bert-large", "bert-1.3b", "deberta-v3-large", "roberta-large"]),
        ):
            found = json.loads(self.run_command(*words, *task, "--json").stdout)["largest_model"]
            self.assertIn(found, models)
        self.refused(*words, "--task", "masked", "--texts", 2, says=["texts is for encoders"])

    def test_compare(self):
        files = []
        for bits in (8, 32):
            text = self.run_command("plan", *NANO, "--states", bits, "--json").stdout
            files.append(self.write(f"{bits}.json", text))
        lines = self.run_command("plan", "--compare", *files).stdout.splitlines()
        self.assertTrue(any(line.split()[:4] == ["state", "bits", "8", "32"] for line in lines))
        other = self.run_command(
            "plan",
            *NANO,
            "--states",
            8,
            "--fused-update",
            "--freeze",
            "norms",
            "--group",
            "biases:lr=2",
            "--document-end",
            10,
            "--json",
        ).stdout
        lines = self.run_command(
            "plan", "--compare", files[0], self.write("other.json", other)
        ).stdout.splitlines()
        rows = {line[:24].strip(): line[24:].split() for line in lines}
        # Every field of the numerics is compared.
        names = {"inputs": "optional inputs"}
        for field in json.loads(other)["numerics"].keys() - {"states_reason"}:
            self.assertIn(names.get(field, field.replace("_", " ")), rows)
        self.assertEqual(rows["fused update"], ["no", "yes", "differs"])
        self.assertEqual(rows["exact"], ["yes", "yes"])
        self.assertEqual(rows["groups"], ["none", "2", "differs"])
        self.assertEqual(rows["optional inputs"], ["none", "1", "differs"])
        self.assertEqual(rows["threads"], ["2", "2"])
        self.assertTrue(any(line.split() == ["blocks", "in", "tiles", "none", "none"] for line in lines))
        long = self.plan(
            "--model", "qwen2.5-0.5b", "--batch", 1, "--seq", 20000, "--states", 8, "--device", "rtx4060"
        )
        tiled = self.write("tiled.json", json.dumps(long))
        (run,) = long.pop("tiles")
        older = self.write("older.json", json.dumps(long))  # an older plan, without the member "tiles"
        for second, difference in (
            (tiled, f"{run['blocks'][1] - run['blocks'][0] + 1} of {run['rows']} rows"),
            (older, "-"),
        ):
            lines = self.run_command("plan", "--compare", files[0], second).stdout.splitlines()
            self.assertIn(
                "blocks in tiles none " + difference + " differs", [" ".join(line.split()) for line in lines]
            )
        unfit = self.plan(*NANO, "--vram", "1KiB", expect=DOES_NOT_FIT)
        for separators in (None, (",", ":")):
            self.assertIn(
                "unfit.json does not fit its budget",
                self.run_command(
                    "plan",
                    "--compare",
                    files[0],
                    self.write("unfit.json", json.dumps(unfit, separators=separators)),
                ).stdout,
            )
        self.refused("plan", "--compare", files[0], self.write("no.json", "{}"), says=["no.json"])
        cut = pathlib.Path(files[0]).read_text()[:300]
        self.refused("plan", "--compare", files[0], self.write("cut.json", cut), says=["cut.json"])

    def test_seq_and_max_seq_contradict(self):
        self.refused("plan", *NANO, "--max", "seq", "--seq", 20, expect=USAGE, says=["--seq", "--max seq"])

    def test_compare_refuses_impossible_tiles(self):
        plan = self.plan(
            "--model", "qwen2.5-0.5b", "--batch", 1, "--seq", 20000, "--states", 8, "--device", "rtx4060"
        )
        plain = self.write("plain.json", json.dumps(plan))
        for tiles in (
            [{"blocks": [0, 24], "rows": 256}],
            [{"blocks": [3, 2], "rows": 256}],
            [{"blocks": [2, 2], "rows": 0}],
            [{"rows": 256}],
            [{"blocks": [4, 4], "rows": 256}, {"blocks": [0, 3], "rows": 256}],
            [{"blocks": [0, 1], "rows": 256, "row": 1}],
            [{"blocks": [0, 2**64 - 1], "rows": 256}],
            [{"blocks": [0, 2], "rows": 256}, {"blocks": [2, 3], "rows": 1024}],
        ):
            forged = self.write("forged.json", json.dumps({**plan, "tiles": tiles}))
            for pair in ((plain, forged), (forged, plain)):
                self.assertEqual(
                    self.refused("plan", "--compare", *pair, says=["forged.json: damaged", "tiles"]).stdout,
                    "",
                )

    def test_compare_plans_of_a_model(self):
        fits, short = (
            self.write(name, self.run_command("plan", *NANO, *more, "--json", expect=code).stdout)
            for name, more, code in (
                ("fits.json", [], DONE),
                ("short.json", ["--vram", "1KiB"], DOES_NOT_FIT),
            )
        )
        output = self.run_command("plan", "--compare", fits, short).stdout
        self.assertEqual(self.run_command("plan", "--compare", fits, short, "--model", "nano").stdout, output)
        # No program has a tile of 100 rows. The comparison finds this only if it has the model.
        forged = self.write(
            "forged.json",
            pathlib.Path(fits)
            .read_text()
            .replace('"tiles": []', '"tiles": [{"blocks": [0, 1], "rows": 100}]'),
        )
        self.run_command("plan", "--compare", fits, forged)
        self.refused("plan", "--compare", fits, forged, "--model", "nano", says=["forged.json", "edited"])
        self.refused(
            "plan", "--compare", short, fits, "--model", "gpt2", says=["short.json", "another model"]
        )

    def test_flags_without_an_effect_are_refused(self):
        plan = self.write("plan.json", self.run_command("plan", *NANO, "--json").stdout)
        for words in (
            ["--batch", 7],
            ["--vram", "3KiB"],
            ["--states", 8],
            ["--host-memory", "1MiB"],
            ["--json"],
            ["--max", "seq"],
            ["--svg", "x.svg"],
        ):
            self.refused("plan", "--compare", plan, plan, *words, expect=USAGE, says=[words[0], "--compare"])
        for words in (["--model", "nano"], ["--weights", "x"], ["--adapter", "x"]):
            self.refused(
                "plan",
                "--max",
                "model",
                "--batch",
                4,
                "--device",
                "rtx4060",
                *words,
                expect=USAGE,
                says=[words[0] + ": ", "--max model"],
            )
        for words in (["--lora", 2], ["--dropout", 0], ["--weights", "x"]):
            self.refused(
                "plan", "--compare", plan, plan, *words, expect=USAGE, says=[words[0] + ": ", "--model"]
            )
        for words in (["--model", "nano"], ["--lora", 2], ["--labels", 3]):
            self.refused("inspect", "nano", *words, expect=USAGE, says=[words[0] + ": ", "nano"])

    def test_inspect_takes_the_model_flags_of_plan(self):
        words = ["--model", "nano", "--lora", 2, "--lora-dropout", 0.1, "--labels", 3]
        plan = self.write(
            "plan.json",
            self.run_command("plan", *words, "--quantize", "nf4", "--vram", "64MiB", "--json").stdout,
        )
        self.assertIn(
            "no plan with these numerics is faster", self.run_command("inspect", plan, *words).stdout
        )
        self.refused("inspect", plan, *words[:-2], says=["plan.json", "another model"])

    def test_a_frontier_of_a_model_that_does_not_fit(self):
        for words in (["--json"], []):
            self.refused(
                "plan",
                *NANO,
                "--frontier",
                "--vram",
                "1KiB",
                *words,
                expect=DOES_NOT_FIT,
                says=["nano does not fit"],
            )

    def test_zero_is_refused(self):
        for flag in ("--batch", "--seq", "--micro-batch"):
            self.refused("plan", *NANO, f"{flag}=0", expect=USAGE, says=[flag, "whole number from 1"])

    def test_a_file_that_is_a_link_or_a_pipe(self):
        target, link = self.write("target.svg", "old"), self.path("link.svg")
        os.symlink(target, link)
        self.run_command("plan", *NANO, "--svg", link)
        self.assertTrue(os.path.islink(link))
        self.assertIn("<svg", pathlib.Path(target).read_text())
        self.refused("plan", *NANO, "--svg", str(self.folder), says=[str(self.folder), "Is a directory"])
        self.run_command("plan", *NANO, "--svg", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".new")], [])

    def test_usage(self):
        self.refused("plan", "--model", "gpt2", expect=USAGE, says=["--batch"])
        fast = json.loads(self.run_command("plan", *NANO, "--fast", "--json").stdout)
        self.assertTrue(fast["numerics"]["exact"], "on the CPU exact mode costs nothing")
        for words, reserve in ((["--reserve", "0"], 0), (["--reserve", "1GiB"], 1 << 30)):
            plan = json.loads(self.run_command("plan", *NANO, "--device", "rtx4090", *words, "--json").stdout)
            self.assertEqual(plan["bytes"]["reserve"], reserve)
            self.assertEqual(plan["bytes"]["peak"], plan["bytes"]["arena"] + reserve)
        self.refused("plan", *NANO, "--wat", expect=USAGE, says=["--wat"])
        self.refused("plan", *NANO, "--batch", "-3", expect=USAGE, says=["--batch"])
        self.refused("plan", *NANO, "--precision", "fp8", expect=USAGE, says=["fp32"])
        self.refused("plan", "--vram", "1GiB", expect=USAGE, says=["--model"])
        self.refused("fly", expect=USAGE)
        self.refused(expect=USAGE)
        self.assertIn("train", self.run_command("--help").stdout)
        self.assertIn("--micro-batch", self.run_command("plan", "--help").stdout)

    def test_help_names_only_existing_flags(self):
        for command in re.findall(
            r"^  (\w+) ", self.run_command("--help").stdout.split("Subcommands:")[1], re.M
        ):
            output = self.run_command(command, "--help").stdout
            flags = {
                flag
                for names in re.findall(r"^  ((?:-\w,)?--[\w-]+(?:,--[\w-]+)*)", output, re.M)
                for flag in names.split(",")
            }
            named = set(re.findall(r"--[a-z][\w-]+", re.sub(r"`.*?`", "", output).replace("--no-NAME", "")))
            self.assertIn("--help", named)
            self.assertEqual(named - flags, set(), command)

    def test_pinned_choices_are_taken(self):
        plan = self.plan(
            *NANO,
            "--vram",
            "1GiB",
            "--micro-batch",
            "5",
            "--states",
            "8",
            "--recompute",
            "full",
            "--precision",
            "bf16",
            "--seq",
            "128",
            "--batch",
            "16",
        )
        self.assertEqual((plan["micro_batch"], plan["last_micro_batch"]), (5, 1))
        self.assertEqual((plan["numerics"]["state_bits"], plan["numerics"]["precision"]), (8, "bf16"))
        self.assertEqual(plan["request"]["sequence"], 128)
        self.assertTrue(plan["recompute"])
        self.check_adds_up(plan)

    def test_absent_devices_can_be_planned_for(self):
        plan = self.plan("--model", "gpt2", "--batch", "32", "--device", "rtx4090")
        self.assertEqual(plan["device"]["name"], "rtx4090")
        self.assertLessEqual(plan["bytes"]["peak"], plan["device"]["memory_bytes"])
        self.check_adds_up(plan)

    def test_more_memory_than_available_is_planned_with_a_warning(self):
        result = self.run_command("plan", *NANO, "--vram", "900TiB", "--json")
        self.assertIn("warning", result.stderr)
        self.assertTrue(json.loads(result.stdout)["fits"])

    def test_every_preset_plans(self):
        for preset in ["gpt2", "smollm-135m", "qwen2.5-0.5b", "llama-1b"]:
            plan = self.plan("--model", preset, "--batch", "4", "--seq", "256", "--vram", "64GiB")
            self.assertTrue(plan["fits"], preset)
            self.check_adds_up(plan)


if __name__ == "__main__":
    unittest.main()
