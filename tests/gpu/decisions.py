"""What the figures of a call on a card decide, and what to do next. plan.py prints it as its last block.

Each switch is a row: its name, the place in the sources that it changes, and a function that turns the
figures (runs.figures) into a sentence. A sentence that begins with CHANGE asks for that change."""

import collections

CHANGE, KEEP, OPEN = "CHANGE", "keep", "open"
GAIN = 1.01  # a variant is taken if it is at least this much faster
REGRET = 0.05  # a tile that takes longer than the fastest by more than this makes the estimate wrong
SPEED_MARK, TOKENS_MARK, LLAMA_SHARE = 1.15, 500_000, 0.6
LOSS_APART = 1e-2  # the most by which the loss of wgmma may differ from that of mma.sync
MIB_PLANNED = 1024  # the reserve of the profiles
GPT2 = "tokens/s of gpt2, T 1024, bf16, "
LLAMA_PEAK = "share of the peak of llama-1b"

Switch = collections.namedtuple("Switch", "name place decide")


def last(figures, name):
    return figures[name][-1] if name in figures else None


def worst(figures, name):
    return min(figures[name]) if name in figures else None


def missing(*names):
    return f"{OPEN}: no figure of {', '.join(names)}"


def wgmma(figures):
    bits, values = last(figures, "bits of wgmma"), worst(figures, "values wgmma")
    apart = last(figures, "loss of wgmma, difference")
    fast, slow = last(figures, GPT2 + "wgmma"), last(figures, GPT2 + "tensor")
    wrong = [
        words
        for words, holds in (
            ("its bits differ", bits is None or bits == 1),
            ("its values are wrong", values is None or values == 1),
            (f"its loss is {apart or 0:.1e} away", apart is None or apart <= LOSS_APART),
            ("it is no faster than tensor", fast is None or slow is None or fast > slow),
        )
        if not holds
    ]
    if wrong:
        return f"{KEEP} tensor: {', '.join(wrong)}"
    lacking = [
        name
        for name, value in (
            ("bits", bits),
            ("values", values),
            ("loss", apart),
            ("tokens/s of wgmma", fast),
            ("tokens/s of tensor", slow),
        )
        if value is None
    ]
    if lacking:
        return missing(*lacking)
    return f"{CHANGE} to wgmma: bits, values and loss hold, {fast / slow:.2f} times the speed of tensor"


def fence(figures):
    gains = [last(figures, "gain of without the fence, up")]
    if None in gains:
        return missing("products without the fence")
    price = max(figures["gain of without the fence, up"]) - 1
    same = worst(figures, "bits without the fence") == 1
    bits = "the same bits this time, which proves nothing" if same else "OTHER BITS"
    if price > 0.03:
        return (
            f"{CHANGE}: a producer warp would save up to {100 * price:.1f} % of a product; without it, {bits}"
        )
    return f"{KEEP} the fence: it costs at most {100 * price:.1f} % of a product; without it, {bits}"


def stages_of_small(figures):
    gains = {m: last(figures, "gain of 6 stages of 64x128, " + m) for m in ("attended", "qkv", "up")}
    if None in gains.values():
        return missing("6 stages of 64x128")
    text = ", ".join(f"{name} {gain:.3f}" for name, gain in gains.items())
    if gains["attended"] < 1 / GAIN:
        return f"{CHANGE}: 4 stages always; times as fast with 6: {text}"
    if gains["qkv"] > GAIN and gains["up"] > GAIN:
        return f"{CHANGE}: 6 stages always; times as fast with 6: {text}"
    return f"{KEEP} 6 stages for few tiles, 4 for others; times as fast with 6: {text}"


def stages_of_medium(figures):
    gains = {m: last(figures, "gain of 6 stages of 128x128, " + m) for m in ("attended", "qkv", "up")}
    if None in gains.values():
        return missing("6 stages of 128x128")
    text = ", ".join(f"{name} {gain:.3f}" for name, gain in gains.items())
    if max(gains.values()) < 1 / GAIN:
        return f"{CHANGE} to 4 stages; times as fast with 6: {text}"
    return f"{KEEP} 6 stages; times as fast with 6: {text}"


def branch(figures):
    gain, bits = last(figures, "gain of the branch"), last(figures, "bits of the branch")
    if gain is None:
        return missing("steps with the branch")
    if bits != 1:
        return f"{KEEP} false: OTHER BITS, which is a defect of src/cuda/branch.h"
    if gain < GAIN:
        return f"{KEEP} false: {gain:.3f} times as fast"
    return f"{CHANGE} to true: {gain:.3f} times as fast"


def totals(figures):
    gains = [last(figures, "gain of one chain, " + m) for m in ("attended", "up")]
    if None in gains:
        return missing("products in one chain")
    price = max(gains) - 1
    if price > 0.05:
        return f"{CHANGE}: totals cost {100 * price:.1f} % of a weight gradient: try chains of 512 terms"
    return f"{KEEP} 256: totals cost {100 * price:.1f} % of a weight gradient"


def tiles_of(kind):
    def decide(figures):
        regrets = figures.get("tile regret " + kind)
        if not regrets:
            return missing(f"tiles of {kind}")
        most = max(regrets)
        text = f"{sum(r > REGRET for r in regrets)} of {len(regrets)} products, at most {100 * most:.0f} %"
        if most > REGRET:
            return f"{CHANGE}: a slower tile is chosen for {text}; fit the cycles to the rows of the probe"
        return f"{KEEP}: the chosen tiles take at most {100 * most:.0f} % longer than the fastest"

    return decide


