// Pairs of answers to learn a preference from, one pair an object of JSON: {"prompt": …, "chosen": …,
// "rejected": …}.
#pragma once
#include "data/examples.h"

namespace command {

// Whether it is such data: objects of which the first one has one of the two answers.
bool holds_pairs(const DataSource& data);

// Documents, chosen and rejected in turn; pairs in this order. One that is longer than a sample and a token
// more is cut: the ends of both answers, down to half of that each. Throws a Failure that names the file and
// the line. Pairs that are alike, or of which an answer is empty, marked out of the loss or cut away, are
// left out.
Examples read_pairs(const DataSource& data, const ExampleReader& reader, uint64_t sequence, Order order);

// What became of some, for the end of a line; empty where all are as they were.
std::string told_of_pairs(const ExampleCounts& counts);

}  // namespace command
