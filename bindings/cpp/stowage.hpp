// The C API of Stowage for C++20, in one header on top of stowage.h. Objects own their handles, failures are
// exceptions, and callbacks are std::function.
//
//   stowage::Model model("path/to/model");  // or a preset
//   stowage::Device device;                 // a GPU if there is one, else the CPU
//   auto options = stowage::made<stw_plan_options>();
//   options.global_batch = 32, options.sequence = 512, options.memory_bytes = 4ull << 30;
//   stowage::Plan plan(model, device, options);     // may throw OverBudget; its plan() says what fits
//   stowage::Trainer trainer(device, model, plan);  // the only allocation of tensors
//   const auto samples = stowage::rows(tokens, 512);
//   stw_step_result done = trainer.step({.tokens = samples, .labels = samples}, 3e-4);
//
// stowage.h is the contract. Options and results are its structs. Methods that several threads may call at
// once are `const`. Objects can be moved, but not copied. A device is closed after the last trainer on it is
// destroyed. If a callback throws, the library call that ran it ends and throws the same exception.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stowage.h"

namespace stowage {

class Plan;

/// A struct of the API: zero except for its size. As in C, a zero counts as a value only if its bit in
/// set_mask is set.
template <class Struct>
Struct made() {
  Struct zero;
  std::memset(&zero, 0, sizeof zero);
  zero.struct_size = sizeof zero;
  return zero;
}

/// A failure of the library. what() is "STW_OVER_BUDGET: …".
class Error : public std::runtime_error {
 public:
  Error(stw_status status, const std::string& message) : Error(status, message, made<stw_error>()) {}
  explicit Error(const stw_error& error) : Error(error.status, error.message, error) {}

  stw_status status() const noexcept { return error_.status; }
  /// errno or cudaError_t, else 0.
  int native_code() const noexcept { return error_.native_code; }
  /// Bytes, if there was too little memory; else 0.
  uint64_t bytes_needed() const noexcept { return error_.bytes_needed; }
  uint64_t bytes_available() const noexcept { return error_.bytes_available; }

 protected:
  Error(stw_status status, const std::string& message, const stw_error& error)
      : std::runtime_error(message.empty() ? stw_status_name(status)
                                           : stw_status_name(status) + (": " + message)),
        error_(error) {
    error_.status = status;
  }

 private:
  stw_error error_;
};

/// Nothing fits the budget. bytes_needed() is a budget that works.
class OverBudget : public Error {
 public:
  explicit OverBudget(const stw_error& error, std::shared_ptr<const Plan> plan = nullptr)
      : Error(error), plan_(std::move(plan)) {}
  /// From the constructor of Plan: the plan that needs the least memory. It cannot be trained, but it has a
  /// report, the smallest budget, and the settings that would help. Null if something else did not fit.
  const Plan* plan() const noexcept { return plan_.get(); }

