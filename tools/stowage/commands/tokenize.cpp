// `stowage tokenize`: encodes texts as the token ids of a model's tokenizer, once for many runs.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/messages.h"
#include "base/units.h"
#include "commands/commands.h"
#include "data/data_source.h"
#include "data/tokenization.h"
#include "flags/flags.h"
#include "flags/number_checks.h"

namespace command {
namespace {

struct TokenizeCommand {
  ModelFlags model;
  std::vector<std::string> data;
  std::string tokenizer, out, format = "auto";
  std::optional<uint32_t> document_end;
  bool overwrite = false;

  void run() const {
    if (!out.ends_with(".bin"))
      throw Failure(
          exit_usage,
          fmt::format("--out {}: expected a name that ends in .bin, the ending of files of token ids", out));
    if (is_there(out) && !overwrite)
      throw Failure(
          exit_failed,
          fmt::format("{} exists already: replace it with --overwrite, or give another --out", out));
    const uint64_t vocabulary = query(open_model(model)).vocabulary;
    if (document_end && *document_end >= vocabulary)
      throw Failure(exit_usage, fmt::format("--document-end {}: outside of the vocabulary of {}",
                                            *document_end, grouped(vocabulary)));
    const auto tokenization = Tokenization::of_text(tokenizer, model.source, vocabulary);
    std::vector<int32_t> tokens;
    uint64_t bytes = 0;
    for (const std::string& file : data) {
      if (is_same(file, out))
        throw Failure(exit_failed, fmt::format("--data {}: is --out {}, which would be replaced", file, out));
    }
    DataReading reading;
    reading.format = format;
    const DataSource source(data, reading);
    if (source.holds_examples())
      throw Failure(exit_failed, fmt::format("--data {}: holds examples ({}), which `train` and `eval` read "
                                             "themselves; --data-format text takes it as it is written",
                                             source.name(), source.description()));
    if (source.has_tokens())
      throw Failure(
          exit_failed,
          fmt::format("--data {}: expected text, found token ids, as its name or --data-format says",
                      source.name()));
    for (size_t i = 0; i < source.files().size(); ++i) {
      const std::string text(source.content(i));
      source.forget();
      const std::vector<int32_t> more = tokenization.encode(text, source.files()[i].path);
      tokens.insert(tokens.end(), more.begin(), more.end());
      if (document_end) tokens.push_back(static_cast<int32_t>(*document_end));
      bytes += text.size();
    }
    if (tokens.empty())
      throw Failure(exit_failed, fmt::format("{}: expected some text, found none", data.front()));
    write_text(out, token_file(tokens, vocabulary));
    tell("wrote       {}: {} tokens of {} bytes of text ({:.2f} bytes a token), uint{}\n", out,
         grouped(tokens.size()), grouped(bytes),
         static_cast<double>(bytes) / static_cast<double>(tokens.size()), 8 * token_bytes(vocabulary));
  }
};

}  // namespace

void add_tokenize(CLI::App& application) {
  auto self = std::make_shared<TokenizeCommand>();
  CLI::App& command =
      *application.add_subcommand("tokenize", "Turn texts into a file of a model's token ids.");
  command.footer(
      "Gives the same tokens as Hugging Face's tokenizers does with a tokenizer.json or BERT's vocab.txt, "
      "special tokens\nincluded. `train` and `eval` encode a text in the same way, each time.");
  command
      .add_option("--model", self->model.source,
                  "The model that the ids are for: a folder with config.json, a config.json, or a preset "
                  "such as gpt2.")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("--data", self->data,
                  "Texts in UTF-8, one after the other; folders, and patterns such as 'texts/*.txt'.")
      ->required()
      ->expected(1, -1)
      ->type_name("FILE...");
  add_data_format_flag(command, self->format);
  command
      .add_option(
          "--tokenizer", self->tokenizer,
          "A tokenizer.json, a vocab.txt or its folder. Default: the tokenizer in the model's folder.")
      ->check(CLI::ExistingPath)
      ->type_name("PATH");
  command
      .add_option("--document-end", self->document_end,
                  "A token to add after every text, such as the model's end of text. Default: none.")
      ->check(whole_number(0, 0x7fffffff))
      ->type_name("ID");
  command.add_option("--out", self->out, "The file to write, for --data of `train` and `eval`.")
      ->required()
      ->type_name("FILE.bin");
  command.add_flag("--overwrite", self->overwrite, "Replace the file of --out if it exists.");
  command.callback([self] { self->run(); });
}

}  // namespace command