def reserve(figures):
    found = figures.get("MiB outside of the arena")
    if not found:
        return missing("memory in use during training")
    most = max(found)
    if most > MIB_PLANNED:
        return f"{CHANGE} to {most:,.0f} MiB: so much is in use outside of the arena"
    if most < MIB_PLANNED * 0.7:
        return f"{CHANGE} to {most * 1.1:,.0f} MiB: at most {most:,.0f} MiB are in use outside of the arena"
    return f"{KEEP} {MIB_PLANNED} MiB: at most {most:,.0f} MiB are in use outside of the arena"


TILES = "kernels/cuda/product/warpgroup_product_tiles.h, "
SWITCHES = (
    Switch("wgmma by default", "planner/plan/request.cpp, wgmma_is_default", wgmma),
    Switch("fence", "kernels/cuda/product/tile_product.h, fence_copies", fence),
    Switch("stages of 64x128", TILES + "OneBlock", stages_of_small),
    Switch("stages of 128x128", TILES + "MediumTotals", stages_of_medium),
    Switch("dW on a branch", "kernels/cuda/developer.h, weight_gradient_branch", branch),
    Switch("terms of a chain", "kernels/contract/limits.h, chain_terms", totals),
    Switch("tiles of wgmma", TILES + "cycles_of", tiles_of("wgmma")),
    Switch("tiles of mma.sync", "kernels/cuda/product/tensor_product.h, step_cycles", tiles_of("tensor")),
    Switch("reserve", "planner/device/device.cpp, STW_SHEET", reserve),
)


def decided(figures):
    """A line for each switch: its name, what the figures say, and the place that a change is for."""
    lines = []
    for switch in SWITCHES:
        sentence = switch.decide(figures)
        where = f"  ({switch.place})" if sentence.startswith(CHANGE) else ""
        lines.append(f"{switch.name:<20} {sentence}{where}")
    return lines


def marks(figures):
    """Figures beside the marks that the project has set itself."""
    lines, best = [], best_speed(figures)
    peer = max(figures.get("tokens/s of PyTorch", [0]))
    if best:
        kind, speed = best
        lines.append(
            f"gpt2: {speed:,.0f} tokens/s by {kind}, mark {TOKENS_MARK:,}: {met(speed, TOKENS_MARK)}"
        )
        if peer:
            ratio = speed / peer
            lines.append(
                f"gpt2: {ratio:.3f} x PyTorch's {peer:,.0f} tokens/s, mark {SPEED_MARK}: "
                f"{met(ratio, SPEED_MARK)}"
            )
    share = max((max(v) for n, v in figures.items() if n.startswith(LLAMA_PEAK)), default=None)
    if share:
        lines.append(
            f"llama-1b: {100 * share:.1f} % of the card's product peak, mark {100 * LLAMA_SHARE:.0f} %: "
            f"{met(share, LLAMA_SHARE)}"
        )
    return lines


def met(value, mark):
    return "reached" if value >= mark else "NOT REACHED"


def best_speed(figures):
    """The fastest exact kind of gpt2 and its tokens/s."""
    speeds = {
        name.removeprefix(GPT2): values[-1]
        for name, values in figures.items()
        if name.startswith(GPT2) and "--fast" not in name
    }
    return max(speeds.items(), key=lambda item: item[1]) if speeds else None


def wrong_kinds(figures):
    """Kinds of kernels whose bits or values are wrong, or that hang."""
    return [
        kind
        for kind in ("tensor", "wgmma", "cublaslt", "cuDNN")
        if worst(figures, "values " + kind) == 0 or (kind == "wgmma" and last(figures, "bits of wgmma") == 0)
    ]


def needs_memcheck(figures):
    return any(kind in ("tensor", "wgmma") for kind in wrong_kinds(figures))


def next_steps(call, figures, failed):
    """What to do after a call. `failed`: the names of its steps that failed."""
    wrong = wrong_kinds(figures)
    if "unpack" in failed:
        return ["Nothing ran. Repair the bundle as the message says, and make this call again."]
    if call == "first":
        if "tensor" in wrong:
            return [
                "Kernels with mma.sync are wrong: the rows that begin with FAIL name them.",
                "Give the card back and repair them. Then: tools/gpu-check third --repaired tiles,attention",
            ]
        if "wgmma" in wrong or failed:
            what = (
                "Kernels with wgmma are wrong or hang" if "wgmma" in wrong else f"Failed: {', '.join(failed)}"
            )
            return [
                f"{what}: the rows that begin with FAIL name the places.",
                "Give the card back and repair them. Then: tools/gpu-check second --seconds 280 --peer 105",
                "It measures mma.sync and cuBLASLt too if wgmma is not repaired.",
            ]
        return [
            "Call at once, on the same card: tools/gpu-check second --seconds 280 --peer 105   # allow 305 s"
        ]
    changes = [line for line in decided(figures) if CHANGE in line]
    steps = [f"Make {len(changes)} changes: the lines with {CHANGE} above."] if changes else []
    if wrong or failed:
        steps.append(f"Repair: {', '.join(dict.fromkeys([*wrong, *failed]))}.")
    if call == "second":
        steps.append("Give the card back. After the changes: tools/gpu-check rebuild, and then on a card")
        parts = "tiles,attention" if wrong else "variants,costs"
        steps.append(f"tools/gpu-check third --seconds 130 --repaired {parts}   # allow 155 s")
    else:
        steps.append("Keep the tables under tests/gpu/results/, and put their figures into README.md and")
        steps.append("docs/gpu.md, with the kind of card.")
    return steps


def block(call, card, figures, failed):
    """The last block that a call prints."""
    lines = [f"What this decides, on {card or 'an unknown card'}:"]
    lines += ["  " + line for line in marks(figures) + decided(figures)]
    lines += ["", "What to do next:"]
    return "\n".join(lines + ["  " + line for line in next_steps(call, figures, failed)]) + "\n"
