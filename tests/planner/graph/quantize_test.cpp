// Tests the choice of the matrices that are stored as codes, their bytes in a plan, and their cost in the
// cost model.
#include "planner/graph/quantize.h"

#include <set>

#include "planner/graph/op_table.h"
#include "planner/search/pricing.h"
#include "src/trainer/planned.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

Graph quantized_graph(const SmallModel& model, Quantize quantize, Precision precision = Precision::bf16,
                      Quantize embeddings = Quantize::none) {
  Numerics n;
  n.precision = precision;
  n.quantize = quantize;
  n.quantize_embeddings = embeddings;
  const ModelConfig config = config_of(model);
  EXPECT_TRUE(check_numerics(config, n));
  return build_model(config, 33, n);
}

// A matrix has its codes, padded to a multiple of 16 bytes, and then four bytes for each block of 64
// elements.
TEST(Quantize, BytesCountCodesAndScales) {
  struct Case {
    int64_t elements;
    uint64_t nf4, int8;
  };
  for (const Case& c : {Case{1, 20, 20},
                        {31, 20, 36},
                        {32, 20, 36},
                        {33, 36, 52},
                        {64, 36, 68},
                        {65, 56, 88},
                        {1000, 576, 1072},
                        {int64_t{size_limit}, size_limit / 2 + size_limit / 16, size_limit}}) {
    Tensor t;
    t.shape = {c.elements};
    t.format = Format::nf4;
    EXPECT_EQ(t.bytes(1), c.nf4) << c.elements;
    t.format = Format::int8;
    EXPECT_EQ(t.bytes(1), c.int8) << c.elements;
  }
}

// All matrices of blocks, with and without adapters of their own, and no other parameters.
TEST(Quantize, IsForTheFrozenMatricesOfBlocks) {
  for (const SmallModel& model :
       {SmallModel{small_gpt2(), adapters_of_all()}, SmallModel{small_llama(), adapters_of_some()},
        SmallModel{small_qwen3(), adapters_of_all()}})
    for (const Quantize quantize : {Quantize::none, Quantize::nf4, Quantize::int8}) {
      const Graph g = quantized_graph(model, quantize);
      int codes = 0;
      for (const Tensor& t : g.tensors) {
        codes += is_quantized(t.format);
        if (t.role != Role::parameter || t.adapter_of >= 0) continue;
        const bool is_of_block = t.name.find("layers.") != std::string::npos || t.name.find("h.") == 0 ||
                                 t.name.find(".h.") != std::string::npos;
        const Format expected = !is_of_block || t.shape.rank != 2 || quantize == Quantize::none ? Format::bf16
                                : quantize == Quantize::nf4                                     ? Format::nf4
                                                            : Format::int8;
        EXPECT_EQ(t.format, expected) << t.name;
      }
      EXPECT_EQ(codes, quantize == Quantize::none ? 0 : 3 * (g.architecture == "gpt2" ? 4 : 7));
    }
}

// The table of tokens and the head, under all of their names, but neither positions nor parameters of blocks.
TEST(Quantize, IsForEmbeddingsOnRequest) {
  for (const SmallModel& model :
       {SmallModel{small_gpt2(), adapters_of_all()}, SmallModel{small_llama(), adapters_of_some()},
        SmallModel{small_qwen3(), adapters_of_all()}}) {
    const Graph g = quantized_graph(model, Quantize::none, Precision::bf16, Quantize::int8);
    std::set<std::string> names;
    for (const Tensor& t : g.tensors)
      if (is_quantized(t.format)) names.insert(t.name);
    const bool is_gpt2 = g.architecture == "gpt2";
    EXPECT_EQ(names, (std::set<std::string>{is_gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight",
                                            "lm_head.weight"}));
    for (const Tensor& t : g.tensors) EXPECT_NE(t.format, Format::nf4);
    for (const auto& list : {&Graph::ops, &Graph::gradient_ops, &Graph::evaluate_ops, &Graph::generate_ops})
      for (const Op& op : g.*list)
        for (int t : op.inputs)
          EXPECT_TRUE(t < 0 || g.at(t).format == g.at(g.resolve(t)).format) << g.at(t).name;
  }
}

