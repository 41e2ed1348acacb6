#include "kernels/contract/sizes.h"

#include "src/trainer/planned.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

TEST(Sizes, Saturate) {
  EXPECT_EQ(size_mul(3, 5), 15u);
  EXPECT_EQ(size_mul(UINT64_MAX, 0), 0u);
  EXPECT_EQ(size_mul(UINT64_MAX, 2), size_limit);
  EXPECT_EQ(size_mul(uint64_t{1} << 31, uint64_t{1} << 31), size_limit);
  EXPECT_EQ(size_mul(uint64_t{1} << 40, uint64_t{1} << 40), size_limit);
  EXPECT_EQ(size_add(size_limit, size_limit), size_limit);
  EXPECT_EQ(size_add(UINT64_MAX, 1), size_limit);
  EXPECT_EQ(size_add(1, 2), 3u);
  EXPECT_EQ(round_up(0, 64), 0u);
  EXPECT_EQ(round_up(1, 64), 64u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_EQ(round_up(size_limit, 64), size_limit);
  EXPECT_EQ(ceil_div(7, 2), 4u);
  EXPECT_EQ(ceil_div(8, 2), 4u);
  EXPECT_EQ(Shape({int64_t{1} << 31, int64_t{1} << 31, 4}).elements(), size_limit);
}

std::string absurd(int64_t vocabulary, int64_t positions, int64_t width, int64_t layers) {
  Json json = Json::object();
  json.set("model_type", "llama")
      .set("vocab_size", vocabulary)
      .set("max_position_embeddings", positions)
      .set("hidden_size", width);
  json.set("intermediate_size", 4 * width)
      .set("num_hidden_layers", layers)
      .set("num_attention_heads", width / 64);
  return to_string(json, 0);
}

// Expects an error, or a plan that reports how much it would need: nothing wraps to a small number.
void expect_refused(const std::string& config, Request r, uint64_t at_least) {
  ModelSource source;
  source.config_json = config;
  auto model = Model::open(source);
  if (!model) {
    EXPECT_EQ(model.error().code, Code::unsupported_field) << model.error().message;
    return;
  }
  r.memory_bytes = uint64_t{1} << 40;
  auto planned = Planned::make(**model, r);
  if (!planned) {
    EXPECT_TRUE(planned.error().code == Code::unsupported_shape || planned.error().code == Code::bad_argument)
        << planned.error().message;
    return;
  }
  EXPECT_FALSE((*planned)->plan.fits) << config;
  EXPECT_GE((*planned)->plan.minimum_bytes, at_least) << config;
}

Request request_of(int64_t batch, int64_t sequence) {
  Request r;
  r.global_batch = batch;
  r.sequence = sequence;
  r.state_bits = 32;
  return r;
}

TEST(Sizes, AbsurdModelsAreRefused) {
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  expect_refused(absurd(most, 1024, 4096, 2), request_of(1, 16), uint64_t{1} << 42);
  expect_refused(absurd(most, most, 64 * 65536, 1), request_of(1, 16), uint64_t{1} << 42);
  expect_refused(absurd(most, most, most / 64 * 64, 2), request_of(1, 16), uint64_t{1} << 42);
  expect_refused(absurd(32000, most, 4096, 2), request_of(1, most), uint64_t{1} << 42);
}

TEST(Sizes, AbsurdBatches) {
  // The planner chooses the micro-batch. One sample at a time fits, whatever the batch.
  ModelSource source;
  source.config_json = small_llama();
  auto model = Model::open(source);
  ASSERT_TRUE(model);
  for (int64_t batch : {int64_t{1} << 31, int64_t{1} << 50, INT64_MAX}) {
    Request r = request_of(batch, 33);
    r.memory_bytes = uint64_t{1} << 30;
    EXPECT_EQ(Planned::make(**model, r).error().code, Code::bad_argument);
  }
  Request r = request_of(INT32_MAX, 33);
  r.memory_bytes = uint64_t{1} << 26;
  auto planned = Planned::make(**model, r);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_TRUE((*planned)->plan.fits);
  EXPECT_TRUE((*planned)->verify());
  r.micro_batch = INT32_MAX;
  planned = Planned::make(**model, r);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_FALSE((*planned)->plan.fits);
  EXPECT_GT((*planned)->plan.minimum_bytes, uint64_t{1} << 40);
}

// Models far deeper than published ones are planned in a moment, and counted correctly.
TEST(Sizes, DeepModels) {
  ModelSource source;
  source.config_json = absurd(1000, 64, 64, 256);
  auto model = Model::open(source);
  ASSERT_TRUE(model) << model.error().message;
  Request r = request_of(2, 16);
  r.micro_batch = 1;
  r.memory_bytes = uint64_t{1} << 27;
  auto planned = Planned::make(**model, r);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_FALSE((*planned)->plan.fits);
  EXPECT_GT((*planned)->plan.minimum_bytes, uint64_t{256} * 12 * 4 * 64 * 64);
}

}  // namespace
}  // namespace stw
