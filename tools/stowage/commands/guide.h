// The pages of docs/, which are compiled into the command (guide.py writes guide.cpp).
#pragma once
#include <span>
#include <string_view>

namespace command {

struct GuidePage {
  std::string_view topic;    // the file's name without .md
  std::string_view answers;  // its subject, from the index
  std::string_view text;     // Markdown, UTF-8
};

// In the order of the guide's index.
std::span<const GuidePage> guide_pages();

}  // namespace command
