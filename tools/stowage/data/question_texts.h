// Texts of a question and its context, which a model reads to find the answer. A context that is longer than
// a sample is cut into several texts, which overlap.
#pragma once
#include <stowage.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/examples.h"
#include "data/labelled.h"
#include "data/questions.h"
#include "data/tokenization.h"

namespace command {

struct QuestionText {
  EncodedText text;  // empty in Examples::questions, as Examples has the tokens
  size_t question;   // index into QuestionSet::questions
  // Tokens [first_row, first_row + count) of the text are those of the context from number first_token on.
  size_t first_row = 0, first_token = 0, count = 0;
  // The first and the last token of the answer. The text's first token, if the answer is not in this text.
  size_t start = 0, end = 0;
};

struct QuestionSet {
  std::vector<Question> questions;
  bool has_impossible = false;  // as in Questions
  // For each question, the ranges of its context's tokens. Questions about one context share them.
  std::vector<std::shared_ptr<const std::vector<TextRange>>> ranges;
  std::vector<QuestionText> texts;  // those of a question follow each other
  QuestionFlags flags;
  uint64_t left_out = 0;  // questions
  uint64_t cut = 0;       // questions whose context is cut
  uint64_t lost = 0;      // questions with an answer that is whole in no text
};

// Makes texts of at most `most` tokens. Throws a Failure that names the question if it leaves no room for its
// context; with flags.skips_bad, such a question is left out.
QuestionSet question_set(Questions questions, const QuestionFlags& flags, const Tokenization& tokenization,
                         const stw_model_info& model, uint64_t most, const std::string& name);

// One document of each text. Shuffles questions, so that the texts of a question stay together.
// Origin::number is the number of a document's text in Examples::questions.
Examples question_examples(QuestionSet set, Order order);
// The share of the tokens, about `share`, with which the library holds out the last questions with all their
// texts.
double share_of_questions(const Examples& all, double share);

}  // namespace command
