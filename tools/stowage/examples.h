// Examples to learn from, one a line of a .jsonl file: {"prompt": …, "completion": …}, of which the completion is learned; {"messages": […]}, a
// conversation of which is learned what the assistant says (ShareGPT's "conversations" too); or {"text": …}.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tokenization.h"

namespace command {

// How many; tokens that are learned, as far as samples reach; how many are longer than a sample; of these, have nothing learned inside.
struct ExampleCounts { uint64_t examples = 0, learned = 0, longer = 0, unlearned = 0; };

struct Examples {
  std::vector<int32_t> tokens;   // one example behind the other, each with the token that ends it
  std::string marks;             // STW_MARK_*, one of each token
  std::string labels;            // of texts with labels: a little-endian uint32 of each; else empty
  ExampleCounts counts;
};

using FindTemplate = std::function<const chat::ChatTemplate&(const std::string& place)>;

bool holds_examples(const std::string& path);   // as its name says

// In an order of their own, the same each time: files are often sorted, and the last ones are held out. `end` is learned too, but for
// conversations, which end as their template says. Strings are tokens by the tokenizer, prompt and completion as one text; for token ids they
// are arrays of numbers. `text_member`: where a text is, else "text". Prompt and completion may be messages too, whose template is asked for with the place of the first ones.
// Throws a Failure that names `path` and the line.
Examples read_examples(const std::string& path, const std::string& text_member, const Tokenization& tokenization, const FindTemplate& chat_template, int32_t end, uint64_t sequence);

}  // namespace command
