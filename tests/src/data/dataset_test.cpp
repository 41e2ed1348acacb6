#include "src/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "src/base/hash.h"
#include "src/files/file.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::dataset_test {
namespace {

using Part = Dataset::Part;
using testing_tools::input_at, testing_tools::rows_of;

template <class Token>
std::string little_endian(const std::vector<uint32_t>& tokens) {
  std::string bytes;
  for (const uint32_t token : tokens)
    for (size_t byte = 0; byte < sizeof(Token); ++byte)
      bytes.push_back(static_cast<char>(token >> (8 * byte)));
  return bytes;
}

DatasetOptions options_of(const std::string& path, int64_t vocabulary) {
  DatasetOptions options;
  options.path = path;
  options.vocabulary = vocabulary;
  return options;
}

std::string refusal(const DatasetOptions& options) {
  auto dataset = Dataset::open(options);
  EXPECT_FALSE(dataset);
  return dataset ? "" : dataset.error().message;
}

TEST(Dataset, TextIsBytesAndItsEndIsHeldOut) {
  TemporaryDirectory folder;
  std::string text;
  for (int index = 0; index < 1005; ++index) text.push_back(static_cast<char>(index * 7));
  put_file(folder / "text.txt", text);
  auto dataset = Dataset::open(options_of(folder / "text.txt", 256));
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ(dataset->tokens(Part::training), 905u);
  EXPECT_EQ(dataset->tokens(Part::evaluation), 100u);
  int32_t tokens[5], targets[5];
  for (const auto& [part, first] : {std::pair(Part::training, 0), std::pair(Part::evaluation, 905)}) {
    for (uint64_t start = 0; start < dataset->tokens(part) - 5; ++start) {
      ASSERT_TRUE(dataset->read(part, start, rows_of(5, tokens, targets)));
      for (uint64_t index = 0; index < 5; ++index) {
        ASSERT_EQ(tokens[index], static_cast<unsigned char>(text[first + start + index]));
        ASSERT_EQ(targets[index], static_cast<unsigned char>(text[first + start + index + 1]));
      }
    }
    // The last window ends with the part: training never sees a held-out token.
    EXPECT_EQ(dataset->read(part, dataset->tokens(part) - 5, rows_of(5, tokens, targets)).error().code,
              Code::bad_argument);
    EXPECT_EQ(dataset->read(part, UINT64_MAX, rows_of(5, tokens, targets)).error().code, Code::bad_argument);
  }
}

TEST(Dataset, TokenFilesOfBothWidths) {
  TemporaryDirectory folder;
  std::vector<uint32_t> tokens(20000);
  for (size_t index = 0; index < tokens.size(); ++index)
    tokens[index] = static_cast<uint32_t>(index * 3 % 60000);
  put_file(folder / "a.bin", little_endian<uint16_t>(tokens));
  put_file(folder / "b.bin", little_endian<uint32_t>(tokens));
  const int64_t sequence = 9000;  // more than one chunk of reading
  std::vector<int32_t> read_tokens(sequence), read_targets(sequence);
  for (const auto& [name, vocabulary] : {std::pair("a.bin", 65536), std::pair("b.bin", 65537)}) {
    auto options = options_of(folder / name, vocabulary);
    options.evaluation_fraction = 0;
    auto dataset = Dataset::open(options);
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_EQ(dataset->tokens(Part::training), tokens.size());
    EXPECT_EQ(dataset->tokens(Part::evaluation), 0u);
    EXPECT_TRUE(dataset->check_windows(Part::training, sequence));
    ASSERT_TRUE(
        dataset->read(Part::training, 10999, rows_of(sequence, read_tokens.data(), read_targets.data())));
    for (int64_t index = 0; index < sequence; ++index) {
      ASSERT_EQ(read_tokens[index], static_cast<int32_t>(tokens[10999 + index]));
      ASSERT_EQ(read_targets[index], static_cast<int32_t>(tokens[11000 + index]));
    }
  }
}

TEST(Dataset, ASeparateEvaluationFile) {
  TemporaryDirectory folder;
  put_file(folder / "train.txt", "0123456789");
  put_file(folder / "eval.txt", "abc");
  auto options = options_of(folder / "train.txt", 256);
  options.evaluation_path = folder / "eval.txt";
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->tokens(Part::training), 10u);
  EXPECT_EQ(dataset->tokens(Part::evaluation), 3u);
  const Dataset moved = std::move(*dataset);
  int32_t tokens[2], targets[2];
  ASSERT_TRUE(moved.read(Part::evaluation, 0, rows_of(2, tokens, targets)));
  EXPECT_EQ(targets[1], 'c');
  EXPECT_TRUE(moved.check_windows(Part::evaluation, 2));
  EXPECT_EQ(moved.check_windows(Part::evaluation, 3).error().message,
            (folder / "eval.txt") +
                ": the held-out part needs at least 4 tokens (a window of 3 and one target more), found 3");
  options.evaluation_path = folder / "none";
  EXPECT_FALSE(Dataset::open(options));
}

