#include "run/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/failure.h"

namespace command {
namespace {

// CRC with Castagnoli's polynomial, bits reflected.
uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
      made[i] = c;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) crc = table[(crc ^ byte) & 255] ^ crc >> 8;
  return ~crc;
}

template <class Number>
void put_little_endian(std::string& out, Number number) {
  for (size_t byte = 0; byte < sizeof number; ++byte) out += static_cast<char>(number >> (8 * byte));
}

void put_crc(std::string& out, std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  put_little_endian(out, std::rotr(crc, 15) + 0xA282EAD8u);  // masked, because a record may contain records
}

std::string record(std::string_view bytes) {
  std::string out;
  put_little_endian(out, uint64_t{bytes.size()});
  put_crc(out, std::string(out));
  out += bytes;
  put_crc(out, bytes);
  return out;
}

// Fields of protocol buffers.
void put_varint(std::string& out, uint64_t number) {
  for (; number >= 128; number >>= 7) out += static_cast<char>(number | 128);
  out += static_cast<char>(number);
}
enum WireType : uint64_t { varint = 0, eight_bytes = 1, bytes_with_length = 2, four_bytes = 5 };
void put_key(std::string& out, uint64_t field, WireType type) { put_varint(out, field << 3 | type); }

std::string field_of(uint64_t field, std::string_view bytes) {
  std::string out;
  put_key(out, field, bytes_with_length);
  put_varint(out, bytes.size());
  return out.append(bytes);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void require_no_events(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (const std::string name = entry.path().filename(); name.find(".tfevents.") != name.npos)
      throw Failure(exit_usage,
                    fmt::format("--tensorboard {}: has the events of another run ({}), and TensorBoard would "
                                "draw both as one curve: name a folder of this run's own, such as {}/2",
                                folder, name, folder));
}

EventFile::EventFile(const std::string& folder, uint64_t begin) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem && !std::filesystem::is_directory(folder))
    throw Failure(exit_failed,
                  fmt::format("--tensorboard {}: cannot create the folder: {}", folder, problem.message()));
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0) std::strcpy(host, "host");
  const auto seconds = static_cast<uint64_t>(now());
  for (int attempt = 0; attempt < 1000 && !file_; ++attempt) {  // never opens an existing file
    path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder, seconds, host, ::getpid(), attempt);
    file_.reset(std::fopen(path_.c_str(), "wbx"));
    if (!file_ && errno != EEXIST) break;
  }
  if (!file_) throw Failure(exit_failed, fmt::format("{}: cannot write: {}", path_, std::strerror(errno)));
  add_event(0, field_of(3, "brain.Event:2"));
  if (begin > 0) {
    std::string start;
    put_key(start, 1, varint);
    put_varint(start, 1);
    add_event(begin, field_of(7, start));
  }
}

void EventFile::add(uint64_t step, std::string_view tag, double value) {
  std::string one = field_of(1, tag);
  put_key(one, 2, four_bytes);
  put_little_endian(one, std::bit_cast<uint32_t>(static_cast<float>(value)));
  add_event(step, field_of(5, field_of(1, one)));
}

void EventFile::add_event(uint64_t step, std::string_view fields) {
  std::string event;
  put_key(event, 1, eight_bytes);
  put_little_endian(event, std::bit_cast<uint64_t>(now()));
  put_key(event, 2, varint);
  put_varint(event, step);
  pending_ += record(event.append(fields));
}

bool EventFile::write() {
  const bool is_written = std::fwrite(pending_.data(), 1, pending_.size(), file_.get()) == pending_.size() &&
                          std::fflush(file_.get()) == 0;
  pending_.clear();
  return is_written;
}

}  // namespace command
