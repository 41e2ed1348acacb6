// Reads PTX (NVIDIA, "PTX ISA") as far as nvcc writes it: statements end with a semicolon, labels with a
// colon, and braces are scopes of registers.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include "tests/ptx/machine.h"

namespace ptx {
namespace {

constexpr std::string_view blank = " \t\r\n";

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(blank);
  return begin == s.npos ? std::string_view() : s.substr(begin, s.find_last_not_of(blank) - begin + 1);
}

std::vector<std::string_view> split(std::string_view s, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = s.find(at);
    parts.push_back(trimmed(s.substr(0, end)));
    if (end == s.npos) return parts;
    s.remove_prefix(end + 1);
  }
}

template <class T>
std::optional<T> number(std::string_view s, int base = 10) {
  T value = 0;
  const auto read = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (s.empty() || read.ec != std::errc() || read.ptr != s.data() + s.size()) return std::nullopt;
  return value;
}
uint32_t count_of(std::string_view s) {
  const auto n = number<uint32_t>(trimmed(s));
  if (!n) die("expected a number, found " + std::string(s));
  return *n;
}

// The value of 1, -7, 0x1f, 0f3F800000 or 0d3FF0000000000000, as bits.
std::optional<uint64_t> immediate(std::string_view s) {
  if (s.starts_with("0f") || s.starts_with("0F") || s.starts_with("0d") || s.starts_with("0D") ||
      s.starts_with("0x"))
    return number<uint64_t>(s.substr(2), 16);
  if (const auto n = number<int64_t>(s)) return static_cast<uint64_t>(*n);
  return number<uint64_t>(s);
}

uint8_t bytes_of_type(std::string_view type) {  // b32, f64, u8, pred, …
  if (type == "pred") return 1;
  const auto bits = number<uint32_t>(type.substr(1));
  if (!bits || *bits % 8 != 0) die("an unknown type: " + std::string(type));
  return static_cast<uint8_t>(*bits / 8);
}

// A declared array or scalar: .align 4 .b8 name[128] = {…}
struct Declared {
  std::string_view name, values;
  uint32_t bytes = 0, align = 1;
  bool unsized = false;
};
Declared declared(std::string_view s) {
  Declared d;
  if (const size_t equals = s.find('='); equals != s.npos) {
    d.values = trimmed(s.substr(equals + 1));
    s = trimmed(s.substr(0, equals));
  }
  uint32_t each = 0;
  for (std::string_view word : split(s, ' ')) {
    static constexpr std::string_view untyped[] = {".align",  ".shared", ".local", ".global", ".const",
                                                   ".extern", ".param",  ".ptr",   ".visible"};
    if (word.empty() || std::find(std::begin(untyped), std::end(untyped), word) != std::end(untyped))
      continue;
    if (const auto n = number<uint32_t>(word)) d.align = *n;
    else if (word.starts_with('.')) each = bytes_of_type(word.substr(1));
    else d.name = word;
  }
  d.align = std::max(d.align, each);
  d.bytes = each;
  if (const size_t open = d.name.find('['); open != d.name.npos) {
    const std::string_view size = d.name.substr(open + 1, d.name.find(']') - open - 1);
    d.unsized = size.empty();
    d.bytes = d.unsized ? 0 : each * count_of(size);
    d.name = d.name.substr(0, open);
  }
  return d;
}

uint32_t rounded(uint32_t at, uint32_t align) { return (at + align - 1) / align * align; }

class Reader {
 public:
  Reader(Module& module, Function& function, std::string_view text)
      : module_(module), f_(function), rest_(text) {}

  void read() {
    f_.register_bytes = specials * lanes * 4;
    scopes_.emplace_back();
    // .entry NAME( parameters ) directives { body }
    const size_t open = rest_.find('('), close = rest_.find("\n)", open);
    if (open == rest_.npos || close == rest_.npos) die("an entry without parameters' list");
    parameters(rest_.substr(open + 1, close - open - 1));
    rest_.remove_prefix(close + 2);
    const size_t body = rest_.find('{');
    for (std::string_view line : split(rest_.substr(0, body), '\n'))
      if (line.starts_with(".maxntid") || line.starts_with(".reqntid")) {
        f_.most_threads = 1;
        for (std::string_view n : split(line.substr(8), ',')) f_.most_threads *= count_of(n);
      }
    rest_.remove_prefix(body + 1);
    while (statement()) {}
    if (!scopes_.empty() || !trimmed(rest_).empty())
      die(f_.name + ": what follows is not read: " + std::string(rest_.substr(0, 80)));
    f_.shared_bytes = rounded(f_.shared_bytes, 16);
    f_.local_bytes = rounded(f_.local_bytes, 16);
    for (const Place& place : dynamic_) set_constant(place, f_.shared_bytes);
    for (const auto& [index, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) die(f_.name + ": no label " + std::string(label));
      f_.code[index].target = found->second;
    }
  }

