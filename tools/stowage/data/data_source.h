// The files that --data names. What they hold is known by their content rather than by their names, and each
// is read once, so that a pipe will do.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // its headers cost more to compile than all else here
class App;
}

namespace command {

enum class DataFormat { text, jsonl, json, csv, tsv, conll, tokens };

struct DataFile {
  std::string path;
  DataFormat format = DataFormat::text;
  char separator = ',';        // of columns
  bool is_by_content = false;  // its name says something else
  bool is_regular = true;      // and can be read again; else it is a pipe or a device
  bool has_examples = false;   // a table: its columns are members of examples (prompt and completion, chosen
                               // and rejected, or a text alone) rather than texts with labels
};

// How files are read, as far as flags say it.
struct DataReading {
  std::string format = "auto";                 // --data-format
  std::string text = "text", label = "label";  // columns of a table
  bool has_ids = false;                        // --tokenizer ids: what is not JSON is token ids
  bool has_bytes = false;                      // --tokenizer byte: a .bin file is a text of bytes
};

class DataSource {
 public:
  DataSource() = default;
  // `given`: files, folders, of which the files with known endings are meant, and patterns such as
  // "data/*.jsonl". Throws a Failure that names the file and what is wrong with it: not there, of another
  // program, in another encoding, ambiguous, or of another kind than the first one.
  DataSource(const std::vector<std::string>& given, const DataReading& reading);

  bool empty() const { return files_.empty(); }
  const std::string& name() const { return name_; }  // for messages
  const std::vector<DataFile>& files() const { return files_; }
  bool holds_objects() const { return is(DataFormat::jsonl) || is(DataFormat::json); }
  bool is_table() const { return is(DataFormat::csv) || is(DataFormat::tsv); }
  bool is_table_of_examples() const { return is_table() && files_[0].has_examples; }
  bool holds_members() const { return holds_objects() || is_table_of_examples(); }  // that for_objects gives
  bool is_conll() const { return is(DataFormat::conll); }
  bool has_tokens() const { return is(DataFormat::tokens); }
  bool holds_examples() const { return holds_objects() || is_table() || is_conll(); }
  // "JSON lines", "a JSON array", … and how many files there are.
  std::string description() const;

  // Of the file of that number, in UTF-8 where it holds examples, without a byte-order mark.
  std::string_view content(size_t file) const;
  // object(text, place) for each object of all files, or record of tables as one, until it returns false.
  // `place` names the file and the line. Throws a Failure where the JSON around them is damaged. With
  // `blank_ones` blank lines of JSON lines are given, too.
  void for_objects(const std::function<bool(std::string_view, const std::string&)>& object,
                   bool blank_ones = false) const;
  // Gives up the memory of contents that can be read again.
  void forget() const;
  // Whether the library can read the file itself.
  bool is_one_regular_file() const;

 private:
  bool is(DataFormat format) const { return !files_.empty() && files_[0].format == format; }
  std::vector<DataFile> files_;
  mutable std::vector<std::shared_ptr<const std::string>>
      contents_;  // of each file; null: not read, or forgotten
  std::string name_, text_member_;
};

// "a.jsonl", or "a.jsonl and 2 more".
std::string name_of_files(const std::vector<std::string>& given);
// Whether it is a pattern of files rather than one that is there.
bool is_file_pattern(const std::string& given);
void add_data_format_flag(CLI::App& command, std::string& format);

}  // namespace command
