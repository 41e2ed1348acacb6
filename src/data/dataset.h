// The tokens of a training run: a file of tokens, cut into a part to train on and a part held out for evaluation, and
// the windows that a batch takes from them.
//
// The file stays open and is read in windows; only the check at `open` passes over all of it, in small pieces.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/result.h"
#include "planner/graph/task.h"
#include "src/files/file.h"
#include "src/base/hash.h"
#include "src/execute/sample_rows.h"
#include "src/data/token_file.h"

namespace stw {

// What a token of the vocabulary is to a masked language model, together.
inline constexpr uint8_t token_special = 1;    // never hidden, and never put in place of another one
inline constexpr uint8_t token_continues = 2;  // goes on with the word of the token before it

// Which tokens are hidden from a masked language model: each by itself with a chance of `rate`, or each word. Of these 80 % become the mask
// token, 10 % a random token that is not special, and 10 % stay (Devlin et al., arXiv 1810.04805).
struct Masking {
  double rate = 0;              // in [0, 1]; 0: nothing is hidden, and targets are the tokens that follow
  int64_t token = 0;            // the mask token, which is special
  std::vector<uint8_t> kinds;   // of every token of the vocabulary; none: all are 0
  bool whole_words = false;     // with kinds: tokens that continue a word are hidden with its first one
};

struct DatasetOptions {
  std::string path;
  std::string evaluation_path;        // empty: the end of `path` is held out
  double evaluation_fraction = 0.1;   // of the tokens of `path`, rounded down, in [0, 1]; unused with evaluation_path. With marks: of those that
                                      // windows have, which cut longer documents
  int64_t vocabulary = 0;             // 1 to 2^31 - 1
  TokenFormat format = TokenFormat::automatic;
  int64_t document_end = -1;          // the token that ends a document; -1: there are none
  std::string marks_path;             // a byte for each token of `path`, of mark_…; empty: all are targets. Says where documents begin,
                                      // so that there is neither document_end nor evaluation_path
  int64_t sequence = 0;               // with marks: of the windows
  std::string labels_path;            // of a task with labels; empty: targets are tokens. For each document that marks begin a little-endian uint32, or
                                      // of token_label for each token; or where the task has values label_count little-endian floats a document, of which
                                      // the first is a NaN where there are none
  int64_t label_count = 0;            // every label is below it, or no_label
  Task task = Task::label;            // with labels
  bool pairs = false;                 // with marks, without labels: documents are pairs, of which windows hold whole ones
  Masking masking = {};               // without labels and pairs
  bool in_order = false;              // without marks and masking: evaluation goes over windows of `sequence` end to end, of which the last one may be shorter
  std::string reference_path;         // of pairs: what another model says of them (reference_file.h); empty: there is none
};
inline constexpr uint8_t mark_target = 1;   // the model learns to predict this token, if it may be hidden where tokens are
inline constexpr uint8_t mark_begin = 2;    // a document begins with it
inline constexpr uint8_t mark_second = 4;   // it belongs to a document's second text: its type is 1, else 0
inline constexpr uint32_t no_label = UINT32_MAX;

// Const methods may run on several threads at once, and do not allocate unless they fail.
class Dataset {
 public:
  enum class Part : uint8_t { training, evaluation };

  // Checks that every token is below the vocabulary, and every mark. With marks, what is held out begins with a document, and 8 bytes
  // a window are kept.
  // Errors: bad_argument (options), io_error, corrupt (an empty file, a size that is no multiple of a token's, a token
  // outside the vocabulary: naming the file, its position and its id).
  static Result<Dataset> open(const DatasetOptions& options);

  uint64_t tokens(Part part) const { return part_of(part).count; }
  int64_t vocabulary() const { return vocabulary_; }
  int64_t label_count() const { return label_count_; }   // 0: targets are tokens
  Task task() const { return task_; }                    // with labels
  // With marks: that hold every document of the training part once, whole where it is not longer. Else 0.
  uint64_t training_windows() const { return training_.windows.size(); }
  // Likewise; in order, those that have every token but the first one as a target.
  uint64_t evaluation_windows() const;
  // Errors: corrupt where a part is shorter than a window of `sequence` + 1 tokens, with both numbers; with marks where it is empty, and
  // bad_state where `sequence` is not that of its windows.
  Status check_windows(Part part, int64_t sequence) const;

  // Where the window of a sample of a batch starts. Uniform over all tokens(part) - sequence starts: Philox4x32-10 over (batch, sample)
  // keyed by `seed`. With marks the windows come one after the other, behind the samples `before` that batch, in another order each time
  // that all have been there, which that seed permutes. Every draw is a function of its arguments alone. The part must hold a window.
  uint64_t training_start(uint64_t seed, uint64_t batch, uint64_t before, uint32_t sample, int64_t sequence) const;
  // The same for evaluation, keyed by a constant: every evaluation of every run sees the same windows. With marks, and where the
  // windows are in order, one after the other.
  uint64_t evaluation_start(uint64_t batch, uint64_t samples, uint32_t sample, int64_t sequence) const;

