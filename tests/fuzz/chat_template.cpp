// Fuzzes chat templates. An input is a template, then a byte 0xFF and a line with a conversation. Without
// such a line, built-in conversations that use all members of a message are rendered. Only a Failure may
// escape, the ranges of the assistant lie inside of the text, and a second rendering gives the same result.
#include "chat/chat_template.h"
#include "base/failure.h"
#include "base/utf8.h"
#include "input.h"

using namespace command;

namespace {

constexpr const char* lines[] = {
    R"({"messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "1"}, )"
    R"({"role": "assistant", "content": "one"},
        {"role": "user", "content": "2\n"}, {"role": "assistant", )"
    R"("content": "<think>\nhm\n</think>\n\ntwo"}]})",
    R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", )"
    R"("content": "", "reasoning_content": "r",
        "tool_calls": [{"type": "function", "function": {"name": "f", )"
    R"("arguments": {"x": [1, 2.5, null, true]}}}]}, {"role": "tool", "content": "3"},
        {"role": "assistant", "content": "\u00fc"}], "tools": [{"type": "function", )"
    R"("function": {"name": "f", "parameters": {"type": "object"}}}]})"};

void carry_out(const chat::ChatTemplate& how, const std::string& line) {
  try {
    const Json object = read_json(line, "line");
    for (const auto& [name, messages] : object.members()) {
      if (name != "messages") continue;
      how.prompt(messages, object, "line");
      const chat::ChatTemplate::Text text = how.conversation(messages, object, "line"),
                                     again = how.conversation(messages, object, "line");
      fuzz::require(text.text == again.text && text.learned == again.learned,
                    "a conversation is written alike twice");
      fuzz::require(valid_utf8(text.text) == text.text, "the text is UTF-8");
      size_t last = 0;
      for (const auto& [begin, end] : text.learned) {
        fuzz::require(begin >= last && begin <= end && end <= text.text.size(),
                      "learned ranges lie in the text, in order");
        last = end;
      }
    }
  } catch (const Failure&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 2);
  try {
    const auto how = chat::ChatTemplate::find(folder.write("chat_template.jinja", parts[0]), "");
    if (!parts[1].empty()) carry_out(*how, parts[1]);
    else
      for (const char* line : lines) carry_out(*how, line);
    how->end_of_answer("answer");
  } catch (const Failure&) {}
  return 0;
}
