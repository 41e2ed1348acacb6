// Calls that Go cannot make itself, because their options would hold pointers to Go's memory, and callbacks
// that lead to functions of Go.
#pragma once
#include "stowage.h"
#include "stowage/dlpack.h"

// The sizes of a batch. Tensors that a batch lacks are NULL. The shape of `lengths` is (samples), as is that
// of `labels` if labels_ndim is 1. The shape of `label_values` is (samples, labels). All others have the
// shape (samples, tokens).
typedef struct {
  int64_t samples, tokens, labels;
  int32_t labels_ndim;
  double learning_rate;
} stowage_go_batch;
stw_status stowage_go_step(stw_trainer* trainer, const stowage_go_batch* batch, const int32_t* tokens,
                           const int32_t* targets, const int32_t* labels, const int32_t* lengths,
                           const int32_t* positions, const int32_t* token_types, const float* weights,
                           const float* reference, const float* label_values, stw_step_result* result,
                           stw_error* error);
stw_status stowage_go_log_probabilities(stw_trainer* trainer, const stowage_go_batch* batch,
                                        const int32_t* tokens, const int32_t* targets, const int32_t* labels,
                                        const int32_t* lengths, const int32_t* positions,
                                        const int32_t* token_types, const float* weights,
                                        const float* reference, const float* label_values, float* out,
                                        uint64_t capacity, stw_error* error);
stw_status stowage_go_generate(stw_trainer* trainer, const stw_generate_options* options,
                               const int32_t* prompt, uint64_t prompt_count, const int32_t* stop,
                               uint64_t stop_count, int32_t* out, uint64_t capacity, uint64_t* count,
                               stw_error* error);
stw_status stowage_go_set_tensor(stw_trainer* trainer, size_t index, const float* values, int64_t* shape,
                                 int32_t ndim, stw_error* error);
// Copies `bytes` bytes of a tensor in host memory into `out`. If `out` is NULL, it only gives the tensor's
// type and device.
stw_status stowage_go_tensor(stw_trainer* trainer, size_t index, uint32_t kind, DLDataType* type,
                             int32_t* device_type, void* out, uint64_t bytes, stw_error* error);
// Computes part `index` of the library's work. The host's executor calls it once for each part.
typedef void (*stowage_go_task)(void* context, uint32_t index);
void stowage_go_call(stowage_go_task task, void* context, uint32_t index);
// Each of these sets the fields of a callback. `user` is memory of C with a cgo.Handle.
void stowage_go_set_log(stw_device_options* options, void* user);
void stowage_go_set_memory(stw_device_options* options, void* user);
void stowage_go_set_executor(stw_device_options* options, void* user);
void stowage_go_set_hook(stw_trainer_options* options, void* user);
void stowage_go_set_progress(stw_run_options* options, void* user);
void stowage_go_set_notify(stw_watch_options* options, void* user);