 private:
  std::shared_ptr<const Plan> plan_;  // shared, because exceptions are copied
};

namespace detail {

[[noreturn]] inline void fail(const stw_error& error) {
  if (error.status == STW_OVER_BUDGET) throw OverBudget(error);
  throw Error(error);
}

/// Makes a call that may write an error, and throws that error.
template <class Call>
void check(Call&& call) {
  auto error = made<stw_error>();
  if (const stw_status status = call(&error); status != STW_OK) {
    error.status = status;
    fail(error);
  }
}

/// The result of an entry that has no error argument. Empty if the entry answers that there is no such
/// object.
template <class Struct, class Call>
std::optional<Struct> query(Call&& call) {
  auto out = made<Struct>();
  const stw_status status = call(&out);
  if (status == STW_OK) return out;
  if (status != STW_BAD_ARGUMENT) throw Error(status, "");
  return std::nullopt;
}

/// The description of an object.
template <class Struct, class Call>
Struct info(Call&& call) {
  if (auto found = query<Struct>(call)) return *found;
  throw Error(STW_BAD_ARGUMENT, "an object that was moved from");
}

/// A copy of a callback's argument. An older library may know fewer fields: the rest is zero.
template <class Struct>
Struct copied(const Struct* argument) {
  Struct copy;
  std::memset(&copy, 0, sizeof copy);
  std::memcpy(&copy, argument, argument->struct_size < sizeof copy ? argument->struct_size : sizeof copy);
  return copy;
}

/// All results of an entry, from index 0 on.
template <class Struct, class Call>
std::vector<Struct> every(Call&& call) {
  std::vector<Struct> found;
  while (auto one = query<Struct>([&](Struct* out) { return call(found.size(), out); }))
    found.push_back(*one);
  return found;
}

template <class At>
std::vector<std::string> names(At&& at) {
  std::vector<std::string> found;
  while (const char* name = at(found.size())) found.emplace_back(name);
  return found;
}

template <class T, void (*end)(T*) noexcept>
struct Ends {
  void operator()(T* object) const noexcept { end(object); }
};
template <class T, void (*end)(T*) noexcept>
using Owner = std::unique_ptr<T, Ends<T, end>>;

/// DLPack 1.0 (https://dmlc.github.io/dlpack, "C API"), with a name that differs from those in dlpack.h.
struct ManagedTensor {
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedTensor*);
  uint64_t flags;
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
inline constexpr uint8_t integer = 0, floating = 2, bfloat = 4;
inline constexpr int32_t host = 1;

inline DLManagedTensorVersioned* as_dlpack(ManagedTensor* tensor) {
  return reinterpret_cast<DLManagedTensorVersioned*>(tensor);
}

/// Keeps an exception of a callback until the library call that ran the callback throws it.
class Thrown {
 public:
  template <class Call>
  int32_t guard(Call&& call) noexcept {
    try {
      return call() ? 0 : 1;
    } catch (...) {
      thrown_ = std::current_exception();
      return 1;
    }
  }
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  std::exception_ptr thrown_;
};

}  // namespace detail

/// The version of the loaded library: major * 10000 + minor * 100 + patch.
inline uint32_t version() { return stw_version(); }
inline std::string build_info() { return stw_build_info(); }
inline std::vector<std::string> presets() {
  return detail::names([](size_t index) { return stw_model_preset_at(index); });
}
/// The devices that can be planned for.
inline std::vector<stw_profile_info> profiles() {
  return detail::every<stw_profile_info>([](size_t index, auto* out) { return stw_profile_at(index, out); });
}

/// The devices that can train on this machine, the CPU first.
inline std::vector<stw_device_info> devices() {
  std::vector<stw_device_info> found;
  for (;;) {
    auto one = made<stw_device_info>();
    auto error = made<stw_error>();
    error.status = stw_device_at(found.size(), &one, &error);
    if (error.status == STW_BAD_ARGUMENT) return found;
    if (error.status != STW_OK) detail::fail(error);
    found.push_back(one);
  }
}

/// A calibrated profile's figures and ops.
struct CalibratedProfile {
  stw_profile_info figures;
  std::vector<stw_profile_op_info> ops;
};
/// Reads a profile that Trainer::calibrate returned.
inline CalibratedProfile read_profile(std::string_view text) {
  CalibratedProfile found{made<stw_profile_info>(), {}};
  detail::check(
      [&](stw_error* error) { return stw_profile_read(text.data(), text.size(), &found.figures, error); });
  found.ops = detail::every<stw_profile_op_info>(
      [&](size_t index, auto* out) { return stw_profile_op_at(text.data(), text.size(), index, out); });
  return found;
}

/// A device that computes: the CPU, or a CUDA device.
class Device {
 public:
  using Log = std::function<void(int32_t level, std::string_view component, std::string_view message)>;

  explicit Device(const stw_device_options& options = made<stw_device_options>()) : Device(options, {}) {}
  /// `log` receives messages, on the threads that call the library. Its exceptions are dropped.
  Device(stw_device_options options, Log log) {
    const std::shared_ptr<Log> heard = log ? std::make_shared<Log>(std::move(log)) : nullptr;
    if (heard) {
      options.log = [](void* user, int32_t level, const char* component, const char* message) noexcept {
        try {
          (*static_cast<Log*>(user))(level, component, message);
        } catch (...) {  // no caller could receive it
        }
      };
      options.log_user = heard.get();
    }
    detail::Owner<stw_device, stw_device_close> owned;
    stw_device* out = nullptr;
    detail::check([&](stw_error* error) { return stw_device_open(&out, &options, error); });
    owned.reset(out);
    open_ = std::shared_ptr<stw_device>(out, [heard](stw_device* device) { stw_device_close(device); });
    [[maybe_unused]] stw_device* given = owned.release();
  }
  Device(Device&&) = default;
  Device& operator=(Device&&) = default;

  stw_device* get() const noexcept { return open_.get(); }
  stw_device_info info() const {
    return detail::info<stw_device_info>([&](auto* out) { return stw_device_query(get(), out); });
  }
  /// The processes that hold memory of a CUDA device, as far as the driver reports them.
  std::vector<stw_memory_holder> holders() const {
    return detail::every<stw_memory_holder>(
        [&](size_t index, auto* out) { return stw_device_holder_at(get(), index, out); });
  }
  /// The oldest kept message whose number is larger than `after`.
  std::optional<stw_log_message> next_log(uint64_t after = 0) const {
    auto found =
        detail::query<stw_log_message>([&](auto* out) { return stw_device_next_log(get(), after, out); });
    return found && found->number ? found : std::nullopt;
  }

