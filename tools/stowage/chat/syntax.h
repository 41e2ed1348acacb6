// The syntax tree of a template. The parser builds it and the interpreter executes it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace command::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    constant,  // value
    name,      // text
    list,
    tuple,      // arguments
    mapping,    // keys and values in turn
    attribute,  // arguments[0].text
    item,       // arguments[0][arguments[1]]
    slice,      // arguments[0][arguments[1]:arguments[2]:arguments[3]], null where absent
    call,       // arguments[0](the others, named)
    filter,
    test,         // arguments[0] | text(the others, named); is text(…)
    unary,        // text: "-", "+", "not"
    binary,       // text: an operator, "and", "or"
    comparison,   // comparisons of neighbouring arguments, all of which must hold
    conditional,  // arguments[0] if arguments[1] else arguments[2], which may be null
  };
  Kind kind;
  int line;
  int depth = 1;  // of the tree below this node
  std::string text = {};
  Value value = {};
  std::vector<ExpressionPtr> arguments = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  std::vector<std::string> operators = {};
};

struct Statement;
using Statements = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPtr standard;  // default value; null: none
};

struct Statement {
  enum class Kind {
    text,        // text
    output,      // expression
    branches,    // if, elif: a condition and a body each; `otherwise`
    loop,        // for names in expression if condition; body; otherwise
    assignment,  // names (or names[0].attribute) = expression; if expression is null, the text of body
    macro,       // text(parameters)
    generation,  // body: text of the assistant
    loop_break,
    loop_continue,
  };
  Kind kind;
  int line;
  std::string text = {}, attribute = {};
  std::vector<std::string> names = {};
  ExpressionPtr expression = {}, condition = {};
  std::vector<std::pair<ExpressionPtr, Statements>> branches = {};
  std::vector<Parameter> parameters = {};
  Statements body = {}, otherwise = {};
};

// Parses Jinja2 with the settings of transformers' chat templates: trim_blocks, lstrip_blocks, loop controls
// and {% generation %}. Throws a TemplateError that begins with the line if the text is malformed or uses an
// unsupported feature.
std::shared_ptr<const Statements> parse(std::string_view source);

}  // namespace command::chat
