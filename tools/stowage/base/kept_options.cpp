#include "base/kept_options.h"

#include <fmt/format.h>
#include <charconv>

#include "base/failure.h"
#include "base/files.h"
#include "base/prompt.h"

namespace command {

namespace {

// The number that settings_json wrote. Empty if the text is something else.
std::optional<uint64_t> read_hash(std::string_view text) {
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  return error == std::errc() && end == text.data() + text.size() && text.size() == 16 ? std::optional(hash)
                                                                                       : std::nullopt;
}

// Throws a Failure if the checksum is wrong. Settings of older runs have no checksum.
void check_sum(const std::string& text, const std::string& path) {
  const size_t at = text.rfind(checksum_field);
  if (at == std::string::npos) return;
  if (text.compare(at + checksum_field.size(), std::string::npos,
                   checksum_of(std::string_view(text).substr(0, at)) + "\"}\n") != 0)
    throw Failure(
        exit_failed,
        fmt::format("{}: damaged, or changed since the run wrote it: its checksum does not match", path));
}

}  // namespace

std::optional<uint64_t> for_options(const std::string& text, const std::string& path,
                                    const ReadOption& option,
                                    std::vector<std::pair<std::string, std::string>>* recorded) {
  check_sum(text, path);
  std::optional<uint64_t> data;
  JsonReader reader(text, path + ": damaged");
  reader.object([&](const std::string& key) {
    if (key == "format") {
      if (reader.text() != settings_format)
        reader.fail(fmt::format("expected the format {}", settings_format));
    } else if (key == "version") {
      if (const uint64_t found = reader.integer(); found != settings_version)
        reader.fail(fmt::format("expected version {}, found {}", settings_version, found));
    } else if (key == "options") {
      reader.object([&](const std::string& name) { option(reader, name); });
    } else if (key == "data") {
      data = read_hash(reader.text());
      if (!data) reader.fail("expected 16 hexadecimal digits");
    } else if (key == "files") {
      reader.object([&](const std::string& name) {
        std::string checksum = reader.text();
        if (recorded) recorded->emplace_back(name, std::move(checksum));
      });
    } else if (key == "checksum") {
      reader.text();
    } else {
      reader.fail(fmt::format("unknown field \"{}\"", key));
    }
  });
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return data;
}

std::optional<uint64_t> for_settings(const std::string& folder, const ReadOption& option) {
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  path += "/settings.json";
  const auto text = read_text_if_there(path);
  return text ? for_options(*text, path, option) : std::nullopt;
}

std::optional<uint64_t> data_of_run(const std::string& folder) {
  return for_settings(
      folder, [](JsonReader& reader, const std::string&) { reader.list('[', ']', [&] { reader.bytes(); }); });
}

std::vector<std::string> options_in(const std::string& text, const std::string& path) {
  std::vector<std::string> options;
  for_options(text, path, [&](JsonReader& reader, const std::string& name) {
    const size_t before = options.size();
    reader.list('[', ']',
                [&] { options.push_back("--" + printable(name) + " " + printable(reader.bytes())); });
    if (options.size() == before) options.push_back("--" + printable(name));
  });
  return options;
}

bool run_has_option(const std::string& folder, const std::string& option) {
  bool has = false;
  for_settings(folder, [&](JsonReader& reader, const std::string& name) {
    reader.list('[', ']', [&] { reader.bytes(); });
    has = has || name == option;
  });
  return has;
}

std::vector<std::string> settings_of_run(const std::string& folder, const std::string& option) {
  std::vector<std::string> found;
  for_settings(folder, [&](JsonReader& reader, const std::string& name) {
    reader.list('[', ']', [&] {
      std::string value = reader.bytes();
      if (name == option) found.push_back(std::move(value));
    });
  });
  return found;
}

std::optional<std::string> setting_of_run(const std::string& folder, const std::string& option) {
  std::vector<std::string> found = settings_of_run(folder, option);
  return found.empty() ? std::nullopt : std::optional(std::move(found.back()));
}

}  // namespace command
