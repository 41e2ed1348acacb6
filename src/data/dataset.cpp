#include "src/data/dataset.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "kernels/contract/kernels.h"
#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"
#include "src/base/random.h"
#include "src/base/values.h"
#include "src/data/fill.h"
#include "src/data/reference_file.h"

namespace stw {
namespace {

constexpr uint64_t chunk_tokens = 4096;  // read at once, on the stack
constexpr uint64_t evaluation_seed = 0x73746f77616765;
// Third words of Philox counters. Dropout uses other values.
constexpr uint32_t window_stream = 0xDA7A5E7;
constexpr uint32_t order_stream = 0xDA7A600;  // and the next seven values
constexpr uint32_t mask_stream = 0xDA7A700;  // for the key of a sample's mask; the next value: for its tokens

uint64_t draw(uint64_t seed, uint64_t batch, uint32_t sample, uint64_t range) {
  const auto words =
      philox(seed, {static_cast<uint32_t>(batch), sample, window_stream, static_cast<uint32_t>(batch >> 32)});
  return scale_to_range(words[0] | static_cast<uint64_t>(words[1]) << 32, range);
}

constexpr double draws_of_word = 4294967296.0;  // number of 32-bit values

uint64_t key_of_mask(uint64_t seed, std::array<uint32_t, 3> counter) {
  const auto words = philox(seed, {counter[0], counter[1], mask_stream, counter[2]});
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

// The position of `index` in a permutation of [0, count). A balanced Feistel network permutes the bits of
// count - 1; it is applied again until the result is below count (Black and Rogaway, "Ciphers with arbitrary
// finite domains", 2002).
uint64_t permuted(uint64_t seed, uint64_t pass, uint64_t index, uint64_t count) {
  if (count < 2) return 0;
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint32_t round = 0; round < 8; ++round) {
      const auto words = philox(seed, {static_cast<uint32_t>(right), static_cast<uint32_t>(pass),
                                       order_stream + round, static_cast<uint32_t>(pass >> 32)});
      const uint64_t next = left ^ (words[0] & mask);
      left = right, right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

// Calls use(at, chunk) for items [first, first + count) of a file, in pieces. `at`: the number of the first
// item of the chunk. `may_have_holes`: holes of the file are not read.
template <class Item, class Use>
Status in_chunks(const File& file, uint64_t first, uint64_t count, const Use& use,
                 bool may_have_holes = false) {
  Item chunk[chunk_tokens];
  uint64_t hole_end = 0;  // there are zeros from the chunk's begin to here, if it lies behind
  for (uint64_t done = 0; done < count;) {
    const uint64_t now = std::min(count - done, chunk_tokens), begin = (first + done) * sizeof(Item),
                   bytes = now * sizeof(Item);
    if (may_have_holes && hole_end <= begin) hole_end = file.end_of_hole(begin);
    if (hole_end < begin + bytes) STW_TRY(file.read(begin, chunk, bytes));
    else std::fill_n(chunk, now, Item{});
    STW_TRY(use(first + done, std::span<const Item>(chunk, now)));
    done += now;
  }
  return ok();
}

Status check_sequence(int64_t sequence) {
  if (sequence >= 1 && sequence <= INT32_MAX) return ok();
  return Error{Code::bad_argument, "sequence: expected 1 to 2147483647, found " + std::to_string(sequence)};
}

Status check_length(const std::string& path, const char* part, uint64_t found, int64_t sequence) {
  if (found > static_cast<uint64_t>(sequence)) return ok();
  return Error{Code::corrupt, path + ": the " + part + " part needs at least " +
                                  std::to_string(sequence + 1) + " tokens (a window of " +
                                  std::to_string(sequence) + " and one target more), found " +
                                  std::to_string(found)};
}

int32_t as_target(uint32_t label) {
  return label == no_label ? kernels::ignored_target : static_cast<int32_t>(label);
}

uint64_t share_of(uint64_t count, double fraction) {
  return static_cast<uint64_t>(static_cast<double>(count) * fraction);
}

// The number of documents at the end to hold out. Together they have as close to `fraction` of all tokens as
// whole documents can. The first document is never held out, unless all are. A document longer than `length`
// counts as `length` tokens, because one window shows no more of it. Otherwise a single long document could
// cause all short ones to be held out.
size_t held_out_documents(const std::vector<uint64_t>& begins, uint64_t count, uint64_t length,
                          double fraction) {
  std::vector<uint64_t> before(begins.size() + 1, 0);  // for each document, the number of tokens before it
  for (size_t d = 0; d < begins.size(); ++d)
    before[d + 1] = before[d] + std::min((d + 1 < begins.size() ? begins[d + 1] : count) - begins[d], length);
  const uint64_t all = before.back(), held_out = share_of(all, fraction);
  if (held_out == 0) return 0;
  if (held_out == all) return begins.size();
  const uint64_t wanted = all - held_out;
  // The first document to hold out. lower_bound may return the last element, which is past all documents; the
  // next lines then step back.
  auto first = std::lower_bound(before.begin(), before.end() - 1, wanted);
  if (first == before.end() - 1 || (first - before.begin() > 1 && wanted - *(first - 1) <= *first - wanted))
    --first;
  return first == before.begin() ? 0 : static_cast<size_t>(before.end() - 1 - first);
}

}  // namespace

Status Dataset::open_marks(const DatasetOptions& options) {
  const std::string& path = options.marks_path;
  STW_ASSIGN(file, File::open(path));
  if (file.size() != file_->count())
    return Error{Code::corrupt, path + ": expected " + std::to_string(file_->count()) +
                                    " bytes, a mark for each token, found " + std::to_string(file.size())};
  std::vector<uint64_t> begins;  // first tokens of documents, or of pairs
  uint64_t documents = 0;
  STW_TRY(
      in_chunks<uint8_t>(file, 0, file.size(), [&](uint64_t at, std::span<const uint8_t> chunk) -> Status {
        check_in(chunk.size());
        content_.update(chunk.data(), chunk.size());
        for (const uint8_t mark : chunk) {
          if (mark > (mark_target | mark_begin | mark_second))
            return Error{Code::corrupt, path + ": mark " + std::to_string(at) + " is " +
                                            std::to_string(mark) + ", expected at most 7"};
          has_second_texts_ |= (mark & mark_second) != 0;
          if (mark & mark_begin && (documents++ % 2 == 0 || !options.pairs)) begins.push_back(at);
          ++at;
        }
        if (begins.empty() || begins[0] != 0)
          return Error{Code::corrupt, path + ": expected that the first token begins a document"};
        return ok();
      }));
  if (options.pairs && documents % 2 != 0)
    return Error{Code::corrupt, path + ": expected pairs, found " + std::to_string(documents) + " documents"};
  if (!options.labels_path.empty()) STW_TRY(open_labels(options, begins.size()));
  if (values_ && task_ == Task::spans) {
    if (auto status = check_spans(begins, options.sequence); !status) return status;
  }
  // Where targets are the next tokens, a window holds one token more than a sample: the last one is only a
  // target.
  const uint64_t count = file.size(),
                 length = static_cast<uint64_t>(options.sequence) + (label_count_ == 0 && !hides_tokens());
  const size_t trained =
      begins.size() - held_out_documents(begins, count, length, options.evaluation_fraction);
  const uint64_t end = trained == begins.size() ? count : begins[trained];
  const bool fills = options.documents > 0 && label_count_ > 0 && !token_labels_;
  training_ =
      fills ? filled_range(file_.get(), begins, trained, end, length, options.documents)
            : Range{file_.get(), 0, end, windows_of(begins, 0, trained, end, length, options.documents)};
  evaluation_ = {file_.get(), end, count - end,
                 windows_of(begins, trained, begins.size(), count, length, options.documents)};
  marks_ = std::make_unique<const File>(std::move(file));
  sequence_ = options.sequence;
  has_pairs_ = options.pairs;
  for (const Range* range : {&training_, &evaluation_}) STW_TRY(check_pairs(*range, path, options.sequence));
  if (options.reference_path.empty()) return ok();
  STW_ASSIGN(reference, open_reference(options.reference_path, file_->count(), content_hash()));
  reference_ = std::make_unique<const File>(std::move(reference));
  return ok();
}

// Refuses pairs that do not fit into a window: no loss is defined for a part of a pair.
Status Dataset::check_pairs(const Range& range, const std::string& path, int64_t sequence) const {
  for (const Window& window : range.windows)
    if (const int64_t in_window = window_tokens(range, window.first); has_pairs_ && in_window > sequence + 1)
      return Error{Code::corrupt,
                   path + ": the pair that begins with token " + std::to_string(range.first + window.first) +
                       " has " + std::to_string(in_window) + " tokens, expected at most " +
                       std::to_string(sequence + 1) + ", which fit a sample with the last one's target"};
  return ok();
}

uint64_t Dataset::sample_tokens(Part part, uint64_t start, int64_t sequence) const {
  const Range& range = part_of(part);
  const auto left =
      static_cast<int64_t>(std::min<uint64_t>(range.count - start, static_cast<uint64_t>(sequence)));
  return static_cast<uint64_t>(marks_ ? std::min(window_tokens(range, start), left) : left);
}

Dataset::Extent Dataset::window(Part part, uint64_t index) const {
  const Range& range = part_of(part);
  const uint64_t first = range.windows[index].first;
  return {first, static_cast<uint64_t>(window_tokens(range, first))};
}

Status Dataset::open_labels(const DatasetOptions& options, uint64_t documents) {
  const std::string& path = options.labels_path;
  label_count_ = options.label_count;
  task_ = options.task;
  if (task_row(task_).has_values()) return open_values(path, documents);
  STW_ASSIGN(file, File::open(path));
  const bool is_of_tokens = task_row(task_).has_labels_of_tokens();
  const uint64_t count = is_of_tokens ? file_->count() : documents;
  if (file.size() != count * sizeof(uint32_t))
    return Error{Code::corrupt, path + ": expected " + std::to_string(count * sizeof(uint32_t)) +
                                    " bytes, a label for each " + (is_of_tokens ? "token" : "document") +
                                    ", found " + std::to_string(file.size())};
  if (!is_of_tokens) labels_.reserve(count);
  STW_TRY(in_chunks<uint32_t>(file, 0, count, [&](uint64_t at, std::span<const uint32_t> chunk) -> Status {
    check_in(chunk.size_bytes());
    content_.update(chunk.data(), chunk.size_bytes());
    for (const uint32_t label : chunk) {
      if (label >= static_cast<uint64_t>(label_count_) && label != no_label)
        return Error{Code::corrupt, path + ": label " + std::to_string(at) + " is " + std::to_string(label) +
                                        ", expected less than " + std::to_string(label_count_)};
      if (!is_of_tokens) labels_.push_back(as_target(label));
      ++at;
    }
    return ok();
  }));
  if (is_of_tokens) token_labels_ = std::make_unique<const File>(std::move(file));
  return ok();
}

Status Dataset::open_values(const std::string& path, uint64_t documents) {
  STW_ASSIGN(opened, File::open(path));
  values_ = std::make_unique<const File>(std::move(opened));
  const auto width = static_cast<uint64_t>(label_count_);
  const uint64_t expected = size_mul(size_mul(documents, width), sizeof(float));
  if (values_->size() != expected)
    return corrupt(path, "expected " + std::to_string(expected) + " bytes, " + std::to_string(width) +
                             " numbers for each document, found " + std::to_string(values_->size()));
  labels_.assign(documents, kernels::ignored_target);
  return in_chunks<float>(
      *values_, 0, documents * width,
      [&](uint64_t at, std::span<const float> chunk) -> Status {
        check_in(chunk.size_bytes());
        content_.update(chunk.data(), chunk.size_bytes());
        for (size_t i = 0; i < chunk.size();) {  // one document after the other
          const uint64_t document = (at + i) / width, label = (at + i) % width;
          const size_t begin = i, end = std::min<uint64_t>(chunk.size(), i + width - label);
          if (label == 0 && !std::isnan(chunk[i])) labels_[document] = 0;
          if (labels_[document] != kernels::ignored_target)
            while (i < end && is_value(task_, chunk[i])) ++i;
          else i = end;
          if (i == end) continue;
          return corrupt(path, "number " + std::to_string(label + (i - begin)) + " of document " +
                                   std::to_string(document) + " is " + std::to_string(chunk[i]) +
                                   ", expected " + values_of(task_));
        }
        return ok();
      },
      true);
}

// Refuses answers outside of their documents, and documents that a window would cut.
Status Dataset::check_spans(const std::vector<uint64_t>& begins, int64_t sequence) const {
  constexpr uint64_t width = 2;
  const auto tokens_of = [&](uint64_t document) {
    return (document + 1 < begins.size() ? begins[document + 1] : file_->count()) - begins[document];
  };
  return in_chunks<float>(
      *values_, 0, begins.size() * width,
      [&](uint64_t at, std::span<const float> chunk) -> Status {
        static_assert(chunk_tokens % width == 0, "no chunk cuts an answer");
        check_in(chunk.size_bytes());
        for (size_t i = 0; i < chunk.size(); i += width) {
          const uint64_t document = (at + i) / width, tokens = tokens_of(document);
          if (tokens > static_cast<uint64_t>(sequence))
            return corrupt(values_->path(), "document " + std::to_string(document) + " has " +
                                                std::to_string(tokens) + " tokens, expected at most " +
                                                std::to_string(sequence) +
                                                ", a sample: cut it into texts of its own");
          if (labels_[document] == kernels::ignored_target || is_span(&chunk[i], tokens)) continue;
          return corrupt(values_->path(),
                         "document " + std::to_string(document) + " has an answer from token " +
                             std::to_string(static_cast<int64_t>(chunk[i])) + " to token " +
                             std::to_string(static_cast<int64_t>(chunk[i + 1])) +
                             ", expected one within its " + std::to_string(tokens) + " tokens");
        }
        return ok();
      },
      true);
}

Status Dataset::put_label(uint64_t document, int64_t row, const SampleRows& rows) const {
  rows.integers(Input::targets)[row] = labels_[document];
  if (!values_ || labels_[document] == kernels::ignored_target) return ok();
  const auto width = static_cast<uint64_t>(label_count_);
  float* const out = rows.floats(Input::values).data() + row * label_count_;
  STW_TRY(values_->read(document * width * sizeof(float), out, width * sizeof(float)));
  if (std::all_of(out, out + width, [&](float x) { return is_value(task_, x); })) return ok();
  return corrupt(values_->path(), "it has changed since it was opened");
}

std::vector<Dataset::Window> Dataset::windows_of(const std::vector<uint64_t>& begins, size_t first,
                                                 size_t end, uint64_t end_token, uint64_t length,
                                                 uint64_t documents) {
  std::vector<Window> windows;
  for (size_t d = first; d < end;) {
    const uint64_t limit = begins[d] + length;
    const size_t last = documents == 0 || documents >= end - d ? end : d + documents;
    windows.push_back({begins[d] - begins[first], d});
    for (++d; d < last && (d + 1 < end ? begins[d + 1] : end_token) <= limit;) ++d;
  }
  return windows;
}

Dataset::Range Dataset::filled_range(const TokenFile* source, const std::vector<uint64_t>& begins,
                                     size_t documents, uint64_t end_token, uint64_t length, uint64_t most) {
  std::vector<uint64_t> lengths, at;  // at: first tokens, in the new order
  for (size_t d = 0; d < documents; ++d)
    lengths.push_back((d + 1 < documents ? begins[d + 1] : end_token) - begins[d]);
  Range range{source, 0, end_token};
  uint64_t tokens = 0;
  for (const size_t d : filling_order(lengths, length, most)) {
    range.moved.push_back({tokens, begins[d], d});
    at.push_back(tokens);
    tokens += lengths[d];
  }
  range.windows = windows_of(at, 0, documents, end_token, length, most);
  return range;
}

Result<Dataset> Dataset::open(const DatasetOptions& options) {
  if (options.vocabulary < 1 || options.vocabulary > INT32_MAX)
    return Error{Code::bad_argument,
                 "vocabulary: expected 1 to 2147483647, found " + std::to_string(options.vocabulary)};
  if (!(options.evaluation_fraction >= 0 && options.evaluation_fraction <= 1))
    return Error{Code::bad_argument, "evaluation fraction: expected [0, 1], found " +
                                         std::to_string(options.evaluation_fraction)};
  if (options.document_end >= options.vocabulary)
    return Error{Code::bad_argument, "document end: expected a token below the vocabulary of " +
                                         std::to_string(options.vocabulary) + ", found " +
                                         std::to_string(options.document_end)};
  const bool has_marks = !options.marks_path.empty();
  if (has_marks && (options.document_end >= 0 || !options.evaluation_path.empty()))
    return Error{
        Code::bad_argument,
        "with marks, documents begin at marks and the held-out part begins with a document: leave out "
        "the document end and the evaluation file"};
  if (has_marks) STW_TRY(check_sequence(options.sequence));
  if (!options.labels_path.empty() && !has_marks)
    return Error{Code::bad_argument,
                 "labels belong to documents: give marks too, which say where documents begin"};
  if (!options.labels_path.empty() && !task_row(options.task).has_labels())
    return Error{Code::bad_argument,
                 std::string("the task ") + task_row(options.task).name + " has no labels"};
  if (!options.labels_path.empty() && (options.label_count < 1 || options.label_count > INT32_MAX))
    return Error{Code::bad_argument,
                 "label count: expected 1 to 2147483647, found " + std::to_string(options.label_count)};
  if (options.pairs && (!has_marks || !options.labels_path.empty()))
    return Error{Code::bad_argument,
                 "pairs are pairs of documents: give marks, which say where documents begin, and no labels"};
  if (!options.reference_path.empty() && !options.pairs)
    return Error{Code::bad_argument,
                 "a reference needs a dataset of pairs: set pairs, or leave out the reference"};
  if (options.masking.rate != 0 && (options.pairs || !options.labels_path.empty()))
    return Error{Code::bad_argument,
                 "a mask rate is for masked language models: their data has neither labels nor pairs"};
  if (options.sequential && (has_marks || options.masking.rate != 0))
    return Error{Code::bad_argument, "in order: the data must have no marks, and a mask rate of 0"};
  if (options.sequential) STW_TRY(check_sequence(options.sequence));
  Dataset dataset(options.vocabulary);
  STW_TRY(dataset.open_masking(options.masking));
  dataset.sequential_ = options.sequential;
  dataset.sequence_ = options.sequential ? options.sequence : 0;
  dataset.document_end_ = options.document_end;
  STW_ASSIGN(source, TokenFile::open(options.path, options.format, options.vocabulary, dataset.content_));
  dataset.file_ = std::make_unique<const TokenFile>(std::move(source));
  const TokenFile* file = dataset.file_.get();
  if (!options.evaluation_path.empty()) {
    STW_ASSIGN(held_out, TokenFile::open(options.evaluation_path, options.format, options.vocabulary,
                                         dataset.content_));
    dataset.evaluation_file_ = std::make_unique<const TokenFile>(std::move(held_out));
    dataset.training_ = {file, 0, file->count()};
    dataset.evaluation_ = {dataset.evaluation_file_.get(), 0, dataset.evaluation_file_->count()};
    return dataset;
  }
  if (has_marks) {
    STW_TRY(dataset.open_marks(options));
    return dataset;
  }
  const uint64_t held_out = share_of(file->count(), options.evaluation_fraction);
  dataset.training_ = {file, 0, file->count() - held_out};
  dataset.evaluation_ = {file, file->count() - held_out, held_out};
  return dataset;
}

Status Dataset::open_masking(const Masking& masking) {
  const auto wrong = [](const std::string& what) { return Error{Code::bad_argument, what}; };
  if (!(masking.rate >= 0 && masking.rate <= 1))
    return wrong("mask rate: expected [0, 1], found " + std::to_string(masking.rate));
  if (masking.rate == 0) return ok();
  if (masking.token < 0 || masking.token >= vocabulary_)
    return wrong("mask token: expected a token below the vocabulary of " + std::to_string(vocabulary_) +
                 ", found " + std::to_string(masking.token));
  if (!masking.kinds.empty() && masking.kinds.size() != static_cast<size_t>(vocabulary_))
    return wrong("token kinds: expected " + std::to_string(vocabulary_) +
                 ", one for each token of the vocabulary, found " + std::to_string(masking.kinds.size()));
  if (masking.whole_words && masking.kinds.empty())
    return wrong("whole words: expected token kinds, which say what continues a word");
  masking_ = masking;
  masking_.kinds.resize(static_cast<size_t>(vocabulary_));
  masking_.kinds[masking.token] |= token_special;
  for (size_t token = 0; token < masking_.kinds.size(); ++token) {
    if (masking_.kinds[token] > (token_special | token_continues))
      return wrong("token kinds: that of token " + std::to_string(token) + " is " +
                   std::to_string(masking_.kinds[token]) + ", expected at most 3");
    if (!(masking_.kinds[token] & token_special)) ordinary_.push_back(static_cast<int32_t>(token));
  }
  if (ordinary_.empty()) return wrong("token kinds: all tokens are special, so that none may be hidden");
  return ok();
}

uint64_t Dataset::training_mask(uint64_t seed, uint64_t batch, uint32_t sample) {
  return key_of_mask(seed, {static_cast<uint32_t>(batch), sample, static_cast<uint32_t>(batch >> 32)});
}

uint64_t Dataset::evaluation_mask(uint64_t start) {
  return key_of_mask(evaluation_seed, {static_cast<uint32_t>(start), 0, static_cast<uint32_t>(start >> 32)});
}

void Dataset::hide_tokens(const SampleRows& rows, uint64_t mask_key) const {
  const auto tokens = rows.integers(Input::tokens), targets = rows.integers(Input::targets),
             positions = rows.integers(Input::positions);
  const auto end_of = [](double share) { return static_cast<uint64_t>(share * draws_of_word); };
  const uint64_t hidden_end = end_of(masking_.rate), mask_end = end_of(0.8), random_end = end_of(0.9);
  // is_hidden: the draw for the previous token, or for its word, chose to hide it. may_go_on: the previous
  // token may be hidden, so that a token that continues a word belongs to the same word.
  bool is_hidden = false, may_go_on = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint8_t kind = masking_.kinds[tokens[i]];
    const bool begins_document = i == 0 || (!positions.empty() && positions[i] == 0),
               may_be_hidden = targets[i] != kernels::ignored_target && !(kind & token_special);
    const auto draws = philox(mask_key, {static_cast<uint32_t>(i), 0, mask_stream + 1, 0});
    const bool is_same_word = masking_.whole_words && kind & token_continues && may_go_on && !begins_document;
    if (!is_same_word) is_hidden = draws[0] < hidden_end;
    may_go_on = may_be_hidden;
    if (!may_be_hidden || !is_hidden) {
      targets[i] = kernels::ignored_target;
      continue;
    }
    if (draws[1] < mask_end) tokens[i] = static_cast<int32_t>(masking_.token);
    else if (draws[1] < random_end)
      tokens[i] =
          ordinary_[scale_to_range(draws[2] | static_cast<uint64_t>(draws[3]) << 32, ordinary_.size())];
  }
}

// Writes what a mark says about a token, besides its target.
static void put_mark(const SampleRows& rows, int64_t i, uint8_t mark, int32_t position) {
  const auto positions = rows.integers(Input::positions), token_types = rows.integers(Input::token_types);
  if (!positions.empty()) positions[i] = position;
  if (!token_types.empty()) token_types[i] = (mark & mark_second) != 0;
}

// Sets the targets of marked tokens of the window to the tokens themselves: they may be hidden.
Status Dataset::apply_hidden_marks(const Range& range, uint64_t start, int64_t sequence,
                                   const SampleRows& rows) const {
  const int64_t in_window = window_tokens(range, start);
  const auto tokens = rows.integers(Input::tokens), targets = rows.integers(Input::targets);
  return for_marks(range, start, sequence, [&](int64_t i, uint8_t mark, int32_t position) {
    put_mark(rows, i, mark, position);
    targets[i] = i < in_window && mark & mark_target ? tokens[i] : kernels::ignored_target;
  });
}

Status Dataset::check_windows(Part part, int64_t sequence) const {
  STW_TRY(check_sequence(sequence));
  const Range& range = part_of(part);
  if (sequential_ && part == Part::evaluation) {
    if (sequence != sequence_)
      return Error{Code::bad_state, range.source->path() + ": opened for windows of " +
                                        std::to_string(sequence_) + " tokens, found " +
                                        std::to_string(sequence)};
    return check_length(range.source->path(), "held-out", range.count, 1);
  }
  if (!marks_)
    return check_length(range.source->path(), part == Part::training ? "training" : "held-out", range.count,
                        sequence);
  if (sequence != sequence_)
    return Error{Code::bad_state, marks_->path() + ": opened for samples of " + std::to_string(sequence_) +
                                      " tokens, found " + std::to_string(sequence)};
  if (range.count == 0 && part == Part::training)
    return Error{Code::corrupt,
                 marks_->path() + ": all documents are held out, so that none is left to train on"};
  if (range.count == 0) return Error{Code::corrupt, marks_->path() + ": too few documents to hold one out"};
  return ok();
}

uint64_t Dataset::training_start(uint64_t seed, uint64_t batch, uint64_t before, uint32_t sample,
                                 int64_t sequence) const {
  if (!marks_) return draw(seed, batch, sample, training_.count - static_cast<uint64_t>(sequence));
  const std::vector<Window>& windows = training_.windows;
  const uint64_t number = before + sample;
  return windows[permuted(seed, number / windows.size(), number % windows.size(), windows.size())].first;
}

uint64_t Dataset::evaluation_windows() const {
  if (!sequential_) return evaluation_.windows.size();
  return evaluation_.count < 2 ? 0 : ceil_div(evaluation_.count - 1, static_cast<uint64_t>(sequence_));
}

uint64_t Dataset::evaluation_start(uint64_t batch, uint64_t samples, uint32_t sample,
                                   int64_t sequence) const {
  if (sequential_) return (batch * samples + sample) % evaluation_windows() * static_cast<uint64_t>(sequence);
  if (!marks_)
    return draw(evaluation_seed, batch, sample, evaluation_.count - static_cast<uint64_t>(sequence));
  return evaluation_.windows[(batch * samples + sample) % evaluation_.windows.size()].first;
}

template <class Read>
Status Dataset::read_around(const Range& range, uint64_t start, uint64_t count, const Read& read) {
  auto document = std::upper_bound(range.moved.begin(), range.moved.end(), start,
                                   [](uint64_t at, const Moved& m) { return at < m.at; });
  while (count > 0) {
    uint64_t now = std::min(count, range.count - start), first = range.first + start;
    if (!range.moved.empty()) {
      const Moved& current = *(document - 1);
      if (document != range.moved.end()) now = std::min(now, document->at - start);
      first = current.first + (start - current.at);
      document = document == range.moved.end() ? range.moved.begin() + 1 : document + 1;
    }
    STW_TRY(read(first, now));
    count -= now, start += now;
    if (start == range.count) start = 0;
  }
  return ok();
}

template <class Use>
Status Dataset::for_marks(const Range& range, uint64_t start, int64_t count, const Use& use) const {
  int64_t i = 0;
  int32_t position = 0;
  return read_around(range, start, static_cast<uint64_t>(count), [&](uint64_t first, uint64_t now) {
    return in_chunks<uint8_t>(*marks_, first, now, [&](uint64_t, std::span<const uint8_t> chunk) {
      for (const uint8_t mark : chunk) {
        if (mark & mark_begin) position = 0;
        use(i++, mark, position++);
      }
      return ok();
    });
  });
}

int64_t Dataset::window_tokens(const Range& range, uint64_t start) {
  const auto next = std::upper_bound(range.windows.begin(), range.windows.end(), start,
                                     [](uint64_t at, const Window& w) { return at < w.first; });
  return static_cast<int64_t>((next == range.windows.end() ? range.count : next->first) - start);
}

Status Dataset::apply_labels(const Range& range, uint64_t start, int64_t sequence,
                             const SampleRows& rows) const {
  const auto window = std::lower_bound(range.windows.begin(), range.windows.end(), start,
                                       [](const Window& w, uint64_t at) { return w.first < at; });
  if (window == range.windows.end() || window->first != start)
    return Error{Code::bad_argument, marks_->path() +
                                         ": expected the first token of a sample's first document, found " +
                                         std::to_string(start)};
  const int64_t in_window = std::min(window_tokens(range, start), sequence);
  const bool at_first = rows.target_row == TargetRow::first;
  int64_t begin = 0;  // of the current document
  uint64_t document = window->document;
  const uint64_t documents = range.moved.empty() ? labels_.size() : range.moved.size(),
                 end = window + 1 == range.windows.end() ? documents : (window + 1)->document;
  Status put = ok();
  STW_TRY(for_marks(range, start, sequence, [&](int64_t i, uint8_t mark, int32_t position) {
    if (put && i > 0 && i < in_window && mark & mark_begin && document < end) {
      put = put_label(range.number_in_file(document++), at_first ? begin : i - 1, rows);
      begin = i;
    }
    put_mark(rows, i, mark, position);
  }));
  STW_TRY(put);
  if (document >= end) return corrupt(marks_->path(), "it has changed since it was opened");
  return put_label(range.number_in_file(document), at_first ? begin : in_window - 1, rows);
}

Status Dataset::apply_token_labels(const Range& range, uint64_t start, int64_t sequence,
                                   const SampleRows& rows) const {
  const int64_t in_window = std::min(window_tokens(range, start), sequence);
  int32_t* out = rows.integers(Input::targets).data();
  STW_TRY(read_around(range, start, static_cast<uint64_t>(in_window), [&](uint64_t first, uint64_t now) {
    return in_chunks<uint32_t>(
        *token_labels_, first, now, [&](uint64_t, std::span<const uint32_t> chunk) -> Status {
          for (const uint32_t label : chunk) {
            if (label >= static_cast<uint64_t>(label_count_) && label != no_label)
              return corrupt(token_labels_->path(), "it has changed since it was opened");
            *out++ = as_target(label);
          }
          return ok();
        });
  }));
  return for_marks(range, start, sequence,
                   [&](int64_t i, uint8_t mark, int32_t position) { put_mark(rows, i, mark, position); });
}

Status Dataset::apply_marks(const Range& range, uint64_t start, int64_t sequence,
                            const SampleRows& rows) const {
  const int64_t in_window = window_tokens(range, start);
  const auto targets = rows.integers(Input::targets);
  return for_marks(range, start, sequence + 1, [&](int64_t i, uint8_t mark, int32_t position) {
    if (i < sequence) put_mark(rows, i, mark, position);
    if (i > 0 && (mark & mark_begin || i >= in_window || !(mark & mark_target)))
      targets[i - 1] = kernels::ignored_target;
  });
}

Status Dataset::read(Part part, uint64_t start, const SampleRows& rows, uint64_t mask_key) const {
  const Range& range = part_of(part);
  const auto tokens = rows.integers(Input::tokens), targets = rows.integers(Input::targets),
             positions = rows.integers(Input::positions);
  const int64_t sequence = rows[Input::tokens].rows;
  const auto length = static_cast<uint64_t>(sequence);
  const bool may_be_short = sequential_ && part == Part::evaluation;
  if (sequence < 1 || (marks_ || may_be_short ? start >= range.count
                                              : range.count <= length || start >= range.count - length))
    return Error{Code::bad_argument, range.source->path() + ": a window of " + std::to_string(sequence) +
                                         " tokens and one more at " + std::to_string(start) +
                                         " is outside the " + std::to_string(range.count) +
                                         " tokens of this part"};
  const auto read_into = [&](uint64_t at, uint64_t count, int32_t* out) {
    return read_around(range, at, count, [&](uint64_t first, uint64_t now) -> Status {
      STW_TRY(range.source->read(first, now, vocabulary_, out));
      out += now;
      return ok();
    });
  };
  STW_TRY(read_into(start, length, tokens.data()));
  if (label_count_ > 0) {
    std::fill(targets.begin(), targets.end(), kernels::ignored_target);
    return token_labels_ ? apply_token_labels(range, start, sequence, rows)
                         : apply_labels(range, start, sequence, rows);
  }
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
  STW_TRY(read_into((start + length) % range.count, 1, targets.data() + sequence - 1));
  if (float* out = rows.floats(Input::reference).data(); reference_ && out) {
    const auto read_finite = [&](uint64_t first, uint64_t now) -> Status {
      STW_TRY(reference_->read(first * sizeof(float), out, now * sizeof(float)));
      if (!std::all_of(out, out + now, [](float x) { return std::isfinite(x) && x <= 0; }))
        return corrupt(reference_->path(), "it has changed since it was opened");
      out += now;
      return ok();
    };
    STW_TRY(read_around(range, (start + 1) % range.count, length, read_finite));
  }
  if (hides_tokens() && marks_) {
    STW_TRY(apply_hidden_marks(range, start, sequence, rows));
    hide_tokens(rows, mask_key);
    return ok();
  }
  if (marks_) return apply_marks(range, start, sequence, rows);
  int32_t position = 0;
  for (int64_t i = 0; document_end_ >= 0 && i < sequence; ++i) {
    if (!positions.empty()) positions[i] = position;
    position = tokens[i] == document_end_ ? 0 : position + 1;
    if (position == 0) targets[i] = kernels::ignored_target;
  }
  if (may_be_short && range.count - start <= length)
    std::fill(targets.data() + (range.count - start - 1), targets.data() + sequence, kernels::ignored_target);
  if (!hides_tokens()) return ok();
  std::copy(tokens.begin(), tokens.end(), targets.begin());
  hide_tokens(rows, mask_key);
  return ok();
}

}  // namespace stw