 private:
  friend class Trainer;
  std::shared_ptr<stw_device> open_;
};

/// Cancels long calls and reports their progress, one call at a time. Put get() into the field `watch` of
/// options. The watch must outlive the objects that use it.
class Watch {
 public:
  /// A result of false cancels the call.
  using Notify = std::function<bool(const stw_watch_info& now)>;

  explicit Watch(const stw_watch_options& options = made<stw_watch_options>()) : Watch(options, {}) {}
  /// `notify` is called in the middle of a long call. Its exception cancels the call; rethrow() throws the
  /// exception again.
  Watch(stw_watch_options options, Notify notify) {
    if (notify) {
      calls_ = std::make_unique<Calls>(Calls{std::move(notify), {}});
      options.notify = [](void* user, const stw_watch_info* now) noexcept -> int32_t {
        auto& calls = *static_cast<Calls*>(user);
        return calls.thrown.guard([&] { return calls.notify(detail::copied(now)); });
      };
      options.user = calls_.get();
    }
    stw_watch* out = nullptr;
    detail::check([&](stw_error* error) { return stw_watch_create(&out, &options, error); });
    owned_.reset(out);
  }

  stw_watch* get() const noexcept { return owned_.get(); }
  /// Ends the call in progress that uses the watch, or else the next one. For any thread and for signal
  /// handlers.
  void cancel() const noexcept { stw_watch_cancel(get()); }
  /// The progress of the call in progress. For any thread.
  stw_watch_info state() const {
    return detail::info<stw_watch_info>([&](auto* out) { return stw_watch_query(get(), out); });
  }
  /// Throws the last exception of `notify`, if there was one.
  void rethrow() {
    if (calls_) calls_->thrown.rethrow();
  }

 private:
  struct Calls {
    Notify notify;
    detail::Thrown thrown;
  };
  std::unique_ptr<Calls> calls_;
  detail::Owner<stw_watch, stw_watch_destroy> owned_;  // destroyed first
};

/// A model to train. It may be destroyed before the objects made from it.
class Model {
 public:
  explicit Model(const stw_model_options& options) {
    stw_model* out = nullptr;
    detail::check([&](stw_error* error) { return stw_model_create(&out, &options, error); });
    owned_.reset(out);
  }
  /// A folder, a config.json, or a preset by its name.
  explicit Model(const std::filesystem::path& source) : Model(with_source(source.string())) {}

  stw_model* get() const noexcept { return owned_.get(); }
  stw_model_info info() const {
    return detail::info<stw_model_info>([&](auto* out) { return stw_model_query(get(), out); });
  }
  /// The parameters, by index. Names live as long as the model.
  std::vector<stw_tensor_info> tensors() const {
    return detail::every<stw_tensor_info>(
        [&](size_t index, auto* out) { return stw_model_tensor_at(get(), index, out); });
  }
  std::optional<size_t> index_of(const std::string& name) const {
    size_t index = 0;
    if (stw_model_tensor_find(get(), name.c_str(), &index) != STW_OK) return std::nullopt;
    return index;
  }
  /// The labels of a classifier.
  std::vector<std::string> labels() const {
    return detail::names([&](size_t index) { return stw_model_label_at(get(), index); });
  }
  /// The text of its config.json, with its task and labels.
  std::string config() const { return stw_model_config(get()); }
  /// Writes config.json and model.safetensors, with the adapters merged into their matrices.
  void export_to(const std::filesystem::path& folder, stw_watch* watch = nullptr) const {
    detail::check([&](stw_error* error) {
      return stw_model_export_watched(get(), folder.string().c_str(), watch, error);
    });
  }

 private:
  explicit Model(const std::pair<stw_model_options, std::string>& given) : Model(pointing(given)) {}
  static std::pair<stw_model_options, std::string> with_source(std::string source) {
    return {made<stw_model_options>(), std::move(source)};
  }
  static stw_model_options pointing(const std::pair<stw_model_options, std::string>& given) {
    stw_model_options options = given.first;
    options.source = given.second.c_str();
    return options;
  }

  detail::Owner<stw_model, stw_model_destroy> owned_;
};

/// A plan: the place of every buffer in memory, the budget that it fits, and its predicted speed.
class Plan {
 public:
  /// Chooses the fastest way to train that fits. Throws OverBudget if nothing fits.
  Plan(const Model& model, const stw_plan_options& options) {
    stw_plan* out = nullptr;
    auto error = made<stw_error>();
    error.status = stw_plan_create(&out, model.get(), &options, &error);
    owned_.reset(out);
    if (error.status == STW_OK) return;
    if (out) throw OverBudget(error, std::shared_ptr<const Plan>(new Plan(owned_.release())));
    detail::fail(error);
  }
  /// Plans for this device if the options name no device. Takes its number of threads, and on a GPU its free
  /// memory, if the options leave them unset.
  Plan(const Model& model, const Device& device, stw_plan_options options)
      : Plan(model, options, device.info()) {}

