#include "tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "../failure.h"
#include "../files.h"
#include "../units.h"
#include "added_tokens.h"
#include "byte_pairs.h"
#include "cuts.h"
#include "description.h"
#include "model.h"
#include "normalization.h"
#include "shortening.h"
#include "unicode.h"
#include "vocabulary_file.h"

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

// No spaces before what ends a word in English, as transformers' clean_up_tokenization.
std::string cleaned_up(std::string text, size_t most) {
  static constexpr std::pair<const char*, const char*> endings[] = {{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [searched, content] : endings) text = replaced(text, searched, content, most);
  return text;
}

TokenizerDescription read_description(const std::string& path) {
  if (is_vocabulary_file(path)) return read_vocabulary_file(path);
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

// The tokens of a text, or of several words.
struct TextTokens {
  // A word or added token in the text, as far as tokens do not cross its ends.
  struct Piece { size_t end; bool is_added; };
  std::vector<int32_t> tokens, words;
  std::vector<Piece> pieces;
  bool is_cut = false;

  size_t size() const { return tokens.size(); }
  void keep(size_t count, bool cuts_left) {
    if (count >= tokens.size()) return;
    is_cut = true;
    const auto surplus = static_cast<std::ptrdiff_t>(tokens.size() - count);
    for (std::vector<int32_t>* list : {&tokens, &words}) {
      if (list->empty()) continue;
      if (cuts_left) list->erase(list->begin(), list->begin() + surplus);
      else list->erase(list->end() - surplus, list->end());
    }
  }
};

// Drops the pieces that the library does not come to where a text has more than `most` tokens: it stops behind the piece, but not behind an added
// token, with which there are enough. What is left tells the longer of two texts.
void drop_pieces_beyond(TextTokens& text, size_t most, bool cuts_left) {
  size_t tokens = 0;
  const auto is_last = [&](size_t begin, const TextTokens::Piece& piece) {
    tokens += piece.end - begin;
    return !piece.is_added && tokens >= most;
  };
  const auto begin_of = [&](size_t piece) { return piece == 0 ? 0 : text.pieces[piece - 1].end; };
  const size_t count = text.pieces.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t piece = cuts_left ? count - 1 - i : i;
    if (is_last(begin_of(piece), text.pieces[piece])) return text.keep(tokens, cuts_left);
  }
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(const TokenizerDescription& d, const std::string& file)
      : path(file), single(d.single), pair(d.pair), cuts_left(d.cuts_left), text_steps(d.text_steps), normal(d.normal, file), cuts(d.cuts, file), model(make_model(d, file)) {
    for (const auto& [token, id] : d.vocabulary) texts.emplace(id, d.of_bytes() ? bytes_of(token).value_or(token) : token);
    for (const AddedToken& token : d.added) {
      const std::string content = token.normalized ? bounded([&] { return normal(token.content).text; }, fmt::format("added token {}", token.id), file) : token.content;
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
      else if (step.kind == TextStep::Kind::cleanup) text = cleaned_up(std::move(text), most);
      else if (step.kind == TextStep::Kind::pieces) {
        if (!is_first) text = text.starts_with(step.searched) ? text.substr(step.searched.size()) : " " + text;
      } else if (step.kind == TextStep::Kind::bytes) {
        if (const auto byte = byte_in(text)) text = *byte;
      } else if (is_first) {
        for (uint64_t i = 0; i < step.start && text.starts_with(step.searched); ++i) text.erase(0, step.searched.size());
      }
    }
    return text;
  }

  void add_tokens(std::string_view text, TextTokens& out) {
    const auto add = [&](const AddedToken& token) {
      out.tokens.push_back(token.id);
      out.pieces.push_back({out.tokens.size(), true});
    };
    const auto cut = [&](std::string_view piece, size_t of_first) {
      cuts(piece, of_first, [&](std::string_view word) {
        model->encode(word, out.tokens);
        out.pieces.push_back({out.tokens.size(), false});
      });
    };
    in_raw.split(text, [&](const AddedToken* token, std::string_view raw, size_t begin) {
      if (token) return add(*token);
      Normalized held{{}, first_character(raw).bytes};   // what it becomes, if it does
      if (!normal.does_nothing()) {
        held = normal(raw);
        raw = held.text;
      }
      const size_t of_first = begin == 0 ? held.of_first : 0;
      in_normal.split(raw, [&](const AddedToken* inner, std::string_view piece, size_t at) {
        if (inner) add(*inner);
        else cut(piece, of_first - std::min(of_first, at));
      });
    });
  }

  TextTokens tokens_of(std::string_view text, const std::string& name) {
    require_utf8(text, name);
    TextTokens out;
    bounded([&] { add_tokens(text, out); }, name, path);
    return out;
  }

  // `is_limited`: of this text the library stops early.
  TextTokens tokens_of(std::string_view text, const std::string& name, const EncodeOptions& options, bool is_second) {
    TextTokens out = tokens_of(text, name);
    if (options.most && (options.shortened != Shortened::only_second || is_second)) drop_pieces_beyond(out, *options.most, cuts_left);
    return out;
  }

  void shorten(TextTokens& first, TextTokens* second, const std::string& name, const EncodeOptions& options) const {
    if (!options.most) return;
    uint64_t special = 0;
    if (options.special_tokens)
      for (const TemplatePart& part : second ? pair : single) special += part.tokens.size();
    const auto lengths = special > *options.most ? std::nullopt
                         : lengths_within({first.size(), second ? std::optional(second->size()) : std::nullopt}, *options.most - special, options.shortened);
    if (!lengths) throw Failure(exit_failed, fmt::format("{}: cannot be shortened to {} tokens, of which {} are special", name, grouped(*options.most), grouped(special)));
    first.keep(lengths->first, cuts_left);
    if (second) second->keep(*lengths->second, cuts_left);
  }

  Encoding put_together(const TextTokens& first, const TextTokens* second, bool with_special, bool of_words) const {
    Encoding out;
    out.is_cut = first.is_cut || (second && second->is_cut);
    for (const TemplatePart& part : second ? pair : single) {
      const bool is_special = part.kind == TemplatePart::Kind::special;
      if (is_special && !with_special) continue;
      const TextTokens& text = part.kind == TemplatePart::Kind::second ? *second : first;
      const std::vector<int32_t>& tokens = is_special ? part.tokens : text.tokens;
      out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
      out.types.resize(out.tokens.size(), part.type);
      if (!of_words) continue;
      if (!is_special) out.words.insert(out.words.end(), text.words.begin(), text.words.end());
      out.words.resize(out.tokens.size(), -1);
    }
    return out;
  }

  const std::string path;
  const std::vector<TemplatePart> single, pair;
  const bool cuts_left;
  std::vector<TextStep> text_steps;
  std::unordered_map<int32_t, std::string> texts;   // of tokens that are some, as the vocabulary has them or as bytes
  AddedTokens in_raw, in_normal;
  Normalization normal;
  Cuts cuts;
  std::unique_ptr<Model> model;
};

Tokenizer::Tokenizer(const std::string& path) : parts_(std::make_unique<Parts>(read_description(path), path)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, const std::string& name, bool as_it_is) const {
  return parts_->put_together(parts_->tokens_of(text, name), nullptr, !as_it_is, false).tokens;
}

Encoding Tokenizer::encode(std::string_view text, std::optional<std::string_view> second, const std::string& name, const EncodeOptions& options) const {
  TextTokens first = parts_->tokens_of(text, name, options, false);
  if (!second) {
    parts_->shorten(first, nullptr, name, options);
    return parts_->put_together(first, nullptr, options.special_tokens, false);
  }
  TextTokens other = parts_->tokens_of(*second, name, options, true);
  parts_->shorten(first, &other, name, options);
  return parts_->put_together(first, &other, options.special_tokens, false);
}

Encoding Tokenizer::encode_words(std::span<const std::string> words, const std::string& name, const EncodeOptions& options) const {
  TextTokens all;
  for (const std::string& word : words) {
    const TextTokens one = parts_->tokens_of(word, name, options, false);
    all.tokens.insert(all.tokens.end(), one.tokens.begin(), one.tokens.end());
    all.words.resize(all.tokens.size(), static_cast<int32_t>(&word - words.data()));
    all.is_cut = all.is_cut || one.is_cut;
  }
  parts_->shorten(all, nullptr, name, options);
  return parts_->put_together(all, nullptr, options.special_tokens, true);
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
