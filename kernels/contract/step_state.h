// The scalars of a training step. Its bytes are a tensor of the graph.
#pragma once
#include <cstdint>

namespace stw::kernels {

// The scalars lie in the arena because they change from step to step, and a captured CUDA graph can read
// changed values only from memory.
struct StepState {
  // Written by the runtime before a step or micro-step.
  uint64_t seed;
  uint64_t step;          // Number of successful updates before this step.
  uint64_t first_sample;  // Index of the micro-batch's first sample in the global batch.
  uint64_t position;      // Generation: number of tokens in the cache.
  // max_norm: limit of the gradient norm; 0: no clipping.
  double learning_rate, beta1, beta2, epsilon, max_norm;
  double momentum;      // SGD and Muon.
  double inverse_root;  // Adafactor: 1 / sqrt(t), with t = step + 1.
  double fresh_share;   // Adafactor: t^-0.8, the weight of this step's squares.
  double label_smoothing, z_loss;
  // Keeps sums of fp16 gradients in range: 2^-ceil(log2(n)). n is the number of tokens of the global batch,
  // or its number of samples if the loss of a sample is a mean over its tokens. 1 unless fp16.
  double batch_factor;
  // A step is skipped if its loss or norm exceeds the running mean by more than this many standard
  // deviations; 0: never.
  double outlier_limit;
  uint32_t nesterov;  // SGD: Nesterov momentum.
  // fp16: loss_scale doubles after this many successive updates; 0: it is constant.
  uint32_t growth_interval;
  // Carried from step to step. finish_step changes them.
  double loss_scale;    // 1 unless fp16. Gradients carry the factor loss_scale · batch_factor.
  uint64_t good_steps;  // Successive updates since loss_scale changed.
  uint64_t observed;    // Number of steps in the running statistics.
  double loss_mean, loss_variance, norm_mean, norm_variance;
  // Accumulated by the micro-steps.
  double loss_sum;        // Sum, not mean, of the token losses, or of the losses of preference pairs.
  uint64_t target_count;  // Targets other than ignored_target, or preference pairs.
  // Written by finish_step.
  double loss, grad_norm, coefficient;
  double step_size;    // Adam: learning_rate / (1 - beta1^t).
  double correction2;  // Adam: sqrt(1 - beta2^t).
  uint32_t skip;       // A value of Skip.
  // Evaluations of classifiers add the number of targets whose logit is the largest of its row. Evaluations
  // of real values add the number of rows whose values are all right. Every micro-step with preferences adds
  // the number of pairs in the right order.
  uint32_t hits;
};
static_assert(sizeof(StepState) == 256);

// Why a step is skipped. skip_midway: a gradient was not finite, but other parameters had already been
// updated (a fused update, see FinishStepPart).
enum Skip : uint32_t {
  skip_none = 0,
  skip_no_target = 1,
  skip_not_finite = 2,
  skip_outlier = 3,
  skip_midway = 4
};

}  // namespace stw::kernels
