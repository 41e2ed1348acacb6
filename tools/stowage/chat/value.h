// What a template computes with: Python's values, as far as templates of conversations use them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command::chat {

// What is wrong with a template, or with what it is given; the interpreter adds the line.
struct TemplateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr size_t longest_text = size_t{1} << 24, longest_list = 100000, most_parts = 1000000, bytes_a_part = 256;

// While one is made, so that little of a template makes no gigabytes.
inline void check_length(const std::string& text) {
  if (text.size() > longest_text) throw TemplateError("the text is too long");
}

class Value;
struct Arguments;
using List = std::vector<Value>;
using Members = std::vector<std::pair<std::string, Value>>;   // in the order they came
using Function = std::function<Value(const Arguments&)>;

class Value {
 public:
  enum class Kind { undefined, none, boolean, integer, real, string, list, mapping, function };

  Value() = default;   // undefined
  static Value undefined(std::string name);   // said where it is used as if it were something
  static Value none();
  Value(bool b) : kind_(Kind::boolean), integer_(b) {}
  Value(int64_t i) : kind_(Kind::integer), integer_(i) {}
  Value(double d) : kind_(Kind::real), real_(d) {}
  Value(std::string s);   // these three throw a TemplateError where a template made what is far too long, or nested too deeply
  Value(const char* s) : Value(std::string(s)) {}
  Value(List l, bool is_tuple = false);
  Value(Members m);
  Value(Function f);
  // What Python gives element by element, and writes otherwise than a list: dict's keys(), values() and items(), and what filters like map give,
  // which can be gone over once.
  enum class Series : uint8_t { none, keys, values, items, once };
  static Value series(List l, Series kind);
  static Value space(Members m);   // a namespace: its members may be set, and all that hold it see that

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::boolean || kind_ == Kind::integer || kind_ == Kind::real; }
  bool is_tuple() const { return is_tuple_; }
  bool is_space() const { return is_space_; }
  bool is_series() const { return series_ != Series::none; }
  bool is_true() const;
  // Of the kinds that they are for; throw a TemplateError otherwise.
  int64_t integer() const;
  double real() const;                        // of any number
  const std::string& text() const;
  const List& list() const;
  const Members& members() const;
  void set_member(const std::string& name, Value value) const;   // of a namespace
  const Function& function() const;
  const Value* member(std::string_view key) const;   // null where there is none
  size_t parts() const { return parts_; }
  size_t element_count() const { return list_ ? list_->size() : 0; }   // of a list

  // As Python's str() and repr(), and as JSON, in a line or indented.
  std::string str() const;
  std::string repr() const;
  struct JsonForm { std::optional<std::string> indent = {}; bool ascii = false; std::string between = ", ", behind_name = ": "; };
  std::string json(const JsonForm& form) const;
  const char* kind_name() const;

  bool operator==(const Value& other) const;
  bool operator<(const Value& other) const;   // of numbers, texts and lists of them
  bool contains(const Value& item) const;
  List elements() const;                      // what a loop goes over: elements, keys, characters

 private:
  [[noreturn]] void fail(std::string_view expected) const;
  void add_repr(std::string& text) const;
  void add_json(std::string& text, const JsonForm& form, int depth) const;
  void hold(const Value& part);

  Kind kind_ = Kind::undefined;
  bool is_tuple_ = false, is_space_ = false;
  Series series_ = Series::none;
  std::shared_ptr<bool> is_used_ = {};        // Series::once: gone over already
  int depth_ = 0;                             // of lists and mappings in each other
  size_t parts_ = 1;                          // of all that is in it, as often as it is, and 256 bytes of a text each: what comparing or writing all of it takes
  int64_t integer_ = 0;
  double real_ = 0;
  std::shared_ptr<const std::string> text_;   // of undefined: its name, or null; shared, since a list may hold a long one many times
  std::shared_ptr<List> list_;
  std::shared_ptr<Members> members_;
  std::shared_ptr<Function> function_;
};

struct Arguments {
  List values;
  Members named;
  // Argument number `at`, or of that name; undefined where it is not given.
  Value get(size_t at, std::string_view name) const;
};

// Of an argument that may be left out.
int64_t integer_or(const Value& value, int64_t otherwise);
std::optional<std::string> text_or_nothing(const Value& value);   // nothing: also where it is none

// Of a mapping: pairs of name and value; of undefined none.
List items_of(const Value& value);

// Characters of a text: where each begins, and the end.
std::vector<size_t> characters(std::string_view text);

}  // namespace command::chat
