// Examples to learn from, one a line of a .jsonl file: {"prompt": …, "completion": …}, of which the completion is learned; {"messages": […]}, a
// conversation of which is learned what the assistant says (ShareGPT's "conversations" too); or {"text": …}.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "example_reader.h"

namespace command {

// How many; tokens that are learned, as far as samples reach; how many are longer than a sample; of these, have nothing learned inside. Of
// pairs: how many; how many are cut; how many more are left out, as nothing is to be learned of them; how many had no prompt of their own.
struct ExampleCounts { uint64_t examples = 0, learned = 0, longer = 0, unlearned = 0, unprompted = 0; };

struct Examples {
  std::vector<int32_t> tokens;   // one example behind the other, each with the token that ends it
  std::string marks;             // STW_MARK_*, one of each token
  std::string labels;            // of texts with labels: a little-endian uint32 of each; else empty
  ExampleCounts counts;
};

bool holds_examples(const std::string& path);   // as its name says

// Puts an example behind the others; returns how many of its tokens up to number `reach` are learned.
uint64_t add(Examples& all, const Example& example, uint64_t reach);

// In an order of their own, the same each time: files are often sorted, and the last ones are held out.
// Throws a Failure that names `path` and the line.
Examples read_examples(const std::string& path, const ExampleReader& reader, uint64_t sequence);

}  // namespace command
