#include "tokenizer.h"

#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "../failure.h"
#include "../files.h"
#include "../units.h"
#include "added_tokens.h"
#include "byte_pairs.h"
#include "cuts.h"
#include "normalization.h"
#include "unicode.h"

namespace command {
namespace {

std::string replaced(const std::string& text, const std::string& searched, const std::string& content, size_t most) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; !searched.empty() && (at = text.find(searched, done)) != std::string::npos; done = at + searched.size()) {
    out.append(text, done, at - done) += content;
    if (out.size() > most) throw TooMuchText();
  }
  return out.append(text, done);
}

// "<0x0A>" as its byte.
std::optional<char> byte_in(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto read = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (read.ec != std::errc() || read.ptr != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

TokenizerDescription read_description(const std::string& path) {
  const std::string text = read_text(path);
  require_utf8(text, path);
  return read_tokenizer_description(text, path);
}

// Carries out steps of the file at `path`; a Failure names what they were carried out on.
template <class Make>
auto bounded(const Make& make, const std::string& what, const std::string& path) {
  try {
    return make();
  } catch (const TooMuchText&) {
    throw Failure(exit_failed, fmt::format("{}: the steps of {} make far too much of it", what, path));
  }
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(const TokenizerDescription& d, const std::string& file)
      : path(file), before(d.before), after(d.after), text_steps(d.text_steps), normal(d.normal, file), cuts(d.cuts, file), pairs(d, file) {
    for (const auto& [token, id] : d.vocabulary) texts.emplace(id, d.of_bytes() ? bytes_of(token).value_or(token) : token);
    for (const AddedToken& token : d.added) {
      const std::string content = token.normalized ? bounded([&] { return normal(token.content); }, fmt::format("added token {}", token.id), file) : token.content;
      if (token.special) texts.erase(token.id);
      else texts[token.id] = content;
      (token.normalized ? in_normal : in_raw).add(token, content);
    }
  }

  std::string text_of(std::string text, bool is_first) const {
    const size_t most = longest_of(text);
    for (const TextStep& step : text_steps) {
      if (text.size() > most) throw TooMuchText();
      if (step.kind == TextStep::Kind::replace) text = replaced(text, step.searched, step.content, most);
      else if (step.kind == TextStep::Kind::words) text = replaced(text, step.searched, is_first && step.drops_first ? "" : step.content, most);
      else if (step.kind == TextStep::Kind::bytes) {
        if (const auto byte = byte_in(text)) text = *byte;
      } else if (is_first) {
        for (uint64_t i = 0; i < step.start && text.starts_with(step.searched); ++i) text.erase(0, step.searched.size());
      }
    }
    return text;
  }

  const std::string path;
  std::vector<int32_t> before, after;
  std::vector<TextStep> text_steps;
  std::unordered_map<int32_t, std::string> texts;   // of tokens that are some, as the vocabulary has them or as bytes
  AddedTokens in_raw, in_normal;
  Normalization normal;
  Cuts cuts;
  BytePairs pairs;
};

Tokenizer::Tokenizer(const std::string& path) : parts_(std::make_unique<Parts>(read_description(path), path)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, const std::string& name, bool as_it_is) const {
  require_utf8(text, name);
  Parts& parts = *parts_;
  std::vector<int32_t> tokens;
  if (!as_it_is) tokens = parts.before;
  const auto add = [&](const AddedToken& token) { tokens.push_back(token.id); };
  const auto cut = [&](std::string_view piece, bool is_first) {
    parts.cuts(piece, is_first, [&](std::string_view word) { parts.pairs.encode(word, tokens); });
  };
  const auto add_all = [&] {
    parts.in_raw.split(text, [&](const AddedToken* token, std::string_view raw, size_t begin) {
      if (token) return add(*token);
      std::string held;   // what it becomes, if it does
      if (!parts.normal.does_nothing()) raw = held = parts.normal(raw);
      parts.in_normal.split(raw, [&](const AddedToken* inner, std::string_view piece, size_t at) {
        if (inner) add(*inner);
        else cut(piece, begin == 0 && at == 0);
      });
    });
  };
  bounded(add_all, name, parts.path);
  if (!as_it_is) tokens.insert(tokens.end(), parts.after.begin(), parts.after.end());
  return tokens;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens, bool is_first) const {
  const auto add_all = [&] {
    std::string text;
    for (const int32_t token : tokens) {
      const auto found = parts_->texts.find(token);
      if (found == parts_->texts.end()) continue;
      text += parts_->text_of(found->second, is_first);
      is_first = false;
    }
    return text;
  };
  return bounded(add_all, "a token's text", parts_->path);
}

}  // namespace command