  /// Reads text that json() returned.
  static Plan load(const Model& model, std::string_view json) {
    stw_plan* out = nullptr;
    detail::check(
        [&](stw_error* error) { return stw_plan_load(&out, model.get(), json.data(), json.size(), error); });
    return Plan(out);
  }
  /// The longest sequence, in tokens, that fits with these options. Their sequence is ignored.
  static uint64_t longest_sequence(const Model& model, const stw_plan_options& options) {
    uint64_t longest = 0;
    detail::check(
        [&](stw_error* error) { return stw_plan_longest_sequence(model.get(), &options, &longest, error); });
    return longest;
  }

  stw_plan* get() const noexcept { return owned_.get(); }
  stw_plan_info info() const {
    return detail::info<stw_plan_info>([&](auto* out) { return stw_plan_query(get(), out); });
  }
  std::string json() const { return text(stw_plan_json(get())); }
  /// The plan as a table for people.
  std::string report() const { return text(stw_plan_report(get())); }
  /// Checks every program of the plan with an independent verifier.
  void verify() const {
    detail::check([&](stw_error* error) { return stw_plan_verify(get(), error); });
  }
  std::vector<stw_relaxation_info> relaxations() const {
    return detail::every<stw_relaxation_info>(
        [&](size_t index, auto* out) { return stw_plan_relaxation_at(get(), index, out); });
  }
  std::vector<stw_offload_info> offloads() const {
    return detail::every<stw_offload_info>(
        [&](size_t index, auto* out) { return stw_plan_offload_at(get(), index, out); });
  }
  std::vector<stw_buffer_info> buffers() const {
    return detail::every<stw_buffer_info>(
        [&](size_t index, auto* out) { return stw_plan_buffer_at(get(), index, out); });
  }
  /// The plans that other budgets would get (the Pareto frontier of memory and speed), by growing peak.
  std::vector<stw_frontier_point> frontier(stw_watch* watch = nullptr) const {
    // If there are more points than fit, the library leaves some out. It gives at most 1000.
    for (size_t capacity = 1024;; capacity *= 2) {
      std::vector<stw_frontier_point> found(capacity, made<stw_frontier_point>());
      size_t count = 0;
      detail::check([&](stw_error* error) {
        return stw_plan_frontier_watched(get(), found.data(), capacity, &count, watch, error);
      });
      if (count == capacity) continue;
      found.resize(count);
      return found;
    }
  }
  /// Draws the plan; STW_PICTURE_*.
  std::string picture(uint32_t kind, stw_watch* watch = nullptr) const {
    size_t size = 0;
    detail::check([&](stw_error* error) {
      return stw_plan_picture_watched(get(), kind, nullptr, 0, &size, watch, error);
    });
    std::string text(size, '\0');
    detail::check([&](stw_error* error) {
      return stw_plan_picture_watched(get(), kind, text.data(), size, nullptr, watch, error);
    });
    text.pop_back();  // the zero byte
    return text;
  }

 private:
  friend class Trainer;
  explicit Plan(stw_plan* plan) : owned_(plan) {}
  static std::string text(const char* text) { return text ? text : ""; }
  Plan(const Model& model, stw_plan_options& options, const stw_device_info& device)
      : Plan(model, naming(options, device)) {}
  static const stw_plan_options& naming(stw_plan_options& options, const stw_device_info& device) {
    if (!options.device && !options.profile) options.device = device.profile;
    if (!options.threads && device.backend == STW_BACKEND_CPU) options.threads = device.threads;
    if (!options.device_memory && device.backend == STW_BACKEND_CUDA)
      options.device_memory = device.memory_free + device.memory_reserved;
    return options;
  }

  detail::Owner<stw_plan, stw_plan_destroy> owned_;
};

/// The result of a search for offsets. If no placement within the capacity was found, `offsets` is empty, and
/// bytes_needed is a capacity that is enough.
struct Packed {
  std::vector<uint64_t> offsets;
  stw_pack_result result;
  uint64_t bytes_needed;
};
/// Gives buffers offsets so that buffers that are alive at the same time do not overlap.
inline Packed pack(std::span<const stw_buffer_lifetime> lifetimes,
                   const stw_pack_options& options = made<stw_pack_options>()) {
  Packed found{std::vector<uint64_t>(lifetimes.size()), made<stw_pack_result>(), 0};
  try {
    detail::check([&](stw_error* error) {
      return stw_pack(found.offsets.data(), lifetimes.data(), lifetimes.size(), &options, &found.result,
                      error);
    });
  } catch (const Error& error) {
    if (error.status() != STW_OVER_BUDGET) throw;
    found.offsets.clear();
    found.bytes_needed = error.bytes_needed();
  }
  return found;
}

/// A file of tokens, read window by window.
class Dataset {
 public:
  explicit Dataset(const stw_dataset_options& options) {
    stw_dataset* out = nullptr;
    detail::check([&](stw_error* error) { return stw_dataset_open(&out, &options, error); });
    owned_.reset(out);
  }
  stw_dataset* get() const noexcept { return owned_.get(); }
  stw_dataset_info info() const {
    return detail::info<stw_dataset_info>([&](auto* out) { return stw_dataset_query(get(), out); });
  }

