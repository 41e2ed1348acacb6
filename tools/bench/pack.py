#!/usr/bin/env python3
"""Measures how fast stw_pack solves offset allocation, in this process: CSV files, random dissections of a
rectangle, or buffers like those of models.

  tools/bench/pack.py --library build/src/libstowage.so
                                                full rectangles, by size
  tools/bench/pack.py --library build/src/libstowage.so --capacity N FILE.csv…
                                                files, columns id,lower,upper,size
  tools/bench/pack.py --library build/src/libstowage.so --kinds perfect,inference,training,unrelated \\
                      --sizes 2500,20000        one problem of each kind and size

A rectangle of time and memory is cut recursively by straight cuts at random places until there are n
pieces (perfect: always the largest piece). Packing them again needs every byte at every moment. Every
placement is checked here, by a sweep over time. Times are those of the processor, so that other work on the
machine matters little."""

import argparse
import bisect
import csv
import ctypes
import heapq
import math
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
    begin = time.process_time()
    status = library.stw_pack(
        offsets, lifetimes, ctypes.c_size_t(len(buffers)), ctypes.byref(options), ctypes.byref(result), None
    )
    seconds = time.process_time() - begin
    if status == 0:
        check(buffers, offsets, result)
    elif status != 3001:  # STW_OVER_BUDGET
        raise SystemExit(f"stw_pack: status {status}")
    return result, seconds


def check(buffers, offsets, result):
    """The live buffers, sorted by offset, never overlap."""
    placed = [
        (*buffer, offset) for buffer, offset in zip(buffers, offsets) if buffer[0] < buffer[1] and buffer[2]
    ]
    assert result.height == max((offset + size for *_, size, offset in placed), default=0)
    events = [(lower, 1, offset, size) for lower, _, size, offset in placed]
    events += [(upper, 0, offset, size) for _, upper, size, offset in placed]
    live = []
    for _, starts, offset, size in sorted(events):
        at = bisect.bisect_left(live, (offset, offset + size))
        if not starts:
            assert live.pop(at) == (offset, offset + size)
            continue
        assert at == 0 or live[at - 1][1] <= offset
        assert at == len(live) or offset + size <= live[at][0]
        live.insert(at, (offset, offset + size))


def perfect(draw, count):
    """A rectangle whose largest piece is cut until there are enough."""
    pieces = [(-count << 34, 0, count, 0, 1 << 34)]
    while len(pieces) < count:
        _, lower, upper, low, high = heapq.heappop(pieces)
        if upper - lower > 1 and draw.random() < 0.5:
            at = lower + min(max(int((upper - lower) * draw.uniform(0.2, 0.8)), 1), upper - lower - 1)
            parts = [(lower, at, low, high), (at, upper, low, high)]
        else:
            at = low + min(max(int((high - low) * draw.uniform(0.2, 0.8)), 1), high - low - 1)
            parts = [(lower, upper, low, at), (lower, upper, at, high)]
        for part in parts:
            heapq.heappush(pieces, (-(part[1] - part[0]) * (part[3] - part[2]), *part))
    return [(lower, upper, high - low) for _, lower, upper, low, high in pieces]


def rounded(size):
    return math.ceil(size / 256) * 256


def inference(draw, count):
    """Weights that stay, a chain of activations, and some that are used again much later."""
    end = 2 * count
    buffers = [(0, end, rounded(draw.lognormvariate(11, 1.5))) for _ in range(count // 5)]
    while len(buffers) < count:
        lower = 2 * (len(buffers) - count // 5)
        low, high = draw.choices([(2, 12), (12, 120), (120, 3000)], (7, 2, 1))[0]
        buffers.append(
            (lower, min(end, lower + draw.randint(low, high)), rounded(draw.lognormvariate(12, 1.2)))
        )
    return buffers


def training(draw, count):
    """Layers forward and backward: saved activations nest, temporaries and gradients come in between."""
    layers, steps = count // 24, 16
    end = 2 * layers * steps
    sizes = [draw.lognormvariate(13, 1) for _ in range(14)]
    buffers = []
    for layer in range(layers):
        scale = draw.uniform(0.7, 1.3)
        forward, backward = layer * steps, end - layer * steps - steps
        buffers += [(lower, end, rounded(3 * sizes[0] * scale)) for lower in (0, backward)]
        for k, size in enumerate(sizes):
            upper = forward + k + draw.randint(1, 4) if k % 3 == 2 else end - forward - k - 1
            buffers.append((forward + k, upper, rounded(size * scale)))
        for k in range(8):
            buffers.append(
                (backward + k, min(end, backward + k + draw.randint(1, 6)), rounded(sizes[k] * scale))
            )
    return buffers


def unrelated(draw, count):
    """Lives and sizes of all magnitudes."""
    buffers = []
    for _ in range(count):
        life = min(2 * count, math.ceil(draw.lognormvariate(math.log(2 * count) / 2, 1.5)))
        lower = draw.randrange(2 * count - life + 1)
        buffers.append((lower, lower + life, math.ceil(draw.lognormvariate(10, 1.5))))
    return buffers


KINDS = {"perfect": perfect, "inference": inference, "training": training, "unrelated": unrelated}


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
    parser.add_argument(
        "--kinds", default="", help=f"kinds of buffers instead of rectangles: {', '.join(KINDS)}"
    )
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(pathlib.Path(arguments.library).resolve()))

    problems = [(pathlib.Path(path).stem, read(path)) for path in arguments.files]
    for kind in arguments.kinds.split(",") if arguments.kinds else []:
        for size in map(int, arguments.sizes.split(",")):
            problems.append((f"{kind} {size}", KINDS[kind](random.Random(size), size)))
    if problems:
        columns = ["file", "buffers", "answer", "height", "bound", "gap, %", "decisions", "ms"]
        print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
        for name, buffers in problems:
            result, seconds = pack(library, buffers, arguments.capacity, arguments.node_limit)
            gap = (result.height / result.bound - 1) * 100 if result.bound else 0
            print(
                f"| {name} | {len(buffers)} | {ANSWERS[result.answer]} | {result.height:,} "
                f"| {result.bound:,} "
                f"| {gap:.3f} | {result.nodes:,} | {seconds * 1e3:.1f} |",
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
