// `stowage generate`: continues a prompt. When the longest sequence is full, it continues from its last half.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/failure.h"
#include "base/files.h"
#include "base/foreign_file.h"
#include "base/messages.h"
#include "base/prompt.h"
#include "base/units.h"
#include "commands/commands.h"
#include "data/tokenization.h"
#include "flags/number_checks.h"
#include "run/inference.h"

namespace command {
namespace {

constexpr uint64_t window_limit = 1024;  // tokens

struct GenerateCommand {
  ModelFlags model;
  PlanFlags plan;
  std::string tokenizer = "auto", prompt = "\n";
  uint64_t count = 200, seed = 1337;
  uint32_t top_k = 0;
  double temperature = 0.8, top_p = 1;
  bool goes_on = false, converses = false;
  std::string system, chat_template;
  std::vector<int32_t> stop;  // tokens that end the text

  void run() {
    take_defaults_of_run(model, plan);
    plan.batch = 1;
    if (is_there(prompt) && !is_folder(prompt))
      complain(
          "stowage: warning: --prompt {}: is continued as a text, though there is a file of that name; "
          "--prompt \"$(cat {})\" takes its content",
          prompt, shell_word(prompt));
    const stw_model_info about = query(open_model(model));
    if (about.task == STW_TASK_MASKED_LANGUAGE_MODEL)
      throw Failure(exit_usage, fmt::format("{}: is a masked language model, which cannot continue a text",
                                            model.source));
    if (about.labels > 0)
      throw Failure(
          exit_usage,
          fmt::format("{}: is a classifier, which cannot continue a text; `stowage classify` classifies it",
                      model.source));
    require_head(model, about);
    const bool takes_own =
        converses && tokenizer == "auto" && about.vocabulary != 256;  // a conversation needs a text tokenizer
    const auto tokenization = takes_own ? Tokenization::of_text("", run_of(model), about.vocabulary)
                                        : Tokenization::of_model(tokenizer, run_of(model), about.vocabulary);
    std::vector<int32_t> tokens = converses ? conversation(tokenization) : tokenization.parse_prompt(prompt);
    check_sequence(plan.sequence, about.positions);
    // At most as long as the sequences of training: later positions may be untrained.
    const uint64_t longest = plan.sequence.value_or(std::min(about.positions, window_limit));
    plan.sequence = std::max<uint64_t>(2, std::min(longest, tokens.size() + count));
    if (tokenization.kind() != Tokenization::Kind::ids && !goes_on)
      for (const int32_t end : end_tokens(run_of(model))) stop.push_back(end);
    const Inference opened = open_inference(model, plan);
    Decoding text;
    if (!converses) print(tokenization, tokenization.text_of(tokens, text));
    for (uint64_t done = 0; done < count;) {
      const uint64_t added = extend(opened.trainer.get(), tokens, count - done, done);
      const bool ended = std::find(stop.begin(), stop.end(), tokens.back()) != stop.end();
      print(tokenization, tokenization.text_of(std::span(tokens).last(added).first(added - ended), text));
      if (ended) break;
      done += added;
    }
    print(tokenization, tokenization.rest_of_text(text) + "\n");
  }

  // The tokens of the conversation up to the model's answer, written by the chat template.
  std::vector<int32_t> conversation(const Tokenization& tokenization) {
    if (tokenization.kind() == Tokenization::Kind::ids)
      throw Failure(exit_usage, "--chat: is for text; give the model's tokenizer with --tokenizer");
    const auto how = chat_template_of(chat_template, tokenization, run_of(model));
    if (!how) throw no_chat_template("--chat");
    Json messages = Json::array();
    const auto say = [&](const char* role, const std::string& content) {
      messages.push(Json::object().set("role", role).set("content", content));
    };
    if (!system.empty()) say("system", system);
    say("user", prompt);
    // Stops at the template's end-of-turn token, if the turn ends with a special token.
    const std::vector<int32_t> end = tokenization.encode(how->end_of_answer("--chat"), "--chat", true);
    if (!goes_on && tokenization.kind() == Tokenization::Kind::text && !end.empty() &&
        !tokenization.has_text(end[0]))
      stop.push_back(end[0]);
    return tokenization.encode(how->prompt(messages, Json::object(), "--chat"), "--prompt", true);
  }

