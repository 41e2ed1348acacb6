/* Stowage: train neural networks on one device in exactly the memory it has.
 *
 *   model + global batch + bytes  ->  stw_plan_create  ->  plan  ->  stw_trainer_create  ->  training
 *
 * A plan fixes the place of every tensor in memory before anything is allocated. A trainer allocates exactly
 * that memory, once, and trains in it. For the same numerics (precision, optimizer, state format) the trained
 * bits are the same for every memory budget, micro-batch, recompute choice, number of threads and instruction
 * set.
 *
 * Terms
 *  - An entry is a function of this API.
 *  - A step updates the parameters once, from one global batch of samples. A sample has `sequence` tokens.
 *  - A global batch is computed in micro-batches, one after the other, whose gradients add up.
 *  - A target is a token, or a label, that the model learns to predict. The loss measures how wrong its
 *    predictions are.
 *  - The backward pass needs results of the forward pass (activations). A plan keeps them, or recomputes
 *    them.
 *  - The arena is the one block of memory that holds all tensors of a trainer.
 *  - Numerics are the settings that the trained bits depend on, such as the precision and the optimizer.
 *  - A budget is the number of bytes that a plan may use.
 *
 * Rules that hold for every entry
 *  - Status: 0 is success. Every other value is one of the STW_* codes; its category is code / 1000 * 1000.
 *    Details go to a stw_error that the caller owns and that may be NULL. The library does not write to an
 *    error whose struct_size is 0 or too small for a message. The message is one line without control
 *    characters.
 *    After a failure outputs are NULL or untouched, nothing leaks, and every object is in the state it had
 *    before the call.
 *  - Options: the caller sets `struct_size` to sizeof the struct. STW_INIT does that, and sets all other
 *    fields to zero, which means defaults. Where zero is also a useful value, the field has a bit in
 *    `set_mask`: if the bit is set, a zero in the field is a value; if not, a zero means "unset". Fields
 *    named `reserved` are 0. A struct that is longer than the library knows is accepted if the unknown tail
 *    is zero. A shorter struct must end where a field ends. The library uses the pointers in options only
 *    during the call, unless the field's comment says otherwise. stw_watch_create, stw_device_open, stw_pack
 *    and stw_trainer_create take NULL options, which mean all defaults.
 *  - Results: the caller sets `struct_size` here, too. A struct that is shorter than the library knows
 *    receives the fields that it has room for. The unknown tail of a longer struct becomes zero.
 *  - Threads: several threads may use a `const T *` at once. One thread at a time may use a `T *`. There are
 *    two exceptions: any thread may call stw_trainer_cancel and stw_watch_cancel at any time while the object
 *    exists.
 *  - Signals: a signal handler may call stw_trainer_cancel and stw_watch_cancel, and no other entry. Each is
 *    one atomic addition. The library installs no handler. Its own threads block all signals except those
 *    that report a fault of the thread itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS).
 *  - Seeds: an unset seed is 1337. To use the number 0 as a seed, set its bit in `set_mask`
 *    (STW_SET_MODEL_SEED, ...).
 *  - fork: the child process has none of the library's threads. Devices and trainers from before the fork
 *    belong to the parent. In the child they answer STW_BAD_STATE, and closing or destroying them does
 *    nothing. The child opens its own. Models, plans and datasets work in both processes. When a process
 *    forks, no other thread may be inside a call, unless the child calls exec.
 *  - Stack: a call needs at most 256 KiB of its thread's stack, in addition to what callbacks use. The
 *    library's own threads have stacks of the system's default size (ulimit -s), and need at most 128 KiB.
 *  - Cancellation of threads: while an entry runs, including its callbacks, it holds back a pthread_cancel of
 *    its thread until it returns. The library's own threads cannot be cancelled. A callback may end its
 *    thread (pthread_exit; Python's interpreter does that to daemon threads when it shuts down). If the
 *    caller is written in C, the entry is then unwound like a failed one. A trainer whose parameters were
 *    changing at that moment answers STW_BAD_STATE until it is restored. If the caller is written in C++, the
 *    process ends instead, because the entries are noexcept in C++.
 *  - Unloading: dlclose is safe when all objects are destroyed and no call is in progress. A view
 *    (stw_trainer_export_tensor) counts as an object until its deleter is called. Libraries that CUDA's
 *    driver and NVIDIA's libraries loaded stay loaded.
 *  - Exit: a process may exit while threads compute. The library destroys no global object that a call uses.
 *  - Binary interface: the SONAME is libstowage.so.STW_VERSION_MAJOR. Within one SONAME no entry is removed
 *    or changes its arguments, no constant changes its value, and structs grow only at their end, where zero
 *    keeps the old behaviour. New entries and constants come with a minor version. So a program runs with
 *    every library of its SONAME that is at least as new as the header it was compiled with. Before 1.0 a
 *    minor version may break this rule; NEWS says so when one does. The rule does not cover messages, JSON
 *    beyond the documented fields, and trained bits.
 *  - stw_*_destroy and stw_*_close accept NULL.
 *  - If an entry's comment leaves something out: without `Thread:` the rule of threads above holds. Without
 *    `Owner:` the caller has nothing to release. In addition to the errors in its comment, every entry may
 *    answer STW_BAD_ARGUMENT for a NULL that it does not allow, STW_BAD_STRUCT_SIZE, STW_HOST_OUT_OF_MEMORY,
 *    and STW_INTERNAL (a bug in the library). Entries that compute on a device may also answer
 *    STW_DEVICE_ERROR and STW_DEVICE_LOST.
 *  - Callbacks must return: they may not throw an exception or jump out. A trainer calls its callbacks in the
 *    middle of its work. Inside a callback, also inside a watch's, these entries of the same trainer answer
 *    STW_BAD_STATE: stw_trainer_step, _run, _evaluate, _generate, _logits, _classify, _log_probabilities,
 *    _write_reference, _replan, _calibrate, _timeline, _save, _restore, _import_tensor and _export_model. The
 *    progress callback is an exception, because it comes between two steps: it may call all of these except
 *    _replan, _calibrate and _timeline.
 *  - Strings are UTF-8 and end with a zero byte. A returned string lives as long as its object, or for ever.
 *  - Trained bits do not depend on the floating-point mode of the host's threads (rounding, flush-to-zero,
 *    traps). The library computes, and calls callbacks, in the default mode. When it returns, it restores the
 *    mode that it found (x86-64 and AArch64).
 *  - The library never aborts, exits, prints, reads environment variables, installs signal handlers or lets
 *    an exception out. It keeps no state that objects share.
 */
#ifndef STOWAGE_H
#define STOWAGE_H

#include <stddef.h>
#include <stdint.h>

#define STW_VERSION_MAJOR 0
#define STW_VERSION_MINOR 1
#define STW_VERSION_PATCH 0

#if defined(_WIN32) && defined(STW_BUILD)
#define STW_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(STW_STATIC)
#define STW_API __declspec(dllimport)
#elif defined(STW_BUILD) && defined(__GNUC__)
#define STW_API __attribute__((visibility("default")))
#else
#define STW_API
#endif

#if defined(__cplusplus) && !defined(STW_BUILD) && \
    (__cplusplus >= 201103L || (defined(_MSC_VER) && _MSC_VER >= 1900))
#define STW_NOEXCEPT noexcept
#else
#define STW_NOEXCEPT
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- status -------------------------------------------------------------------------------------------- */
typedef int32_t stw_status;
enum {
  STW_OK = 0,
  STW_BAD_ARGUMENT = 1000,       /* a value is wrong, or two values contradict each other */
  STW_BAD_STRUCT_SIZE = 1001,    /* a wrong struct_size, or a value in a field that the library lacks */
  STW_BAD_STATE = 1002,          /* the object cannot do this now, or the objects do not fit together */
  STW_UNSUPPORTED = 2000,        /* this library, build or device does not have it */
  STW_UNSUPPORTED_FIELD = 2001,  /* a setting in a file of a model or of adapters is not supported */
  STW_UNSUPPORTED_SHAPE = 2002,  /* a size is not supported, such as a text longer than the sequence */
  STW_OUT_OF_MEMORY = 3000,      /* memory for tensors cannot be allocated */
  STW_OVER_BUDGET = 3001,        /* nothing fits the budget or the capacity */
  STW_HOST_OUT_OF_MEMORY = 3002, /* host memory for the library's own data cannot be allocated */
  STW_DEVICE_ERROR = 4000,       /* CUDA, or a library of NVIDIA, reports an error */
  STW_DEVICE_LOST = 4001,        /* an error after which this process can no longer use the CUDA device */
  STW_IO_ERROR = 5000,           /* a file cannot be opened, read or written */
  STW_CORRUPT = 5001,            /* a file, or a text in a file's format, has wrong contents */
  STW_CANCELLED = 6000,          /* stw_watch_cancel, stw_trainer_cancel or a callback stopped the call */
  STW_CALLBACK_FAILED = 6001,    /* the gradient hook failed */
  STW_NUMERIC = 7000,            /* fp16: gradients are not finite even at the smallest loss scale */
  STW_NON_FINITE = 7001,         /* a loss, a gradient or a logit is infinite or NaN */
  STW_INTERNAL = 9000            /* a bug in the library */
};

typedef struct stw_error {
  uint32_t struct_size;
  stw_status status;
  int32_t native_code; /* errno or cudaError_t, else 0 */
  uint32_t reserved;
  uint64_t bytes_needed;    /* for the codes 3000 to 3999 */
  uint64_t bytes_available; /* for the codes 3000 to 3999 */
  char message[480];        /* one line */
} stw_error;

/* ---- handles ------------------------------------------------------------------------------------------- */
typedef struct stw_device stw_device;
typedef struct stw_model stw_model;
typedef struct stw_plan stw_plan;
typedef struct stw_dataset stw_dataset;
typedef struct stw_trainer stw_trainer;
typedef struct stw_watch stw_watch;
struct DLManagedTensorVersioned; /* defined by stowage/dlpack.h, or by DLPack's own dlpack.h from 1.0 on */

/* ---- library ------------------------------------------------------------------------------------------- */
/* The version of the loaded library: major * 10000 + minor * 100 + patch. Thread: any. Since: 0.1 */
STW_API uint32_t stw_version(void) STW_NOEXCEPT;
/* Says in words how this library was built (compiler, instruction sets, CUDA) and which parts of CUDA it
 * finds on this machine. Owner: the calling thread; the text is valid until the thread's next call. Thread:
 * any. Since: 0.1 */
STW_API const char* stw_build_info(void) STW_NOEXCEPT;
/* The name of a code: "STW_OVER_BUDGET" for 3001, "STW_UNKNOWN" for a number that is not a code. Thread: any.
 * Since: 0.1 */
STW_API const char* stw_status_name(stw_status status) STW_NOEXCEPT;

/* ---- watch: cancels long calls and reports their progress ---------------------------------------------- */
/* The kind of work in progress. Each comment gives the unit of `done` and `total` (STW_UNIT_*), and then the
 * calls that do this work. */
enum {
  STW_WORK_NONE = 0,           /* no call is in progress */
  STW_WORK_PLAN = 1,           /* NONE: stw_plan_create, _longest_sequence, _frontier_watched,
                                  _picture_watched, stw_trainer_replan. `done` counts the candidates
                                  that the search has examined */
  STW_WORK_OPEN_DATASET = 2,   /* BYTES of the dataset's files: stw_dataset_open */
  STW_WORK_CREATE_TRAINER = 3, /* BYTES written, of the arena and of parameters as fp32:
                                  stw_trainer_create */
  STW_WORK_STEP = 4,           /* MICRO_STEPS: stw_trainer_step, and each step of stw_trainer_run */
  STW_WORK_EVALUATE = 5,       /* SAMPLES: stw_trainer_evaluate, _log_probabilities, _write_reference */
  STW_WORK_GENERATE = 6,       /* NONE: stw_trainer_generate, _logits. SAMPLES: stw_trainer_classify */
  STW_WORK_CALIBRATE = 7,      /* NONE: stw_trainer_calibrate, _timeline */
  STW_WORK_SAVE = 8,           /* BYTES of the checkpoint: stw_trainer_save */
  STW_WORK_RESTORE = 9,        /* BYTES of the checkpoint that have been checked: stw_trainer_restore */
  STW_WORK_EXPORT = 10         /* BYTES of weights: stw_trainer_export_model, stw_model_export_watched */
};
enum { STW_UNIT_NONE = 0, STW_UNIT_BYTES = 1, STW_UNIT_MICRO_STEPS = 2, STW_UNIT_SAMPLES = 3 };
enum { STW_SET_INTERVAL = 1 };

typedef struct stw_watch_info {
  uint32_t struct_size;
  uint32_t work; /* STW_WORK_* */
  uint32_t unit; /* STW_UNIT_* */
  uint32_t reserved;
  uint64_t done;  /* finished work, counted in `unit`. When no call is in progress: the finished
                     work of the last call */
  uint64_t total; /* all work of the call, counted in `unit`; 0: unknown */
  double share; /* share of the work that is done, 0 to 1. On the CPU it also grows within a micro-step. 0 if
                   the total is unknown */
} stw_watch_info;

/* Reports progress. The library calls it on the thread that made the long call, between two pieces of the
 * work. A result other than 0 cancels the call. If the call can no longer be cancelled, the result has no
 * effect, neither now nor on later calls. The callback may call entries that use another watch or none. It
 * may not use a trainer that is computing. `now` is borrowed. */
typedef int32_t (*stw_watch_fn)(void* user, const stw_watch_info* now);

typedef struct stw_watch_options {
  uint32_t struct_size;
  uint32_t set_mask;              /* STW_SET_INTERVAL */
  stw_watch_fn notify;            /* NULL: the host polls with stw_watch_query, or only cancels */
  void* user;                     /* passed to `notify` */
  uint32_t interval_milliseconds; /* shortest time between two calls of `notify`. An entry that takes less
                                time is not reported. Unset: 100. 0: `notify` is called after every piece of
                                work */
  uint32_t reserved;
} stw_watch_options;

