// `stowage help`: the pages of the guide (docs/), as they were when the command was built.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "commands/commands.h"
#include "commands/guide.h"
#include "flags/optimizers.h"

namespace command {
namespace {

void show_topics() {
  fmt::print("`stowage help TOPIC` shows a page of the guide:\n\n");
  for (const GuidePage& page : guide_pages()) fmt::print("  {:<14} {}\n", page.topic, page.answers);
  fmt::print("\n`stowage COMMAND --help` lists the flags of a command.\n");
}

// Words that users look for, and the page about each. Names of optimizers are added by page_of().
struct Word {
  std::string_view word, topic;
};
constexpr Word words[] = {
    {"adapter", "adapters"},
    {"lora", "adapters"},
    {"qlora", "adapters"},
    {"peft", "adapters"},
    {"rslora", "adapters"},
    {"merge", "adapters"},
    {"quantize", "adapters"},
    {"quantization", "adapters"},
    {"quantized", "adapters"},
    {"nf4", "adapters"},
    {"int8", "adapters"},
    {"4bit", "adapters"},
    {"bitsandbytes", "adapters"},
    {"training", "train"},
    {"finetune", "train"},
    {"fine-tune", "train"},
    {"finetuning", "train"},
    {"fine-tuning", "train"},
    {"sft", "train"},
    {"pretrain", "train"},
    {"checkpoint", "train"},
    {"checkpoints", "train"},
    {"resume", "train"},
    {"save", "train"},
    {"best", "train"},
    {"patience", "train"},
    {"early-stopping", "train"},
    {"tensorboard", "train"},
    {"logging", "train"},
    {"metrics", "train"},
    {"optimizer", "train"},
    {"optimizers", "train"},
    {"schedule", "train"},
    {"scheduler", "train"},
    {"lr", "train"},
    {"learning-rate", "train"},
    {"warmup", "train"},
    {"precision", "train"},
    {"bf16", "train"},
    {"fp16", "train"},
    {"fp32", "train"},
    {"freeze", "train"},
    {"generate", "train"},
    {"inference", "train"},
    {"sample", "train"},
    {"steps", "train"},
    {"run", "train"},
    {"loss", "train"},
    {"interrupt", "train"},
    {"reproducible", "train"},
    {"dataset", "data"},
    {"datasets", "data"},
    {"file", "data"},
    {"files", "data"},
    {"csv", "data"},
    {"tsv", "data"},
    {"json", "data"},
    {"jsonl", "data"},
    {"parquet", "data"},
    {"txt", "data"},
    {"text", "data"},
    {"npy", "data"},
    {"bin", "data"},
    {"tokenize", "data"},
    {"tokens", "data"},
    {"tokenizer", "data"},
    {"tokenizers", "data"},
    {"chat", "data"},
    {"chat-template", "data"},
    {"conversations", "data"},
    {"messages", "data"},
    {"examples", "data"},
    {"prompt", "data"},
    {"completion", "data"},
    {"packing", "data"},
    {"epochs", "data"},
    {"epoch", "data"},
    {"eval", "data"},
    {"evaluate", "data"},
    {"evaluation", "data"},
    {"validation", "data"},
    {"format", "data"},
    {"formats", "data"},
    {"encoding", "data"},
    {"unicode", "data"},
    {"model", "models"},
    {"architecture", "models"},
    {"architectures", "models"},
    {"presets", "models"},
    {"preset", "models"},
    {"encoder", "models"},
    {"encoders", "models"},
    {"llama", "models"},
    {"gpt2", "models"},
    {"bert", "models"},
    {"qwen", "models"},
    {"mistral", "models"},
    {"gemma", "models"},
    {"weights", "models"},
    {"safetensors", "models"},
    {"classifier", "classifiers"},
    {"classify", "classifiers"},
    {"classification", "classifiers"},
    {"label", "classifiers"},
    {"labels", "classifiers"},
    {"ner", "classifiers"},
    {"entities", "classifiers"},
    {"conll", "classifiers"},
    {"regression", "classifiers"},
    {"number", "classifiers"},
    {"numbers", "classifiers"},
    {"task", "classifiers"},
    {"tasks", "classifiers"},
    {"masked", "classifiers"},
    {"mlm", "classifiers"},
    {"f1", "classifiers"},
    {"accuracy", "classifiers"},
    {"preference", "preferences"},
    {"dpo", "preferences"},
    {"ipo", "preferences"},
    {"simpo", "preferences"},
    {"orpo", "preferences"},
    {"rlhf", "preferences"},
    {"pairs", "preferences"},
    {"rewards", "preferences"},
    {"planning", "plan"},
    {"planner", "plan"},
    {"frontier", "plan"},
    {"compare", "plan"},
    {"calibrate", "plan"},
    {"profile", "plan"},
    {"speed", "plan"},
    {"vram", "memory"},
    {"ram", "memory"},
    {"recompute", "memory"},
    {"offload", "memory"},
    {"host-memory", "memory"},
    {"gradient-checkpointing", "memory"},
    {"batch", "memory"},
    {"micro-batch", "memory"},
    {"oom", "out-of-memory"},
    {"out", "out-of-memory"},
    {"does-not-fit", "out-of-memory"},
    {"fit", "out-of-memory"},
    {"cuda", "gpu"},
    {"nvidia", "gpu"},
    {"device", "gpu"},
    {"devices", "gpu"},
    {"kernels", "gpu"},
    {"cublas", "gpu"},
    {"cudnn", "gpu"},
    {"attention", "gpu"},
    {"python", "bindings"},
    {"c", "bindings"},
    {"c++", "bindings"},
    {"cpp", "bindings"},
    {"rust", "bindings"},
    {"go", "bindings"},
    {"csharp", "bindings"},
    {"c#", "bindings"},
    {"api", "bindings"},
    {"library", "bindings"},
    {"benchmark", "benchmarks"},
    {"performance", "benchmarks"},
    {"limit", "limits"},
    {"limitations", "limits"},
    {"unsupported", "limits"},
    {"trainer", "coming-from"},
    {"transformers", "coming-from"},
    {"huggingface", "coming-from"},
    {"trl", "coming-from"},
    {"unsloth", "coming-from"},
    {"axolotl", "coming-from"},
    {"mlx", "coming-from"},
    {"mlx-lm", "coming-from"},
    {"migrate", "coming-from"},
    {"options", "coming-from"},
    {"deepspeed", "coming-from"},
    {"fsdp", "coming-from"},
};

// The topic in lower case, with hyphens between words, without leading hyphens and without the ending .md.
std::string plain(const std::string& topic) {
  std::string word = topic;
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' || c == ' ' ? '-' : c;
  });
  word.erase(0, word.find_first_not_of('-'));
  return word.ends_with(".md") ? word.substr(0, word.size() - 3) : word;
}

