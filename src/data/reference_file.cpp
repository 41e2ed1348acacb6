#include "src/data/reference_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "planner/base/check_in.h"

namespace stw {
namespace {

constexpr char name[8] = {'s', 't', 'w', 'r', 'e', 'f', '0', '1'};
struct End {  // little-endian, like all files of Stowage
  char is[8];
  uint64_t count, pairs, values;  // values: hash of the floats
};

}  // namespace

Result<ReferenceWriter> ReferenceWriter::create(const std::string& path, uint64_t pairs) {
  STW_ASSIGN(writer, FileWriter::create(path));
  return ReferenceWriter(std::move(writer), pairs);
}

Status ReferenceWriter::write(float log_probability) {
  values_.update(&log_probability, sizeof log_probability);
  ++count_;
  return writer_.write(&log_probability, sizeof log_probability);
}

Status ReferenceWriter::finish() {
  End end{{}, count_, pairs_, values_.digest()};
  std::copy(std::begin(name), std::end(name), end.is);
  STW_TRY(writer_.write(&end, sizeof end));
  return writer_.finish();
}

Result<File> open_reference(const std::string& path, uint64_t count, uint64_t pairs) {
  STW_ASSIGN(file, File::open(path));
  End end{};
  if (file.size() >= sizeof end) STW_TRY(file.read(file.size() - sizeof end, &end, sizeof end));
  if (std::memcmp(end.is, name, sizeof name) != 0 ||
      end.count != (file.size() - sizeof end) / sizeof(float) || file.size() % sizeof(float) != 0)
    return corrupt(path, "expected log-probabilities as stw_trainer_write_reference writes them");
  if (end.count != count || end.pairs != pairs)
    return Error{Code::bad_state,
                 path + ": it is of other tokens or marks than these; it has to be written again"};
  Hash64 values;
  std::vector<float> chunk(4096);
  for (uint64_t done = 0; done < count;) {
    const uint64_t now = std::min<uint64_t>(count - done, chunk.size());
    check_in(now * sizeof(float));
    STW_TRY(file.read(done * sizeof(float), chunk.data(), now * sizeof(float)));
    values.update(chunk.data(), now * sizeof(float));
    for (uint64_t i = 0; i < now; ++i)
      if (!(chunk[i] <= 0) || !std::isfinite(chunk[i]))
        return corrupt(path, "log-probability " + std::to_string(done + i) + " is " +
                                 std::to_string(chunk[i]) + ", expected a finite number of at most 0");
    done += now;
  }
  if (values.digest() != end.values) return corrupt(path, "its log-probabilities are damaged");
  return std::move(file);
}

}  // namespace stw
