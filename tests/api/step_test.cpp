// Steps on a host's own batches: DLPack tensors of every legal form, and refusals.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

stw_plan_options plan_of(uint64_t micro_batch = 0) {
  auto o = plan_options(4);
  o.micro_batch = micro_batch;
  return o;
}

// The state after two steps on a batch.
State trained(TokenBatch& batch, uint64_t micro_batch = 3) {
  World w(tiny_gpt2, plan_of(micro_batch));
  for (int i = 0; i < 2; ++i) {
    const stw_step_result r = step(w.trainer.get(), batch.batch());
    EXPECT_EQ(r.skipped, 0u);
    EXPECT_EQ(r.step, static_cast<uint64_t>(i + 1));
    EXPECT_TRUE(std::isfinite(r.loss) && r.loss > 0 && r.grad_norm > 0);
  }
  return state_of(w);
}

TEST(Step, MicroBatchesGiveTheSameBits) {
  TokenBatch batch(4, 16);
  const State expected = trained(batch, 4);
  for (const uint64_t m : {1, 2, 3}) EXPECT_EQ(trained(batch, m), expected) << m;
}

TEST(Step, StridedTensorsAreReadByTheirStrides) {
  TokenBatch compact(4, 16);
  const State expected = trained(compact);
  // Transposed storage with an offset: element (s, t) is at 3 + s + 4 t.
  TokenBatch strided = compact;
  for (auto* values : {&strided.tokens, &strided.targets}) {
    std::vector<int32_t> moved(3 + values->size(), -7);
    for (size_t s = 0; s < 4; ++s)
      for (size_t t = 0; t < 16; ++t) moved[3 + s + 4 * t] = (*values)[s * 16 + t];
    *values = moved;
  }
  strided.strides = {1, 4};
  strided.byte_offset = 12;
  EXPECT_EQ(trained(strided), expected);
}

TEST(Step, MissingTargetsAreIgnored) {
  TokenBatch small(3, 9), full(4, 16);
  full.tokens.assign(64, 0);
  full.targets.assign(64, -100);
  for (size_t s = 0; s < 3; ++s)
    for (size_t t = 0; t < 9; ++t) {
      full.tokens[s * 16 + t] = small.tokens[s * 9 + t];
      full.targets[s * 16 + t] = small.targets[s * 9 + t];
    }
  EXPECT_EQ(trained(small), trained(full));
  World w(tiny_gpt2, plan_of());
  EXPECT_EQ(step(w.trainer.get(), small.batch()).targets, 27u);
}

TEST(Step, LabelsAreShiftedByTheLibrary) {
  TokenBatch labels(4, 16), targets(4, 16);
  labels.second = "labels";
  for (size_t s = 0; s < 4; ++s)
    for (size_t t = 0; t < 16; ++t)
      targets.targets[s * 16 + t] = t + 1 < 16 ? labels.targets[s * 16 + t + 1] : -100;
  EXPECT_EQ(trained(labels), trained(targets));
  World w(tiny_gpt2, plan_of());
  EXPECT_EQ(step(w.trainer.get(), labels.batch()).targets, 60u)
      << "N counts the targets left after the shift";
}

// A weight belongs to the label at the same index, wherever the library moves that label.
TEST(Step, WeightsAreShiftedWithTheirLabels) {
  TokenBatch labels(4, 16), targets(4, 16);
  labels.second = "labels";
  labels.weights.assign(64, 1);
  targets.weights.assign(64, 1);
  for (size_t s = 0; s < 4; ++s)
    for (size_t t = 0; t < 16; ++t) {
      const size_t i = s * 16 + t;
      labels.weights[i] = t < 7 ? 0 : static_cast<float>(t) / 4;  // a prompt, and an answer from token 7 on
      targets.targets[i] = t + 1 < 16 ? labels.targets[i + 1] : -100;
      if (t + 1 < 16) targets.weights[i] = t + 1 < 7 ? 0 : static_cast<float>(t + 1) / 4;
    }
  stw_plan_options o = plan_of();
  o.inputs = STW_INPUT_WEIGHTS;
  State states[2];
  for (TokenBatch* batch : {&labels, &targets}) {
    World w(tiny_gpt2, o);
    EXPECT_EQ(step(w.trainer.get(), batch->batch()).targets, 60u);
    states[batch == &targets] = state_of(w);
  }
  EXPECT_EQ(states[0], states[1]);
}

