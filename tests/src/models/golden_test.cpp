// The whole path from a Hugging Face folder to gradients and logits, against transformers' fp64 values.
#include <algorithm>
#include <cmath>

#include "planner/plan/plan_file.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/temporary_directory.h"

namespace stw::golden_test {
namespace {

using namespace testing_tools;

constexpr int64_t samples = 3, sequence = 16, vocabulary = 97;

struct Golden {
  std::shared_ptr<const Model> model;
  GlobalBatch batch;
  double loss = 0;
  std::vector<float> logits;  // (samples, sequence, vocabulary)
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::string, double> bf16_error;  // of transformers, by kind of tensor
};

// The name without layer numbers. The error of a single tensor in one run is partly chance. The largest error
// of all tensors of a kind varies less.
std::string kind_of(std::string name) {
  std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
  return name;
}

Golden open_golden(const std::string& name) {
  Golden golden;
  ModelSource source;
  source.source = folder_of(name);
  golden.model = open_model(source);
  auto reader = SafetensorsReader::open(folder_of(name) + "/expected.safetensors");
  if (!reader) {
    ADD_FAILURE() << reader.error().message;
    return golden;
  }
  golden.batch.sequence = sequence;
  golden.batch.tokens = read_tensor<int32_t>(*reader, "tokens");
  golden.batch.targets = read_tensor<int32_t>(*reader, "targets");
  golden.loss = read_tensor<double>(*reader, "loss")[0];
  golden.logits = read_tensor<float>(*reader, "logits");
  for (const SafetensorsInfo& info : reader->tensors()) {
    if (info.name.starts_with("bf16_error.")) {
      double& error = golden.bf16_error[kind_of(info.name.substr(11))];
      error = std::max(error, read_tensor<double>(*reader, info.name)[0]);
    }
    if (info.name.starts_with("grad."))
      golden.gradients[info.name.substr(5)] = read_tensor<float>(*reader, info.name);
  }
  return golden;
}

struct Case {
  const char* model;
  Precision precision;
  int threads;
  int64_t micro_batch;
};

// Allowed relative error. fp32 must be close to fp64. bf16 may be off by 0.01 more than transformers in bf16;
// by 0.02 more for adapters, which PEFT keeps in fp32, and for Gemma, where sums of few numbers are rounded
// more often (0.0397 for the 12 weights of a head norm, transformers 0.0272).
double tolerance_of(const Golden& golden, const Case& c, const std::string& tensor) {
  if (c.precision == Precision::fp32) return tensor == "loss" ? 1e-6 : 1e-5;
  const auto error = golden.bf16_error.find(kind_of(tensor));
  EXPECT_NE(error, golden.bf16_error.end()) << tensor;
  const std::string model = c.model;
  return error == golden.bf16_error.end()
             ? 0
             : error->second + (model.starts_with("adapter") || model.starts_with("gemma") ? 2e-2 : 1e-2);
}

class GoldenModel : public testing::TestWithParam<Case> {};

TEST_P(GoldenModel, LossGradientsAndLogitsAgreeWithTransformers) {
  const Case& c = GetParam();
  const Golden golden = open_golden(c.model);
  ASSERT_TRUE(golden.model);
  ASSERT_TRUE(golden.model->has_weights());
  ASSERT_EQ(golden.batch.target_count(), 41u);
  Request request = request_for(samples, sequence, c.threads);
  request.precision = c.precision;
  request.micro_batch = c.micro_batch;
  request.quantize = golden.model->has_codes() ? Quantize::nf4 : Quantize::none;
  const auto planned = plan_for(*golden.model, request);
  ASSERT_TRUE(planned);

  GradientSums sums;
  TrainerOptions options;
  options.gradient_hook = [&](const GradientView& view) {
    EXPECT_EQ(*view.target_count, 41u);
    sums = gradients_in(*planned, view);
    return true;
  };
  auto trainer = trainer_for(golden.model, planned, options);
  ASSERT_TRUE(trainer);

  // Logits of every prefix, from the key-value cache.
  std::vector<float> all;
  for (int64_t sample = 0; sample < samples; ++sample)
    for (int64_t count = 1; count <= sequence; ++count) {
      auto logits =
          trainer->logits(golden.batch.tokens.data() + sample * sequence, static_cast<uint64_t>(count));
      ASSERT_TRUE(logits) << logits.error().message;
      all.insert(all.end(), *logits, *logits + vocabulary);
    }
  ASSERT_EQ(all.size(), golden.logits.size());
  EXPECT_LE(relative(all.data(), golden.logits.data(), all.size()), tolerance_of(golden, c, "logits"));

  auto result = trainer->step(golden.batch.source(), samples, 1e-3);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->skip, kernels::skip_none);
  EXPECT_EQ(result->targets, 41u);
  EXPECT_NEAR(result->loss, golden.loss, tolerance_of(golden, c, "loss") * golden.loss);
  ASSERT_EQ(sums.size(), golden.gradients.size());
  double norm = 0;
  for (auto& [name, values] : sums) {
    for (double& v : values) {
      v /= 41;
      norm += v * v;
    }
    const auto expected = golden.gradients.find(name);
    ASSERT_NE(expected, golden.gradients.end()) << name;
    ASSERT_EQ(values.size(), expected->second.size()) << name;
    values = in_file_order(golden.model->graph(), name, values);
    EXPECT_LE(relative(values.data(), expected->second.data(), values.size()),
              tolerance_of(golden, c, "grad." + name))
        << name;
  }
  EXPECT_NEAR(result->grad_norm, std::sqrt(norm), 1e-5 * std::sqrt(norm));
}

std::string case_name(const testing::TestParamInfo<Case>& c) {
  return std::string(c.param.model) + "_" + name_of(c.param.precision) + "_" +
         std::to_string(c.param.threads);
}

INSTANTIATE_TEST_SUITE_P(
    Families, GoldenModel,
    testing::Values(Case{"gpt2", Precision::fp32, 1, 0}, Case{"gpt2", Precision::fp32, 2, 2},
                    Case{"bloom", Precision::fp32, 1, 0}, Case{"bloom", Precision::fp32, 2, 2},
                    Case{"bloom", Precision::bf16, 1, 0}, Case{"llama", Precision::fp32, 1, 0},
                    Case{"llama", Precision::fp32, 2, 2}, Case{"mistral", Precision::fp32, 1, 0},
                    Case{"mistral", Precision::fp32, 2, 2}, Case{"gemma3_text", Precision::fp32, 1, 0},
                    Case{"gemma3_text", Precision::fp32, 2, 2}, Case{"gemma3_text", Precision::bf16, 1, 0},
                    Case{"gemma3", Precision::fp32, 2, 1}, Case{"gemma3", Precision::bf16, 1, 0},
                    Case{"phi3", Precision::fp32, 1, 0}, Case{"phi3", Precision::fp32, 2, 2},
                    Case{"qwen2", Precision::fp32, 1, 0}, Case{"qwen2", Precision::fp32, 2, 2},
                    Case{"qwen3", Precision::fp32, 1, 0}, Case{"qwen3", Precision::fp32, 2, 2},
                    Case{"smollm3", Precision::fp32, 1, 0}, Case{"smollm3", Precision::fp32, 2, 2},
                    Case{"adapter_bloom", Precision::fp32, 2, 1},
                    Case{"adapter_bloom", Precision::bf16, 1, 0}, Case{"adapter_gpt2", Precision::fp32, 1, 0},
                    Case{"adapter_llama", Precision::fp32, 2, 2},
                    Case{"adapter_qwen3", Precision::fp32, 2, 1},
                    Case{"adapter_llama_nf4", Precision::fp32, 2, 1},
                    Case{"adapter_llama_nf4", Precision::bf16, 1, 0},
                    Case{"adapter_gpt2", Precision::bf16, 1, 0}, Case{"adapter_llama", Precision::bf16, 1, 0},
                    Case{"adapter_qwen3", Precision::bf16, 1, 0}, Case{"gpt2", Precision::bf16, 1, 0},
                    Case{"llama", Precision::bf16, 1, 0}, Case{"mistral", Precision::bf16, 1, 0},
                    Case{"qwen2", Precision::bf16, 1, 0}, Case{"phi3", Precision::bf16, 1, 0},
                    Case{"smollm3", Precision::bf16, 1, 0}, Case{"qwen3", Precision::bf16, 1, 0}),
    case_name);

TEST(GoldenAdapters, MergeAsPeftDoes) {
  for (const char* name : {"adapter_bloom",
                           "adapter_gpt2",
                           "adapter_llama",
                           "adapter_qwen3",
                           "adapter_encoder_bert",
                           "adapter_encoder_bert_dense",
                           "adapter_encoder_bert_pooler",
                           "adapter_encoder_roberta",
                           "adapter_encoder_distilbert",
                           "adapter_encoder_electra",
                           "adapter_encoder_modernbert",
                           "adapter_encoder_bert_tokens",
                           "adapter_encoder_albert_tokens",
                           "adapter_encoder_modernbert_tokens",
                           "adapter_tokens_llama",
                           "adapter_encoder_roberta_mlm",
                           "adapter_encoder_distilbert_mlm",
                           "adapter_encoder_modernbert_mlm",
                           "adapter_encoder_bert_mlm",
                           "adapter_encoder_albert_mlm"}) {
    TemporaryDirectory folder;
    ModelSource source;
    source.source = folder_of(name);
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    ASSERT_TRUE(write_merged(*model, folder / "merged"));
    auto expected = SafetensorsReader::open(folder_of(name) + "/expected.safetensors"),
         merged = SafetensorsReader::open(folder / "merged");
    ASSERT_TRUE(expected && merged);
    int compared = 0;
    for (const SafetensorsInfo& info : expected->tensors()) {
      if (!info.name.ends_with(".merged")) continue;
      const std::vector<float> theirs = read_tensor<float>(*expected, info.name),
                               ours = read_tensor<float>(*merged, info.name.substr(0, info.name.size() - 7));
      ASSERT_EQ(ours.size(), theirs.size());
      EXPECT_LE(relative(ours.data(), theirs.data(), ours.size()), 1e-6) << info.name;
      ++compared;
    }
    EXPECT_GE(compared, 2);
  }
}

// Compares the values of a 4-bit model, and the codes that our own quantization chooses, bit by bit.
TEST(GoldenCodes, AgreeWithBitsandbytes) {
  ModelSource source;
  source.source = folder_of("llama_nf4");
  source.adapters = {2, 2, false, 0, {all_targets}};
  const auto model = open_model(source);
  auto expected = SafetensorsReader::open(folder_of("adapter_llama_nf4") + "/expected.safetensors"),
       files = SafetensorsReader::open(folder_of("llama_nf4"));
  ASSERT_TRUE(model && expected && files);
  EXPECT_TRUE(model->has_codes());
  EXPECT_EQ(model->config().json.find("quantization_config"), nullptr);
  Request request = request_for(samples, sequence);
  request.quantize = Quantize::nf4;
  const auto planned = plan_for(*model, request);
  const auto codes_of = [](const std::vector<float>& values) {
    std::vector<uint8_t> codes(values.size() / 2);
    std::vector<float> scales(values.size() / kernels::weight_block);
    kernels::quantize_weights(kernels::WeightCodes::nf4, values.data(), static_cast<int64_t>(values.size()),
                              codes.data(), scales.data());
    return codes;
  };
  int quantized = 0, compared = 0;
  for (const int t : model->parameters()) {
    const Tensor& p = model->graph().at(t);
    if (p.adapter_of >= 0) continue;
    const bool is_kept = p.name == "model.layers.1.mlp.down_proj.weight",
               is_code = planned->graph.at(t).format == Format::nf4;
    EXPECT_EQ(is_code, p.shape.rank == 2 && !is_kept && p.name.find("layers.") != p.name.npos) << p.name;
    std::vector<float> values(p.shape.elements()), part(values.size() - 37);
    ASSERT_TRUE(model->read(p, 0, values.size(), values.data()));
    ASSERT_TRUE(model->read(p, values.size() - part.size(), part.size(), part.data()));
    EXPECT_TRUE(std::equal(part.rbegin(), part.rend(), values.rbegin())) << p.name;  // from any element on
    // Quantizing the values gives the same codes, so that codes can be copied into the arena.
    if (is_code) { EXPECT_EQ(codes_of(values), read_tensor<uint8_t>(*files, p.name)) << p.name; }
    quantized += is_code;
    if (!expected->find("value." + p.name)) continue;
    EXPECT_EQ(values, read_tensor<float>(*expected, "value." + p.name)) << p.name;
    EXPECT_EQ(codes_of(read_tensor<float>(*expected, "source." + p.name)),
              read_tensor<uint8_t>(*files, p.name))
        << p.name;
    ++compared;
  }
  EXPECT_EQ(quantized, 13);
  EXPECT_EQ(compared, 2);
}

// A merged model has numbers again, of the type that the codes were made from.
TEST(GoldenCodes, MergeToNumbers) {
  TemporaryDirectory folder;
  const Golden golden = open_golden("adapter_llama_nf4");
  ASSERT_TRUE(golden.model);
  ASSERT_TRUE(write_merged(*golden.model, folder / "merged"));
  ModelSource source;
  source.source = folder / "merged";
  const auto merged = open_model(source);
  ASSERT_TRUE(merged);
  EXPECT_FALSE(merged->has_codes());
  EXPECT_EQ(merged->config().json.find("quantization_config"), nullptr);
  const auto trainer = trainer_for(merged, plan_for(*merged, request_for(samples, sequence)));
  const auto logits = trainer->logits(golden.batch.tokens.data(), sequence);
  ASSERT_TRUE(logits);
  EXPECT_LE(relative(*logits, golden.logits.data() + (sequence - 1) * vocabulary, vocabulary), 1e-5);
}

TEST(GoldenConfig, OlderSpellingIsTheSameModel) {
  for (const char* name :
       {"gemma3", "gemma3_text", "llama", "mistral", "phi3", "qwen2", "qwen3", "smollm3"}) {
    ModelSource source;
    source.source = folder_of(name) + "/config_legacy.json";
    const auto legacy = open_model(source);
    source.source = folder_of(name) + "/config.json";
    const auto current = open_model(source);
    ASSERT_TRUE(legacy && current);
    EXPECT_EQ(describe(legacy->graph()), describe(current->graph()));
  }
}

}  // namespace
}  // namespace stw::golden_test
