// Which matrices become codes, what they take in a plan, and what that costs by the cost model.
#include "planner/quantize.h"

#include "kernels/common/weight_codes.h"
#include "planner/op_table.h"
#include "planner/pricing.h"
#include "src/planned.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

Graph quantized_graph(const SmallModel& model, Quantize quantize, Precision precision = Precision::bf16) {
  Numerics n;
  n.precision = precision;
  n.quantize = quantize;
  const ModelConfig config = config_of(model);
  EXPECT_TRUE(check_numerics(config, n));
  return build_model(config, 33, n);
}

TEST(Quantize, BytesAreThoseOfTheKernels) {
  for (const int64_t n : {1, 2, 31, 32, 33, 63, 64, 65, 1000, 4096, 1048577})
    for (const auto& [format, codes] : {std::pair{Format::nf4, kernels::WeightCodes::nf4}, {Format::int8, kernels::WeightCodes::int8}})
      EXPECT_EQ(quantized_bytes(format, static_cast<uint64_t>(n)), kernels::weight_codes_bytes(codes, n)) << n;
}

// All matrices of blocks, with adapters of their own or not, and nothing else.
TEST(Quantize, IsForTheFrozenMatricesOfBlocks) {
  for (const SmallModel& model : {SmallModel{small_gpt2(), adapters_of_all()}, SmallModel{small_llama(), adapters_of_some()}, SmallModel{small_qwen3(), adapters_of_all()}})
    for (const Quantize quantize : {Quantize::none, Quantize::nf4, Quantize::int8}) {
      const Graph g = quantized_graph(model, quantize);
      int codes = 0;
      for (const Tensor& t : g.tensors) {
        codes += is_quantized(t.format);
        if (t.kind != Kind::parameter || t.adapter_of >= 0) continue;
        const bool is_of_block = t.name.find("layers.") != std::string::npos || t.name.find("h.") == 0 || t.name.find(".h.") != std::string::npos;
        const Format expected = !is_of_block || t.shape.rank != 2 || quantize == Quantize::none ? Format::bf16 : quantize == Quantize::nf4 ? Format::nf4 : Format::int8;
        EXPECT_EQ(t.format, expected) << t.name;
      }
      EXPECT_EQ(codes, quantize == Quantize::none ? 0 : 3 * (g.architecture == "gpt2" ? 4 : 7));
    }
}

TEST(Quantize, WithoutAdaptersIsRefused) {
  Numerics n;
  n.quantize = Quantize::nf4;
  const Status status = check_numerics(config_of(small_llama()), n);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::bad_argument);
  EXPECT_NE(status.error().message.find("quantize nf4 is for the matrices below low-rank adapters"), std::string::npos) << status.error().message;
}

// The values of all matrices of an op lie in front of its scratch memory, whatever the rows.
TEST(Quantize, ValuesAreScratchMemoryOfTheOpsThatReadThem) {
  const SmallModel model{small_llama(), adapters_of_all()};
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Graph plain = quantized_graph(model, Quantize::none, precision), codes = quantized_graph(model, Quantize::int8, precision);
    ASSERT_EQ(plain.ops.size(), codes.ops.size());
    int more = 0;
    for (const auto& list : {&Graph::ops, &Graph::gradient_ops, &Graph::evaluate_ops, &Graph::generate_ops})
      for (size_t i = 0; i < (plain.*list).size(); ++i) {
        const Op &a = (plain.*list)[i], &b = (codes.*list)[i];
        ASSERT_EQ(a.kind, b.kind);
        uint64_t values = 0;
        if (a.kind == OpKind::linear || a.kind == OpKind::linear_input_gradient)
          for (int t : b.inputs)
            if (t >= 0 && codes.at(t).format == Format::int8) values += round_up(codes.at(t).shape.elements() * element_bytes(codes.compute), 64);
        more += values > 0;
        for (const int threads : {0, 2})
          EXPECT_EQ(op_row(b.kind).workspace(codes, b, {2, 66, threads}), op_row(a.kind).workspace(plain, a, {2, 66, threads}) + values) << op_row(a.kind).name;
      }
    EXPECT_EQ(more, 3 * (4 + 4 + 4 + 4) - 1);   // nothing trained lies below what the first block's first product reads
  }
}

uint64_t parameters_of(const Planned& planned) { return planned.plan.bytes.of[static_cast<size_t>(Class::parameters)]; }

