// Examples to learn from, one JSON object each: {"prompt": …, "completion": …}, where the completion is
// learned; {"messages": […]} or ShareGPT's {"conversations": […]}, where the assistant's messages are
// learned; or {"text": …}, where all is learned.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shuffle.h"
#include "data/data_source.h"
#include "data/example_reader.h"
#include "data/label_lists.h"

namespace command {

// Counts over a file of examples, texts with labels or pairs of answers.
struct ExampleCounts {
  uint64_t examples = 0;  // or texts, or pairs; without those left out
  uint64_t learned = 0;   // tokens that are learned, within the samples
  uint64_t longer = 0;    // examples that are longer than a sample and are cut
  // Words with tags whose first token is cut off or missing; or questions whose answer is whole in no text.
  uint64_t unlearned = 0;
  std::array<uint64_t, left_out_count> left_out{};  // by reason (LeftOut)
  uint64_t unprompted = 0;                          // pairs without a prompt of their own
};

struct QuestionSet;

struct Examples {
  std::vector<int32_t> tokens;  // of all examples, end to end, each with its end token
  std::string marks;            // STW_MARK_*, one byte for each token
  std::string labels;           // the bytes of stw_dataset_options.labels, except for the task LABELS
  LabelLists lists;             // for the task LABELS: the labels of each document
  std::vector<Origin> origins;  // of each document; of pairs, of each answer
  ExampleCounts counts;
  std::shared_ptr<const QuestionSet> questions;  // of texts with questions (question_texts.h); else null
  std::string reading;  // of words with tags: what was understood of their files, for people
  bool has_labels() const { return !labels.empty() || !lists.empty(); }
};

// Appends an example. Returns how many of its tokens up to index `reach` are learned.
uint64_t add(Examples& all, const Example& example, uint64_t reach);

uint64_t left_out(const ExampleCounts& counts);  // for all reasons
// "3 empty, 2 whose prompts fill a sample", or empty.
std::string reasons_left_out(const ExampleCounts& counts, bool of_pairs);
// The end of a line about examples: "; 5 more left out: …", or empty.
std::string left_out_suffix(const ExampleCounts& counts, bool of_pairs);
// The counts as members of a JSON object, "examples":15,"left_out":{"empty":3,…}.
std::string left_out_members(const ExampleCounts& counts);

// Reads all examples and shuffles them, the same way each time, if `order` says so: files are often sorted,
// and the last examples are held out. Leaves out the examples of which nothing is learned within a sample.
// Throws a Failure that names the file and the line. If no example is left, it says how long samples must be,
// or that the model has not so many positions.
Examples read_examples(const DataSource& data, const ExampleReader& reader, uint64_t sequence,
                       uint64_t positions, Order order);
// The end of that message. `least`: the least --seq that helps; `longest`: one that has room for all, or 0.
std::string longer_samples(uint64_t least, uint64_t longest, uint64_t positions);

}  // namespace command
