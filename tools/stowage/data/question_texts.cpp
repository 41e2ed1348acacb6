#include "data/question_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/failure.h"
#include "base/units.h"

namespace command {

namespace {

// Makes the texts of one question after the other.
class TextMaker {
 public:
  TextMaker(QuestionSet& set, const Tokenization& tokenization, const stw_model_info& model, uint64_t most)
      : set_(set), tokenization_(tokenization), model_(model), most_(most) {}

  // Returns false if the question leaves no room for its context.
  bool add(Question question) {
    const RangedTokens asked = tokenization_.encode_ranged(question.text, question.place);
    const std::shared_ptr<const RangedTokens> context = context_of(question);
    const size_t around = tokenization_.pair_of(asked.tokens, {}).tokens.size();
    if (around >= most_) return refuse(question, around);
    const size_t room = most_ - around, count = context->tokens.size();
    const size_t stride = set_.flags.doc_stride.value_or(std::min(default_doc_stride, room / 2));
    if (stride >= room && count > room) return refuse(question, around);
    const size_t number = set_.questions.size();
    const auto answer = answer_of(question, context->ranges);
    bool is_found = question.answers.empty();
    for (size_t first = 0;; first += room - stride) {
      QuestionText text = text_of(asked.tokens, *context, first, std::min(room, count - first), question);
      text.question = number;
      if (answer && answer->first >= first && answer->second < first + text.count) {
        text.start = text.first_row + (answer->first - first);
        text.end = text.first_row + (answer->second - first);
        is_found = true;
      }
      set_.texts.push_back(std::move(text));
      if (first + room >= count) break;
    }
    set_.cut += count > room;
    set_.lost += !is_found;
    set_.ranges.emplace_back(context, &context->ranges);
    set_.questions.push_back(std::move(question));
    return true;
  }

 private:
  bool refuse(const Question& question, size_t around) const {
    if (set_.flags.skips_bad) return false;
    const std::string stride =
        around < most_ ? fmt::format(" beside a --doc-stride of {}", grouped(*set_.flags.doc_stride)) : "";
    throw Failure(exit_failed,
                  fmt::format("{}: the question has {} tokens with special tokens, which leave no room for "
                              "its context in a sample of {}{}; give a longer --seq{}, or leave such "
                              "questions out with --skip-bad-questions",
                              question.place, grouped(around), grouped(most_), stride,
                              stride.empty() ? "" : " or a smaller --doc-stride"));
  }

  // Questions about one context follow each other.
  std::shared_ptr<const RangedTokens> context_of(const Question& question) {
    if (question.context != last_) {
      last_ = question.context;
      tokens_ = std::make_shared<const RangedTokens>(
          tokenization_.encode_ranged(*question.context, question.place));
    }
    return tokens_;
  }

  // The first token and the last one of the first answer among the tokens of the context; nothing without
  // such tokens.
  static std::optional<std::pair<size_t, size_t>> answer_of(const Question& question,
                                                            const std::vector<TextRange>& ranges) {
    if (question.answers.empty()) return std::nullopt;
    const GoldAnswer& gold = question.answers[0];
    constexpr const char* space = " \t\r\n";
    const size_t begin = gold.begin + gold.text.find_first_not_of(space),
                 end = gold.begin + gold.text.find_last_not_of(space) + 1;
    const auto first = std::find_if(ranges.begin(), ranges.end(), [&](const TextRange& range) {
      return range.begin < range.end && range.end > begin;
    });
    const auto last = std::find_if(ranges.rbegin(), ranges.rend(), [&](const TextRange& range) {
      return range.begin < range.end && range.begin < end;
    });
    if (first == ranges.end() || last == ranges.rend() || last.base() <= first) return std::nullopt;
    return std::pair(static_cast<size_t>(first - ranges.begin()),
                     static_cast<size_t>(last.base() - ranges.begin()) - 1);
  }