 private:
  struct Register {
    uint32_t at;
    uint8_t bytes;
  };

  void parameters(std::string_view list) {
    uint32_t end = 0;
    for (std::string_view item : split(list, ',')) {
      if (item.empty()) continue;
      const Declared d = declared(item);
      const uint32_t at = rounded(end, d.align);
      f_.parameters.push_back({at, d.bytes});
      parameter_names_.emplace_back(d.name, at);
      end = at + d.bytes;
    }
    f_.parameter_memory.resize(rounded(end, 16) + 16);
  }

  bool statement() {
    rest_ = trimmed(rest_);
    if (rest_.empty()) return false;
    if (rest_.front() == '{') {
      scopes_.emplace_back();
      rest_.remove_prefix(1);
      return true;
    }
    if (rest_.front() == '}') {
      scopes_.pop_back();
      rest_.remove_prefix(1);
      return !scopes_.empty();
    }
    const size_t end = rest_.find_first_of(";:\n");
    if (rest_.front() == '$' && rest_[end] == ':') {
      labels_[rest_.substr(0, end)] = static_cast<uint32_t>(f_.code.size());
      rest_.remove_prefix(end + 1);
      return true;
    }
    const size_t stop = rest_.find(rest_.starts_with(".loc") ? '\n' : ';');
    if (stop == rest_.npos) die(f_.name + ": a statement without an end");
    const std::string_view text = trimmed(rest_.substr(0, stop));
    rest_.remove_prefix(stop + 1);
    if (text.empty() || text.starts_with(".pragma") || text.starts_with(".loc")) return true;
    if (text.starts_with(".reg")) registers(trimmed(text.substr(4)));
    else if (text.starts_with(".shared")) shared(text);
    else if (text.starts_with(".local")) local(text);
    else if (text.front() == '.') die(f_.name + ": " + std::string(text));
    else instruction(text);
    return true;
  }

  // .b32 %r<9>  or  .pred p, q
  void registers(std::string_view text) {
    const size_t space = text.find_first_of(blank);
    const uint8_t bytes = bytes_of_type(text.substr(1, space - 1));
    for (std::string_view name : split(text.substr(space), ',')) {
      uint32_t count = 1;
      const size_t angle = name.find('<');
      if (angle != name.npos) count = count_of(name.substr(angle + 1, name.find('>') - angle - 1));
      const uint32_t each = bytes * static_cast<uint32_t>(lanes);
      for (uint32_t i = 0; i < count; ++i) {
        const std::string full =
            angle == name.npos ? std::string(name) : std::string(name.substr(0, angle)) + std::to_string(i);
        scopes_.back()[full] = {f_.register_bytes, bytes};
        f_.register_bytes += rounded(each, 64);
      }
    }
  }

  void shared(std::string_view text) {
    const Declared d = declared(text);
    put_shared(d.name, d.bytes, d.align);
  }
  void local(std::string_view text) {
    const Declared d = declared(text);
    f_.local_bytes = rounded(f_.local_bytes, d.align);
    local_[std::string(d.name)] = f_.local_bytes;
    f_.local_bytes += d.bytes;
  }
  uint32_t put_shared(std::string_view name, uint32_t bytes, uint32_t align) {
    const uint32_t at = rounded(f_.shared_bytes, align);
    shared_[std::string(name)] = at;
    f_.shared_bytes = at + bytes;
    return at;
  }

  std::optional<Place> register_place(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end())
        return Place{found->second.at, false, found->second.bytes};
    static constexpr std::string_view names[] = {
        "%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
        "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
    for (int s = 0; s < specials; ++s)
      if (name == names[s]) return Place{special_at(s), false, 4};
    return std::nullopt;
  }

