#include "chat/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "chat/filters.h"
#include "chat/functions.h"
#include "chat/numbers.h"

namespace command::chat {
namespace {

using E = Expression::Kind;
using S = Statement::Kind;
using K = Value::Kind;

// limits: nested macro calls; nested statements and expressions; total work
constexpr size_t deepest_call = 50, deepest_work = 1000, most_work = 5000000;

// Effect of a statement on the enclosing loop.
enum class Flow { on, out_of_loop, next_round };

class Interpreter {
 public:
  explicit Interpreter(Members variables) {
    scopes_.emplace_back();
    for (auto& [name, value] : known_functions()) scopes_[0][name] = std::move(value);
    for (auto& [name, value] : variables) scopes_[0][name] = std::move(value);
  }

  Rendered run(const Statements& program) {
    out_ = &result_.text;
    carry_out(program);
    result_.work = work_;
    return std::move(result_);
  }

 private:
  // Adds the line to an error, at the innermost statement that it passes.
  template <class Body>
  auto at_line(int line, const Body& body) {
    const Within within(*this);
    try {
      if (within.depth > deepest_work) throw TemplateError("nested too deeply");
      count_work();
      return body();
    } catch (const TemplateError& error) {
      const std::string what = error.what();
      if (what.starts_with("line ")) throw;
      throw TemplateError(fmt::format("line {}: {}", line, what));
    }
  }

  void count_work(size_t work = 1) {
    if ((work_ += work) > most_work) throw TemplateError("it takes too long");
  }
  // Cost of iterating over a value or making it. Everything that is made is counted, so the count also bounds
  // memory.
  static size_t work_of(const Value& value) {
    if (value.is(K::string)) return value.parts() - 1;
    return std::max(value.parts() / 16, value.element_count() / 2);
  }
  // linear search
  static size_t work_to_find(const Value& of) { return of.is(K::mapping) ? of.members().size() / 16 : 0; }
  Value counted(Value made) {
    count_work(work_of(made));
    return made;
  }
  struct Within {
    explicit Within(Interpreter& i) : interpreter(i), depth(++i.depth_) {}
    ~Within() { --interpreter.depth_; }
    Interpreter& interpreter;
    const size_t depth;
  };

  // ---- variables
  Value variable(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return Value::undefined(name);
  }
  void assign(const std::vector<std::string>& names, const Value& value) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = value;
      return;
    }
    const List parts = value.elements();
    if (parts.size() != names.size())
      throw TemplateError(fmt::format("expected {} values to assign, found {}", names.size(), parts.size()));
    for (size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = parts[i];
  }

  // ---- statements
  void write(const std::string& text) {
    count_work(text.size() / bytes_a_part);
    *out_ += text;
    if (out_->size() > longest_text) throw TemplateError("the text is too long");
  }
  // Returns what a body writes.
  template <class Body>
  std::string written(const Body& body) {
    std::string text;
    std::string* const before = std::exchange(out_, &text);
    body();
    out_ = before;
    return text;
  }

