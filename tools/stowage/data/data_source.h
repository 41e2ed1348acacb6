// The files that --data names. Their format is found from their content more than from their names. Each is
// read once, so that it may be a pipe.
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
  char separator = ',';        // between columns
  bool is_by_content = false;  // the content gave the format, and the name suggests another
  bool is_regular = true;      // can be read again; false for a pipe or a device
  // Whether the columns of a table are the members of examples (prompt and completion, chosen and rejected,
  // or only a text). A table with other columns holds texts with labels.
  bool has_examples = false;
  // One object with the articles of SQuAD in its member "data". for_objects gives the articles.
  bool has_articles = false;
};

// The flags that decide how files are read.
struct DataReading {
  std::string format = "auto";                 // --data-format
  std::string text = "text", label = "label";  // columns of a table
  bool has_ids = false;                        // --tokenizer ids: a file that is not JSON holds token ids
  bool has_bytes = false;                      // --tokenizer byte: a .bin file is a text of bytes
};

class DataSource {
 public:
  DataSource() = default;
  // `given`: files, folders and patterns such as "data/*.jsonl". A folder stands for its files with known
  // endings. Throws a Failure that names the file and the reason: it is missing, it belongs to another
  // program, its encoding is not supported, its format is ambiguous, or its kind differs from that of the
  // first file.
  DataSource(const std::vector<std::string>& given, const DataReading& reading);

  bool empty() const { return files_.empty(); }
  const std::string& name() const { return name_; }  // for messages
  const std::vector<DataFile>& files() const { return files_; }
  bool holds_objects() const { return is(DataFormat::jsonl) || is(DataFormat::json); }
  bool is_table() const { return is(DataFormat::csv) || is(DataFormat::tsv); }
  bool is_table_of_examples() const { return is_table() && files_[0].has_examples; }
  // Whether for_objects gives objects with the members of examples.
  bool holds_members() const { return holds_objects() || is_table_of_examples(); }
  bool is_conll() const { return is(DataFormat::conll); }
  bool has_tokens() const { return is(DataFormat::tokens); }
  bool holds_examples() const { return holds_objects() || is_table() || is_conll(); }
  // "JSON lines", "a JSON array", …, and the number of files.
  std::string description() const;

  // The content of a file by its index, without a byte-order mark. A file of examples is valid UTF-8.
  std::string_view content(size_t file) const;
  // Calls object(text, place) for each object of all files until it returns false. A record of a table counts
  // as an object. `place` names the file and the line. Throws a Failure if the JSON around the objects is
  // damaged. With `blank_ones` it is also called for the blank lines of JSON lines.
  void for_objects(const std::function<bool(std::string_view, const std::string&)>& object,
                   bool blank_ones = false) const;
  // Frees the contents that can be read again.
  void forget() const;
  // Whether the library can read the data itself: one regular file.
  bool is_one_regular_file() const;

 private:
  bool is(DataFormat format) const { return !files_.empty() && files_[0].format == format; }
  std::vector<DataFile> files_;
  // the content of each file; null: not read yet, or forgotten
  mutable std::vector<std::shared_ptr<const std::string>> contents_;
  std::string name_, text_member_;
};

// "a.jsonl", or "a.jsonl and 2 more".
std::string name_of_files(const std::vector<std::string>& given);
// Whether `given` is a pattern of file names, and no file has that name.
bool is_file_pattern(const std::string& given);
void add_data_format_flag(CLI::App& command, std::string& format);

// Refuses data of which every file is empty, or has only blank lines or column names.
void require_content(const DataSource& data);
// Refuses web pages and error messages that were downloaded in place of examples. Warns of a web page that is
// trained on as text.
void require_downloaded(const DataSource& data);

}  // namespace command