 private:
  detail::Owner<stw_dataset, stw_dataset_close> owned_;
};

/// Numbers of a batch. They are borrowed.
template <class Number>
struct Rows {
  enum class Kind { none, rows, one_each };
  std::span<const Number> values = {};
  size_t length = 0;  // of each row
  Kind kind = Kind::none;
};
/// (samples, tokens), row by row.
inline Rows<int32_t> rows(std::span<const int32_t> values, size_t length) {
  return {values, length, Rows<int32_t>::Kind::rows};
}
inline Rows<float> rows(std::span<const float> values, size_t length) {
  return {values, length, Rows<float>::Kind::rows};
}
/// (samples): one number for each sample.
inline Rows<int32_t> one_each(std::span<const int32_t> values) {
  return {values, 0, Rows<int32_t>::Kind::one_each};
}

/// stw_batch: tokens, and either targets or labels. -100 means no loss.
struct Batch {
  Rows<int32_t> tokens;
  Rows<int32_t> targets = {};  ///< the token that follows each token
  Rows<int32_t> labels =
      {};  ///< each in its token's place; a language model's are shifted. For text classifiers: one_each()
  Rows<int32_t> lengths = {};      ///< one_each(): how many tokens of each sample count
  Rows<int32_t> positions = {};    ///< the position of each token in its document
  Rows<int32_t> token_types = {};  ///< each token's type, for models with token types
  Rows<float> weights = {};        ///< factors of the losses
  Rows<float> reference =
      {};                   ///< log-probabilities of the targets or labels, for preferences with a reference
  Rows<float> values = {};  ///< instead of labels, for the tasks LABELS, NUMBER and SPANS: (samples, labels)
};

/// A view of a tensor in a trainer's memory, without a copy. It is valid until the trainer ends or is planned
/// again.
class View {
 public:
  explicit View(DLManagedTensorVersioned* exported)
      : owned_(reinterpret_cast<detail::ManagedTensor*>(exported)) {}

  std::vector<int64_t> shape() const { return {owned_->shape, owned_->shape + owned_->ndim}; }
  size_t size() const {
    size_t count = 1;
    for (const int64_t one : shape()) count *= static_cast<size_t>(one);
    return count;
  }
  bool is_on_host() const { return owned_->device_type == detail::host; }
  bool is_fp32() const { return owned_->code == detail::floating && owned_->bits == 32; }
  bool is_bf16() const { return owned_->code == detail::bfloat; }
  bool is_fp16() const { return owned_->code == detail::floating && owned_->bits == 16; }
  /// The address of the first element, in the device's memory.
  void* data() const { return static_cast<char*>(owned_->data) + owned_->byte_offset; }
  /// The numbers of an fp32 tensor in host memory; empty for other tensors.
  std::span<float> floats() const { return numbers<float>(is_fp32()); }
  /// The bits of a bf16 or fp16 tensor in host memory; empty for other tensors.
  std::span<uint16_t> bits16() const { return numbers<uint16_t>(is_bf16() || is_fp16()); }
  /// Gives the tensor to a reader of DLPack, who has to call its deleter.
  DLManagedTensorVersioned* release() { return detail::as_dlpack(owned_.release()); }

 private:
  template <class Number>
  std::span<Number> numbers(bool is_that) const {
    if (!is_that || !is_on_host()) return {};
    return {static_cast<Number*>(data()), size()};
  }
  struct Deletes {
    void operator()(detail::ManagedTensor* tensor) const noexcept {
      if (tensor->deleter) tensor->deleter(tensor);
    }
  };
  std::unique_ptr<detail::ManagedTensor, Deletes> owned_;
};

/// A trainer: a model in an arena of the plan's bytes.
class Trainer {
 public:
  /// Called between the last micro-step and the update. Its exception fails the step.
  using Hook = std::function<void(const stw_gradients&)>;
  /// Called between two steps. A result of false stops the run.
  using Progress = std::function<bool(const stw_progress&)>;

