#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "chat/lexer.h"
#include "chat/syntax.h"

namespace command::chat {
namespace {

using T = Token::Kind;
using E = Expression::Kind;
using S = Statement::Kind;

constexpr int deepest = 200, longest_chain = 400;  // limits: nesting depth of the source; depth of any tree

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(cut(source)) {}

  Statements all() {
    Statements list = statements({});
    if (now().kind != T::end) fail(fmt::format("unexpected '{}'", now().text));
    return list;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw TemplateError(fmt::format("line {}: {}", now().line, what));
  }

  // ---- tokens
  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(T kind, std::string_view text) const { return now().kind == kind && now().text == text; }
  bool is_name(std::string_view text) const { return is(T::name, text); }
  bool is_sign(std::string_view text) const { return is(T::sign, text); }
  bool take(T kind, std::string_view text) {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool take_name(std::string_view text) { return take(T::name, text); }
  bool take_sign(std::string_view text) { return take(T::sign, text); }
  void expect_sign(std::string_view text) {
    if (!take_sign(text)) fail(fmt::format("expected '{}'{}", text, found()));
  }
  std::string name() {
    if (now().kind != T::name) fail("expected a name" + found());
    return tokens_[at_++].text;
  }
  std::string found() const {
    switch (now().kind) {
      case T::end: return ", found the end";
      case T::end_block: return ", found %}";
      case T::end_output: return ", found }}";
      default: return fmt::format(", found '{}'", now().text);
    }
  }
  void end_block() {
    if (now().kind != T::end_block) fail("expected %}" + found());
    ++at_;
  }

  // ---- statements
  // Parses up to a block whose name is in `ends`, or to the end of the template if `ends` is empty. Consumes
  // only the {% of that block.
  Statements statements(std::initializer_list<std::string_view> ends) {
    const Nested nested(*this);
    Statements list;
    for (;;) {
      switch (now().kind) {
        case T::end:
          if (ends.size() > 0) fail(fmt::format("expected {{% {} %}}, found the end", *(ends.end() - 1)));
          return list;
        case T::text: list.push_back({S::text, now().line, now().text}), ++at_; break;
        case T::begin_output:
          ++at_;
          list.push_back({S::output, now().line}), list.back().expression = whole_expression();
          if (now().kind != T::end_output) fail("expected }}" + found());
          ++at_;
          break;
        default:
          ++at_;  // {%
          if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); }))
            return list;
          statement(list);
      }
    }
  }
  void statement(Statements& list) {
    Statement s{S::text, now().line};
    const std::string word = name();
    if (word == "if") {
      s.kind = S::branches;
      branches(s);
    } else if (word == "for") {
      s.kind = S::loop;
      loop(s);
    } else if (word == "set") {
      s.kind = S::assignment;
      assignment(s);
    } else if (word == "macro") {
      s.kind = S::macro;
      macro(s);
    } else if (word == "generation") {
      s.kind = S::generation;
      end_block();
      s.body = statements({"endgeneration"});
      ++at_;
      end_block();
    } else if (word == "break" || word == "continue") {
      s.kind = word == "break" ? S::loop_break : S::loop_continue;
      if (loops_ == 0) fail(fmt::format("{{% {} %}} outside of a loop", word));
      end_block();
    } else {
      fail(fmt::format("{{% {} %}} is not supported", word));
    }
    list.push_back(std::move(s));
  }
  void branches(Statement& s) {
    for (;;) {
      ExpressionPtr condition = tuple(false);
      end_block();
      s.branches.emplace_back(std::move(condition), statements({"elif", "else", "endif"}));
      if (take_name("elif")) continue;
      if (take_name("else")) {
        end_block();
        s.otherwise = statements({"endif"});
      }
      ++at_;  // endif
      return end_block();
    }
  }
  void loop(Statement& s) {
    s.names = targets();
    if (!take_name("in")) fail("expected 'in'" + found());
    s.expression = tuple(false);
    if (take_name("if")) s.condition = expression();
    if (is_name("recursive")) fail("recursive loops are not supported");
    end_block();
    ++loops_;
    s.body = statements({"else", "endfor"});
    --loops_;
    if (take_name("else")) {
      end_block();
      s.otherwise = statements({"endfor"});
    }
    ++at_;  // endfor
    end_block();
  }
  std::vector<std::string> targets() {
    const bool in_brackets = take_sign("(");
    std::vector<std::string> names{name()};
    while (take_sign(",")) names.push_back(name());
    if (in_brackets) expect_sign(")");
    return names;
  }
  void assignment(Statement& s) {
    s.names = targets();
    if (s.names.size() == 1 && take_sign(".")) s.attribute = name();
    if (take_sign("=")) {
      s.expression = whole_expression();
      return end_block();
    }
    if (is_sign("|")) fail("{% set %} with a filter is not supported");
    end_block();
    s.body = statements({"endset"});
    ++at_;
    end_block();
  }
  void macro(Statement& s) {
    s.text = name();
    expect_sign("(");
    list_of(")", [&] {
      Parameter p{name(), nullptr};
      if (take_sign("=")) p.standard = expression();
      s.parameters.push_back(std::move(p));
    });
    end_block();
    const int outside = std::exchange(loops_, 0);
    s.body = statements({"endmacro"});
    loops_ = outside;
    ++at_;
    end_block();
  }

  // ---- expressions
  struct Nested {
    explicit Nested(Parser& p) : parser(p) {
      if (++p.depth_ > deepest) p.fail("nested too deeply");
    }
    ~Nested() { --parser.depth_; }
    Parser& parser;
  };
  ExpressionPtr make(E kind, std::string text = {}) const {
    auto e = std::make_unique<Expression>(Expression{kind, now().line});
    e->text = std::move(text);
    return e;
  }
  template <class... More>
  ExpressionPtr make(E kind, std::string text, ExpressionPtr first, More... more) const {
    ExpressionPtr e = make(kind, std::move(text));
    e->line = first->line;
    adopt(*e, std::move(first));
    (adopt(*e, std::move(more)), ...);
    return e;
  }
  void count_depth(Expression& of, const ExpressionPtr& part) const {
    if (part) of.depth = std::max(of.depth, part->depth + 1);
    if (of.depth > longest_chain) fail("nested too deeply");
  }
  void adopt(Expression& of, ExpressionPtr part) const {
    count_depth(of, part);
    of.arguments.push_back(std::move(part));
  }
  ExpressionPtr constant(Value value) const {
    ExpressionPtr e = make(E::constant);
    e->value = std::move(value);
    return e;
  }

  // An expression that may be a tuple without brackets.
  ExpressionPtr whole_expression() { return tuple(true); }
  ExpressionPtr tuple(bool with_conditions) {
    ExpressionPtr first = with_conditions ? expression() : disjunction();
    if (!is_sign(",")) return first;
    ExpressionPtr all = make(E::tuple, {}, std::move(first));
    while (take_sign(",")) {
      if (now().kind == T::end_block || now().kind == T::end_output || is_sign(")") || is_sign("=")) break;
      adopt(*all, with_conditions ? expression() : disjunction());
    }
    return all;
  }
  ExpressionPtr expression() {
    const Nested nested(*this);
    ExpressionPtr e = disjunction();
    while (take_name("if")) {
      ExpressionPtr condition = disjunction(), otherwise;
      if (take_name("else")) otherwise = expression();
      e = make(E::conditional, {}, std::move(e), std::move(condition), std::move(otherwise));
    }
    return e;
  }
  ExpressionPtr disjunction() {
    ExpressionPtr e = conjunction();
    while (take_name("or")) e = make(E::binary, "or", std::move(e), conjunction());
    return e;
  }
  ExpressionPtr conjunction() {
    ExpressionPtr e = negation();
    while (take_name("and")) e = make(E::binary, "and", std::move(e), negation());
    return e;
  }
  ExpressionPtr negation() {
    const Nested nested(*this);
    if (take_name("not")) return make(E::unary, "not", negation());
    return comparison();
  }
  ExpressionPtr comparison() {
    ExpressionPtr first = sum();
    ExpressionPtr all;
    for (;;) {
      std::string op;
      for (const char* sign : {"==", "!=", "<", "<=", ">", ">="})
        if (is_sign(sign)) op = sign;
      if (is_name("in")) op = "in";
      if (is_name("not") && next().kind == T::name && next().text == "in") op = "not in", ++at_;
      if (op.empty()) return all ? std::move(all) : std::move(first);
      ++at_;
      if (!all) all = make(E::comparison, {}, std::move(first));
      all->operators.push_back(op);
      adopt(*all, sum());
    }
  }
  ExpressionPtr sum() {
    ExpressionPtr e = concatenation();
    while (is_sign("+") || is_sign("-")) {
      const std::string op = tokens_[at_++].text;
      e = make(E::binary, op, std::move(e), concatenation());
    }
    return e;
  }
  ExpressionPtr concatenation() {
    ExpressionPtr e = product();
    while (take_sign("~")) e = make(E::binary, "~", std::move(e), product());
    return e;
  }
  ExpressionPtr product() {
    ExpressionPtr e = power();
    while (is_sign("*") || is_sign("/") || is_sign("//") || is_sign("%")) {
      const std::string op = tokens_[at_++].text;
      e = make(E::binary, op, std::move(e), power());
    }
    return e;
  }
  ExpressionPtr power() {
    ExpressionPtr e = unary(true);
    while (take_sign("**")) e = make(E::binary, "**", std::move(e), unary(true));
    return e;
  }
  ExpressionPtr unary(bool with_filters) {
    const Nested nested(*this);
    ExpressionPtr e;
    if (is_sign("-") || is_sign("+")) {
      const std::string op = tokens_[at_++].text;
      e = make(E::unary, op, unary(false));
    } else {
      e = primary();
    }
    e = with_members(std::move(e));
    return with_filters ? filtered(std::move(e)) : std::move(e);
  }
  ExpressionPtr primary() {
    const Token& t = now();
    switch (t.kind) {
      case T::name: {
        ++at_;
        if (t.text == "true" || t.text == "True") return constant(true);
        if (t.text == "false" || t.text == "False") return constant(false);
        if (t.text == "none" || t.text == "None") return constant(Value::none());
        return make(E::name, t.text);
      }
      case T::string: {
        std::string text;
        while (now().kind == T::string) text += tokens_[at_++].text;  // adjacent strings are joined
        return constant(std::move(text));
      }
      case T::integer: {
        int64_t whole = 0;
        const auto read = std::from_chars(t.text.data(), t.text.data() + t.text.size(), whole);
        if (read.ec != std::errc()) fail("a number is too large");
        ++at_;
        return constant(whole);
      }
      case T::real: {
        double real = 0;
        std::from_chars(t.text.data(), t.text.data() + t.text.size(), real);
        ++at_;
        return constant(real);
      }
      case T::sign:
        if (take_sign("(")) return in_brackets();
        if (take_sign("[")) return elements();
        if (take_sign("{")) return members();
        [[fallthrough]];
      default: fail("expected an expression" + found());
    }
  }
  ExpressionPtr in_brackets() {
    const Nested nested(*this);
    if (take_sign(")")) return make(E::tuple);
    ExpressionPtr e = whole_expression();
    expect_sign(")");
    return e;
  }
  // Calls item() for each element up to `close`. Elements are separated by commas; a trailing comma is
  // allowed.
  template <class Item>
  void list_of(std::string_view close, const Item& item) {
    for (bool is_first = true; !take_sign(close); is_first = false) {
      if (!is_first) {
        expect_sign(",");
        if (take_sign(close)) return;
      }
      item();
    }
  }
  ExpressionPtr elements() {
    ExpressionPtr list = make(E::list);
    list_of("]", [&] { adopt(*list, expression()); });
    return list;
  }
  ExpressionPtr members() {
    ExpressionPtr mapping = make(E::mapping);
    list_of("}", [&] {
      adopt(*mapping, expression());
      expect_sign(":");
      adopt(*mapping, expression());
    });
    return mapping;
  }
  ExpressionPtr with_members(ExpressionPtr e) {
    for (;;) {
      if (take_sign(".")) {
        if (now().kind == T::integer) e = make(E::item, {}, std::move(e), primary());
        else {
          std::string attribute = name();
          e = make(E::attribute, std::move(attribute), std::move(e));
        }
      } else if (take_sign("[")) {
        e = subscript(std::move(e));
      } else if (is_sign("(")) {
        e = make(E::call, {}, std::move(e));
        arguments(*e);
      } else {
        return e;
      }
    }
  }
  ExpressionPtr subscript(ExpressionPtr e) {
    ExpressionPtr part[3];
    int colons = 0;
    for (;;) {
      if (take_sign("]")) break;
      if (take_sign(":")) {
        if (++colons > 2) fail("unexpected ':'");
        continue;
      }
      if (part[colons]) fail("expected ']'" + found());
      part[colons] = expression();
    }
    if (colons > 0)
      return make(E::slice, {}, std::move(e), std::move(part[0]), std::move(part[1]), std::move(part[2]));
    if (!part[0]) fail("expected an expression" + found());
    return make(E::item, {}, std::move(e), std::move(part[0]));
  }
  // Appends the arguments in brackets to those already present.
  void arguments(Expression& of) {
    const Nested nested(*this);
    expect_sign("(");
    list_of(")", [&] {
      if (is_sign("*") || is_sign("**")) fail("unpacked arguments are not supported");
      if (now().kind == T::name && next().kind == T::sign && next().text == "=") {
        std::string key = name();
        ++at_;
        of.named.emplace_back(std::move(key), expression());
        count_depth(of, of.named.back().second);
      } else {
        if (!of.named.empty()) fail("expected a named argument" + found());
        adopt(of, expression());
      }
    });
  }
  ExpressionPtr filtered(ExpressionPtr e) {
    for (;;) {
      if (take_sign("|")) {
        std::string filter = name();
        e = make(E::filter, std::move(filter), std::move(e));
        if (is_sign("(")) arguments(*e);
      } else if (take_name("is")) {
        const bool is_negated = take_name("not");
        std::string test = name();
        e = make(E::test, std::move(test), std::move(e));
        if (is_sign("(")) {
          arguments(*e);
        } else if (starts_argument()) {
          if (is_name("is")) fail("expected one test at a time");
          adopt(*e, with_members(primary()));
        }
        if (is_negated) e = make(E::unary, "not", std::move(e));
      } else if (is_sign("(")) {
        e = make(E::call, {}, std::move(e));
        arguments(*e);
      } else {
        return e;
      }
    }
  }
  // Whether an argument without brackets follows a test.
  bool starts_argument() const {
    const Token& t = now();
    if (t.kind == T::string || t.kind == T::integer || t.kind == T::real) return true;
    if (t.kind == T::sign) return t.text == "[" || t.text == "{";
    return t.kind == T::name && t.text != "else" && t.text != "or" && t.text != "and" && t.text != "if" &&
           t.text != "not" && t.text != "in";
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

std::shared_ptr<const Statements> parse(std::string_view source) {
  return std::make_shared<const Statements>(Parser(source).all());
}

}  // namespace command::chat
