// Executes a template.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/syntax.h"

namespace command::chat {

struct Rendered {
  std::string text;
  // parts of the text inside {% generation %}: begin and end, in bytes
  std::vector<std::pair<size_t, size_t>> generated;
  size_t work = 0;  // steps counted by the interpreter, which limits them
};

// Throws a TemplateError that begins with the line: a value is missing or has the wrong kind, or the template
// called raise_exception.
Rendered render(const std::shared_ptr<const Statements>& program, Members variables);

}  // namespace command::chat
