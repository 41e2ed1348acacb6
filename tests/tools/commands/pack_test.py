"""`stowage pack`: rows come back with correct offsets. A file that cannot be read and a capacity that cannot
be reached are reported in one line."""

import io
import itertools
import os
import random
import unittest
from csv import QUOTE_ALL, QUOTE_MINIMAL, reader, writer

from support import DOES_NOT_FIT, FAILED, USAGE, CommandTest

# At most 7 bytes are alive at the same time, but every placement takes at least 8.
OUT_OF_REACH = [(0, 1, 3), (0, 3, 3), (1, 4, 2), (2, 5, 2), (3, 6, 2), (4, 8, 3), (6, 8, 3)]


def csv(buffers):
    return "id,lower,upper,size\n" + "".join(f"{i},{l},{u},{s}\n" for i, (l, u, s) in enumerate(buffers))


def cut(draw, lower, upper, size, count):
    """A full rectangle of time and memory in `count` pieces."""
    if count == 1:
        return [(lower, upper, size)]
    first = draw.randrange(1, count)
    if draw.random() < 0.5:
        part = draw.randrange(first, size - (count - first) + 1)
        return cut(draw, lower, upper, part, first) + cut(draw, lower, upper, size - part, count - first)
    part = draw.randrange(lower + first, upper - (count - first) + 1)
    return cut(draw, lower, part, size, first) + cut(draw, part, upper, size, count - first)