class QuantizedPlan : public testing::Test {
 protected:
  QuantizedPlan() {
    ModelSource source;
    source.source = "qwen2.5-0.5b";
    source.adapters = {16, 32, false, 0, {all_targets}};
    model_ = *Model::open(source);
    request_.device = "rtx4060";
    request_.precision = Precision::bf16;
    request_.memory_bytes = uint64_t{8} << 30;
    request_.global_batch = 16;
    request_.sequence = 512;
    request_.state_bits = 32;
  }
  std::shared_ptr<const Planned> plan(Quantize quantize) {
    request_.quantize = quantize;
    auto planned = Planned::make(*model_, request_);
    EXPECT_TRUE(planned) << planned.error().message;
    return *planned;
  }
  std::shared_ptr<const Model> model_;
  Request request_;
};

TEST_F(QuantizedPlan, TakesFourAndAHalfOrEightAndAHalfBitsAnElement) {
  uint64_t elements = 0;
  const auto nf4 = plan(Quantize::nf4);
  for (const Tensor& t : nf4->graph.tensors)
    if (is_quantized(t.format)) elements += t.shape.elements();
  EXPECT_EQ(elements, 357826560u);   // 24 layers of 14,909,440
  const uint64_t plain = parameters_of(*plan(Quantize::none));
  // Alignment apart.
  EXPECT_NEAR(static_cast<double>(plain - parameters_of(*nf4)) / static_cast<double>(elements), 2 - 4.5 / 8, 1e-3);
  EXPECT_NEAR(static_cast<double>(plain - parameters_of(*plan(Quantize::int8))) / static_cast<double>(elements), 2 - 8.5 / 8, 1e-3);
}

// Making the values takes time, the more so the smaller the micro-batch.
TEST_F(QuantizedPlan, CostsWhatItMoves) {
  double before = 0;
  for (const int64_t micro_batch : {16, 4, 1}) {
    request_.micro_batch = micro_batch;
    request_.recompute = Recompute::full;
    const auto step = [&](Quantize q) { return static_cast<double>(plan(q)->plan.step_picoseconds); };
    const double plain = step(Quantize::none), nf4 = step(Quantize::nf4) / plain - 1, int8 = step(Quantize::int8) / plain - 1;
    EXPECT_GT(nf4, before);
    EXPECT_GT(int8, nf4);
    EXPECT_LT(nf4, 0.2);
    before = nf4;
  }
}

TEST_F(QuantizedPlan, IsWrittenAndReadAgain) {
  const auto made = plan(Quantize::nf4);
  EXPECT_NE(made->json.find("\"quantize\": \"nf4\""), std::string::npos);
  EXPECT_NE(made->report.find("357.83 M of the parameters are nf4: "), std::string::npos) << made->report;
  auto read = Planned::load(*model_, made->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics, made->plan.numerics);
  EXPECT_EQ((*read)->plan.request.quantize, Quantize::nf4);
  EXPECT_EQ((*read)->json, made->json);
  EXPECT_TRUE(made->verify());
}

TEST(QuantizedPlans, AreOfferedWhereNothingFits) {
  ModelSource source;
  source.source = "nano";
  source.adapters = adapters_of_all();
  const auto model = *Model::open(source);
  const auto offers = [&](Quantize quantize) {
    Request request;
    request.memory_bytes = uint64_t{1} << 20;
    request.global_batch = 12;
    request.sequence = 64;
    request.quantize = quantize;
    const auto made = *Planned::make(*model, request);
    EXPECT_FALSE(made->plan.fits);
    std::string text;
    for (const Relaxation& r : made->plan.relaxations)
      if (r.change.starts_with("quantize")) {
        text += r.change + ", ";
        EXPECT_TRUE(r.changes_numerics);
        EXPECT_GT(r.saves_bytes, uint64_t{1} << 18);
      }
    return text;
  };
  const std::string of_none = offers(Quantize::none);
  EXPECT_NE(of_none.find("quantize nf4"), std::string::npos);
  EXPECT_NE(of_none.find("quantize int8"), std::string::npos);
  EXPECT_EQ(offers(Quantize::int8), "quantize nf4, ");
  EXPECT_EQ(offers(Quantize::nf4), "");
}

}  // namespace
}  // namespace stw
