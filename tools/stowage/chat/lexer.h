// Splits a template into the text between tags and the tokens inside of tags.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace command::chat {

struct Token {
  enum class Kind {
    text,
    begin_output,
    end_output,
    begin_block,
    end_block,
    name,
    string,
    integer,
    real,
    sign,
    end
  };
  Kind kind;
  std::string text;  // for a string: its decoded value
  int line;
};

// Throws a TemplateError that begins with the line.
std::vector<Token> cut(std::string_view source);

}  // namespace command::chat
