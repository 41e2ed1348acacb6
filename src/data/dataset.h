// The tokens of a training run: a token file, split into a training part and a held-out evaluation part, and
// the windows that batches read from them.
//
// The file stays open. Only the checks of `open` read all of it, in small pieces.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/result.h"
#include "planner/graph/head.h"
#include "src/base/hash.h"
#include "src/data/token_file.h"
#include "src/execute/sample_rows.h"
#include "src/files/file.h"

namespace stw {

// Flags of a token of the vocabulary in a masked language model.
inline constexpr uint8_t token_special = 1;    // never hidden, and never drawn to replace a hidden token
inline constexpr uint8_t token_continues = 2;  // continues the word of the token before it

// How tokens are hidden from a masked language model. Each token, or each word, is hidden with probability
// `rate`. 80 % of the hidden tokens become the mask token, 10 % become a random token that is not special,
// and 10 % stay (Devlin et al., arXiv 1810.04805).
struct Masking {
  double rate = 0;             // in [0, 1]; 0: no token is hidden, and targets are the next tokens
  int64_t token = 0;           // the mask token, which is special
  std::vector<uint8_t> kinds;  // flags of every token of the vocabulary; empty: all are 0
  // With `kinds`: tokens that continue a word are hidden together with its first one.
  bool whole_words = false;
};

struct DatasetOptions {
  std::string path;
  std::string evaluation_path;  // empty: the end of `path` is held out
  // The held-out share of the tokens of `path`, rounded down, in [0, 1]. Unused with evaluation_path. With
  // marks, a document longer than a window counts as one full window.
  double evaluation_fraction = 0.1;
  int64_t vocabulary = 0;  // 1 to 2^31 - 1
  TokenFormat format = TokenFormat::automatic;
  int64_t document_end = -1;  // the token that ends a document; -1: none
  // A file with a byte of mark_… flags for each token of `path`; empty: all tokens are targets. Marks say
  // where documents begin, and exclude document_end and evaluation_path.
  std::string marks_path;
  int64_t sequence = 0;  // with marks, or sequential: tokens of a window
  // For a task with labels; empty: targets are tokens. The file holds a little-endian uint32 for each
  // document, or with token_label for each token. For a task with values it holds label_count little-endian
  // floats for each document; if the first of them is a NaN, the document has no values. For `spans` they are
  // the indices of the answer's first and last token in the document, which must fit a sample.
  std::string labels_path;
  int64_t label_count = 0;  // every label is below it, or no_label
  Task task = Task::label;  // with labels
  bool pairs = false;       // with marks, without labels: documents form pairs, and windows hold whole pairs
  // With marks: the largest number of documents in a window; 0: as many as fit. If it is not 0 and the
  // documents have labels, training samples take them in an order that leaves little padding.
  uint64_t documents = 0;
  Masking masking = {};  // without labels and pairs
  // Without marks and masking: evaluation reads adjacent windows of `sequence` tokens, of which the last may
  // be shorter.
  bool sequential = false;
  // For pairs: log-probabilities of another model (reference_file.h); empty: none.
  std::string reference_path;
};
// The model learns to predict this token. With masking, the token may be hidden.
inline constexpr uint8_t mark_target = 1;
inline constexpr uint8_t mark_begin = 2;  // a document begins with this token
// The token belongs to a document's second text: its type is 1, else 0.
inline constexpr uint8_t mark_second = 4;
inline constexpr uint32_t no_label = UINT32_MAX;

// Const methods may run on several threads at once. They allocate only for errors.
class Dataset {
 public:
  enum class Part : uint8_t { training, evaluation };

  // Checks every mark, and that every token is below the vocabulary. With marks the held-out part begins with
  // a document, and every window takes 16 bytes of memory. Errors: bad_argument (options), io_error, corrupt
  // (an empty file, a size that is no multiple of a token's, a token outside the vocabulary; the message has
  // file, position and id).
  static Result<Dataset> open(const DatasetOptions& options);

