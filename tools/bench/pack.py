#!/usr/bin/env python3
"""Measures how fast stw_pack solves offset allocation, in this process: CSV files, or random dissections
of a rectangle.

  tools/bench/pack.py --library build/src/libstowage.so
                                                full rectangles, by size
  tools/bench/pack.py --library build/src/libstowage.so --capacity N FILE.csv…
                                                files, columns id,lower,upper,size

A rectangle of time and memory is cut recursively by straight cuts at random places until there are n
pieces. Packing them again needs every byte at every moment. Every placement is checked here, pair by pair."""

import argparse
import csv
import ctypes
import pathlib
import random
import statistics
import time

ANSWERS = ["optimal", "fits", "impossible", "unknown"]


class Lifetime(ctypes.Structure):
    _fields_ = [("lower", ctypes.c_int64), ("upper", ctypes.c_int64), ("size", ctypes.c_uint64)]


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("set_mask", ctypes.c_uint32),
        ("capacity", ctypes.c_uint64),
        ("node_limit", ctypes.c_uint64),
    ]


class Result(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("answer", ctypes.c_uint32),
        ("height", ctypes.c_uint64),
        ("bound", ctypes.c_uint64),
        ("nodes", ctypes.c_uint64),
    ]


def pack(library, buffers, capacity, node_limit):
    """Returns the result and its seconds."""
    lifetimes = (Lifetime * len(buffers))(*buffers)
    offsets = (ctypes.c_uint64 * len(buffers))()
    options = Options(ctypes.sizeof(Options), 0, capacity, node_limit)
    result = Result(ctypes.sizeof(Result))
    begin = time.perf_counter()
    status = library.stw_pack(
        offsets, lifetimes, ctypes.c_size_t(len(buffers)), ctypes.byref(options), ctypes.byref(result), None
    )
    seconds = time.perf_counter() - begin
    if status == 0:
        check(buffers, offsets, result)
    elif status != 3001:  # STW_OVER_BUDGET
        raise SystemExit(f"stw_pack: status {status}")
    return result, seconds


def check(buffers, offsets, result):
    placed = [(*buffer, offset) for buffer, offset in zip(buffers, offsets) if buffer[0] < buffer[1]]
    assert result.height == max((offset + size for *_, size, offset in placed), default=0)
    for i, (lower, upper, size, offset) in enumerate(placed):
        for lower2, upper2, size2, offset2 in placed[:i]:
            assert upper <= lower2 or upper2 <= lower or offset + size <= offset2 or offset2 + size2 <= offset


def cut(draw, lower, upper, size, count, even):
    """`even`: both sides of a cut get about the same number of pieces; otherwise any number."""
    if count == 1 or (upper - lower < count and size < count):
        return [(lower, upper, size)]
    spread = range(max(1, count * 3 // 8), max(1, count * 5 // 8) + 1) if even else range(1, count)
    first = min(draw.choice(spread), count - 1)
    if upper - lower < count or (size >= count and draw.random() < 0.5):
        part = draw.randrange(first, size - (count - first) + 1)
        return cut(draw, lower, upper, part, first, even) + cut(
            draw, lower, upper, size - part, count - first, even
        )
    part = draw.randrange(lower + first, upper - (count - first) + 1)
    return cut(draw, lower, part, size, first, even) + cut(draw, part, upper, size, count - first, even)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [tuple(int(row[name]) for name in ("lower", "upper", "size")) for row in csv.DictReader(file)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", required=True)
    parser.add_argument("--capacity", type=int, default=0, help="of files; 0: as low as possible")
    parser.add_argument("--node-limit", type=int, default=0, help="0: the library's default")
    parser.add_argument("--count", type=int, default=50, help="rectangles of each size")
    parser.add_argument("--sizes", default="20,50,100,150,200,300,500", help="pieces")
    parser.add_argument(
        "--times", type=int, default=1000000, help="length of a rectangle: few times, many shared cuts"
    )
    parser.add_argument("--even", action="store_true", help="cut into halves of about as many pieces")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(pathlib.Path(arguments.library).resolve()))

    if arguments.files:
        print("| file | buffers | answer | height | bound | decisions | ms |\n|---|---|---|---|---|---|---|")
        for path in arguments.files:
            buffers = read(path)
            result, seconds = pack(library, buffers, arguments.capacity, arguments.node_limit)
            print(
                f"| {pathlib.Path(path).stem} | {len(buffers)} | {ANSWERS[result.answer]} | "
                f"{result.height:,} | {result.bound:,} | {result.nodes:,} | {seconds * 1e3:.1f} |",
                flush=True,
            )
        return
    capacity = 1 << 20
    print("| pieces | solved | median ms | mean ms | worst ms |\n|---|---|---|---|---|")
    for pieces in map(int, arguments.sizes.split(",")):
        solved, times = 0, []
        for seed in range(arguments.count):
            draw = random.Random(pieces * 100000 + seed)
            buffers = cut(draw, 0, arguments.times, capacity, pieces, arguments.even)
            draw.shuffle(buffers)
            result, seconds = pack(library, buffers, 0, arguments.node_limit)
            solved += result.height == capacity
            times.append(seconds * 1e3)
        print(
            f"| {pieces} | {solved}/{arguments.count} | {statistics.median(times):.2f} | "
            f"{statistics.mean(times):.2f} | {max(times):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