TEST(Quantize, WithoutAdaptersIsRefused) {
  for (const bool of_embeddings : {false, true}) {
    Numerics n;
    (of_embeddings ? n.quantize_embeddings : n.quantize) = Quantize::int8;
    const Status status = check_numerics(config_of(small_llama()), n);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::bad_argument);
    EXPECT_NE(status.error().message.find(
                  of_embeddings ? "quantize_embeddings int8 is for the matrices below low-rank adapters"
                                : "quantize int8 is for"),
              std::string::npos)
        << status.error().message;
  }
}

constexpr std::vector<Op> Graph::*program_ops[] = {&Graph::ops, &Graph::gradient_ops, &Graph::evaluate_ops,
                                                   &Graph::generate_ops};

// Calls body(op) for products with matrices that are codes.
template <class Body>
void for_coded_products(const Graph& g, const Body& body) {
  for (const auto& list : program_ops)
    for (const Op& op : g.*list)
      if ((op.kind == OpKind::linear || op.kind == OpKind::linear_input_gradient) &&
          quantized_operands(g, op) > 0)
        body(op);
}

// However few values may be decoded at once, pieces have the widths that products need, and together they
// cover the whole.
TEST(Quantize, ValuesAreDecodedInPieces) {
  std::set<std::pair<bool, ValuePieces::Cut>> seen;
  int64_t most_of_a_sum = 0;  // pieces of an input gradient's sum over one matrix's features
  for (const SmallModel& model :
       {SmallModel{small_llama(), adapters_of_all()}, SmallModel{small_qwen3(), adapters_of_all()},
        SmallModel{with_vocabulary(small_qwen3(), 600), adapters_of_all()}})
    for (const uint64_t at_once :
         {uint64_t{1}, uint64_t{1500}, uint64_t{4096}, uint64_t{9000}, uint64_t{1} << 30}) {
      Graph g = quantized_graph(model, Quantize::nf4, Precision::bf16, Quantize::int8);
      g.values_at_once = at_once;
      for_coded_products(g, [&](const Op& op) {
        const ValuePieces p = value_pieces(g, op);
        seen.insert({op.kind == OpKind::linear, p.cut});
        uint64_t all = 0, of_piece = 0;
        int64_t count = 0, inputs = 0, features = 0, matrices = 0, odd = 0;
        for (int t : op.inputs) {
          if (t < 0 || !is_quantized(g.at(t).format)) continue;
          const Shape& s = g.at(t).shape;
          all += s.elements(), inputs = s[1], features += s[0], ++matrices, odd += s[0] % 8 != 0,
                               count += (s[0] + p.width - 1) / std::max<int64_t>(p.width, 1);
          of_piece = std::max(of_piece, static_cast<uint64_t>(std::min(p.width, s[0]) * s[1]));
        }
        const ValueScratch scratch = value_scratch(g, op, 50);
        const bool stays_whole = op.kind == OpKind::linear_input_gradient && matrices > 1 && odd > 0 &&
                                 p.cut == ValuePieces::Cut::none;
        EXPECT_TRUE(stays_whole || (p.cut == ValuePieces::Cut::none) == (all <= at_once));
        EXPECT_EQ(scratch.sums > 0,
                  op.kind == OpKind::linear_input_gradient && p.cut == ValuePieces::Cut::features);
        if (p.cut == ValuePieces::Cut::none) return;
        const bool sums = op.kind == OpKind::linear_input_gradient && p.cut == ValuePieces::Cut::features;
        const int64_t unit = sums ? kernels::chain_terms : 16;  // least width
        EXPECT_GE(p.width, unit);
        EXPECT_EQ(p.width % unit, 0);
        if (sums && matrices == 1) most_of_a_sum = std::max(most_of_a_sum, p.count);
        if (p.cut == ValuePieces::Cut::inputs) {
          EXPECT_EQ(p.count, (inputs + p.width - 1) / p.width);
          EXPECT_GE(p.width * 8, inputs);
          of_piece = static_cast<uint64_t>(features * std::min(p.width, inputs));
        } else {
          EXPECT_EQ(p.count, count);
        }
        EXPECT_NEAR(static_cast<double>(scratch.values), static_cast<double>(2 * of_piece), 4 * 64);
        // A piece has more values than the limit only if it has the least width, or the width of a kernel's
        // tile. In the second case it has at most 16 · max(inputs, features) more.
        EXPECT_TRUE(p.width == unit ||
                    of_piece <= at_once + static_cast<uint64_t>(16 * std::max(inputs, features)))
            << of_piece;
      });
    }
  for (const bool forward : {false, true})
    EXPECT_TRUE(seen.count({forward, ValuePieces::Cut::none}) &&
                seen.count({forward, ValuePieces::Cut::features}));
  EXPECT_TRUE(seen.count({false, ValuePieces::Cut::inputs}));
  EXPECT_EQ(most_of_a_sum, 3);
  EXPECT_FALSE(seen.count({true, ValuePieces::Cut::inputs}));
}