// Tokens past the length are ignored, even ids outside of the vocabulary.
TEST(Step, LengthsEndSamples) {
  const std::vector<int32_t> lengths = {16, 5, 0, 1};
  for (const char* second : {"targets", "labels"}) {
    TokenBatch batch(4, 16), cut(4, 16);
    batch.second = second;
    batch.lengths = lengths;
    const bool labels = std::string(second) == "labels";
    uint64_t expected = 0;
    for (size_t s = 0; s < 4; ++s)
      for (size_t t = 0; t < 16; ++t) {
        const size_t end = static_cast<size_t>(lengths[s]), i = s * 16 + t;
        const bool counts = labels ? t + 1 < end : t < end;
        expected += counts;
        cut.targets[i] = !counts ? -100 : batch.targets[labels ? i + 1 : i];
        if (t >= end) cut.tokens[i] = 0;
      }
    for (size_t s = 0; s < 4; ++s)
      for (size_t t = static_cast<size_t>(lengths[s]); t < 16; ++t)
        batch.tokens[s * 16 + t] = batch.targets[s * 16 + t] = 999999;
    const State state = trained(cut);
    for (const uint64_t m : {1, 3, 4}) EXPECT_EQ(trained(batch, m), state) << second << ' ' << m;
    World w(tiny_gpt2, plan_of());
    EXPECT_EQ(step(w.trainer.get(), batch.batch()).targets, expected);
  }
}

// The loss is a mean over targets, not over samples or micro-batches.
TEST(Step, MaskedTargetsDoNotCount) {
  TokenBatch batch(4, 16);
  const auto loss_of = [&](const TokenBatch& b, uint64_t micro_batch) {
    World w(tiny_gpt2, plan_of(micro_batch));
    TokenBatch copy = b;
    return step(w.trainer.get(), copy.batch());
  };
  double sum = 0;
  uint64_t targets = 0;
  TokenBatch masked = batch;
  for (size_t s = 0; s < 4; ++s) {
    TokenBatch one = batch;
    one.targets.assign(64, -100);
    for (size_t t = 0; t <= s * 5; ++t)
      masked.targets[s * 16 + t] = one.targets[s * 16 + t] = batch.targets[s * 16 + t];
    for (size_t t = s * 5 + 1; t < 16; ++t) masked.targets[s * 16 + t] = -100;
    const stw_step_result r = loss_of(one, 2);
    EXPECT_EQ(r.targets, s * 5 + 1);
    sum += r.loss * static_cast<double>(r.targets);
    targets += r.targets;
  }
  for (const uint64_t m : {1, 3, 4}) {
    const stw_step_result r = loss_of(masked, m);
    EXPECT_EQ(r.targets, targets);
    EXPECT_NEAR(r.loss, sum / static_cast<double>(targets), 1e-6);
  }
}

TEST(Step, WithoutTargetsIsSkipped) {
  World w(tiny_gpt2, plan_of(3));
  TokenBatch batch(4, 16), empty(4, 16);
  empty.targets.assign(64, -100);
  step(w.trainer.get(), batch.batch());
  State before = state_of(w);
  const stw_step_result r = step(w.trainer.get(), empty.batch());
  EXPECT_EQ(r.skipped, 1u);
  EXPECT_EQ(r.step, 1u);
  EXPECT_EQ(r.targets, 0u);
  before.batches += 1;
  before.skipped += 1;
  EXPECT_EQ(state_of(w), before);
  // The next step is the same as without the skipped one.
  World other(tiny_gpt2, plan_of(3));
  step(other.trainer.get(), batch.batch());
  step(other.trainer.get(), batch.batch());
  step(w.trainer.get(), batch.batch());
  EXPECT_EQ(values_of(w), values_of(other));
}

