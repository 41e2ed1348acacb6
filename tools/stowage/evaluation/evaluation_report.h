// The outcome of `stowage eval`, and its two forms of output.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "data/examples.h"
#include "evaluation/answers.h"
#include "evaluation/rewards.h"

namespace command {

// What the model predicts. `labels`: one or more for each text. `word_labels`: one for each word. `pairs`:
// the better one of two answers. `spans`: answers in contexts.
enum class EvaluationKind { tokens, hidden_tokens, labels, word_labels, numbers, pairs, spans };

struct EvaluationReport {
  std::string model, data;  // as the user names them
  EvaluationKind kind = EvaluationKind::tokens;
  bool is_all = false;       // all of the data was evaluated, not the held-out part alone
  bool is_complete = false;  // every sample of that part was evaluated, once
  uint64_t batches = 0, samples = 0;
  uint64_t sequence = 0;  // tokens of a sample
  double loss = 0;
  double accuracy = 0;   // unused for tokens and numbers
  double mask_rate = 0;  // only for hidden tokens
  uint64_t targets = 0;  // predictions that the loss counts: tokens, texts, words or pairs
  uint64_t tokens = 0;   // tokens that were evaluated, without padding
  bool has_examples = false;
  ExampleCounts counts;              // over all of the data
  uint64_t examples = 0;             // in the evaluated part
  std::optional<Answered> answered;  // more metrics of labels and numbers, if `is_complete`
  std::optional<Rewards> rewards;    // of pairs, if `is_complete`
};

// One JSON object on a line.
void print_json(const EvaluationReport& report);
void print_text(const EvaluationReport& report);

}  // namespace command
