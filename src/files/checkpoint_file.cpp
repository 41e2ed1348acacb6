#include "src/files/checkpoint_file.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "planner/base/check_in.h"

namespace stw {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored little-endian");

// Like PNG's magic: a transfer that converts line ends or strips the high bit changes it.
constexpr char magic[8] = {'\x89', 'S', 'T', 'W', '\r', '\n', '\x1a', '\n'};
constexpr uint64_t header_limit = 100'000'000;  // bytes
constexpr uint64_t verify_bytes = uint64_t{1} << 20;

struct Prefix {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t header_bytes;
};
static_assert(sizeof(Prefix) == 24);

uint64_t hash_words(const std::vector<uint64_t>& words) { return hash64(words.data(), words.size() * 8); }

// The size of the whole file; nullopt on overflow.
std::optional<uint64_t> total_bytes(uint64_t header_bytes, const std::vector<CheckpointSection>& sections) {
  uint64_t total = sizeof(Prefix) + header_bytes + 8 + 8 * (sections.size() + 1);
  for (const CheckpointSection& section : sections)
    if (__builtin_add_overflow(total, section.bytes, &total) || total > INT64_MAX) return std::nullopt;
  return total;
}

Error checksum_error(const std::string& path, std::string_view what) {
  return corrupt(path, std::string(what) + ": its checksum does not match, the file is damaged");
}

Result<std::vector<CheckpointSection>> parse_sections(const std::string& path, const Json& header) {
  auto list = get_array(header, "sections");
  if (!list) return corrupt(path, "header: " + list.error().message);
  std::vector<CheckpointSection> sections;
  for (const Json& item : (*list)->elements()) {
    auto name = get_string(item, "name");
    if (!name) return corrupt(path, "header: sections: " + name.error().message);
    auto bytes = get_uint(item, "bytes");
    if (!bytes) return corrupt(path, "header: section \"" + *name + "\": " + bytes.error().message);
    sections.push_back({*name, *bytes});
  }
  return sections;
}

}  // namespace

Result<CheckpointWriter> CheckpointWriter::create(const std::string& path, const Json& fields,
                                                  std::vector<CheckpointSection> sections) {
  assert(fields.is_object());
  std::set<std::string_view> names;
  Json list = Json::array();
  for (const CheckpointSection& section : sections) {
    if (!names.insert(section.name).second)
      return Error{Code::bad_argument, path + ": the section \"" + section.name + "\" appears twice"};
    list.push(Json::object().set("name", section.name).set("bytes", section.bytes));
  }
  Json header = Json::object();
  header.set("fields", fields).set("sections", std::move(list));
  const std::string text = to_string(header, 0);
  if (text.size() > header_limit || !total_bytes(text.size(), sections))
    return Error{Code::bad_argument, path + ": the header or the sections are too large"};

  Prefix prefix{{}, checkpoint_version, 0, text.size()};
  std::memcpy(prefix.magic, magic, sizeof(magic));
  Hash64 hash;
  hash.update(&prefix, sizeof(prefix));
  hash.update(text.data(), text.size());
  const uint64_t header_hash = hash.digest();
  STW_ASSIGN(writer, FileWriter::create(path));
  STW_TRY(writer.write(&prefix, sizeof(prefix)));
  STW_TRY(writer.write(text.data(), text.size()));
  STW_TRY(writer.write(&header_hash, 8));
  CheckpointWriter result(std::move(writer), std::move(sections), header_hash);
  result.close_full_sections();
  return result;
}

// Stores the hash of the current section once it is complete, and those of empty sections that follow.
void CheckpointWriter::close_full_sections() {
  while (hashes_.size() <= sections_.size() && written_ == sections_[hashes_.size() - 1].bytes) {
    hashes_.push_back(hash_.digest());
    hash_.reset();
    written_ = 0;
  }
}

Status CheckpointWriter::write(std::span<const std::byte> data) {
  if (data.empty()) return ok();
  if (hashes_.size() > sections_.size())
    return Error{Code::bad_argument, writer_.path() + ": all sections are complete"};
  const CheckpointSection& section = sections_[hashes_.size() - 1];
  if (data.size() > section.bytes - written_)
    return Error{Code::bad_argument, writer_.path() + ": section \"" + section.name + "\" has " +
                                         std::to_string(section.bytes) + " bytes; " +
                                         std::to_string(written_ + data.size()) + " were written"};
  STW_TRY(writer_.write(data.data(), data.size()));
  hash_.update(data.data(), data.size());
  written_ += data.size();
  close_full_sections();
  return ok();
}

Status CheckpointWriter::finish() {
  if (hashes_.size() <= sections_.size()) {
    const CheckpointSection& section = sections_[hashes_.size() - 1];
    return Error{Code::bad_state, writer_.path() + ": finished with " + std::to_string(written_) + " of " +
                                      std::to_string(section.bytes) + " bytes of section \"" + section.name +
                                      "\""};
  }
  const uint64_t table_hash = hash_words(hashes_);
  STW_TRY(writer_.write(hashes_.data() + 1, 8 * sections_.size()));
  STW_TRY(writer_.write(&table_hash, 8));
  return writer_.finish();
}