  Trainer(Device& device, const Model& model, const Plan& plan,
          const stw_trainer_options& options = made<stw_trainer_options>())
      : Trainer(device, model, plan, options, {}) {}
  Trainer(Device& device, const Model& model, const Plan& plan, stw_trainer_options options, Hook hook)
      : device_(device.open_), hook_(std::make_unique<Hooked>(Hooked{std::move(hook), {}})) {
    if (hook_->hook) {
      options.gradient_hook = [](void* user, const stw_gradients* gradients) noexcept {
        Hooked& hooked = *static_cast<Hooked*>(user);
        return hooked.thrown.guard([&] {
          hooked.hook(detail::copied(gradients));
          return true;
        });
      };
      options.gradient_user = hook_.get();
    }
    stw_trainer* out = nullptr;
    detail::check([&](stw_error* error) {
      return stw_trainer_create(&out, device.get(), model.get(), plan.get(), &options, error);
    });
    owned_.reset(out);
    const stw_model_info about = model.info();
    labels_ = static_cast<size_t>(about.labels);
    labels_tokens_ = about.task == STW_TASK_TOKEN_LABEL || about.task == STW_TASK_SPANS;
    classes_ = labels_ ? labels_ : static_cast<size_t>(about.vocabulary);
    sequence_ = plan.info().sequence;
    for (const stw_tensor_info& tensor : model.tensors())
      shapes_.emplace_back(tensor.shape, tensor.shape + tensor.ndim);
  }

  Trainer(Trainer&&) = default;
  Trainer& operator=(Trainer&& other) noexcept {
    if (this == &other) return *this;
    owned_ = std::move(other.owned_);  // first, because the old trainer must end before its device
    hook_ = std::move(other.hook_);
    device_ = std::move(other.device_);
    labels_ = other.labels_;
    labels_tokens_ = other.labels_tokens_;
    classes_ = other.classes_;
    sequence_ = other.sequence_;
    shapes_ = std::move(other.shapes_);
    return *this;
  }

  stw_trainer* get() const noexcept { return owned_.get(); }

  /// Makes one optimizer step with a whole global batch.
  stw_step_result step(const Batch& batch, double learning_rate) {
    with(batch, learning_rate,
         [&](const stw_batch* given, stw_error* error) { return stw_trainer_step(get(), given, error); });
    auto result = made<stw_step_result>();
    call([&](stw_error* error) { return stw_trainer_wait(get(), &result, error); });
    return result;
  }

  /// Makes steps over a dataset. Returns true at the end of the run, false if `progress` or cancel() stopped
  /// it. Throws the exceptions of `progress` and of the hook.
  bool run(Dataset& dataset, stw_run_options options, Progress progress = {}) {
    struct ProgressCall {
      Progress progress;
      detail::Thrown thrown;
    } callback{std::move(progress), {}};
    if (callback.progress) {
      options.progress = [](void* user, const stw_progress* now) noexcept {
        auto& to = *static_cast<ProgressCall*>(user);
        return to.thrown.guard([&] { return to.progress(detail::copied(now)); });
      };
      options.progress_user = &callback;
    }
    auto error = made<stw_error>();
    error.status = stw_trainer_run(get(), dataset.get(), &options, &error);
    if (error.status == STW_OK) return true;
    callback.thrown.rethrow();
    rethrow_of_hook();
    if (error.status != STW_CANCELLED) detail::fail(error);
    return false;
  }

  /// The mean loss per target over `batches` global batches of the held-out part. Afterwards progress() has
  /// the accuracy of a classifier or a preference.
  double evaluate(Dataset& dataset, uint64_t batches) {
    double loss = 0;
    call([&](stw_error* error) { return stw_trainer_evaluate(get(), dataset.get(), batches, &loss, error); });
    return loss;
  }

  /// At most `count` tokens that continue the prompt, drawn as the options say.
  std::vector<int32_t> generate(std::span<const int32_t> prompt, size_t count,
                                stw_generate_options options = made<stw_generate_options>()) {
    if (count > sequence_)
      throw Error(STW_UNSUPPORTED_SHAPE, "generate: expected at most " + std::to_string(sequence_) +
                                             " tokens with the prompt, found " + std::to_string(count));
    std::vector<int32_t> out(count);
    options.prompt = prompt.data();
    options.prompt_count = prompt.size();
    options.out = out.data();
    options.out_capacity = out.size();
    uint64_t received = 0;
    call([&](stw_error* error) { return stw_trainer_generate(get(), &options, &received, error); });
    out.resize(received);
    return out;
  }

  /// The logits after these tokens: of the tokens that may follow, or of a classifier's labels.
  std::vector<float> logits(std::span<const int32_t> tokens) {
    std::vector<float> out(classes_);
    call([&](stw_error* error) {
      return stw_trainer_logits(get(), tokens.data(), tokens.size(), out.data(), out.size(), error);
    });
    return out;
  }

