// Loads, stores, atomics and asynchronous copies. An address in shared memory counts from the block's first
// byte; all others are addresses of this process.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tests/ptx/machine.h"

// Defined by the linker: the place of this program's code and variables in memory.
extern "C" const char __executable_start[], _end[];

namespace ptx {
namespace {

// A test may give kernels allocated memory or a stack. tests/gpu lets a device access these and nothing else.
bool is_of_program(uint64_t at) {
  return at - reinterpret_cast<uint64_t>(__executable_start) <
         static_cast<uint64_t>(_end - __executable_start);
}

uint64_t named_by(const Warp& w, const Instruction& i, const Place& place, int lane) {
  return static_cast<uint64_t>(i.offset) +
         (place.bytes == 8 ? w.at<uint64_t>(place)[lane] : w.at<uint32_t>(place)[lane]);
}

// Reports the error of an access.
[[noreturn, gnu::cold, gnu::noinline]] void refuse(const Warp& w, const Instruction& i, const Place& place,
                                                   uint32_t bytes, Instruction::Space space) {
  for_lanes(w, [&](int l) {
    const uint64_t at = named_by(w, i, place, l);
    if (at % bytes != 0)
      die("a misaligned access of " + std::to_string(bytes) + " bytes at " + std::to_string(at) + ": " +
          i.text);
    if (space == Instruction::global &&
        at - reinterpret_cast<uint64_t>(w.block->shared) < w.block->shared_bytes)
      die("shared memory, named as global: " + i.text);
    if (space == Instruction::anywhere || space == Instruction::global) {
      if (is_of_program(at)) die("memory of the program itself, which no device reaches: " + i.text);
      return;
    }
    const uint32_t most = space == Instruction::shared ? w.block->shared_bytes : w.local_bytes;
    if (at + bytes > most)
      die("byte " + std::to_string(at) + " of " + std::to_string(most) + " of " +
          (space == Instruction::shared ? "shared" : "local") + " memory: " + i.text);
  });
  die("an access: " + i.text);
}

// The addresses that the active lanes read or write. Those of other lanes are not checked.
struct Addresses {
  uint64_t of[lanes];
};
Addresses addresses(const Warp& w, const Instruction& i, const Place& place, uint32_t bytes,
                    Instruction::Space space) {
  Addresses a;
  for (int l = 0; l < lanes; ++l) a.of[l] = named_by(w, i, place, l);
  const auto shared = reinterpret_cast<uint64_t>(w.block->shared);
  uint64_t bits = 0;
  for_lanes(w, [&](int l) { bits |= a.of[l]; });
  bool is_wrong = (bits & (bytes - 1)) != 0;  // bytes: a power of two.
  if (space == Instruction::anywhere || space == Instruction::global) {
    for_lanes(w, [&](int l) { is_wrong |= is_of_program(a.of[l]); });
    if (space == Instruction::global)
      for_lanes(w, [&](int l) { is_wrong |= a.of[l] - shared < w.block->shared_bytes; });
  } else {
    const bool is_shared = space == Instruction::shared;
    const uint32_t most = is_shared ? w.block->shared_bytes : w.local_bytes;
    for_lanes(w, [&](int l) { is_wrong |= a.of[l] + bytes > most; });
    const uint64_t first = is_shared ? shared : reinterpret_cast<uint64_t>(w.local),
                   step = is_shared ? 0 : w.local_bytes;
    for (int l = 0; l < lanes; ++l) a.of[l] += first + static_cast<uint64_t>(l) * step;
  }
  if (is_wrong) refuse(w, i, place, bytes, space);
  return a;
}
inline char* pointer(const Addresses& a, int lane) { return reinterpret_cast<char*>(a.of[lane]); }

void count(const Warp& w, const Instruction& i, const Place& place, uint32_t bytes, Instruction::Space space,
           uint32_t mask) {
  if (!w.traffic || space == Instruction::local || i.text.starts_with("ld.param")) return;
  uint64_t named[lanes] = {};
  for_lanes(w, [&](int l) { named[l] = named_by(w, i, place, l); });
  if (space == Instruction::shared) count_shared(*w.traffic, named, mask, bytes);
  else count_global(*w.traffic, named, mask, bytes);
  if (space == Instruction::shared) return;
  std::unordered_set<uint64_t>& sectors = i.text.starts_with("cp.async") ? w.traffic->copies
                                          : i.text.starts_with("st.")    ? w.traffic->stores
                                                                         : w.traffic->loads;
  for (uint32_t left = mask; left; left &= left - 1) sectors.insert(named[__builtin_ctz(left)] / 32);
}

// M: type of a number in memory, R: of a register, which may be wider. `vector` numbers at once.
template <class M, class R, int vector>
void load_as(Warp& w, const Instruction& i) {
  constexpr uint32_t bytes = sizeof(M) * vector;
  const Place& from = i.operand[vector];
  count(w, i, from, bytes, i.space, w.active);
  const Addresses a = addresses(w, i, from, bytes, i.space);
  R* to[vector];
  for (size_t v = 0; v < vector; ++v) to[v] = w.at<R>(i.operand[v]);
  for_lanes(w, [&](int l) {
    M value[vector];
    std::memcpy(value, pointer(a, l), bytes);
    for (int v = 0; v < vector; ++v) to[v][l] = static_cast<R>(value[v]);
  });
}
template <class M, int vector>
void load_some(Warp& w, const Instruction& i) {
  constexpr bool sign = static_cast<M>(-1) < static_cast<M>(0);
  switch (i.operand[0].bytes) {
    case 2:
      if constexpr (sizeof(M) <= 2)
        return load_as<M, std::conditional_t<sign, int16_t, uint16_t>, vector>(w, i);
      else break;
    case 4:
      if constexpr (sizeof(M) <= 4)
        return load_as<M, std::conditional_t<sign, int32_t, uint32_t>, vector>(w, i);
      else break;
    case 8: return load_as<M, std::conditional_t<sign, int64_t, uint64_t>, vector>(w, i);
    default: break;
  }
  die("a register that is too narrow: " + i.text);
}
template <class M>
void load(Warp& w, const Instruction& i) {
  i.vector == 1 ? load_some<M, 1>(w, i) : i.vector == 2 ? load_some<M, 2>(w, i) : load_some<M, 4>(w, i);
}
template <class M, int vector>
void store_some(Warp& w, const Instruction& i) {
  constexpr uint32_t bytes = sizeof(M) * vector;
  count(w, i, i.operand[0], bytes, i.space, w.active);
  const Addresses a = addresses(w, i, i.operand[0], bytes, i.space);
  for_lanes(w, [&](int l) {
    M value[vector];
    for (size_t v = 0; v < vector; ++v) {
      const Place& from = i.operand[v + 1];
      std::memcpy(&value[v], w.at<char>(from) + static_cast<size_t>(l) * from.bytes, sizeof(M));
    }
    std::memcpy(pointer(a, l), value, bytes);
    if (i.space == Instruction::shared) note_written(w, pointer(a, l), bytes);
  });
}
template <class M>
void store(Warp& w, const Instruction& i) {
  i.vector == 1 ? store_some<M, 1>(w, i) : i.vector == 2 ? store_some<M, 2>(w, i) : store_some<M, 4>(w, i);
}

Operation access(std::string_view name, std::string_view type) {
  const bool reads = name == "ld";
  const auto chosen = [&](Run load_run, Run store_run, uint8_t bytes) {
    return Operation{reads ? load_run : store_run, Kind::plain, std::vector<uint8_t>(9, bytes), false, true};
  };
  if (type == "u8" || type == "b8") return chosen(load<uint8_t>, store<uint8_t>, 2);
  if (type == "s8") return chosen(load<int8_t>, store<uint8_t>, 2);
  if (type == "u16" || type == "b16") return chosen(load<uint16_t>, store<uint16_t>, 2);
  if (type == "s16") return chosen(load<int16_t>, store<uint16_t>, 2);
  if (type == "u32" || type == "b32" || type == "f32") return chosen(load<uint32_t>, store<uint32_t>, 4);
  if (type == "s32") return chosen(load<int32_t>, store<uint32_t>, 4);
  if (type == "u64" || type == "b64" || type == "s64" || type == "f64")
    return chosen(load<uint64_t>, store<uint64_t>, 8);
  return {};
}

void add_in_shared_memory(Warp& w, const Instruction& i) {
  const Addresses a = addresses(w, i, i.operand[1], 4, Instruction::shared);
  for_lanes(w, [&](int l) {
    char* const at = pointer(a, l);
    uint32_t value;
    std::memcpy(&value, at, 4);
    w.at<uint32_t>(i.operand[0])[l] = value;
    value += w.at<uint32_t>(i.operand[2])[l];
    std::memcpy(at, &value, 4);
  });
}

// The target of a copy holds NaN until the copy has been waited for.
template <uint32_t size>
void begin_copy(Warp& w, const Instruction& i) {
  if (*w.at<uint32_t>(i.operand[2]) != size)
    die("a copy of other than " + std::to_string(size) + " bytes: " + i.text);
  // 0: zeros instead.
  const uint32_t* const bytes = i.operand.size() > 3 ? w.at<uint32_t>(i.operand[3]) : nullptr;
  uint32_t reads = 0;
  for_lanes(w, [&](int l) { reads |= static_cast<uint32_t>(!bytes || bytes[l] != 0) << l; });
  const Addresses target = addresses(w, i, i.operand[0], size, Instruction::shared);
  const uint32_t all = w.active;
  w.active = reads;
  const Addresses source = addresses(w, i, i.operand[1], size, Instruction::global);
  w.active = all;
  for_lanes(w, [&](int l) {
    const bool zeros = !(reads >> l & 1);
    char* const to = pointer(target, l);
    const char* const from = zeros ? nullptr : pointer(source, l);
    std::memset(to, 0xff, size);
    auto& groups = w.copies[l];
    if (groups.empty()) groups.emplace_back();
    groups.back().push_back({to, from, size, zeros});
  });
  count(w, i, i.operand[0], size, Instruction::shared, w.active);
  count(w, i, i.operand[1], size, Instruction::global, reads);
}
void commit_copies(Warp& w, const Instruction&) {
  for_lanes(w, [&](int l) {
    auto& groups = w.copies[l];
    if (groups.empty()) groups.emplace_back();
    groups.emplace_back();
  });
}
void wait_for_copies(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    auto& groups = w.copies[l];
    const size_t left = w.at<uint32_t>(i.operand[0])[l];
    while (groups.size() > left + 1) {
      for (const Copy& copy : groups.front()) {
        copy.zeros ? std::memset(copy.to, 0, copy.bytes) : std::memcpy(copy.to, copy.from, copy.bytes);
        note_written(w, copy.to, copy.bytes);
      }
      groups.pop_front();
    }
  });
}

