// Memory traffic of the kernels of a training step: counted, not timed. Prints a table. Instructions are PTX
// instructions of warps.
#include <cxxabi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "tests/device/cuda_device.h"
#include "tests/ptx/machine.h"

namespace stw {
namespace {

using namespace testing_tools;

std::string short_name(const std::string& mangled) {
  int status = 0;
  char* const text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = text ? text : mangled;
  std::free(text);
  for (const char* drop : {"stw::kernels::cuda::", "stw::kernels::", "void "})
    for (size_t at; (at = name.find(drop)) != name.npos;) name.erase(at, std::string(drop).size());
  return name.substr(0, name.rfind('('));
}

double ratio(uint64_t a, uint64_t least) {
  return least == 0 ? 1 : static_cast<double>(a) / static_cast<double>(least);
}

class Traffic : public CudaDeviceTest {
 protected:
  void count(const SmallModel& of, int64_t vocabulary, Request r) {
    const auto model = model_of(of);
    r.device = "h200";
    r.reserve_bytes = 0;
    const auto trainer = trainer_for(model, plan_for(*model, r), {}, cuda_device());
    GlobalBatch batch = random_batch(1, r.global_batch, r.sequence, vocabulary);
    ptx::count_traffic(true);
    const auto result = trainer->step(batch.source(), static_cast<uint64_t>(r.global_batch), 1e-3);
    auto kernels = ptx::traffic();
    ptx::count_traffic(false);
    ASSERT_TRUE(result) << result.error().message;
    std::sort(kernels.begin(), kernels.end(),
              [](const auto& a, const auto& b) { return a.second.instructions > b.second.instructions; });
    ptx::Traffic all;
    std::printf("%-90s %9s %12s %10s %8s %10s %8s\n", "", "launches", "instructions", "sectors", "of least",
                "turns", "of least");
    for (const auto& [name, t] : kernels) {
      all.instructions += t.instructions;
      all.sectors += t.sectors;
      all.least_sectors += t.least_sectors;
      std::printf("%-90.90s %9" PRIu64 " %12" PRIu64 " %10" PRIu64 " %8.2f %10" PRIu64 " %8.2f\n",
                  short_name(name).c_str(), t.launches, t.instructions, t.sectors,
                  ratio(t.sectors, t.least_sectors), t.turns, ratio(t.turns, t.least_turns));
    }
    EXPECT_LE(ratio(all.sectors, all.least_sectors), 1.2);
    for (const auto& [name, t] : kernels) {
      // Too narrow for whole tiles.
      if (model->graph().has_adapters() && name.find("dequantize") == name.npos) continue;
      // Tiles lie in shared memory so that lanes have no bank conflicts. In products over an edge, not all
      // lanes take part.
      EXPECT_TRUE(name.find("tensor_") == name.npos || t.turns == t.least_turns) << short_name(name);
      EXPECT_TRUE(name.find("tile_product") == name.npos || ratio(t.turns, t.least_turns) < 1.01)
          << short_name(name);
      // Attention reads and stores rows of heads in whole sectors.
      for (const char* attention :
           {"tensor_attention", "tensor_gradient", "warpgroup_attention", "warpgroup_gradient"})
        EXPECT_TRUE(name.find(attention) == name.npos || t.sectors == t.least_sectors) << short_name(name);
      // In the time in which an H200 moves a byte, its 132 multiprocessors (1.7 GHz) issue 6 operations of a
      // lane. The kernels below are bound by memory only. (cross_entropy_traffic_test.cpp counts
      // cross-entropy with rows of a usual vocabulary: here, what a row costs once is most of its
      // instructions.)
      for (const char* streaming : {"gelu_kernel", "gelu_gradient_kernel", "swiglu_kernel",
                                    "swiglu_gradient_kernel", "qk_norm_kernel", "chunk_sums", "dequantize"})
        EXPECT_TRUE(r.precision == Precision::fp32 || name.find(streaming) == name.npos ||
                    t.instructions <= 5 * t.sectors)
            << short_name(name);
      if (t.instructions * 100 < all.instructions) continue;
      EXPECT_LE(ratio(t.sectors, t.least_sectors), 1.5) << short_name(name);
      // 8 bits: random places of a table.
      EXPECT_LE(ratio(t.turns, t.least_turns), name.find("8_kernel") != name.npos ? 2.4 : 1.6)
          << short_name(name);
    }
  }
};

// The traffic of a block of GPT-2 other than the operands and outputs of its products and the inputs and
// outputs of attention: by kernels of their own, and fused into products (residuals, GELU, its derivative).
// With heads of 64, all of it is proportional to the width, so a width of 128 stands for 768. The difference
// between two numbers of layers gives the traffic of a block. The difference between two numbers of samples
// gives the traffic that grows with tokens; the rest is that of parameters.
class TrafficOfABlock : public Traffic, public testing::WithParamInterface<Kernels> {
 protected:
  static constexpr int64_t width = 128, sequence = 64;
  // Bytes of a step by kernel.
  std::map<std::string, double> bytes_of(int layers, int64_t samples) {
    const auto model = model_of(
        {R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 64, "n_embd": 128, "n_head": 2, )"
         R"("embd_pdrop": 0, "attn_pdrop": 0,
                                     "resid_pdrop": 0, "n_layer": )" +
             std::to_string(layers) + "}",
         {}});
    Request r = request_for(samples, sequence, 1);
    r.device = "h100", r.precision = Precision::bf16, r.kernels = GetParam(), r.reserve_bytes = 0,
    r.micro_batch = samples, r.recompute = Recompute::none;
    const auto planned = plan_for(*model, r);
    const auto trainer = trainer_for(model, planned, {}, cuda_device());
    GlobalBatch batch = random_batch(1, samples, sequence, 64);
    ptx::count_traffic(true);
    const auto result = trainer->step(batch.source(), static_cast<uint64_t>(samples), 1e-3);
    ptx::count_traffic(false);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    std::map<std::string, double> bytes;
    for (const auto& [name, t] : ptx::traffic())
      bytes[kind_of(short_name(name))] += static_cast<double>(t.loaded + t.stored);
    // The outputs of products do not count.
    const Graph& g = planned->graph;
    for (const Instruction& i : planned->programs.micro_first.instructions)
      if (i.kind == OpKind::linear || i.kind == OpKind::linear_input_gradient ||
          i.kind == OpKind::linear_weight_gradient)
        for (int k = 0; k < i.ops; ++k) {
          const Op& op = g.op(i.op + k);
          if (op.kind == OpKind::linear_bias_gradient || op.kind == OpKind::activation ||
              op.kind == OpKind::activation_gradient)
            continue;
          for (int t : op.outputs)
            bytes["products, on the way"] -= static_cast<double>(operand_bytes(g, t, extent_of(g, i, 0)));
        }
    return bytes;
  }
  static std::string kind_of(const std::string& name) {
    for (const char* part : {"norm_whole_tiles", "norm_rows", "norm_tiles", "norm_kernel", "gelu_gradient",
                             "gelu_kernel", "bias_tiles", "tile_fold"})
      if (name.find(part) != name.npos) return part;
    return name.find("tile_product") != name.npos ? "products, on the way" : "";
  }
};
TEST_P(TrafficOfABlock, StaysBelow) {
  const auto one = bytes_of(1, 8), two = bytes_of(2, 8), one_of_few = bytes_of(1, 4),
             two_of_few = bytes_of(2, 4);
  const auto at = [](const std::map<std::string, double>& list, const std::string& name) {
    const auto found = list.find(name);
    return found == list.end() ? 0 : found->second;
  };
  double sum = 0;
  for (const auto& [name, bytes] : two) {
    if (name.empty()) continue;
    const double block = bytes - at(one, name), of_few = at(two_of_few, name) - at(one_of_few, name);
    const double kilobytes = (block - of_few) / (4 * sequence) * 768 / width / 1024;  // A token.
    std::printf("%-24s %6.2f KB a token\n", name.c_str(), kilobytes);
    sum += kilobytes;
  }
  std::printf("%-24s %6.2f KB a token\n", "all", sum);
  EXPECT_LE(sum, 45);
  EXPECT_GE(sum, 30) << "less than norms and gradients of norms alone: something was not counted";
}
INSTANTIATE_TEST_SUITE_P(Kernels, TrafficOfABlock, testing::Values(Kernels::tensor, Kernels::wgmma),
                         [](const testing::TestParamInfo<Kernels>& info) {
                           return std::string(kernels_names[static_cast<size_t>(info.param)]);
                         });