TEST(Step, ThatIsNotFiniteIsSkipped) {
  World w(tiny_gpt2, plan_of());
  TokenBatch batch(4, 16);
  step(w.trainer.get(), batch.batch());
  const auto view = view_of(w.trainer.get(), 0);
  const float saved = *static_cast<float*>(view->dl_tensor.data);
  for (const float bad : {NAN, INFINITY}) {
    State before = state_of(w);
    const uint64_t tokens = progress_of(w.trainer.get()).tokens;
    batch.tokens[0] = 0;
    *static_cast<float*>(view->dl_tensor.data) = bad;
    const stw_step_result skipped = step(w.trainer.get(), batch.batch());
    EXPECT_EQ(skipped.skipped, 1u);
    EXPECT_EQ(skipped.skip_reason, uint32_t{STW_SKIP_NOT_FINITE});
    EXPECT_EQ(skipped.targets, 64u);
    EXPECT_EQ(progress_of(w.trainer.get()).tokens, tokens) << "nothing was trained on";
    *static_cast<float*>(view->dl_tensor.data) = saved;
    before.batches += 1;
    before.skipped += 1;
    EXPECT_EQ(state_of(w), before);
  }
}

TEST(Step, RefusesInvalidBatches) {
  World w(tiny_gpt2, plan_of());
  const State before = state_of(w);
  using Change = std::function<void(TokenBatch&, stw_batch&)>;
  const auto refused = [&](const char* what, stw_status expected, const Change& change) {
    TokenBatch batch(4, 16);
    stw_batch b = *batch.batch();
    change(batch, b);
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_trainer_step(w.trainer.get(), &b, &error), expected) << what << ": " << error.message;
    EXPECT_NE(error.message[0], 0) << what;
    return std::string(error.message);
  };
  const std::string message = refused("token", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.tokens[37] = 256; });
  EXPECT_NE(message.find("256"), std::string::npos) << message;
  refused("negative token", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.tokens[0] = -1; });
  refused("ignored token", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.tokens[0] = -100; });
  refused("target", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.targets[63] = 256; });
  refused("target -1", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.targets[63] = -1; });
  refused("count 0", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.count = 0; });
  refused("count 1", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.count = 1; });
  refused("names", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.names = nullptr; });
  refused("tensors", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.tensors = nullptr; });
  static const char* const not_planned[] = {"tokens", "weights"};
  static const char* const unknown[] = {"tokens", "target"};
  static const char* const both[] = {"tokens", "targets", "labels"};
  static const char* const twice[] = {"tokens", "tokens"};
  static const char* const null[] = {"tokens", nullptr};
  refused("no such input", STW_UNSUPPORTED, [](auto&, auto& b) { b.names = not_planned; });
  refused("unknown name", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.names = unknown; });
  refused("a name twice", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.names = twice; });
  refused("no name", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.names = null; });
  refused("targets and labels", STW_BAD_ARGUMENT, [](auto& t, auto& b) {
    t.managed(2) = t.managed(1);
    b.names = both;
    b.count = 3;
  });
  for (const auto& lengths :
       {std::vector<int32_t>{16, 16, 16}, {16, 16, 17, 0}, {-1, 16, 16, 16}, {1, 2, 3, 4, 5}})
    refused("lengths", STW_BAD_ARGUMENT, [&](auto& t, auto& b) {
      t.lengths = lengths;
      b = *t.batch();
    });
  static const DLManagedTensorVersioned* const nothing[] = {nullptr, nullptr};
  refused("no tensor", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.tensors = nothing; });
  refused("version", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(0).version.major = 2; });
  refused("device", STW_BAD_ARGUMENT,
          [](auto& t, auto&) { t.managed(0).dl_tensor.device.device_type = kDLCUDA; });
  refused("int64", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(0).dl_tensor.dtype.bits = 64; });
  refused("float", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(1).dl_tensor.dtype.code = 2; });
  refused("lanes", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(1).dl_tensor.dtype.lanes = 2; });
  refused("dimensions", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(1).dl_tensor.ndim = 1; });
  refused("negative dimensions", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(1).dl_tensor.ndim = -1; });
  EXPECT_EQ(
      refused("shape", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(1).dl_tensor.shape = nullptr; }),
      "batch: targets: the shape is NULL");
  refused("data", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(0).dl_tensor.data = nullptr; });
  // Misaligned numbers, which some processors cannot read.
  refused("alignment", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(1).dl_tensor.byte_offset = 2; });
  for (const auto& bad : {std::vector<int64_t>{5, 16}, {4, 17}, {0, 16}, {4, 0}, {-1, 16}, {INT64_MAX, 16}}) {
    static int64_t shape[2];
    shape[0] = bad[0];
    shape[1] = bad[1];
    const std::string message =
        refused("shape", STW_BAD_ARGUMENT, [](auto& t, auto&) { t.managed(0).dl_tensor.shape = shape; });
    EXPECT_NE(message.find("expected (1 to 4, 1 to 16), found (" + std::to_string(bad[0])), std::string::npos)
        << message;
  }
  refused("rate", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.learning_rate = -1; });
  refused("rate", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.learning_rate = NAN; });
  refused("rate", STW_BAD_ARGUMENT, [](auto&, auto& b) { b.learning_rate = INFINITY; });
  // Finite, but above the largest rate, 1e6. fp32 cannot represent the first two, and a multiplication could
  // make the third infinite.
  for (const double rate : {1e39, 1e300, 1e38, 1.0000001e6}) {
    const std::string message =
        refused("rate", STW_BAD_ARGUMENT, [&](auto&, auto& b) { b.learning_rate = rate; });
    EXPECT_NE(message.find("learning_rate"), std::string::npos) << message;
  }
  EXPECT_EQ(state_of(w), before);
}