bool has_word(std::string_view text, std::string_view word) {
  const auto is_letter = [&](size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0);
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  return false;
}

// The pages that have the word in their text.
void show_mentions(const std::string& topic, const std::string& word) {
  std::string found;
  for (const GuidePage& page : guide_pages()) {
    std::string text(page.text);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (!word.empty() && has_word(text, word))
      found += fmt::format("  {:<14} {}\n", page.topic, page.answers);
  }
  if (found.empty())
    throw Failure(exit_usage, fmt::format("there is no topic {}: `stowage help` lists them", topic));
  fmt::print("No page is about {} alone. These pages mention it:\n\n{}\n`stowage help TOPIC` shows one.\n",
             topic, found);
}

// The name of the page about a word: the word itself, unless another page is about it.
std::string_view page_of(const std::string& word) {
  if (find_optimizer(word)) return "train";
  const auto* const meant =
      std::find_if(std::begin(words), std::end(words), [&](const Word& each) { return each.word == word; });
  return meant == std::end(words) ? std::string_view(word) : meant->topic;
}

void show(const std::string& topic) {
  if (topic.empty()) return show_topics();
  const std::string word = plain(topic);
  const std::string_view name = page_of(word);
  const auto pages = guide_pages();
  const auto page =
      std::find_if(pages.begin(), pages.end(), [&](const GuidePage& each) { return each.topic == name; });
  if (page == pages.end()) return show_mentions(topic, word);
  fmt::print("{}", page->text);
}

}  // namespace

void add_help(CLI::App& application) {
  CLI::App* command =
      application.add_subcommand("help", "Show a page of the guide, or the list of its pages.");
  const auto topic = std::make_shared<std::vector<std::string>>();
  command->add_option("TOPIC", *topic, "A page, or a word such as lora or csv. Default: the list of pages.");
  command->callback([topic] { show(fmt::format("{}", fmt::join(*topic, " "))); });
}

}  // namespace command