  Flow carry_out(const Statements& list) {
    for (const Statement& s : list)
      if (const Flow flow = at_line(s.line, [&] { return carry_out(s); }); flow != Flow::on) return flow;
    return Flow::on;
  }
  Flow carry_out(const Statement& s) {
    switch (s.kind) {
      case S::text: write(s.text); return Flow::on;
      case S::output: write(value_of(*s.expression).str()); return Flow::on;
      case S::branches:
        for (const auto& [condition, body] : s.branches)
          if (value_of(*condition).is_true()) return carry_out(body);
        return carry_out(s.otherwise);
      case S::loop: return loop(s);
      case S::assignment: assignment(s); return Flow::on;
      case S::macro: scopes_.back()[s.text] = macro(s); return Flow::on;
      case S::generation: {
        const size_t begin = result_.text.size();
        const Flow flow = carry_out(s.body);
        if (out_ == &result_.text) result_.generated.emplace_back(begin, result_.text.size());
        return flow;
      }
      case S::loop_break: return Flow::out_of_loop;
      case S::loop_continue: return Flow::next_round;
    }
    return Flow::on;
  }
  Flow loop(const Statement& s) {
    List items = value_of(*s.expression).elements();
    count_work(items.size() / 2);
    if (s.condition) {
      List chosen;
      for (Value& item : items) {
        count_work();
        scopes_.emplace_back();
        assign(s.names, item);
        if (value_of(*s.condition).is_true()) chosen.push_back(std::move(item));
        scopes_.pop_back();
      }
      items = std::move(chosen);
    }
    const auto count = static_cast<int64_t>(items.size());
    for (int64_t i = 0; i < count; ++i) {
      count_work();
      scopes_.emplace_back();
      const auto at = [&](int64_t k) {
        return k >= 0 && k < count ? items[static_cast<size_t>(k)]
                                   : Value::undefined("there is no such item");
      };
      scopes_.back()["loop"] = Members{{"index", i + 1},        {"index0", i},
                                       {"revindex", count - i}, {"revindex0", count - i - 1},
                                       {"first", i == 0},       {"last", i + 1 == count},
                                       {"length", count},       {"previtem", at(i - 1)},
                                       {"nextitem", at(i + 1)}};
      assign(s.names, items[static_cast<size_t>(i)]);
      const Flow flow = carry_out(s.body);
      scopes_.pop_back();
      if (flow == Flow::out_of_loop) break;
    }
    return count == 0 ? carry_out(s.otherwise) : Flow::on;
  }
  void assignment(const Statement& s) {
    const Value value = s.expression ? value_of(*s.expression) : Value(written([&] { carry_out(s.body); }));
    if (s.attribute.empty()) return assign(s.names, value);
    variable(s.names[0]).set_member(s.attribute, value);
  }
  // The body sees the variables of the place where the macro is defined, not those of the caller.
  Value macro(const Statement& s) {
    const size_t depth = scopes_.size();
    return Function([this, &s, depth](const Arguments& given) {
      if (++calls_ > deepest_call) throw TemplateError("macros call each other too deeply");
      std::vector<Scope> beyond(
          std::make_move_iterator(scopes_.begin() + static_cast<ptrdiff_t>(std::min(depth, scopes_.size()))),
          std::make_move_iterator(scopes_.end()));
      scopes_.resize(std::min(depth, scopes_.size()));
      scopes_.emplace_back();
      if (given.values.size() > s.parameters.size())
        throw TemplateError(fmt::format("{}() takes {} arguments, found {}", s.text, s.parameters.size(),
                                        given.values.size()));
      for (const auto& argument : given.named)
        if (std::none_of(s.parameters.begin(), s.parameters.end(),
                         [&](const Parameter& p) { return p.name == argument.first; }))
          throw TemplateError(fmt::format("{}() has no argument '{}'", s.text, argument.first));
      for (size_t i = 0; i < s.parameters.size(); ++i) {
        const Parameter& p = s.parameters[i];
        Value value = given.get(i, p.name);
        if (value.is(K::undefined)) value = p.standard ? value_of(*p.standard) : Value::undefined(p.name);
        scopes_.back()[p.name] = std::move(value);
      }
      const std::string text = written([&] { carry_out(s.body); });
      scopes_.resize(scopes_.size() - 1);
      std::move(beyond.begin(), beyond.end(), std::back_inserter(scopes_));
      --calls_;
      return Value(text);
    });
  }

