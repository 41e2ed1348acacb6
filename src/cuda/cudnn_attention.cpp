#include "src/cuda/cudnn_attention.h"

#include <limits>
#include <utility>

#include "src/base/hash.h"

namespace stw::cuda {

using cudnn::DataType;
using cudnn::Descriptor;
using cudnn::Dimensions;
using cudnn::Pointwise;
using cudnn::Reduction;
using kernels::AttentionArgs;
using kernels::AttentionPart;
using kernels::AttentionScratch;

namespace {

// All values that a plan depends on. In the key of an engine the values of the part are 0. The struct has no
// padding, as its bytes are hashed.
struct AttentionKey {
  int64_t rows, query_heads, kv_heads, head_dim, samples, part_heads;
  uint32_t dtype, form;
};
uint64_t key_of(const AttentionArgs& a, const AttentionPart& part, bool gradient) {
  const AttentionKey key{a.rows_per_sample,
                         a.query_heads,
                         a.kv_heads,
                         a.head_dim,
                         part.samples,
                         part.kv_heads,
                         static_cast<uint32_t>(a.qkv.dtype),
                         (a.causal ? 1u : 0u) | (gradient ? 2u : 0u)};
  return hash64(&key, sizeof key);
}
AttentionPart all_of(const AttentionArgs& a) { return {0, a.samples, 0, a.kv_heads}; }

// The graph's tensors in memory, and its scalars.
enum Id : int64_t {
  queries = 1,
  keys,
  values,
  outputs,
  lse,
  doutputs,
  dots,
  dqueries,
  dkeys,
  dvalues,
  scale,
  hidden,
  one
};

// Builds the operations of attention. Dimensions are samples, heads, rows, head_dim.
class AttentionGraph {
 public:
  AttentionGraph(const cudnn::Functions& f, const AttentionArgs& a, const AttentionPart& part)
      : b_(part.samples),
        h_(part.kv_heads * (a.query_heads / a.kv_heads)),
        kv_(part.kv_heads),
        t_(a.rows_per_sample),
        d_(a.head_dim),
        all_h_(a.query_heads),
        all_kv_(a.kv_heads),
        is_causal_(a.causal),
        type_(a.qkv.dtype == kernels::DType::bf16 ? DataType::bf16 : DataType::f16),
        graph_(std::make_unique<cudnn::OpGraph>(f)) {}

  // S = scale·Q·Kᵀ; lse = log Σ exp S; O = exp(S) / Σ exp S · V.
  std::unique_ptr<cudnn::OpGraph> forward() {
    const Descriptor sum = of_rows(), weights = graph_->inner(type_, scores());
    const Descriptor s =
        scaled_product(graph_->tensor(type_, packed(h_), queries),
                       graph_->tensor(type_, transposed(packed(kv_)), keys), graph_->number(scale));
    const Descriptor seen = hide_later_keys(s), largest = of_rows(), shifted = of_scores(), e = of_scores(),
                     log = of_rows();
    graph_->reduce(Reduction::max, seen, largest);
    graph_->pointwise(Pointwise::sub, seen, largest, shifted);
    graph_->pointwise(Pointwise::exp, shifted, e);
    graph_->reduce(Reduction::add, e, sum);
    graph_->pointwise(Pointwise::log, sum, log);
    graph_->pointwise(Pointwise::add, largest, log, graph_->tensor(DataType::f32, rows(all_h_), lse));
    graph_->pointwise(Pointwise::div, e, sum, weights);
    graph_->multiply(weights, graph_->tensor(type_, packed(kv_), values),
                     graph_->tensor(type_, of_outputs(), outputs));
    return std::move(graph_);
  }