// A text of one window: every sample of every batch is the same, so that a host can make the same batches.
TEST(Step, EqualsARunOverTheSameWindows) {
  TemporaryDirectory folder;
  const std::string text = "abcdefghi";
  auto o = plan_options(3, 8);
  o.micro_batch = 2;
  World a(tiny_gpt2, o), b(tiny_gpt2, o);
  const auto dataset = open_text(folder, text, 8);
  auto how = run_options(3);
  how.schedule = STW_SCHEDULE_CONSTANT;
  how.warmup = 0;
  stw_error error = sized<stw_error>();
  must(stw_trainer_run(a.trainer.get(), dataset.get(), &how, &error), error);
  TokenBatch batch(3, 8);
  for (size_t i = 0; i < 24; ++i) {
    batch.tokens[i] = text[i % 8];
    batch.targets[i] = text[i % 8 + 1];
  }
  for (int i = 0; i < 3; ++i) step(b.trainer.get(), batch.batch(how.learning_rate));
  EXPECT_EQ(state_of(a), state_of(b));
  EXPECT_EQ(progress_of(a.trainer.get()).loss, progress_of(b.trainer.get()).loss);
  auto result = sized<stw_step_result>();
  must(stw_trainer_wait(a.trainer.get(), &result, &error), error);
  EXPECT_EQ(result.targets, 24u) << "a run reports its last step like any other";
  EXPECT_EQ(result.step, 3u);
}

