// For the thread sanitizer: the kernels on the emulated machine (races clean), and two kernels with planted
// mistakes: a missing barrier (races barrier), two blocks that write one word (races blocks).
// tests/simt/races_test.py runs it.
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/contract/kernels.h"
#include "kernels/lanes/device.h"
#include "tests/kernels/product/product_tiles.h"
#include "tests/simt/runtime.h"

namespace {

using namespace stw::kernels;

// Every thread reads what its neighbour wrote.
template <bool has_barrier>
void neighbours(float* out) {
  STW_SHARED(float, shared, 64);
  shared[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (has_barrier) __syncthreads();
  out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}

void one_word(float* out) {
  if (threadIdx.x == blockIdx.x) out[0] = static_cast<float>(blockIdx.x);
}

void launch_small(void (*kernel)(float*), int blocks) {
  std::vector<float> out(64);
  simt::launch_on(nullptr, kernel, dim3(static_cast<unsigned>(blocks)), dim3(64), 0, out.data());
  simt::finish();
}

template <class Args>
void call(void (*kernel)(const Launch&, const Args&), const Args& args, uint64_t workspace_bytes) {
  std::vector<float> workspace(workspace_bytes / 4 + 64);
  void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
  kernel({nullptr, aligned, workspace_bytes, nullptr}, args);
  simt::finish();
}

// Weight gradients in all tiles of wgmma, with more slices than any tile has stages.
void weight_gradients_in_tiles() {
  const int64_t rows = 600, width = 32;
  std::vector<uint16_t> x(static_cast<size_t>(rows * width), 0x3f00), y(x.size(), 0x3e80);
  std::vector<float> gradient(static_cast<size_t>(width * width));
  StepState state{};
  LinearArgs linear{};
  linear.rows = rows, linear.inputs = width, linear.rows_per_sample = rows / 2, linear.parts = 1;
  linear.weight_dtype = DType::bf16, linear.y_stride = width, linear.products = ProductKernels::warpgroup;
  linear.part[0] = {nullptr, nullptr, gradient.data(), nullptr, width};
  linear.x = {x.data(), DType::bf16}, linear.y = {y.data(), DType::bf16};
  linear.accumulate = true, linear.state = &state;
  for (const DType stored : {DType::f32, DType::bf16}) {
    linear.gradient_dtype = stored;
    test::for_product_tiles([](const std::string&) {},
                            [&] { call(cuda_table()->linear_weight_gradient, linear, 0); },
                            [](const std::string&) {});
  }
}

// Attention with relative positions, for several tiles, with a table that is frozen or trained.
void attention_with_positions(DType dtype, ProductKernels products, int64_t rows, int head_dim) {
  const Table& table = *cuda_table();
  const size_t width = static_cast<size_t>(head_dim), count = static_cast<size_t>(rows), table_rows = 40;
  // Large enough for either format; as bf16, the elements of x are 0.5.
  const std::vector<uint16_t> x(2 * 3 * count * width, 0x3f00);
  std::vector<float> out(count * width), dqkv(3 * out.size()), lse(count), gradient(2 * table_rows * width);
  std::vector<int32_t> of_distances;
  for (int64_t d = 1 - rows; d < rows; ++d)
    of_distances.push_back(d < -20 ? 0 : d > 19 ? 39 : static_cast<int32_t>(d) + 20);
  AttentionArgs args{};
  args.samples = 1, args.rows_per_sample = rows, args.query_heads = args.kv_heads = 1,
  args.head_dim = head_dim, args.scale = 0.125f, args.products = products;
  args.relative.table = {x.data(), dtype}, args.relative.table_rows = static_cast<int64_t>(table_rows);
  args.relative.has_keys = args.relative.has_queries = true, args.relative.rows = of_distances.data();
  args.qkv = args.dout = {x.data(), dtype};
  args.out = {out.data(), dtype}, args.dqkv = {dqkv.data(), dtype}, args.lse = lse.data();
  call(table.attention, args, 0);
  for (float* const trained : {static_cast<float*>(nullptr), gradient.data()}) {
    args.relative.gradient = trained;
    call(table.attention_gradient, args, cuda::attention_gradient_workspace(args));
  }
}

// A small step of a layer, with all kernels that use shared memory and shuffles.
void real_kernels() {
  const Table& table = *cuda_table();
  const int64_t samples = 2, sequence = 32, rows = samples * sequence, width = 32;
  std::vector<float> x(static_cast<size_t>(rows * 3 * width), 0.5f), y(x.size()),
      weight(static_cast<size_t>(3 * width * width), 0.25f), gradient(weight.size()),
      loss(static_cast<size_t>(rows)), lse(static_cast<size_t>(rows * 2));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) * 0.1f - 0.8f;
  NormArgs norm{};
  norm.rows = rows, norm.features = width, norm.rows_per_sample = sequence, norm.epsilon = 1e-5f;
  norm.weight = weight.data();
  norm.x = {x.data(), DType::f32}, norm.y = {y.data(), DType::f32};
  call(table.norm, norm, 0);
  norm.dx = {y.data() + rows * width, DType::f32};
  norm.weight_gradient = gradient.data();
  std::vector<float> addend(x), of_biases(2 * static_cast<size_t>(width));
  LinearArgs of_x{};
  of_x.rows = rows, of_x.rows_per_sample = sequence, of_x.parts = 1, of_x.y_stride = width;
  of_x.part[0].features = width, of_x.part[0].bias_gradient = of_biases.data();
  LinearArgs of_addend = of_x;
  of_x.y = norm.x, of_x.further = &of_addend;
  of_addend.y = {addend.data(), DType::f32}, of_addend.part[0].bias_gradient = of_biases.data() + width;
  norm.dx = of_addend.y, norm.addend = {addend.data(), DType::f32}, norm.biases = &of_x;
  call(table.norm_gradient, norm, cuda::norm_gradient_workspace(norm));
  norm.addend = {}, norm.biases = nullptr;
  std::vector<float> sums(2 * 16);
  QkNormArgs heads{};
  heads.rows = rows, heads.rows_per_sample = sequence, heads.query_heads = 2, heads.kv_heads = 1,
  heads.head_dim = 16, heads.epsilon = 1e-5f;
  heads.weight[0] = heads.weight[1] = weight.data();
  heads.x = {x.data(), DType::f32}, heads.y = {y.data(), DType::f32};
  call(table.qk_norm, heads, 0);
  heads.dx = heads.y, heads.weight_gradient[0] = sums.data(), heads.weight_gradient[1] = sums.data() + 16;
  call(table.qk_norm_gradient, heads, cuda::qk_norm_gradient_workspace(heads));
  const int64_t length = 12000;  // A row that lies in shared memory piece by piece.
  std::vector<float> rows_of_x(static_cast<size_t>(3 * length), 0.5f), rows_of_dx(rows_of_x.size()),
      scale(rows_of_x.size(), 1.5f);
  norm.rows = norm.rows_per_sample = 3, norm.features = length;
  norm.weight = scale.data(), norm.weight_gradient = rows_of_dx.data() + length;
  norm.x = {rows_of_x.data(), DType::f32}, norm.y = {rows_of_dx.data(), DType::f32};
  call(table.norm, norm, 0);
  std::vector<float> dx(rows_of_x.size());
  norm.dx = {dx.data(), DType::f32}, norm.y = {scale.data(), DType::f32};
  call(table.norm_gradient, norm, cuda::norm_gradient_workspace(norm));
  for (const DType dtype : {DType::f32, DType::bf16}) {
    LinearArgs linear{};
    linear.rows = rows, linear.inputs = width, linear.rows_per_sample = sequence, linear.parts = 1;
    linear.weight_dtype = dtype;
    linear.y_stride = width;
    linear.products = dtype == DType::bf16 ? ProductKernels::tensor : ProductKernels::chain;
    linear.part[0] = {weight.data(), nullptr, gradient.data(), nullptr, width};
    linear.x = {x.data(), dtype}, linear.y = {y.data(), dtype};
    call(table.linear, linear, 0);
    call(table.linear_weight_gradient, linear, 0);
    StepState state{};
    LinearArgs rounded = linear;
    rounded.gradient_dtype = DType::bf16, rounded.state = &state, rounded.accumulate = true;
    call(table.linear_weight_gradient, rounded, 0);
    if (dtype == DType::bf16) {
      linear.products = rounded.products = ProductKernels::warpgroup;
      call(table.linear, linear, 0);
      call(table.linear_weight_gradient, linear, 0);
      call(table.linear_weight_gradient, rounded, 0);
      for (const ProductKernels products : {ProductKernels::warpgroup, ProductKernels::tensor}) {
        std::vector<float> other(y.size(), 0.5f);
        LinearArgs ending = linear;  // The products end in GELU, and in its derivative in place.
        ending.products = products, ending.activated = {other.data(), dtype};
        call(table.linear, ending, 0);
        ending.activated = {}, ending.x = {other.data(), dtype}, ending.before_gelu = {other.data(), dtype},
        ending.input_bias_gradient = gradient.data();
        call(table.linear_input_gradient, ending, cuda::linear_input_gradient_workspace(ending));
      }
      linear.products = ProductKernels::tensor;
    }
    const int64_t rank = 16;
    std::vector<float> low(static_cast<size_t>(rows * 2 * rank), 0.5f),
        wide(static_cast<size_t>(rows * 3 * width));
    AdapterArgs adapter{};
    adapter.rows = rows, adapter.rank = rank, adapter.rows_per_sample = sequence, adapter.parts = 2,
    adapter.width = 3 * width;
    adapter.products = linear.products, adapter.weight_dtype = dtype;
    adapter.part[0] = {weight.data(), gradient.data(), width, 0};
    adapter.part[1] = {weight.data(), gradient.data() + width * rank, width, 2 * width};
    adapter.low = {low.data(), dtype}, adapter.y = {wide.data(), dtype}, adapter.base = {x.data(), dtype};
    call(table.adapter, adapter, 0);
    adapter.base = {wide.data(), dtype};
    call(table.adapter, adapter, 0);
    call(table.adapter_weight_gradient, adapter, 0);
    call(table.adapter_input_gradient, adapter, 0);
    call(table.scale, ScaleArgs{rows * 2 * rank, 0.5f, {low.data(), dtype}, {low.data(), dtype}}, 0);
    AttentionArgs attention{};
    attention.samples = samples, attention.rows_per_sample = sequence;
    attention.query_heads = attention.kv_heads = 2, attention.head_dim = 16;
    attention.scale = 0.25f, attention.causal = true,
    attention.products = dtype == DType::bf16 ? ProductKernels::tensor : ProductKernels::chain;
    attention.qkv = {x.data(), dtype}, attention.out = {y.data(), dtype}, attention.lse = lse.data();
    call(table.attention, attention, 0);
    attention.dout = {weight.data(), dtype};
    std::vector<float> dqkv(x.size()), dout(static_cast<size_t>(rows * width), 0.1f);
    attention.dout = {dout.data(), dtype}, attention.dqkv = {dqkv.data(), dtype};
    call(table.attention_gradient, attention, cuda::attention_gradient_workspace(attention));
    if (dtype == DType::bf16) {  // Several blocks of keys.
      const int64_t keys = 300;
      std::vector<uint16_t> qkv(static_cast<size_t>(keys * 3 * 64), 0x3f00),
          out(static_cast<size_t>(keys * 64));
      std::vector<float> sums(static_cast<size_t>(keys));
      attention.samples = 1, attention.rows_per_sample = keys, attention.query_heads = attention.kv_heads = 1,
      attention.head_dim = 64;
      attention.qkv = {qkv.data(), dtype}, attention.out = {out.data(), dtype}, attention.lse = sums.data(),
      attention.products = ProductKernels::warpgroup;
      call(table.attention, attention, 0);
      std::vector<uint16_t> gradient(qkv.size()), gradient_of_out(out.size(), 0x3f00);
      attention.dout = {gradient_of_out.data(), dtype}, attention.dqkv = {gradient.data(), dtype};
      call(table.attention_gradient, attention, cuda::attention_gradient_workspace(attention));
      std::vector<int32_t> alone(static_cast<size_t>(keys));  // Padding behind a document.
      for (int32_t i = 0; i < 50; ++i) alone[i] = i;
      attention.position_ids = alone.data();
      for (const ProductKernels products : {ProductKernels::tensor, ProductKernels::warpgroup}) {
        attention.products = products;
        call(table.attention, attention, 0);
        call(table.attention_gradient, attention, cuda::attention_gradient_workspace(attention));
      }
    }
  }
  attention_with_positions(DType::f32, ProductKernels::chain, 70, 16);
  attention_with_positions(DType::bf16, ProductKernels::tensor, 300, 64);
  std::vector<int32_t> tokens(static_cast<size_t>(rows));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % 31);
  CrossEntropyArgs entropy{};
  entropy.rows = rows, entropy.vocabulary = entropy.stride = width, entropy.targets = tokens.data(),
  entropy.logits = {x.data(), DType::f32};
  entropy.gradient = true, entropy.token_loss = loss.data();
  StepState counted{};
  call(table.hit_count, HitCountArgs{rows, width, tokens.data(), {x.data(), DType::f32}, width, &counted}, 0);
  call(table.cross_entropy, entropy, 0);
  {  // Two warps a row, and more rows than blocks.
    const int64_t many = 512, wide = 1304;
    std::vector<uint16_t> logits(static_cast<size_t>(many * wide), 0x3f00);
    const std::vector<int32_t> targets(static_cast<size_t>(many), 7);
    std::vector<float> losses(targets.size());
    CrossEntropyArgs in_blocks = entropy;
    in_blocks.rows = many, in_blocks.vocabulary = in_blocks.stride = wide, in_blocks.fast = true;
    in_blocks.targets = targets.data(), in_blocks.token_loss = losses.data(),
    in_blocks.logits = {logits.data(), DType::bf16};
    call(table.cross_entropy, in_blocks, 0);
  }
  std::vector<float> values(x.size(), 0.5f);
  call(table.value_hits,
       ValueHitsArgs{rows, width, tokens.data(), values.data(), {x.data(), DType::f32}, width, &counted}, 0);
  ValueLossArgs of_values{};
  of_values.rows = rows, of_values.count = of_values.stride = width, of_values.targets = tokens.data(),
  of_values.values = values.data();
  of_values.logits = {x.data(), DType::f32}, of_values.gradient = true, of_values.row_loss = loss.data();
  call(table.value_loss, of_values, 0);
  {  // A document of all rows, and answers.
    std::vector<int32_t> place(static_cast<size_t>(rows)), rest(place.size());
    std::vector<int32_t> answered(place.size(), ignored_target);
    for (size_t i = 0; i < place.size(); ++i)
      place[i] = static_cast<int32_t>(i), rest[i] = static_cast<int32_t>(place.size() - 1 - i);
    answered[0] = 0;
    std::vector<float> logits(place.size() * 16, 0.5f);
    SpanLossArgs spans{};
    spans.rows = rows, spans.targets = answered.data(), spans.values = values.data(),
    spans.positions = place.data(), spans.following = rest.data();
    spans.logits = {logits.data(), DType::f32}, spans.gradient = true, spans.row_loss = loss.data();
    spans.stride = 16;
    call(table.span_loss, spans, 0);
  }
  std::vector<int32_t> positions(static_cast<size_t>(rows));
  for (size_t i = 0; i < positions.size(); ++i)
    positions[i] = static_cast<int32_t>(i % static_cast<size_t>(sequence) % 7);
  // One document begins late and has more rows than a chain. Each row before it is a document of its own.
  std::vector<int32_t> places(400), following(places.size());
  for (size_t i = 100; i < places.size(); ++i)
    places[i] = static_cast<int32_t>(i) - 100, following[i] = 399 - static_cast<int32_t>(i);
  std::vector<float> long_x(400 * 16, 0.5f), means(long_x.size());
  const DocumentMeanArgs mean{
      400, 16, places.data(), following.data(), {long_x.data(), DType::f32}, {means.data(), DType::f32}};
  call(table.document_mean, mean, 0);
  call(table.document_mean_gradient, mean, 0);
  const std::vector<int32_t> taken{0, 7, 399, -1};
  const TakeRowsArgs take{
      1, 400, 4, 16, taken.data(), {long_x.data(), DType::f32}, {means.data(), DType::f32}};
  call(table.take_rows, take, 0);
  call(table.take_rows_gradient, take, 0);
  PreferenceArgs pairs{};
  pairs.samples = rows / sequence, pairs.rows_per_sample = sequence,
  pairs.terms = {Preference::simpo, 2, 0, 0, 0};
  pairs.token_loss = loss.data(), pairs.targets = tokens.data(), pairs.positions = positions.data(),
  pairs.token_weights = lse.data(), pairs.state = &counted;
  call(table.preference, pairs, cuda::preference_workspace(pairs));
  EmbeddingArgs embedding{};
  embedding.rows = rows, embedding.rows_per_sample = sequence, embedding.features = width,
  embedding.vocabulary = 31;
  embedding.tokens = tokens.data(), embedding.y = {y.data(), DType::f32},
  embedding.table_gradient = gradient.data();
  call(table.embedding_gradient, embedding, cuda::embedding_gradient_workspace(embedding));
  embedding.first_token = 5, embedding.slice_tokens = 11;
  call(table.kept_rows_gradient, embedding, cuda::kept_rows_gradient_workspace(embedding));
  double sum = 0;
  SquareSumArgs squares{static_cast<int64_t>(x.size()), {x.data(), nullptr}, &sum};
  for (const bool continues : {false, true}) {
    squares.continues = continues;
    const List<SquareSumArgs> list{&squares, 1};
    call(table.square_sum, list, cuda::square_sum_workspace(list));
  }
  GradientSumArgs gradient_sum{static_cast<int64_t>(x.size()), 0, {}, x.data(), DType::f32};
  for (int k = 0; k < 7; ++k) gradient_sum.term[gradient_sum.terms++] = x.data();
  call(table.gradient_sum, gradient_sum, 0);
  StepState state{};
  state.momentum = 0.9, state.learning_rate = state.coefficient = 1;
  for (const ProductKernels products : {ProductKernels::chain, ProductKernels::tensor}) {
    UpdateArgs muon{};
    muon.count = 66 * 40, muon.columns = 40, muon.dtype = DType::bf16, muon.parameter = y.data();
    muon.gradient[0] = x.data(), muon.rate = 1, muon.state = &state, muon.first = gradient.data(),
    muon.products = products;
    call(table.muon, muon, cuda::muon_workspace(muon));
  }
}

}  // namespace

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (!std::strcmp(what, "clean")) {
    launch_small(neighbours<true>, 2);
    real_kernels();
    weight_gradients_in_tiles();
  } else if (!std::strcmp(what, "barrier")) {
    launch_small(neighbours<false>, 1);
  } else if (!std::strcmp(what, "blocks")) {
    launch_small(one_word, 2);
  } else {
    return 2;
  }
  std::puts("done");
  return 0;
}
