#include "foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>

namespace command {
namespace {

// `here`: a flag of ours, perhaps with its value; empty: there is none, and `why` says all. Names have hyphens, and no case.
struct ForeignFlag { std::string_view name, here, why; };

constexpr ForeignFlag foreign_flags[] = {
    // How long, and how fast.
    {"learning-rate", "--lr", ""},
    {"num-train-epochs", "--epochs", ""},
    {"num-epochs", "--epochs", ""},
    {"epoch", "--epochs", ""},
    {"n-epochs", "--epochs", ""},
    {"max-steps", "--steps", ""},
    {"num-steps", "--steps", ""},
    {"num-train-steps", "--steps", ""},
    {"max-train-steps", "--steps", ""},
    {"iters", "--steps", ""},
    {"num-iters", "--steps", ""},
    {"max-iters", "--steps", ""},
    {"warmup-steps", "--warmup", ""},
    {"num-warmup-steps", "--warmup", ""},
    {"warmup-iters", "--warmup", ""},
    {"warmup-ratio", "--warmup", "in steps, not as a share of them"},
    {"lr-scheduler-type", "--schedule", ""},
    {"lr-scheduler", "--schedule", ""},
    {"lr-schedule", "--schedule", ""},
    {"scheduler", "--schedule", ""},
    {"min-learning-rate", "--min-lr", ""},
    {"cosine-min-lr-ratio", "--min-lr", "as a rate, not as a share of --lr"},
    {"lr-decay-steps", "--decay-steps", "of --schedule wsd"},
    {"lr-decay-iters", "--decay-steps", "of --schedule wsd"},
    // Batches and samples.
    {"batch-size", "--batch", "the samples of one optimizer step"},
    {"train-batch-size", "--batch", "the samples of one optimizer step"},
    {"per-device-train-batch-size", "--batch", "the samples of one optimizer step, however it is cut up; --micro-batch is how many pass at once"},
    {"per-gpu-train-batch-size", "--batch", "the samples of one optimizer step, however it is cut up; --micro-batch is how many pass at once"},
    {"micro-batch-size", "--micro-batch", "which is chosen by itself"},
    {"gradient-accumulation-steps", "--batch", "all samples of one optimizer step; how they are cut up is chosen by itself"},
    {"grad-accumulation-steps", "--batch", "all samples of one optimizer step; how they are cut up is chosen by itself"},
    {"auto-find-batch-size", "--micro-batch", "which is chosen by itself to fit --vram"},
    {"max-length", "--seq", ""},
    {"max-seq-length", "--seq", ""},
    {"max-seq-len", "--seq", ""},
    {"sequence-len", "--seq", ""},
    {"sequence-length", "--seq", ""},
    {"seq-length", "--seq", ""},
    {"seq-len", "--seq", ""},
    {"block-size", "--seq", ""},
    {"context-length", "--seq", ""},
    {"model-max-length", "--seq", ""},
    {"max-source-length", "--seq", ""},
    {"packing", "", "samples hold as many whole examples as there is room for, and attention keeps them apart"},
    {"sample-packing", "", "samples hold as many whole examples as there is room for, and attention keeps them apart"},
    {"group-by-length", "", "samples hold as many whole examples as there is room for"},
    // Models and files.
    {"model-name-or-path", "--model", ""},
    {"model-name", "--model", ""},
    {"model-path", "--model", ""},
    {"model-id", "--model", ""},
    {"base-model", "--model", ""},
    {"pretrained-model-name-or-path", "--model", ""},
    {"tokenizer-name", "--tokenizer", ""},
    {"tokenizer-name-or-path", "--tokenizer", ""},
    {"dataset", "--data", "a file"},
    {"datasets", "--data", "a file"},
    {"dataset-name", "--data", "a file"},
    {"dataset-path", "--data", "a file"},
    {"data-path", "--data", "a file"},
    {"data-dir", "--data", "a file"},
    {"train-file", "--data", ""},
    {"train-data", "--data", ""},
    {"validation-file", "--eval-data", ""},
    {"eval-file", "--eval-data", ""},
    {"valid-file", "--eval-data", ""},
    {"test-file", "--eval-data", ""},
    {"dataset-text-field", "--text-field", ""},
    {"text-column", "--text-field", ""},
    {"text-column-name", "--text-field", ""},
    {"label-column", "--label-field", ""},
    {"label-column-name", "--label-field", ""},
    {"output-dir", "--out", ""},
    {"output", "--out", ""},
    {"output-path", "--out", ""},
    {"adapter-path", "--out", "the folder of the run, where its adapters lie"},
    {"overwrite-output-dir", "--overwrite", ""},
    {"resume-from-checkpoint", "--resume", "the folder of a run"},
    {"resume-adapter-file", "--adapter", "a folder of adapters; --resume goes on with a run"},
    {"chat-template-path", "--chat-template", ""},
    // Saving, evaluating, telling.
    {"save-steps", "--save-every", "in batches"},
    {"steps-per-save", "--save-every", "in batches"},
    {"saves-per-epoch", "--save-every", "in batches"},
    {"save-strategy", "--save-every", "in batches"},
    {"eval-steps", "--eval-every", "in batches"},
    {"steps-per-eval", "--eval-every", "in batches"},
    {"evals-per-epoch", "--eval-every", "in batches"},
    {"eval-strategy", "--eval-every", "in batches"},
    {"evaluation-strategy", "--eval-every", "in batches"},
    {"val-batches", "--eval-batches", ""},
    {"max-eval-samples", "--eval-batches", "in batches"},
    {"val-set-size", "--eval-data", "a file; else a tenth of --data is held out"},
    {"eval-split", "--eval-data", "a file; else a tenth of --data is held out"},
    {"logging-steps", "", "metrics.jsonl has a line for every step"},
    {"logging-strategy", "", "metrics.jsonl has a line for every step"},
    {"steps-per-report", "", "metrics.jsonl has a line for every step"},
    {"report-to", "--tensorboard", "a folder; metrics.jsonl in the run's folder has a line for every step in any case"},
    {"logging-dir", "--tensorboard", ""},
    {"load-best-model-at-end", "--keep-best", ""},
    {"metric-for-best-model", "--metric", ""},
    {"early-stopping-patience", "--patience", ""},
    {"save-total-limit", "--keep", ""},
    {"run-name", "--out", "the folder of the run names it"},
    // What is trained, and in which numbers.
    {"bf16", "--precision bf16", ""},
    {"fp16", "--precision fp16", ""},
    {"tf32", "--precision", ""},
    {"dtype", "--precision", ""},
    {"torch-dtype", "--precision", ""},
    {"mixed-precision", "--precision", ""},
    {"load-in-4bit", "--quantize nf4", "with --lora"},
    {"load-in-8bit", "--quantize int8", "with --lora"},
    {"use-4bit", "--quantize nf4", "with --lora"},
    {"bnb-4bit-quant-type", "--quantize nf4", "with --lora"},
    {"use-peft", "--lora", "the rank"},
    {"use-lora", "--lora", "the rank"},
    {"lora-r", "--lora", "the rank"},
    {"lora-rank", "--lora", "the rank"},
    {"lora-parameters", "--lora", "the rank"},
    {"lora-layers", "--lora-targets", ""},
    {"lora-target-modules", "--lora-targets", ""},
    {"lora-target-linear", "--lora-targets all-linear", "which is the default"},
    {"target-modules", "--lora-targets", ""},
    {"use-rslora", "--rslora", ""},
    {"peft-use-rslora", "--rslora", ""},
    {"num-layers", "--group", "or --freeze, of parameters by name"},
    {"fine-tune-type", "--lora", "for adapters; without it all parameters are trained"},
    {"optim", "--optimizer", ""},
    {"optimizer-type", "--optimizer", ""},
    {"adam-beta1", "--beta1", ""},
    {"adam-beta2", "--beta2", ""},
    {"max-grad-norm", "--clip", ""},
    {"grad-clip", "--clip", ""},
    {"gradient-clipping", "--clip", ""},
    {"clip-grad-norm", "--clip", ""},
    {"label-smoothing-factor", "--label-smoothing", ""},
    {"gradient-checkpointing", "--recompute", "which is chosen by itself to fit --vram"},
    {"grad-checkpoint", "--recompute", "which is chosen by itself to fit --vram"},
    {"activation-checkpointing", "--recompute", "which is chosen by itself to fit --vram"},
    {"use-gradient-checkpointing", "--recompute", "which is chosen by itself to fit --vram"},
    {"random-seed", "--seed", ""},
    {"data-seed", "--seed", ""},
    {"mlm-probability", "--mask-rate", ""},
    {"mlm", "--task masked", ""},
    {"problem-type", "--task", ""},
    {"loss-type", "--preference", ""},
    {"rl", "--preference", ""},
    {"num-labels", "", "the labels of --data are counted"},
    {"attn-implementation", "--attention", ""},
    {"flash-attention", "--attention", ""},
    {"use-flash-attention-2", "--attention", ""},
    {"no-cuda", "--device cpu", ""},
    {"use-cpu", "--device cpu", ""},
    {"cpu-offload", "--host-memory", ""},
    {"train", "", "`stowage train` trains, `stowage eval` evaluates"},
    {"do-train", "", "`stowage train` trains, `stowage eval` evaluates"},
    {"do-eval", "", "`stowage train` evaluates as it goes, and `stowage eval` by itself"},
    {"do-predict", "", "`stowage classify` or `stowage generate` answers"},
    // Of generate.
    {"max-new-tokens", "--tokens", ""},
    {"max-tokens", "--tokens", ""},
    {"temp", "--temperature", ""},
    {"top-n", "--top-k", ""},
};

std::string with_hyphens(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string name(word.substr(0, word.find('=')));
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name;
}

}  // namespace

std::optional<std::string> foreign_flag(std::string_view word, const std::vector<std::string>& flags) {
  const std::string name = with_hyphens(word);
  const auto is_here = [&](std::string_view flag) { return std::find(flags.begin(), flags.end(), flag) != flags.end(); };
  if (const std::string same = "--" + name; is_here(same)) return "; it is " + same + " here";
  for (const auto& [foreign, here, why] : foreign_flags) {
    if (foreign != name) continue;
    if (here.empty()) return fmt::format("; there is no need of it: {}", why);
    if (is_here(here.substr(0, here.find(' ')))) return fmt::format("; it is {} here{}{}", here, why.empty() ? "" : ", ", why);
  }
  return std::nullopt;
}

}  // namespace command