/* Creates a watch. One watch serves the calls on a plan, a dataset and a trainer, one call at a time. To use
 * it, put it into stw_plan_options, stw_dataset_options or stw_trainer_options, or pass it to an entry whose
 * name ends with _watched. A trainer keeps using its watch for all later calls.
 * Guarantees: a cancel ends the call in progress that uses the watch. The call returns STW_CANCELLED and
 * otherwise acts as if it had failed: outputs are NULL, no file has been replaced, and a trainer keeps the
 * state that it had. On a CPU a cancel takes effect within one task of an op, that is, within some
 * milliseconds. On a CUDA device the call returns as fast, and the device completes the micro-steps that
 * were already launched, at most two, before it begins other work; a step with a fused update is launched as
 * a whole. A call that writes a file returns after the file system has stored what was already written.
 * Once a step updates parameters, or its gradient hook has returned, it completes; the cancel then stops the
 * next call. When no call is in progress, a cancel stops the next call, once, so that no cancel is lost.
 * Saving, restoring and exporting are different: only a cancel that comes during them stops them. Owner: the
 * caller; the watch must outlive the objects that use it. Thread: any. Since: 0.1 */
STW_API stw_status stw_watch_create(stw_watch** out, const stw_watch_options* options,
                                    stw_error* error) STW_NOEXCEPT;
/* Frees the watch. Thread: exclusive. Since: 0.1 */
STW_API void stw_watch_destroy(stw_watch* watch) STW_NOEXCEPT;
/* Cancels the call in progress, or the next one (see stw_watch_create). NULL is accepted. Thread: any, and
 * signal handlers. Since: 0.1 */
STW_API void stw_watch_cancel(stw_watch* watch) STW_NOEXCEPT;
/* Tells how far the call in progress is. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_watch_query(const stw_watch* watch, stw_watch_info* out) STW_NOEXCEPT;

/* ---- device -------------------------------------------------------------------------------------------- */
enum { STW_BACKEND_AUTO = 0, STW_BACKEND_CPU = 1, STW_BACKEND_CUDA = 2 };
/* Levels of log messages. A log_level includes the levels with smaller numbers. */
enum { STW_LOG_ERROR = 1, STW_LOG_WARNING = 2, STW_LOG_INFO = 3 };
/* The instruction sets of a CPU. */
enum { STW_ISA_AUTO = 0, STW_ISA_SCALAR = 1, STW_ISA_AVX2 = 2, STW_ISA_AVX512 = 3, STW_ISA_NEON = 4 };

/* Receives log messages, on the thread that called the library. `message` is one line and is borrowed. */
typedef void (*stw_log_fn)(void* user, int32_t level, const char* component, const char* message);
/* The host's allocator for arenas. It returns at least `bytes` at a multiple of `alignment`, or NULL if there
 * is no memory. `stream` is the stream of stw_device_options, or NULL if they have none. On a CUDA device
 * without such a stream, the library waits after each call of the allocator until CUDA's default stream has
 * finished all earlier work. */
typedef void* (*stw_allocate_fn)(void* user, size_t bytes, size_t alignment, void* stream);
/* Takes back memory that the host's allocator returned. `bytes` is the size that was asked for. */
typedef void (*stw_release_fn)(void* user, void* memory, size_t bytes, void* stream);
/* The host's threads. It calls task(context, i) once for every i in [0, tasks), with at most `threads` of
 * these calls (stw_device_options.threads) at the same time, and returns when all have returned. */
typedef void (*stw_run_fn)(void* user, uint32_t tasks, void (*task)(void* context, uint32_t index),
                           void* context);

typedef struct stw_device_options {
  uint32_t struct_size;
  uint32_t backend;  /* STW_BACKEND_*; auto: CUDA if there is a CUDA device, else the CPU */
  int32_t ordinal;   /* number of the CUDA device, from 0 */
  uint32_t threads;  /* CPU: threads that compute, including the caller's, at most 1024; 0: one for each
                        processor.
                        CUDA: threads that draw random weights or quantize while a trainer is created
                        or calibrated */
  uint32_t isa;      /* CPU: STW_ISA_*; auto: the widest that runs here. No trained bit depends on
                        it. */
  int32_t log_level; /* STW_LOG_*; 0: STW_LOG_WARNING */
  void* stream;      /* CUDA: the host's stream, of the device's primary context; NULL: the library
                        makes one */
  stw_log_fn log;    /* NULL: messages are kept for stw_device_next_log only */
  void* log_user;
  stw_allocate_fn allocate; /* set both `allocate` and `release`, or neither */
  stw_release_fn release;
  void* memory_user;
  stw_run_fn run; /* NULL: the library uses its own pool of threads, which sleeps when it is
                     idle */
  void* run_user;
  const char* cublaslt; /* CUDA: path of a libcublasLt.so.13, for STW_KERNELS_CUBLASLT; NULL: the one
                           that the system finds. The text is copied. */
  const char* cudnn;    /* CUDA: path of a libcudnn.so.9 (9.15.1 or newer), for STW_ATTENTION_CUDNN;
                           NULL: the one that the system finds. The text is copied. */
} stw_device_options;

typedef struct stw_device_info {
  uint32_t struct_size;
  uint32_t backend;                     /* STW_BACKEND_CPU or STW_BACKEND_CUDA */
  uint64_t memory_total;                /* bytes */
  uint64_t memory_free;                 /* bytes. CPU: as the system reports available memory. CUDA: 0 in
                                           stw_device_at */
  int32_t compute_major, compute_minor; /* CUDA: compute capability */
  uint32_t threads;                     /* CPU: threads that compute */
  uint32_t isa;                         /* CPU: STW_ISA_* in use */
  char name[64];
  char profile[24];         /* name of the embedded profile to plan with: stw_plan_options.device */
  uint64_t memory_reserved; /* CUDA: bytes that the open device's context already holds. A plan counts them in
                               its reserve, so add them to memory_free (stw_plan_options.device_memory). At
                               most three quarters of the profile's reserve. 0 if the driver does not report
                               them, and in stw_device_at */
} stw_device_info;

/* Describes the index-th device that can train here: first the CPU, then CUDA devices by ordinal.
 * Guarantees: listing a CUDA device does not create a context on it. To learn how much memory is free, open
 * the device and call stw_device_query. Errors: STW_BAD_ARGUMENT past the last device. Thread: any. Since:
 * 0.1 */
STW_API stw_status stw_device_at(size_t index, stw_device_info* out, stw_error* error) STW_NOEXCEPT;
/* Opens a device.
 * CUDA: the library works in the device's primary context. When a call returns, the calling thread has its
 * own current context again, or none. There is one exception: a thread may have no current context, but may
 * have selected a device (cudaSetDevice) on which no context exists yet. After a call, that thread may find
 * this device selected instead, and must then select its own device again.
 * Errors: STW_UNSUPPORTED if this build or machine has no such backend or instruction set; STW_BAD_ARGUMENT.
 * Owner: the caller, who closes the device after every trainer on it is destroyed. Thread: any. Since: 0.1 */
STW_API stw_status stw_device_open(stw_device** out, const stw_device_options* options,
                                   stw_error* error) STW_NOEXCEPT;
/* Closes the device. Thread: exclusive. Since: 0.1 */
STW_API void stw_device_close(stw_device* device) STW_NOEXCEPT;
/* Describes an open device and how much of its memory is free now.
 * Errors (there is no stw_error): STW_BAD_ARGUMENT for NULL, STW_BAD_STRUCT_SIZE. Here also STW_DEVICE_ERROR
 * and STW_DEVICE_LOST, if the CUDA device does not answer, for example because another process uses it alone;
 * the device's log has the message (STW_LOG_INFO). Thread: any. Since: 0.1 */
STW_API stw_status stw_device_query(const stw_device* device, stw_device_info* out) STW_NOEXCEPT;

typedef struct stw_memory_holder {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t process; /* process id in the host system. A container may show another id */
  uint64_t bytes;   /* device memory that the process holds */
  char name[64];    /* name of the program, cut to fit; "" if it is unknown */
} stw_memory_holder;

/* Describes the index-th process that holds memory of a CUDA device, the largest first.
 * Guarantees: every call asks the driver again. The list may be incomplete. It is empty for a CPU, inside
 * some containers, and without the driver's management library (libnvidia-ml.so.1).
 * Errors: STW_BAD_ARGUMENT past the last process. Thread: any. Since: 0.1 */
STW_API stw_status stw_device_holder_at(const stw_device* device, size_t index,
                                        stw_memory_holder* out) STW_NOEXCEPT;

typedef struct stw_log_message {
  uint32_t struct_size;
  int32_t level;      /* STW_LOG_* */
  uint64_t number;    /* 1, 2, ... in the order in which messages were written; 0: there is no
                         message */
  char component[32]; /* the part of the library that wrote it */
  char text[224];     /* cut to fit */
} stw_log_message;

/* The log for hosts that poll. Gives the oldest kept message whose number is larger than `after`, or number 0
 * if there is none. The device keeps the last 64 messages up to log_level, with or without a log callback.
 * Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_device_next_log(const stw_device* device, uint64_t after,
                                       stw_log_message* out) STW_NOEXCEPT;

/* ---- model --------------------------------------------------------------------------------------------- */
enum { STW_SET_DROPOUT = 1, STW_SET_MODEL_SEED = 2 };
enum { STW_ADAPTER_RANK_STABILISED = 1 };
/* The task that a model is trained for.
 *   AUTOMATIC              the task of the config; LABEL if label_count is set and the config's model has no
 *                          labels
 *   LANGUAGE_MODEL         predict the token that follows each token
 *   MASKED_LANGUAGE_MODEL  predict tokens that are hidden from the model
 *   LABEL                  one label for a text
 *   LABELS                 any number of labels for a text
 *   NUMBER                 one number, or several, for a text
 *   TOKEN_LABEL            one label for each token
 *   SPANS                  the first and the last token of an answer in a text */
enum {
  STW_TASK_AUTOMATIC = 0,
  STW_TASK_LANGUAGE_MODEL = 1,
  STW_TASK_MASKED_LANGUAGE_MODEL = 2,
  STW_TASK_LABEL = 3,
  STW_TASK_LABELS = 4,
  STW_TASK_NUMBER = 5,
  STW_TASK_TOKEN_LABEL = 6,
  STW_TASK_SPANS = 7
};

typedef struct stw_model_options {
  uint32_t struct_size;
  uint32_t set_mask;       /* STW_SET_DROPOUT, STW_SET_MODEL_SEED */
  const char* source;      /* a folder with config.json, a config.json, or the name of a preset such as
                              "nano" */
  const char* config_json; /* instead of source: the text of a config.json, config_json_size bytes long; it
                              needs no zero byte at its end */
  size_t config_json_size;
  const char* weights; /* a .safetensors file, or a folder that has one or has an index. If a folder has
                          several files and no index, the file named model.safetensors is read. NULL:
                          the weights of the source folder; if it has none, random values drawn from
                          `seed` */
  uint64_t seed;       /* unset: 1337 */
  float dropout;       /* replaces all dropout rates of the config; unset: the config's rates */
  uint32_t reserved;
  /* Low-rank adapters (LoRA). A matrix W below the head gets two narrow matrices A and B, and computes
   * W·x + scale·B·(A·x). Only A and B are trained. `source` may also be a folder of adapters as PEFT writes
   * it (adapter_config.json, adapter_model.safetensors), which names its base model. The base model must then
   * be a folder that contains its weights, and `weights` must be NULL. */
  const char* adapter;         /* a folder of adapters to continue, for the model in `source`; NULL: none */
  const char* adapter_targets; /* new adapters: the matrices that get an adapter, by the last parts of their
                                modules' names, such as "q_proj,v_proj", or "all-linear"; NULL: all-linear */
  uint32_t adapter_rank;  /* new adapters: rows of A and columns of B; 0: no new adapters. A is drawn from
                             `seed`, B is 0 */
  uint32_t adapter_flags; /* STW_ADAPTER_RANK_STABILISED: scale = alpha / sqrt(rank) */
  float adapter_alpha;    /* scale = alpha / rank; 0: alpha is twice the rank */
  float adapter_dropout;  /* dropout rate of the input of A during training */
  /* Classifiers of whole samples (transformers' ...ForSequenceClassification). In a language model, a matrix
   * "score.weight" of shape (labels, width) without bias replaces the head; the logits after a sample's last
   * token are the logits of the labels. An encoder gets a matrix, an activation and a matrix over a sample's
   * first token, with the family's own names.
   *
   * Classifiers of tokens (STW_TASK_TOKEN_LABEL, transformers' ...ForTokenClassification). The head is a
   * dropout and a matrix with a bias, "score" or "classifier", over every token. A language model stays
   * causal.
   *
   * Models that find answers (STW_TASK_SPANS, transformers' ...ForQuestionAnswering; encoders only). A text
   * holds a question and a context. The head is a matrix with a bias, "qa_outputs" ("classifier" for
   * ModernBERT, with its head for texts), that gives each token two logits, as the answer's first token and
   * as its last one. Their labels are "start" and "end"; no others are possible, and label_count may be 0.
   *
   * A config.json of a classifier contains its labels. For any other config, label_count makes the model a
   * classifier whose head is drawn from `seed`.
   *
   * If a classifier has adapters, its head is trained too, and the folder of the adapters holds the head. In
   * that folder, labels.json holds the labels' names, and the task if it is LABELS or NUMBER. As in PEFT,
   * these parts stay frozen if the weights' files hold them: a pooler, ModernBERT's matrix before the
   * classifier, and a head for masked tokens.
   *
   * The loss of a text is the cross entropy for LABEL, the mean over labels of each label's binary cross
   * entropy for LABELS, and the mean of the squared errors for NUMBER. For SPANS it is the mean of two cross
   * entropies, of the answer's first and last token among the tokens of the text. */
  const char* const* label_names; /* label_count different UTF-8 names; NULL: the names of the model, else
                                "LABEL_0", "LABEL_1", ... */
  size_t label_count;             /* 0: as the config says. Else 2 (1 for LABELS and NUMBER) to 1,048,576, and
                                     equal to the number that the model already has (new_head) */
  uint32_t task;     /* STW_TASK_*. A task with labels, except SPANS, needs label_count if the config has no
                        labels.
                        If the config states its task (problem_type), no other task is possible without
                        new_head.
                        MASKED_LANGUAGE_MODEL is for encoders (transformers' ...ForMaskedLM): if the
                        config is of another kind of model, the parts of the head that the weights
                        lack are drawn from `seed`, and a head for next sentences (BertForPreTraining)
                        is left out. For an encoder, LANGUAGE_MODEL means its body without a head */
  uint32_t new_head; /* 1: the model gets a new head for label_count labels, whatever labels the config
                        has. The matrix of the logits and its bias are drawn from `seed`, and so are
                        the parts of the head that the weights lack. Needs label_count, or SPANS, and
                        excludes `adapter` */
} stw_model_options;

