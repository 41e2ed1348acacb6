#include "glue.h"

#include <string.h>

#include "_cgo_export.h"

static DLManagedTensorVersioned tensor_of(const void* values, uint8_t code, int64_t* shape, int32_t ndim) {
  DLManagedTensorVersioned tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.version.major = 1;
  tensor.dl_tensor.data = (void*)values;
  tensor.dl_tensor.device.device_type = 1;
  tensor.dl_tensor.ndim = ndim;
  tensor.dl_tensor.dtype.code = code;
  tensor.dl_tensor.dtype.bits = 32;
  tensor.dl_tensor.dtype.lanes = 1;
  tensor.dl_tensor.shape = shape;
  return tensor;
}

enum { most_tensors = 9, first_of_floats = 6, label_values_at = 8 };

// A stw_batch, with the objects that it points to.
typedef struct {
  stw_batch batch;
  int64_t shape[2], label_shape[2];
  DLManagedTensorVersioned managed[most_tensors];
  const DLManagedTensorVersioned* tensors[most_tensors];
  const char* names[most_tensors];
} gathered;

static void gather(gathered* all, const stowage_go_batch* batch, const void* const values[most_tensors]) {
  static const char* const names[most_tensors] = {
      "tokens", "targets", "labels", "lengths", "positions", "token_types", "weights", "reference", "labels"};
  const int32_t dimensions[most_tensors] = {2, 2, batch->labels_ndim, 1, 2, 2, 2, 2, 2};
  memset(all, 0, sizeof *all);
  all->shape[0] = batch->samples;
  all->shape[1] = batch->tokens;
  all->label_shape[0] = batch->samples;
  all->label_shape[1] = batch->labels;
  all->batch.struct_size = sizeof all->batch;
  for (int i = 0; i < most_tensors; ++i) {
    if (!values[i]) continue;
    all->managed[i] = tensor_of(values[i], i >= first_of_floats ? 2 : 0,
                                i == label_values_at ? all->label_shape : all->shape, dimensions[i]);
    all->names[all->batch.count] = names[i];
    all->tensors[all->batch.count++] = &all->managed[i];
  }
  all->batch.names = all->names;
  all->batch.tensors = all->tensors;
  all->batch.learning_rate = batch->learning_rate;
}

stw_status stowage_go_step(stw_trainer* trainer, const stowage_go_batch* batch, const int32_t* tokens,
                           const int32_t* targets, const int32_t* labels, const int32_t* lengths,
                           const int32_t* positions, const int32_t* token_types, const float* weights,
                           const float* reference, const float* label_values, stw_step_result* result,
                           stw_error* error) {
  const void* const values[most_tensors] = {tokens,      targets, labels,    lengths,     positions,
                                            token_types, weights, reference, label_values};
  gathered all;
  gather(&all, batch, values);
  const stw_status status = stw_trainer_step(trainer, &all.batch, error);
  return status == STW_OK ? stw_trainer_wait(trainer, result, error) : status;
}

stw_status stowage_go_log_probabilities(stw_trainer* trainer, const stowage_go_batch* batch,
                                        const int32_t* tokens, const int32_t* targets, const int32_t* labels,
                                        const int32_t* lengths, const int32_t* positions,
                                        const int32_t* token_types, const float* weights,
                                        const float* reference, const float* label_values, float* out,
                                        uint64_t capacity, stw_error* error) {
  const void* const values[most_tensors] = {tokens,      targets, labels,    lengths,     positions,
                                            token_types, weights, reference, label_values};
  gathered all;
  gather(&all, batch, values);
  return stw_trainer_log_probabilities(trainer, &all.batch, out, capacity, error);
}

stw_status stowage_go_generate(stw_trainer* trainer, const stw_generate_options* options,
                               const int32_t* prompt, uint64_t prompt_count, const int32_t* stop,
                               uint64_t stop_count, int32_t* out, uint64_t capacity, uint64_t* count,
                               stw_error* error) {
  stw_generate_options all = *options;
  all.prompt = prompt;
  all.prompt_count = prompt_count;
  all.stop = stop;
  all.stop_count = stop_count;
  all.out = out;
  all.out_capacity = capacity;
  return stw_trainer_generate(trainer, &all, count, error);
}

stw_status stowage_go_set_tensor(stw_trainer* trainer, size_t index, const float* values, int64_t* shape,
                                 int32_t ndim, stw_error* error) {
  const DLManagedTensorVersioned given = tensor_of(values, 2, shape, ndim);
  return stw_trainer_import_tensor(trainer, index, &given, error);
}

stw_status stowage_go_tensor(stw_trainer* trainer, size_t index, uint32_t kind, DLDataType* type,
                             int32_t* device_type, void* out, uint64_t bytes, stw_error* error) {
  DLManagedTensorVersioned* view = NULL;
  const stw_status status = stw_trainer_export_tensor(trainer, index, kind, &view, error);
  if (status != STW_OK) return status;
  *type = view->dl_tensor.dtype;
  *device_type = view->dl_tensor.device.device_type;
  if (out) memcpy(out, (const char*)view->dl_tensor.data + view->dl_tensor.byte_offset, bytes);
  view->deleter(view);
  return STW_OK;
}

// Go's declarations have no const.
static void log_to_go(void* user, int32_t level, const char* component, const char* message) {
  stowageGoLog(user, level, (char*)component, (char*)message);
}
static int32_t hook_of_go(void* user, const stw_gradients* gradients) {
  return stowageGoHook(user, (stw_gradients*)gradients);
}
static int32_t progress_of_go(void* user, const stw_progress* now) {
  return stowageGoProgress(user, (stw_progress*)now);
}
static int32_t notify_of_go(void* user, const stw_watch_info* now) {
  return stowageGoNotify(user, (stw_watch_info*)now);
}

void stowage_go_set_log(stw_device_options* options, void* user) {
  options->log = log_to_go;
  options->log_user = user;
}

void stowage_go_call(stowage_go_task task, void* context, uint32_t index) { task(context, index); }

void stowage_go_set_memory(stw_device_options* options, void* user) {
  options->allocate = stowageGoAllocate;
  options->release = stowageGoRelease;
  options->memory_user = user;
}

void stowage_go_set_executor(stw_device_options* options, void* user) {
  options->run = stowageGoRun;
  options->run_user = user;
}

void stowage_go_set_hook(stw_trainer_options* options, void* user) {
  options->gradient_hook = hook_of_go;
  options->gradient_user = user;
}

void stowage_go_set_progress(stw_run_options* options, void* user) {
  options->progress = progress_of_go;
  options->progress_user = user;
}

void stowage_go_set_notify(stw_watch_options* options, void* user) {
  options->notify = notify_of_go;
  options->user = user;
}