  // ---- expressions
  // Counts a text each time an expression yields it, because every use of a text iterates over it.
  Value value_of(const Expression& e) {
    return at_line(e.line, [&] {
      Value value = value_at(e);
      if (value.is(K::string)) count_work(work_of(value));
      return value;
    });
  }
  Value value_at(const Expression& e) {
    const auto argument = [&](size_t i) { return value_of(*e.arguments[i]); };
    switch (e.kind) {
      case E::constant: return e.value;
      case E::name: return variable(e.text);
      case E::list:
      case E::tuple: {
        List list;
        for (const ExpressionPtr& a : e.arguments) list.push_back(value_of(*a));
        return {std::move(list), e.kind == E::tuple};
      }
      case E::mapping: {
        Members members;
        for (size_t i = 0; i < e.arguments.size(); i += 2) {
          const Value name = argument(i), value = argument(i + 1);
          if (!name.is(K::string))
            throw TemplateError("a mapping whose keys are not strings is not supported");
          const std::string& key = name.text();
          count_work(members.size() / 16);
          const auto found =
              std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == key; });
          if (found != members.end()) found->second = value;
          else members.emplace_back(key, value);
        }
        return members;
      }
      case E::attribute: {
        const Value of = argument(0);
        const Value found = attribute(of, e.text);
        count_work(found.is(K::function) ? work_of(of) : work_to_find(of));
        return found;
      }
      case E::item: {
        const Value of = argument(0);
        count_work(work_to_find(of));
        return item(of, argument(1));
      }
      case E::slice: return slice(e);
      case E::call: return counted(argument(0).function()(arguments_of(e)));
      case E::filter: return filter(e);
      case E::test: {
        const Value of = argument(0);
        const Arguments given = arguments_of(e);
        for (const Value& with : given.values) count_work(work_of(of) + work_of(with));
        return apply_test(e.text, of, given);
      }
      case E::unary: return unary(e.text, argument(0));
      case E::binary: return binary(e);
      case E::comparison: return comparison(e);
      case E::conditional:
        if (argument(1).is_true()) return argument(0);
        return e.arguments[2] ? argument(2) : Value::undefined("the value of an 'if' without 'else'");
    }
    return {};
  }
  Arguments arguments_of(const Expression& e) {
    Arguments all;
    for (size_t i = 1; i < e.arguments.size(); ++i) all.values.push_back(value_of(*e.arguments[i]));
    for (const auto& [name, value] : e.named) {
      count_work(all.named.size() / 16);
      all.named.emplace_back(name, value_of(*value));
    }
    return all;
  }
  // Whether a filter reads only the length or one end of a list.
  static bool reads_only_ends(std::string_view filter) {
    constexpr std::string_view all[] = {"count", "d", "default", "first", "last", "length"};
    return std::find(std::begin(all), std::end(all), filter) != std::end(all);
  }
  Value filter(const Expression& e) {
    const Value of = value_of(*e.arguments[0]);
    if (!reads_only_ends(e.text)) count_work(work_of(of));
    return counted(apply_filter(e.text, of, arguments_of(e)));
  }

  // A method takes precedence over a member of the same name, as in Jinja.
  static Value attribute(const Value& of, const std::string& name) {
    if (of.is(K::undefined)) of.text();  // throws an error that names the undefined value
    if (const auto method = method_of(of, name)) return *method;
    if (of.is(K::mapping))
      if (const Value* found = of.member(name)) return *found;
    return Value::undefined(name);
  }
  static Value item(const Value& of, const Value& key) {
    if (of.is(K::mapping)) {
      if (!key.is(K::string)) return Value::undefined(key.repr());
      if (const Value* found = of.member(key.text())) return *found;
      return attribute(of, key.text());
    }
    if (of.is(K::undefined)) of.text();
    if (key.is(K::string)) return attribute(of, key.text());
    if (of.is(K::list) && of.is_series()) return Value::undefined("an element of a generator");
    const std::vector<size_t> places = of.is(K::string) ? characters(of.text()) : std::vector<size_t>();
    const auto count =
        of.is(K::string) ? static_cast<int64_t>(places.size()) - 1 : static_cast<int64_t>(of.list().size());
    int64_t at = key.integer();
    if (at < 0) at += count;
    if (at < 0 || at >= count) return Value::undefined(fmt::format("element {}", key.integer()));
    const auto i = static_cast<size_t>(at);
    return of.is(K::string) ? Value(of.text().substr(places[i], places[i + 1] - places[i])) : of.list()[i];
  }
  Value slice(const Expression& e) {
    const Value of = value_of(*e.arguments[0]);
    const auto bound = [&](size_t i) -> std::optional<int64_t> {
      if (!e.arguments[i]) return std::nullopt;
      const Value value = value_of(*e.arguments[i]);
      return value.is(K::none) ? std::nullopt : std::optional(value.integer());
    };
    if (of.is(K::mapping)) throw TemplateError("a mapping has no slices");
    if (of.is(K::list) && of.is_series()) return Value::undefined("a slice of a generator");
    const bool is_text = of.is(K::string);
    const std::vector<size_t> places = is_text ? characters(of.text()) : std::vector<size_t>();
    const List elements = is_text ? List() : of.elements();
    const auto count = static_cast<int64_t>(is_text ? places.size() - 1 : elements.size());
    count_work(elements.size() / 2);
    const int64_t step = std::clamp(bound(3).value_or(1), -count - 1, count + 1);
    if (step == 0) throw TemplateError("a slice has a step of 0");
    const auto place = [&](std::optional<int64_t> given, int64_t standard) {  // as in Python's slice.indices
      if (!given) return standard;
      const int64_t at = *given < 0 ? *given + count : *given;
      return std::clamp<int64_t>(at, step < 0 ? -1 : 0, step < 0 ? count - 1 : count);
    };
    const int64_t begin = place(bound(1), step < 0 ? count - 1 : 0),
                  end = place(bound(2), step < 0 ? -1 : count);
    List chosen;
    std::string text;
    for (int64_t i = begin; step < 0 ? i > end : i < end; i += step) {
      const auto k = static_cast<size_t>(i);
      if (is_text) text.append(of.text(), places[k], places[k + 1] - places[k]);
      else chosen.push_back(elements[k]);
    }
    return is_text ? Value(std::move(text)) : Value(std::move(chosen), of.is_tuple());
  }
  static Value unary(const std::string& op, const Value& value) {
    if (op == "not") return !value.is_true();
    if (value.is(K::real)) return op == "-" ? -value.real() : value.real();
    return op == "-" ? number("-", int64_t{0}, value) : Value(value.integer());
  }
  Value binary(const Expression& e) {
    const Value left = value_of(*e.arguments[0]);
    if (e.text == "and") return left.is_true() ? value_of(*e.arguments[1]) : left;
    if (e.text == "or") return left.is_true() ? left : value_of(*e.arguments[1]);
    const Value right = value_of(*e.arguments[1]);
    if (e.text == "~") return left.str() + right.str();
    if (e.text == "+" && left.is(K::string)) return left.text() + right.text();
    if (e.text == "+" && left.is(K::list)) {
      if (!right.is(K::list) || left.is_series() || right.is_series() || left.is_tuple() != right.is_tuple())
        throw TemplateError("+ needs two lists or two tuples");
      List all = left.list();
      all.insert(all.end(), right.list().begin(), right.list().end());
      count_work(all.size() / 2);
      return {std::move(all), left.is_tuple()};
    }
    if (e.text == "*" && left.is(K::list) && !left.is_series()) return repeated(left, right.integer());
    if (e.text == "*" && right.is(K::list) && !right.is_series()) return repeated(right, left.integer());
    if (e.text == "*" && left.is(K::string)) return repeated(left.text(), right.integer());
    if (e.text == "*" && right.is(K::string)) return repeated(right.text(), left.integer());
    if (e.text == "%" && left.is(K::string)) throw TemplateError("formatting by % is not supported");
    return number(e.text, left, right);
  }
  static Value repeated(const std::string& text, int64_t times) {
    if (times <= 0 || text.empty()) return std::string();
    if (static_cast<uint64_t>(times) > longest_text / text.size())
      throw TemplateError("the text is too long");
    std::string all;
    for (int64_t i = 0; i < times; ++i) all += text;
    return all;
  }
  Value repeated(const Value& list, int64_t times) {
    if (times > 0 && !list.list().empty() && static_cast<uint64_t>(times) > longest_list / list.list().size())
      throw TemplateError("a list is too long");
    List all;
    for (int64_t i = 0; i < times; ++i) all.insert(all.end(), list.list().begin(), list.list().end());
    count_work(all.size() / 2);
    return {std::move(all), list.is_tuple()};
  }
  static Value number(const std::string& op, const Value& left, const Value& right) {
    const bool is_real =
        left.is(K::real) || right.is(K::real) || op == "/" || (op == "**" && right.real() < 0);
    if ((op == "/" || op == "//" || op == "%") && right.real() == 0) throw TemplateError("division by 0");
    if (is_real) {
      const double a = left.real(), b = right.real();
      if (op == "+") return a + b;
      if (op == "-") return a - b;
      if (op == "*") return a * b;
      if (op == "/") return a / b;
      if (op == "//") return floor_quotient(a, b);
      if (op == "%") return floor_remainder(a, b);
      return std::pow(a, b);
    }
    const int64_t a = left.integer(), b = right.integer();
    int64_t result = 0;
    bool overflows = false;
    if (op == "+") overflows = __builtin_add_overflow(a, b, &result);
    else if (op == "-") overflows = __builtin_sub_overflow(a, b, &result);
    else if (op == "*") overflows = __builtin_mul_overflow(a, b, &result);
    else if (op == "**") {
      const bool is_trivial = a == 0 || a == 1 || a == -1;  // any exponent is cheap
      result = 1;
      for (int64_t i = 0; i < (is_trivial && b > 2 ? 2 - b % 2 : b) && !overflows; ++i)
        overflows = __builtin_mul_overflow(result, a, &result);
    } else {
      overflows = a == INT64_MIN && b == -1;
    }
    if (overflows) throw TemplateError("a whole number is too large");
    if (op != "//" && op != "%") return result;
    const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return op == "//" ? quotient : a - quotient * b;
  }
  Value comparison(const Expression& e) {
    Value left = value_of(*e.arguments[0]);
    for (size_t i = 0; i < e.operators.size(); ++i) {
      const Value right = value_of(*e.arguments[i + 1]);
      count_work(work_of(left) + work_of(right));
      const std::string& op = e.operators[i];
      const bool holds = op == "=="   ? left == right
                         : op == "!=" ? !(left == right)
                         : op == "<"  ? left < right
                         : op == ">"  ? right < left
                         : op == "<=" ? !(right < left)
                         : op == ">=" ? !(left < right)
                         : op == "in" ? right.contains(left)
                                      : !right.contains(left);
      if (!holds) return false;
      left = right;
    }
    return true;
  }

  using Scope = std::map<std::string, Value>;
  std::vector<Scope> scopes_;
  Rendered result_;
  std::string* out_ = nullptr;
  size_t calls_ = 0, depth_ = 0, work_ = 0;
};

}  // namespace

Rendered render(const std::shared_ptr<const Statements>& program, Members variables) {
  return Interpreter(std::move(variables)).run(*program);
}

}  // namespace command::chat
