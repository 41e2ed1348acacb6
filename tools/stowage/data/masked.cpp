#include "data/masked.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/failure.h"
#include "base/files.h"
#include "base/kept_options.h"
#include "base/units.h"
#include "flags/number_checks.h"
#include "tokenizer/masking_vocabulary.h"

namespace command {
namespace {

// The two texts of a pair count as two texts.
std::vector<LabelledText> all_texts_of(const DataSource& data, const LabelFields& fields, uint64_t& marked) {
  std::vector<LabelledText> texts;
  if (!data.is_table() && !data.holds_objects()) {
    for (size_t i = 0; i < data.files().size(); ++i)
      texts.push_back({std::string(data.content(i)), {}, data.files()[i].path});
    return texts;
  }
  for (LabelledText& text : read_labelled(data, fields, ReadPurpose::texts, &marked)) {
    if (text.pair) texts.push_back({std::move(*text.pair), {}, text.place});
    texts.push_back({std::move(text.text), {}, text.place});
  }
  return texts;
}

Masks masks_of(const MaskingVocabulary& tokens, const MaskFlags& flags, const Tokenization& tokenization,
               uint64_t vocabulary) {
  if (!tokens.mask)
    throw Failure(exit_failed,
                  fmt::format("{}: has no mask token (a mask_token in tokenizer_config.json, or a special "
                              "token [MASK] or <mask>), which a masked language model needs",
                              tokenization.file()));
  if (flags.whole_words && !tokens.continuing)
    throw Failure(exit_failed,
                  fmt::format("--mask-whole-words: {} does not show which tokens continue a word",
                              tokenization.file()));
  if (static_cast<uint64_t>(*tokens.mask) >= vocabulary)
    throw Failure(exit_failed, fmt::format("{}: its mask token {} is outside of the model's vocabulary of {}",
                                           tokenization.file(), *tokens.mask, grouped(vocabulary)));
  Masks masks{flags.rate.value_or(default_mask_rate), *tokens.mask, std::vector<uint8_t>(vocabulary),
              flags.whole_words};
  const auto mark = [&](const std::vector<int32_t>& list, uint8_t kind) {
    for (const int32_t token : list)
      if (static_cast<uint64_t>(token) < vocabulary) masks.kinds[static_cast<size_t>(token)] |= kind;
  };
  mark(tokens.special, STW_TOKEN_SPECIAL);
  for (auto token = static_cast<uint64_t>(tokens.end); token < vocabulary; ++token)
    masks.kinds[token] = STW_TOKEN_SPECIAL;  // the tokenizer does not have it
  if (tokens.continuing) mark(*tokens.continuing, STW_TOKEN_CONTINUES);
  return masks;
}

bool hides_words(const std::string& run) {
  const auto settings = read_text_if_there(run + "/settings.json");  // the flag has no value to read
  return settings && settings->find("\"mask-whole-words\"") != std::string::npos;
}

std::optional<double> rate_of_run(const std::string& run) {
  const auto rate = setting_of_run(run, "mask-rate");
  return rate ? std::optional(std::strtod(rate->c_str(), nullptr)) : std::nullopt;
}

}  // namespace

void add_mask_flags(CLI::App& command, MaskFlags& flags) {
  command
      .add_option("--mask-rate", flags.rate,
                  "masked: the share of tokens that are hidden, each drawn independently. Default: 0.15.")
      ->check(above_zero(1))
      ->type_name("SHARE");
  command.add_flag("--mask-whole-words", flags.whole_words, "masked: hide whole words, all tokens of them.");
}

void take_masks_of_run(MaskFlags& flags, const std::string& run) {
  if (!flags.rate) flags.rate = rate_of_run(run);
  if (hides_words(run)) flags.whole_words = true;
}

void check_masks_of_run(const MaskFlags& flags, const std::string& run) {
  const double of_run = rate_of_run(run).value_or(default_mask_rate),
               given = flags.rate.value_or(default_mask_rate);
  if (given != of_run)
    throw Failure(
        exit_failed,
        fmt::format(
            "--mask-rate: the run in {} has {}, found {}; another value would change the trained bits", run,
            of_run, given));
  if (flags.whole_words != hides_words(run))
    throw Failure(exit_failed, fmt::format("--mask-whole-words: the run in {} was trained without it; with "
                                           "it, the trained bits would change",
                                           run));
}

Examples read_masked(const DataSource& data, const LabelFields& fields, const MaskFlags& flags,
                     const Tokenization& tokenization, uint64_t vocabulary, uint64_t sequence, Order order,
                     Masks& masks) {
  const std::string& path = data.name();
  if (tokenization.kind() == Tokenization::Kind::ids)
    throw Failure(exit_failed, fmt::format("{}: expected texts for a masked language model, found token ids, "
                                           "and it is not known which of them are special",
                                           path));
  if (tokenization.kind() == Tokenization::Kind::bytes)
    throw Failure(exit_failed, fmt::format("{}: a tokenizer of bytes has no mask token, which a masked "
                                           "language model needs; name another with --tokenizer",
                                           path));
  const MaskingVocabulary tokens = read_masking_vocabulary(tokenization.file());
  masks = masks_of(tokens, flags, tokenization, vocabulary);
  const uint64_t around = tokens.before.size() + tokens.after.size();
  if (sequence <= around)
    throw Failure(
        exit_usage,
        fmt::format("--seq {}: expected more than the {} tokens that the tokenizer puts around a text",
                    sequence, around));
  const uint64_t room = sequence - around;
  Examples all;
  const std::vector<LabelledText> texts =
      all_texts_of(data, fields, all.counts.left_out[static_cast<size_t>(LeftOut::marked)]);
  std::vector<size_t> numbers(texts.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  shuffle(numbers, order);
  for (const size_t number : numbers) {
    const LabelledText& text = texts[number];
    const std::vector<int32_t> inner = tokenization.encode(text.text, text.place, true);
    if (inner.empty()) continue;
    ++all.counts.examples;
    all.counts.longer += inner.size() > room;
    for (size_t begin = 0; begin < inner.size(); begin += room) {
      const size_t end = std::min<size_t>(inner.size(), begin + room), first = all.tokens.size();
      all.origins.push_back({number + 1, text.place});
      all.tokens.insert(all.tokens.end(), tokens.before.begin(), tokens.before.end());
      all.tokens.insert(all.tokens.end(), inner.begin() + static_cast<std::ptrdiff_t>(begin),
                        inner.begin() + static_cast<std::ptrdiff_t>(end));
      all.tokens.insert(all.tokens.end(), tokens.after.begin(), tokens.after.end());
      all.marks.resize(all.tokens.size(), static_cast<char>(STW_MARK_TARGET));
      all.marks[first] = static_cast<char>(STW_MARK_TARGET | STW_MARK_BEGIN);
    }
    all.counts.learned += static_cast<uint64_t>(std::count_if(inner.begin(), inner.end(), [&](int32_t token) {
      return !(masks.kinds[static_cast<size_t>(token)] & STW_TOKEN_SPECIAL);
    }));
  }
  if (all.counts.learned == 0)
    throw Failure(exit_failed,
                  fmt::format("{}: expected texts with tokens that may be hidden, found none", path));
  return all;
}

}  // namespace command
