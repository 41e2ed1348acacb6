#include "data/questions.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>

#include "base/failure.h"
#include "base/json_fields.h"
#include "base/json_value.h"
#include "base/kept_options.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/label_words.h"
#include "flags/number_checks.h"
#include "tokenizer/unicode.h"

namespace command {

void add_search_flags(CLI::App& command, QuestionFlags& flags) {
  command
      .add_option("--n-best", flags.n_best,
                  "Questions: how many first tokens and last tokens of an answer are tried in each text. "
                  "Default: 20.")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  command
      .add_option("--max-answer-length", flags.max_answer_length,
                  "Questions: the most tokens of an answer. Default: 30.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--null-threshold", flags.null_threshold,
                  "Questions that may have no answer: there is none if its score exceeds that of the best "
                  "answer by more\nthan X. Default: 0.")
      ->check(number_in(-1e6, 1e6))
      ->type_name("X");
}

void add_question_flags(CLI::App& command, QuestionFlags& flags) {
  command
      .add_option("--doc-stride", flags.doc_stride,
                  "Questions: a context longer than a sample is cut into texts that share so many tokens. "
                  "Default: 128, at most\nhalf of the room for the context.")
      ->check(whole_number(0))
      ->type_name("N");
  add_search_flags(command, flags);
  command.add_flag("--skip-bad-questions", flags.skips_bad,
                   "Leave out questions that are empty, whose context is empty, whose answer is not at its "
                   "place in the context,\nor that fill a sample. Default: an error.");
}

void take_settings_of_run(QuestionFlags& flags, const std::string& run) {
  const auto take = [&](const char* name, std::optional<uint64_t>& number) {
    if (const auto text = setting_of_run(run, name); text && !number)
      number = std::strtoull(text->c_str(), nullptr, 10);
  };
  take("doc-stride", flags.doc_stride);
  take("n-best", flags.n_best);
  take("max-answer-length", flags.max_answer_length);
  if (const auto text = setting_of_run(run, "null-threshold"); text && !flags.null_threshold)
    flags.null_threshold = std::strtod(text->c_str(), nullptr);
  flags.skips_bad |= run_has_option(run, "skip-bad-questions");
}

size_t characters_before(std::string_view text, size_t byte) {
  size_t count = 0;
  for (const char c : text.substr(0, byte)) count += !stw::continues_utf8(c);
  return count;
}

namespace {

// The byte of a character by its number; nothing past the end.
std::optional<size_t> byte_of_character(std::string_view text, uint64_t character) {
  if (is_all_ascii(text)) return character <= text.size() ? std::optional<size_t>(character) : std::nullopt;
  for (size_t at = 0; at <= text.size(); ++at)
    if ((at == text.size() || !stw::continues_utf8(text[at])) && character-- == 0) return at;
  return std::nullopt;
}

bool is_whole_number(const Json& value) {
  const std::string_view written = text_of(value);
  const bool has_sign = written.starts_with('-');
  return is_number(value) && written.find_first_not_of("0123456789", has_sign) == std::string_view::npos;
}

// Puts the questions of objects into a list, and notes what is bad.
class QuestionReader {
 public:
  QuestionReader(bool with_answers, bool skips_bad) : with_answers_(with_answers), skips_bad_(skips_bad) {}

  void add_object(std::string_view object, const std::string& place) {
    const Json value = read_object(object, place, [](std::string_view key) {
      constexpr std::string_view used[] = {"paragraphs", "qas", "question",     "context",
                                           "answers",    "id",  "is_impossible"};
      return std::find(std::begin(used), std::end(used), key) != std::end(used);
    });
    const JsonView view(value, place + ": ");
    if (const JsonView paragraphs = view.at("paragraphs"); !paragraphs.is_null()) {
      for (const JsonView& paragraph : paragraphs.elements()) add_paragraph(paragraph, place);
      return;
    }
    if (!view.at("qas").is_null()) return add_paragraph(view, place);
    add(view, context_of(view), place);
  }

  Questions finish(const std::string& name) {
    if (!bad_.empty() && !skips_bad_)
      throw Failure(exit_failed, fmt::format("{}{}; --skip-bad-questions leaves {} out", bad_,
                                             bad_count_ > 1 ? fmt::format(" (and {} more such questions)",
                                                                          grouped(bad_count_ - 1))
                                                            : "",
                                             bad_count_ > 1 ? "them" : "the question"));
    all_.left_out = bad_count_;
    if (all_.list.empty())
      throw Failure(exit_failed, fmt::format("{}: expected questions, found {}", name,
                                             bad_count_ ? fmt::format("only bad ones; the first: {}", bad_)
                                                        : std::string("none")));
    return std::move(all_);
  }

 private:
  static std::shared_ptr<const std::string> context_of(const JsonView& view) {
    return std::make_shared<const std::string>(view.at("context").text());
  }

  void add_paragraph(const JsonView& paragraph, const std::string& place) {
    const auto context = context_of(paragraph);
    for (const JsonView& one : paragraph.at("qas").elements()) add(one, context, place);
  }