  /// The logits of a classifier's labels, one row for each text. If tokens have labels: one row for each
  /// token of each text in turn. token_types has a type for each token; empty: all are 0.
  std::vector<std::vector<float>> classify(const std::vector<std::vector<int32_t>>& texts,
                                           const std::vector<std::vector<int32_t>>& token_types = {}) {
    if (!token_types.empty() && token_types.size() != texts.size())
      throw Error(STW_BAD_ARGUMENT, "token_types: expected " + std::to_string(texts.size()) +
                                        " lists, found " + std::to_string(token_types.size()));
    std::vector<int32_t> tokens, types;
    std::vector<uint64_t> lengths;
    for (size_t i = 0; i < texts.size(); ++i) {
      tokens.insert(tokens.end(), texts[i].begin(), texts[i].end());
      lengths.push_back(texts[i].size());
      if (token_types.empty()) continue;
      if (token_types[i].size() != texts[i].size())
        throw Error(STW_BAD_ARGUMENT, "token_types: text " + std::to_string(i) + ": expected " +
                                          std::to_string(texts[i].size()) + " numbers, found " +
                                          std::to_string(token_types[i].size()));
      types.insert(types.end(), token_types[i].begin(), token_types[i].end());
    }
    const size_t count = labels_tokens_ ? tokens.size() : texts.size();
    std::vector<float> out(count * labels_);
    call([&](stw_error* error) {
      return stw_trainer_classify(get(), tokens.data(), types.empty() ? nullptr : types.data(),
                                  lengths.data(), lengths.size(), out.data(), out.size(), error);
    });
    std::vector<std::vector<float>> rows;
    for (size_t i = 0; i < count; ++i)
      rows.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(i * labels_),
                        out.begin() + static_cast<std::ptrdiff_t>((i + 1) * labels_));
    return rows;
  }

  /// The log-probability that the model, without dropout, gives every target of one or more samples. Each
  /// value has the place of its target or label; places without a target hold 0. The batch has neither
  /// weights nor a reference. The result can be the reference of later steps.
  std::vector<float> log_probabilities(const Batch& batch) {
    std::vector<float> out(batch.tokens.values.size());
    with(batch, 0, [&](const stw_batch* given, stw_error* error) {
      return stw_trainer_log_probabilities(get(), given, out.data(), out.size(), error);
    });
    return out;
  }

  /// Goes once over a dataset of pairs and writes the log-probabilities of its targets into a file, for
  /// stw_dataset_options.reference.
  void write_reference(Dataset& dataset, const std::filesystem::path& path) {
    call([&](stw_error* error) {
      return stw_trainer_write_reference(get(), dataset.get(), path.string().c_str(), error);
    });
  }

  /// Changes the budget from the next step on, with the same bits. Views become invalid.
  Plan replan(uint64_t memory_bytes) {
    stw_plan* out = nullptr;
    call([&](stw_error* error) { return stw_trainer_replan(get(), memory_bytes, &out, error); });
    return Plan(out);
  }

  /// Measures the device and returns a profile for planning. Only for a trainer that has made no step.
  std::string calibrate() {
    std::string out(STW_PROFILE_BYTES, '\0');
    size_t size = 0;
    call(
        [&](stw_error* error) { return stw_trainer_calibrate(get(), out.data(), out.size(), &size, error); });
    out.resize(size);
    return out;
  }
  /// Measures a step in the same way and writes a trace.
  void timeline(const std::filesystem::path& path) {
    call([&](stw_error* error) { return stw_trainer_timeline(get(), path.string().c_str(), error); });
  }

  /// Stops the call in progress, within a step too, or else the next one. For any thread.
  void cancel() const noexcept { stw_trainer_cancel(get()); }
  /// The state of the trainer. For any thread.
  stw_progress progress() const {
    return detail::info<stw_progress>([&](auto* out) { return stw_trainer_progress(get(), out); });
  }
  /// The stream of a CUDA device.
  void* stream() const noexcept { return stw_trainer_stream(get()); }

