#include "data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "units.h"

namespace command {
namespace {

// In a file without a name, that is gone with the process.
class Held {
 public:
  explicit Held(const std::string& bytes) : file_(std::tmpfile()) {
    if (!file_ || std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() || std::fflush(file_) != 0)
      throw Failure(exit_failed, fmt::format("cannot write {} bytes of tokens into a temporary file: {}", grouped(bytes.size()), std::strerror(errno)));
  }
  ~Held() {
    if (file_) std::fclose(file_);
  }
  Held(const Held&) = delete;
  std::string path() const { return fmt::format("/dev/fd/{}", ::fileno(file_)); }

 private:
  std::FILE* file_;
};

// The token behind every example.
int32_t end_of_examples(const DataFlags& flags, const ModelFlags& model, uint64_t vocabulary, std::optional<uint32_t> end) {
  if (!end)
    throw Failure(exit_usage, fmt::format("--data {}: {} has no end of text (eos_token_id); name the token that ends an example with --document-end", flags.path, model.source));
  if (*end >= vocabulary)
    throw Failure(exit_usage, fmt::format("--data {}: token {}, which ends an example, is outside of the model's vocabulary of {}; name another with --document-end",
                                          flags.path, *end, grouped(vocabulary)));
  return static_cast<int32_t>(*end);
}

}  // namespace

void add_data_flags(CLI::App& command, DataFlags& flags) {
  command.add_option("--data", flags.path, "A text in UTF-8; a .jsonl file of examples to learn from, one a line, {\"prompt\": …, \"completion\": …}, {\"messages\": […]} or {\"text\": …}; or a .bin file of "
                     "little-endian uint16 (uint32) token ids.")
      ->required()
      ->type_name("FILE");
  add_tokenizer_flag(command, flags.tokenizer);
  add_chat_template_flag(command, flags.chat_template);
}

void find_examples(PlanFlags& plan, const DataFlags& data, const ModelFlags& model) {
  plan.examples = holds_examples(data.path);
  if (!plan.examples || plan.document_end) return;
  const std::vector<int32_t> ends = end_tokens(run_of(model));
  if (!ends.empty()) plan.document_end = static_cast<uint32_t>(ends[0]);
}

OpenData open_data(const DataFlags& flags, const Tokenization& tokenization, const ModelFlags& model, uint64_t vocabulary, uint64_t sequence,
                   bool evaluates, std::optional<uint32_t> document_end) {
  std::optional<Held> held, marks;
  OpenData opened;
  if (holds_examples(flags.path)) {
    std::optional<chat::ChatTemplate> conversations;   // asked for by the first one
    const auto chat_template = [&](const std::string& place) -> const chat::ChatTemplate& {
      if (!conversations) conversations = chat_template_of(flags.chat_template, tokenization, run_of(model));
      if (!conversations) throw no_chat_template(place);
      return *conversations;
    };
    const Examples examples = read_examples(flags.path, tokenization, chat_template, end_of_examples(flags, model, vocabulary, document_end), sequence);
    opened.counts = examples.counts;
    held.emplace(token_file(examples.tokens, vocabulary));
    marks.emplace(examples.marks);
  } else if (tokenization.kind() == Tokenization::Kind::text) {
    held.emplace(token_file(tokenization.read(flags.path), vocabulary));
  }
  const std::string path = held ? held->path() : flags.path, marks_path = marks ? marks->path() : "";
  auto options = sized<stw_dataset_options>();
  options.path = path.c_str();
  options.marks = marks ? marks_path.c_str() : nullptr;
  options.tokenizer = !held && tokenization.kind() == Tokenization::Kind::bytes ? STW_TOKENIZER_BYTE : STW_TOKENIZER_IDS;
  options.vocabulary = vocabulary;
  options.sequence = sequence;
  options.seed = model.seed;
  if (document_end && !marks) {
    options.set_mask = STW_SET_DOCUMENT_END;
    options.document_end = *document_end;
  }
  stw_dataset* data = nullptr;
  const auto open = [&](stw_error* error) { return stw_dataset_open(&data, &options, error); };
  try {
    call(open);
  } catch (const Failure& failure) {
    std::string message = failure.what();
    if (const size_t at = message.find(path); at != std::string::npos) message.replace(at, path.size(), flags.path);
    // Where windows of one token fit, it is their length that is wrong.
    options.sequence = 1;
    if (open(nullptr) != STW_OK) throw Failure(failure.exit_code, message);
    stw_dataset_close(data);
    throw Failure(failure.exit_code, message + "; use a shorter --seq");
  }
  opened.dataset.reset(data);
  const uint64_t held_out = query(opened.dataset).evaluation_tokens;
  if (evaluates && marks && held_out == 0)
    throw Failure(exit_failed, fmt::format("{}: too few examples to hold one out for evaluations; train with --eval-batches 0", flags.path));
  if (evaluates && !marks && held_out <= sequence)
    throw Failure(exit_failed, fmt::format("{}: the held-out part needs at least {} tokens (a window of {} and one target "
                                           "more), found {}; use a shorter --seq, or train with --eval-batches 0",
                                           flags.path, grouped(sequence + 1), grouped(sequence), grouped(held_out)));
  return opened;
}

}  // namespace command