// Tests that train small models (tests/src, tests/device) decode values in pieces of every kind.
TEST(Quantize, SmallModelsHavePiecesOfEveryKind) {
  std::set<ValuePieces::Cut> gradients;
  for (const SmallModel& model :
       {SmallModel{small_llama(), adapters_of_all()}, SmallModel{small_qwen3(), adapters_of_all()},
        SmallModel{small_gpt2(), adapters_of_all()}})
    for_coded_products(
        quantized_graph(model, Quantize::nf4, Precision::bf16, Quantize::int8), [&](const Op& op) {
          if (op.kind == OpKind::linear_input_gradient)
            gradients.insert(
                value_pieces(quantized_graph(model, Quantize::nf4, Precision::bf16, Quantize::int8), op).cut);
        });
  EXPECT_EQ(gradients.size(), 3u);
}

// Transposed matrices, and ops that mix codes with numbers, are decoded as a whole.
TEST(Quantize, SomeMatricesAreDecodedAsAWhole) {
  Graph g = quantized_graph({small_gpt2(), adapters_of_all()}, Quantize::int8);
  g.values_at_once = 1;
  for_coded_products(g, [&](const Op& op) { EXPECT_EQ(value_pieces(g, op).cut, ValuePieces::Cut::none); });
  g = quantized_graph({small_llama(), adapters_of_all()}, Quantize::int8);
  g.values_at_once = 1;
  for (Tensor& t : g.tensors)
    if (t.name.find("up_proj") != std::string::npos || t.name.find("k_proj") != std::string::npos)
      t.format = g.compute;
  int whole = 0;
  for_coded_products(g, [&](const Op& op) { whole += value_pieces(g, op).cut == ValuePieces::Cut::none; });
  EXPECT_EQ(whole, 3 * 2 * 4 - 1);
}

