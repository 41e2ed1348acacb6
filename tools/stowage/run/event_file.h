// A file of events as TensorBoard reads it: TFRecords, each an Event whose Summary has a number by its tag.
//
//   record: uint64 length, masked CRC-32C of these 8 bytes, the event, masked CRC-32C of it; all little-endian
//   Event: 1 wall_time (double), 2 step (int64), 3 file_version (string), 5 summary, 7 session_log (1 status: START is 1)
//   Summary: 1 value, any number of them; its 1 tag (string), 2 simple_value (float)
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace command {

class EventFile {
 public:
  // Makes a file of its own in `folder`, which is created. With `begin` more than 0, TensorBoard forgets what earlier files there say of steps from that one on. Throws a Failure
  // where it cannot.
  EventFile(const std::string& folder, uint64_t begin);
  void add(uint64_t step, std::string_view tag, double value);
  // Writes what was added. Whether that worked; `path` and errno say more.
  bool write();
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void add_event(uint64_t step, std::string_view fields);

  std::string path_, pending_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace command
