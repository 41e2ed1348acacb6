// Finds the answers to questions from the logits of their texts, as transformers' run_qa does.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "data/question_texts.h"

namespace command {

// The logits of one of a question's texts: two for each token, as the answer's first token and as its last
// one. The text's first token stands for no answer.
struct TextLogits {
  const QuestionText* text;
  std::span<const float> logits;
};

struct FoundAnswer {
  std::string text;           // empty: there is no answer
  size_t begin = 0, end = 0;  // its bytes in the context
  double score = 0;           // probability among the best answers and none
  double none = 0;            // probability of no answer
};

// Of the --n-best first tokens and last tokens in each text, takes the pair with the largest sum of
// logits whose last token is not before the first one and at most --max-answer-length tokens long. If
// `may_be_none`, there is no answer where the sum for no answer, the smallest one over all texts, exceeds
// that of the best pair by more than --null-threshold.
FoundAnswer find_answer(const QuestionSet& set, size_t question, std::span<const TextLogits> texts,
                        bool may_be_none);

}  // namespace command
