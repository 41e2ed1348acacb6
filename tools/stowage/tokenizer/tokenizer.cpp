#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/downloads.h"
#include "base/failure.h"
#include "base/files.h"
#include "base/lines.h"
#include "base/units.h"
#include "base/utf8.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/byte_pairs.h"
#include "tokenizer/cuts.h"
#include "tokenizer/description.h"
#include "tokenizer/folder_files.h"
#include "tokenizer/model.h"
#include "tokenizer/normalization.h"
#include "tokenizer/truncation.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary_file.h"

namespace command {
namespace {

std::string replaced(const std::string& text, const std::string& searched, const std::string& content,
                     size_t most) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; !searched.empty() && (at = text.find(searched, done)) != std::string::npos;
       done = at + searched.size()) {
    out.append(text, done, at - done) += content;
    if (out.size() > most) throw TooMuchText();
  }
  return out.append(text, done);
}

// Decodes "<0x0A>" to its byte.
std::optional<char> byte_in(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto read = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (read.ec != std::errc() || read.ptr != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

// Removes spaces before punctuation and English contractions, as the library's "cleanup" does.
std::string cleaned_up(std::string text, size_t most) {
  static constexpr std::pair<const char*, const char*> endings[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [searched, content] : endings) text = replaced(text, searched, content, most);
  return text;
}

// Runs steps of the file at `path`. A Failure names the text that they ran on.
template <class Make>
auto bounded(const Make& make, const std::string& what, const std::string& path) {
  try {
    return make();
  } catch (const TooMuchText&) {
    throw Failure(exit_failed, fmt::format("{}: the steps of {} make the text far too long", what, path));
  }
}

// The tokens of a text or of a list of words.
struct TextTokens {
  std::vector<int32_t> tokens, words;
  std::vector<TextRange> ranges;  // filled in by add_ranged
  bool is_truncated = false;

  void keep(size_t count, bool truncates_left) {
    if (count >= tokens.size()) return;
    is_truncated = true;
    const auto surplus = static_cast<std::ptrdiff_t>(tokens.size() - count);
    for (std::vector<int32_t>* list : {&tokens, &words}) {
      if (list->empty()) continue;
      if (truncates_left) list->erase(list->begin(), list->begin() + surplus);
      else list->erase(list->end() - surplus, list->end());
    }
  }
};

constexpr size_t most_added_bytes = 10000;

bool loses_spaces(const TokenizerDescription& d) {
  const bool prepends = std::any_of(d.normal.begin(), d.normal.end(), [](const NormalStep& step) {
    return step.kind == NormalStep::Kind::prepend;
  });
  return d.of_bytes() && d.cuts.back().prefix == CutStep::Prefix::never && !prepends;
}

std::string continuing_prefix_of(const TokenizerDescription& d) {
  const auto* const pieces = std::get_if<WordPiecesDescription>(&d.model);
  return pieces ? pieces->continuing_prefix : std::string();
}

size_t byte_step_of(const TokenizerDescription& d) {
  const auto found = std::find_if(d.text_steps.begin(), d.text_steps.end(),
                                  [](const TextStep& step) { return step.kind == TextStep::Kind::bytes; });
  return static_cast<size_t>(found - d.text_steps.begin());
}

}  // namespace

TokenizerDescription read_description(const std::string& path) {
  if (is_vocabulary_file(path)) return read_vocabulary_file(path);
  if (is_byte_pairs_file(path)) return read_byte_pairs_files(path);
  const std::string text = read_model_file(path);
  require_utf8(text, path);
  TokenizerDescription description = read_tokenizer_description(without_mark(text), path);
  read_folder_files(path, description);
  return description;
}

struct Tokenizer::Parts {
  explicit Parts(const TokenizerDescription& d, const std::string& file)
      : path(file),
        single(d.single),
        pair(d.pair),
        truncates_left(d.truncates_left),
        text_steps(d.text_steps),
        normal(d.normal, file),
        cuts(d.cuts, file),
        model(make_model(d, file)),
        joins_words(loses_spaces(d)),
        of_bytes(d.of_bytes()),
        byte_step(byte_step_of(d)),
        continuing_prefix(continuing_prefix_of(d)) {
    const auto as_decoded = [&](const std::string& token) {
      return of_bytes ? bytes_of(token).value_or(token) : token;
    };
    for (const auto& [token, id] : d.vocabulary) texts.emplace(id, as_decoded(token));
    std::vector<std::pair<AddedToken, std::string>> raw, normalized;
    for (const AddedToken& token : d.added) {
      const std::string content = token.normalized ? bounded([&] { return normal(token.content).text; },
                                                             fmt::format("added token {}", token.id), file)
                                                   : token.content;
      if (token.special) texts.erase(token.id), special[token.id] = token.content;
      else texts[token.id] = as_decoded(content);
      // At each position the search may read as many bytes as the longest added token has.
      if (content.size() > most_added_bytes)
        throw Failure(exit_failed, fmt::format("{}: added token {}: expected at most {} bytes, found {}",
                                               file, token.id, most_added_bytes, content.size()));
      (token.normalized ? normalized : raw).emplace_back(token, content);
    }
    in_raw = AddedTokens(raw), in_normal = AddedTokens(normalized);
  }

  std::string carry_out(const TextStep& step, std::string text, bool is_first, size_t most) const {
    switch (step.kind) {
      case TextStep::Kind::replace: return replaced(text, step.searched, step.content, most);
      case TextStep::Kind::words:
        return replaced(text, step.searched, is_first && step.drops_first ? "" : step.content, most);
      case TextStep::Kind::cleanup: return cleaned_up(std::move(text), most);
      case TextStep::Kind::pieces:
        if (is_first) return text;
        return text.starts_with(step.searched) ? text.substr(step.searched.size()) : " " + text;
      case TextStep::Kind::bytes: break;
      case TextStep::Kind::strip:
        for (uint64_t i = 0; is_first && i < step.start && text.starts_with(step.searched); ++i)
          text.erase(0, step.searched.size());
    }
    return text;
  }
  std::string carry_out(std::span<const TextStep> steps, std::string text, bool is_first, size_t most) const {
    for (const TextStep& step : steps) {
      if (text.size() > most) throw TooMuchText();
      text = carry_out(step, std::move(text), is_first, most);
    }
    return text;
  }

  std::string text_after_bytes(std::string text, Decoding& state, size_t most) const {
    const bool is_first = !std::exchange(state.has_text, true);
    return carry_out(std::span(text_steps).subspan(byte_step), std::move(text), is_first, most);
  }
  // Decodes a run of byte tokens. If the run is not valid UTF-8, each byte becomes U+FFFD.
  std::string text_of_byte_run(Decoding& state) const {
    if (state.bytes.empty()) return {};
    const std::string run = std::exchange(state.bytes, {});
    std::string text = valid_utf8(run);
    if (text != run) {
      text.clear();
      for (size_t i = 0; i < run.size(); ++i) text += replacement_character;
    }
    const size_t most = longest_of(text);
    return text_after_bytes(std::move(text), state, most);
  }
  std::string text_of(const std::string& token, Decoding& state) const {
    if (of_bytes) {
      state.bytes += token;
      return take_characters(state.bytes, false);
    }
    const bool is_first = !std::exchange(state.has_tokens, true);
    const size_t most = longest_of(token);
    std::string text = carry_out(std::span(text_steps).first(byte_step), token, is_first, most);
    const std::optional<char> byte = byte_step < text_steps.size() ? byte_in(text) : std::nullopt;
    if (byte) {
      state.bytes += *byte;
      return {};
    }
    const std::string before = text_of_byte_run(state);
    return before + text_after_bytes(std::move(text), state, most);
  }

  // `begins`: the text is a beginning, not a continuation. `places`: receives the positions after added
  // tokens.
  void add_tokens(std::string_view text, TextTokens& out, bool begins, std::vector<TokenPlace>* places) {
    const auto cut = [&](std::string_view piece, size_t of_first) {
      cuts(piece, of_first, [&](std::string_view word) { model->encode(word, out.tokens); });
    };
    in_raw.split(text, [&](const AddedToken* token, std::string_view raw, size_t begin) {
      if (token) {
        out.tokens.push_back(token->id);
        if (places) places->push_back({begin + raw.size(), out.tokens.size()});
        return;
      }
      Normalized held{{}, first_character(raw).bytes};
      if (!normal.does_nothing()) {
        held = normal(raw);
        raw = held.text;
      }
      const size_t of_first = begins && begin == 0 ? held.of_first : 0;
      in_normal.split(raw, [&](const AddedToken* inner, std::string_view piece, size_t at) {
        if (inner) out.tokens.push_back(inner->id);
        else cut(piece, of_first - std::min(of_first, at));
      });
    });
  }

  // The number of bytes of `piece` from `at` on that its token number `k` stands for. An unknown token stands
  // for the text up to the next known one.
  size_t bytes_of_token(std::string_view piece, size_t at, std::span<const int32_t> tokens, size_t k) const {
    const auto known = [&](size_t index) -> std::string_view {
      const auto found = texts.find(tokens[index]);
      if (found == texts.end()) return {};
      std::string_view text = found->second;
      if (index > 0 && !continuing_prefix.empty() && text.starts_with(continuing_prefix))
        text.remove_prefix(continuing_prefix.size());
      return text;
    };
    const std::string_view text = known(k), rest = piece.substr(at);
    if (rest.empty()) return 0;
    if (!text.empty() && rest.starts_with(text)) return text.size();
    if (const auto byte = byte_in(text); byte && *byte == rest[0]) return 1;
    if (k + 1 == tokens.size()) return rest.size();
    const std::string_view next = known(k + 1);
    const size_t end = next.empty() ? std::string_view::npos : rest.find(next, first_character(rest).bytes);
    return end == std::string_view::npos ? first_character(rest).bytes : end;
  }

  // Appends a piece's tokens. `origins`: of the bytes of the piece, in `text`.
  void add_ranged(std::string_view piece, std::span<const ByteOrigin> origins, std::string_view text,
                  TextTokens& out) {
    const size_t first = out.tokens.size();
    model->encode(piece, out.tokens);
    const std::span<const int32_t> tokens = std::span(out.tokens).subspan(first);
    for (size_t k = 0, at = 0, bytes; k < tokens.size(); ++k, at += bytes) {
      bytes = bytes_of_token(piece, at, tokens, k);
      TextRange range{at < origins.size() ? origins[at].begin : text.size(), 0};
      range.end = bytes > 0 ? std::max<size_t>(range.begin, origins[at + bytes - 1].end) : range.begin;
      out.ranges.push_back(without_space(text, range));
    }
  }
  static TextRange without_space(std::string_view text, TextRange range) {
    const auto inner = [&] { return text.substr(range.begin, range.end - range.begin); };
    for (Character c; range.begin < range.end && is_space((c = first_character(inner())).code);)
      range.begin += c.bytes;
    for (Character c; range.begin < range.end && is_space((c = last_character(inner())).code);)
      range.end -= c.bytes;
    return range;
  }

  void add_ranged_text(std::string_view text, TextTokens& out) {
    in_raw.split(text, [&](const AddedToken* token, std::string_view raw, size_t begin) {
      if (token) {
        out.tokens.push_back(token->id);
        out.ranges.push_back(without_space(text, {begin, begin + raw.size()}));
        return;
      }
      std::vector<ByteOrigin> origins = normal.origins(raw);
      for (ByteOrigin& o : origins)
        o.begin += static_cast<uint32_t>(begin), o.end += static_cast<uint32_t>(begin);
      const Normalized held = normal(raw);
      const size_t of_first = begin == 0 ? held.of_first : 0;
      in_normal.split(held.text, [&](const AddedToken* inner, std::string_view piece, size_t at) {
        const auto of_piece = std::span<const ByteOrigin>(origins).subspan(at, piece.size());
        if (inner) {
          out.tokens.push_back(inner->id);
          out.ranges.push_back(without_space(text, {of_piece.front().begin, of_piece.back().end}));
          return;
        }
        cuts.with_origins(piece, of_piece, of_first - std::min(of_first, at),
                          [&](std::string_view word, std::span<const ByteOrigin> of_word) {
                            add_ranged(word, of_word, text, out);
                          });
      });
    });
  }

  void add_text(std::string_view text, const std::string& name, TextTokens& out, bool begins = true,
                std::vector<TokenPlace>* places = nullptr) {
    require_utf8(text, name);
    bounded([&] { add_tokens(text, out, begins, places); }, name, path);
  }

  TextTokens tokens_of(std::string_view text, const std::string& name) {
    TextTokens out;
    add_text(text, name, out);
    return out;
  }

  void truncate(TextTokens& first, TextTokens* second, const std::string& name,
                const EncodeOptions& options) const {
    if (!options.max_tokens) return;
    uint64_t special_count = 0;
    if (options.special_tokens)
      for (const TemplatePart& part : second ? pair : single) special_count += part.tokens.size();
    const Lengths whole{first.tokens.size(), second ? std::optional(second->tokens.size()) : std::nullopt};
    const auto lengths =
        special_count > *options.max_tokens
            ? std::nullopt
            : truncated_lengths(whole, *options.max_tokens - special_count, options.truncation);
    if (!lengths)
      throw Failure(exit_failed, fmt::format("{}: cannot be truncated to {} tokens, of which {} are special",
                                             name, grouped(*options.max_tokens), grouped(special_count)));
    first.keep(lengths->first, truncates_left);
    if (second) second->keep(*lengths->second, truncates_left);
  }

  Encoding put_together(const TextTokens& first, const TextTokens* second, bool with_special,
                        bool of_words) const {
    Encoding out;
    out.is_truncated = first.is_truncated || (second && second->is_truncated);
    for (const TemplatePart& part : second ? pair : single) {
      const bool is_special = part.kind == TemplatePart::Kind::special;
      if (is_special && !with_special) continue;
      const TextTokens& text = part.kind == TemplatePart::Kind::second ? *second : first;
      const std::vector<int32_t>& tokens = is_special ? part.tokens : text.tokens;
      out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
      out.token_types.resize(out.tokens.size(), part.type);
      if (!of_words) continue;
      if (!is_special) out.word_ids.insert(out.word_ids.end(), text.words.begin(), text.words.end());
      out.word_ids.resize(out.tokens.size(), -1);
    }
    return out;
  }

  const std::string path;
  const std::vector<TemplatePart> single, pair;
  const bool truncates_left;
  const std::vector<TextStep> text_steps;
  std::unordered_map<int32_t, std::string> texts;    // texts of tokens, as in the vocabulary or as bytes
  std::unordered_map<int32_t, std::string> special;  // names of special tokens, which have no text
  AddedTokens in_raw, in_normal;
  Normalization normal;
  Cuts cuts;
  std::unique_ptr<Model> model;
  const bool joins_words, of_bytes;
  // index of the step that turns tokens into bytes; the number of steps if there is none
  const size_t byte_step;
  const std::string continuing_prefix;  // of a token inside a word; empty: there is none
};

Tokenizer::Tokenizer(const std::string& path)
    : parts_(std::make_unique<Parts>(read_description(path), path)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, const std::string& name, bool as_it_is) const {
  TextTokens out;  // avoids a copy of the tokens, since the text may be large
  for (const TemplatePart& part : parts_->single) {
    if (part.kind == TemplatePart::Kind::first) parts_->add_text(text, name, out);
    else if (!as_it_is) out.tokens.insert(out.tokens.end(), part.tokens.begin(), part.tokens.end());
  }
  return std::move(out.tokens);
}

std::vector<int32_t> Tokenizer::encode_placed(std::string_view text, const std::string& name,
                                              std::vector<TokenPlace>& places) const {
  if (parts_->single.size() > 1 &&
      std::count_if(parts_->single.begin(), parts_->single.end(),
                    [](const TemplatePart& part) { return part.kind == TemplatePart::Kind::first; }) != 1)
    return encode(text, name, true);  // the template has the text twice, or not at all
  TextTokens out;
  parts_->add_text(text, name, out, true, &places);
  return std::move(out.tokens);
}

std::vector<int32_t> Tokenizer::encode_rest(std::string_view rest, const std::string& name) const {
  TextTokens out;
  parts_->add_text(rest, name, out, false);
  return std::move(out.tokens);
}

Encoding Tokenizer::encode(std::string_view text, std::optional<std::string_view> second,
                           const std::string& name, const EncodeOptions& options) const {
  TextTokens first = parts_->tokens_of(text, name);
  if (!second) {
    parts_->truncate(first, nullptr, name, options);
    return parts_->put_together(first, nullptr, options.special_tokens, false);
  }
  TextTokens other = parts_->tokens_of(*second, name);
  parts_->truncate(first, &other, name, options);
  return parts_->put_together(first, &other, options.special_tokens, false);
}

Encoding Tokenizer::encode_words(std::span<const std::string> words, const std::string& name,
                                 const EncodeOptions& options) const {
  TextTokens all;
  for (const std::string& word : words) {
    const TextTokens one = parts_->tokens_of(word, name);
    all.tokens.insert(all.tokens.end(), one.tokens.begin(), one.tokens.end());
    all.words.resize(all.tokens.size(), static_cast<int32_t>(&word - words.data()));
  }
  parts_->truncate(all, nullptr, name, options);
  return parts_->put_together(all, nullptr, options.special_tokens, true);
}

RangedTokens Tokenizer::encode_ranged(std::string_view text, const std::string& name) const {
  require_utf8(text, name);
  if (text.size() > UINT32_MAX)
    throw Failure(exit_failed, fmt::format("{}: expected at most 4 GiB of text", name));
  TextTokens out;
  bounded([&] { parts_->add_ranged_text(text, out); }, name, parts_->path);
  return {std::move(out.tokens), std::move(out.ranges)};
}

Encoding Tokenizer::pair_of(std::span<const int32_t> first, std::span<const int32_t> second) const {
  TextTokens a, b;
  a.tokens.assign(first.begin(), first.end());
  a.words.assign(first.size(), -1);
  b.tokens.assign(second.begin(), second.end());
  for (size_t i = 0; i < second.size(); ++i) b.words.push_back(static_cast<int32_t>(i));
  return parts_->put_together(a, &b, true, true);
}

bool Tokenizer::joins_words() const { return parts_->joins_words; }

std::string Tokenizer::decode(std::span<const int32_t> tokens, Decoding& state) const {
  const auto add_all = [&] {
    std::string text;
    for (const int32_t token : tokens)
      if (const auto found = parts_->texts.find(token); found != parts_->texts.end())
        text += parts_->text_of(found->second, state);
    return text;
  };
  return bounded(add_all, "a token's text", parts_->path);
}

std::string Tokenizer::finish(Decoding& state) const {
  if (parts_->of_bytes) return take_characters(state.bytes, true);
  return bounded([&] { return parts_->text_of_byte_run(state); }, "a token's text", parts_->path);
}

bool Tokenizer::has_text(int32_t token) const {
  const auto found = parts_->texts.find(token);
  return found != parts_->texts.end() && !found->second.empty();
}

std::string Tokenizer::special_text(int32_t token) const {
  const auto found = parts_->special.find(token);
  return found == parts_->special.end() ? std::string() : found->second;
}

}  // namespace command