TEST(Dataset, ErrorsNameTheValueFound) {
  TemporaryDirectory folder;
  put_file(folder / "empty.txt", "");
  EXPECT_EQ(refusal(options_of(folder / "empty.txt", 256)),
            (folder / "empty.txt") + ": expected tokens, found an empty file");
  put_file(folder / "odd.bin", "abc");
  EXPECT_EQ(refusal(options_of(folder / "odd.bin", 256)),
            (folder / "odd.bin") + ": expected a multiple of 2 bytes (uint16 tokens), found 3");
  std::vector<uint32_t> tokens(9000, 5);
  tokens[8999] = 300;
  put_file(folder / "large.bin", little_endian<uint16_t>(tokens));
  EXPECT_EQ(refusal(options_of(folder / "large.bin", 300)),
            (folder / "large.bin") + ": token 8999 is 300, expected less than the vocabulary of 300");
  EXPECT_TRUE(Dataset::open(options_of(folder / "large.bin", 301)));
  put_file(folder / "huge.bin", little_endian<uint32_t>({0xFFFFFFFF}));
  EXPECT_NE(refusal(options_of(folder / "huge.bin", 70000)).find("token 0 is 4294967295"), std::string::npos);
  put_file(folder / "text.txt", "ab\xff");
  EXPECT_NE(refusal(options_of(folder / "text.txt", 128)).find("token 2 is 255"), std::string::npos);
  EXPECT_NE(refusal(options_of(folder / "none.txt", 256)).find("No such file"), std::string::npos);
  EXPECT_FALSE(Dataset::open(options_of(folder.path(), 256)));
  auto options = options_of(folder / "text.txt", 256);
  for (const double fraction : {-0.1, 1.1, std::nan("")}) {
    options.evaluation_fraction = fraction;
    EXPECT_NE(refusal(options).find("evaluation fraction"), std::string::npos);
  }
  EXPECT_NE(refusal(options_of(folder / "text.txt", 0)).find("vocabulary"), std::string::npos);
  EXPECT_NE(refusal(options_of(folder / "text.txt", int64_t{1} << 31)).find("vocabulary"), std::string::npos);
}

TEST(Dataset, PartsThatAreTooShort) {
  TemporaryDirectory folder;
  put_file(folder / "a.txt", std::string(100, 'a'));
  auto dataset = Dataset::open(options_of(folder / "a.txt", 256));
  ASSERT_TRUE(dataset);
  EXPECT_TRUE(dataset->check_windows(Part::evaluation, 9));
  EXPECT_NE(dataset->check_windows(Part::evaluation, 10)
                .error()
                .message.find("held-out part needs at least 11 tokens"),
            std::string::npos);
  EXPECT_NE(dataset->check_windows(Part::evaluation, 10).error().message.find("found 10"), std::string::npos);
  EXPECT_NE(dataset->check_windows(Part::training, 90)
                .error()
                .message.find("training part needs at least 91 tokens"),
            std::string::npos);
  EXPECT_EQ(dataset->check_windows(Part::training, 0).error().code, Code::bad_argument);
}

TEST(Dataset, AFileThatChangesIsNoticed) {
  TemporaryDirectory folder;
  put_file(folder / "a.txt", std::string(100, 'a'));
  auto dataset = Dataset::open(options_of(folder / "a.txt", 128));
  ASSERT_TRUE(dataset);
  int32_t tokens[9], targets[9];
  std::filesystem::resize_file(folder / "a.txt", 50);
  EXPECT_EQ(dataset->read(Part::evaluation, 0, rows_of(9, tokens, targets)).error().code, Code::io_error);
  put_file(folder / "a.txt", std::string(100, '\xff'));
  EXPECT_EQ(dataset->read(Part::evaluation, 0, rows_of(9, tokens, targets)).error().code, Code::corrupt);
}

