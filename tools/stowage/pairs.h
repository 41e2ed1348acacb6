// Pairs of answers to learn a preference from, one pair a line of a .jsonl file: {"prompt": …, "chosen": …, "rejected": …}.
#pragma once
#include "examples.h"

namespace command {

// Whether it is such a file: a .jsonl file whose first line has one of the two answers.
bool holds_pairs(const std::string& path);

// Documents, chosen and rejected in turn; pairs in an order of their own, as examples are. One that is longer than a sample and a token more is cut:
// the ends of both answers, down to half of that each. Throws a Failure that names `path` and the line.
// Pairs that are alike, or of which an answer is empty, or cut away, are left out.
Examples read_pairs(const std::string& path, const ExampleReader& reader, uint64_t sequence);

// What became of some, for the end of a line; empty where all are as they were.
std::string left_out(const ExampleCounts& counts);

}  // namespace command
