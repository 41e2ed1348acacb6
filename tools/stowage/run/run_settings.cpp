#include "run/run_settings.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/kept_options.h"
#include "base/prompt.h"
#include "base/utf8.h"
#include "data/data_source.h"
#include "data/tokenization.h"
#include "flags/flags.h"
#include "plans/profile.h"
#include "run/resume.h"
#include "run/run_folder.h"

namespace command {
namespace {

constexpr std::string_view files[] = {"model",     "weights", "adapter",  "data",
                                      "eval-data", "device",  "tokenizer"};
// The path in the run's folder of a plan or chat template that the run was given. The run keeps a copy there.
std::optional<std::string> own_file(const std::string& name, const RunFolder& run) {
  return name == "plan"            ? std::optional(run.plan())
         : name == "chat-template" ? std::optional(run.chat_template())
                                   : std::nullopt;
}

std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

std::string value_kept(const std::string& name, const std::string& value) {
  const bool is_file = std::find(std::begin(files), std::end(files), name) != std::end(files),
             is_pattern = name.ends_with("data") && is_file_pattern(value);
  if (!is_file || (name == "model" && is_preset(value)) ||
      (name == "tokenizer" && !is_tokenizer_path(value)) || (name == "device" && !is_profile_file(value)) ||
      (!is_there(value) && !is_pattern))
    return value;
  return std::filesystem::absolute(value).lexically_normal().string();
}

// The value of --resume on a command line of `train`. Empty if there is none.
std::optional<std::string> resumed(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] != "train") return std::nullopt;
  std::optional<std::string> folder;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--help" || words[i] == "-h") return std::nullopt;
    if (words[i].starts_with("--resume=")) folder = words[i].substr(9);
    if (words[i] == "--resume" && i + 1 < words.size()) folder = words[i + 1];
  }
  return folder;
}

bool is_given(const CLI::Option& option, const std::vector<std::string>& words) {
  const auto names_it = [&](const std::string& word) {
    return std::any_of(option.get_lnames().begin(), option.get_lnames().end(), [&](const std::string& name) {
      return word == "--" + name || word.starts_with("--" + name + "=");
    });
  };
  return std::any_of(words.begin(), words.end(), names_it);
}

// Removes words --no-NAME about options that a run keeps from the line, and returns these options.
std::vector<const CLI::Option*> taken_back(const CLI::App& train, const std::string& run,
                                           std::vector<std::string>& words) {
  std::vector<const CLI::Option*> options;
  std::erase_if(words, [&](const std::string& word) {
    constexpr std::string_view no = "--no-";
    const CLI::Option* const option =
        word.starts_with(no) ? train.get_option_no_throw("--" + word.substr(no.size())) : nullptr;
    if (!option || !is_kept_by_run(name_of(*option))) return false;
    if (is_of_the_bits(name_of(*option)))
      throw Failure(
          exit_usage,
          fmt::format("{}: the bits of the run in {} depend on it, so the run keeps its value", word, run));
    options.push_back(option);
    return true;
  });
  for (const CLI::Option* option : options)
    if (is_given(*option, words))
      throw Failure(exit_usage, fmt::format("--no-{0}: resets --{0}, which is given too", name_of(*option)));
  return options;
}

}  // namespace

std::string options_json(const CLI::App& train, std::optional<uint32_t> document_end) {
  std::string options;
  for (const CLI::Option* option : train.get_options()) {
    const std::string name = name_of(*option);
    const bool is_given = option->count() > 0, is_by_data = name == "document-end" && document_end;
    if ((!is_given && !is_by_data) || !is_kept_by_run(name)) continue;
    std::string values;
    if (!is_given) {
      values = json_bytes(std::to_string(*document_end));
    } else if (option->get_expected_max() > 0) {  // a flag has no values
      for (const std::string& given : option->results()) {
        const auto own = own_file(name, RunFolder(""));
        const std::string value = own ? own->substr(1) : value_kept(name, given);
        values += (values.empty() ? "" : ", ") + json_bytes(value);
      }
    }
    options += fmt::format("{}\n  {}: [{}]", options.empty() ? "" : ",", json_quoted(name), values);
  }
  return fmt::format("{{{}\n}}", options);
}