struct Step {
  const char* name;
  const char* model;
  Precision precision;
  int state_bits;
  Optimizer optimizer = Optimizer::adamw;
  std::optional<Kernels> kernels = {};
  Quantize quantize = Quantize::none;
};
constexpr int64_t vocabulary = 1000;
constexpr char gpt2[] =
    R"({"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64, "n_embd": 256, "n_layer": 1, "n_head": 4,
                            "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})";
constexpr char gpt2_dropout[] =
    R"({"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64, "n_embd": 256, "n_layer": 1, )"
    R"("n_head": 4})";
constexpr char llama[] =
    R"({"model_type": "llama", "vocab_size": 1000, "max_position_embeddings": 64, "hidden_size": 256, )"
    R"("intermediate_size": 512,
                             "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, )"
    R"("tie_word_embeddings": true})";
constexpr char qwen3[] =
    R"({"model_type": "qwen3", "vocab_size": 1000, "max_position_embeddings": 64, "hidden_size": 256, )"
    R"("intermediate_size": 512,
                             "num_hidden_layers": 1, "num_attention_heads": 16, "num_key_value_heads": 8, )"
    R"("head_dim": 128, "tie_word_embeddings": true})";

class TrafficOfAStep : public Traffic, public testing::WithParamInterface<Step> {};

