// Fuzzes training data: detection of file formats by content; .jsonl files as examples, pairs of answers and
// labelled texts, as bytes or token ids; and tables as labelled texts. Learned ranges lie inside of the
// tokens. Labels are written and read again with the same result.
#include "data/examples.h"
#include "data/label_checks.h"
#include "data/label_targets.h"
#include "data/labelled.h"
#include "data/pairs.h"
#include "input.h"

using namespace command;

namespace {

constexpr uint64_t vocabulary = 256, sequence = 32;
constexpr const char* turns =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}{% if "
    "add_generation_prompt %}<assistant>{% endif %}";

template <class Read>
void or_failure(const Read& read) {
  try {
    read();
  } catch (const Failure&) {}
}

void check(const Examples& all) {
  fuzz::require(all.tokens.size() == all.marks.size() && !all.tokens.empty(),
                "there is a mark for each token");
  fuzz::require(all.marks[0] & STW_MARK_BEGIN, "an example begins with the first token");
  uint64_t begun = 0, learned = 0;
  for (size_t i = 0; i < all.tokens.size(); ++i) {
    fuzz::require(all.tokens[i] >= 0 && static_cast<uint64_t>(all.tokens[i]) < vocabulary,
                  "tokens are the model's");
    begun += (all.marks[i] & STW_MARK_BEGIN) != 0;
    learned += (all.marks[i] & STW_MARK_TARGET) != 0;
  }
  fuzz::require(begun >= all.counts.examples && (!all.labels.empty() || learned >= all.counts.learned),
                "what was counted is there");
}

void read_texts(const DataSource& data) {
  const std::vector<LabelledText> texts = read_labelled(data, {}, ReadPurpose::labels);
  const std::vector<std::string> labels = labels_of(texts);
  fuzz::require(labels_in(labels_json(labels, STW_TASK_LABEL), "labels").names == labels,
                "labels that are written are read alike");
  static const Tokenization bytes = Tokenization::of_file("byte", "data", false, "nano", vocabulary);
  stw_model_info model{};
  model.task = STW_TASK_LABEL;
  model.generates = 1;
  model.padding_token = -1;
  const Examples all = label_examples(texts, labels, bytes, model, sequence, Order::shuffled);
  fuzz::require(all.labels.size() == 4 * texts.size(), "each text has a label");
  check(all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  static const Tokenization bytes = Tokenization::of_file("byte", "data", false, "nano", vocabulary),
                            ids = Tokenization::of_file("ids", "data", false, "nano", vocabulary);
  static const chat::ChatTemplate how = *chat::ChatTemplate::find(folder.write("turns.jinja", turns), "");
  static const FindTemplate find = [](const std::string&) -> const chat::ChatTemplate& { return how; };
  static const std::string text_member;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string lines_path = folder.write("data.jsonl", text),
                    table_path = folder.write("data.csv", text), any_path = folder.write("data", text);
  DataReading as_lines, as_table;
  as_lines.format = "jsonl", as_table.format = "csv";
  DataSource lines, table;
  or_failure([&] { DataSource({any_path}, {}); });
  or_failure([&] { lines = DataSource({lines_path}, as_lines); });
  or_failure([&] { table = DataSource({table_path}, as_table); });
  if (lines.empty() || table.empty()) return 0;
  for (const Tokenization* tokenization : {&bytes, &ids}) {
    const ExampleReader reader(text_member, *tokenization, find, 0);
    or_failure([&] { check(read_examples(lines, reader, sequence, sequence, Order::of_file)); });
    or_failure([&] { check(read_pairs(lines, reader, sequence, sequence, Order::of_file)); });
  }
  or_failure([&] { holds_labels(lines, {}); });
  or_failure([&] { holds_pairs(lines); });
  or_failure([&] { read_texts(lines); });
  or_failure([&] { read_texts(table); });
  return 0;
}