  void set_constant(const Place& place, uint64_t bits) {
    for (int l = 0; l < lanes; ++l)
      std::memcpy(f_.constants.data() + place.at + static_cast<uint32_t>(l) * place.bytes, &bits,
                  place.bytes);
  }
  Place constant(uint64_t bits, uint8_t bytes) {
    if (bytes == 0) bytes = 4;
    if (bytes == 1) bits = bits != 0;
    const auto known = constants_.find({bits, bytes});
    if (known != constants_.end()) return known->second;
    const Place place{static_cast<uint32_t>(f_.constants.size()), true, bytes};
    f_.constants.resize(f_.constants.size() + rounded(bytes * static_cast<uint32_t>(lanes), 64));
    set_constant(place, bits);
    return constants_[{bits, bytes}] = place;
  }

  // The address of a symbol: a parameter, shared memory, or a variable.
  std::optional<Place> symbol(std::string_view name, uint8_t bytes) {
    for (const auto& [parameter, at] : parameter_names_)
      if (name == parameter) return constant(reinterpret_cast<uint64_t>(f_.parameter_memory.data() + at), 8);
    if (const auto found = shared_.find(name); found != shared_.end()) return constant(found->second, bytes);
    if (const auto found = local_.find(name); found != local_.end()) return constant(found->second, bytes);
    for (const auto& variable : module_.variables) {
      if (name != variable->name) continue;
      if (!variable->shared) return constant(reinterpret_cast<uint64_t>(variable->memory.data()), 8);
      if (variable->bytes > 0) return constant(put_shared(name, variable->bytes, variable->align), bytes);
      // The launch's shared memory lies after everything else, so its address is set at the end.
      dynamic_.push_back(constant(uint64_t{0x5000000000000000u} + dynamic_.size(), bytes));
      return dynamic_.back();
    }
    return std::nullopt;
  }

  void operand(Instruction& i, std::string_view text, uint8_t bytes) {
    Place& place = i.operand.emplace_back();
    if (text == "_") return;
    if (const auto found = register_place(text)) place = *found;
    else if (const auto address = symbol(text, bytes)) place = *address;
    else if (const auto bits = immediate(text)) place = constant(*bits, bytes);
    else die(f_.name + ": " + std::string(text) + " in " + i.text);
  }

  void instruction(std::string_view text) {
    Instruction i;
    i.text = text;
    if (text.front() == '@') {
      i.unless = text[1] == '!';
      const size_t end = text.find_first_of(blank);
      const auto guard = register_place(text.substr(i.unless ? 2 : 1, end - (i.unless ? 2 : 1)));
      if (!guard) die("an unknown predicate: " + i.text);
      i.guard = *guard;
      text = trimmed(text.substr(end));
    }
    const size_t end = std::min(text.find_first_of(blank), text.size());
    const Words words = split(text.substr(0, end), '.');
    const auto says = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    std::string_view list = trimmed(text.substr(end));
    if (words[0] == "bra") {
      i.kind = Kind::branch;
      branches_.emplace_back(f_.code.size(), list);
    } else if (words[0] == "ret" || words[0] == "exit") {
      i.kind = Kind::leave;
    } else {
      const bool in_parts = words[0] == "mov" && list.find('{') != list.npos;
      Operation operation = !in_parts             ? arithmetic(words)
                            : list.front() == '{' ? to_parts(bytes_of_type(words[1]))
                                                  : of_parts(bytes_of_type(words[1]));
      for (const auto resolve : {conversion, memory_access, collective, warpgroup})
        if (!operation.run) operation = resolve(words);
      if (!operation.run) die(f_.name + ": an instruction that this machine does not know: " + i.text);
      i.run = operation.run;
      i.kind = operation.kind;
      // Whether braces are allowed.
      const bool in_braces = operation.any_register || operation.whole_warp || in_parts;
      i.whole_warp = operation.whole_warp;
      const auto next_bytes = [&] {
        return i.operand.size() < operation.bytes.size() ? operation.bytes[i.operand.size()] : uint8_t{0};
      };
      while (!list.empty()) {
        if (list.front() == '{') {  // Several numbers of one access.
          const size_t close = list.find('}');
          if (!in_braces) die(f_.name + ": several operands in one: " + i.text);
          const auto parts = split(list.substr(1, close - 1), ',');
          i.vector = static_cast<int>(parts.size());
          for (std::string_view part : parts) operand(i, part, next_bytes());
          list = trimmed(list.substr(close + 1));
        } else if (list.front() == '[') {
          const size_t close = list.find(']');
          std::string_view base = trimmed(list.substr(1, close - 1));
          if (const size_t plus = base.find('+'); plus != base.npos) {
            const auto offset = number<int64_t>(trimmed(base.substr(plus + 1)));
            if (!offset) die("an address: " + i.text);
            i.offset = *offset;
            base = trimmed(base.substr(0, plus));
          }
          operand(i, base, says("shared") ? 4 : 8);
          list = trimmed(list.substr(close + 1));
        } else {
          const size_t comma = std::min(list.find(','), list.size());
          for (std::string_view part : split(list.substr(0, comma), '|')) operand(i, part, next_bytes());
          list = trimmed(list.substr(comma));
        }
        if (!list.empty() && list.front() == ',') list = trimmed(list.substr(1));
      }
      for (size_t k = 0; k < i.operand.size() && !operation.any_register; ++k)
        if (i.operand[k].bytes != 0 && k < operation.bytes.size() && operation.bytes[k] != 0 &&
            i.operand[k].bytes != operation.bytes[k])
          die(f_.name + ": a register of " + std::to_string(i.operand[k].bytes) + " bytes where " +
              std::to_string(operation.bytes[k]) + " are expected: " + i.text);
      i.space = says("shared")   ? Instruction::shared
                : says("local")  ? Instruction::local
                : says("global") ? Instruction::global
                                 : Instruction::anywhere;
    }
    f_.code.push_back(std::move(i));
  }

