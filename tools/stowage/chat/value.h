// Values of templates: the part of Python's data model that chat templates use.
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

// An error in a template or in its input. The interpreter adds the line.
struct TemplateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr size_t longest_text = size_t{1} << 24, longest_list = 100000, most_parts = 1000000,
                        bytes_a_part = 256;

// Called while a text grows, so that a short template cannot use gigabytes.
inline void check_length(const std::string& text) {
  if (text.size() > longest_text) throw TemplateError("the text is too long");
}

class Value;
struct Arguments;
using List = std::vector<Value>;
using Members = std::vector<std::pair<std::string, Value>>;  // in insertion order
using Function = std::function<Value(const Arguments&)>;

class Value {
 public:
  enum class Kind { undefined, none, boolean, integer, real, string, list, mapping, function };

  Value() = default;                         // undefined
  static Value undefined(std::string name);  // `name` appears in the error when the value is used
  static Value none();
  Value(bool b) : kind_(Kind::boolean), integer_(b) {}
  Value(int64_t i) : kind_(Kind::integer), integer_(i) {}
  Value(double d) : kind_(Kind::real), real_(d) {}
  Value(std::string s);  // these three throw a TemplateError if the value is too long or too deeply nested
  Value(const char* s) : Value(std::string(s)) {}
  Value(List l, bool is_tuple = false);
  Value(Members m);
  Value(Function f);
  // Kinds of sequences that Python iterates over but does not print as lists: dict.keys(), values() and
  // items(), and results of filters such as map, which can be iterated only once.
  enum class Series : uint8_t { none, keys, values, items, once };
  static Value series(List l, Series kind);
  static Value space(Members m);  // a namespace: its members can be set, and all references see the change

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::boolean || kind_ == Kind::integer || kind_ == Kind::real; }
  bool is_tuple() const { return is_tuple_; }
  bool is_space() const { return is_space_; }
  bool is_series() const { return series_ != Series::none; }
  bool is_true() const;
  // These require their kind and throw a TemplateError otherwise.
  int64_t integer() const;
  double real() const;  // of any number
  const std::string& text() const;
  const List& list() const;
  const Members& members() const;
  void set_member(const std::string& name, Value value) const;  // of a namespace
  const Function& function() const;
  const Value* member(std::string_view key) const;  // null if there is none
  size_t parts() const { return parts_; }
  size_t element_count() const { return list_ ? list_->size() : 0; }  // of a list

  // Python's str() and repr(), and JSON on one line or indented.
  std::string str() const;
  std::string repr() const;
  struct JsonForm {
    std::optional<std::string> indent = {};
    bool ascii = false;
    std::string between = ", ", after_name = ": ";
  };
  std::string json(const JsonForm& form) const;
  const char* kind_name() const;

  bool operator==(const Value& other) const;
  bool operator<(const Value& other) const;  // for numbers, texts and lists of them
  bool contains(const Value& item) const;
  List elements() const;  // what a loop iterates over: elements, keys or characters

 private:
  [[noreturn]] void fail(std::string_view expected) const;
  void add_repr(std::string& text) const;
  void add_json(std::string& text, const JsonForm& form, int depth) const;
  void hold(const Value& part);

  Kind kind_ = Kind::undefined;
  bool is_tuple_ = false, is_space_ = false;
  Series series_ = Series::none;
  std::shared_ptr<bool> is_used_ = {};  // Series::once: already iterated over
  int depth_ = 0;                       // nesting depth of lists and mappings
  // number of values inside, counted with repetitions, plus one for each 256 bytes of text: the cost of
  // comparing or writing the value
  size_t parts_ = 1;
  int64_t integer_ = 0;
  double real_ = 0;
  // for undefined: its name, or null; shared because a list may hold a long text many times
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<List> list_;
  std::shared_ptr<Members> members_;
  std::shared_ptr<Function> function_;
};

struct Arguments {
  List values;
  Members named;
  // The argument at index `at` or with this name. Undefined if it is missing.
  Value get(size_t at, std::string_view name) const;
};

// The value of an optional argument. If it was not given: `otherwise`, or nothing.
int64_t integer_or(const Value& value, int64_t otherwise);
std::optional<std::string> text_or_nothing(const Value& value);  // nothing also for None

// Pairs of name and value of a mapping. Empty for undefined.
List items_of(const Value& value);

// Offsets of the characters of a text, followed by its length.
std::vector<size_t> characters(std::string_view text);

}  // namespace command::chat
