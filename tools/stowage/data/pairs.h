// Pairs of answers to learn a preference from, one JSON object each: {"prompt": …, "chosen": …, "rejected":
// …}.
#pragma once
#include "data/examples.h"

namespace command {

// Whether the data is pairs: JSON objects of which the first has at least one of the two answers.
bool holds_pairs(const DataSource& data);

// Makes documents of the answers, chosen and rejected in turn; `order` is the order of the pairs. A pair of
// more than `sequence` + 1 tokens is cut at the ends of its answers; an answer keeps at least half of these
// tokens. Leaves out pairs with equal answers, and pairs in which an answer is empty, is cut away, or has a
// mark that takes it out of the loss. Throws a Failure that names the file and the line.
Examples read_pairs(const DataSource& data, const ExampleReader& reader, uint64_t sequence,
                    uint64_t positions, Order order);

// The end of a line about pairs: the numbers of pairs that lack a prompt, are cut or are left out. Empty if
// there are none.
std::string pairs_suffix(const ExampleCounts& counts);

}  // namespace command