  uint64_t tokens(Part part) const { return part_of(part).count; }
  int64_t vocabulary() const { return vocabulary_; }
  int64_t label_count() const { return label_count_; }  // 0: targets are tokens
  Task task() const { return task_; }                   // with labels
  // With marks: the number of windows that together hold each document of the training part once. A document
  // longer than a window is cut. Otherwise 0.
  uint64_t training_windows() const { return training_.windows.size(); }
  // The same for evaluation. With sequential: the number of adjacent windows that together have every token
  // but the first as a target.
  uint64_t evaluation_windows() const;
  // Errors: corrupt where a part is shorter than a window of `sequence` + 1 tokens, with both numbers; with
  // marks, corrupt where a part is empty, and bad_state where `sequence` differs from the options'.
  Status check_windows(Part part, int64_t sequence) const;

  // The first token of a sample's window. All starts in [0, tokens(part) - sequence) are equally probable;
  // Philox4x32-10 over (batch, sample) draws one with the key `seed`. With marks the windows come in a random
  // order, each once before any comes again; each pass has its own permutation, which depends on `seed`.
  // `before`: the number of samples before the batch. The result depends only on the arguments. The part must
  // hold a window.
  uint64_t training_start(uint64_t seed, uint64_t batch, uint64_t before, uint32_t sample,
                          int64_t sequence) const;
  // The same for evaluation, with a constant key: every evaluation of every run reads the same windows. With
  // marks or sequential, the windows come in their own order.
  uint64_t evaluation_start(uint64_t batch, uint64_t samples, uint32_t sample, int64_t sequence) const;

  bool has_documents() const { return document_end_ >= 0 || marks_; }
  bool has_pairs() const { return has_pairs_; }
  bool has_reference() const { return reference_ != nullptr; }
  bool hides_tokens() const { return masking_.rate > 0; }
  bool has_second_texts() const { return has_second_texts_; }  // whether any mark has mark_second
  // XXH3 of the files of tokens, marks and labels, in this order. A reference file stores it to identify its
  // pairs, and a run stores it to identify its data.
  uint64_t content_hash() const { return content_.digest(); }
  // The number of tokens that a sample of `sequence` tokens takes from the window that begins at `start`. The
  // rest of the sample is padding.
  uint64_t sample_tokens(Part part, uint64_t start, int64_t sequence) const;
  // With marks: the first token of a window, and the number of tokens up to the next window.
  struct Extent {
    uint64_t first, count;
  };
  Extent window(Part part, uint64_t index) const;

  // Fills the rows of a sample, which hold the defaults: i < sequence, the number of the rows of tokens. d
  // are the tokens of the part.
  //   tokens[i]      d[start + i]
  //   targets[i]     d[start + 1 + i]; with labels see below
  //   positions[i]   (may be absent) counts from the first token of each document in the window
  //   reference[i]   the reference's log-probability of the target
  // Targets are ignored in these rows:
  //   documents      the last token of each document, as the next document is unrelated
  //   marks          rows whose target is not marked, or belongs to the next window. After the part's last
  //                  document, a sample goes on with the first one.
  //   labels         all rows of a document except its last or its first one (rows.target_row). The target
  //                  of that row is the document's label. `start` must begin a document. With labels of
  //                  tokens, the target of each row is the token's label.
  //   sequential       rows past the end, in the last window of the evaluation part
  //   masking        rows of tokens that are not hidden, and rows of the next window. `mask_key` chooses the
  //                  hidden tokens. The target of a hidden token is the token itself.
  // Errors: bad_argument past the end; io_error; corrupt where the file has changed and a token is out of
  // range.
  Status read(Part part, uint64_t start, const SampleRows& rows, uint64_t mask_key = 0) const;
  // The mask key of a training sample, and that of an evaluation window. The latter depends on the window
  // alone: every evaluation of every run hides the same tokens.
  static uint64_t training_mask(uint64_t seed, uint64_t batch, uint32_t sample);
  static uint64_t evaluation_mask(uint64_t start);

