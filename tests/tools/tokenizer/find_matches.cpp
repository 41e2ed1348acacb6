// Finds matches of tokenizers' patterns for tests: reads one JSON object a line, {"pattern": …, "text": …},
// and writes the byte ranges of the matches, [[begin, end], …], or the error, as one JSON object a line. A
// range does not include its end.
#include <fmt/format.h>

#include <iostream>
#include <optional>
#include <string>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/json_value.h"
#include "tokenizer/pattern.h"

using namespace command;

static std::string answer(const std::string& line) {
  try {
    const Json value = read_json(line, "line");
    const JsonView asked(value, "line: ");
    const Pattern pattern({asked.at("pattern").text(), true}, "file");
    const std::string text = asked.at("text").text();
    std::string matches;
    for (std::optional<Match> match = pattern.find(text, 0); match; match = pattern.find(text, match->end))
      matches += fmt::format("{}[{},{}]", matches.empty() ? "" : ",", match->begin, match->end);
    return fmt::format(R"({{"matches": [{}]}})", matches);
  } catch (const Failure& failure) { return fmt::format(R"({{"error": {}}})", json_quoted(failure.what())); }
}

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line) << '\n';
}