std::string settings_json(const std::string& options, uint64_t data, const std::vector<KeptFile>& kept) {
  std::string checksums;
  for (const KeptFile& file : kept)
    checksums += fmt::format("{}{}: \"{}\"", checksums.empty() ? "" : ", ", json_quoted(file.name),
                             checksum_of(file.text));
  const std::string text = fmt::format(
      "{{\"format\": \"{}\", \"version\": {}, \"data\": \"{:016x}\", \"options\": {}, \"files\": {{{}}}",
      settings_format, settings_version, data, options, checksums);
  return fmt::format("{}{}{}\"}}\n", text, checksum_field, checksum_of(text));
}

void check_files_of_run(const std::string& folder, const std::vector<std::string>& replaced) {
  const RunFolder run(folder);
  const auto text = read_text_if_there(run.settings());
  if (!text) return;
  std::vector<std::pair<std::string, std::string>> files;
  for_options(
      *text, run.settings(),
      [](JsonReader& reader, const std::string&) { reader.list('[', ']', [&] { reader.bytes(); }); }, &files);
  for (const auto& [name, checksum] : files) {
    if (std::find(replaced.begin(), replaced.end(), name) != replaced.end()) continue;
    const auto found = read_text_if_there(run.path() + "/" + name);
    if (!found)
      throw Failure(exit_failed, fmt::format("{}/{}: this file of the run is missing", run.path(), name));
    if (checksum_of(*found) != checksum)
      throw Failure(
          exit_failed,
          fmt::format(
              "{}/{}: damaged, or changed since the run wrote it: its checksum is not that of settings.json",
              run.path(), name));
  }
}

std::vector<std::string> with_settings_of_run(const CLI::App& train, std::vector<std::string> words) {
  const auto folder = resumed(words);
  if (!folder) return words;
  const RunFolder run(*folder);
  run.undo_set_aside();
  // Reported before other missing files.
  if (!is_there(run.checkpoint())) {
    const RunFolder replaced = run.replaced();
    throw Failure(exit_failed, fmt::format("--resume {}: found no {} in it{}", *folder, run.checkpoint(),
                                           is_there(replaced.checkpoint())
                                               ? "; the run that it was to replace is in " + replaced.path()
                                               : ""));
  }
  const std::vector<const CLI::Option*> without = taken_back(train, *folder, words);
  std::vector<std::string> more;
  for_settings(run.path(), [&](JsonReader& reader, const std::string& name) {
    const CLI::Option* const option = train.get_option_no_throw("--" + name);
    if (!option || !is_kept_by_run(name)) reader.fail(fmt::format("\"{}\" is not an option of a run", name));
    const auto excluding = option->get_excludes();
    const bool overruled = is_given(*option, words) ||
                           std::find(without.begin(), without.end(), option) != without.end() ||
                           std::any_of(excluding.begin(), excluding.end(),
                                       [&](const CLI::Option* other) { return is_given(*other, words); });
    bool is_flag = true;
    reader.list('[', ']', [&] {
      std::string value = reader.bytes();
      value = own_file(name, run).value_or(value);
      if (!overruled) more.push_back("--" + name + "=" + value);
      is_flag = false;
    });
    if (is_flag && !overruled) more.push_back("--" + name);
  });
  const CLI::Option* const chat_template = train.get_option_no_throw("--chat-template");
  const bool is_replaced =
      chat_template && (is_given(*chat_template, words) ||
                        std::find(without.begin(), without.end(), chat_template) != without.end());
  check_files_of_run(
      *folder, is_replaced ? std::vector<std::string>{"chat_template.jinja"} : std::vector<std::string>());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace command