  // D = Σ dO ∘ O along a row; P = exp(S - lse); dV = Pᵀ·dO; dS = scale·P ∘ (dO·Vᵀ - D); dK = dSᵀ·Q; dQ =
  // dS·K.
  std::unique_ptr<cudnn::OpGraph> backward() {
    const Descriptor q = graph_->tensor(type_, packed(h_), queries),
                     transposed_k = graph_->tensor(type_, transposed(packed(kv_)), keys);
    const Descriptor transposed_v = graph_->tensor(type_, transposed(packed(kv_)), values),
                     factor = graph_->number(scale);
    const Descriptor dout = graph_->tensor(type_, of_outputs(), doutputs),
                     d = graph_->tensor(DataType::f32, rows(h_), dots);
    const Descriptor both = graph_->inner(DataType::f32, {{b_, h_, t_, d_}, {h_ * t_ * d_, t_ * d_, d_, 1}}),
                     summed = of_rows();
    graph_->pointwise(Pointwise::mul, dout, graph_->tensor(type_, of_outputs(), outputs), both);
    graph_->reduce(Reduction::add, both, summed);
    // The engines' pattern has a factor for dropout here; it is 1.
    graph_->pointwise(Pointwise::mul, summed, graph_->number(one), d);

    const Descriptor shifted = of_scores(), p = of_scores();
    graph_->pointwise(Pointwise::sub, scaled_product(q, transposed_k, factor),
                      graph_->tensor(DataType::f32, rows(all_h_), lse), shifted);
    graph_->pointwise(Pointwise::exp, hide_later_keys(shifted), p);
    // Where query heads share keys, each query head has gradients of its own.
    const Dimensions of_keys = h_ == kv_ ? packed(kv_) : rows_of(h_, h_);
    graph_->multiply(transposed_factor(p), dout, graph_->tensor(type_, of_keys, dvalues));

    const Descriptor dp = of_scores(), less = of_scores(), weighted = of_scores(), ds = of_scores();
    graph_->multiply(dout, transposed_v, dp);
    graph_->pointwise(Pointwise::sub, dp, d, less);
    graph_->pointwise(Pointwise::mul, less, p, weighted);
    graph_->pointwise(Pointwise::mul, weighted, factor, ds);
    graph_->multiply(transposed_factor(ds), q, graph_->tensor(type_, of_keys, dkeys));
    const Descriptor k = graph_->inner(DataType::f32, packed(kv_));
    graph_->reshape(transposed_k, k);
    graph_->multiply(ds, k, graph_->tensor(type_, packed(h_), dqueries));
    return std::move(graph_);
  }

 private:
  // Layouts: rows of `all` adjacent heads (queries, keys or values in qkv; outputs), scores, and one value
  // for each query.
  Dimensions rows_of(int64_t heads, int64_t all) const {
    return {{b_, heads, t_, d_}, {t_ * all * d_, d_, all * d_, 1}};
  }
  Dimensions packed(int64_t heads) const { return rows_of(heads, all_h_ + 2 * all_kv_); }
  Dimensions of_outputs() const { return rows_of(h_, all_h_); }
  Dimensions scores() const { return {{b_, h_, t_, t_}, {h_ * t_ * t_, t_ * t_, t_, 1}}; }
  Dimensions rows(int64_t all) const { return {{b_, h_, t_, 1}, {all * t_, t_, 1, 1}}; }
  static Dimensions transposed(Dimensions x) {
    std::swap(x.extent[2], x.extent[3]);
    std::swap(x.stride[2], x.stride[3]);
    return x;
  }
  Descriptor of_scores() { return graph_->inner(DataType::f32, scores()); }
  Descriptor of_rows() { return graph_->inner(DataType::f32, rows(h_)); }

  Descriptor scaled_product(Descriptor q, Descriptor transposed_k, Descriptor factor) {
    const Descriptor product = of_scores(), scaled = of_scores();
    graph_->multiply(q, transposed_k, product);
    graph_->pointwise(Pointwise::mul, product, factor, scaled);
    return scaled;
  }
  // With a causal mask, scores of keys after the query become -inf.
  Descriptor hide_later_keys(Descriptor s) {
    if (!is_causal_) return s;
    const Descriptor row = graph_->inner(DataType::i32, scores()),
                     column = graph_->inner(DataType::i32, scores());
    const Descriptor is_seen = graph_->inner(DataType::boolean, scores()), seen = of_scores();
    graph_->index(s, row, 2);
    graph_->index(s, column, 3);
    graph_->pointwise(Pointwise::greater_or_equal, row, column, is_seen);
    graph_->pointwise(Pointwise::select, s, graph_->number(hidden), seen, is_seen);
    return seen;
  }
  // Transposed, and rounded to 16 bits as a factor of a product.
  Descriptor transposed_factor(Descriptor s) {
    const Descriptor t = graph_->inner(type_, transposed(scores()));
    graph_->reshape(s, t);
    return t;
  }

