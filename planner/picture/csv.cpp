#include "planner/picture/picture.h"

namespace stw {

namespace {

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string picture_csv(const Graph& graph, const Programs& programs) {
  const Program& top = *peak_moment(programs).program;
  const bool overlays_gradients = top.base < programs.arena.gradients_end;
  std::string out = "id,lower,upper,size,offset,name,class\n";
  int id = 0;
  auto row = [&](const Buffer& b, size_t lower, size_t upper) {
    out += std::to_string(id++) + "," + std::to_string(lower) + "," + std::to_string(upper) + "," +
           std::to_string(round_up(b.bytes, programs.arena.alignment)) + "," + std::to_string(b.offset) +
           "," + field(b.tensor < 0 ? "scratch" : graph.at(b.tensor).name) + "," +
           class_names[static_cast<size_t>(b.owner)] + "\n";
  };
  for (const Buffer& b : programs.arena.persistent)
    if (!overlays_gradients || b.owner != MemoryClass::gradients) row(b, 0, top.instructions.size());
  for (const Buffer& b : top.buffers) row(b, static_cast<size_t>(b.first), static_cast<size_t>(b.last) + 1);
  return out;
}

}  // namespace stw