class PackTest(CommandTest):
    def pack(self, text, *words, **more):
        return self.run_command("pack", self.write("buffers.csv", text), *words, **more)

    def check_rows(self, buffers, text):
        """Every pair of rows is apart in time or memory. Returns the height."""
        lines = text.splitlines()
        self.assertEqual(lines[0], "id,lower,upper,size,offset")
        rows = [tuple(map(int, line.split(","))) for line in lines[1:]]
        self.assertEqual([row[:4] for row in rows], [(i, *buffer) for i, buffer in enumerate(buffers)])
        for (_, lower, upper, size, offset), (_, lower2, upper2, size2, offset2) in itertools.combinations(
            rows, 2
        ):
            self.assertTrue(
                upper <= lower2 or upper2 <= lower or offset + size <= offset2 or offset2 + size2 <= offset
            )
        return max(row[3] + row[4] for row in rows)

    def test_full_rectangles(self):
        for seed in range(5):
            buffers = cut(random.Random(seed), 0, 100000, 1 << 20, 60)
            result = self.pack(csv(buffers), "--capacity", "1MiB")
            self.assertEqual(self.check_rows(buffers, result.stdout), 1 << 20)
            self.assertEqual(
                result.stderr, "height 1048576, bound 1048576, gap 0.00 %: proven: no placement is lower\n"
            )
            self.assertEqual(self.pack(csv(buffers)).stdout, result.stdout)

    def test_lowest_is_proven(self):
        result = self.pack(csv(OUT_OF_REACH))
        self.assertEqual(self.check_rows(OUT_OF_REACH, result.stdout), 8)
        self.assertRegex(result.stderr, r"^height 8, bound 8, gap 0\.00 %: proven.*\n$")
        few = self.pack(csv(OUT_OF_REACH), "--node-limit", 1)
        self.assertRegex(few.stderr, r"^height \d+, bound 7, gap \d+\.\d\d %: not proven to be the lowest\n$")

    def test_capacity_out_of_reach(self):
        for capacity in (3, 6, 7):
            result = self.pack(csv(OUT_OF_REACH), "--capacity", capacity, expect=DOES_NOT_FIT)
            self.assertEqual(result.stdout, "")
            self.assertRegex(
                result.stderr, rf"^stowage: error: proven impossible: no placement in {capacity} bytes; .*\n$"
            )
        out = self.path("out.csv")
        result = self.pack(
            csv(OUT_OF_REACH), "--capacity", 7, "--node-limit", 1, "--out", out, expect=DOES_NOT_FIT
        )
        self.assertEqual(result.stdout, "")
        self.assertRegex(
            result.stderr, r"^stowage: error: not found within \d+ decisions: a placement in 7 bytes; .*\n$"
        )
        self.assertFalse(os.path.exists(out))

    def test_columns_keep_their_order_and_unknown_columns_are_copied(self):
        text = "\ufeffname, size ,upper,id,lower\r\nfirst one,5,9,x1,0\r\n\r\n  \r\nsecond,7,12,x2,9\r\n"
        self.assertEqual(
            self.pack(text).stdout,
            "name,size,upper,id,lower,offset\nfirst one,5,9,x1,0,0\nsecond,7,12,x2,9,0\n",
        )
        again = "id,offset,lower,upper,size\na,,-5,5,10\nb,,0,9,4\n"
        self.assertIn(
            self.pack(again).stdout,
            (
                "id,offset,lower,upper,size\na,0,-5,5,10\nb,10,0,9,4\n",
                "id,offset,lower,upper,size\na,4,-5,5,10\nb,0,0,9,4\n",
            ),
        )

    def test_columns_that_constrain(self):
        """Alignment, gaps and given offsets, in MiniMalloc's format."""
        for text, offsets, height in [
            ("id,lower,upper,size,alignment\na,0,10,3,1\nb,0,10,8,64\nc,0,10,5,64\n", ["8", "0", "64"], 69),
            ("id,lower,upper,size,alignment\na,0,10,3,\nb,0,10,8,4\n", ["8", "0"], 11),
            ("id,lower,upper,size,gaps\na,0,10,4,3-7\nb,3,7,4,\n", ["0", "0"], 4),
            ("id,lower,upper,size,gaps\na,0,10,4,1-2  3-7@0:1\nb,3,7,3,\n", ["0", "1"], 4),
            ("id,lower,upper,size,gaps\na,-9,10,4,-3-7\nb,-3,7,4,\n", ["0", "0"], 4),
            ("id,lower,upper,size,offset\na,0,4,1,5\nb,0,4,6,\nc,0,4,5,\n", ["5", "6", "0"], 12),
        ]:
            result = self.pack(text)
            lines = result.stdout.splitlines()
            self.assertEqual([line.split(",")[-1] for line in lines[1:]], offsets, text)
            has_offsets = ",offset" in text
            self.assertEqual(
                [line if has_offsets else line.rsplit(",", 1)[0] for line in lines][0], text.splitlines()[0]
            )
            self.assertTrue(
                result.stderr.startswith(f"height {height}, bound {height}, gap 0.00 %: proven"),
                result.stderr,
            )
            self.assertEqual("1 of 3 offsets come from the file" in result.stderr, has_offsets)
        free = self.pack("id,lower,upper,size,offset\na,0,4,1,5\nb,0,4,6,\nc,0,4,5,\n", "--ignore-offsets")
        self.assertEqual(free.stderr, "height 12, bound 12, gap 0.00 %: proven: no placement is lower\n")
        self.assertNotIn("a,0,4,1,5", free.stdout)
        self.pack(
            "id,lower,upper,size,alignment\nb,0,10,8,64\nc,0,10,5,64\n", "--capacity", 68, expect=DOES_NOT_FIT
        )

    def test_older_names_of_columns(self):
        """The names of older versions of MiniMalloc. "end" is the last moment of a lifetime, inclusive."""
        self.assertEqual(
            self.pack("buffer,start,end,size\na,0,4,4\nb,5,9,4\n").stdout,
            "buffer,start,end,size,offset\na,0,4,4,0\nb,5,9,4,0\n",
        )
        self.assertIn("height 8,", self.pack("buffer_id,begin,end,size\na,0,4,4\nb,4,9,4\n").stderr)
        self.assertIn("height 4,", self.pack("id,begin,upper,size\na,0,4,4\nb,4,9,4\n").stderr)
        self.assertIn("height 4,", self.pack("id,start,end,size,gaps\na,0,9,4,3-6\nb,3,6,4,\n").stderr)

    def test_warns_of_columns_that_are_similar_to_a_known_one(self):
        result = self.pack("id,lower,upper,size,align,hint,name\na,0,4,4,8,0,x\n")
        self.assertEqual(result.stderr.count("warning"), 1)
        self.assertRegex(
            result.stderr, r'buffers.csv: column "align" is copied and constrains nothing; .*alignment'
        )
        self.assertEqual(result.stdout, "id,lower,upper,size,align,hint,name,offset\na,0,4,4,8,0,x,0\n")

    def test_quoted_fields(self):
        text = (
            '"id","the ""name""", lower ,"upper","size"\r\n"a,1", "two\r\nlines" ,0,"9",5\r\n'
            '"a""1",,9,12,7\na 1," blank ",9,12,"7"\n'
        )
        packed = self.pack(text).stdout
        self.assertIn(
            packed,
            (
                'id,"the ""name""",lower,upper,size,offset\n"a,1","two\r\nlines",0,9,5,0\n'
                f'"a""1",,9,12,7,{first}\na 1," blank ",9,12,7,{7 - first}\n'
                for first in (0, 7)
            ),
        )
        self.assertEqual(self.pack(packed).stdout, packed)
        # A second byte-order mark after the file's own is part of a column's name. The output has no mark
        # before it.
        packed = self.pack("\ufeff\ufeffname,id,lower,upper,size\nx,0,0,1,1\n").stdout
        self.assertEqual(packed, '"\ufeffname",id,lower,upper,size,offset\nx,0,0,1,1,0\n')
        self.assertEqual(self.pack(packed).stdout, packed)

    def test_fields_of_any_characters(self):
        """Reads the files that Python writes, and writes files that Python reads."""
        draw = random.Random(3)
        names = ["".join(draw.choice("ab ,\"\n\r\t'") for _ in range(draw.randrange(9))) for _ in range(200)]
        for quoting in (QUOTE_MINIMAL, QUOTE_ALL):
            around = "|" if quoting == QUOTE_MINIMAL else ""  # only quotes keep blanks at the ends of a field
            rows = [["id", "name", "lower", "upper", "size"]]
            rows += [
                [f"{i}{name}{around}", around + name + around, "0", "1", "1"] for i, name in enumerate(names)
            ]
            text = io.StringIO(newline="")
            writer(text, quoting=quoting).writerows(rows)
            packed = list(reader(io.StringIO(self.pack(text.getvalue()).stdout, newline="")))
            self.assertEqual([row[:-1] for row in packed], rows)
            self.assertEqual(sorted(int(row[-1]) for row in packed[1:]), list(range(len(names))))

    def test_lines_that_end_in_carriage_returns_alone(self):
        """Such a file is a single long line. A message quotes only its beginning."""
        for text in (
            "id,lower,upper,size" + "\r1,0,4,5" * 999,
            'id,lower,upper,size\n"' + "1\r" * 999 + '" 2,0,4,5',
            "id,lower,upper,size\n" + "é" * 9999 + ",0,4,5\n" + "é" * 9999 + ",0,4,5",
            "id,lower,upper,size\n1,0,4," + "5" * 9999,
        ):
            result = self.pack(text, expect=FAILED)
            self.assertLess(len(result.stderr), 400)
            self.assertIn("…", result.stderr)

    def test_nothing_to_place(self):
        self.assertEqual(self.pack("id,lower,upper,size").stdout, "id,lower,upper,size,offset\n")
        self.assertEqual(
            self.pack("id,lower,upper,size\n1,4,4,9\n").stdout, "id,lower,upper,size,offset\n1,4,4,9,0\n"
        )

    def test_standard_input_and_out_file(self):
        path, out = self.write("buffers.csv", csv(OUT_OF_REACH)), self.path("out.csv")
        expected = self.run_command("pack", path).stdout
        for name in ("-", "/dev/stdin"):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(self.run_command("pack", name, stdin=file).stdout, expected)
        self.assertEqual(self.run_command("pack", path, "--out", out).stdout, "")
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), expected)

    def test_bad_files(self):
        good = "id,lower,upper,size\n"
        for text, says in [
            ("", ["buffers.csv: ", "header"]),
            ("\n \n", ["buffers.csv: ", "header"]),
            ("1,2,3,4\n", ["buffers.csv:1: ", '"id"', "found 0"]),
            ("id,lower,upper\n", ["buffers.csv:1: ", '"size"']),
            ("id,lower,upper,size,lower\n", ["buffers.csv:1: ", '"lower"', "found 2"]),
            ("id,lower,upper,size,offset,offset\n", ["buffers.csv:1: ", '"offset"', "found 2"]),
            (good + "1,0,1,2\n2,0,1\n", ["buffers.csv:3: ", "4 fields", "found 3"]),
            (good + "\n\n1,0,1,2,3\n", ["buffers.csv:4: ", "4 fields", "found 5"]),
            (good + "1,0,1,\n", ["buffers.csv:2: size", '""']),
            (good + "1,0,1,-3\n", ["buffers.csv:2: size", '"-3"']),
            (good + "1,0,1,99999999999999999999\n", ["buffers.csv:2: size", "64 bits"]),
            (good + "1,0,1.5,3\n", ["buffers.csv:2: upper", '"1.5"']),
            (good + "1,+0,1,3\n", ["buffers.csv:2: lower", '"+0"']),
            (good + '"1",0,1,"3 "\n', ["buffers.csv:2: size", '"3 "']),
            (good + '1,0,1,3\n"2,0,1,3\n', ["buffers.csv:3: ", "quotes", "no end"]),
            (good + '"1""\n",0,1,3\n2,0,1,"3', ["buffers.csv:4: ", "no end"]),
            (good + '"1" 2,0,1,3\n', ["buffers.csv:2: ", "comma", "found 2"]),
            (good + '"1,2",0,1\n', ["buffers.csv:2: ", "4 fields", "found 3"]),
            (good + '"a\nb",0,1,3\n"a\nb",0,1,3\n', ["buffers.csv:4: id", "line 2"]),
            (good + "1,5,4,3\n", ["buffers.csv:2: upper", "5 or more", "found 4"]),
            (good + "a,0,1,3\nb,0,1,3\na,0,1,3\n", ["buffers.csv:4: id", '"a"', "line 2"]),
            (good + "1,0,1,18446744073709551615\n", ["2^62"]),
            ("id,lower,start,upper,size\n", ["buffers.csv:1: ", '"lower" or "begin" or "start"', "found 2"]),
            ("id,lower,upper,size,alignment\na,0,1,3,0\n", ["buffers.csv:2: alignment", "1 or more"]),
            ("id,lower,upper,size,alignment\na,0,1,3,x\n", ["buffers.csv:2: alignment", '"x"']),
            ("id,lower,upper,size,gaps\na,0,9,3,3:4\n", ["buffers.csv:2: gaps", "LOWER-UPPER", '"3:4"']),
            ("id,lower,upper,size,gaps\na,0,9,3,3-4@1\n", ["buffers.csv:2: gaps", '"3-4@1"']),
            ("id,lower,upper,size,gaps\na,0,9,3,3-4x\n", ["buffers.csv:2: gaps", '"3-4x"']),
            (
                "id,lower,upper,size,gaps\na,0,9,3,3-10\n",
                ["buffers.csv: ", 'buffer "a"', "gap 3 to 10", "outside"],
            ),
            ("id,lower,upper,size,gaps\na,0,9,3,3-6 5-7\n", ["buffers.csv: ", 'buffer "a"', "overlap"]),
            ("id,lower,upper,size,gaps\na,0,9,3,3-6@1:4\n", ["buffers.csv: ", 'buffer "a"', "1 to 4"]),
            ("id,lower,upper,size,offset\na,0,9,3,-1\n", ["buffers.csv:2: offset", '"-1"']),
            (
                "id,lower,upper,size,offset\nx,0,9,3,\na,0,9,3,4\nb,8,9,3,2\n",
                ["buffers.csv: ", 'buffer "a"', 'buffer "b"', "overlap"],
            ),
            (
                "id,lower,upper,size,offset,alignment\na,0,9,3,5,4\n",
                ["buffers.csv: ", 'buffer "a"', "no multiple of its alignment, 4"],
            ),
            ("id,start,end,size\n1,5,3,3\n", ["buffers.csv:2: end", "4 or more", "found 3"]),
            ("id,start,end,size\n1,5,9223372036854775807,3\n", ["buffers.csv:2: end", "9223372036854775807"]),
        ]:
            result = self.refused("pack", self.write("buffers.csv", text), says=says)
            self.assertEqual(result.stdout, "", text)
        self.refused("pack", self.path("missing.csv"), says=["missing.csv"])
        self.refused("pack", str(self.folder), says=[str(self.folder)])
        self.refused(
            "pack",
            self.write("buffers.csv", good + "1,0,1,3\n"),
            "--out",
            self.path("no/such.csv"),
            says=["no/such.csv"],
        )

    def test_usage(self):
        path = self.write("buffers.csv", csv(OUT_OF_REACH))
        self.refused("pack", expect=USAGE, says=["FILE"])
        self.refused("pack", path, "--capacity", "0", expect=USAGE, says=["--capacity"])
        self.refused("pack", path, "--capacity", "8 apples", expect=USAGE, says=["--capacity"])
        self.refused("pack", path, "--node-limit", "0", expect=USAGE, says=["--node-limit"])
        self.refused("pack", path, path, expect=USAGE)
        self.assertIn("--capacity BYTES", self.run_command("pack", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