typedef struct stw_model_info {
  uint32_t struct_size;
  uint32_t layers;       /* number of blocks */
  uint64_t parameters;   /* number of parameters; tied ones are counted once */
  uint64_t trainable;    /* number of parameters that are trained */
  uint64_t vocabulary;   /* number of different tokens */
  uint64_t positions;    /* longest sequence, in tokens */
  uint32_t has_weights;  /* 1: weights come from files; 0: they are drawn from the seed */
  uint32_t width;        /* features of a token between two blocks (hidden_size) */
  char architecture[32]; /* the config's model_type: "gpt2", "llama", "gemma3_text", … */
  uint32_t adapter_rank; /* 0: there are no adapters */
  uint32_t has_codes;    /* 1: the files hold matrices in 4 bits, as bitsandbytes writes them (nf4, also with
                            double quantization) */
  uint64_t labels;       /* number of a classifier's labels; 0: the model is not a classifier */
  int64_t padding_token; /* from the config; -1: none. transformers takes tokens of this id at the end of
                            a text for padding, and classifies the text by the last token before them */
  uint32_t generates;    /* 1: the model continues texts, and no token attends to later ones; 0: an
                            encoder, which reads a text as a whole */
  uint32_t token_types;  /* number of token types that the model distinguishes, such as those of a first
                            and of a second text; 0: none */
  uint32_t task;         /* STW_TASK_*. An encoder with STW_TASK_LANGUAGE_MODEL has no head; to train it,
                            choose a task that gives it one */
  uint32_t head_is_new;  /* 1: weights were read from files, but at least a part of the head was drawn
                            from the seed */
  uint64_t file_layers;  /* number of layers in the weights' files; 0: there are no files. The model does
                            not have those past `layers` */
} stw_model_info;

typedef struct stw_tensor_info {
  uint32_t struct_size;
  uint32_t ndim;    /* number of dimensions, at most 4 */
  const char* name; /* as in the weight files; lives as long as the model */
  int64_t shape[4]; /* ndim sizes, the outermost first; the rest is 0 */
  uint64_t elements;
} stw_tensor_info;

/* Describes a model. The call opens the weights and checks their names, shapes and dtypes. They are read
 * later, when a trainer is created.
 * Errors: STW_IO_ERROR; STW_CORRUPT; STW_UNSUPPORTED (an unknown architecture, a folder that has weights only
 * in another format, weights in a block for which the model has no parameter); STW_UNSUPPORTED_FIELD;
 * STW_BAD_ARGUMENT.
 * Owner: the caller, who may destroy the model before the objects made from it. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_create(stw_model** out, const stw_model_options* options,
                                    stw_error* error) STW_NOEXCEPT;
/* Destroys the model. Thread: exclusive. Since: 0.1 */
STW_API void stw_model_destroy(stw_model* model) STW_NOEXCEPT;
/* Describes the model. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_query(const stw_model* model, stw_model_info* out) STW_NOEXCEPT;
/* The number of parameters (tensors), 0 for NULL. Thread: any. Since: 0.1 */
STW_API size_t stw_model_tensor_count(const stw_model* model) STW_NOEXCEPT;
/* Describes the index-th parameter, counted from 0. All entries that take the index of a tensor use this
 * order. Errors: STW_BAD_ARGUMENT past the last one; else as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_tensor_at(const stw_model* model, size_t index,
                                       stw_tensor_info* out) STW_NOEXCEPT;
/* Finds the index of a parameter by its name. Errors: STW_BAD_ARGUMENT if no parameter has this name;
 * `*index` is then unchanged. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_tensor_find(const stw_model* model, const char* name,
                                         size_t* index) STW_NOEXCEPT;
/* The name of the index-th label, which lives as long as the model. NULL past the last label, and for a model
 * without labels. Thread: any. Since: 0.1 */
STW_API const char* stw_model_label_at(const stw_model* model, size_t index) STW_NOEXCEPT;
/* The model's config.json, as stw_model_export writes it, with its task and labels. JSON text that ends with
 * a zero byte and lives as long as the model. NULL gives NULL. Thread: any. Since: 0.1 */
STW_API const char* stw_model_config(const stw_model* model) STW_NOEXCEPT;
/* Writes config.json and model.safetensors into a folder. Adapters are merged into the matrices that they
 * belong to. Types are those of the model's own files (F32 if there are none). config.json is written last.
 * After an error, neither file exists unless it existed before.
 * Errors: STW_IO_ERROR; STW_CORRUPT; STW_BAD_ARGUMENT if the model's own files would be replaced, or if the
 * folder has adapters or shards. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_export(const stw_model* model, const char* folder,
                                    stw_error* error) STW_NOEXCEPT;
/* As stw_model_export, with a watch that reports the bytes of weights that have been written; NULL: none.
 * Errors: also STW_CANCELLED. Thread: any, but one call at a time for each watch. Since: 0.1 */
STW_API stw_status stw_model_export_watched(const stw_model* model, const char* folder, stw_watch* watch,
                                            stw_error* error) STW_NOEXCEPT;
/* The name of the index-th preset, which lives for ever; NULL past the last one. Thread: any. Since: 0.1 */
STW_API const char* stw_model_preset_at(size_t index) STW_NOEXCEPT;

/* ---- plan ---------------------------------------------------------------------------------------------- */
/* Planning uses no device, no file and no clock. It asks this machine only for the available memory and the
 * number of processors of a CPU, if the options leave them 0. */
enum { STW_PRECISION_DEFAULT = 0, STW_PRECISION_FP32 = 1, STW_PRECISION_BF16 = 2, STW_PRECISION_FP16 = 3 };
/* The update rules are described at stw_trainer_options. Muon updates the matrices of blocks; AdamW then
 * updates all other parameters. */
enum {
  STW_OPTIMIZER_ADAMW = 0,
  STW_OPTIMIZER_SGD = 1,
  STW_OPTIMIZER_LION = 2,
  STW_OPTIMIZER_MUON = 3,
  STW_OPTIMIZER_ADAFACTOR = 4
};
/* Bits of a number in the optimizer's states. */
enum { STW_STATES_AUTO = 0, STW_STATES_32 = 32, STW_STATES_8 = 8 };
/* How bf16 keeps the fp32 value (the master weight) of a trained parameter.
 *   exact       all 32 bits: 4 bytes a parameter, the bf16 value included
 *   split8      24 bits of it: 3 bytes a parameter
 *   stochastic  only the bf16 value: 2 bytes a parameter. Updates are rounded up or down at random, so that
 *               on average updates that are too small for bf16 take effect, too */
enum { STW_MASTER_EXACT = 0, STW_MASTER_SPLIT8 = 1, STW_MASTER_STOCHASTIC = 2 };
/* The type in which the gradients of the blocks' matrices are summed. All other gradients are fp32. bf16
 * takes 2 bytes a parameter instead of 4. It rounds up or down at random after every sample, so that the
 * micro-batch still changes no bit. It excludes a gradient hook. */
enum { STW_GRADIENTS_FP32 = 0, STW_GRADIENTS_BF16 = 1 };
/* The kernels that compute matrix products. They differ in the order in which they add.
 *   auto      tensor if the device and the precision have it (in fast mode cublaslt), else portable
 *   portable  one order that all devices share, so that CPU and CUDA train the same bits
 *   tensor    the tensor cores of a CUDA device, for 16-bit values, in another order than portable;
 *             many times faster
 *   cublaslt  NVIDIA's library on a CUDA device, found at run time (stw_device_options.cublaslt). The bits
 *             depend on the library's version and on the card
 *   wgmma     like tensor, but products, and attention with heads of 64 or 128 and no sliding window, use the
 *             asynchronous tensor-core instructions of compute capability 9.0 (H100, H200). Unsupported
 *             elsewhere
 *   cublaslt_wgmma  like cublaslt, but wgmma computes what the library does not support, and all weight
 *             gradients of exact plans. For 16-bit precisions on compute capability 9.0 */
enum {
  STW_KERNELS_AUTO = 0,
  STW_KERNELS_PORTABLE = 1,
  STW_KERNELS_TENSOR = 2,
  STW_KERNELS_CUBLASLT = 3,
  STW_KERNELS_WGMMA = 4,
  STW_KERNELS_CUBLASLT_WGMMA = 5
};
/* The implementation of attention.
 *   own    the kernels above
 *   cudnn  NVIDIA's cuDNN on a CUDA device, for 16-bit values, found at run time (stw_device_options.cudnn).
 *          The model must have no dropout in attention and no sliding window shorter than a sample, and a
 *          sample must be one document. The backward pass needs scratch memory: two bytes for every attention
 *          score of the samples and heads that it computes at once. The plan counts it as workspace. The bits
 *          depend on cuDNN's version and on the card. */
enum { STW_ATTENTION_OWN = 0, STW_ATTENTION_CUDNN = 1 };
/* How the matrices of blocks are stored in models with adapters. All other matrices are stored in the
 * precision, except as quantize_embeddings says.
 *   auto  nf4 for models whose files are in 4 bits (stw_model_info.has_codes), else none
 *   none  numbers in the precision
 *   nf4   codes of 4 bits for the values of "QLoRA" (Dettmers et al., arXiv:2305.14314; bitsandbytes'
 *         bnb_4bit_quant_type "nf4"). 64 neighbours share a scale, their largest magnitude: 4.5 bits an
 *         element
 *   int8  codes of 8 bits: multiples of 1/127 of the same scale: 8.5 bits an element
 * Scales are fp32. Neighbours are consecutive elements of the matrix as it is stored, also for GPT-2. The
 * codes are made from the model's weights when a trainer is created. If the files of a 4-bit model hold some
 * matrices of blocks as numbers, these stay numbers. Matrix products use the decoded values, rounded to the
 * precision. */
enum { STW_QUANTIZE_AUTO = 0, STW_QUANTIZE_NONE = 1, STW_QUANTIZE_NF4 = 2, STW_QUANTIZE_INT8 = 3 };
/* The training objective. none: every target counts by itself. All others learn from pairs of documents. Both
 * documents of a pair contain a prompt and an answer: the first has the chosen answer, the second the
 * rejected one. The loss of a pair is
 *   dpo    (1 - e) * S(x) + e * S(-x), x = beta * D(P - R)          Rafailov et al., arXiv:2305.18290
 *   ipo    (D((P - R) / n) - 1 / (2 * beta)) squared                Azar et al., arXiv:2310.12036
 *   simpo  as dpo, x = beta * D(P / n) - margin                     Meng et al., arXiv:2405.14734
 *   orpo   -P / n of the chosen one + beta * S(D(log odds of exp(P / n)))   Hong et al., arXiv:2403.07691
 * plus, for each of them, answer_share * (-P / n) of the chosen document. In these formulas
 *   P     is the sum of the log-probabilities of a document's targets, and n is their number
 *   R     is P under a reference model, usually the model before training
 *   D(v)  is v of the chosen document minus v of the rejected one
 *   S(x)  is log(1 + exp(-x))
 *   beta, margin and answer_share are fields of stw_trainer_options, and e is its label_smoothing.
 * Rules:
 *  - Only language models have preferences. A preference implies STW_INPUT_POSITIONS and excludes
 *    STW_INPUT_WEIGHTS.
 *  - The documents of a sample form pairs: the first and second, the third and fourth, ... A pair does not
 *    count if one of its documents has no target.
 *  - A step's loss is the mean over its pairs. Entries that count targets count pairs instead.
 *  - A micro-step computes the logits twice, unless the plan keeps all of them (one loss chunk in
 *    stw_plan_info). */
enum {
  STW_PREFERENCE_NONE = 0,
  STW_PREFERENCE_DPO = 1,
  STW_PREFERENCE_IPO = 2,
  STW_PREFERENCE_SIMPO = 3,
  STW_PREFERENCE_ORPO = 4
};
/* Explained at stw_plan_options.mode. */
enum { STW_MODE_EXACT = 0, STW_MODE_FAST = 1 };
enum { STW_SET_RESERVE = 1 };
/* Settings that the relaxations of a plan that does not fit must keep. Bits that can be combined.
 *   numerics   everything that changes the trained bits, as in a run that resumes from a checkpoint
 *   model      no smaller preset
 *   adapters   no new adapters
 *   sequence   no shorter samples
 *   optimizer  no other optimizer
 *   clipping   no fused update, which does not clip gradients
 *   division   the micro-batch, recompute and host memory
 *   precision  the number format of computation
 *   all        all of these: there are no relaxations, and the answer is quicker */
