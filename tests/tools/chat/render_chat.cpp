// Runs a model's chat template, for tests: `render_chat FILE FOLDER`, either of which may be empty, reads a
// conversation as JSON from every line of its input, and writes one JSON line with the result for each.
// Without arguments, each input line is a template as a JSON string, which needs no conversation.
#include <iostream>
#include <string>

#include "base/failure.h"
#include "chat/chat_template.h"
#include "chat/interpreter.h"
#include "chat/value.h"

using namespace command;
using chat::Value;

namespace {

Value answer(const std::string& file, const std::string& folder, const std::string& line) {
  try {
    const auto how = chat::ChatTemplate::find(file, folder);
    if (!how) return chat::Members{{"error", "there is none"}};
    const Json object = read_json(line, "line");
    for (const auto& [name, messages] : object.members()) {
      if (name != "messages") continue;
      const std::string prompt = how->prompt(messages, object, "line");
      const chat::ChatTemplate::Text text = how->conversation(messages, object, "line");
      chat::List learned;
      for (const auto& [begin, end] : text.learned) learned.push_back(text.text.substr(begin, end - begin));
      return chat::Members{{"text", text.text},
                           {"prompt", prompt},
                           {"learned", learned},
                           {"work", static_cast<int64_t>(text.work)}};
    }
    return chat::Members{{"error", "no messages"}};
  } catch (const Failure& failure) { return chat::Members{{"error", failure.what()}}; }
}

Value answer(const std::string& line) {
  try {
    return chat::Members{
        {"text", chat::render(chat::parse(std::string(text_of(read_json(line, "line")))), {}).text}};
  } catch (const chat::TemplateError& failure) { return chat::Members{{"error", failure.what()}}; }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3 && count != 1) return exit_usage;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << (count == 1 ? answer(line) : answer(words[1], words[2], line)).json({}) << '\n';
}