TEST(Dataset, WindowsAreDrawnUniformlyByCounter) {
  TemporaryDirectory folder;
  put_file(folder / "a.txt", std::string(110, 'a'));
  auto dataset = Dataset::open(options_of(folder / "a.txt", 256));
  ASSERT_TRUE(dataset);
  // 99 training tokens and windows of 4: 95 starts.
  std::vector<int> counts(95);
  const int draws = 95000;
  for (int draw = 0; draw < draws; ++draw) {
    const uint64_t start = dataset->training_start(1337, draw / 16, draw / 16 * 16, draw % 16, 4);
    ASSERT_LT(start, counts.size());
    ++counts[start];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_GT(chi_square, 50);  // 94 degrees of freedom: mean 94, deviation 13.7
  EXPECT_LT(chi_square, 150);
  // Frozen values, computed by a separate implementation: a later version must resume with the same windows.
  const uint64_t training[] = {42, 56, 50, 15, 10, 53}, evaluation[] = {0, 0, 5, 0, 6, 0};
  for (uint32_t index = 0; index < 6; ++index) {
    EXPECT_EQ(dataset->training_start(1337, index / 2, index / 2 * 2, index % 2, 4), training[index]);
    EXPECT_EQ(dataset->evaluation_start(index / 2, 2, index % 2, 4), evaluation[index]);
  }
  std::set<uint64_t> starts;
  for (uint64_t high : {0, 1})
    for (uint32_t sample : {0, 1})
      for (uint64_t seed : {1, 2})
        starts.insert(dataset->training_start(seed, high << 32, high << 33, sample, 4));
  EXPECT_GT(starts.size(), 5u);
  for (uint32_t sample = 0; sample < 1000; ++sample)
    ASSERT_LT(dataset->evaluation_start(3, 1000, sample, 4), 7u);
}

TEST(Dataset, WindowsInOrderHaveEveryTokenButTheFirstOnceAsATarget) {
  TemporaryDirectory folder;
  for (const int size : {2, 4, 5, 6, 9, 10, 23}) {
    std::string text;
    for (int i = 0; i < size; ++i) text.push_back(static_cast<char>(100 + i));
    put_file(folder / "a.txt", text);
    DatasetOptions options = options_of(folder / "a.txt", 256);
    options.evaluation_fraction = 1;
    options.sequential = true;
    options.sequence = 4;
    auto dataset = Dataset::open(options);
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_TRUE(dataset->check_windows(Part::evaluation, 4));
    EXPECT_EQ(dataset->check_windows(Part::evaluation, 5).error().code, Code::bad_state);
    ASSERT_EQ(dataset->evaluation_windows(), static_cast<uint64_t>(size - 1 + 3) / 4);
    int next = 101;
    for (uint32_t window = 0; window < dataset->evaluation_windows(); ++window) {
      int32_t tokens[4], targets[4];
      const uint64_t start = dataset->evaluation_start(window / 2, 2, window % 2, 4);
      ASSERT_EQ(start, 4 * window);
      ASSERT_TRUE(dataset->read(Part::evaluation, start, rows_of(4, tokens, targets)));
      for (int i = 0; i < 4; ++i) {
        if (next < 100 + size) {
          ASSERT_EQ(tokens[i] + 1, targets[i]);
          ASSERT_EQ(targets[i], next++);
        } else {
          ASSERT_EQ(targets[i], kernels::ignored_target);
        }
      }
    }
    EXPECT_EQ(next, 100 + size);
    int32_t tokens[4], targets[4];
    EXPECT_EQ(dataset->read(Part::evaluation, static_cast<uint64_t>(size), rows_of(4, tokens, targets))
                  .error()
                  .code,
              Code::bad_argument);
  }
  put_file(folder / "a.txt", "a");
  DatasetOptions options = options_of(folder / "a.txt", 256);
  options.evaluation_fraction = 1;
  options.sequential = true;
  options.sequence = 4;
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->check_windows(Part::evaluation, 4).error().code, Code::corrupt);
  options.masking.rate = 0.5;
  EXPECT_NE(refusal(options).find("in order"), std::string::npos);
}

// ---- marks -----------------------------------------------------------------------------------------------

// Documents of 1 to 9 tokens with distinct ids. About half of all tokens are targets, including some first
// tokens.
struct Examples {
  std::vector<uint32_t> tokens;
  std::string marks;
  std::vector<uint64_t> begins;
};
Examples examples(size_t documents) {
  Examples e;
  uint32_t x = 7;
  const auto next = [&] { return (x = x * 1664525 + 1013904223) >> 20; };
  for (size_t d = 0; d < documents; ++d) {
    e.begins.push_back(e.tokens.size());
    for (uint32_t i = 0, length = 1 + next() % 9; i < length; ++i) {
      e.tokens.push_back(static_cast<uint32_t>(e.tokens.size()));
      e.marks.push_back(static_cast<char>((next() % 2 ? mark_target : 0) | (i == 0 ? mark_begin : 0)));
    }
  }
  return e;
}

DatasetOptions marked(const TemporaryDirectory& folder, const Examples& e, int64_t sequence = 20) {
  put_file(folder / "tokens.bin", little_endian<uint16_t>(e.tokens));
  put_file(folder / "marks", e.marks);
  DatasetOptions options = options_of(folder / "tokens.bin", 65536);
  options.marks_path = folder / "marks";
  options.sequence = sequence;
  return options;
}

// The windows of documents [first, end), computed another way: a document that is not whole in the current
// window opens a new one.
std::vector<uint64_t> windows(const Examples& e, uint64_t first, uint64_t end, uint64_t sequence) {
  std::vector<uint64_t> list;
  for (size_t d = 0; d < e.begins.size(); ++d) {
    const uint64_t begin = e.begins[d],
                   document_end = d + 1 < e.begins.size() ? e.begins[d + 1] : e.tokens.size();
    if (begin < first || begin >= end) continue;
    if (list.empty() || document_end - first - list.back() > sequence + 1) list.push_back(begin - first);
  }
  return list;
}