// Scratch memory begins with the values that an op decodes at once, then come the sums between pieces.
TEST(Quantize, ValuesAreScratchMemoryOfTheOpsThatReadThem) {
  const SmallModel model{small_llama(), adapters_of_all()};
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Graph plain = quantized_graph(model, Quantize::none, precision),
                codes = quantized_graph(model, Quantize::int8, precision, Quantize::int8);
    int more = 0;
    for (const auto& list : program_ops) {
      ASSERT_EQ((plain.*list).size(), (codes.*list).size());
      for (size_t i = 0; i < (plain.*list).size(); ++i) {
        const Op &a = (plain.*list)[i], &b = (codes.*list)[i];
        ASSERT_EQ(a.kind, b.kind);
        const bool is_product = a.kind == OpKind::linear || a.kind == OpKind::linear_input_gradient;
        const uint64_t scratch = is_product ? value_scratch(codes, b, 66).bytes() : 0;
        more += scratch > 0;
        for (const int threads : {0, 2})
          EXPECT_EQ(op_row(b.kind).workspace(codes, b, {2, 66, threads}),
                    op_row(a.kind).workspace(plain, a, {2, 66, threads}) + scratch)
              << op_row(a.kind).name;
      }
    }
    // Four lists of ops have four such products for each of three blocks. One input gradient is missing,
    // because there is no trained parameter below the first block's first product. The head has one product
    // in each list.
    EXPECT_EQ(more, 3 * (4 + 4 + 4 + 4) - 1 + 4);
  }
}

uint64_t parameters_of(const Planned& planned) {
  return planned.plan.bytes.of[static_cast<size_t>(MemoryClass::parameters)];
}

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
  std::shared_ptr<const Planned> plan(Quantize quantize, Quantize embeddings = Quantize::none) {
    request_.quantize = quantize;
    request_.quantize_embeddings = embeddings;
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
  EXPECT_EQ(elements, 357826560u);  // 24 layers of 14,909,440
  const uint64_t plain = parameters_of(*plan(Quantize::none));
  // Up to alignment.
  EXPECT_NEAR(static_cast<double>(plain - parameters_of(*nf4)) / static_cast<double>(elements), 2 - 4.5 / 8,
              1e-3);
  EXPECT_NEAR(
      static_cast<double>(plain - parameters_of(*plan(Quantize::int8))) / static_cast<double>(elements),
      2 - 8.5 / 8, 1e-3);
}

TEST_F(QuantizedPlan, EmbeddingsTakeHalfOfTheirBytes) {
  const uint64_t plain = parameters_of(*plan(Quantize::nf4)),
                 int8 = parameters_of(*plan(Quantize::nf4, Quantize::int8));
  // One table for both, as in the model.
  EXPECT_NEAR(static_cast<double>(plain - int8), 151936.0 * 896 * (2 - 8.5 / 8), 1e5);
}

// Scratch memory is a small part of the model, although its head is large.
TEST_F(QuantizedPlan, ValuesAreNeverHeldAsAWhole) {
  ModelSource source;
  source.source = "qwen2.5-7b";
  source.adapters = {16, 32, false, 0, {all_targets}};
  model_ = *Model::open(source);
  request_.memory_bytes = uint64_t{6} << 30;
  request_.sequence = 1024;
  request_.state_bits = 8;
  const auto made = plan(Quantize::nf4, Quantize::int8);
  EXPECT_TRUE(made->plan.fits);
  uint64_t most = 0;
  for_coded_products(
      made->graph, [&](const Op& op) { most = std::max(most, value_scratch(made->graph, op, 1024).values); });
  EXPECT_LE(most, uint64_t{68} << 20);
  EXPECT_GE(most, uint64_t{32} << 20);
}

// Thousands of buffers, some of them pieces of a matrix: the layout reaches the live bytes, so that the plan
// is proven optimal.
TEST_F(QuantizedPlan, LargeModelsAreLaidOutWithoutAGap) {
  ModelSource source;
  source.source = "qwen3-8b";
  source.adapters = {16, 32, false, 0, {all_targets}};
  model_ = *Model::open(source);
  request_.device = "rtx4060";
  request_.global_batch = 16;
  request_.sequence = 1024;
  request_.state_bits = 8;
  request_.precision = Precision::bf16;
  for (const uint64_t tenths : {74, 80}) {
    request_.memory_bytes = (tenths << 30) / 10;
    const auto made = plan(Quantize::nf4);
    EXPECT_TRUE(made->plan.fits);
    EXPECT_EQ(made->plan.layout_bound, made->plan.bytes.arena);
    EXPECT_EQ(made->plan.bound_picoseconds, made->plan.step_picoseconds);
  }
}