Result<CheckpointReader> CheckpointReader::open(const std::string& path) {
  STW_ASSIGN(opened, File::open(path));
  CheckpointReader reader(std::move(opened));
  const File& file = reader.file_;
  const auto size_error = [&](const std::string& what, uint64_t expected) {
    return corrupt(path,
                   what + ": expected " + std::to_string(expected) + " bytes, found " +
                       std::to_string(file.size()) +
                       (file.size() < expected ? " (the file is truncated)" : " (the file is too long)"));
  };
  Prefix prefix;
  if (file.size() < sizeof(prefix)) return size_error("size", sizeof(prefix));
  STW_TRY(file.read(0, &prefix, sizeof(prefix)));
  if (std::memcmp(prefix.magic, magic, sizeof(magic)) != 0)
    return corrupt(path, "magic: this is not a Stowage checkpoint");
  if (prefix.version != checkpoint_version)
    return Error{Code::unsupported, path + ": version: expected " + std::to_string(checkpoint_version) +
                                        ", found " + std::to_string(prefix.version)};
  if (prefix.header_bytes > header_limit)
    return corrupt(path, "header_bytes: expected at most " + std::to_string(header_limit) + ", found " +
                             std::to_string(prefix.header_bytes));
  const uint64_t header_end = sizeof(prefix) + prefix.header_bytes + 8;
  if (file.size() < header_end) return size_error("header", header_end);
  std::string text(prefix.header_bytes, '\0');
  uint64_t stored_hash = 0;
  STW_TRY(file.read(sizeof(prefix), text.data(), text.size()));
  STW_TRY(file.read(header_end - 8, &stored_hash, 8));
  Hash64 hash;
  hash.update(&prefix, sizeof(prefix));
  hash.update(text.data(), text.size());
  if (hash.digest() != stored_hash) return checksum_error(path, "header");
  if (prefix.zero != 0) return corrupt(path, "zero: expected 0, found " + std::to_string(prefix.zero));

  auto header = parse_json(text);
  if (!header) return corrupt(path, "header: " + header.error().message);
  auto fields = get_object(*header, "fields");
  if (!fields) return corrupt(path, "header: " + fields.error().message);
  reader.fields_ = **fields;
  STW_ASSIGN(sections, parse_sections(path, *header));
  reader.sections_ = std::move(sections);
  const auto total = total_bytes(prefix.header_bytes, reader.sections_);
  if (!total) return corrupt(path, "header: the sizes of the sections do not fit 64 bits");
  if (file.size() != *total) return size_error("size", *total);

  reader.offsets_ = {header_end};
  for (const CheckpointSection& section : reader.sections_)
    reader.offsets_.push_back(reader.offsets_.back() + section.bytes);
  reader.hashes_.assign(reader.sections_.size() + 1, stored_hash);
  STW_TRY(file.read(reader.offsets_.back(), reader.hashes_.data() + 1, 8 * reader.sections_.size()));
  STW_TRY(file.read(*total - 8, &stored_hash, 8));
  if (hash_words(reader.hashes_) != stored_hash) return checksum_error(path, "table of checksums");
  return reader;
}

const CheckpointSection* CheckpointReader::find(std::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const auto& item) { return item.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

CheckpointSectionReader CheckpointReader::section_at(size_t index) const {
  return {this, index, offsets_[index], offsets_[index + 1]};
}

Result<CheckpointSectionReader> CheckpointReader::section(std::string_view name, uint64_t bytes) const {
  const CheckpointSection* found = find(name);
  if (!found) return corrupt(path(), "section \"" + std::string(name) + "\" is missing");
  if (found->bytes != bytes)
    return corrupt(path(), "section \"" + std::string(name) + "\": expected " + std::to_string(bytes) +
                               " bytes, found " + std::to_string(found->bytes));
  CheckpointSectionReader reader = section_at(static_cast<size_t>(found - sections_.data()));
  if (bytes == 0) STW_TRY(reader.check());
  return reader;
}

Status CheckpointReader::verify_all() const {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(verify_bytes);
  for (size_t index = 0; index < sections_.size(); ++index) {
    CheckpointSectionReader reader = section_at(index);
    if (reader.remaining() == 0) STW_TRY(reader.check());
    while (reader.remaining() > 0) {
      const uint64_t now = std::min(reader.remaining(), verify_bytes);
      check_in(now);
      STW_TRY(reader.read({buffer.get(), static_cast<size_t>(now)}));
    }
  }
  return ok();
}

Status CheckpointSectionReader::read(std::span<std::byte> out) {
  if (out.empty()) return ok();
  if (out.size() > remaining())
    return Error{Code::bad_argument, reader_->path() + ": section \"" + reader_->sections_[index_].name +
                                         "\": " + std::to_string(out.size()) + " bytes asked for, " +
                                         std::to_string(remaining()) + " remain"};
  STW_TRY(reader_->file_.read(position_, out.data(), out.size()));
  hash_.update(out.data(), out.size());
  position_ += out.size();
  return remaining() == 0 ? check() : ok();
}

Status CheckpointSectionReader::check() const {
  if (hash_.digest() == reader_->hashes_[index_ + 1]) return ok();
  return checksum_error(reader_->path(), "section \"" + reader_->sections_[index_].name + "\"");
}

}  // namespace stw