  bool has_documents() const { return document_end_ >= 0 || marks_; }
  bool has_pairs() const { return has_pairs_; }
  bool has_reference() const { return reference_ != nullptr; }
  bool hides_tokens() const { return masking_.rate > 0; }
  bool has_second_texts() const { return has_second_texts_; }   // whether a mark says so of a token
  // XXH3 of the files of tokens, marks and labels, in this order: of a reference to know its pairs by, and of a run to know its data by.
  uint64_t content_hash() const { return content_.digest(); }
  // With marks: the index-th window's first token, and how many up to the next one's.
  struct Extent { uint64_t first, count; };
  Extent window(Part part, uint64_t index) const;

  // tokens[i] = d[start + i], targets[i] = d[start + 1 + i] for i < sequence, d being the tokens of the part. Where there are
  // documents, positions (may be null) count from the first token of each in this window, and the token that ends one has
  // no target: what follows has nothing to do with it. With marks likewise; targets are those that are marked, and nothing that the
  // next window begins with. Behind the last document of the part comes its first one. With labels the last token of a document, as far as
  // the window has it, or its first one, as rows.label_place says, has the document's label as its target, and no other one has a target; the window must begin where one begins. With labels of tokens
  // each token has its own as its target.
  // rows.reference likewise has what the reference says of each target. Errors: bad_argument past the end; io_error; corrupt where the file has
  // changed and a token is out of range.
  // Where the windows are in order, the evaluation part's last one may be shorter than `sequence`: what stands past the end has no target.
  // Where tokens are hidden (Masking), which ones `mask_key` decides: the others, and all that belong to the next window, have no target.
  Status read(Part part, uint64_t start, int64_t sequence, const SampleRows& rows, uint64_t mask_key = 0) const;
  // For a sample of a training batch, and for a window of the held-out part, where the same tokens are hidden in every evaluation of every run.
  static uint64_t training_mask(uint64_t seed, uint64_t batch, uint32_t sample);
  static uint64_t evaluation_mask(uint64_t start);

 private:
  struct Window { uint64_t first, document; };   // its first token, counted from the part's, and that one's document, from the file's
  struct Range {
    const TokenFile* source;
    uint64_t first, count;  // tokens
    std::vector<Window> windows{};   // with marks, in order
  };

  explicit Dataset(int64_t vocabulary) : vocabulary_(vocabulary) {}
  Status open_marks(const DatasetOptions& options);
  Status check_pairs(const Range& range, const std::string& path, int64_t sequence) const;
  Status open_labels(const DatasetOptions& options, uint64_t documents);
  Status open_values(const std::string& path, uint64_t documents);
  // Writes what a document is called, as the target of a row and as its values.
  Status put_label(uint64_t document, int64_t row, const SampleRows& rows) const;
  // Windows that hold the documents [first, end) in order, each whole in one of them unless it is longer.
  static std::vector<Window> windows_of(const std::vector<uint64_t>& begins, size_t first, size_t end, uint64_t end_token, uint64_t length);
  // Behind the last token of the part comes its first one.
  template <class Read>
  static Status read_around(const Range& range, uint64_t start, uint64_t count, const Read& read);
  // use(i, mark, position in its document) for `count` tokens from there on; a document that began before begins there.
  template <class Use>
  Status for_marks(const Range& range, uint64_t start, int64_t count, const Use& use) const;
  static int64_t own_tokens(const Range& range, uint64_t start);   // of the window from there on, and of no other one
  Status apply_marks(const Range& range, uint64_t start, int64_t sequence, int32_t* targets, int32_t* positions) const;
  Status open_masking(const Masking& masking);
  // Hides tokens of a sample: those whose target is not to be ignored, and is the token itself, may be.
  void hide_tokens(int64_t sequence, const SampleRows& rows, uint64_t mask_key) const;
  Status apply_hidden_marks(const Range& range, uint64_t start, int64_t sequence, const SampleRows& rows) const;
  Status apply_labels(const Range& range, uint64_t start, int64_t sequence, const SampleRows& rows) const;
  Status apply_token_labels(const Range& range, uint64_t start, int64_t sequence, const SampleRows& rows) const;
  const Range& part_of(Part part) const { return part == Part::training ? training_ : evaluation_; }

  int64_t vocabulary_, document_end_ = -1;
  std::unique_ptr<const TokenFile> file_;
  std::unique_ptr<const TokenFile> evaluation_file_;  // null where the end of `file_` is held out
  Range training_{}, evaluation_{};
  std::unique_ptr<const File> marks_;   // null where there are none
  int64_t sequence_ = 0;                // of windows; with marks, and in order
  bool in_order_ = false;
  bool has_pairs_ = false, has_second_texts_ = false;
  Hash64 content_;                      // of all files, in the order in which they were opened
  std::unique_ptr<const File> reference_;   // null where there is none
  int64_t label_count_ = 0;
  Task task_ = Task::label;
  Masking masking_;
  std::vector<int32_t> ordinary_;       // with masking: the tokens that are not special
  std::vector<int32_t> labels_;         // of documents, as targets; with values 0 where there are some
  std::unique_ptr<const File> values_;  // null where there are none
  std::unique_ptr<const File> token_labels_;   // null where labels are of documents
};

}  // namespace stw