void same_address(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) { w.at<uint64_t>(i.operand[0])[l] = w.at<uint64_t>(i.operand[1])[l]; });
}
void address_of_shared(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    w.at<uint64_t>(i.operand[0])[l] =
        w.at<uint64_t>(i.operand[1])[l] + reinterpret_cast<uint64_t>(w.block->shared);
  });
}
void address_of_local(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    w.at<uint64_t>(i.operand[0])[l] =
        w.at<uint64_t>(i.operand[1])[l] + reinterpret_cast<uint64_t>(w.local_of(l));
  });
}
void address_in_local(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    w.at<uint64_t>(i.operand[0])[l] =
        w.at<uint64_t>(i.operand[1])[l] - reinterpret_cast<uint64_t>(w.local_of(l));
  });
}
void address_in_shared(Warp& w, const Instruction& i) {
  for_lanes(w, [&](int l) {
    w.at<uint64_t>(i.operand[0])[l] =
        w.at<uint64_t>(i.operand[1])[l] - reinterpret_cast<uint64_t>(w.block->shared);
  });
}

}  // namespace

Operation memory_access(const Words& words) {
  const auto is = [&](std::initializer_list<std::string_view> opcode) { return is_opcode(words, opcode); };
  if ((words.front() == "ld" || words.front() == "st") && words.size() > 1) {
    static constexpr std::string_view spaces[] = {"global", "shared", "local", "param", "const"};
    const bool named = std::find(std::begin(spaces), std::end(spaces), words[1]) != std::end(spaces);
    for (size_t k = named ? 2 : 1; k + 1 < words.size(); ++k)
      if (words[k] != "nc" && words[k] != "v2" && words[k] != "v4") return {};
    return access(words.front(), words.back());
  }
  if (is({"atom", "shared", "add", "u32"})) return {add_in_shared_memory, Kind::plain, {4, 4, 4}};
  if (is({"cp", "async", "cg", "shared", "global"})) return {begin_copy<16>, Kind::plain, {4, 8, 4, 4}};
  if (is({"cp", "async", "ca", "shared", "global"})) return {begin_copy<4>, Kind::plain, {4, 8, 4, 4}};
  if (is({"cp", "async", "commit_group"})) return {commit_copies, Kind::plain, {}};
  if (is({"cp", "async", "wait_group"})) return {wait_for_copies, Kind::plain, {4}};
  if (is({"cvta", "shared", "u64"})) return {address_of_shared, Kind::plain, {8, 8}};
  if (is({"cvta", "to", "shared", "u64"})) return {address_in_shared, Kind::plain, {8, 8}};
  if (is({"cvta", "local", "u64"})) return {address_of_local, Kind::plain, {8, 8}};
  if (is({"cvta", "to", "local", "u64"})) return {address_in_local, Kind::plain, {8, 8}};
  if (is({"cvta", "global", "u64"}) || is({"cvta", "to", "global", "u64"}) || is({"cvta", "param", "u64"}) ||
      is({"cvta", "to", "param", "u64"}))
    return {same_address, Kind::plain, {8, 8}};
  return {};
}

}  // namespace ptx
