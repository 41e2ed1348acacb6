// Parameters whose rows are ordered by heads in files, and as queries, keys and values in the graph: reading,
// training, checkpoints and export agree about the order.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "src/base/numbers.h"
#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::layout_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 16;

std::shared_ptr<const Model> open_folder(const std::string& folder) {
  ModelSource source;
  source.source = folder;
  return open_model(source);
}

std::unique_ptr<Trainer> trainer_of(const std::shared_ptr<const Model>& model,
                                    Precision precision = Precision::fp32) {
  Request r = request_for(2, sequence);
  r.precision = precision;
  return trainer_for(model, plan_for(*model, r));
}

TEST(WeightLayout, RoundTrips) {
  const WeightLayout layout{6, 3};
  constexpr uint64_t size = 6 * 3 * 10;
  std::vector<bool> is_there(size);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t part = i / 60, head = i / 10 % 6;
    const WeightLayout::Run there = layout.in_file(i, size - i, size);
    EXPECT_EQ(there.at, (head * 3 + part) * 10 + i % 10);
    EXPECT_EQ(there.count, 10 - i % 10);
    EXPECT_EQ(layout.in_file(i, 1, size).count, 1u);
    EXPECT_EQ(layout.in_graph(there.at, size - there.at, size).at, i);
    EXPECT_EQ(layout.in_graph(there.at, 4, size).count, std::min<uint64_t>(4, 10 - i % 10));
    is_there[there.at] = true;
  }
  EXPECT_EQ(std::count(is_there.begin(), is_there.end(), true), static_cast<std::ptrdiff_t>(size));
  EXPECT_EQ(WeightLayout{}.in_file(7, 100, size).at, 7u);
  EXPECT_EQ(WeightLayout{}.in_file(7, 100, size).count, 100u);
}

// transformers wrote the golden model's files.
TEST(Layout, MatchesTheFilesFromAnyElementOn) {
  const auto model = open_folder(folder_of("adapter_bloom"));
  auto weights = SafetensorsReader::open(folder_of("bloom")),
       adapters = SafetensorsReader::open(adapter_weights(folder_of("adapter_bloom")));
  ASSERT_TRUE(model && weights && adapters);
  size_t moved = 0;
  for (const int t : model->parameters()) {
    const Tensor& p = model->graph().at(t);
    const bool is_queries_and_so_on =
        p.name.find("query_key_value") != p.name.npos && !p.name.ends_with(low_suffix);
    EXPECT_EQ(p.layout, is_queries_and_so_on ? (WeightLayout{6, 3}) : WeightLayout{}) << p.name;
    moved += is_queries_and_so_on;
    std::vector<float> values(p.shape.elements());
    ASSERT_TRUE(model->read(p, 0, values.size(), values.data()));
    const auto in_file = p.adapter_of < 0
                             ? read_tensor<float>(*weights, p.name)
                             : read_tensor<float>(*adapters, adapter_tensor_name(model->config(), p.name));
    EXPECT_EQ(in_file_order(model->graph(), p.name, values), in_file) << p.name;
    std::vector<float> pieces(values.size());
    for (uint64_t at = 0, n = 1; at < values.size(); at += n, n = n % 701 + 1) {
      n = std::min<uint64_t>(n, values.size() - at);
      ASSERT_TRUE(model->read(p, at, n, pieces.data() + at));
    }
    EXPECT_EQ(pieces, values) << p.name;
  }
  EXPECT_EQ(moved, 2u * 3);  // a matrix, its bias and a factor of its adapter, in each of two layers
}

// An untrained parameter is written as it was read, in the type of the run.
TEST(Layout, ExportsHaveTheFilesBytes) {
  TemporaryDirectory folder;
  const auto compare = [&](const std::string& written, const std::string& read, Precision precision) {
    auto ours = SafetensorsReader::open(written), theirs = SafetensorsReader::open(read);
    ASSERT_TRUE(ours && theirs);
    ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
    for (const SafetensorsInfo& t : theirs->tensors()) {
      const std::vector<float> values = read_tensor<float>(*theirs, t.name);
      if (precision == Precision::fp32) {
        EXPECT_EQ(read_tensor<float>(*ours, t.name), values) << t.name;
        continue;
      }
      std::vector<uint16_t> halves;
      for (const float x : values) halves.push_back(to_f16(x));
      EXPECT_EQ(read_tensor<uint16_t>(*ours, t.name), halves) << t.name;
    }
  };
  const std::string model = folder_of("bloom"), adapters = folder_of("adapter_bloom");
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    ASSERT_TRUE(trainer_of(open_folder(model), precision)->export_model(folder / "model"));
    compare(folder / "model", model, precision);
    ASSERT_TRUE(trainer_of(open_folder(adapters), precision)->export_model(folder / "adapters"));
    compare(adapter_weights(folder / "adapters"), adapter_weights(adapters), precision);
  }
  ASSERT_TRUE(write_merged(*open_folder(model), folder / "merged"));
  compare(folder / "merged", model, Precision::fp32);
}

