// Examples to learn from, one an object of JSON: {"prompt": …, "completion": …}, of which the completion is
// learned; {"messages": […]}, a conversation of which is learned what the assistant says (ShareGPT's
// "conversations" too); or {"text": …}.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/shuffle.h"
#include "data/data_source.h"
#include "data/example_reader.h"

namespace command {

// What was found in a file of examples, texts with labels or pairs of answers.
struct ExampleCounts {
  uint64_t examples = 0;                            // or texts, or pairs
  uint64_t learned = 0;                             // tokens, as far as samples reach
  uint64_t longer = 0;                              // than a sample, which cuts them
  uint64_t unlearned = 0;                           // of words those that samples have no token of
  std::array<uint64_t, left_out_count> left_out{};  // beside `examples`, for each reason
  uint64_t unprompted = 0;                          // pairs without a prompt of their own
};

struct Examples {
  std::vector<int32_t> tokens;  // one example behind the other, each with the token that ends it
  std::string marks;            // STW_MARK_*, one of each token
  std::string labels;           // of texts with labels: as stw_dataset_options.labels has them; else empty
  std::vector<Origin> origins;  // of each document, or of pairs of each answer
  ExampleCounts counts;
};

// Puts an example behind the others; returns how many of its tokens up to number `reach` are learned.
uint64_t add(Examples& all, const Example& example, uint64_t reach);

uint64_t left_out(const ExampleCounts& counts);  // for all reasons
// "3 empty, 2 whose prompts fill a sample", or empty.
std::string reasons_left_out(const ExampleCounts& counts, bool of_pairs);
// The same for the end of a line, "; 5 more left out: …", or empty; and as members of a JSON object,
// "examples":15,"left_out":{"empty":3,…}.
std::string told_left_out(const ExampleCounts& counts, bool of_pairs);
std::string left_out_members(const ExampleCounts& counts);

// In an order of their own, the same each time: files are often sorted, and the last ones are held out. Those
// in which nothing is to be learned, or nothing inside of a sample, are left out. Throws a Failure that names
// the file and the line, and where nothing is left how long samples must be.
Examples read_examples(const DataSource& data, const ExampleReader& reader, uint64_t sequence, Order order);

}  // namespace command