TEST(Step, TensorsComeAndGo) {
  World a(tiny_llama, plan_of()), b(tiny_llama, plan_of());
  TokenBatch batch(4, 16);
  step(a.trainer.get(), batch.batch());
  for (size_t i = 0; i < stw_model_tensor_count(a.model.get()); ++i) {
    auto info = sized<stw_tensor_info>();
    ASSERT_EQ(stw_model_tensor_at(a.model.get(), i, &info), STW_OK);
    size_t found = 0;
    EXPECT_EQ(stw_model_tensor_find(a.model.get(), info.name, &found), STW_OK);
    EXPECT_EQ(found, i);
    for (uint32_t kind = STW_TENSOR_PARAMETER; kind <= STW_TENSOR_SECOND_MOMENT; ++kind) {
      const auto view = view_of(a.trainer.get(), i, kind);
      EXPECT_EQ(elements_of(*view), info.elements);
      EXPECT_EQ(view->dl_tensor.ndim, static_cast<int32_t>(info.ndim));
      EXPECT_EQ(view->version.major, 1u);
    }
    stw_error error = sized<stw_error>();
    must(stw_trainer_import_tensor(b.trainer.get(), i, view_of(a.trainer.get(), i).get(), &error), error);
  }
  EXPECT_EQ(values_of(a), values_of(b));
  auto wrong = view_of(a.trainer.get(), 0);
  wrong->dl_tensor.shape[0] -= 1;
  EXPECT_EQ(stw_trainer_import_tensor(b.trainer.get(), 0, wrong.get(), nullptr), STW_BAD_ARGUMENT);
  const int64_t right = std::exchange(wrong->dl_tensor.shape[0], INT64_MAX);
  EXPECT_EQ(stw_trainer_import_tensor(b.trainer.get(), 0, wrong.get(), nullptr), STW_BAD_ARGUMENT);
  wrong->dl_tensor.shape[0] = right + 1;
  wrong->dl_tensor.byte_offset = 2;
  EXPECT_EQ(stw_trainer_import_tensor(b.trainer.get(), 0, wrong.get(), nullptr), STW_BAD_ARGUMENT);
  wrong->dl_tensor.byte_offset = 0;
  wrong->version.major = 2;
  EXPECT_EQ(stw_trainer_import_tensor(b.trainer.get(), 0, wrong.get(), nullptr), STW_BAD_ARGUMENT);
  wrong->version.major = 1;
  wrong->dl_tensor.dtype.bits = 16;
  EXPECT_EQ(stw_trainer_import_tensor(b.trainer.get(), 0, wrong.get(), nullptr), STW_BAD_ARGUMENT);
}

// The gradients are sums over the targets, times the scale that a hook would receive.
TEST(Step, GradientsOfTheLastStepAreThere) {
  for (uint32_t precision : {STW_PRECISION_FP32, STW_PRECISION_BF16, STW_PRECISION_FP16}) {
    auto o = plan_of();
    o.precision = precision;
    const World w(tiny_llama, o);  // no tensor has two uses
    TokenBatch batch(4, 16);
    const stw_step_result result = step(w.trainer.get(), batch.batch());
    const double scale = precision == STW_PRECISION_FP16 ? result.loss_scale / (4 * 16) : 1;
    double squares = 0;
    for (const std::vector<float>& gradient : values_of(w, STW_TENSOR_GRADIENT))
      for (float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    EXPECT_NEAR(std::sqrt(squares) / (static_cast<double>(result.targets) * scale), result.grad_norm,
                1e-6 * result.grad_norm)
        << precision;
  }
}

TEST(Step, Generates) {
  World w(tiny_gpt2, plan_of());
  const int32_t prompt[] = {1, 2, 3};
  int32_t out[13], again[13];
  auto o = sized<stw_generate_options>();
  o.prompt = prompt;
  o.prompt_count = 3;
  o.out = out;
  o.out_capacity = 13;
  o.temperature = 0.9;
  o.top_k = 50;
  uint64_t count = 0;
  ASSERT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_OK);
  EXPECT_EQ(count, 13u);
  for (const int32_t id : out) EXPECT_TRUE(id >= 0 && id < 256);
  o.out = again;
  ASSERT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_OK);
  EXPECT_EQ(std::memcmp(out, again, sizeof out), 0);
  o.top_p = 1e-9;  // leaves one token, like temperature 0
  ASSERT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_OK);
  o.top_p = o.temperature = 0;
  int32_t coldest[13];
  o.out = coldest;
  ASSERT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_OK);
  EXPECT_EQ(std::memcmp(again, coldest, sizeof again), 0);
  for (const double wrong : {-0.1, 1.1, static_cast<double>(NAN)}) {
    o.top_p = wrong;
    EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_BAD_ARGUMENT);
  }
  o.top_p = 0;
  o.temperature = 0.9;
  o.out = again;
  // Generation ends with the first stop token.
  const int32_t stop[] = {999, out[5], out[9]};
  o.stop = stop;
  o.stop_count = 3;
  const auto first = std::find(out, out + 13, out[5]) - out;
  const auto other = std::find(out, out + 13, out[9]) - out;
  std::fill(again, again + 13, -1);
  ASSERT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_OK);
  EXPECT_EQ(count, static_cast<uint64_t>(std::min(first, other)) + 1);
  EXPECT_EQ(std::memcmp(out, again, count * sizeof *out), 0);
  EXPECT_EQ(again[count], -1);
  o.stop = nullptr;
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_BAD_ARGUMENT);
  // A host that was built before this field existed: memory after its struct is not read.
  o.struct_size = offsetof(stw_generate_options, stop);
  ASSERT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_OK);
  EXPECT_EQ(count, 13u);
  o.struct_size = sizeof o;
  o.stop_count = 0;
  o.out_capacity = 14;
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_UNSUPPORTED_SHAPE);
  o.out_capacity = UINT64_MAX;
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_UNSUPPORTED_SHAPE);
  o.out_capacity = 1;
  const int32_t outside[] = {1, 256};
  o.prompt = outside;
  o.prompt_count = 2;
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_BAD_ARGUMENT);
  o.temperature = NAN;
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_BAD_ARGUMENT);
  o.temperature = 0;
  o.prompt = prompt;
  // A NaN in the embedding table, which is also the matrix that makes the logits.
  static_cast<float*>(view_of(w.trainer.get(), 0)->dl_tensor.data)[0] = NAN;
  stw_trainer_cancel(w.trainer.get());
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_CANCELLED);
  EXPECT_EQ(stw_trainer_generate(w.trainer.get(), &o, &count, nullptr), STW_NON_FINITE);
  EXPECT_EQ(count, 13u);  // from the last call that succeeded
}