// A trained model that is written and read again has the same numbers in memory.
TEST(Layout, ATrainedModelIsReadUnchanged) {
  TemporaryDirectory folder;
  const auto model = open_folder(folder_of("bloom"));
  OpenTrainer trainer(model, plan_for(*model, request_for(2, sequence)));
  const GlobalBatch batch = random_batch(3, 2, sequence);
  ASSERT_TRUE(trainer->step(batch.source(), 2, 1e-2));
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  const auto again = open_folder(folder / "out");
  ASSERT_TRUE(again);
  OpenTrainer other(again, plan_for(*again, request_for(2, sequence)));
  const auto parameters = [&](State state) {
    std::erase_if(state,
                  [&](const auto& t) { return t.first.ends_with(".first") || t.first.ends_with(".second"); });
    return state;
  };
  EXPECT_EQ(differences(parameters(other.state()), parameters(trainer.state())), "");
}

// Published files leave out the common prefix of names, and have 16-bit numbers.
TEST(Layout, OfFilesWithoutThePrefixAndInHalves) {
  TemporaryDirectory folder;
  auto reader = SafetensorsReader::open(folder_of("bloom"));
  ASSERT_TRUE(reader);
  std::vector<SafetensorsEntry> entries;
  for (const SafetensorsInfo& t : reader->tensors()) {
    EXPECT_TRUE(t.name.starts_with("transformer.")) << t.name;
    entries.push_back({t.name.substr(std::string("transformer.").size()), TensorDType::f16, t.shape});
  }
  put_file(folder / "config.json", file_bytes(folder_of("bloom") + "/config.json"));
  auto writer = SafetensorsWriter::create(folder / "model.safetensors", entries, {});
  ASSERT_TRUE(writer);
  for (const SafetensorsInfo& t : reader->tensors()) {
    std::vector<uint16_t> halves;
    for (const float x : read_tensor<float>(*reader, t.name)) halves.push_back(to_f16(x));
    ASSERT_TRUE(writer->write(std::as_bytes(std::span<const uint16_t>(halves))));
  }
  ASSERT_TRUE(writer->finish());
  const auto short_one = open_folder(folder.path()), model = open_folder(folder_of("bloom"));
  ASSERT_TRUE(short_one && model);
  for (const int t : model->parameters()) {
    const Tensor& p = model->graph().at(t);
    std::vector<float> values(p.shape.elements()), expected(values.size());
    ASSERT_TRUE(short_one->read(p, 0, values.size(), values.data()) &&
                model->read(p, 0, expected.size(), expected.data()));
    for (float& x : expected) x = from_f16(to_f16(x));
    EXPECT_EQ(values, expected) << p.name;
  }
}

// 4-bit codes share a scale in blocks. Reordering rows would tear these blocks apart.
TEST(Layout, CodesOfSuchAMatrixAreRefused) {
  TemporaryDirectory folder;
  auto reader = SafetensorsReader::open(folder_of("bloom"));
  ASSERT_TRUE(reader);
  std::vector<SafetensorsEntry> entries;
  std::string data;
  for (const SafetensorsInfo& t : reader->tensors()) {
    entries.push_back({t.name, *t.dtype, t.shape});
    std::string bytes(t.bytes, '\0');
    ASSERT_TRUE(reader->read(t, 0, std::as_writable_bytes(std::span(bytes))));
    data += bytes;
    if (!t.name.ends_with("h.1.self_attention.query_key_value.weight")) continue;
    entries.push_back({t.name + ".quant_state.bitsandbytes__nf4", TensorDType::u8, {2}});
    data += "{}";
  }
  auto writer = SafetensorsWriter::create(folder / "model.safetensors", entries, {});
  ASSERT_TRUE(writer && writer->write(std::as_bytes(std::span(data))) && writer->finish());
  put_file(folder / "config.json", file_bytes(folder_of("bloom") + "/config.json"));
  ModelSource source;
  source.source = folder.path();
  const auto refused = Model::open(source);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().message.find(
                "h.1.self_attention.query_key_value.weight: in 4 bits, and with rows in order of heads"),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace stw::layout_test