// Decoding takes time, and more with a smaller micro-batch.
TEST_F(QuantizedPlan, CostsTheTimeOfDecoding) {
  double before = 0;
  for (const int64_t micro_batch : {16, 4, 1}) {
    request_.micro_batch = micro_batch;
    request_.recompute = Recompute::full;
    const auto step = [&](Quantize q) { return static_cast<double>(plan(q)->plan.step_picoseconds); };
    const double plain = step(Quantize::none), nf4 = step(Quantize::nf4) / plain - 1,
                 int8 = step(Quantize::int8) / plain - 1;
    EXPECT_GT(nf4, before);
    EXPECT_GT(int8, nf4);
    EXPECT_LT(nf4, 0.2);
    before = nf4;
  }
}

TEST_F(QuantizedPlan, IsWrittenAndReadAgain) {
  const auto made = plan(Quantize::nf4, Quantize::int8);
  for (const char* field : {"\"quantize\": \"nf4\"", "\"quantize_embeddings\": \"int8\""})
    EXPECT_NE(made->json.find(field), std::string::npos) << field;
  EXPECT_NE(
      made->report.find(
          "357.83 M of the parameters are nf4: 191.95 MiB; 136.13 M of the parameters are int8: 137.94 MiB"),
      std::string::npos)
      << made->report;
  auto read = Planned::load(*model_, made->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics, made->plan.numerics);
  EXPECT_EQ((*read)->plan.request.quantize, Quantize::nf4);
  EXPECT_EQ((*read)->plan.request.quantize_embeddings, Quantize::int8);
  EXPECT_EQ((*read)->json, made->json);
  EXPECT_TRUE(made->verify());
}

TEST(QuantizedPlans, AreOfferedWhereNothingFits) {
  ModelSource source;
  source.source = "nano";
  source.adapters = adapters_of_all();
  const auto model = *Model::open(source);
  const auto made = [&](Quantize quantize, Quantize embeddings, uint64_t budget) {
    Request request;
    request.memory_bytes = budget;
    request.global_batch = 12;
    request.sequence = 64;
    request.quantize = quantize;
    request.quantize_embeddings = embeddings;
    request.keep = keep_division;
    return *Planned::make(*model, request);
  };
  const auto least = [&](Quantize quantize, Quantize embeddings) {
    return made(quantize, embeddings, uint64_t{1} << 40)->plan.minimum_bytes;
  };
  // The offers that begin with "quantize", if the budget is the least that one with these codes needs.
  const auto offers = [&](Quantize quantize, Quantize embeddings, uint64_t budget) {
    const auto planned = made(quantize, embeddings, budget);
    EXPECT_FALSE(planned->plan.fits);
    std::string text;
    for (const Relaxation& r : planned->plan.relaxations)
      if (r.fits && r.change.starts_with("quantize")) {
        text += r.change + "; ";
        EXPECT_TRUE(r.changes_numerics);
        EXPECT_LE(r.peak_bytes, budget);
      }
    return text;
  };
  const auto none = Quantize::none, int8 = Quantize::int8, nf4 = Quantize::nf4;
  EXPECT_TRUE(offers(none, none, least(int8, none)).starts_with("quantize int8; "));
  EXPECT_TRUE(offers(none, none, least(nf4, none)).starts_with("quantize nf4; "));
  EXPECT_TRUE(offers(int8, none, least(nf4, none)).starts_with("quantize nf4; "));
  EXPECT_EQ(offers(nf4, none, least(nf4, int8)), "quantize_embeddings int8; ");
  EXPECT_EQ(offers(none, none, least(nf4, int8)), "quantize nf4, quantize_embeddings int8; ");
  EXPECT_EQ(offers(nf4, int8, least(nf4, int8) - 1), "");
}

}  // namespace
}  // namespace stw
