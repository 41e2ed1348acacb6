"""`stowage plan --html, --svg, --csv`: self-contained files, and a page that works in a real browser."""

import collections
import csv
import json
import pathlib
import re
import struct
import unittest
import xml.etree.ElementTree
import zlib

from support import DOES_NOT_FIT, FAILED, CommandTest, files_of

from plans import browser

NANO = ["plan", "--model", "nano", "--threads", "2", "--batch", "12", "--vram", "64MiB"]
# A budget so tight that the plan recomputes.
GPT2 = ["plan", "--model", "gpt2", "--threads", "2", "--batch", "32", "--seq", "512", "--vram", "2300MiB"]
CLASSES = ["parameters", "gradients", "optimizer", "saved_activations", "transient", "workspace", "inputs"]
SHOWN = (
    "const t = document.getElementById('tip'); return getComputedStyle(t).display === 'none' ? null "
    ": t.innerText"
)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def pixels(png):
    """The pixels of an 8-bit PNG, a bytes object each."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6)
        elif kind == b"IDAT":
            data += body
        at += 12 + size
    wide = 3 if colour == 2 else 4
    raw, stride, above, out = zlib.decompress(data), width * wide, bytearray(width * wide), []
    for start in range(0, len(raw), stride + 1):
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for i in range(stride):
            left, up, corner = (row[i - wide], above[i], above[i - wide]) if i >= wide else (0, above[i], 0)
            if kind == 1:
                row[i] = row[i] + left & 255
            elif kind == 2:
                row[i] = row[i] + up & 255
            elif kind == 3:
                row[i] = row[i] + (left + up) // 2 & 255
            elif kind == 4:
                guess = left + up - corner
                row[i] = row[i] + min((left, up, corner), key=lambda each: abs(guess - each)) & 255
        out += [bytes(row[i : i + 3]) for i in range(0, stride, wide)]
        above = row
    return out


class Pictures(CommandTest):
    def picture(self, kind, words=NANO):
        path = self.path("plan." + kind)
        self.run_command(*words, "--" + kind, path)
        return path

    def text_of(self, kind, words=NANO):
        return pathlib.Path(self.picture(kind, words)).read_text(encoding="utf-8")


class PictureTest(Pictures):
    def test_all_files_and_json_at_once(self):
        files = {kind: self.path("plan." + kind) for kind in ("html", "svg", "csv")}
        words = [word for kind, path in files.items() for word in ("--" + kind, path)]
        result = self.run_command(*NANO, "--json", *words)
        self.assertEqual(json.loads(result.stdout)["format"], "stowage-plan")
        self.assertEqual(result.stderr, "")
        first = files_of(self.folder)
        self.assertEqual(
            sorted(pathlib.Path(name).name for name in first), ["plan.csv", "plan.html", "plan.svg"]
        )
        self.run_command(*NANO, *words)
        self.assertEqual(first, files_of(self.folder), "the same every time")

    def test_a_plan_that_does_not_fit_has_a_picture(self):
        path = self.path("plan.html")
        self.run_command(*NANO[:-1], "1MiB", "--html", path, expect=DOES_NOT_FIT)
        self.assertIn("This does not fit", pathlib.Path(path).read_text(encoding="utf-8"))

    def test_a_file_that_cannot_be_written(self):
        self.refused(*NANO, "--html", self.path("no/such/folder.html"), expect=FAILED, says=["folder.html"])

    def test_the_page_loads_nothing_from_outside(self):
        for kind in ("html", "svg"):
            text = self.text_of(kind).replace('xmlns="http://www.w3.org/2000/svg"', "")
            self.assertIsNone(re.search(r"https?:|//[a-z]|url\(|@import|<img|<iframe|src=", text), kind)

    def test_svg_is_xml_with_a_description(self):
        root = xml.etree.ElementTree.fromstring(self.text_of("svg"))
        name = "{http://www.w3.org/2000/svg}"
        self.assertTrue(root.find(name + "title").text)
        self.assertTrue(root.find(name + "desc").text)
        marks = [group for group in root.iter(name + "g") if group.get("class") == "marks"][0]
        titles = [rect.find(name + "title").text for rect in marks]
        self.assertTrue(any("transformer.wte.weight\nparameters" in title for title in titles))
        self.assertTrue(any("kept for backward" in title for title in titles))

    def test_csv_is_a_packing(self):
        with open(self.picture("csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["id", "lower", "upper", "size", "offset", "name", "class"])
        boxes = [tuple(int(row[key]) for key in ("lower", "upper", "offset", "size")) for row in rows]
        for i, (lower, upper, offset, size) in enumerate(boxes):
            for other_lower, other_upper, other_offset, other_size in boxes[:i]:
                self.assertTrue(
                    upper <= other_lower
                    or other_upper <= lower
                    or offset + size <= other_offset
                    or other_offset + other_size <= offset
                )
        plan = json.loads(self.run_command(*NANO, "--json").stdout)
        self.assertEqual(max(offset + size for _, _, offset, size in boxes), plan["bytes"]["arena"])
        self.assertLessEqual({row["class"] for row in rows}, set(CLASSES))

    def test_contrast(self):
        text = self.text_of("html")
        for theme in re.findall(r":root, svg:root \{(.*?)\}", text, re.S):
            colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", theme))
            for back in ("page", "panel"):
                for c in range(7):
                    self.assertGreaterEqual(contrast(colours[f"c{c}"], colours[back]), 3, (c, back))
                for ink in ("text", "soft"):
                    self.assertGreaterEqual(contrast(colours[ink], colours[back]), 4.5, (ink, back))
            for c in range(7):
                self.assertGreaterEqual(contrast(colours[f"c{c}"], colours[f"on{c}"]), 4.5, c)
        self.assertEqual(len(re.findall(r":root, svg:root \{", text)), 2, "light and dark")


@unittest.skipIf(browser.missing(), browser.missing())
class PageTest(Pictures):
    """The page in Chromium."""

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def place(self, selector):
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        return self.browser.run(
            "const r = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [r.left, r.top, r.width, r.height]",
            selector,
        )

    def tip(self):
        """The text of the tooltip. Waits until it shows, because the browser handles gestures
        asynchronously."""
        return self.browser.wait(SHOWN, 10)

    def no_tip(self):
        return self.browser.wait(f"return (() => {{ {SHOWN} }})() === null", 10)

    def test_every_theme_and_width(self):
        views = [
            (kind, width, dark)
            for kind, width in (("html", 1280), ("html", 390), ("svg", 1280))
            for dark in (False, True)
        ]
        for words in (NANO, GPT2):
            for kind, width, dark in views:
                with self.subTest(model=words[2], kind=kind, width=width, dark=dark):
                    self.browser.show(self.picture(kind, words), width, 850, dark, phone=width < 1000)
                    colours = collections.Counter(pixels(self.browser.picture(scale=0.25)))
                    page, count = colours.most_common(1)[0]
                    self.assertGreater(len(colours), 50)
                    self.assertLess(count, 0.95 * sum(colours.values()))
                    self.assertEqual(max(page) < 64, dark, "the page follows the theme")
                    wide = self.browser.run("return document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, "nothing to scroll sideways")
                    self.assertEqual(self.browser.complaints(), [])

    def test_pointing_at_the_largest_rectangle(self):
        self.browser.show(self.picture("html"), 1280, 900)
        self.place("#arena")
        index, x, y = self.browser.run("""
            const marks = [...document.querySelectorAll('#arena .marks rect')];
            const all = marks.map(r => r.getBoundingClientRect());
            const areas = all.map(r => r.width * r.height), n = areas.indexOf(Math.max(...areas)), r = all[n];
            return [n, r.left + r.width / 3, r.top + r.height / 2]""")
        self.assertTrue(self.no_tip())
        self.browser.point(x, y)
        name, size = self.browser.run(
            """
            const data = JSON.parse(document.getElementById('data').textContent), n = 9 * arguments[0];
            return [data.labels[data.marks[n]], data.marks[n + 4]]""",
            index,
        )
        shown = self.tip()
        self.assertIn(name, shown)
        self.assertIn(f"({size:,} bytes)", shown)
        self.assertRegex(shown, r"Lives (from|through|during) ")
        self.browser.point(2, 2)
        self.assertTrue(self.no_tip())
        x, y, width, height = self.place("#live")
        self.browser.point(x + width / 3, y + height / 2)
        self.assertRegex(self.tip(), r"MiB live\n(.*\n)*.*parameters")

    def test_pointing_at_the_frontier(self):
        self.browser.show(self.picture("html", GPT2), 1280, 900)
        x, y, width, height = self.place("#frontier")
        self.browser.point(
            x + width * 7 / 8, y + height / 4
        )  # near the points: they begin at the smallest budget, on the right
        self.assertRegex(self.tip(), r"micro-batch \d+, \d+ loss chunk")
        self.assertIn("tokens/s", self.tip())
        self.assertGreater(
            self.browser.run(
                "return JSON.parse(document.getElementById('data').textContent).frontier.length"
            ),
            4,
        )

    def test_tapping_on_a_phone(self):
        self.browser.show(self.picture("html", GPT2), 390, 844, phone=True)
        x, y, width, height = self.place("#arena")
        for offset in (12, 6, 1, -4):
            self.browser.tap(x + width / 2, y + height - offset)
            self.assertIn("transformer.wte.weight", self.tip() or "")
        self.browser.tap(x + width / 2, y + height + 40)
        self.assertTrue(self.no_tip())
        self.browser.tap(x + width / 2, y + height - 6)
        self.assertIn("transformer.wte.weight", self.tip() or "")
        left, right = self.browser.run(
            "const r = document.getElementById('tip').getBoundingClientRect(); return [r.left, r.right]"
        )
        self.assertGreaterEqual(left, 0)
        self.assertLessEqual(right, 390)

    def test_keys(self):
        self.browser.show(self.picture("html"), 1280, 900)
        seen = set()
        for plot in ("arena", "live", "frontier"):
            self.browser.run("document.getElementById(arguments[0]).focus()", plot)
            for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"):
                self.browser.press(key)
                self.assertTrue(self.tip())
                seen.add(self.tip())
            self.browser.press("Escape")
            self.assertTrue(self.no_tip())
        self.assertGreater(len(seen), 5)

    def test_legend_hides_and_zoom_zooms(self):
        self.browser.show(self.picture("html", GPT2), 1280, 900)
        opacity = "return getComputedStyle(document.querySelector('#arena .c3')).opacity"
        for expected in ("0.06", "1"):
            self.browser.run("document.querySelector('.legend [data-c=\"3\"]').click()")
            self.assertEqual(self.browser.run(opacity), expected)
        self.browser.run("document.getElementById('zoom').click()")
        x, y, width, height = self.place("#arena")
        self.browser.point(x + width / 3, y + height / 2)
        self.assertIn("saved activations", self.tip())
        self.assertGreaterEqual(
            self.browser.run(
                "return [...document.querySelectorAll('.ys .z')].filter(e => e.offsetWidth).length"
            ),
            4,
        )

    def test_names_cannot_inject_html(self):
        text = self.text_of("html")
        evil = r'"\u003cimg src=x onerror=\"document.title=1\">'
        self.assertIn('"labels":["', text)
        head, labels = text.split('"labels":[', 1)
        path = self.write(
            "evil.html", head + '"labels":[' + labels.replace('"transformer', evil + "transformer")
        )
        self.browser.show(path, 1280, 900)
        x, y, width, height = self.place("#arena")
        self.browser.point(x + width / 3, y + height - 4)
        self.assertIn('<img src=x onerror="document.title=1">transformer', self.tip())
        self.assertEqual(
            self.browser.run("return document.getElementById('tip').querySelectorAll('img').length"), 0
        )
        self.assertEqual(self.browser.complaints(), [])


if __name__ == "__main__":
    unittest.main()
