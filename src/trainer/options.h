// The settings of a trainer that do not change its plan.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "src/base/watch.h"
#include "src/trainer/preference.h"

namespace stw {

// The gradients of a step, after its last micro-step and before the update.
struct GradientView {
  float* data;
  uint64_t count;
  double* loss_sum;
  uint64_t* target_count;
  uint32_t* correct_pairs;  // with a preference: the number of pairs whose chosen text is ahead
  double scale;             // factor that the gradients contain
  void* stream;             // a cudaStream_t; null on the CPU
};

enum class NonFinite : uint8_t { skip, stop };

struct TrainerOptions {
  uint64_t seed = 1337;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip_norm = 1;
  double momentum = 0.9;
  bool nesterov = false;
  double label_smoothing = 0, z_loss = 0;  // of tokens; with a preference, label_smoothing is of pairs
  PreferenceOptions preference;
  double outlier_limit = 0;  // standard deviations; 0: outliers are not skipped
  NonFinite non_finite = NonFinite::skip;
  double loss_scale = 65536;        // fp16: the scale of the first step
  uint32_t growth_interval = 2000;  // fp16
  void* arena = nullptr;            // owned by the host; null: the trainer allocates
  uint64_t arena_bytes = 0;
  std::function<bool(const GradientView&)> gradient_hook;  // false: the step fails
  uint64_t first_sample = 0;  // the number of the batch's first sample in the joint batch of several trainers
  Watch* watch = nullptr;  // of the trainer's creation and of all its calls; owned by the host; may be null
};

}  // namespace stw
