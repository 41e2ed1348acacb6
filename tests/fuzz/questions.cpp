// Fuzzes questions about contexts: SQuAD's JSON and the rows of Hugging Face's datasets, as one JSON document
// and as lines. Each answer is at its place, and ids differ. The texts cut from a context cover its tokens in
// order. A text that has an answer has the answer's tokens. An input is the questions, then perhaps a byte
// 0xFF and a digit: the number of tokens that two successive cuts share.
#include "data/questions.h"

#include <set>

#include "data/examples.h"
#include "data/question_texts.h"
#include "input.h"

using namespace command;

namespace {

constexpr uint64_t vocabulary = 128, sequence = 24;

// Characters are tokens.
std::string words() {
  std::string all = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) all.append({c, '\n', '#', '#', c, '\n'});
  for (char c = '0'; c <= '9'; ++c) all.append({c, '\n', '#', '#', c, '\n'});
  return all;
}

void check(const Questions& questions, bool with_answers) {
  std::set<std::string> ids;
  bool has_impossible = false;
  for (const Question& question : questions.list) {
    fuzz::require(ids.insert(question.id).second, "ids differ");
    fuzz::require(question.context && !question.context->empty(), "a question has a context");
    fuzz::require(with_answers || question.answers.empty(), "answers are read only if they are asked for");
    for (const GoldAnswer& answer : question.answers)
      fuzz::require(question.context->compare(answer.begin, answer.text.size(), answer.text) == 0,
                    "an answer is at its place");
    has_impossible |= question.answers.empty();
  }
  fuzz::require(questions.has_impossible == has_impossible, "questions without an answer are known");
}

void check(const QuestionSet& set) {
  size_t text = 0;
  uint64_t cut = 0;
  for (size_t q = 0; q < set.questions.size(); ++q) {
    const std::vector<TextRange>& ranges = *set.ranges[q];
    const size_t first_text = text;
    size_t covered = 0;
    for (; text < set.texts.size() && set.texts[text].question == q; ++text) {
      const QuestionText& t = set.texts[text];
      fuzz::require(t.text.tokens.size() <= sequence, "a text fits a sample");
      fuzz::require(t.first_row + t.count <= t.text.tokens.size(), "the context's tokens are in the text");
      fuzz::require(t.first_token <= covered && t.first_token + t.count <= ranges.size(),
                    "no token of the context is left out");
      covered = t.first_token + t.count;
      fuzz::require(t.start <= t.end && t.end < t.text.tokens.size(), "an answer is in its text");
      if (t.end == 0) continue;
      fuzz::require(t.start >= t.first_row && t.end < t.first_row + t.count, "an answer is in the context");
      const GoldAnswer& answer = set.questions[q].answers.at(0);
      const TextRange first = ranges[t.first_token + t.start - t.first_row],
                      last = ranges[t.first_token + t.end - t.first_row];
      fuzz::require(first.begin < answer.begin + answer.text.size() && last.end > answer.begin,
                    "the tokens of an answer overlap it");
    }
    fuzz::require(text > first_text && covered == ranges.size(), "the texts have the whole context");
    cut += text > first_text + 1;
  }
  fuzz::require(text == set.texts.size() && cut == set.cut, "each text has a question");
}

void check_texts(Questions questions, const QuestionFlags& flags, const Tokenization& tokenization) {
  stw_model_info model{};
  model.task = STW_TASK_SPANS;
  model.token_types = 2;
  QuestionSet set = question_set(std::move(questions), flags, tokenization, model, sequence, "data");
  check(set);
  size_t tokens = 0;
  for (const QuestionText& text : set.texts) tokens += text.text.tokens.size();
  const size_t texts = set.texts.size();
  const Examples all = question_examples(std::move(set), Order::shuffled);
  fuzz::require(all.tokens.size() == tokens && all.marks.size() == tokens &&
                    all.labels.size() == 2 * sizeof(float) * texts && all.origins.size() == texts,
                "examples have the tokens of the texts");
  for (const double share : {0.0, 0.3, 1.0}) {
    const double held_out = share_of_questions(all, share);
    fuzz::require(held_out >= 0 && held_out <= 1, "a part is held out");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  static const Tokenization tokenization =
      Tokenization::of_text(folder.write("vocab.txt", words()), "", vocabulary);
  const auto parts = fuzz::parts_of(data, size, 2);
  for (const char* format : {"json", "jsonl"}) {
    DataReading reading;
    reading.format = format;
    const std::string path = folder.write(std::string("data.") + format, parts[0]);
    for (const bool with_answers : {true, false})
      for (const bool skips_bad : {false, true}) {
        try {
          const DataSource source({path}, reading);
          if (source.empty()) continue;
          holds_questions(source, with_answers);
          Questions questions = read_questions(source, with_answers, skips_bad);
          check(questions, with_answers);
          QuestionFlags flags;
          flags.skips_bad = skips_bad;
          if (!parts[1].empty() && parts[1][0] >= '0' && parts[1][0] <= '9')
            flags.doc_stride = static_cast<uint64_t>(parts[1][0] - '0');
          check_texts(std::move(questions), flags, tokenization);
        } catch (const Failure&) {}
      }
  }
  return 0;
}
