// Shared by the tests of the C API: handles that close themselves, small models, a text, and trainers made
// from them. Like any host, the tests use only stowage.h. A failed precondition throws the library's message.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "stowage.h"
#include "stowage/dlpack.h"
#include "tests/src/temporary_directory.h"

namespace stw::api_test {

struct Closer {
  void operator()(stw_device* p) const { stw_device_close(p); }
  void operator()(stw_model* p) const { stw_model_destroy(p); }
  void operator()(stw_plan* p) const { stw_plan_destroy(p); }
  void operator()(stw_dataset* p) const { stw_dataset_close(p); }
  void operator()(stw_trainer* p) const { stw_trainer_destroy(p); }
  void operator()(DLManagedTensorVersioned* p) const { p->deleter(p); }
};
template <class T>
using Handle = std::unique_ptr<T, Closer>;

// Zero-filled, with struct_size set: all defaults.
template <class T>
T sized() {
  T t;
  std::memset(&t, 0, sizeof t);
  t.struct_size = sizeof t;
  return t;
}

inline void must(stw_status status, const stw_error& error) {
  if (status != STW_OK) throw std::runtime_error(std::string(stw_status_name(status)) + ": " + error.message);
}

// make<stw_plan>([&](stw_plan** out, stw_error* error) { return stw_plan_create(out, …, error); })
template <class T, class F>
Handle<T> make(const F& create) {
  stw_error error = sized<stw_error>();
  T* out = nullptr;
  must(create(&out, &error), error);
  return Handle<T>(out);
}

inline const std::string tiny_gpt2 =
    R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","vocab_size":256,
  "n_positions":16,"n_embd":32,"n_layer":2,"n_head":2,"embd_pdrop":0.0,"attn_pdrop":0.0,"resid_pdrop":0.0})";
inline const std::string tiny_llama =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":256,
  "max_position_embeddings":16,"hidden_size":32,"num_hidden_layers":3,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,
  "intermediate_size":64,"hidden_act":"silu","rms_norm_eps":1e-5,"tie_word_embeddings":false})";

// A classifier with three labels and two token types.
inline const std::string tiny_bert =
    R"({"architectures":["BertForSequenceClassification"],"model_type":"bert","vocab_size":256,
  "max_position_embeddings":16,"hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,)"
    R"("intermediate_size":64,
  "hidden_dropout_prob":0.0,"attention_probs_dropout_prob":0.0,"id2label":{"0":"yes","1":"no","2":"maybe"}})";

inline Handle<stw_model> make_model(const std::string& config, uint64_t seed = 0) {
  auto o = sized<stw_model_options>();
  if (config.starts_with('{')) {
    o.config_json = config.data();
    o.config_json_size = config.size();
  } else {
    o.source = config.c_str();
  }
  o.seed = seed;
  return make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
}

inline Handle<stw_device> open_device(uint32_t threads = 2) {
  auto o = sized<stw_device_options>();
  o.threads = threads;
  return make<stw_device>([&](stw_device** out, stw_error* e) { return stw_device_open(out, &o, e); });
}

inline stw_plan_options plan_options(uint64_t global_batch = 4, uint64_t sequence = 16) {
  auto o = sized<stw_plan_options>();
  o.global_batch = global_batch;
  o.sequence = sequence;
  o.memory_bytes = uint64_t{1} << 30;
  o.threads = 2;
  return o;
}

inline Handle<stw_plan> make_plan(const stw_model* model, const stw_plan_options& o) {
  return make<stw_plan>([&](stw_plan** out, stw_error* e) { return stw_plan_create(out, model, &o, e); });
}

inline stw_plan_info info_of(const stw_plan* plan) {
  auto info = sized<stw_plan_info>();
  EXPECT_EQ(stw_plan_query(plan, &info), STW_OK);
  return info;
}

// Everything that a trainer needs, in order of creation.
struct World {
  Handle<stw_device> device;
  Handle<stw_model> model;
  Handle<stw_plan> plan;
  Handle<stw_trainer> trainer;