// The content hash identifies the data of a run: the files of tokens, marks and labels, in this order.
TEST(Dataset, ContentIsTheHashOfItsFiles) {
  TemporaryDirectory folder;
  const Examples e = examples(4000);  // more than one chunk of reading
  auto options = marked(folder, e);
  const auto hash_of = [](const std::string& bytes) { return hash64(bytes.data(), bytes.size()); };
  const std::string tokens = little_endian<uint16_t>(e.tokens),
                    labels = little_endian<uint32_t>(std::vector<uint32_t>(e.begins.size(), 2));
  EXPECT_EQ(Dataset::open(options)->content_hash(), hash_of(tokens + e.marks));
  put_file(folder / "labels", labels);
  options.labels_path = folder / "labels", options.label_count = 3;
  EXPECT_EQ(Dataset::open(options)->content_hash(), hash_of(tokens + e.marks + labels));
  EXPECT_EQ(Dataset::open(options_of(folder / "tokens.bin", 65536))->content_hash(), hash_of(tokens));
}

// A plan has room for a number of texts in a sample.
TEST(Marks, AWindowHoldsAtMostSoManyDocuments) {
  TemporaryDirectory folder;
  const Examples e = examples(300);
  DatasetOptions options = marked(folder, e, 30);
  options.evaluation_fraction = 0;
  for (const uint64_t most : {1, 2, 5, 100}) {
    options.documents = most;
    const auto dataset = Dataset::open(options);
    ASSERT_TRUE(dataset) << dataset.error().message;
    // Window by window: as many of the next documents as the window and the limit allow.
    size_t document = 0;
    for (uint64_t k = 0; k < dataset->training_windows(); ++k) {
      ASSERT_EQ(dataset->window(Part::training, k).first, e.begins[document]);
      const uint64_t limit = e.begins[document] + 31;
      size_t held = 1;
      const auto end_of = [&](size_t d) {
        return d + 1 < e.begins.size() ? e.begins[d + 1] : e.tokens.size();
      };
      while (document + held < e.begins.size() && held < most && end_of(document + held) <= limit) ++held;
      document += held;
    }
    EXPECT_EQ(document, e.begins.size());
  }
}

TEST(Marks, GiveTargetsDocumentsAndBeginningsOfSamples) {
  TemporaryDirectory folder;
  const Examples e = examples(2000);  // more than one chunk of reading
  const uint64_t all = e.tokens.size();
  for (const int64_t sequence : {1, 7, 30, 4500, 20000}) {
    auto dataset = Dataset::open(marked(folder, e, sequence));
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_TRUE(dataset->has_documents());
    const uint64_t end = dataset->tokens(Part::training);
    EXPECT_EQ(end + dataset->tokens(Part::evaluation), all);
    // The first held-out document is the one that begins nearest to the start of the last tenth of tokens.
    // Only tokens that windows hold count.
    std::vector<int64_t> before = {0};
    for (size_t d = 0; d < e.begins.size(); ++d)
      before.push_back(before.back() +
                       std::min<int64_t>(static_cast<int64_t>(
                                             (d + 1 < e.begins.size() ? e.begins[d + 1] : all) - e.begins[d]),
                                         sequence + 1));
    const int64_t share = before.back() - before.back() / 10;
    const auto first =
        static_cast<size_t>(std::lower_bound(e.begins.begin(), e.begins.end(), end) - e.begins.begin());
    for (size_t d = 0; d < e.begins.size(); ++d)
      EXPECT_LE(std::abs(before[first] - share), std::abs(before[d] - share));
    EXPECT_EQ(e.marks[end] & mark_begin, mark_begin);
    EXPECT_EQ(dataset->training_windows(), windows(e, 0, end, static_cast<uint64_t>(sequence)).size());
    std::vector<int32_t> tokens(sequence), targets(sequence), positions(sequence);
    for (const auto& [part, first, count] :
         {std::tuple{Part::training, uint64_t{0}, end}, {Part::evaluation, end, all - end}}) {
      EXPECT_TRUE(dataset->check_windows(part, sequence));
      EXPECT_EQ(dataset->check_windows(part, sequence + 1).error().code, Code::bad_state);
      const std::vector<uint64_t> starts = windows(e, first, first + count, static_cast<uint64_t>(sequence));
      const uint64_t step = sequence < 100 ? 1 : 977;
      for (uint64_t start = 0; start < count; start += step) {
        ASSERT_TRUE(
            dataset->read(part, start, rows_of(sequence, tokens.data(), targets.data(), positions.data())));
        const auto after = std::upper_bound(starts.begin(), starts.end(), start);
        const uint64_t own = (after == starts.end() ? count : *after) - start;
        int32_t position = 0;
        for (uint64_t i = 0; i < static_cast<uint64_t>(sequence); ++i) {
          const uint64_t at = first + (start + i) % count, next = first + (start + i + 1) % count;
          position = i == 0 || e.marks[at] & mark_begin ? 0 : position + 1;
          ASSERT_EQ(tokens[i], static_cast<int32_t>(e.tokens[at])) << start << " + " << i;
          ASSERT_EQ(positions[i], position) << start << " + " << i;
          ASSERT_EQ(targets[i],
                    e.marks[next] == mark_target && i + 1 < own ? static_cast<int32_t>(e.tokens[next]) : -100)
              << start << " + " << i;
        }
      }
      EXPECT_EQ(dataset->read(part, count, rows_of(sequence, tokens.data(), targets.data())).error().code,
                Code::bad_argument);
    }
  }
}

