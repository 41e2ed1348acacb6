// Adapters over quantized matrices train like adapters over a model whose files hold the dequantized values.
#include <cmath>

#include "tests/src/small_models.h"

namespace stw::quantize_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 4, sequence = 24;

struct Case {
  const char* name;
  std::string config;
  Precision precision;
  Quantize quantize, embeddings = Quantize::none;
};

class Quantized : public testing::TestWithParam<Case> {
 protected:
  // A folder with a model and adapters. `is_rounded`: its weights are replaced by the values of their codes.
  std::string folder(bool is_rounded) {
    const auto model = model_of(GetParam().config);
    Request r = request_for(batch_size, sequence, 2);
    OpenTrainer trainer(model, plan_for(*model, r));
    std::vector<double> figures;
    EXPECT_TRUE(take_step(*trainer, batch_for(*model, 1, batch_size, sequence), batch_size, figures));
    if (is_rounded)
      for (size_t p = 0; p < model->parameters().size(); ++p) {
        const Tensor& t = model->graph().at(model->parameters()[p]);
        const bool is_of_block = t.name.find("layers.") != std::string::npos ||
                                 t.name.find(".layer.") != std::string::npos || t.name.find("h.") == 0 ||
                                 t.name.find(".h.") != std::string::npos;
        if (t.shape.rank != 2 || t.name.ends_with("wpe.weight")) continue;
        if (is_encoder_ && !is_of_block && !t.name.ends_with("word_embeddings.weight")) continue;
        const Quantize how = is_of_block ? GetParam().quantize : GetParam().embeddings;
        if (how == Quantize::none) continue;
        const auto view = trainer->view(p, TensorView::parameter);
        EXPECT_TRUE(view);
        const auto count = static_cast<int64_t>(t.shape.elements());
        const auto* values = static_cast<const float*>(view->data);
        trainer->write_parameter(p, 0, rounded({values, values + count}, how).data(),
                                 static_cast<uint64_t>(count));
      }
    const std::string path = folder_ / (is_rounded ? "rounded" : "own");
    EXPECT_TRUE(trainer->export_model(path));
    return path;
  }
  std::vector<float> rounded(const std::vector<float>& values, Quantize how) const {
    using namespace kernels;
    const WeightCodes codes = how == Quantize::nf4 ? WeightCodes::nf4 : WeightCodes::int8;
    std::vector<uint8_t> code(values.size());
    std::vector<float> scales(values.size() / weight_block + 1), result;
    quantize_weights(codes, values.data(), static_cast<int64_t>(values.size()), code.data(), scales.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const float value = codes == WeightCodes::int8
                              ? static_cast<float>(static_cast<int8_t>(code[i]))
                              : nf4_values.of[i % 2 == 0 ? code[i / 2] >> 4 : code[i / 2] & 15];
      result.push_back(value * scales[i / weight_block]);
    }
    return result;
  }
  std::shared_ptr<const Model> model(const std::string& path) const {
    ModelSource source;
    source.source = path;
    source.adapters = adapters_of_all(0.1);
    return open_model(source);
  }
  // A request for a plan that stores matrices in these formats.
  Request request(Quantize quantize, Quantize embeddings) const {
    Request r = request_for(batch_size, sequence, 2);
    r.precision = GetParam().precision;
    r.quantize = quantize, r.quantize_embeddings = embeddings;
    return r;
  }
  Request numbers() const { return request(Quantize::none, Quantize::none); }
  Request codes() const { return request(GetParam().quantize, GetParam().embeddings); }
  // Trains some steps and returns the adapters' state. Works only if nothing lies in host memory.
  Trained train(const std::string& path, const Request& r, const Device& device = best_device()) {
    const auto m = model(path);
    OpenTrainer trainer(m, plan_for(*m, r), {}, device);
    Trained outcome;
    for (uint64_t step = 0; step < 3; ++step)
      EXPECT_TRUE(
          take_step(*trainer, batch_for(*m, 10 + step, batch_size, sequence), batch_size, outcome.figures));
    if (!is_encoder_) evaluate(*trainer, folder_, outcome.figures);
    const GlobalBatch prompt = random_batch(3, 1, sequence);
    if (const auto logits = trainer->logits(prompt.tokens.data(), 9); logits)
      outcome.figures.push_back(static_cast<double>((*logits)[6]));
    outcome.state = trainer.state();
    std::erase_if(outcome.state, [](const auto& t) { return t.first.find(".lora_") == std::string::npos; });
    return outcome;
  }
  TemporaryDirectory folder_;
  const bool is_encoder_ = GetParam().config.find("ForSequenceClassification") != std::string::npos;
};

TEST_P(Quantized, TrainsAsOverWeightsThatAreRounded) {
  const std::string own = folder(false), by_hand = folder(true);
  const Trained expected = train(by_hand, numbers()), trained = train(own, codes());
  ASSERT_FALSE(trained.state.empty());
  expect_same(trained, expected);
  EXPECT_NE(train(own, numbers()).figures, expected.figures);
}