 private:
  // `first`: the window's first token, counted from the start of the part. `document`: the number of that
  // token's document, counted from the start of the file.
  struct Window {
    uint64_t first, document;
  };
  // A document of a range that has its documents in another order than the file. `at`: its first token,
  // counted in this order. `first`, `number`: its first token and its number in the file.
  struct Moved {
    uint64_t at, first, number;
  };
  struct Range {
    const TokenFile* source;
    uint64_t first, count;          // tokens
    std::vector<Window> windows{};  // with marks, in order
    std::vector<Moved> moved{};     // every document; empty in the file's order
    uint64_t number_in_file(uint64_t document) const {
      return moved.empty() ? document : moved[document].number;
    }
  };

  explicit Dataset(int64_t vocabulary) : vocabulary_(vocabulary) {}
  Status open_marks(const DatasetOptions& options);
  Status check_pairs(const Range& range, const std::string& path, int64_t sequence) const;
  Status open_labels(const DatasetOptions& options, uint64_t documents);
  Status open_values(const std::string& path, uint64_t documents);
  Status check_spans(const std::vector<uint64_t>& begins, int64_t sequence) const;
  // Writes a document's label or values to a row, as its target.
  Status put_label(uint64_t document, int64_t row, const SampleRows& rows) const;
  // Packs the documents [first, end) into windows, in order, at most `documents` into each (0: any number).
  // Each document is whole in one window, unless it is longer than a window.
  static std::vector<Window> windows_of(const std::vector<uint64_t>& begins, size_t first, size_t end,
                                        uint64_t end_token, uint64_t length, uint64_t documents);
  // Packs the documents into windows in an order that fills them.
  static Range filled_range(const TokenFile* source, const std::vector<uint64_t>& begins, size_t documents,
                            uint64_t end_token, uint64_t length, uint64_t most);
  // Reads in a circle: the first token of the part follows the last one. read(first token in the file, count)
  template <class Read>
  static Status read_around(const Range& range, uint64_t start, uint64_t count, const Read& read);
  // Calls use(i, mark, position in its document) for `count` tokens from `start` on. Position 0 is the first
  // token of a document, or `start`.
  template <class Use>
  Status for_marks(const Range& range, uint64_t start, int64_t count, const Use& use) const;
  static int64_t window_tokens(const Range& range, uint64_t start);  // tokens from `start` to the next window
  Status apply_marks(const Range& range, uint64_t start, int64_t sequence, const SampleRows& rows) const;
  Status open_masking(const Masking& masking);
  // Hides tokens of a sample. A token may be hidden only if its target is the token itself.
  void hide_tokens(const SampleRows& rows, uint64_t mask_key) const;
  Status apply_hidden_marks(const Range& range, uint64_t start, int64_t sequence,
                            const SampleRows& rows) const;
  Status apply_labels(const Range& range, uint64_t start, int64_t sequence, const SampleRows& rows) const;
  Status apply_token_labels(const Range& range, uint64_t start, int64_t sequence,
                            const SampleRows& rows) const;
  const Range& part_of(Part part) const { return part == Part::training ? training_ : evaluation_; }

  int64_t vocabulary_, document_end_ = -1;
  std::unique_ptr<const TokenFile> file_;
  std::unique_ptr<const TokenFile> evaluation_file_;  // null where the end of `file_` is held out
  Range training_{}, evaluation_{};
  std::unique_ptr<const File> marks_;  // null without marks
  int64_t sequence_ = 0;               // of windows; with marks or in order
  bool sequential_ = false;
  bool has_pairs_ = false, has_second_texts_ = false;
  Hash64 content_;                         // of all files, in the order in which they were opened
  std::unique_ptr<const File> reference_;  // null without a reference
  int64_t label_count_ = 0;
  Task task_ = Task::label;
  Masking masking_;
  std::vector<int32_t> ordinary_;  // with masking: the tokens that are not special
  std::vector<int32_t> labels_;    // of documents, as targets; with values: 0 for documents that have values
  std::unique_ptr<const File> values_;        // null without values
  std::unique_ptr<const File> token_labels_;  // null where labels belong to documents
};

}  // namespace stw