TEST(Marks, EveryDocumentIsLearnedOnceBeforeOneIsAgain) {
  TemporaryDirectory folder;
  const Examples e = examples(400);
  constexpr int64_t sequence = 20;
  auto dataset = Dataset::open(marked(folder, e, sequence));
  ASSERT_TRUE(dataset);
  const uint64_t end = dataset->tokens(Part::training), count = dataset->training_windows();
  std::vector<std::vector<uint64_t>> passes(3);
  for (uint64_t k = 0; k < 3 * count; ++k)
    passes[k / count].push_back(
        dataset->training_start(1337, k / 6, k / 6 * 6, static_cast<uint32_t>(k % 6), sequence));
  EXPECT_NE(passes[0], passes[1]);
  EXPECT_NE(passes[1], passes[2]);
  int32_t tokens[sequence], targets[sequence];
  for (std::vector<uint64_t>& starts : passes) {
    std::vector<int> learned(end);
    for (const uint64_t start : starts) {
      ASSERT_TRUE(dataset->read(Part::training, start, rows_of(sequence, tokens, targets)));
      for (const int32_t target : targets)
        if (target >= 0) ++learned[target];  // each token has its own id
    }
    for (uint64_t i = 0; i < end; ++i) ASSERT_EQ(learned[i], e.marks[i] == mark_target) << i;
    std::sort(starts.begin(), starts.end());
    EXPECT_EQ(starts, windows(e, 0, end, sequence));
  }
  // Frozen values, computed by a separate implementation: a later version must resume with the same windows.
  const uint64_t numbers[] = {4, 59, 79, 1, 14, 63};
  const std::vector<uint64_t> all = windows(e, 0, end, sequence);
  for (uint32_t k = 0; k < std::size(numbers); ++k)
    EXPECT_EQ(dataset->training_start(1337, 1000000, 6000000, k, sequence), all[numbers[k]]) << count;
  const std::vector<uint64_t> held_out = windows(e, end, e.tokens.size(), sequence);
  for (uint32_t k = 0; k < 3 * held_out.size(); ++k)
    ASSERT_EQ(dataset->evaluation_start(0, 1000, k, sequence), held_out[k % held_out.size()]);
}

// A checkpoint stores the number of samples in addition to the number of batches.
TEST(Marks, AnotherBatchGoesOnAfterTheLastSample) {
  using namespace testing_tools;
  constexpr uint64_t seed = 17;
  constexpr int64_t sequence = 20;
  TemporaryDirectory folder;
  Examples e = examples(100);
  for (uint32_t& token : e.tokens) token %= static_cast<uint32_t>(small_vocabulary);
  DatasetOptions o = marked(folder, e, sequence);
  o.vocabulary = small_vocabulary;
  auto dataset = Dataset::open(o);
  ASSERT_TRUE(dataset);
  const auto model = model_of(small_gpt2());
  const auto planned = [&](int64_t batch) {
    Request r = request_for(batch, sequence, 1);
    r.inputs.positions = true;
    return plan_for(*model, r);
  };
  Schedule schedule;
  schedule.rate = 1e-2, schedule.total = 9;
  OpenTrainer fours(model, planned(4));
  const std::string checkpoint = folder / "checkpoint.stw";
  ASSERT_TRUE(fours->run(*dataset, seed, 3, schedule, {}));
  ASSERT_TRUE(fours->save(checkpoint));
  OpenTrainer sixes(model, planned(6)), expected(model, planned(6));
  ASSERT_TRUE(sixes->restore(checkpoint) && expected->restore(checkpoint));
  ASSERT_TRUE(sixes->run(*dataset, seed, 4, schedule, {}));
  ASSERT_TRUE(expected->step(
      [&](uint64_t sample, const SampleRows& rows) {
        return dataset->read(Dataset::Part::training,
                             dataset->training_start(seed, 3, 3 * 4, static_cast<uint32_t>(sample), sequence),
                             rows);
      },
      6, schedule.at(3)));
  EXPECT_EQ(differences(sixes.state(), expected.state()), "");
  EXPECT_EQ(sixes->progress().samples, 18u);
}