TEST_P(Quantized, NoBudgetChangesABit) {
  const std::string path = folder(false);
  const Trained expected = train(path, codes());
  ASSERT_FALSE(expected.state.empty());
  for (const int64_t micro_batch : {1, 3}) {
    Request r = codes();
    r.micro_batch = micro_batch;
    r.threads = static_cast<int>(micro_batch);
    r.recompute = micro_batch == 1 ? Recompute::full : Recompute::none;
    expect_same(train(path, r), expected, "micro-batch " + std::to_string(micro_batch));
  }
  Request least = codes();
  least.memory_bytes = 1;
  const auto refused = Planned::make(*model(path), least);
  ASSERT_TRUE(refused);
  least.memory_bytes = (*refused)->plan.minimum_bytes;
  expect_same(train(path, least), expected, "smallest budget");
  // Codes may lie in host memory too.
  least.host_bytes = uint64_t{1} << 30;
  least.memory_bytes = 1;
  const auto with_host = Planned::make(*model(path), least);
  ASSERT_TRUE(with_host);
  least.memory_bytes = (*with_host)->plan.minimum_bytes;
  const auto planned = plan_for(*model(path), least);
  EXPECT_GT(planned->plan.decisions.offload[Offloaded::weights], 0);
  const Trained offloaded = train(path, least);
  for (size_t i = 0; i < expected.figures.size(); ++i)
    EXPECT_EQ(offloaded.figures[i], expected.figures[i]) << i;
  for (const kernels::Isa isa :
       {kernels::Isa::scalar, kernels::Isa::avx2, kernels::Isa::avx512, kernels::Isa::neon})
    if (const Device* device = device_with(isa); device && isa != kernels::best_isa())
      expect_same(train(path, codes(), *device), expected);
}

// A checkpoint of adapters can only be restored on the same base weights.
TEST_P(Quantized, CheckpointsNameTheirBaseWeights) {
  const std::string path = folder(false), checkpoint = folder_ / "checkpoint.stw";
  const auto m = model(path);
  OpenTrainer trainer(m, plan_for(*m, codes()));
  std::vector<double> figures, again;
  ASSERT_TRUE(take_step(*trainer, batch_for(*m, 1, batch_size, sequence), batch_size, figures));
  ASSERT_TRUE(trainer->save(checkpoint));
  ASSERT_TRUE(take_step(*trainer, batch_for(*m, 2, batch_size, sequence), batch_size, figures));
  Request r = codes();
  r.micro_batch = 1;
  OpenTrainer same(m, plan_for(*m, r));
  ASSERT_TRUE(same->restore(checkpoint));
  ASSERT_TRUE(take_step(*same, batch_for(*m, 2, batch_size, sequence), batch_size, again));
  EXPECT_EQ(std::vector<double>(figures.begin() + 2, figures.end()), again);
  const auto refuses = [&](const Request& other, const char* field) {
    OpenTrainer wrong(m, plan_for(*m, other));
    const Status status = wrong->restore(checkpoint);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::bad_state);
    EXPECT_NE(status.error().message.find(field), std::string::npos) << status.error().message;
  };
  for (const Quantize other : {Quantize::none, Quantize::nf4, Quantize::int8})
    if (other != GetParam().quantize) refuses(request(other, GetParam().embeddings), "quantize: expected");
  refuses(
      request(GetParam().quantize, GetParam().embeddings == Quantize::none ? Quantize::int8 : Quantize::none),
      "quantize_embeddings: expected");
}

TEST_P(Quantized, CodesHaveNoViewButCanBeWrittenAsNumbers) {
  const auto m = model(folder(false));
  OpenTrainer trainer(m, plan_for(*m, codes()));
  const auto logits = [&] {
    return static_cast<double>((*trainer->logits(random_batch(3, 1, sequence).tokens.data(), 9))[6]);
  };
  const double before = logits();
  for (size_t p = 0; p < m->parameters().size(); ++p) {
    const Tensor& t = trainer->graph().at(m->parameters()[p]);
    if (!is_quantized(t.format)) continue;
    const auto view = trainer->view(p, TensorView::parameter);
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code, Code::unsupported);
    std::vector<float> values(t.shape.elements());
    ASSERT_TRUE(m->read(t, 0, values.size(), values.data()));
    std::vector<float> reversed(values.rbegin(), values.rend());
    trainer->write_parameter(p, 0, reversed.data(), reversed.size());
    EXPECT_NE(logits(), before) << t.name;
    trainer->write_parameter(p, 0, values.data(), values.size());
    EXPECT_EQ(logits(), before) << t.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Quantized,
    testing::Values(Case{"gpt2_nf4", small_gpt2(), Precision::fp32, Quantize::nf4},
                    Case{"llama_int8", small_llama(), Precision::fp32, Quantize::int8},
                    Case{"gpt2_embeddings", small_gpt2(), Precision::fp32, Quantize::nf4, Quantize::int8},
                    Case{"qwen3_embeddings", small_qwen3(), Precision::fp32, Quantize::nf4, Quantize::int8},
                    // This case needs scratch memory for sums in addition to the values.
                    Case{"qwen3_bf16", small_qwen3(), Precision::bf16, Quantize::nf4, Quantize::int8},
                    // The head's features are summed in three pieces.
                    Case{"qwen3_600_tokens", with_vocabulary(small_qwen3(), 600), Precision::bf16,
                         Quantize::none, Quantize::int8},
                    Case{"bert_nf4", classifier_of(small_bert()), Precision::fp32, Quantize::nf4},
                    Case{"distilbert_int8", classifier_of(small_distilbert()), Precision::fp32,
                         Quantize::int8, Quantize::int8},
                    Case{"bloom_nf4", small_bloom(), Precision::fp32, Quantize::nf4},
                    Case{"llama_embeddings_alone", small_llama(), Precision::fp32, Quantize::none,
                         Quantize::int8}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stw::quantize_test
