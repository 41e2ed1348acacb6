"""Rounds in which stowage and its peers take turns."""

import statistics


def compare(rounds, ours, peers, unit):
    """Prints the speeds of each round and the median of their ratios. `ours` measures stowage; `peers` has a
    function for each way of transformers."""
    ratios = {way: [] for way in peers}
    for number in range(rounds):
        speed = ours()
        for way, measure in peers.items():
            theirs = measure()
            ratios[way].append(speed / theirs)
            print(
                f"round {number + 1}: stowage {speed:.1f} {unit}, transformers, {way}: {theirs:.1f}, "
                f"ratio {speed / theirs:.2f}",
                flush=True,
            )
    for way, list_of in ratios.items():
        print(f"{way}: {statistics.median(list_of):.2f} ({min(list_of):.2f} to {max(list_of):.2f})")