// A document's label is at its last token in the window, and nowhere else.
TEST(Labels, StandAtTheEndOfTheirDocuments) {
  TemporaryDirectory folder;
  const Examples e = examples(600);
  std::vector<uint32_t> labels;
  for (size_t d = 0; d < e.begins.size(); ++d)
    labels.push_back(d % 11 == 5 ? no_label : static_cast<uint32_t>(d % 1000));
  put_file(folder / "labels", little_endian<uint32_t>(labels));
  for (const double held_out : {0.0, 0.1, 1.0})
    for (const int64_t sequence : {1, 7, 30, 4500}) {
      DatasetOptions options = marked(folder, e, sequence);
      options.labels_path = folder / "labels";
      options.label_count = 1000;
      options.evaluation_fraction = held_out;
      auto dataset = Dataset::open(options);
      ASSERT_TRUE(dataset) << dataset.error().message;
      EXPECT_EQ(dataset->label_count(), 1000);
      const uint64_t end = dataset->tokens(Part::training);
      EXPECT_EQ(end == 0, held_out == 1);
      EXPECT_EQ(end == e.tokens.size(), held_out == 0);
      std::vector<int32_t> tokens(static_cast<size_t>(sequence)), targets(tokens.size()),
          positions(tokens.size());
      std::vector<int> seen(e.begins.size());
      for (const Part part : {Part::training, Part::evaluation}) {
        const uint64_t windows =
            part == Part::training ? dataset->training_windows() : dataset->evaluation_windows();
        const uint64_t first = part == Part::training ? 0 : end;
        for (uint64_t k = 0; k < windows; ++k) {
          const uint64_t start =
              part == Part::training
                  ? dataset->training_start(1, 0, 0, static_cast<uint32_t>(k), sequence)
                  : dataset->evaluation_start(0, windows, static_cast<uint32_t>(k), sequence);
          ASSERT_TRUE(
              dataset->read(part, start, rows_of(sequence, tokens.data(), targets.data(), positions.data())));
          std::vector<int32_t> expected(tokens.size(), -100);
          auto d = static_cast<size_t>(std::lower_bound(e.begins.begin(), e.begins.end(), first + start) -
                                       e.begins.begin());
          ASSERT_EQ(e.begins[d], first + start);
          const uint64_t part_end = part == Part::training ? end : e.tokens.size();
          for (bool is_first = true; d < e.begins.size() && e.begins[d] < part_end; ++d, is_first = false) {
            const uint64_t document_end = d + 1 < e.begins.size() ? e.begins[d + 1] : e.tokens.size();
            const uint64_t last = document_end - 1 - first - start;  // in the window
            if (last >= static_cast<uint64_t>(sequence) && !is_first) break;
            expected[std::min<uint64_t>(last, static_cast<uint64_t>(sequence) - 1)] =
                labels[d] == no_label ? -100 : static_cast<int32_t>(labels[d]);
            ++seen[d];
            if (last >= static_cast<uint64_t>(sequence)) break;
          }
          ASSERT_EQ(targets, expected) << sequence << ", window " << k;
          for (size_t i = 0; i < tokens.size(); ++i) {
            const uint64_t at = first + (start + i) % (part_end - first);
            ASSERT_EQ(tokens[i], static_cast<int32_t>(e.tokens[at]));
            ASSERT_EQ(positions[i], i == 0 || e.marks[at] & mark_begin ? 0 : positions[i - 1] + 1);
          }
        }
      }
      for (const int times : seen) ASSERT_EQ(times, 1);
      if (held_out == 0.1 && sequence > 1) {  // in the middle of a document
        EXPECT_EQ(
            dataset->read(Part::training, 1, rows_of(sequence, tokens.data(), targets.data())).error().code,
            Code::bad_argument);
      }
    }
}