  const int64_t b_, h_, kv_, t_, d_, all_h_, all_kv_;
  const bool is_causal_;
  const DataType type_;
  std::unique_ptr<cudnn::OpGraph> graph_;
};

std::unique_ptr<cudnn::OpGraph> graph_of(const cudnn::Functions& f, const AttentionArgs& args,
                                         const AttentionPart& part, bool gradient) {
  AttentionGraph graph(f, args, part);
  return gradient ? graph.backward() : graph.forward();
}

int64_t most_workspace(const AttentionArgs& args, const AttentionPart& part, bool gradient) {
  if (!gradient) return kernels::attention_library_bytes;
  const AttentionScratch scratch = kernels::attention_scratch(shape_of(args), part);
  return scratch.bytes - scratch.library;
}

std::string name_of(bool gradient) { return gradient ? "the gradient of attention" : "attention"; }

const std::byte* half_at(const void* data, int64_t elements) {
  return static_cast<const std::byte*>(data) + 2 * elements;
}

Error cudnn_error(const cudnn::Functions& f, const std::string& what, cudnn::Status status) {
  Error e{Code::device_error, "cuDNN: " + what + ": " + f.GetErrorString(status)};
  e.native = status;
  return e;
}

}  // namespace

CudnnAttention::CudnnAttention(const cudnn::Functions& functions) : f_(functions) {
  library_ = {
      this,
      [](void* self, const AttentionArgs& args, bool gradient) {
        auto& attention = *static_cast<CudnnAttention*>(self);
        return attention.must_wait(args, {}, gradient) || attention.engine_for(args, gradient).has_value();
      },
      [](void* self, const AttentionArgs& args, void* scratch, void* stream) {
        static_cast<CudnnAttention*>(self)->attend(args, scratch, static_cast<cudaStream_t>(stream));
      },
      [](void* self, const AttentionArgs& args, const AttentionPart& part, void* scratch, void* stream) {
        static_cast<CudnnAttention*>(self)->differentiate(args, part, static_cast<std::byte*>(scratch),
                                                          static_cast<cudaStream_t>(stream));
      }};
}

CudnnAttention::~CudnnAttention() {
  plans_.clear();
  if (handle_) f_.Destroy(handle_);
}

Result<std::unique_ptr<CudnnAttention>> CudnnAttention::create(const std::string& path) {
  STW_ASSIGN(functions, cudnn::load(path));
  if (const size_t version = functions.GetVersion(); version < cudnn::oldest_version)
    return Error{Code::unsupported, "cuDNN: found " + cudnn::version_text(version) + ", need " +
                                        cudnn::version_text(cudnn::oldest_version) +
                                        ": older versions read beyond samples of odd lengths; install that, "
                                        "or use our own attention"};
  std::unique_ptr<CudnnAttention> attention(new CudnnAttention(functions));
  if (const cudnn::Status status = functions.Create(&attention->handle_); status != cudnn::success)
    return cudnn_error(functions, "a handle", status);
  return attention;
}

stw::Status CudnnAttention::take_error() {
  if (failed_ == cudnn::success) return ok();
  return cudnn_error(f_, failed_what_, std::exchange(failed_, cudnn::success));
}

void CudnnAttention::note(cudnn::Status status, const std::string& what) {
  if (failed_ != cudnn::success || status == cudnn::success) return;
  failed_ = status;
  failed_what_ = what;
}

bool CudnnAttention::must_wait(const AttentionArgs& args, const std::optional<AttentionPart>& part,
                               bool gradient) {
  if (!defers_ ||
      (part ? plans_.contains(key_of(args, *part, gradient)) : engines_.contains(key_of(args, {}, gradient))))
    return false;
  waiting_.push_back({args, part, gradient});
  return true;
}

bool CudnnAttention::choose_waiting() {
  const bool any = !waiting_.empty();
  for (const Waiting& w : waiting_)
    if (engine_for(w.args, w.gradient) && w.part) plan_for(w.args, *w.part, w.gradient);
  waiting_.clear();
  return any;
}

const std::optional<cudnn::Engine>& CudnnAttention::engine_for(const AttentionArgs& args, bool gradient) {
  const auto [entry, is_new] = engines_.try_emplace(key_of(args, {}, gradient));
  if (is_new) {
    AttentionArgs many = args;
    many.samples = std::numeric_limits<int32_t>::max();
    AttentionPart usual = kernels::largest_attention_part(shape_of(many)), least = usual;
    if (!gradient) usual.kv_heads = least.kv_heads = args.kv_heads;
    least.samples = 1;
    // The last part has the heads that are left over.
    if (usual.samples == 1 && gradient) least.kv_heads = (args.kv_heads - 1) % usual.kv_heads + 1;
    cudnn::Status failed = cudnn::success;
    auto plan = cudnn::Plan::best(handle_, graph_of(f_, args, usual, gradient),
                                  most_workspace(args, usual, gradient), failed);
    auto smallest = plan ? cudnn::Plan::make(handle_, graph_of(f_, args, least, gradient), plan->engine(),
                                             most_workspace(args, least, gradient), failed)
                         : nullptr;
    if (failed != cudnn::success) {
      static const std::optional<cudnn::Engine> unknown;
      engines_.erase(entry);
      note(failed, "the choice of an engine for " + name_of(gradient));
      return unknown;
    }
    if (smallest) {  // assumption: the engine also computes all parts of a size in between
      entry->second = plan->engine();
      plans_[key_of(args, least, gradient)] = std::move(smallest);
      plans_[key_of(args, usual, gradient)] = std::move(plan);
    } else {
      declined_.push_back("cuDNN has no engine for " + name_of(gradient) + " (" +
                          std::to_string(args.rows_per_sample) + " rows, heads of " +
                          std::to_string(args.head_dim) +
                          "): our own kernels compute it; cuDNN's engines need the library libnvrtc");
    }
  }
  return entry->second;
}

const cudnn::Plan* CudnnAttention::plan_for(const AttentionArgs& args, const AttentionPart& part,
                                            bool gradient) {
  const std::optional<cudnn::Engine>& engine = engine_for(args, gradient);
  if (!engine) return nullptr;
  const auto [entry, is_new] = plans_.try_emplace(key_of(args, part, gradient));
  if (!is_new) return entry->second.get();
  cudnn::Status failed = cudnn::success;
  entry->second = cudnn::Plan::make(handle_, graph_of(f_, args, part, gradient), *engine,
                                    most_workspace(args, part, gradient), failed);
  if (failed == cudnn::success) return entry->second.get();
  plans_.erase(entry);
  note(failed, "a plan for " + name_of(gradient));
  return nullptr;
}

void CudnnAttention::execute(const AttentionArgs& args, const AttentionPart& part, bool gradient,
                             std::vector<cudnn::Plan::Binding> bindings, void* workspace,
                             cudaStream_t stream) {
  if (must_wait(args, part, gradient)) return;
  const float factor = args.scale, minus_infinity = -std::numeric_limits<float>::infinity(), no_factor = 1;
  bindings.push_back({scale, &factor});
  if (args.causal) bindings.push_back({hidden, &minus_infinity});
  if (gradient) bindings.push_back({one, &no_factor});
  const cudnn::Plan* const plan = plan_for(args, part, gradient);
  cudnn::Status status = plan ? f_.SetStream(handle_, stream) : cudnn::not_supported;
  if (status == cudnn::success) status = plan->execute(handle_, bindings, workspace);
  note(status, name_of(gradient) + " (" + std::to_string(part.samples) + " samples of " +
                   std::to_string(args.rows_per_sample) + " rows)");
}

void CudnnAttention::attend(const AttentionArgs& args, void* scratch, cudaStream_t stream) {
  const int64_t q_width = static_cast<int64_t>(args.query_heads) * args.head_dim,
                kv_width = static_cast<int64_t>(args.kv_heads) * args.head_dim;
  execute(args, all_of(args), false,
          {{queries, args.qkv.data},
           {keys, half_at(args.qkv.data, q_width)},
           {values, half_at(args.qkv.data, q_width + kv_width)},
           {outputs, args.out.data},
           {lse, args.lse}},
          scratch, stream);
}

void CudnnAttention::differentiate(const AttentionArgs& args, const AttentionPart& part, std::byte* scratch,
                                   cudaStream_t stream) {
  const int64_t d = args.head_dim, group = args.query_heads / args.kv_heads, q_width = args.query_heads * d,
                kv_width = args.kv_heads * d;
  const int64_t first_row = part.first_sample * args.rows_per_sample, head = part.first_kv_head * group;
  const int64_t q_at = first_row * (q_width + 2 * kv_width) + head * d,
                out_at = first_row * q_width + head * d;
  const int64_t k_at = first_row * (q_width + 2 * kv_width) + q_width + part.first_kv_head * d,
                v_at = k_at + kv_width;
  const AttentionScratch at = kernels::attention_scratch(shape_of(args), part);
  const bool shares = group > 1;
  execute(args, part, true,
          {{queries, half_at(args.qkv.data, q_at)},
           {keys, half_at(args.qkv.data, k_at)},
           {values, half_at(args.qkv.data, v_at)},
           {outputs, half_at(args.out.data, out_at)},
           {lse, args.lse + first_row * args.query_heads + head * args.rows_per_sample},
           {doutputs, half_at(args.dout.data, out_at)},
           {dots, scratch + at.dots},
           {dqueries, half_at(args.dqkv.data, q_at)},
           {dkeys, shares ? scratch + at.keys : half_at(args.dqkv.data, k_at)},
           {dvalues, shares ? scratch + at.values : half_at(args.dqkv.data, v_at)}},
          scratch + at.library, stream);
}

}  // namespace stw::cuda
