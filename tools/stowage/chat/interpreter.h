// Carries a template out.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/syntax.h"

namespace command::chat {

struct Rendered {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generated;   // parts of it that stand in {% generation %}: begin and end, in bytes
  size_t work = 0;   // as the interpreter counts it, which bounds it
};

// Throws a TemplateError that begins with the line: what the template asks for is not there, has another kind, or raise_exception was
// called.
Rendered render(const std::shared_ptr<const Statements>& program, Members variables);

}  // namespace command::chat