// With a largest number of texts, training samples take the documents in an order that fills them.
TEST(Labels, StayWithTheirDocumentsInFullSamples) {
  TemporaryDirectory folder;
  const Examples e = examples(600);
  constexpr uint64_t most = 9;
  constexpr int64_t sequence = 30;
  DatasetOptions options = marked(folder, e, sequence);
  options.labels_path = folder / "labels";
  for (const Task task : {Task::label, Task::number}) {
    std::vector<uint32_t> labels;
    for (size_t d = 0; d < e.begins.size(); ++d) {
      const auto number = static_cast<float>(d);
      labels.push_back(task == Task::label ? static_cast<uint32_t>(d) : std::bit_cast<uint32_t>(number));
    }
    put_file(folder / "labels", little_endian<uint32_t>(labels));
    options.task = task;
    options.label_count = task == Task::label ? 600 : 1;
    options.documents = 0;
    const auto in_order = Dataset::open(options);
    options.documents = most;
    const auto dataset = Dataset::open(options);
    ASSERT_TRUE(in_order && dataset);
    EXPECT_EQ(dataset->tokens(Part::training), in_order->tokens(Part::training));
    EXPECT_EQ(dataset->content_hash(), in_order->content_hash());
    const uint64_t trained = dataset->tokens(Part::training), windows = dataset->training_windows();
    EXPECT_LE(windows * sequence, trained * 101 / 100 + sequence);
    EXPECT_GT(in_order->training_windows(), windows);
    std::vector<int> seen(e.begins.size());
    std::vector<int32_t> tokens(sequence), targets(sequence), positions(sequence);
    std::vector<float> values(sequence);
    uint64_t before = 0;  // tokens of earlier windows
    for (uint64_t k = 0; k < windows; ++k) {
      const auto [start, count] = dataset->window(Part::training, k);
      EXPECT_EQ(start, before);
      before += count;
      EXPECT_EQ(dataset->sample_tokens(Part::training, start, sequence), count);
      SampleRows rows = rows_of(sequence, tokens.data(), targets.data(), positions.data());
      rows[Input::values] = input_at(values.data(), sequence);
      rows.target_row = TargetRow::first;
      ASSERT_TRUE(dataset->read(Part::training, start, rows));
      uint64_t documents = 0;
      size_t at = 0, d = 0;  // in the file; its document
      for (size_t i = 0; i < count; ++i, ++at) {
        if (positions[i] == 0) {
          // examples() numbers the tokens.
          at = static_cast<size_t>(tokens[i]);
          d = static_cast<size_t>(std::lower_bound(e.begins.begin(), e.begins.end(), at) - e.begins.begin());
          ASSERT_EQ(e.begins[d], at);
          ++seen[d], ++documents;
          ASSERT_EQ(task == Task::label ? static_cast<float>(targets[i]) : values[i], static_cast<float>(d));
          ASSERT_GE(targets[i], 0);
        } else {
          ASSERT_EQ(targets[i], -100);
        }
        ASSERT_EQ(tokens[i], static_cast<int32_t>(at));
        ASSERT_EQ(positions[i], static_cast<int32_t>(at - e.begins[d]));
      }
      ASSERT_LE(documents, most);
      for (size_t i = count; i < tokens.size(); ++i) ASSERT_EQ(targets[i], -100);
    }
    EXPECT_EQ(before, trained);
    for (size_t d = 0; d < seen.size(); ++d) EXPECT_EQ(seen[d], e.begins[d] < trained) << d;
  }
}

TEST(Labels, ThatDoNotFitAreRefused) {
  TemporaryDirectory folder;
  const Examples e = examples(30);
  auto options = [&](const std::vector<uint32_t>& labels) {
    put_file(folder / "labels", little_endian<uint32_t>(labels));
    DatasetOptions o = marked(folder, e);
    o.labels_path = folder / "labels";
    o.label_count = 5;
    return o;
  };
  std::vector<uint32_t> labels(e.begins.size(), 4);
  EXPECT_TRUE(Dataset::open(options(labels)));
  labels[3] = 5;
  EXPECT_EQ(refusal(options(labels)), (folder / "labels") + ": label 3 is 5, expected less than 5");
  labels.pop_back();
  EXPECT_EQ(refusal(options(labels)),
            (folder / "labels") + ": expected " + std::to_string(4 * e.begins.size()) +
                " bytes, a label for each document, found " + std::to_string(4 * e.begins.size() - 4));
  auto o = options(std::vector<uint32_t>(e.begins.size(), 0));
  o.label_count = 0;
  EXPECT_NE(refusal(o).find("label count"), std::string::npos);
  o.label_count = 5;
  o.marks_path.clear();
  EXPECT_NE(refusal(o).find("give marks"), std::string::npos);
}

