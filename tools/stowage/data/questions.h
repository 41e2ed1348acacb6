// Reads questions about contexts, with their answers: SQuAD's JSON, versions 1.1 and 2.0, or JSON objects as
// Hugging Face's datasets write its rows, {"question": …, "context": …, "answers": {"text": […],
// "answer_start": […]}}.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_source.h"

namespace CLI {  // its headers cost more to compile than all else here
class App;
}

namespace command {

// How answers are searched for, and how contexts are cut.
struct QuestionFlags {
  std::optional<uint64_t> doc_stride;  // tokens that two successive cuts of a context share
  std::optional<uint64_t> n_best, max_answer_length;
  std::optional<double> null_threshold;
  bool skips_bad = false;  // leaves bad questions out in place of an error

  size_t most_candidates() const { return n_best.value_or(20); }
  size_t longest_answer() const { return max_answer_length.value_or(30); }
  double threshold() const { return null_threshold.value_or(0); }
  bool any() const { return doc_stride || n_best || max_answer_length || null_threshold || skips_bad; }
};
inline constexpr size_t default_doc_stride = 128;  // at most half of the room for the context
void add_question_flags(CLI::App& command, QuestionFlags& flags);
void add_search_flags(CLI::App& command, QuestionFlags& flags);  // those for answers alone
// Takes the settings that no flag gave from the run in a folder.
void take_settings_of_run(QuestionFlags& flags, const std::string& run);

struct GoldAnswer {
  std::string text;
  size_t begin;  // its place in the context, in bytes
};
struct Question {
  std::string id, text;
  std::shared_ptr<const std::string> context;
  std::vector<GoldAnswer> answers;  // empty: the context has no answer
  std::string place;                // for messages: file and line, and the id
};
struct Questions {
  std::vector<Question> list;
  // Whether any question has no answer. Then answers are counted as SQuAD 2.0's script does.
  bool has_impossible = false;
  uint64_t left_out = 0;  // bad questions
};

// Whether the data is questions: JSON whose first object is an article of SQuAD, or has a question and a
// context. Unless `is_asked_for`, it also has answers, and no member of other kinds of examples.
bool holds_questions(const DataSource& data, bool is_asked_for);
// Throws the Failure for such data if the model does not find answers.
[[noreturn]] void refuse_questions(const DataSource& data, const std::string& model);

// Throws a Failure that names the line and the id if a question is damaged or has no id of its own. Bad
// questions have an answer outside of the context, one that differs from the context at its place, or
// answers though they are said to have none. Unless `skips_bad`, a Failure names the first of them and their
// number. Without `with_answers`, answers are not read.
Questions read_questions(const DataSource& data, bool with_answers, bool skips_bad);

// The number of characters of UTF-8 text before `byte`.
size_t characters_before(std::string_view text, size_t byte);

}  // namespace command