// The rows of traffic.csv for a step.
std::vector<std::string> table_rows(const std::string& step) {
  std::vector<std::string> rows;
  for (const auto& [name, t] : ptx::traffic())
    rows.push_back(step + "," + std::to_string(t.launches) + "," + std::to_string(32 * t.least_sectors) +
                   "," + std::to_string(t.loaded) + "," + std::to_string(t.copied) + "," +
                   std::to_string(t.stored) + "," + short_name(name));
  std::sort(rows.begin(), rows.end());
  return rows;
}
// If STW_TRAFFIC names a file, adds the rows to it instead: usage.py --write.
void compare_with_table(const std::string& step) {
  const std::vector<std::string> found = table_rows(step);
  if (const char* path = std::getenv("STW_TRAFFIC")) {
    std::ofstream file(path, std::ios::app);
    for (const std::string& row : found) file << row << '\n';
    return;
  }
  std::vector<std::string> expected;
  std::ifstream file(STW_SOURCE_ROOT "/tests/ptx/traffic.csv");
  for (std::string row; std::getline(file, row);)
    if (row.starts_with(step + ",")) expected.push_back(row);
  std::sort(expected.begin(), expected.end());
  std::vector<std::string> only_found, only_expected;
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                      std::back_inserter(only_found));
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(),
                      std::back_inserter(only_expected));
  for (const std::string& row : only_expected) ADD_FAILURE() << "traffic.csv has " << row;
  for (const std::string& row : only_found) ADD_FAILURE() << "found           " << row;
  if (!only_found.empty() || !only_expected.empty())
    ADD_FAILURE() << "If this is intended: python3 tests/ptx/usage.py build-test --write";
}
TEST_P(TrafficOfAStep, IsAsExpected) {
  const Step& step = GetParam();
  Request r = request_for(1, 64, 1);
  r.precision = step.precision;
  r.state_bits = step.state_bits;
  r.optimizer = step.optimizer;
  r.kernels = step.kernels;
  r.quantize = step.quantize;
  if (step.quantize != Quantize::none) r.quantize_embeddings = Quantize::int8;
  count({step.model, step.quantize == Quantize::none ? Adapters{} : adapters_of_all()}, vocabulary, r);
  compare_with_table(step.name);
  const auto kernels = ptx::traffic();
  for (const char* name : {"warpgroup_attention", "warpgroup_gradient"})
    EXPECT_EQ(std::any_of(kernels.begin(), kernels.end(),
                          [&](const auto& k) { return k.first.find(name) != k.first.npos; }),
              step.kernels == Kernels::wgmma);
}
INSTANTIATE_TEST_SUITE_P(
    Models, TrafficOfAStep,
    testing::Values(Step{"gpt2", gpt2, Precision::bf16, 32}, Step{"llama_8_bits", llama, Precision::bf16, 8},
                    Step{"gpt2_fp32_dropout", gpt2_dropout, Precision::fp32, 32},
                    Step{"llama_fp16_lion", llama, Precision::fp16, 8, Optimizer::lion},
                    Step{"llama_muon", llama, Precision::bf16, 32, Optimizer::muon},
                    Step{"gpt2_adafactor", gpt2_dropout, Precision::bf16, 32, Optimizer::adafactor},
                    Step{"qwen3", qwen3, Precision::bf16, 32},
                    Step{"gpt2_wgmma", gpt2, Precision::bf16, 32, Optimizer::adamw, Kernels::wgmma},
                    Step{"llama_nf4", llama, Precision::bf16, 32, Optimizer::adamw, {}, Quantize::nf4},
                    Step{"gpt2_int8", gpt2, Precision::fp16, 32, Optimizer::adamw, {}, Quantize::int8},
                    Step{"gpt2_sgd", gpt2_dropout, Precision::bf16, 32, Optimizer::sgd}),
    [](const testing::TestParamInfo<Step>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stw