enum {
  STW_KEEP_NUMERICS = 1,
  STW_KEEP_MODEL = 2,
  STW_KEEP_ADAPTERS = 4,
  STW_KEEP_SEQUENCE = 8,
  STW_KEEP_OPTIMIZER = 16,
  STW_KEEP_CLIPPING = 32,
  STW_KEEP_DIVISION = 64,
  STW_KEEP_PRECISION = 128,
  STW_KEEP_ALL = 255
};
/* Inputs of a batch that a plan has to provide for: stw_batch. Bits that can be combined. */
enum { STW_INPUT_POSITIONS = 1, STW_INPUT_WEIGHTS = 2 };
/* The results of a block that the backward pass computes again, instead of keeping them. auto: those that the
 * planner chooses; none: nothing; full: everything, so that a block keeps only its input. */
enum { STW_RECOMPUTE_AUTO = 0, STW_RECOMPUTE_NONE = 1, STW_RECOMPUTE_FULL = 2 };

enum { STW_SET_GROUP_FROZEN = 1, STW_SET_GROUP_RATE = 2, STW_SET_GROUP_DECAY = 4, STW_SET_GROUP_STATES = 8 };

/* Settings for all parameters that match a pattern. The patterns are
 *   "embeddings"   all parameters before the first block
 *   "blocks", "blocks.3", "blocks.0-1"   the parameters of blocks, counted from 0
 *   "head"         the head; a tied head belongs to "embeddings", and an encoder's head includes its pooler
 *   "matrices"     the matrices of blocks, including adapters
 *   "norms", "biases", "adapters"
 *   any other text: the name of a tensor, in which * and ? are wildcards
 * A parameter that several blocks share, as in ALBERT, belongs to each of these blocks.
 * A frozen parameter has no gradient, optimizer state or master, does not count in the gradient norm, and
 * keeps its bytes. */
typedef struct stw_parameter_group {
  uint32_t struct_size;
  uint32_t set_mask; /* STW_SET_GROUP_*: fields whose zero is a value. Unset fields change nothing */
  const char* pattern;
  uint32_t frozen;      /* 1: frozen; 0: trained, even if an earlier group says otherwise */
  uint32_t state_bits;  /* 32 or 8, even if the plan's state_bits differ. Embeddings and tensors of less
                           than 4096 elements keep 32 */
  double learning_rate; /* factor by which the run's learning rate is multiplied */
  double weight_decay;  /* replaces the trainer's weight decay, and the 0 that norms and biases have */
} stw_parameter_group;

typedef struct stw_plan_options {
  uint32_t struct_size;
  uint32_t set_mask;      /* STW_SET_RESERVE */
  uint64_t memory_bytes;  /* largest peak that the plan may reach. 0: all memory of the device. This is
                             device_memory if it is set, else the profile's memory, else (CPU) the memory that
                             is available on this machine now */
  uint64_t global_batch;  /* samples of one optimizer step; required */
  uint64_t sequence;      /* tokens of a sample; 0: the model's positions, at most 1024 */
  const char* device;     /* "cpu", or the name of a profile such as "rtx4090"; NULL: "cpu" */
  uint64_t device_memory; /* bytes that are free on the device now. For an open device that is
                             memory_free + memory_reserved of stw_device_info. 0: unknown, see
                             memory_bytes */
  uint64_t reserve_bytes; /* part of the budget that is left for memory outside the arena; unset: the
                             profile's reserve (CPU: none) */
  uint32_t threads;       /* CPU: threads that will compute, on which the size of scratch memory depends;
                             0: one for each processor */
  uint32_t precision;     /* STW_PRECISION_*; default: fp32 on the CPU, bf16 elsewhere */
  uint32_t optimizer;     /* STW_OPTIMIZER_* */
  uint32_t state_bits;    /* STW_STATES_AUTO: 32, unless that does not fit or costs more than 10 % of the
                             speed. AdamW and Lion support 8, for tensors of at least 4096 elements that
                             are not embeddings */
  uint32_t micro_batch;   /* samples of one micro-step; 0: the planner chooses */
  uint32_t recompute;     /* STW_RECOMPUTE_* */
  uint32_t mode;          /* STW_MODE_*. In exact mode the split into micro-batches changes no bit. fast
                             gives this guarantee up where kernels have a faster way: on CUDA devices with
                             STW_KERNELS_CUBLASLT, which is then the default there, or
                             STW_KERNELS_CUBLASLT_WGMMA. Other plans stay exact */
  uint32_t inputs;        /* STW_INPUT_*: inputs that batches may have in addition to tokens, targets and
                             lengths */
  uint64_t host_bytes;    /* host memory that offloaded tensors may take; 0: nothing is offloaded */
  const char* profile;    /* the profile that stw_trainer_calibrate wrote; NULL: the device's embedded
                             profile. If `device` is NULL, the profile's device is planned for. Another
                             device is refused. */
  size_t profile_size;    /* bytes of `profile`, without a zero byte at the end */
  const stw_parameter_group* groups; /* an array. If several groups name a parameter, the later ones win. All
                               elements have the struct_size of the first one. */
  size_t group_count;
  uint32_t master;       /* STW_MASTER_* */
  uint32_t kernels;      /* STW_KERNELS_*. A checkpoint can only be restored with the same ones */
  uint32_t gradients;    /* STW_GRADIENTS_* */
  uint32_t fused_update; /* 1: the backward pass updates the parameters of blocks, so that their gradients
                            need not be kept. The trained bits are those of a run without clipping. It
                            requires that the micro-batch is the global batch, that clip_norm is 0 and
                            that outliers are not skipped. It excludes fp16, gradients in bf16, host
                            memory and a gradient hook. A gradient that is not finite ends the run
                            (STW_NON_FINITE) with some parameters updated: restore a checkpoint */
  uint32_t attention;    /* STW_ATTENTION_*. A checkpoint can only be restored with the same one */
  uint32_t quantize;     /* STW_QUANTIZE_*. A checkpoint can only be restored with the same one */
  uint32_t quantize_embeddings; /* for models with adapters. STW_QUANTIZE_INT8: the token embedding and the
                                head are int8, whatever format the model's files have. The table of positions
                                keeps its format. auto: none. A checkpoint can only be restored with the same
                                one */
  uint32_t preference;          /* STW_PREFERENCE_*. A checkpoint can only be restored with the same one */
  stw_watch* watch;             /* reports and cancels this call; NULL: none */
  uint32_t keep;                /* STW_KEEP_*: settings that relaxations must not change */
  uint32_t gradient_hook;       /* 1: the plan is for a trainer with a gradient hook: all gradients are in the
                                   arena when the hook is called. This may need a larger budget. A plan with 0
                                   may also suit a hook; if it does not, stw_trainer_create refuses it */
  uint64_t texts; /* for encoders with an output for each text (STW_TASK_LABEL, LABELS, NUMBER): the largest
                     number of texts in a sample. The head, and of the last block all that follows attention,
                     are computed for so many rows of a sample instead of all. 0: any number of texts. A
                     sample with more texts that have targets is refused. A checkpoint can only be restored
                     with the same one */
} stw_plan_options;

typedef struct stw_plan_info {
  uint32_t struct_size;
  uint32_t fits;               /* 0: no plan fits; minimum_bytes is the budget that would be enough */
  uint64_t micro_batch;        /* samples of a micro-step */
  uint64_t accumulation_steps; /* micro-steps of a step */
  uint64_t last_micro_batch;   /* samples of the last micro-step of a step */
  uint64_t loss_chunks;        /* parts into which a micro-step's logits and losses are cut */
  uint64_t global_batch;       /* samples of a step */
  uint64_t sequence;           /* tokens of a sample */
  /* Bytes at the moment of the peak; `parameters` to `padding` add up to `arena`. `parameters` includes
   * master weights. `saved_activations` are the results of the forward pass that the backward pass reads,
   * `transient` all other results. `workspace` is scratch memory of ops, tables and the counters of
   * the run. */
  uint64_t parameters, gradients, optimizer, saved_activations, transient, workspace, inputs, padding;
  uint64_t arena;         /* bytes of device memory that a trainer allocates */
  uint64_t reserve, peak; /* peak = arena + reserve */
  uint64_t budget;
  uint64_t host;             /* bytes of host memory that a trainer allocates for offloaded tensors */
  uint64_t minimum_bytes;    /* smallest memory_bytes that works with these options */
  uint32_t state_bits;       /* 32 or 8 */
  uint32_t precision;        /* STW_PRECISION_* */
  double step_seconds;       /* time of a step, predicted by the cost model */
  double tokens_per_second;  /* global_batch * sequence / step_seconds */
  double recompute_fraction; /* share of step_seconds that is spent on recompute, 0 to 1 */
  char fingerprint[20];      /* 16 hexadecimal digits: XXH3-64 of the plan */
  uint32_t proven;           /* 1: by the cost model, no plan with these numerics is faster within the
                                budget */
  double bound_seconds;      /* lower bound of the step time within the budget */
  double unlimited_seconds;  /* lower bound of the step time for any budget */
  double next_gib_seconds;   /* step time with one GiB more and the same state format */
  uint64_t copied_bytes;     /* bytes that a step copies between host memory and the device, both directions
                                together */
  uint64_t tiled_blocks;     /* number of blocks whose feed-forward part runs in tiles of rows */
  uint64_t tile_rows;        /* rows of the smallest tile that a block is planned with; 0: no block has
                                tiles */
  uint64_t texts;            /* stw_plan_options.texts */
} stw_plan_info;

typedef struct stw_buffer_info {
  uint32_t struct_size;
  uint32_t persistent;    /* 1: the buffer always lives, and `first` and `last` are 0 */
  const char* name;       /* name of the tensor; lives as long as the plan */
  const char* owner;      /* kind of memory: a field of stw_plan_info, "parameters" to "inputs" */
  uint64_t offset, bytes; /* place in the arena, in bytes from its beginning */
  uint32_t first, last;   /* first and last instruction of the micro-step's program that need it, both
                             included */
} stw_buffer_info;

/* Chooses the fastest way to train that fits the budget.
 * Guarantees: deterministic. A smaller budget never gives a larger peak, and a larger one never gives a
 * slower plan with the same state format. A calibrated profile becomes part of the plan's JSON.
 * Errors: STW_OVER_BUDGET if nothing fits. `out` is then still a plan, with info.fits = 0: it can be queried
 * and printed but not trained (the one exception to "outputs are NULL"). STW_BAD_ARGUMENT; STW_UNSUPPORTED;
 * STW_UNSUPPORTED_SHAPE; STW_CORRUPT for a profile that cannot be read; STW_CANCELLED.
 * Owner: the caller. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_create(stw_plan** out, const stw_model* model, const stw_plan_options* options,
                                   stw_error* error) STW_NOEXCEPT;
/* Destroys the plan. Thread: exclusive. Since: 0.1 */
STW_API void stw_plan_destroy(stw_plan* plan) STW_NOEXCEPT;
/* Gives the plan's decisions and their figures. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_query(const stw_plan* plan, stw_plan_info* out) STW_NOEXCEPT;
/* The plan as JSON text. It ends with a zero byte and lives as long as the plan. NULL gives NULL. Thread:
 * any. Since: 0.1 */
STW_API const char* stw_plan_json(const stw_plan* plan) STW_NOEXCEPT;
/* The plan as a table for people. It ends with a zero byte and lives as long as the plan. NULL gives NULL.
 * Thread: any. Since: 0.1 */
STW_API const char* stw_plan_report(const stw_plan* plan) STW_NOEXCEPT;
/* Reads JSON text that stw_plan_json wrote; `json` has json_size bytes. Errors: STW_CORRUPT if the text was
 * edited (its fingerprint is wrong); STW_BAD_STATE if it belongs to another model; STW_UNSUPPORTED (another
 * version). Owner: the caller. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_load(stw_plan** out, const stw_model* model, const char* json, size_t json_size,
                                 stw_error* error) STW_NOEXCEPT;
/* Checks every program of the plan with an independent verifier: buffers lie inside the arena, do not overlap
 * while they are alive, and are written before an op reads them. Errors: STW_INTERNAL for a mistake, which
 * the message names. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_verify(const stw_plan* plan, stw_error* error) STW_NOEXCEPT;

/* A change of settings with which the model trains within the budget. `change` is one setting or several,
 * joined by ", ". Each is the name of a flag of the command, with _ for -, usually followed by a blank and a
 * value.
 *   "micro_batch auto", "recompute auto"     the planner may choose a setting that was fixed
 *   "host_memory N"     N bytes of host memory, a decimal number
 *   "states 8", "master split8", "master stochastic", "gradients bf16", "precision bf16", "attention own"
 *   "optimizer adafactor"    followed by ", states auto" if the states had 8 bits
 *   "fused_update"      followed by ", gradients fp32" and ", micro_batch auto" if these settings have to
 *                       change too
 *   "lora 16"           new adapters of this rank for all matrices below the head (stw_model_options)
 *   "quantize int8", "quantize nf4", "quantize_embeddings int8"     for models with adapters
 *   "seq N"             samples of N tokens, the longest that fit
 *   "model NAME"        a smaller preset
 * Later versions may have other names. All figures are those of the plan that the changed settings give with
 * the same budget or, if `fits` is 0, of its smallest plan. */
typedef struct stw_relaxation_info {
  uint32_t struct_size;
  uint32_t changes_numerics; /* 1: the trained bits would be different */
  uint64_t saves_bytes;  /* bytes by which the change lowers the smallest peak; if `fits` is 1, it may be a
                            little more. For host_memory: bytes by which the peak with this host memory is
                            below the smallest peak without it */
  double costs_fraction; /* change in the time of a token, as a fraction of its time if there were enough
                            memory without the change; negative: faster */
  char change[64];       /* the settings to change: "states 8, master split8", ...; the comment of this
                            struct lists them. Cut where it is longer; `flags` is complete */
  uint32_t fits;         /* 1: this change is enough */
  uint32_t reserved;
  char flags[192];          /* the change as flags of the command: "--states 8 --master split8" */
  char effect[192];         /* what is different in the result, in words; empty: nothing */
  double tokens_per_second; /* as in stw_plan_info */
  uint64_t peak;            /* as in stw_plan_info. If `fits` is 0: the smallest budget that works */
  uint64_t host;            /* as in stw_plan_info */
  uint64_t least_host;      /* for host_memory: the least host memory with which a plan, maybe a slower one,
                               fits; else 0 */
} stw_relaxation_info;