  World(const std::string& config, const stw_plan_options& plan_of,
        const stw_trainer_options* trainer_of = nullptr, Handle<stw_device> opened = open_device())
      : device(std::move(opened)), model(make_model(config)), plan(make_plan(model.get(), plan_of)) {
    trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, device.get(), model.get(), plan.get(), trainer_of, e);
    });
  }
};

inline std::string text_of(size_t bytes) {
  std::string text;
  uint32_t x = 12345;
  while (text.size() < bytes)
    text += "abcdefgh ijklm\n"[(x = x * 1664525 + 1013904223) >> 28 & 15 ? x >> 28 & 7 : 8];
  return text;
}

inline Handle<stw_dataset> open_dataset(const stw_dataset_options& o) {
  return make<stw_dataset>([&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &o, e); });
}

inline Handle<stw_dataset> open_text(const TemporaryDirectory& folder, const std::string& text,
                                     uint64_t sequence = 16, uint64_t vocabulary = 256) {
  const std::string path = folder / "text.txt";
  put_file(path, text);
  auto o = sized<stw_dataset_options>();
  o.path = path.c_str();
  o.vocabulary = vocabulary;
  o.sequence = sequence;
  return open_dataset(o);
}

inline stw_run_options run_options(uint64_t until) {
  auto o = sized<stw_run_options>();
  o.until = until;
  o.total = 100;
  o.warmup = 2;
  o.learning_rate = 1e-2;
  return o;
}

inline void run(stw_trainer* trainer, stw_dataset* dataset, uint64_t until) {
  stw_error error = sized<stw_error>();
  const stw_run_options o = run_options(until);
  must(stw_trainer_run(trainer, dataset, &o, &error), error);
}

inline stw_progress progress_of(const stw_trainer* trainer) {
  auto p = sized<stw_progress>();
  EXPECT_EQ(stw_trainer_progress(trainer, &p), STW_OK);
  return p;
}

inline uint64_t elements_of(const DLManagedTensorVersioned& t) {
  uint64_t n = 1;
  for (int32_t i = 0; i < t.dl_tensor.ndim; ++i) n *= static_cast<uint64_t>(t.dl_tensor.shape[i]);
  return n;
}

inline Handle<DLManagedTensorVersioned> view_of(stw_trainer* trainer, size_t index,
                                                uint32_t kind = STW_TENSOR_PARAMETER) {
  return make<DLManagedTensorVersioned>([&](DLManagedTensorVersioned** out, stw_error* e) {
    return stw_trainer_export_tensor(trainer, index, kind, out, e);
  });
}

// The values of tensors. Two are equal exactly if every bit is: -0 differs from 0, and a NaN equals itself.
struct Values : std::vector<std::vector<float>> {
  bool operator==(const Values& o) const {
    return std::equal(begin(), end(), o.begin(), o.end(), [](const auto& x, const auto& y) {
      return x.size() == y.size() &&
             (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof x[0]) == 0);
    });
  }
};

// All values of one kind, tensor after tensor; only for fp32 trainers.
inline Values values_of(const World& w, uint32_t kind = STW_TENSOR_PARAMETER) {
  Values all;
  for (size_t i = 0; i < stw_model_tensor_count(w.model.get()); ++i) {
    const auto view = view_of(w.trainer.get(), i, kind);
    if (view->dl_tensor.dtype.code == kDLBfloat) {
      const uint16_t* data = static_cast<const uint16_t*>(view->dl_tensor.data);
      std::vector<float>& values = all.emplace_back();
      for (size_t e = 0; e < elements_of(*view); ++e)
        values.push_back(std::bit_cast<float>(uint32_t{data[e]} << 16));
      continue;
    }
    const float* data = static_cast<const float*>(view->dl_tensor.data);
    all.emplace_back(data, data + elements_of(*view));
  }
  return all;
}

