// A file of events for TensorBoard. It consists of TFRecords, each with an Event whose Summary has a number
// and its tag. The format is:
//
//   record: uint64 length, masked CRC-32C of these 8 bytes, the event, masked CRC-32C of the event
//   Event: 1 wall_time (double), 2 step (int64), 3 file_version (string), 5 summary,
//          7 session_log (1 status: START is 1)
//   Summary: 1 value, repeated; in it 1 tag (string), 2 simple_value (float)
//
// Numbers are little-endian.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace command {

// Throws a Failure if the folder has events already. TensorBoard draws all events of a folder as one curve.
void require_no_events(const std::string& folder);

class EventFile {
 public:
  // Makes a new file in `folder`, and the folder if needed. If `begin` is above 0, TensorBoard discards the
  // events of earlier files there from that step on. Throws a Failure if the file cannot be made.
  EventFile(const std::string& folder, uint64_t begin);
  void add(uint64_t step, std::string_view tag, double value);
  // Writes what was added. Returns whether it succeeded; if not, errno has the error.
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