/* Gives the index-th change of settings for a plan that does not fit. There are at most eight. If any of them
 * fit, only these are given, those that are closest to the request first: changes that keep the trained bits,
 * cheaper number formats, adapters, shorter samples, and smaller models. A combination that contains another
 * one that fits is left out. Errors: STW_BAD_ARGUMENT past the last one. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_relaxation_at(const stw_plan* plan, size_t index,
                                          stw_relaxation_info* out) STW_NOEXCEPT;

typedef struct stw_offload_info {
  uint32_t struct_size;
  uint32_t outside_blocks; /* 1: tensors of parameters outside of blocks are offloaded, too */
  uint32_t blocks;         /* number of blocks, from the first one on, whose tensors are offloaded */
  uint32_t reserved;
  uint64_t bytes;      /* in host memory */
  const char* tensors; /* "optimizer", "masters", "gradients", "weights" or "inputs" (of blocks); lives
                          for ever */
} stw_offload_info;

/* Describes the index-th kind of tensors that the plan keeps in host memory. Errors: STW_BAD_ARGUMENT past
 * the last one. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_offload_at(const stw_plan* plan, size_t index,
                                       stw_offload_info* out) STW_NOEXCEPT;

typedef struct stw_frontier_point {
  uint32_t struct_size;
  uint32_t is_knee;                       /* 1: from this point on, more memory gains much less speed */
  uint64_t peak;                          /* the smallest budget that gets this plan, in bytes */
  uint64_t micro_batch, loss_chunks;      /* as in stw_plan_info */
  double step_seconds, tokens_per_second; /* as in stw_plan_info */
} stw_frontier_point;

/* Computes the Pareto frontier of memory and speed: the plans that other budgets would get, from the smallest
 * budget that works to the one beyond which nothing is gained. Peaks grow, and each plan is faster than all
 * before it. `*count` receives the number of points, at most `capacity`. `out` is an array of structs of
 * out[0].struct_size bytes each. Numerics are those of the plan. Errors: STW_BAD_STRUCT_SIZE if
 * out[0].struct_size is not a multiple of 8. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_frontier(const stw_plan* plan, stw_frontier_point* out, size_t capacity,
                                     size_t* count, stw_error* error) STW_NOEXCEPT;
/* As stw_plan_frontier, with a watch; NULL: none. The search runs once for each of up to 1000 points, so the
 * call can take some hundred times as long as stw_plan_create. Errors: also STW_CANCELLED; `*count` is then
 * unchanged. Thread: any, but one call at a time for each watch. Since: 0.1 */
STW_API stw_status stw_plan_frontier_watched(const stw_plan* plan, stw_frontier_point* out, size_t capacity,
                                             size_t* count, stw_watch* watch, stw_error* error) STW_NOEXCEPT;
/* Finds the longest sequence, in tokens, that fits with these options; it is at most the model's positions.
 * options.sequence is ignored. Errors: those of stw_plan_create; STW_OVER_BUDGET if not even one token fits.
 * Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_longest_sequence(const stw_model* model, const stw_plan_options* options,
                                             uint64_t* sequence, stw_error* error) STW_NOEXCEPT;

/* The figures that the cost model has for a device, which need not be present. They come from data sheets or
 * from a calibration. An op takes launch + max(FLOP / (GFLOP/s * share), bytes / (GB/s * share)). If its kind
 * of op was timed, launch and share are those of the kind. */
typedef struct stw_profile_info {
  uint32_t struct_size;
  uint32_t is_cuda;
  uint64_t memory, reserve;          /* bytes; 0: those of the machine */
  uint64_t gflops_fp32, gflops_bf16; /* peak with fp32 accumulation; CPU: of one thread */
  uint64_t gbytes_per_second;        /* bandwidth of the device's memory */
  uint32_t product_permille;         /* share of the peak that matrix products reach */
  uint32_t stream_permille;          /* share of the bandwidth that streaming ops reach */
  uint64_t launch_nanoseconds;       /* fixed time of every op */
  const char* name;                  /* the name that stw_plan_options.device takes; lives for ever */
  const char* title;                 /* the name for people; lives for ever */
  const char* source;                /* where the figures come from; lives for ever */
  uint64_t host_gbytes_per_second;   /* bandwidth to host memory and back, in each direction */
  uint32_t threads;                  /* calibrated profiles: threads that computed during the measurement;
                            else 0 */
  uint32_t precision;                /* calibrated profiles: STW_PRECISION_* of the measurement; else 0 */
  uint64_t step_nanoseconds;         /* calibrated profiles: measured time of a step of the timed plan;
                            else 0 */
  uint32_t kernels;                  /* calibrated profiles: STW_KERNELS_* of the measurement; else 0 */
  uint32_t reserved;
  uint64_t watts;                   /* GPUs: power of the board; 0: unknown */
  uint64_t gflops_per_watt;         /* GPUs: of 16-bit products where power limits them. product_permille is
                           the share of the peak that watts * gflops_per_watt allows, at most 1000, with a
                           smooth corner where both are close */
  uint32_t mma_permille;            /* GPUs: share of the speed of libraries that the kernels of
                           STW_KERNELS_TENSOR reach */
  uint32_t wgmma_permille;          /* the same for STW_KERNELS_WGMMA */
  uint32_t attention_permille;      /* share of the peak that attention reaches in libraries, with heads of
                           up to 64 numbers; 0: product_permille */
  uint32_t wide_attention_permille; /* the same with larger heads; 0: attention_permille */
  uint32_t fp32_permille;           /* share of the fp32 peak that products reach; 0: product_permille */
  uint32_t reserved_end;
} stw_profile_info;

/* Describes the index-th device that can be planned for. Errors: STW_BAD_ARGUMENT past the last one. Thread:
 * any. Since: 0.1 */
STW_API stw_status stw_profile_at(size_t index, stw_profile_info* out) STW_NOEXCEPT;
/* Reads a calibrated profile that stw_trainer_calibrate wrote; `profile` has profile_size bytes. Errors:
 * STW_CORRUPT; the message names the wrong figure, op, device or version. Thread: any. Since: 0.1 */
STW_API stw_status stw_profile_read(const char* profile, size_t profile_size, stw_profile_info* out,
                                    stw_error* error) STW_NOEXCEPT;

typedef struct stw_profile_op_info {
  uint32_t struct_size;
  uint32_t permille; /* share of the peak that limits the op, arithmetic or bandwidth; above 1000 if data is
                        in caches */
  uint64_t launch_nanoseconds; /* fixed time of every op of this kind */
  uint64_t nanoseconds;        /* measured time of all ops of this kind in the timed step */
  const char* name;            /* name of the kind; lives for ever */
} stw_profile_op_info;

/* Gives the figures of the index-th kind of op in a calibrated profile. Errors: STW_BAD_ARGUMENT past the
 * last one; STW_CORRUPT if stw_profile_read would fail. Thread: any. Since: 0.1 */
STW_API stw_status stw_profile_op_at(const char* profile, size_t profile_size, size_t index,
                                     stw_profile_op_info* out) STW_NOEXCEPT;

enum { STW_PICTURE_SVG = 0, STW_PICTURE_HTML = 1, STW_PICTURE_CSV = 2 };
/* Draws the plan, as text that ends with a zero byte.
 *   SVG   the arena: offset against instruction, one rectangle for each buffer
 *   HTML  one page that loads nothing else, with that picture, live bytes over time, and the decisions
 *   CSV   the buffers of the program that reaches the peak, including persistent ones. The columns are
 *         id,lower,upper,size,offset,name,class. Lifetimes are half-open. Sizes are multiples of the
 *         alignment. The largest offset + size is info.arena
 * `out` receives the text if its size with the zero byte is at most `capacity`. `*needed` receives that size,
 * also if it is larger than `capacity`; `needed` may be NULL. To ask only for the size, pass out = NULL and
 * capacity 0.
 * Guarantees: the same plan gives the same bytes. Text that comes from files is escaped. In large plans,
 * buffers that are too small to see are drawn together, and the picture says so.
 * Errors: STW_BAD_ARGUMENT for an unknown kind or a capacity that is too small; nothing is then written.
 * Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_picture(const stw_plan* plan, uint32_t kind, char* out, size_t capacity,
                                    size_t* needed, stw_error* error) STW_NOEXCEPT;
/* As stw_plan_picture, with a watch; NULL: none. The chart of speed against memory in HTML is a frontier of
 * 40 points. Errors: also STW_CANCELLED; nothing is then written. Thread: any, but one call at a time for
 * each watch. Since: 0.1 */
STW_API stw_status stw_plan_picture_watched(const stw_plan* plan, uint32_t kind, char* out, size_t capacity,
                                            size_t* needed, stw_watch* watch, stw_error* error) STW_NOEXCEPT;
/* The number of buffers in the arena during a step; 0 for NULL. Thread: any. Since: 0.1 */
STW_API size_t stw_plan_buffer_count(const stw_plan* plan) STW_NOEXCEPT;
/* Describes the index-th buffer. Its name lives as long as the plan. Errors: STW_BAD_ARGUMENT past the last
 * one. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_buffer_at(const stw_plan* plan, size_t index, stw_buffer_info* out) STW_NOEXCEPT;

/* ---- pack: offsets for any buffers that share memory, not only those of a plan ------------------------- */
/* The lifetime of a buffer. An element of an array: this struct never grows. */
typedef struct stw_buffer_lifetime {
  int64_t lower, upper; /* the buffer is alive in [lower, upper), in any unit of time; upper == lower: it
                           takes no space */
  uint64_t size;        /* bytes */
} stw_buffer_lifetime;

/* A part of a buffer's lifetime, [lower, upper), in which it needs only its bytes [first, end), or no bytes
 * if both are equal. An element of an array: this struct never grows. */
typedef struct stw_buffer_gap {
  int64_t lower, upper;
  uint64_t first, end; /* `end` is at most the size of the buffer */
} stw_buffer_gap;

enum { STW_SET_OFFSET = 1 };
/* Constraints on the place of one buffer; all zeros: no constraint. An element of an array: this struct never
 * grows. */
typedef struct stw_buffer_constraint {
  uint64_t alignment;         /* the offset is a multiple of it; 0: 1 */
  uint64_t offset;            /* with STW_SET_OFFSET: the buffer's offset */
  const stw_buffer_gap* gaps; /* gap_count gaps that do not overlap */
  uint32_t gap_count;
  uint32_t set_mask; /* STW_SET_OFFSET */
} stw_buffer_constraint;

typedef struct stw_pack_options {
  uint32_t struct_size;
  uint32_t set_mask;   /* reserved, 0 */
  uint64_t capacity;   /* bytes that the buffers must fit into; 0: as few as possible */
  uint64_t node_limit; /* decisions that the search may take, some microseconds each; 0: 1,000,000 */
  const stw_buffer_constraint* constraints; /* one for each buffer, in the same order; NULL: none. With
                                constraints the exact search is practical for a few dozen buffers */
} stw_pack_options;

enum {
  STW_PACK_OPTIMAL = 0,    /* proven: no placement is lower */
  STW_PACK_FITS = 1,       /* the placement is within the capacity. Without a capacity: it is the lowest
                              that was found, and a lower one may exist */
  STW_PACK_IMPOSSIBLE = 2, /* proven: no placement is within the capacity */
  STW_PACK_UNKNOWN = 3     /* no placement within the capacity was found, but one may exist */
};

typedef struct stw_pack_result {
  uint32_t struct_size;
  uint32_t answer; /* STW_PACK_* */
  uint64_t height; /* largest offset + size of the lowest placement found, even if it exceeds the
                      capacity */
  uint64_t bound;  /* proven: no placement is lower */
  uint64_t nodes;  /* decisions that the search took */
} stw_pack_result;

/* Gives `count` buffers offsets, so that buffers that are alive at the same time do not overlap, and all
 * constraints hold. `offsets` receives `count` offsets in bytes. A buffer that needs any bytes at any time
 * reaches up to offset + size, even if its gaps leave its last bytes unused. `options` and `result` may be
 * NULL. If `count` is 0, so may the arrays.
 * Guarantees: deterministic, and the same on every machine.
 * Errors: STW_OVER_BUDGET for the answers STW_PACK_IMPOSSIBLE and STW_PACK_UNKNOWN: `offsets` is then
 * untouched, `result` is filled in, and error.bytes_needed is a capacity that is enough. STW_BAD_ARGUMENT if
 * a lifetime's upper is below its lower, if 2^62 bytes or more are needed, if gaps overlap or lie outside of
 * their lifetime, or if given offsets overlap or are not multiples of their alignment. Thread: any. Since:
 * 0.1 */
STW_API stw_status stw_pack(uint64_t* offsets, const stw_buffer_lifetime* lifetimes, size_t count,
                            const stw_pack_options* options, stw_pack_result* result,
                            stw_error* error) STW_NOEXCEPT;

/* ---- dataset ------------------------------------------------------------------------------------------- */
enum { STW_TOKENIZER_AUTO = 0, STW_TOKENIZER_BYTE = 1, STW_TOKENIZER_IDS = 2 };
/* The integer type of stored ids, always little-endian. AUTO: the type in the header of a .npy file. For
 * other files uint16, or uint32 if the vocabulary exceeds 65,536. */