// The state that a step changes.
struct State {
  Values parameters, first, second;
  uint64_t step, batches, skipped;
  bool operator==(const State&) const = default;
};
inline State state_of(const World& w) {
  const stw_progress p = progress_of(w.trainer.get());
  return {values_of(w),
          values_of(w, STW_TENSOR_FIRST_MOMENT),
          values_of(w, STW_TENSOR_SECOND_MOMENT),
          p.step,
          p.batches,
          p.skipped};
}

// A host's batch: two int32 matrices, compact unless `strides` is set; lengths, weights and tensors for pairs
// if they are not empty.
class TokenBatch {
 public:
  TokenBatch(int64_t samples, int64_t length, uint32_t seed = 1) : shape_{samples, length} {
    for (int64_t i = 0; i < samples * length; ++i) {
      seed = seed * 1664525 + 1013904223;
      tokens.push_back(static_cast<int32_t>(seed >> 24 & 127));
      targets.push_back(static_cast<int32_t>(seed >> 16 & 127));
    }
  }
  std::vector<int32_t> tokens, targets;
  std::vector<int64_t> strides;
  uint64_t byte_offset = 0;
  std::vector<int32_t> lengths;
  std::vector<float> weights;
  std::vector<int32_t> positions, token_types;
  std::vector<float> reference;
  const char* second = "targets";  // the name of `targets`

  // Valid until the next call.
  const stw_batch* batch(double learning_rate = 1e-2) {
    names_.clear();
    for (size_t i = 0; i < managed_.size(); ++i) pointers_[i] = &managed_[i];
    lengths_shape_ = static_cast<int64_t>(lengths.size());
    const auto add = [&](const char* name, void* data, uint8_t code, bool is_matrix) {
      DLManagedTensorVersioned& managed = managed_[names_.size()] = {};
      names_.push_back(name);
      managed.version = {1, 0};
      auto& t = managed.dl_tensor;
      t.data = data;
      t.device = {kDLCPU, 0};
      t.ndim = is_matrix ? 2 : 1;
      t.dtype = {code, 32, 1};
      t.shape = is_matrix ? shape_.data() : &lengths_shape_;
    };
    add("tokens", tokens.data(), 0, true);
    add(second, targets.data(), 0, true);
    for (size_t i = 0; i < 2; ++i) {
      managed_[i].dl_tensor.strides = strides.empty() ? nullptr : strides.data();
      managed_[i].dl_tensor.byte_offset = byte_offset;
    }
    if (!lengths.empty()) add("lengths", lengths.data(), 0, false);
    if (!weights.empty()) add("weights", weights.data(), 2, true);
    if (!positions.empty()) add("positions", positions.data(), 0, true);
    if (!token_types.empty()) add("token_types", token_types.data(), 0, true);
    if (!reference.empty()) add("reference", reference.data(), 2, true);
    batch_ = sized<stw_batch>();
    batch_.count = static_cast<uint32_t>(names_.size());
    batch_.names = names_.data();
    batch_.tensors = pointers_.data();
    batch_.learning_rate = learning_rate;
    return &batch_;
  }
  DLManagedTensorVersioned& managed(size_t i) { return managed_[i]; }

 private:
  std::vector<int64_t> shape_;
  std::vector<const char*> names_;
  std::vector<DLManagedTensorVersioned> managed_ = std::vector<DLManagedTensorVersioned>(7);
  std::vector<const DLManagedTensorVersioned*> pointers_ = std::vector<const DLManagedTensorVersioned*>(7);
  int64_t lengths_shape_ = 0;
  stw_batch batch_{};
};

inline stw_step_result step(stw_trainer* trainer, const stw_batch* batch) {
  stw_error error = sized<stw_error>();
  must(stw_trainer_step(trainer, batch, &error), error);
  auto result = sized<stw_step_result>();
  must(stw_trainer_wait(trainer, &result, &error), error);
  return result;
}

}  // namespace stw::api_test