  /// A view of a tensor, by its index in Model::tensors(); `kind` is STW_TENSOR_*.
  View tensor(size_t index, uint32_t kind = STW_TENSOR_PARAMETER) {
    DLManagedTensorVersioned* out = nullptr;
    call([&](stw_error* error) { return stw_trainer_export_tensor(get(), index, kind, &out, error); });
    return View(out);
  }
  /// Overwrites a parameter. The number of values must be the same.
  void set_tensor(size_t index, std::span<const float> values) {
    if (index >= shapes_.size())
      throw Error(STW_BAD_ARGUMENT,
                  "tensor " + std::to_string(index) + ": there are " + std::to_string(shapes_.size()));
    std::vector<int64_t> shape = shapes_[index];
    size_t count = 1;
    for (const int64_t one : shape) count *= static_cast<size_t>(one);
    if (count != values.size())
      throw Error(STW_BAD_ARGUMENT, "tensor " + std::to_string(index) + ": expected " +
                                        std::to_string(count) + " values, found " +
                                        std::to_string(values.size()));
    detail::ManagedTensor given = borrowed(values.data(), detail::floating, shape);
    given.shape = shape.data();
    call([&](stw_error* error) {
      return stw_trainer_import_tensor(get(), index, detail::as_dlpack(&given), error);
    });
  }

  /// Writes a checkpoint, which can be restored with any budget.
  void save(const std::filesystem::path& path) {
    call([&](stw_error* error) { return stw_trainer_save(get(), path.string().c_str(), error); });
  }
  void restore(const std::filesystem::path& path) {
    call([&](stw_error* error) { return stw_trainer_restore(get(), path.string().c_str(), error); });
  }
  /// Writes the model for transformers. For a model with adapters, writes only the adapters, for PEFT.
  void export_model(const std::filesystem::path& folder) {
    call([&](stw_error* error) { return stw_trainer_export_model(get(), folder.string().c_str(), error); });
  }

 private:
  struct Hooked {
    Hook hook;
    detail::Thrown thrown;
  };

  static detail::ManagedTensor borrowed(const void* values, uint8_t code, const std::vector<int64_t>& shape) {
    detail::ManagedTensor tensor{};
    tensor.major = 1;
    tensor.data = const_cast<void*>(values);
    tensor.device_type = detail::host;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.code = code;
    tensor.bits = 32;
    tensor.lanes = 1;
    return tensor;
  }

  /// Makes a call with the batch as a C struct.
  template <class Call>
  void with(const Batch& batch, double learning_rate, Call&& use) {
    std::vector<const char*> names;
    std::vector<detail::ManagedTensor> tensors;
    std::vector<std::vector<int64_t>> shapes;
    const auto add = [&](const char* name, const auto& rows, uint8_t code) {
      using Kind = typename std::decay_t<decltype(rows)>::Kind;
      if (rows.kind == Kind::none) return;
      const size_t count = rows.values.size();
      if (rows.kind == Kind::rows && (rows.length == 0 || count % rows.length != 0))
        throw Error(STW_BAD_ARGUMENT, std::string(name) + ": " + std::to_string(count) +
                                          " numbers cannot form rows of " + std::to_string(rows.length));
      names.push_back(name);
      if (rows.kind == Kind::rows)
        shapes.push_back({static_cast<int64_t>(count / rows.length), static_cast<int64_t>(rows.length)});
      else shapes.push_back({static_cast<int64_t>(count)});
      tensors.push_back(borrowed(rows.values.data(), code, shapes.back()));
    };
    add("tokens", batch.tokens, detail::integer);
    add("targets", batch.targets, detail::integer);
    add("labels", batch.labels, detail::integer);
    add("lengths", batch.lengths, detail::integer);
    add("positions", batch.positions, detail::integer);
    add("token_types", batch.token_types, detail::integer);
    add("weights", batch.weights, detail::floating);
    add("reference", batch.reference, detail::floating);
    add("labels", batch.values, detail::floating);
    std::vector<const DLManagedTensorVersioned*> pointers;
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].shape = shapes[i].data();
      pointers.push_back(detail::as_dlpack(&tensors[i]));
    }
    auto given = made<stw_batch>();
    given.count = static_cast<uint32_t>(names.size());
    given.names = names.data();
    given.tensors = pointers.data();
    given.learning_rate = learning_rate;
    call([&](stw_error* error) { return use(&given, error); });
  }

  /// Makes a call that may run the gradient hook.
  template <class Call>
  void call(Call&& entry) {
    try {
      detail::check(entry);
    } catch (const Error&) {
      rethrow_of_hook();
      throw;
    }
  }

  void rethrow_of_hook() {
    if (hook_) hook_->thrown.rethrow();
  }

  std::shared_ptr<stw_device> device_;  // closed after the trainer
  std::unique_ptr<Hooked> hook_;
  size_t labels_ = 0, classes_ = 0;
  bool labels_tokens_ = false;
  uint64_t sequence_ = 0;
  std::vector<std::vector<int64_t>> shapes_;
  detail::Owner<stw_trainer, stw_trainer_destroy> owned_;
};

/// Reads a checkpoint once and compares every checksum.
inline void verify_checkpoint(const std::filesystem::path& path) {
  detail::check([&](stw_error* error) { return stw_checkpoint_verify(path.string().c_str(), error); });
}

}  // namespace stowage