  QuestionText text_of(std::span<const int32_t> asked, const RangedTokens& context, size_t first,
                       size_t count, const Question& question) const {
    Encoding encoding =
        tokenization_.pair_of(asked, std::span<const int32_t>(context.tokens).subspan(first, count));
    const bool has_types = std::any_of(encoding.token_types.begin(), encoding.token_types.end(),
                                       [](int32_t type) { return type != 0; });
    if (model_.token_types == 0 || !has_types) encoding.token_types.clear();
    for (const int32_t type : encoding.token_types)
      if (static_cast<uint32_t>(type) >= model_.token_types)
        throw Failure(
            exit_failed,
            fmt::format("{}: the tokenizer gives tokens the type {}, and the model has {} types of tokens",
                        question.place, type, model_.token_types));
    QuestionText text{
        {std::move(encoding.tokens), std::move(encoding.token_types), false}, 0, 0, first, count};
    const auto row = std::find_if(encoding.word_ids.begin(), encoding.word_ids.end(),
                                  [](int32_t index) { return index >= 0; });
    text.first_row = static_cast<size_t>(row - encoding.word_ids.begin());
    return text;
  }

  QuestionSet& set_;
  const Tokenization& tokenization_;
  const stw_model_info& model_;
  const uint64_t most_;
  std::shared_ptr<const std::string> last_;
  std::shared_ptr<const RangedTokens> tokens_;  // of last_
};

}  // namespace

QuestionSet question_set(Questions questions, const QuestionFlags& flags, const Tokenization& tokenization,
                         const stw_model_info& model, uint64_t most, const std::string& name) {
  if (tokenization.kind() != Tokenization::Kind::text)
    throw Failure(exit_usage,
                  fmt::format("{}: questions need a tokenizer that keeps the question and the "
                              "context apart; name a tokenizer.json or vocab.txt with --tokenizer",
                              name));
  QuestionSet set;
  set.has_impossible = questions.has_impossible;
  set.flags = flags;
  set.left_out = questions.left_out;
  TextMaker maker(set, tokenization, model, most);
  for (Question& question : questions.list) set.left_out += !maker.add(std::move(question));
  if (set.questions.empty())
    throw Failure(exit_failed, fmt::format("{}: no question leaves room for its context in a sample of {} "
                                           "tokens; give a longer --seq",
                                           name, grouped(most)));
  return set;
}

double share_of_questions(const Examples& all, double share) {
  const size_t count = all.tokens.size();
  size_t begin = count, document = all.origins.size();  // of the held-out part
  uint64_t question = UINT64_MAX;
  for (size_t i = count; i-- > 0;) {
    if (!(all.marks[i] & STW_MARK_BEGIN)) continue;
    const uint64_t here = all.questions->texts[all.origins[--document].number - 1].question;
    if (here != question && static_cast<double>(count - begin) >= share * static_cast<double>(count) &&
        begin < count)
      break;
    question = here;
    begin = i;
  }
  // The library rounds share · count down.
  return begin == 0 ? 0 : (static_cast<double>(count - begin) + 0.5) / static_cast<double>(count);
}

Examples question_examples(QuestionSet set, Order order) {
  struct OfQuestion {
    size_t first, end;  // texts
  };
  std::vector<OfQuestion> groups;
  for (size_t i = 0; i < set.texts.size(); ++i) {
    if (i == 0 || set.texts[i].question != set.texts[i - 1].question) groups.push_back({i, i});
    groups.back().end = i + 1;
  }
  shuffle(groups, order);
  Examples all;
  for (const OfQuestion& group : groups)
    for (size_t t = group.first; t < group.end; ++t) {
      QuestionText& text = set.texts[t];
      const std::string& place = set.questions[text.question].place;
      const float span[] = {static_cast<float>(text.start), static_cast<float>(text.end)};
      all.labels.append(reinterpret_cast<const char*>(span), sizeof span);
      all.origins.push_back({t + 1, place});
      const EncodedText& encoded = text.text;
      for (size_t i = 0; i < encoded.tokens.size(); ++i) all.marks += mark_of(encoded.token_types, i, place);
      all.tokens.insert(all.tokens.end(), encoded.tokens.begin(), encoded.tokens.end());
      text.text = {};  // the tokens are in `all` now
    }
  all.counts.examples = all.counts.learned = set.texts.size();
  all.counts.longer = set.cut;
  all.counts.unlearned = set.lost;
  all.counts.left_out[static_cast<size_t>(LeftOut::bad)] = set.left_out;
  all.questions = std::make_shared<const QuestionSet>(std::move(set));
  return all;
}

}  // namespace command