// The largest rate and decay, times the largest factor of a group: parameters move far, but stay finite.
TEST(Step, TheLargestRatesStayFinite) {
  auto group = sized<stw_parameter_group>();
  group.set_mask = STW_SET_GROUP_RATE | STW_SET_GROUP_DECAY;
  group.pattern = "*";
  group.learning_rate = group.weight_decay = 1e6;
  auto o = sized<stw_trainer_options>();
  o.set_mask = STW_SET_WEIGHT_DECAY | STW_SET_BETA1;
  o.weight_decay = 1e6f;
  for (const uint32_t optimizer : {STW_OPTIMIZER_ADAMW, STW_OPTIMIZER_LION, STW_OPTIMIZER_MUON})
    for (const size_t groups : {0, 1}) {
      auto p = plan_of();
      p.optimizer = optimizer;
      p.groups = &group;
      p.group_count = groups;
      o.beta1 = std::nextafter(1.0f, 0.0f);
      World w(tiny_gpt2, p, &o);
      TokenBatch batch(4, 16);
      EXPECT_EQ(step(w.trainer.get(), batch.batch(1e6)).skipped, 0u);
      for (const auto& values : values_of(w))
        for (const float x : values) ASSERT_TRUE(std::isfinite(x)) << optimizer << ' ' << groups;
    }
}

TEST(Step, RunsRefuseRatesThatDoNotFit) {
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(1000));
  World w(tiny_gpt2, plan_of());
  const State before = state_of(w);
  const auto refused = [&](const char* field, const std::function<void(stw_run_options&)>& change) {
    auto o = run_options(3);
    change(o);
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &o, &error), STW_BAD_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(field), std::string::npos) << error.message;
  };
  for (const double rate : {1e39, 1e300, -1.0, double(INFINITY), double(NAN)}) {
    refused("learning_rate", [&](auto& o) { o.learning_rate = rate; });
    refused("min_rate", [&](auto& o) {
      o.set_mask = STW_SET_MIN_RATE;
      o.min_rate = rate;
    });
  }
  refused("base_batch", [&](auto& o) {
    o.learning_rate = 9e5;
    o.base_batch = 1;
  });
  auto o = sized<stw_trainer_options>();
  o.set_mask = STW_SET_WEIGHT_DECAY;
  o.weight_decay = 1e38f;
  stw_trainer* trainer = nullptr;
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_create(&trainer, w.device.get(), w.model.get(), w.plan.get(), &o, &error),
            STW_BAD_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("weight_decay"), std::string::npos) << error.message;
  EXPECT_EQ(state_of(w), before);
}

}  // namespace
}  // namespace stw::api_test