  void add(const JsonView& given, const std::shared_ptr<const std::string>& context,
           const std::string& place) {
    Question question;
    question.id =
        given.at("id").is_null() ? std::to_string(all_.list.size() + bad_count_ + 1) : given.at("id").word();
    question.place = fmt::format("{}, question {}", place, json_quoted(question.id));
    const JsonView view(given.raw(), question.place + ": ");  // messages then name the question
    if (!ids_.insert(question.id).second)
      throw Failure(exit_failed, fmt::format("{}: the id is there twice", question.place));
    question.text = view.at("question").text();
    question.context = context;
    if (!has_texts(question) || (with_answers_ && !read_answers(view, question))) {
      ++bad_count_;
      return;
    }
    all_.has_impossible |= question.answers.empty();
    all_.list.push_back(std::move(question));
  }

  // Notes the first bad question. Returns false.
  bool bad(const Question& question, const std::string& what) {
    if (bad_.empty()) bad_ = fmt::format("{}: {}", question.place, what);
    return false;
  }

  bool has_texts(const Question& question) {
    if (without_blanks(question.text).empty()) return bad(question, "\"question\" is empty");
    if (without_blanks(*question.context).empty()) return bad(question, "\"context\" is empty");
    return true;
  }

  bool read_answers(const JsonView& view, Question& question) {
    const JsonView answers = view.at("answers"), impossible = view.at("is_impossible");
    if (answers.is_null() && impossible.is_null())
      throw Failure(exit_failed, fmt::format("{}: \"answers\" is missing or null", question.place));
    struct Given {
      std::string text;
      JsonView start;
    };
    std::vector<Given> given;
    if (answers.is_array()) {  // SQuAD's own form
      for (const JsonView& one : answers.elements())
        given.push_back({one.at("text").text(), one.at("answer_start")});
    } else if (!answers.is_null()) {
      const std::vector<JsonView> texts = answers.at("text").elements(),
                                  starts = answers.at("answer_start").elements();
      if (texts.size() != starts.size())
        throw Failure(exit_failed, fmt::format("{}: expected as many answer_start as text, found {} and {}",
                                               question.place, starts.size(), texts.size()));
      for (size_t i = 0; i < texts.size(); ++i) given.push_back({texts[i].text(), starts[i]});
    }
    if (impossible.flag_or(false) && !given.empty())
      return bad(question, fmt::format("is_impossible is true, and it has {} answers", given.size()));
    if (!impossible.is_null() && !impossible.flag_or(false) && given.empty())
      return bad(question, "is_impossible is false, and it has no answer");
    for (const Given& one : given)
      if (!take_answer(one.text, one.start, question)) return false;
    return true;
  }

  bool take_answer(const std::string& text, const JsonView& start, Question& question) {
    const std::string& context = *question.context;
    if (without_blanks(text).empty()) return bad(question, "an answer is empty");
    const auto shown = [](std::string_view of) { return json_quoted(shortened(of)); };
    if (!is_whole_number(start.raw()))
      start.fail(fmt::format("a whole number: where in the context its answer {} begins, found {}",
                             shown(text),
                             start.is_null() ? "none" : shortened(stw::to_string(start.raw(), 0))));
    const std::string word = start.word();
    const bool is_before = start.is_negative();
    const auto begin = is_before ? std::nullopt : byte_of_character(context, start.integer(INT64_MAX));
    if (!begin || context.size() - *begin < text.size())
      return bad(question,
                 fmt::format("its answer {} at character {} is outside of the context of {} "
                             "characters",
                             shown(text), word, grouped(characters_before(context, context.size()))));
    if (context.compare(*begin, text.size(), text) != 0)
      return bad(
          question,
          fmt::format("its answer {} is not at character {} of the context, which has {} there", shown(text),
                      word, shown(valid_utf8(std::string_view(context).substr(*begin, text.size())))));
    question.answers.push_back({text, *begin});
    return true;
  }

  const bool with_answers_, skips_bad_;
  Questions all_;
  std::set<std::string> ids_;
  std::string bad_;  // what is wrong with the first bad question; empty: there is none
  uint64_t bad_count_ = 0;
};

}  // namespace

bool holds_questions(const DataSource& data, bool is_asked_for) {
  if (!data.holds_objects()) return false;
  bool found = false;
  data.for_objects([&](std::string_view text, const std::string& place) {
    const Outline object = read_outline(text, place);
    const auto has = [&](const char* name, Json::Kind kind) { return object.kind_of(name) == kind; };
    constexpr const char* of_others[] = {"prompt", "completion", "messages", "conversations",
                                         "chosen", "text",       "label",    "labels"};
    const auto is_there = [&](const char* name) { return object.has(name); };
    if (!is_asked_for && std::any_of(std::begin(of_others), std::end(of_others), is_there)) return false;
    found = has("paragraphs", Json::Kind::array) ||
            (has("qas", Json::Kind::array) && has("context", Json::Kind::string)) ||
            (has("question", Json::Kind::string) && has("context", Json::Kind::string) &&
             (is_asked_for || has("answers", Json::Kind::object) || has("answers", Json::Kind::array)));
    return false;
  });
  return found;
}

void refuse_questions(const DataSource& data, const std::string& model) {
  throw Failure(exit_failed, fmt::format("{}: has questions about contexts, and {} does not find answers",
                                         data.name(), model));
}

Questions read_questions(const DataSource& data, bool with_answers, bool skips_bad) {
  QuestionReader reader(with_answers, skips_bad);
  data.for_objects([&](std::string_view object, const std::string& place) {
    reader.add_object(object, place);
    return true;
  });
  return reader.finish(data.name());
}

}  // namespace command