  // Appends new tokens until the window is full. Returns their number.
  uint64_t extend(stw_trainer* trainer, std::vector<int32_t>& tokens, uint64_t wanted, uint64_t done) const {
    const uint64_t window = *plan.sequence;
    const uint64_t context = tokens.size() < window ? tokens.size() : std::max<uint64_t>(1, window / 2);
    std::vector<int32_t> out(std::min(wanted, window - context));
    auto options = sized<stw_generate_options>();
    options.prompt = tokens.data() + tokens.size() - context;
    options.prompt_count = context;
    options.out = out.data();
    options.out_capacity = out.size();
    options.temperature = temperature;
    options.top_k = top_k;
    options.top_p = top_p;
    options.set_mask = STW_SET_GENERATE_SEED;
    options.seed = seed + done;  // each window draws its own random numbers
    options.stop = stop.data();
    options.stop_count = stop.size();
    uint64_t received = 0;
    call([&](stw_error* error) { return stw_trainer_generate(trainer, &options, &received, error); });
    if (received == 0) throw Failure(exit_failed, "the model gave no token");
    tokens.insert(tokens.end(), out.begin(), out.begin() + static_cast<ptrdiff_t>(received));
    return received;
  }

  static void print(const Tokenization& tokenization, std::string text) {
    if (tokenization.kind() != Tokenization::Kind::ids && ::isatty(STDOUT_FILENO)) text = printable(text);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
};

}  // namespace

void add_generate(CLI::App& application) {
  auto self = std::make_shared<GenerateCommand>();
  CLI::App& command = *application.add_subcommand("generate", "Continue a prompt with a trained model.");
  command.footer(
      "Models read and write text if their folder has a tokenizer, and models of 256 tokens do so byte by "
      "byte. Runs\non token ids and models without a tokenizer read and write token ids, or text with "
      "--tokenizer.");
  add_model_flags(command, self->model);
  add_from_scratch_flag(command, self->model);
  command
      .add_option("--prompt", self->prompt,
                  "Text, or token ids separated by spaces or commas. Default: a line end.")
      ->type_name("TEXT");
  auto* chat = command.add_flag("--chat", self->converses,
                                "The prompt is a user's message, and the model's chat template writes it.\n"
                                "Only the answer is shown, up to the token that ends a turn, if one does.");
  command.add_option("--system", self->system, "With --chat: the system's message before it.")
      ->needs(chat)
      ->type_name("TEXT");
  add_chat_template_flag(command, self->chat_template);
  command.add_option("--tokens", self->count, "How many new tokens. Default: 200.")
      ->check(positive())
      ->type_name("N");
  command.add_option("--temperature", self->temperature, "0: always the most probable token. Default: 0.8.")
      ->check(not_negative())
      ->type_name("T");
  command
      .add_option("--top-k", self->top_k, "Draw from the K most probable tokens; 0: from all. Default: 0.")
      ->check(whole_number(0, any_uint32))
      ->type_name("K");
  command
      .add_option("--top-p", self->top_p,
                  "Draw from the smallest set of most probable tokens, among those of --top-k, "
                  "whose\nprobabilities at this temperature add up to at least P. Default: 1 (all).")
      ->check(above_zero(1))
      ->type_name("P");
  command.add_flag("--ignore-end", self->goes_on,
                   "Continue after a token that ends a text (the one that ended documents in training, or "
                   "eos_token_id of generation_config.json or config.json).");
  add_seed(command, self->seed, "The seed of the random draws. Default: 1337.");
  add_tokenizer_flag(command, self->tokenizer);
  command
      .add_option("--seq", self->plan.sequence,
                  "Longest context. Default: that of the training run, else the model's.")
      ->check(whole_number(2))
      ->type_name("N");
  command.add_option("--device", self->plan.device, "cpu or cuda.")->type_name("NAME");
  add_bytes(command, "--vram,--memory", self->plan.memory_bytes,
            "Bounds the memory. Default: the smallest budget that works.");
  add_quantize_flags(command, self->plan);
  add_threads_flag(command, self->plan);
  command.callback([self] { self->run(); });
}

}  // namespace command