  Module& module_;
  Function& f_;
  std::string_view rest_;
  std::vector<std::map<std::string, Register, std::less<>>> scopes_;
  std::vector<std::pair<std::string_view, uint32_t>> parameter_names_;
  std::map<std::string, uint32_t, std::less<>> shared_, local_;
  std::map<std::string_view, uint32_t> labels_;
  std::vector<std::pair<size_t, std::string_view>> branches_;
  std::vector<Place> dynamic_;
  std::map<std::pair<uint64_t, uint8_t>, Place> constants_;
};

}  // namespace

std::unique_ptr<Module> read_module(std::string text) {
  auto module = std::make_unique<Module>();
  // Removes comments, so that nothing in them ends a statement.
  for (size_t at = text.find("//"); at != text.npos; at = text.find("//", at))
    text.erase(at, text.find('\n', at) - at);
  module->text = std::move(text);
  module->for_warpgroups = module->text.find(".target sm_90a") != module->text.npos;
  const std::string_view all = module->text;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = trimmed(all.substr(at, end - at));
    if (line.find(".entry ") != line.npos) {
      size_t stop = at;  // After the brace that closes the first one.
      for (int depth = 0; stop == at || depth > 0; depth += all[stop++] == '{' ? 1 : -1) {
        stop = all.find_first_of("{}", stop);
        if (stop == all.npos) die("an entry without an end: " + std::string(line));
      }
      const std::string_view name = trimmed(line.substr(line.find(".entry ") + 7));
      module->entries.push_back({std::string(name.substr(0, name.find('('))), at, stop, nullptr});
      at = stop;
      continue;
    }
    if (line.starts_with(".global") || line.starts_with(".const") || line.starts_with(".extern") ||
        line.starts_with(".shared")) {
      const size_t stop = all.find(';', at);
      const Declared d = declared(trimmed(all.substr(at, stop - at)));
      const bool shared = line.find(".shared") != line.npos;
      auto variable = std::make_unique<Module::Variable>(
          Module::Variable{std::string(d.name), {}, shared, d.bytes, d.align});
      if (!shared) {
        variable->memory.assign(d.bytes, 0);
        size_t index = 0;
        if (!d.values.empty())
          for (std::string_view value : split(d.values.substr(1, d.values.size() - 2), ',')) {
            const auto bits = immediate(value);
            if (!bits || index == d.bytes) die("a value of " + variable->name + ": " + std::string(value));
            variable->memory[index++] = static_cast<char>(*bits);
          }
      }
      module->variables.push_back(std::move(variable));
      at = stop + 1;
      continue;
    }
    at = end + 1;
  }
  return module;
}

Function& function_of(Module& module, std::string_view name) {
  for (Module::Entry& entry : module.entries) {
    if (entry.name != name) continue;
    if (!entry.function) {
      entry.function = std::make_unique<Function>();
      entry.function->name = entry.name;
      entry.function->for_warpgroups = module.for_warpgroups;
      Reader(module, *entry.function,
             std::string_view(module.text).substr(entry.begin, entry.end - entry.begin))
          .read();
    }
    return *entry.function;
  }
  die("no kernel " + std::string(name));
}

}  // namespace ptx