enum {
  STW_TOKEN_TYPE_AUTO = 0,
  STW_TOKEN_TYPE_UINT16 = 1,
  STW_TOKEN_TYPE_UINT32 = 2,
  STW_TOKEN_TYPE_INT32 = 3,
  STW_TOKEN_TYPE_INT64 = 4
};
enum { STW_SET_DOCUMENT_END = 1, STW_SET_HELD_OUT = 2, STW_SET_DATASET_SEED = 4 };
/* Marks of a token; bits that can be combined.
 *   TARGET  the model learns to predict this token
 *   BEGIN   a document begins with this token
 *   SECOND  the token belongs to the second text of its document, and its token type is 1 */
enum { STW_MARK_TARGET = 1, STW_MARK_BEGIN = 2, STW_MARK_SECOND = 4 };
/* Kinds of tokens in a vocabulary; bits that can be combined.
 *   SPECIAL    the token is never hidden from a masked language model, and never replaces a hidden one
 *   CONTINUES  the token continues the word of the token before it */
enum { STW_TOKEN_SPECIAL = 1, STW_TOKEN_CONTINUES = 2 };

typedef struct stw_dataset_options {
  uint32_t struct_size;
  uint32_t tokenizer;    /* STW_TOKENIZER_*; auto: ids for .bin and .npy files, else bytes */
  const char* path;      /* a file of text, or of ids of token_type: bare numbers, or a NumPy array of one
                            dimension (.npy) */
  uint64_t vocabulary;   /* size of the vocabulary; every id must be smaller */
  uint64_t sequence;     /* tokens of a sample */
  uint64_t seed;         /* chooses the windows of tokens that are trained on; unset: 1337 */
  uint32_t set_mask;     /* STW_SET_DOCUMENT_END, STW_SET_HELD_OUT, STW_SET_DATASET_SEED */
  uint32_t pairs;        /* 1: for plans with a preference; needs marks and excludes labels. Documents are
                            pairs: chosen and rejected ones in turn. A sample holds whole pairs. No pair
                            may have more than `sequence` + 1 tokens */
  uint64_t document_end; /* the token that ends a document. Attention then stays inside a document, and
                            the token after an end is not a target. Needs a plan with STW_INPUT_POSITIONS.
                            Unset: the file is not divided into documents */
  const char* marks; /* a file with one byte for each token: STW_MARK_*. With marks, a model can learn answers
                        without learning prompts. Documents are kept apart as with document_end, but they
                        begin at the marked tokens; the first token must be marked. A sample holds as many
                        whole documents as fit. Longer documents are cut. All samples are trained on once
                        before any is repeated, in a different order each time. Needs plans with the same
                        `sequence` (else STW_BAD_STATE). Excludes document_end. NULL: all tokens are targets,
                        and a sample may begin at any token */
  const char* labels;    /* for classifiers: a file with one little-endian uint32 for each document that
                            `marks` begin. It is the document's label, or UINT32_MAX for no label. It
                            becomes the target of the document's last token inside the sample; for an
                            encoder, of its first token. STW_MARK_TARGET is ignored. With
                            STW_TASK_TOKEN_LABEL: one uint32 for each token, the target of that token.
                            NULL: targets are tokens */
  uint64_t label_count;  /* with labels: the number of labels of the model; every uint32 must be
                            smaller */
  double held_out;       /* share of the tokens, at the end of the file, that is held out for evaluation:
                            0 to 1; unset: 0.1. With marks, whole documents are held out; a document that
                            is longer than a sample counts with the tokens that fit into a sample */
  const char* reference; /* with pairs, for STW_PREFERENCE_DPO and _IPO: the file that
                            stw_trainer_write_reference wrote for these tokens and marks (a file for other
                            ones: STW_BAD_STATE) */
  /* For masked language models (STW_TASK_MASKED_LANGUAGE_MODEL); excludes labels and pairs. Each token is
   * hidden with the probability mask_rate, independently of the others (Devlin et al., arXiv:1810.04805). Of
   * the hidden tokens 80 % become mask_token, 10 % become a random token that is not special, and 10 % stay.
   * The hidden tokens are the targets. With `marks`, only tokens with STW_MARK_TARGET are hidden. In
   * training, the choice depends on the seed, the number of the batch, the sample's place in the batch and
   * the token's place in the sample. In evaluations it depends only on the window, so that every evaluation
   * hides the same tokens. */
  double mask_rate; /* above 0, at most 1; 0: no tokens are hidden */
  uint64_t mask_token;
  const uint8_t* token_kinds; /* `vocabulary` bytes, each a combination of STW_TOKEN_*; NULL: all are 0 */
  uint32_t mask_whole_words;  /* 1: with token_kinds, whole words are drawn instead of tokens: a token that
                                 continues a word is hidden together with the word */
  uint32_t task;              /* with labels: the model's task, LABEL, LABELS, NUMBER, TOKEN_LABEL or SPANS;
                                 AUTOMATIC: LABEL. For LABELS, NUMBER and SPANS the file of labels has
                                 label_count little-endian float32 for each document instead. LABELS: the
                                 degree to which the document has each label, 0 to 1. NUMBER: finite
                                 numbers. SPANS: the indices in the document of the answer's first and
                                 last token; documents are at most as long as a sample. If the first
                                 float32 is a NaN, the document has no labels */
  uint32_t sequential;        /* 1: evaluations cover the whole held-out part, in consecutive windows from its
                                 first token on; the last window may be shorter. Each token except the first
                                 is a target once. Excludes marks and mask_rate */
  uint32_t token_type; /* STW_TOKEN_TYPE_*, for ids. AUTO refuses a file whose numbers look like another
                          type */
  stw_watch* watch;    /* reports and cancels this call; NULL: none */
  uint64_t texts;      /* with marks: the largest number of documents in a sample, as stw_plan_info.texts of
                          the plan says. 0: as many as fit. If it is not 0 and the documents have labels,
                          training samples take the documents in an order that leaves little padding. All
                          other samples take them in the order of the file */
} stw_dataset_options;

typedef struct stw_dataset_info {
  uint32_t struct_size;
  uint32_t tokenizer;                            /* STW_TOKENIZER_BYTE or STW_TOKENIZER_IDS */
  uint64_t training_tokens, evaluation_tokens;   /* as held_out divides them; with marks, the held-out
                                part begins with the nearest document */
  uint64_t training_samples, evaluation_samples; /* with marks: the number of samples in which
                                every document of the part occurs once. With sequential: evaluation_samples is
                                the number of samples that hold every token once. Else 0 */
  uint64_t content_hash; /* XXH3, 64 bits, of the files of tokens, marks and labels in this order. A run
                            that continues from a checkpoint trains the bits of an uninterrupted run only
                            if this is the same, too */
} stw_dataset_info;

/* Opens and checks a file. The file is read window by window and is never loaded as a whole. Its held-out
 * part may be too short for an evaluation; stw_trainer_evaluate then fails.
 * Errors: STW_IO_ERROR. STW_CORRUPT for an id outside of the vocabulary, marks that do not belong to the
 * tokens, documents that are not pairs or pairs that are too long, a reference that cannot be read, and an
 * empty file; without marks also for a training part (with held_out 1: a held-out part) that is shorter than
 * a sequence and one token. STW_BAD_STATE for a reference for other tokens. STW_BAD_ARGUMENT; STW_CANCELLED.
 * Owner: the caller. Several trainers may use the dataset, one after the other. Thread: exclusive. Since:
 * 0.1 */
STW_API stw_status stw_dataset_open(stw_dataset** out, const stw_dataset_options* options,
                                    stw_error* error) STW_NOEXCEPT;
/* Closes the dataset. Thread: exclusive. Since: 0.1 */
STW_API void stw_dataset_close(stw_dataset* dataset) STW_NOEXCEPT;
/* Gives the numbers of tokens and samples. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_dataset_query(const stw_dataset* dataset, stw_dataset_info* out) STW_NOEXCEPT;

/* ---- trainer ------------------------------------------------------------------------------------------- */
enum {
  STW_PHASE_IDLE = 0,
  STW_PHASE_TRAIN = 1,
  STW_PHASE_EVALUATE = 2,
  STW_PHASE_GENERATE = 3,
  STW_PHASE_SAVE = 4,
  STW_PHASE_CALIBRATE = 5
};

/* Why a step made no update: none of its tokens is a target; the loss or a gradient is not finite; the loss
 * or the gradient norm is an outlier (stw_trainer_options.outlier_limit). */
enum { STW_SKIP_NONE = 0, STW_SKIP_NO_TARGET = 1, STW_SKIP_NOT_FINITE = 2, STW_SKIP_OUTLIER = 3 };

/* The state of a trainer, for the progress callback and for stw_trainer_progress. */
typedef struct stw_progress {
  uint32_t struct_size;
  uint32_t phase;           /* STW_PHASE_* */
  uint64_t step;            /* successful updates so far */
  uint64_t batches;         /* global batches consumed so far: step + skipped */
  uint64_t skipped;         /* steps without an update so far: STW_SKIP_* */
  double loss;              /* of the last step, mean per target */
  double grad_norm;         /* of the last step, before clipping */
  double learning_rate;     /* of the last step */
  double seconds;           /* duration of the last step */
  double tokens_per_second; /* targets of the last step per second; with a preference: pairs per second */
  uint64_t tokens;          /* targets trained on so far; with a preference: pairs */
  double evaluation_loss;   /* of the last evaluation; 0 before the first one */
  double loss_scale;        /* for the next step; 1 unless the precision is fp16 */
  uint32_t skip_reason;     /* STW_SKIP_* of the last step */
  uint32_t reserved;
  double evaluation_accuracy; /* of the last evaluation.
                              Classifiers and masked language models: share of the targets whose logit was
                              the largest; of equal logits the first one counts.
                              LABELS: share of the texts whose logits are all right. A logit is right if it is
                              above 0 where the label's degree is above 0.5, and at most 0 elsewhere.
                              Preferences: as `accuracy`.
                              NaN if there were no targets, and for NUMBER */
  double accuracy;            /* with a preference, of the last step: share of the pairs whose chosen document
                                 was ahead, compared by P - R (dpo), (P - R) / n (ipo), or P / n (simpo,
                                 orpo); else 0 */
  uint64_t evaluation_samples; /* all samples of the evaluation in progress, or of the last one.
                               stw_trainer_log_probabilities and _write_reference count as evaluations */
  uint64_t evaluated_samples;  /* samples of that evaluation that have been given to the device */
  uint64_t evaluation_targets; /* targets that evaluation_loss is the mean over: tokens; for a classifier
                               texts or words; with a preference pairs */
  uint64_t micro_steps;        /* all micro-steps of the step in progress, or of the last one */
  uint64_t micro_steps_done;   /* micro-steps of that step that have been given to the device; on the CPU
                                  these are computed */
  uint64_t sample_tokens;      /* tokens of the last step's samples, without padding; 0: the host gave
                                  the batch */
  uint64_t evaluation_tokens;  /* tokens of the samples of the last stw_trainer_evaluate, without padding */
} stw_progress;

/* Reports progress, on the calling thread, after every `progress_every` steps and after the last one. A
 * result other than 0 stops the run before the next step. The callback may evaluate, generate, save and make
 * steps. `now` is borrowed. */
typedef int32_t (*stw_progress_fn)(void* user, const stw_progress* now);

/* The sums of a step. The gradient hook receives them after the last micro-step and before the gradient
 * norm is computed. The hook may change the values that the pointers point to, in the order of `stream` (CPU:
 * before it returns). To make one step of a joint batch over several trainers, add up `data`, `*loss_sum`,
 * `*target_count` and `*correct_pairs` of all of them, and give each trainer the same seed and its own
 * stw_trainer_options.first_sample. If the hook returns a value other than 0, the step fails with
 * STW_CALLBACK_FAILED and updates nothing. Inside the hook, calls that compute, or that read or write the
 * trainer's state, answer STW_BAD_STATE (see the rules above). */
typedef struct stw_gradients {
  uint32_t struct_size;
  uint32_t reserved;
  float* data;    /* gradients of all trainable parameters: sums over tokens (with a preference:
                     over pairs), not divided by their number. Ignore the gaps between parameters. Trainers
                     whose gradients are added up must have plans that agree in `keeps_rows` (a field of a
                     plan's JSON): a tied token table has one gradient if it is true, otherwise two */
  uint64_t count; /* number of floats in `data`, including gaps */
  double* loss_sum;
  uint64_t* target_count;
  void* stream;            /* a cudaStream_t; NULL on the CPU */
  double scale;            /* factor that `data` contains: 1 unless the precision is fp16. Trainers whose
                              gradients are added up must have the same scale */
  uint32_t* correct_pairs; /* with a preference: number of pairs whose chosen document was ahead */
} stw_gradients;
typedef int32_t (*stw_gradient_fn)(void* user, const stw_gradients* gradients);

enum {
  STW_SET_WEIGHT_DECAY = 1,
  STW_SET_CLIP_NORM = 2,
  STW_SET_BETA1 = 4,
  STW_SET_BETA2 = 8,
  STW_SET_MOMENTUM = 16,
  STW_SET_MARGIN = 32,
  STW_SET_TRAINER_SEED = 64
};
enum { STW_NON_FINITE_SKIP = 0, STW_NON_FINITE_STOP = 1 };

/* The optimizers. g is the gradient: the mean per target, clipped. lr is the learning rate. All arithmetic is
 * fp32, on the fp32 master weights.
 *   adamw      Loshchilov and Hutter, arXiv:1711.05101, as torch.optim.AdamW
 *   sgd        momentum, weight decay added to g, as torch.optim.SGD
 *   lion       Chen et al., arXiv:2302.06675; needs a learning rate 3 to 10 times smaller than AdamW
 *   muon       Jordan 2024: Nesterov momentum, orthogonalised, times 0.2·sqrt(larger side), so that the rates
 *              of AdamW fit (Liu et al., arXiv:2502.16982)
 *   adafactor  Shazeer and Stern, arXiv:1804.04235, as torch.optim.Adafactor
 * A float in these options means the shortest decimal number that rounds to it: 0.95f means 0.95, and the
 * update computes with 1 - 0.95. */