// A file with holes is the file with zeros, and a file that has become shorter is not read as a hole.
TEST(Labels, HolesAreZeros) {
  TemporaryDirectory folder;
  const Examples e = examples(30);
  const size_t documents = e.begins.size(), width = 50'000;  // several chunks, and 200,000 bytes, for each
  std::vector<float> values(documents * width);
  const size_t last = documents - 1;
  for (const size_t at : {7 * width + 3, 9 * width, 9 * width + 4095, 9 * width + 4096, last * width + 1})
    values[at] = 1;
  const std::string dense(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  DatasetOptions options = marked(folder, e);
  options.label_count = static_cast<int64_t>(width), options.task = Task::labels;
  options.labels_path = folder / "dense";
  put_file(options.labels_path, dense);
  auto expected = Dataset::open(options);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto put_holes = [&](const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    for (size_t at = 0; at < dense.size(); at += 4096) {
      const std::string page = dense.substr(at, 4096);
      if (page.find_first_not_of('\0') == page.npos) continue;
      std::fseek(file, static_cast<long>(at), SEEK_SET);
      std::fwrite(page.data(), 1, page.size(), file);
    }
    std::fclose(file);
    std::filesystem::resize_file(path, dense.size());
  };
  options.labels_path = folder / "holes";
  put_holes(options.labels_path);
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ(dataset->content_hash(), expected->content_hash());
  std::vector<int32_t> tokens(20), targets(20);
  std::vector<float> of_one(20 * width), of_other(20 * width);
  SampleRows one = rows_of(20, tokens.data(), targets.data()), other = one;
  one[Input::values] = input_at(of_one.data(), 20, static_cast<int64_t>(width));
  other[Input::values] = input_at(of_other.data(), 20, static_cast<int64_t>(width));
  for (uint64_t k = 0; k < dataset->training_windows(); ++k) {
    const uint64_t start = dataset->window(Part::training, k).first;
    ASSERT_TRUE(expected->read(Part::training, start, one));
    ASSERT_TRUE(dataset->read(Part::training, start, other));
    ASSERT_EQ(of_one, of_other) << k;
  }
  // A number that is none, behind holes.
  std::FILE* const file = std::fopen(options.labels_path.c_str(), "r+b");
  const float wrong = 2;
  std::fseek(file, static_cast<long>((11 * width + 45'678) * sizeof(float)), SEEK_SET);
  std::fwrite(&wrong, sizeof wrong, 1, file);
  std::fclose(file);
  EXPECT_EQ(refusal(options),
            options.labels_path + ": number 45678 of document 11 is 2.000000, expected 0 to 1");
  auto opened = File::open(folder / "dense");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->end_of_hole(12'345), 12'345u);
  std::filesystem::resize_file(folder / "holes", 0);
  std::filesystem::resize_file(folder / "holes", 1 << 20);
  auto empty = File::open(folder / "holes");
  ASSERT_TRUE(empty);
  const uint64_t end = empty->end_of_hole(4096);
  EXPECT_TRUE(end == (1 << 20) - 1 || end == 4096) << end;  // 4096: the file system has no holes
  std::filesystem::resize_file(folder / "holes", 100);
  EXPECT_LT(empty->end_of_hole(4096), uint64_t{1} << 20);
}

Examples of_lengths(const std::vector<size_t>& lengths) {
  Examples e;
  for (const size_t length : lengths) {
    e.begins.push_back(e.tokens.size());
    e.marks += static_cast<char>(mark_begin) + std::string(length - 1, static_cast<char>(mark_target));
    e.tokens.resize(e.tokens.size() + length);
  }
  return e;
}

// The held-out tenth counts only tokens that windows hold: a cut document counts as its window.
TEST(Marks, ALongDocumentDoesNotDecideWhatIsHeldOut) {
  TemporaryDirectory folder;
  constexpr int64_t sequence = 20;
  const auto trained = [&](const std::vector<size_t>& lengths) {
    auto dataset = Dataset::open(marked(folder, of_lengths(lengths), sequence));
    return dataset ? dataset->tokens(Part::training) : 0;
  };
  std::vector<size_t> lengths(41, 10);
  EXPECT_EQ(trained(lengths), 370u);
  lengths[0] = 100'000;  // if all of it counted, all short documents after it would be held out
  EXPECT_EQ(trained(lengths), 100'360u);  // 42.1 of 421 tokens, to the nearest document
  // The long document counts as 21 tokens. The cut is 42 tokens from the end, between two other documents.
  lengths[0] = 10, lengths[40] = 100'000;
  EXPECT_EQ(trained(lengths), 380u);
  // In both lists, the last document begins nearest to the cut. It is short in the first list, and long
  // in the second.
  EXPECT_EQ(trained({5, 5, 5, 3000, 5, 5}), 3020u);
  EXPECT_EQ(trained({5, 5, 5, 5, 3000}), 20u);
}

TEST(Marks, ThatDoNotFitAreRefused) {
  TemporaryDirectory folder;
  const Examples good = examples(30);
  EXPECT_TRUE(Dataset::open(marked(folder, good)));
  Examples e = good;
  e.marks.pop_back();
  EXPECT_EQ(refusal(marked(folder, e)), (folder / "marks") + ": expected " + std::to_string(e.tokens.size()) +
                                            " bytes, a mark for each token, found " +
                                            std::to_string(e.tokens.size() - 1));
  e = good;
  e.marks[5] = 8;
  EXPECT_EQ(refusal(marked(folder, e)), (folder / "marks") + ": mark 5 is 8, expected at most 7");
  e = good;
  e.marks[0] = mark_target;
  EXPECT_EQ(refusal(marked(folder, e)),
            (folder / "marks") + ": expected that the first token begins a document");
  auto options = marked(folder, good);
  options.document_end = 3;
  EXPECT_NE(refusal(options).find("leave out the document end"), std::string::npos);
  options = marked(folder, good);
  options.evaluation_path = options.path;
  EXPECT_NE(refusal(options).find("leave out the document end"), std::string::npos);
  options = marked(folder, good);
  options.marks_path = folder / "none";
  EXPECT_NE(refusal(options).find("No such file"), std::string::npos);
  EXPECT_EQ(Dataset::open(marked(folder, of_lengths({5, 5})))->tokens(Part::training), 5u);
  // A single document cannot be cut: all of it is trained on.
  e = good;
  for (char& mark : e.marks) mark = mark_target;
  e.marks[0] = mark_begin;
  auto dataset = Dataset::open(marked(folder, e));
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->tokens(Part::evaluation), 0u);
  EXPECT_TRUE(dataset->check_windows(Part::training, 20));
  EXPECT_NE(dataset->check_windows(Part::evaluation, 20).error().message.find("too few documents"),
            std::string::npos);
  EXPECT_NE(refusal(marked(folder, good, 0)).find("sequence"), std::string::npos);
}

}  // namespace
}  // namespace stw::dataset_test
