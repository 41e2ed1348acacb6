#include "src/weights/merge.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/kernels.h"
#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"
#include "src/base/numbers.h"
#include "src/files/file.h"
#include "src/weights/safetensors.h"

namespace stw {

namespace {

constexpr uint64_t at_once = 1 << 18;  // elements; at least one row

// The update of a matrix with `columns` columns: row i gets Σ_r low(i, r)·high(column, r).
struct Addition {
  int64_t rank = 0;
  std::vector<float> low, high;
};

Result<std::vector<float>> read_all(const Model& model, const Tensor& t) {
  std::vector<float> values(t.shape.elements());
  STW_TRY(model.read(t, 0, values.size(), values.data()));
  return values;
}

std::vector<float> transposed(const std::vector<float>& from, int64_t rows, int64_t columns) {
  std::vector<float> to(from.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  return to;
}

// The scale is multiplied into `low`, the factor that has the rows of the stored weight.
Result<Addition> addition_to(const Model& model, int weight) {
  const Graph& graph = model.graph();
  const Tensor *a = nullptr, *b = nullptr;
  for (const Tensor& t : graph.tensors)
    if (t.adapter_of == weight) (t.name.ends_with(low_suffix) ? a : b) = &t;
  Addition sum;
  if (!a || !b) return sum;
  sum.rank = a->shape[0];
  const int64_t inputs = a->shape[1];
  STW_ASSIGN(low, read_all(model, *a));
  STW_ASSIGN(high, read_all(model, *b));
  low = transposed(low, sum.rank, inputs);
  const bool is_transposed = std::any_of(graph.ops.begin(), graph.ops.end(), [&](const Op& op) {
    return op.attributes.transposed &&
           std::find(op.inputs.begin(), op.inputs.end(), weight) != op.inputs.end();
  });
  sum.low = is_transposed ? std::move(low) : std::move(high);
  sum.high = is_transposed ? std::move(high) : std::move(low);
  for (float& x : sum.low) x *= static_cast<float>(model.config().adapters.scale());
  return sum;
}

void add(const Addition& sum, int64_t first_row, int64_t rows, int64_t columns, float* values) {
  using namespace kernels;
  AdapterArgs args{};
  args.rows = args.rows_per_sample = rows;
  args.rank = sum.rank;
  args.parts = 1;
  args.part[0] = {sum.high.data(), nullptr, columns, 0};
  args.low = {const_cast<float*>(sum.low.data()) + first_row * sum.rank, DType::f32};
  args.y = {values, DType::f32};
  args.base = {values, DType::f32};
  args.width = columns;
  const uint64_t bytes = adapter_workspace(args, 1);
  std::vector<std::byte> workspace(bytes + 64);
  void* at = workspace.data();
  size_t space = workspace.size();
  const Parallel alone = {nullptr, 1, nullptr};
  cpu_table(best_isa())->adapter({&alone, std::align(64, bytes, at, space), bytes, nullptr}, args);
}

Status write_as(SafetensorsWriter& writer, TensorDType type, const std::vector<float>& values, size_t count,
                std::vector<uint16_t>& halves) {
  if (type != TensorDType::bf16 && type != TensorDType::f16)
    return writer.write(std::as_bytes(std::span(values.data(), count)));
  halves.resize(count);
  for (size_t i = 0; i < count; ++i)
    halves[i] = type == TensorDType::bf16 ? to_bf16(values[i]) : to_f16(values[i]);
  return writer.write(std::as_bytes(std::span<const uint16_t>(halves)));
}

TensorDType merged_dtype(const Model& model, const Tensor& p) {
  const TensorDType type = model.dtype_of(p);
  return type == TensorDType::f64 ? TensorDType::f32 : type;
}

// The parameters of the merged model, each once for each of its names in files.
std::vector<std::pair<int, std::string>> named_parameters(const Model& model) {
  std::vector<std::pair<int, std::string>> named;
  for (int t : model.parameters())
    if (const Tensor& p = model.graph().at(t); p.adapter_of < 0)
      for (const std::string& name : model.names_in_folder(p.name)) named.emplace_back(t, name);
  return named;
}

Status write_weights(const Model& model, const std::string& path) {
  const std::vector<std::pair<int, std::string>> named = named_parameters(model);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [t, name] : named) {
    const Tensor& p = model.graph().at(t);
    entries.push_back(
        {name, merged_dtype(model, p), {p.shape.dims.begin(), p.shape.dims.begin() + p.shape.rank}});
  }
  STW_ASSIGN(writer, SafetensorsWriter::create(path, entries, {{"format", "pt"}}));
  std::vector<float> values;
  std::vector<uint16_t> halves;
  for (size_t entry = 0; entry < named.size(); ++entry) {
    const int t = named[entry].first;
    const Tensor& p = model.graph().at(t);
    STW_ASSIGN(sum, addition_to(model, t));
    const auto columns = p.shape.rank > 1 ? static_cast<uint64_t>(p.shape.last()) : 1;
    const uint64_t rows = p.shape.elements() / columns, step = std::max<uint64_t>(1, at_once / columns);
    for (uint64_t in_file = 0; in_file < rows;) {
      const auto [first, count] =
          p.layout.in_graph(in_file * columns, std::min(step, rows - in_file) * columns, p.shape.elements());
      const uint64_t row = first / columns, n = count / columns;
      values.resize(count);
      STW_TRY(model.read(p, first, count, values.data()));
      if (sum.rank > 0)
        add(sum, static_cast<int64_t>(row), static_cast<int64_t>(n), static_cast<int64_t>(columns),
            values.data());
      STW_TRY(write_as(writer, entries[entry].dtype, values, count, halves));
      check_in(count * dtype_bytes(entries[entry].dtype));
      in_file += n;
    }
  }
  return writer.finish();
}

}  // namespace

uint64_t merged_bytes(const Model& model) {
  uint64_t bytes = 0;
  for (const auto& [t, name] : named_parameters(model)) {
    const Tensor& p = model.graph().at(t);
    bytes = size_add(bytes, size_mul(p.shape.elements(), dtype_bytes(merged_dtype(model, p))));
  }
  return bytes;
}

Status write_merged(const Model& model, const std::string& folder) {
  STW_TRY(make_directories(folder));
  if (model.reads_from(folder))
    return Error{Code::bad_argument, folder + ": has the model's own weights, which would be replaced"};
  for (const char* name : {"/adapter_config.json", "/model.safetensors.index.json"})
    if (file_exists(folder + name))
      return Error{Code::bad_argument, folder + name +
                                           ": this file exists, and readers would take the folder for "
                                           "adapters or shards; give another folder"};
  const std::string weights = folder + "/model.safetensors", config = folder + "/config.json";
  const bool had_weights = file_exists(weights), had_config = file_exists(config);
  // The temporary file of config.json is created first and renamed last. A folder counts as a model's only if
  // it has config.json. After a kill between the two renames, the folder has weights without it, and the
  // temporary file shows why.
  const std::string text = config_text(model.config().json);
  STW_ASSIGN(last, FileWriter::create(config));
  STW_TRY(last.write(text.data(), text.size()));
  Status written = write_weights(model, weights);
  if (written) written = last.finish();
  if (!written) {  // removes also files that were moved into place but could not be made durable
    if (!had_config) std::remove(config.c_str());
    if (!had_weights) std::remove(weights.c_str());
  }
  return written;
}

}  // namespace stw