typedef struct stw_trainer_options {
  uint32_t struct_size;
  uint32_t set_mask;    /* STW_SET_WEIGHT_DECAY to STW_SET_TRAINER_SEED */
  uint64_t seed;        /* seed of dropout; unset: 1337 */
  float beta1, beta2;   /* adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99 */
  float epsilon;        /* adamw, muon: 0: 1e-8 */
  float weight_decay;   /* 0 to 1e6; unset: 0.1, for sgd and adafactor 0. Tensors of one dimension get
                           none, unless a group sets theirs */
  float clip_norm;      /* largest gradient norm; 0: no clipping; unset: 1, with a fused update 0 */
  uint32_t nesterov;    /* sgd: 1: Nesterov momentum */
  void* arena;          /* memory of the host, at least info.arena bytes at a multiple of 256; NULL: the
                           trainer allocates it */
  uint64_t arena_bytes; /* size of `arena` */
  stw_gradient_fn gradient_hook; /* NULL: none */
  void* gradient_user;
  float momentum;           /* sgd: unset 0.9; muon: unset 0.95 */
  float label_smoothing;    /* in [0, 1): share of the target's probability that all tokens share equally.
                               With a preference, in [0, 0.5): share of the pairs that are assumed to be the
                               wrong way round. Must be 0 for LABELS, NUMBER and SPANS */
  float z_loss;             /* every token's loss grows by z_loss times the square of log Σ exp(logits). Must
                               be 0 for LABELS, NUMBER and SPANS */
  float outlier_limit;      /* 0: none. Else above 1: a step is skipped if its loss or gradient norm lies
                               more than this many standard deviations above its running mean. Mean and
                               deviation are exponential averages over about 128 steps. No step is skipped
                               before 64 steps were observed */
  double loss_scale;        /* fp16: scale of the first step, a power of two; 0: 65536 */
  uint32_t growth_interval; /* fp16: number of updates after which the scale doubles; 0: 2000. A step whose
                               loss or gradient is not finite halves the scale. */
  uint32_t non_finite;      /* STW_NON_FINITE_*. skip: a step whose loss or gradient is not finite updates
                               nothing, and is counted and logged. stop: it fails with STW_NON_FINITE. fp16
                               always skips, and fails with STW_NUMERIC if the scale would fall below 1. */
  /* For the preference of the plan; the formulas are at STW_PREFERENCE_*. */
  float beta;         /* 0: 0.1, for simpo 2; at most 1e6 */
  float margin;       /* simpo: unset half of beta */
  float answer_share; /* factor, 0 to 1e6, with which the chosen document's mean token loss is added
                         (Pang et al., arXiv:2404.19733) */
  uint32_t reserved;
  stw_watch* watch; /* reports and cancels the creation and all later calls that name the trainer; it
                       must outlive the trainer; NULL: none */
  uint64_t
      first_sample; /* for a gradient hook that adds up several trainers: the number, in their joint
                       batch, of the first sample of this trainer's batches. Dropout depends on a sample's
                       number, so that the trainers together drop what one with the whole batch drops. Else
                       0. first_sample + global_batch is at most 2^32. Checkpoints do not hold it */
} stw_trainer_options;

typedef struct stw_batch {
  uint32_t struct_size;
  uint32_t count; /* number of tensors */
  /* Named tensors in host memory, at multiples of 4 bytes, with any strides. They are int32 unless the list
   * below says float32. A tensor "of tokens" has the shape (samples, tokens), which is at most (global_batch,
   * sequence). Samples and tokens that a smaller tensor lacks do not count.
   *
   * Required for language models: "tokens", and one of
   *  - "targets", of tokens: the token that follows each token; the host has shifted them already
   *  - "labels", of tokens: the tokens themselves. The library shifts them, so that the first token of a
   *    sample, or of a document, has no loss
   * In both, -100 means no loss.
   *
   * For a masked language model the host hides some tokens in "tokens" itself. "targets" or "labels" hold the
   * original token in the places of the hidden ones, and -100 elsewhere. Nothing is shifted.
   *
   * For a classifier, targets are labels of the model instead of tokens:
   *  - "targets", of tokens: a label at any token; or "labels" (samples): one label for each sample. The
   *    library puts this label at the last token that counts in the sample; for an encoder, at the first
   *    token
   *  - STW_TASK_TOKEN_LABEL: "labels" and "targets" are both of tokens, and hold the label of the token at
   *    the same place
   *  - LABELS and NUMBER: there are no "targets". "labels" is float32 (samples, labels). LABELS: to which
   *    degree, 0 to 1, a sample has each label. NUMBER: finite numbers. A row that begins with NaN has no
   *    loss
   *  - SPANS: "labels" is float32 (samples, 2): the indices of the answer's first and last token in the
   *    sample's first document. Texts without an answer name a token that stands for none, such as the first
   *    one. A row that begins with NaN has no loss
   *
   * Optional:
   *  - "lengths" (samples): how many tokens of each sample count, 0 to tokens. The library does not read past
   *    a length
   *  - "positions", of tokens; with STW_INPUT_POSITIONS, and always for encoders: the position of each token
   *    in its document. A sample then holds several documents end to end, each counted 0, 1, 2, ..., and
   *    attention stays inside a document. With a preference they are required
   *  - "token_types", of tokens; for models with token types: each below stw_model_info.token_types. Without
   *    this tensor all types are 0
   *  - "weights", of tokens, float32 and finite; with STW_INPUT_WEIGHTS: factors of the losses of the targets
   *    or labels at the same places. If the library shifts a language model's labels, it shifts the weights
   *    with them. The loss is still divided by the number of targets
   * Required for STW_PREFERENCE_DPO and _IPO:
   *  - "reference", of tokens, float32 and finite: log-probabilities of the targets or labels at the same
   *    places */
  const char* const* names;
  const struct DLManagedTensorVersioned* const* tensors;
  double learning_rate; /* 0 to 1e6. There is no default: with 0 the optimizer's state changes and
                           parameters do not */
} stw_batch;

typedef struct stw_step_result {
  uint32_t struct_size;
  uint32_t skipped;       /* 1: there was no update. Only three things have changed: the count of batches, the
                             running statistics of outlier_limit, and in fp16 the loss scale */
  uint64_t step;          /* successful updates so far, this one included */
  double loss, grad_norm; /* mean per target; norm before clipping */
  uint64_t targets;       /* number of targets with a loss; with a preference: of pairs */
  double seconds;         /* duration of the step */
  double loss_scale;      /* of this step; 1 unless the precision is fp16 */
  uint32_t skip_reason;   /* STW_SKIP_* */
  uint32_t reserved;
  double accuracy; /* as in stw_progress */
} stw_step_result;

/* The learning rate after the warm-up, which rises to the full rate.
 *   cosine, linear   falls in such a way that the step after the last one would have min_rate
 *   constant         stays at the full rate
 *   wsd              warm-up-stable-decay: stays at the full rate, and over the last decay_steps falls
 *                    linearly to min_rate in the same way
 *   inverse root     rate · sqrt(warmup / step), but at least min_rate */
enum {
  STW_SCHEDULE_COSINE = 0,
  STW_SCHEDULE_LINEAR = 1,
  STW_SCHEDULE_CONSTANT = 2,
  STW_SCHEDULE_WSD = 3,
  STW_SCHEDULE_INVERSE_ROOT = 4
};
enum { STW_SET_MIN_RATE = 1 };
enum { STW_SET_GENERATE_SEED = 1 };

typedef struct stw_run_options {
  uint32_t struct_size;
  uint32_t set_mask;        /* STW_SET_MIN_RATE */
  uint64_t until;           /* the run ends when the trainer has consumed this many batches in all; if it
                               already has, the call returns at once */
  uint64_t total;           /* length of the schedule in steps; 0: `until` */
  uint64_t warmup;          /* steps of linear warm-up */
  double learning_rate;     /* the full rate. 0: adamw, muon 3e-4; lion 1e-4; sgd, adafactor 1e-2. At most
                               1e6, also after base_batch has scaled it */
  double min_rate;          /* unset: a tenth of the full rate; inverse root: 0; constant: not used */
  uint32_t schedule;        /* STW_SCHEDULE_* */
  uint32_t progress_every;  /* steps between two calls of `progress`; 0: 1 */
  stw_progress_fn progress; /* NULL: none */
  void* progress_user;
  uint64_t decay_steps; /* warm-up-stable-decay: length of the decay; 0: a fifth of `total` */
  uint64_t base_batch;  /* the number of samples in a step that the learning rates were chosen for. Rates
                           are multiplied by the square root of global_batch / base_batch; 0: rates are
                           used as they are */
} stw_run_options;

typedef struct stw_generate_options {
  uint32_t struct_size;
  uint32_t top_k;        /* draw from this many most probable tokens; 0: from all */
  const int32_t* prompt; /* at least one token */
  uint64_t prompt_count; /* number of tokens in `prompt` */
  int32_t* out;          /* receives the new tokens */
  uint64_t out_capacity; /* the most tokens to generate */
  double temperature;    /* 0: always the most probable token */
  uint64_t seed;         /* unset: 1337 */
  const int32_t* stop;   /* tokens that end the answer, such as the model's end of text. The one that
                            ended it is the last token in `out` */
  uint64_t stop_count;   /* number of tokens in `stop` */
  double top_p;          /* at most 1. Among the top_k tokens, after `temperature`, draw from the fewest
                            most probable ones that together have at least this probability; 0: from
                            all */
  uint32_t set_mask;     /* STW_SET_GENERATE_SEED */
  uint32_t reserved;
} stw_generate_options;

/* Creates a trainer: allocates the plan's arena, and host memory (info.host) if the plan offloads, and fills
 * both with weights.
 * Guarantees: after this call the trainer allocates no memory for tensors, except in stw_trainer_replan. On
 * the CPU the arena and the host memory both come from the device's allocator.
 * Errors: STW_OUT_OF_MEMORY; STW_BAD_STATE (a plan that does not fit, or is for another model or device; a
 * gradient hook with gradients that are offloaded, bf16, fused, or formed at the update); STW_BAD_ARGUMENT
 * (an option that the optimizer or the task does not have); STW_UNSUPPORTED (kernels of a library that is
 * missing); STW_DEVICE_ERROR; STW_CANCELLED; the errors of reading weights.
 * Owner: the caller. The plan and the model may be destroyed before the trainer, the device may not.
 * Thread: exclusive use of the device during the call, except that its other trainers may compute. Since:
 * 0.1 */
STW_API stw_status stw_trainer_create(stw_trainer** out, stw_device* device, const stw_model* model,
                                      const stw_plan* plan, const stw_trainer_options* options,
                                      stw_error* error) STW_NOEXCEPT;
/* Waits for the trainer's work and destroys it. An arena of the host returns to the host. Thread: exclusive.
 * Since: 0.1 */
STW_API void stw_trainer_destroy(stw_trainer* trainer) STW_NOEXCEPT;
/* Makes one optimizer step over a whole global batch. stw_trainer_wait gives its result. The batch is
 * borrowed until stw_trainer_wait returns.
 * Guarantees: a step is a transaction. After a cancel or a failed callback the trainer has the state of the
 * last completed step.
 * Errors: STW_BAD_ARGUMENT (names, shapes, a token outside the vocabulary, the learning rate);
 * STW_UNSUPPORTED (an input that the plan does not include); STW_CANCELLED; STW_CALLBACK_FAILED;
 * STW_NON_FINITE and STW_NUMERIC (see stw_trainer_options.non_finite); STW_BAD_STATE if the trainer has to be
 * restored after an earlier failure. Since: 0.1 */
STW_API stw_status stw_trainer_step(stw_trainer* trainer, const stw_batch* batch,
                                    stw_error* error) STW_NOEXCEPT;
/* Waits for the last step and gives its result. Errors: STW_BAD_STATE if no step was made since the trainer
 * was created or restored. Since: 0.1 */
STW_API stw_status stw_trainer_wait(stw_trainer* trainer, stw_step_result* out,
                                    stw_error* error) STW_NOEXCEPT;
/* Makes steps over a dataset.
 * Guarantees: the windows of tokens depend only on the dataset's seed and on the number of batches consumed,
 * so that an interrupted run continues where it stopped.
 * Errors: STW_CANCELLED if a callback, a watch or stw_trainer_cancel stopped the run; STW_BAD_STATE if the
 * dataset does not suit the model or the plan; STW_BAD_ARGUMENT; the errors of stw_trainer_step. Since:
 * 0.1 */
STW_API stw_status stw_trainer_run(stw_trainer* trainer, stw_dataset* dataset, const stw_run_options* options,
                                   stw_error* error) STW_NOEXCEPT;
/* Computes the mean loss per target over `batches` global batches (at least 1) of the held-out part, in the
 * same arena. The windows are the same each time. With marks or sequential, each sample is used at most once.
 * With a preference, the loss is the mean over pairs, without label_smoothing. `*loss` is NaN if no token is
 * a target.
 * Errors: STW_CORRUPT if the held-out part is shorter than a sequence and one token, or with marks empty;
 * STW_BAD_STATE if the dataset does not suit the model or the plan; STW_CANCELLED. Since: 0.1 */
STW_API stw_status stw_trainer_evaluate(stw_trainer* trainer, stw_dataset* dataset, uint64_t batches,
                                        double* loss, stw_error* error) STW_NOEXCEPT;
