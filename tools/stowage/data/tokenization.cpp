#include "data/tokenization.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/json_value.h"
#include "base/kept_options.h"
#include "base/prompt.h"
#include "base/units.h"
#include "base/utf8.h"
#include "flags/flags.h"
#include "tokenizer/folder_files.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary_file.h"

namespace command {
namespace {

constexpr uint64_t byte_vocabulary = 256;
constexpr const char* file_name = "tokenizer.json";
constexpr const char* file_names[] = {file_name,
                                      vocabulary_file_name,
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "tokenizer.model",
                                      "chat_template.jinja",
                                      "generation_config.json"};

// The folder of a --model or --tokenizer; empty for a preset.
std::string folder_of(const std::string& source) {
  if (is_preset(source)) return {};
  if (is_folder(source)) return source;
  const size_t slash = source.rfind('/');
  return slash == std::string::npos ? "." : source.substr(0, std::max<size_t>(slash, 1));
}

// The folder of a model. If it has adapters, the folder of their base model is the second.
std::vector<std::string> folders_of(const std::string& model) {
  const std::string folder = folder_of(model);
  if (folder.empty()) return {};
  std::vector<std::string> folders{folder};
  const auto adapters = read_text_if_there(folder + "/adapter_config.json");
  const std::string base = adapters ? json_string(*adapters, "", "base_model_name_or_path").value_or("") : "";
  for (const std::string& path : {folder + "/" + base, base})
    if (!base.empty() && is_there(path)) folders.push_back(folder_of(path));
  return folders;
}

constexpr const char* unsupported_names[] = {"tokenizer.model",         "spiece.model", "spm.model",
                                             "sentencepiece.bpe.model", "tekken.json",  "tiktoken.model"};

Failure unsupported_tokenizer(const std::string& file, const std::string& folder) {
  return {exit_failed,
          fmt::format("{}: this kind of tokenizer is not supported; write a {} with transformers: {}", file,
                      file_name, python_that_converts(folder))};
}

// The tokenizer file in a folder; empty if there is none. Throws if it is of a kind that is not supported.
std::string file_in(const std::string& folder) {
  for (const char* name : {file_name, vocabulary_file_name})
    if (const std::string file = folder + "/" + name; is_there(file)) return file;
  if (is_there(folder + "/" + byte_pairs_merges_name))
    if (const std::string file = folder + "/" + byte_pairs_vocabulary_name; is_there(file)) return file;
  for (const char* name : unsupported_names)
    if (const std::string file = folder + "/" + name; is_there(file))
      throw unsupported_tokenizer(file, folder);
  return {};
}

// The tokenizer file in the model's folders; empty if there is none.
std::string file_of_model(const std::string& model) {
  for (const std::string& folder : folders_of(model))
    if (const std::string file = file_in(folder); !file.empty()) return file;
  return {};
}

// Refuses a file that by its name is no tokenizer of a supported kind.
void check_tokenizer_file(const std::string& file) {
  constexpr std::string_view of_folders[] = {"config.json",
                                             "tokenizer_config.json",
                                             "added_tokens.json",
                                             "special_tokens_map.json",
                                             "generation_config.json",
                                             "merges.txt"};
  const std::string name = file.substr(file.rfind('/') + 1);
  if (std::find(std::begin(unsupported_names), std::end(unsupported_names), name) !=
          std::end(unsupported_names) ||
      name.ends_with(".model"))
    throw unsupported_tokenizer(file, folder_of(file));
  const bool is_of_folder =
      std::find(std::begin(of_folders), std::end(of_folders), name) != std::end(of_folders);
  if (is_of_folder || name.ends_with(".safetensors"))
    throw Failure(exit_usage,
                  fmt::format("--tokenizer {}: is no tokenizer; expected a {}, {}, {} or the folder "
                              "of one",
                              file, file_name, vocabulary_file_name, byte_pairs_vocabulary_name));
}

// The tokenizer file that --tokenizer names, as a folder or a file.
std::string file_given(const std::string& flag) {
  if (!is_folder(flag)) {
    check_tokenizer_file(flag);
    return flag;
  }
  const std::string file = file_in(flag);
  return file.empty() ? flag + "/" + file_name : file;
}

}  // namespace

// Whether the name of a file says that it holds token ids.
static bool holds_ids(const std::string& data) { return data.ends_with(".bin") || data.ends_with(".npy"); }

bool is_tokenizer_path(const std::string& flag) { return flag != "auto" && flag != "byte" && flag != "ids"; }

Tokenization::Tokenization(Kind kind, uint64_t vocabulary, const std::string& file)
    : kind_(kind), vocabulary_(vocabulary) {
  if (kind == Kind::bytes && vocabulary < byte_vocabulary)
    throw Failure(exit_failed,
                  fmt::format("--tokenizer byte needs a vocabulary of at least {}, the model's has {}",
                              byte_vocabulary, grouped(vocabulary)));
  if (kind != Kind::text) return;
  file_ = file;
  tokenizer_ = std::make_unique<const Tokenizer>(file);
}
Tokenization::~Tokenization() = default;
Tokenization::Tokenization(Tokenization&&) noexcept = default;

Tokenization Tokenization::of_file(const std::string& flag, const std::string& data, bool has_ids,
                                   const std::string& model, uint64_t vocabulary) {
  if (is_tokenizer_path(flag) && has_ids)
    throw Failure(
        exit_usage,
        fmt::format("--tokenizer {}: is for texts, but {} holds token ids, as its name or --data-format says",
                    flag, data));
  if (is_tokenizer_path(flag)) return {Kind::text, vocabulary, file_given(flag)};
  if (flag != "auto") return {flag == "byte" ? Kind::bytes : Kind::ids, vocabulary};
  if (has_ids) return {Kind::ids, vocabulary};
  if (const std::string file = file_of_model(model); !file.empty()) return {Kind::text, vocabulary, file};
  if (vocabulary != byte_vocabulary && is_preset(model))
    throw Failure(
        exit_failed,
        fmt::format(
            "{}: expected a .bin file of token ids: {} is a preset, a shape without weights and tokenizer; "
            "give --model a folder that has them, or --tokenizer the path of a tokenizer.json",
            data, model));
  if (vocabulary != byte_vocabulary)
    throw Failure(
        exit_failed,
        fmt::format("{}: expected a .bin file of token ids for the model's vocabulary of {}, found another "
                    "name, and no {} or {} in the model's folder; --tokenizer byte takes its bytes as tokens",
                    data, grouped(vocabulary), file_name, vocabulary_file_name));
  return {Kind::bytes, vocabulary};
}

Tokenization Tokenization::of_text(const std::string& path, const std::string& model, uint64_t vocabulary) {
  const std::string file = path.empty() ? file_of_model(model) : file_given(path);
  if (file.empty())
    throw Failure(exit_failed,
                  fmt::format("{}: there is no {} or {} in this model's folder; give one with --tokenizer",
                              model, file_name, vocabulary_file_name));
  return {Kind::text, vocabulary, file};
}

Tokenization Tokenization::of_model(const std::string& flag, const std::string& model, uint64_t vocabulary) {
  if (is_tokenizer_path(flag)) return {Kind::text, vocabulary, file_given(flag)};
  if (flag != "auto") return {flag == "byte" ? Kind::bytes : Kind::ids, vocabulary};
  const std::string of_run = setting_of_run(model, "tokenizer").value_or("auto");
  const bool has_ids = holds_ids(setting_of_run(model, "data").value_or("")) ||
                       setting_of_run(model, "data-format").value_or("auto") == "tokens";
  const bool takes_ids = of_run == "ids" || (of_run == "auto" && has_ids);
  const std::string file = takes_ids || of_run == "byte" ? std::string() : file_of_model(model);
  if (!file.empty()) return {Kind::text, vocabulary, file};
  return {of_run == "byte" || vocabulary == byte_vocabulary ? Kind::bytes : Kind::ids, vocabulary};
}

void Tokenization::check(std::span<const int32_t> tokens, const std::string& name) const {
  const auto beyond = std::find_if(tokens.begin(), tokens.end(), [&](int32_t token) {
    return static_cast<uint64_t>(token) >= vocabulary_;
  });
  if (beyond != tokens.end())
    throw Failure(
        exit_failed,
        fmt::format("{}: its tokenizer gives token {}, which is outside of the model's vocabulary of {}",
                    name, *beyond, grouped(vocabulary_)));
}

std::vector<int32_t> Tokenization::encode(const std::string& text, const std::string& name,
                                          bool as_it_is) const {
  if (kind_ == Kind::bytes) {
    std::vector<int32_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  std::vector<int32_t> tokens = tokenizer_->encode(text, name, as_it_is);
  check(tokens, name);
  return tokens;
}

PlacedTokens Tokenization::encode_placed(const std::string& text, const std::string& name) const {
  if (kind_ == Kind::bytes) return {encode(text, name, true), {}};
  PlacedTokens whole;
  whole.tokens = tokenizer_->encode_placed(text, name, whole.places);
  check(whole.tokens, name);
  return whole;
}

size_t Tokenization::tokens_up_to(size_t byte, PlacedTokens& whole, const std::string& text,
                                  const std::string& name) const {
  if (byte >= text.size()) return whole.tokens.size();
  if (kind_ == Kind::bytes) return byte;
  // A place that is not certain is used if it is far from the end of the part and some tokens after it agree.
  constexpr size_t least_bytes = 64, least_tokens = 4;
  const auto end = std::lower_bound(whole.places.begin(), whole.places.end(), byte,
                                    [](const TokenPlace& place, size_t at) { return place.byte < at; });
  for (auto place = end;;) {
    const bool is_begin = place == whole.places.begin();
    const TokenPlace from = is_begin ? TokenPlace{0, 0} : *--place;
    if (!from.is_certain && byte - from.byte < least_bytes) continue;
    const std::string_view rest = std::string_view(text).substr(from.byte, byte - from.byte);
    const std::vector<int32_t> tokens =
        is_begin ? tokenizer_->encode(rest, name, true) : tokenizer_->encode_rest(rest, name);
    const auto begin = whole.tokens.begin() + static_cast<std::ptrdiff_t>(from.token);
    const auto same = static_cast<size_t>(
        std::mismatch(begin, whole.tokens.end(), tokens.begin(), tokens.end()).first - begin);
    if (!from.is_certain && same < least_tokens) {  // goes back to the last certain place
      while (place != whole.places.begin() && !std::prev(place)->is_certain) --place;
      continue;
    }
    if (same == tokens.size() && (end == whole.places.begin() || byte - std::prev(end)->byte >= least_bytes))
      whole.places.insert(end, TokenPlace{byte, from.token + same, false});
    return from.token + same;
  }
}

Encoding Tokenization::encode(std::string_view text, std::optional<std::string_view> second,
                              const std::string& name, const EncodeOptions& options) const {
  Encoding encoding = tokenizer_->encode(text, second, name, options);
  check(encoding.tokens, name);
  return encoding;
}

Encoding Tokenization::encode_words(std::span<const std::string> words, const std::string& name,
                                    const EncodeOptions& options) const {
  Encoding encoding = tokenizer_->encode_words(words, name, options);
  check(encoding.tokens, name);
  return encoding;
}

RangedTokens Tokenization::encode_ranged(std::string_view text, const std::string& name) const {
  RangedTokens encoded = tokenizer_->encode_ranged(text, name);
  check(encoded.tokens, name);
  return encoded;
}

Encoding Tokenization::pair_of(std::span<const int32_t> first, std::span<const int32_t> second) const {
  Encoding encoding = tokenizer_->pair_of(first, second);
  check(encoding.tokens, file_);
  return encoding;
}

bool Tokenization::joins_words() const { return tokenizer_->joins_words(); }

std::vector<int32_t> Tokenization::parse_prompt(const std::string& prompt) const {
  if (kind_ != Kind::text) return command::parse_prompt(prompt, kind_ == Kind::bytes, vocabulary_);
  std::vector<int32_t> tokens = encode(prompt, "--prompt");
  if (tokens.empty()) throw Failure(exit_usage, "--prompt: expected at least one token, found none");
  return tokens;
}

std::string Tokenization::text_of(std::span<const int32_t> tokens, Decoding& state) const {
  if (kind_ == Kind::text) return tokenizer_->decode(tokens, state);
  if (kind_ == Kind::bytes) {
    for (const int32_t token : tokens) state.bytes += static_cast<char>(token);
    return take_characters(state.bytes, false);
  }
  std::string text;
  for (const int32_t token : tokens) text += fmt::format("{} ", token);
  return text;
}

std::string Tokenization::rest_of_text(Decoding& state) const {
  return kind_ == Kind::text ? tokenizer_->finish(state) : take_characters(state.bytes, true);
}

std::string Tokenization::special_text(int32_t token) const {
  return kind_ == Kind::text ? tokenizer_->special_text(token) : "";
}

bool Tokenization::has_text(int32_t token) const { return tokenizer_->has_text(token); }

std::vector<int32_t> end_tokens(const std::string& model) {
  const std::vector<std::string> folders = folders_of(model);
  if (folders.empty()) return {};
  std::vector<int32_t> tokens;
  const std::string of_run = setting_of_run(folders[0], "document-end").value_or("");
  int32_t end = 0;
  if (std::from_chars(of_run.data(), of_run.data() + of_run.size(), end).ec == std::errc())
    tokens.push_back(end);
  std::vector<std::string> paths;
  for (const std::string& folder : folders)
    for (const char* name : {"/generation_config.json", "/config.json"}) paths.push_back(folder + name);
  for (const std::string& path : paths) {
    const auto text = read_text_if_there(path);
    if (!text) continue;
    const Json config = read_json(*text, path);
    const JsonView ends = JsonView(config, path + ": ").at("eos_token_id");  // one or several
    const size_t before = tokens.size();
    for (const JsonView& one : ends.is_array() ? ends.elements() : std::vector<JsonView>{ends})
      if (!one.is_null() && !one.is_negative())
        tokens.push_back(static_cast<int32_t>(one.integer(0x7fffffff)));
    if (tokens.size() > before) break;
  }
  return tokens;
}

namespace {

// Throws if the tokenizer cuts a special token of the template into several tokens. A model cannot learn to
// end an answer with such a token.
void require_whole_tokens(const chat::ChatTemplate& how, const Tokenization& tokenization) {
  for (const std::string& token : how.special_tokens())
    if (const size_t count = tokenization.encode(token, how.path(), true).size(); count != 1)
      throw Failure(exit_failed,
                    fmt::format("{}: writes {}, which {} cuts into {} tokens; add it to the tokenizer, or "
                                "give a template that writes the model's own tokens with --chat-template",
                                how.path(), token, tokenization.file(), count));
}

}  // namespace

std::optional<chat::ChatTemplate> chat_template_of(const std::string& flag, const Tokenization& tokenization,
                                                   const std::string& model) {
  std::vector<std::string> folders = folders_of(model);
  if (!tokenization.file().empty()) folders.insert(folders.begin(), folder_of(tokenization.file()));
  folders.push_back({});  // for a template that is given although there is no folder
  for (const std::string& folder : folders)
    if (auto found = chat::ChatTemplate::find(flag, folder)) {
      if (tokenization.kind() == Tokenization::Kind::text) require_whole_tokens(*found, tokenization);
      return found;
    }
  return std::nullopt;
}

Failure no_chat_template(const std::string& asked_by) {
  return {exit_failed,
          fmt::format("{}: the folder of the model's tokenizer has neither a chat_template.jinja nor a "
                      "chat_template in its tokenizer_config.json; give one with --chat-template",
                      asked_by)};
}

void add_chat_template_flag(CLI::App& command, std::string& path) {
  command
      .add_option("--chat-template", path,
                  "How conversations are written: a Jinja template. Default: chat_template.jinja or "
                  "tokenizer_config.json in the tokenizer's folder.")
      ->check(CLI::Validator(
          [](std::string& value) -> std::string {
            return is_there(value) && !is_folder(value) ? "" : fmt::format("there is no file {}", value);
          },
          "", ""))
      ->type_name("FILE");
}

void add_tokenizer_flag(CLI::App& command, std::string& tokenizer) {
  command
      .add_option("--tokenizer", tokenizer,
                  "byte: a token is a byte of text; ids: numbers; or a tokenizer.json, vocab.txt, vocab.json "
                  "or its folder. auto: the model's, else byte for 256 tokens.")
      ->check(CLI::Validator(
          [](std::string& value) -> std::string {
            return !is_tokenizer_path(value) || is_there(value)
                       ? ""
                       : fmt::format(
                             "expected auto, byte, ids, or a file or folder that is there, found \"{}\"",
                             value);
          },
          "", ""))
      ->type_name("auto|byte|ids|PATH");
}

int token_bytes(uint64_t vocabulary) { return vocabulary > 65536 ? 4 : 2; }

std::string token_file(std::span<const int32_t> tokens, uint64_t vocabulary) {
  const int bytes = token_bytes(vocabulary);
  std::string out;
  out.reserve(tokens.size() * static_cast<size_t>(bytes));
  for (const int32_t token : tokens)
    for (int byte = 0; byte < bytes; ++byte)
      out += static_cast<char>(static_cast<uint32_t>(token) >> 8 * byte & 0xFF);
  return out;
}

std::span<const char* const> tokenizer_file_names() { return file_names; }

std::vector<std::string> copy_tokenizer_files(const Tokenization& tokenization, const std::string& model,
                                              const std::string& run) {
  std::vector<std::string> names;
  const std::string tokenizer_folder =
      tokenization.file().empty() ? std::string() : folder_of(tokenization.file());
  const std::string file = tokenization.file();
  const std::string main_name = is_vocabulary_file(file)   ? vocabulary_file_name
                                : is_byte_pairs_file(file) ? byte_pairs_vocabulary_name
                                                           : file_name;
  for (const std::string name : file_names) {
    const std::string to = run + "/" + name;
    const bool is_read_first =
        name == file_name || (name == vocabulary_file_name && main_name == byte_pairs_vocabulary_name);
    if (is_there(to) || (is_read_first && name != main_name)) continue;  // would be read instead of main_name
    std::vector<std::string> sources;                                    // the first that exists is copied
    if (name == main_name && !tokenizer_folder.empty())
      sources.push_back(tokenization.file());  // whatever its name is
    if (!tokenizer_folder.empty()) sources.push_back(tokenizer_folder + "/" + name);
    for (const std::string& folder : folders_of(model)) sources.push_back(folder + "/" + name);
    for (const std::string& source : sources)
      if (const auto text = read_text_if_there(source)) {
        write_text(to, *text);
        names.push_back(name);
        break;
      }
  }
  return names;
}

}  // namespace command