/* Continues a prompt, in the same arena. The prompt and the new tokens together must fit the plan's sequence.
 * `*count` receives the number of new tokens, which is less than out_capacity if a token of `stop` ended the
 * answer.
 * Errors: STW_BAD_ARGUMENT; STW_UNSUPPORTED (a classifier or an encoder); STW_UNSUPPORTED_SHAPE (too many
 * tokens); STW_CANCELLED; STW_NON_FINITE if the model's logits are not finite. After the last two, `out` may
 * hold tokens. Since: 0.1 */
STW_API stw_status stw_trainer_generate(stw_trainer* trainer, const stw_generate_options* options,
                                        uint64_t* count, stw_error* error) STW_NOEXCEPT;
/* Computes the model's logits after a text of `count` tokens, in the same arena. A language model gives one
 * logit for each token of the vocabulary that may follow. A classifier gives one for each label. `out`
 * receives that many fp32 values and has room for `capacity`. They are not probabilities: softmax turns them
 * into probabilities; for LABELS, the sigmoid of each one does. For NUMBER they are the numbers.
 * Errors: STW_BAD_ARGUMENT (tokens, capacity); STW_UNSUPPORTED_SHAPE (no token, or more than the plan's
 * sequence); STW_UNSUPPORTED for a masked language model (use stw_trainer_log_probabilities) and for
 * STW_TASK_TOKEN_LABEL and STW_TASK_SPANS (use stw_trainer_classify); STW_CANCELLED; STW_NON_FINITE if
 * logits are not finite.
 * Since: 0.1 */
STW_API stw_status stw_trainer_logits(stw_trainer* trainer, const int32_t* tokens, uint64_t count, float* out,
                                      uint64_t capacity, stw_error* error) STW_NOEXCEPT;
/* Computes a classifier's logits, or its numbers, for `texts` texts, in the same arena.
 *   tokens       the tokens of all texts, one text after the other
 *   token_types  a type for each token, below the model's token_types; NULL: all are 0
 *   lengths      the number of tokens of each text, 1 to the plan's sequence
 *   out          receives fp32 values and has room for `capacity`. Shape: (texts, labels). For
 *                STW_TASK_TOKEN_LABEL and STW_TASK_SPANS: (tokens, labels), with the tokens of all texts in
 *                turn
 * Logits are not probabilities: softmax turns them into probabilities; for LABELS, the sigmoid of each one
 * does. For NUMBER the values are the numbers. An encoder takes as many texts at once as fit the plan's
 * sequence.
 * Guarantees: the answers are the same as for one text at a time.
 * Errors: STW_UNSUPPORTED (the model is not a classifier); STW_BAD_ARGUMENT (tokens, types, capacity);
 * STW_UNSUPPORTED_SHAPE (a length); STW_CANCELLED; STW_NON_FINITE if logits are not finite. After an error a
 * part of `out` may have been written. Since: 0.1 */
STW_API stw_status stw_trainer_classify(stw_trainer* trainer, const int32_t* tokens,
                                        const int32_t* token_types, const uint64_t* lengths, uint64_t texts,
                                        float* out, uint64_t capacity, stw_error* error) STW_NOEXCEPT;
/* Computes the log-probability that the model, without dropout, gives every target of a batch, in the same
 * arena. The batch has one sample to global_batch samples, and neither "weights" nor "reference". Its
 * learning rate is ignored. `out` receives (samples, tokens) fp32 values and has room for `capacity`. Each
 * value has the place of its target or label; places without a target hold 0. For a classifier's "labels",
 * the value is in the place of the sample's last token.
 * Errors: those of stw_trainer_step; STW_NON_FINITE if the model's loss is not finite; STW_UNSUPPORTED for
 * LABELS, NUMBER and SPANS. After an error `out` is unchanged. Since: 0.1 */
STW_API stw_status stw_trainer_log_probabilities(stw_trainer* trainer, const stw_batch* batch, float* out,
                                                 uint64_t capacity, stw_error* error) STW_NOEXCEPT;
/* Goes once over both parts of a dataset of pairs, and writes the log-probabilities that the model now gives
 * its targets into the file `path`, for stw_dataset_options.reference. The file has a little-endian float32
 * for each token, and 32 bytes that identify the tokens and marks and hold a checksum. Usually this call
 * comes before the first step, so that the reference is the untrained model. The trainer's plan must have a
 * preference, any of them. The dataset needs no reference.
 * Errors: STW_BAD_STATE (another kind of plan or dataset); STW_IO_ERROR; STW_NON_FINITE; STW_CANCELLED. After
 * an error no file has been replaced. Since: 0.1 */
STW_API stw_status stw_trainer_write_reference(stw_trainer* trainer, stw_dataset* dataset, const char* path,
                                               stw_error* error) STW_NOEXCEPT;
/* Changes the budget of a trainer between two steps. Plans again for `memory_bytes`, with the same numerics,
 * batch, micro-batch and recompute policy (in fast mode: the same chosen micro-batch), and moves the trainer
 * to the new plan. memory_bytes = 0 means all memory of the device: the memory that is free there now plus
 * this trainer's arena, which it gives back. If the host supplied the arena, it means the size of that arena.
 * `*plan` receives the new plan, which the caller destroys; `plan` may be NULL. Views from
 * stw_trainer_export_tensor become invalid.
 * Guarantees: training continues with the same bits. The memory in use never exceeds the larger of the two
 * arenas, with one exception: the host's allocator is asked for the new arena before the old one is released.
 * An arena that the host supplied is kept, so it must be large enough for the new plan.
 * Errors: STW_OVER_BUDGET with error.bytes_needed (if there is a gradient hook: for a plan with all
 * gradients on the device); STW_OUT_OF_MEMORY; STW_CANCELLED; STW_BAD_STATE from inside a callback of the
 * trainer. After an error the trainer is unchanged and `*plan` is NULL. One exception: while the library's
 * own arena on a CUDA device changes its size, the device holds none of it. If another process takes that
 * memory in the meantime, the answer is also STW_OUT_OF_MEMORY, and the message says so; the trainer then
 * answers STW_BAD_STATE until it is restored. Since: 0.1 */
STW_API stw_status stw_trainer_replan(stw_trainer* trainer, uint64_t memory_bytes, stw_plan** plan,
                                      stw_error* error) STW_NOEXCEPT;
enum { STW_PROFILE_BYTES = 16384 }; /* room for any profile, with its zero byte */
/* Measures the device. Times every instruction of the plan's step, on made-up tokens: one run to warm up,
 * then the median of several runs. Times a micro-step of one sample in the same way. Writes a profile for
 * planning (stw_plan_options.profile) to `out`, as JSON text that ends with a zero byte; `*size` receives its
 * bytes without the zero byte, and `size` may be NULL. The host must keep other work off the device during
 * the call. If the library made the context of a CUDA device, and the driver reports the memory in use, the
 * reserve is measured too: all memory of the card that came into use since the context was made, by any
 * process, minus this trainer's arena.
 * Guarantees: no gradient hook is called. Afterwards, also after a failure, every byte of the trainer is as
 * stw_trainer_create left it. For this the weights are read again. If they can no longer be read, the trainer
 * answers STW_BAD_STATE until it is restored or measured again.
 * Errors: STW_BAD_STATE for a trainer that has made a step, was restored or had a tensor imported;
 * STW_BAD_ARGUMENT for a capacity below STW_PROFILE_BYTES; STW_NON_FINITE if the model's loss or gradients
 * are not finite; STW_CANCELLED; the errors of reading weights. Since: 0.1 */
STW_API stw_status stw_trainer_calibrate(stw_trainer* trainer, char* out, size_t capacity, size_t* size,
                                         stw_error* error) STW_NOEXCEPT;
/* Measures as stw_trainer_calibrate does, with its guarantees and errors, and writes the timeline of a step
 * to the file `path`: every instruction with its measured time and the time that the plan expected. The
 * format is Google's Trace Event Format (JSON), which chrome://tracing and Perfetto show. A micro-step that
 * repeats appears once, with the number of its runs. Copies that would run at the same time as ops appear one
 * after the other. Errors: also STW_IO_ERROR. Since: 0.1 */
STW_API stw_status stw_trainer_timeline(stw_trainer* trainer, const char* path,
                                        stw_error* error) STW_NOEXCEPT;
/* Cancels the call in progress that uses the trainer. If there is none, it cancels the next one, so that no
 * cancel is lost. The guarantees of a cancel are those of stw_watch_create. NULL is accepted. Thread: any,
 * and signal handlers. Since: 0.1 */
STW_API void stw_trainer_cancel(stw_trainer* trainer) STW_NOEXCEPT;
/* Tells how far the trainer is. Errors: as stw_device_query. Thread: any, while the trainer exists. Since:
 * 0.1 */
STW_API stw_status stw_trainer_progress(const stw_trainer* trainer, stw_progress* out) STW_NOEXCEPT;
/* The trainer's CUDA stream (a cudaStream_t); NULL on the CPU. Since: 0.1 */
STW_API void* stw_trainer_stream(const stw_trainer* trainer) STW_NOEXCEPT;

enum {
  STW_TENSOR_PARAMETER = 0,
  STW_TENSOR_GRADIENT = 1,
  STW_TENSOR_FIRST_MOMENT = 2,
  STW_TENSOR_SECOND_MOMENT = 3
};
/* Gives a view of a tensor in the arena, without a copy. `index` is the parameter, as in stw_model_tensor_at;
 * `kind` is STW_TENSOR_*. The view is valid until the trainer is destroyed or planned again.
 * Rows are in the order of the files, except in BLOOM's query_key_value (matrix, bias, and B of an adapter).
 * There the memory holds the queries of all heads, then all keys, then all values; files hold queries, keys
 * and values of each head together.
 * Gradients hold the last step's sums until the next call that computes. For a tensor that two ops use, such
 * as a tied one, they are the sums of the first use. For a tensor that more ops use, such as ALBERT's blocks,
 * they are the sums of all uses. In fp16 they contain stw_gradients.scale: the step's loss_scale, divided by
 * the smallest power of two that is at least global_batch * sequence (for ipo, simpo and orpo: at least
 * global_batch).
 * First moments are those of AdamW, and the momentum of SGD, Lion and Muon. Second moments are those of
 * AdamW, and those of Adafactor for tensors of one dimension.
 * Errors: STW_UNSUPPORTED if there is no such tensor (a frozen parameter has no gradient and no moments), or
 * if it is not stored as one array of fp32, bf16 or fp16; STW_BAD_ARGUMENT.
 * Owner: the caller, who calls the view's deleter. Since: 0.1 */
STW_API stw_status stw_trainer_export_tensor(stw_trainer* trainer, size_t index, uint32_t kind,
                                             struct DLManagedTensorVersioned** out,
                                             stw_error* error) STW_NOEXCEPT;
/* Overwrites a parameter with fp32 values of the same shape. They lie in host memory, compact and at a
 * multiple of 4 bytes, with rows in the order of stw_trainer_export_tensor. The master weights change with
 * the parameter.
 * Errors: STW_BAD_ARGUMENT for any other tensor; STW_BAD_STATE from inside a callback, and for a trainer that
 * has to be restored. Since: 0.1 */
STW_API stw_status stw_trainer_import_tensor(stw_trainer* trainer, size_t index,
                                             const struct DLManagedTensorVersioned* in,
                                             stw_error* error) STW_NOEXCEPT;

/* Writes a checkpoint: parameters, optimizer states, step, random numbers, loss scale and position in the
 * data, in one file with checksums.
 * Guarantees: the file is replaced atomically. If the path is a symbolic link, the file that it leads to is
 * replaced. A pipe or a device is written to as it is.
 * Errors: STW_IO_ERROR; STW_CANCELLED; STW_BAD_STATE. Since: 0.1 */
STW_API stw_status stw_trainer_save(stw_trainer* trainer, const char* path, stw_error* error) STW_NOEXCEPT;
/* Reads a checkpoint into a trainer. The plan may have any budget, micro-batch and recompute choice. Numerics
 * and model must be the same. The global batch may differ; the bits then differ, too, and a dataset with
 * marks continues after the last sample.
 * Errors: STW_IO_ERROR; STW_CORRUPT; STW_UNSUPPORTED (a later version); STW_BAD_STATE, naming the field that
 * does not match; STW_CANCELLED. After an error the trainer is unchanged. Since: 0.1 */
STW_API stw_status stw_trainer_restore(stw_trainer* trainer, const char* path, stw_error* error) STW_NOEXCEPT;
/* Reads a checkpoint once and compares every checksum. Errors: STW_IO_ERROR; STW_CORRUPT, naming the damaged
 * part; STW_UNSUPPORTED (a later version). Thread: any. Since: 0.1 */
STW_API stw_status stw_checkpoint_verify(const char* path, stw_error* error) STW_NOEXCEPT;
/* Writes config.json and model.safetensors into a folder that transformers can load. For a model with
 * adapters it writes only the adapters, as adapter_config.json and adapter_model.safetensors that PEFT can
 * load. fp32 runs write F32, bf16 runs BF16, fp16 runs F16.
 * Errors: STW_IO_ERROR; STW_DEVICE_ERROR; STW_CANCELLED; STW_BAD_STATE (from inside a callback, or for a
 * trainer that has to be restored). Since: 0.1 */
STW_API stw_status stw_trainer_export_model(stw_trainer* trainer, const char* folder,
                                            stw_error* error) STW_NOEXCEPT;

/* The value that a variable of a struct type begins with: zero except for struct_size.
 *   stw_plan_options options = STW_INIT(stw_plan_options);
 * It works for every struct that begins with struct_size, in C99, C++98 and later. */
#ifdef __cplusplus
}
template <class Struct>
inline Struct stw_initial() {
  Struct made = Struct();
  made.struct_size = static_cast<uint32_t>(sizeof(Struct));
  return made;
}
#define STW_INIT(type) stw_initial<type>()
#else
#define STW_INIT(type) \
  { .struct_size = sizeof(type) }
#endif
#endif
