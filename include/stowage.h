/* Stowage: train neural networks on one device in exactly the memory it has.
 *
 *   model + global batch + bytes  ->  stw_plan_create  ->  plan  ->  stw_trainer_create  ->  training
 *
 * A plan says what lies where in memory before anything is allocated. A trainer allocates exactly that, once, and
 * trains. For the same numerics (precision, optimizer, state format) the trained bits are the same for every memory
 * budget, micro-batch, recompute choice, number of threads and instruction set.
 *
 * Rules that hold for every entry
 *  - Status: 0 is success, everything else is one of the STW_* codes; the category is code / 1000 * 1000. Details go to
 *    a caller-owned stw_error, which may be NULL; without struct_size, or with one that leaves no room for a message, it is
 *    left alone. The message is one line without control characters. On failure outputs are NULL or untouched, nothing
 *    leaks, and the objects stand where they stood.
 *  - Options: `struct_size` is sizeof the struct, set by the caller; a zero-filled rest means defaults (STW_INIT). Where
 *    zero is a useful value, too, a field has a bit in `set_mask`, which says that its zero is meant ("unset": zero without
 *    that bit); what is `reserved` is 0. A struct that is longer than the library knows is accepted where its unknown tail
 *    is zero; a shorter one ends where a field does. All pointers in options are borrowed during the call, unless the field
 *    says otherwise. NULL options mean all defaults where an entry allows it.
 *  - Results: `struct_size` is set by the caller, too. A shorter struct than the library knows receives what it holds; the
 *    unknown tail of a longer one becomes zero.
 *  - Threads: `const T *` may be used by several threads at once, `T *` by one at a time. stw_trainer_cancel and stw_watch_cancel are
 *    exceptions: any thread, any time while the object exists.
 *  - Signals: stw_trainer_cancel and stw_watch_cancel alone may be called from a signal handler; each is one atomic addition. The library
 *    installs no handler. Its threads block all signals but those of their own faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS).
 *  - Seeds: 0 means 1337. The number 0 itself is a seed where its bit in `set_mask` is set (STW_SET_MODEL_SEED, ...).
 *  - fork: the child has no thread of the library's. Devices and trainers from before belong to the parent: in the child they answer
 *    STW_BAD_STATE, and closing or destroying them does nothing. The child opens its own. Models, plans and datasets go on in both. No
 *    call may be under way in another thread when a process forks, unless the child calls exec.
 *  - Stack: a call needs at most 256 KiB of its thread's stack, beside what callbacks take. The library's own threads have stacks of the
 *    system's default size (ulimit -s), and need at most 128 KiB of it.
 *  - Cancellation of threads: every entry holds a pthread_cancel of its thread back until it returns, its callbacks and the host's executor
 *    included; the library's own threads take none. Where a callback ends its thread (pthread_exit; Python's interpreter does that to
 *    daemon threads on its way out) the entry is unwound like a failed one, if its caller is in C: C++ ends the process there, for
 *    the entries are noexcept to it.
 *  - Unloading: dlclose is safe once all objects are destroyed and no call is under way. Views (stw_trainer_export_tensor) count as
 *    objects until their deleter is called. What CUDA's driver and NVIDIA's libraries loaded stays loaded.
 *  - Exit: a process may end while threads compute. The library destroys no global object that a call uses.
 *  - Binary interface: the SONAME is libstowage.so.STW_VERSION_MAJOR. Within it no entry is removed or changes its arguments, no constant
 *    changes its value, and structs grow at their end alone, with zero as the old behaviour; new entries and constants come with a minor version.
 *    So a program runs with every library of its SONAME that is not older than the header it was compiled with. Before 1.0 a minor
 *    version may break this, and NEWS says so. Messages, JSON beyond what is documented, and trained bits are no part of it.
 *  - stw_*_destroy and stw_*_close take NULL.
 *  - What an entry leaves out: without `Thread:` the rule of threads above holds; without `Owner:` nothing is the caller's to release.
 *    Beside the errors that it names, each may answer STW_BAD_ARGUMENT for a NULL that it does not allow, STW_BAD_STRUCT_SIZE,
 *    STW_HOST_OUT_OF_MEMORY, and STW_INTERNAL (a bug of ours).
 *  - Callbacks return: no exception or jump leaves them. Those of a trainer come in the middle of what it computes: stw_trainer_step,
 *    _run, _evaluate, _generate, _logits, _classify, _log_probabilities, _write_reference, _replan, _calibrate, _timeline, _save, _restore,
 *    _import_tensor and _export_model answer STW_BAD_STATE from inside of them, also from inside a watch's. Only the progress callback, between two steps, may
 *    call all of these but _replan and the two that measure.
 *  - Strings are UTF-8 and end with a zero byte. Returned strings live as long as their object, or for ever.
 *  - Bits do not depend on the floating-point mode of the host's threads (rounding, flush-to-zero, traps): the library computes
 *    in the default one, in which it calls callbacks too, and leaves behind the one that it found (x86-64 and AArch64).
 *  - The library never aborts, exits, prints, reads environment variables, installs signal handlers or lets an
 *    exception out, and it keeps no state that is shared between objects.
 */
#ifndef STOWAGE_H
#define STOWAGE_H

#include <stddef.h>
#include <stdint.h>

#define STW_VERSION_MAJOR 0
#define STW_VERSION_MINOR 1
#define STW_VERSION_PATCH 0

#if defined(_WIN32) && defined(STW_BUILD)
#  define STW_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(STW_STATIC)
#  define STW_API __declspec(dllimport)
#elif defined(STW_BUILD) && defined(__GNUC__)
#  define STW_API __attribute__((visibility("default")))
#else
#  define STW_API
#endif

#if defined(__cplusplus) && !defined(STW_BUILD) && (__cplusplus >= 201103L || (defined(_MSC_VER) && _MSC_VER >= 1900))
#  define STW_NOEXCEPT noexcept
#else
#  define STW_NOEXCEPT
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ----------------------------------------------------------------------------------------------------- */
typedef int32_t stw_status;
enum {
  STW_OK = 0,
  STW_BAD_ARGUMENT = 1000, STW_BAD_STRUCT_SIZE = 1001, STW_BAD_STATE = 1002,
  STW_UNSUPPORTED = 2000, STW_UNSUPPORTED_FIELD = 2001, STW_UNSUPPORTED_SHAPE = 2002,
  STW_OUT_OF_MEMORY = 3000, STW_OVER_BUDGET = 3001, STW_HOST_OUT_OF_MEMORY = 3002,
  STW_DEVICE_ERROR = 4000, STW_DEVICE_LOST = 4001,
  STW_IO_ERROR = 5000, STW_CORRUPT = 5001,
  STW_CANCELLED = 6000, STW_CALLBACK_FAILED = 6001,
  STW_NUMERIC = 7000, STW_NON_FINITE = 7001,
  STW_INTERNAL = 9000
};

typedef struct stw_error {
  uint32_t struct_size;
  stw_status status;
  int32_t native_code;       /* errno or cudaError_t, else 0 */
  uint32_t reserved;
  uint64_t bytes_needed;     /* 3xxx */
  uint64_t bytes_available;  /* 3xxx */
  char message[480];         /* one line */
} stw_error;

/* ---- handles ---------------------------------------------------------------------------------------------------- */
typedef struct stw_device stw_device;
typedef struct stw_model stw_model;
typedef struct stw_plan stw_plan;
typedef struct stw_dataset stw_dataset;
typedef struct stw_trainer stw_trainer;
typedef struct stw_watch stw_watch;
struct DLManagedTensorVersioned;     /* of stowage/dlpack.h, or of DLPack's own dlpack.h 1.0 or newer */

/* ---- library ---------------------------------------------------------------------------------------------------- */
/* The version of the library that is loaded: major * 10000 + minor * 100 + patch. Thread: any. Since: 0.1 */
STW_API uint32_t stw_version(void) STW_NOEXCEPT;
/* What this library was built with, in words: compiler, instruction sets, CUDA, and what it finds of that here.
 * Owner: the calling thread, until its next call. Thread: any. Since: 0.1 */
STW_API const char *stw_build_info(void) STW_NOEXCEPT;
/* "STW_OVER_BUDGET" for 3001; "STW_UNKNOWN" for a code that is none. Thread: any. Since: 0.1 */
STW_API const char *stw_status_name(stw_status status) STW_NOEXCEPT;

/* ---- watch: cancels long calls, and tells how far they are -------------------------------------------------------- */
/* What is under way, the unit that `done` and `total` count, and which calls it is. */
enum {
  STW_WORK_NONE = 0,            /* nothing */
  STW_WORK_PLAN = 1,            /* NONE: stw_plan_create, _longest_sequence, stw_trainer_replan. `done` counts what the search has looked at */
  STW_WORK_OPEN_DATASET = 2,    /* BYTES of its files */
  STW_WORK_CREATE_TRAINER = 3,  /* BYTES that are written: of the arena, and of parameters as fp32 */
  STW_WORK_STEP = 4,            /* MICRO_STEPS of stw_trainer_step, or of each step of stw_trainer_run */
  STW_WORK_EVALUATE = 5,        /* SAMPLES: stw_trainer_evaluate, _log_probabilities, _write_reference */
  STW_WORK_GENERATE = 6,        /* NONE: stw_trainer_generate, _logits; SAMPLES: _classify */
  STW_WORK_CALIBRATE = 7,       /* NONE: stw_trainer_calibrate, _timeline */
  STW_WORK_SAVE = 8,            /* BYTES of a checkpoint */
  STW_WORK_RESTORE = 9,         /* BYTES of a checkpoint that are checked */
  STW_WORK_EXPORT = 10          /* BYTES of weights: stw_trainer_export_model */
};
enum { STW_UNIT_NONE = 0, STW_UNIT_BYTES = 1, STW_UNIT_MICRO_STEPS = 2, STW_UNIT_SAMPLES = 3 };
enum { STW_SET_INTERVAL = 1 };

typedef struct stw_watch_info {
  uint32_t struct_size;
  uint32_t work;             /* STW_WORK_* */
  uint32_t unit;             /* STW_UNIT_* */
  uint32_t reserved;
  uint64_t done;             /* of `unit`; where nothing is under way, of the last call */
  uint64_t total;            /* 0: unknown */
  double share;              /* of the whole, 0 to 1; within a micro-step it follows the ops (CPU). 0 where the total is unknown */
} stw_watch_info;

/* Called on the thread that makes the call, between two pieces of its work, in the middle of what it computes. Non-zero cancels it; where it
 * cannot be cancelled any more that is without effect, also on later calls.
 * It may call entries that use another watch, or none, and no trainer that is at work. */
typedef int32_t (*stw_watch_fn)(void *user, const stw_watch_info *now);

typedef struct stw_watch_options {
  uint32_t struct_size;
  uint32_t set_mask;         /* STW_SET_INTERVAL */
  stw_watch_fn notify;       /* NULL: the host polls by stw_watch_query, or only cancels */
  void *user;
  uint32_t interval_milliseconds; /* between two calls of `notify`; a call that takes no longer is not told of. Unset: 100; 0: after every piece */
  uint32_t reserved;
} stw_watch_options;

/* One watch serves a plan's, a dataset's and a trainer's calls, one call at a time: it is named in stw_plan_options,
 * stw_dataset_options and stw_trainer_options, whose trainer goes on using it.
 * A cancel ends the call under way that uses the watch, with STW_CANCELLED and as if it had failed: outputs are NULL, no file has been
 * replaced, and a trainer stands where it stood. It comes through within a task of an op of the CPU, some milliseconds; on CUDA devices after
 * the micro-steps that were launched, at most two. What the file system is told to make durable is waited for. A step that has begun to
 * update parameters ends as if it had not been cancelled, and so does one whose gradient hook has returned; its cancel then stops the next call.
 * Where no call is under way, the next one is stopped, once, so that no cancel is lost; but saving, restoring and exporting a trainer are only
 * stopped by a cancel that comes while they are under way. Owner: the caller; it outlives what uses it. Thread: any. Since: 0.1 */
STW_API stw_status stw_watch_create(stw_watch **out, const stw_watch_options *options, stw_error *error) STW_NOEXCEPT;
/* Thread: exclusive. Since: 0.1 */
STW_API void stw_watch_destroy(stw_watch *watch) STW_NOEXCEPT;
/* Takes NULL. Thread: any, and signal handlers. Since: 0.1 */
STW_API void stw_watch_cancel(stw_watch *watch) STW_NOEXCEPT;
/* How far the call under way is. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_watch_query(const stw_watch *watch, stw_watch_info *out) STW_NOEXCEPT;

/* ---- device ----------------------------------------------------------------------------------------------------- */
enum { STW_BACKEND_AUTO = 0, STW_BACKEND_CPU = 1, STW_BACKEND_CUDA = 2 };
enum { STW_LOG_ERROR = 1, STW_LOG_WARNING = 2, STW_LOG_INFO = 3 };
enum { STW_ISA_AUTO = 0, STW_ISA_SCALAR = 1, STW_ISA_AVX2 = 2, STW_ISA_AVX512 = 3, STW_ISA_NEON = 4 };

/* Called on the thread that called the library. `message` is borrowed. */
typedef void (*stw_log_fn)(void *user, int32_t level, const char *component, const char *message);
/* The host's memory for arenas: at least `bytes` at a multiple of `alignment`, or NULL. `stream` is that of stw_device_options, NULL
 * where that has none (then the library waits until CUDA's default stream has come to what it was given). */
typedef void *(*stw_allocate_fn)(void *user, size_t bytes, size_t alignment, void *stream);
typedef void (*stw_release_fn)(void *user, void *memory, size_t bytes, void *stream);
/* The host's threads: calls task(context, i) once for every i in [0, tasks), at most `threads` of them at the same
 * time, and returns when all have returned. */
typedef void (*stw_run_fn)(void *user, uint32_t tasks, void (*task)(void *context, uint32_t index), void *context);

typedef struct stw_device_options {
  uint32_t struct_size;
  uint32_t backend;          /* STW_BACKEND_*; auto: CUDA where there is one, else the CPU */
  int32_t ordinal;           /* of several CUDA devices */
  uint32_t threads;          /* CPU: threads that compute, the caller's included; 0: one for each processor. CUDA: that draw
                                random weights or quantize, while a trainer is created or calibrated */
  uint32_t isa;              /* CPU: STW_ISA_*; auto: the widest that runs here. No bit depends on it. */
  int32_t log_level;         /* 0: STW_LOG_WARNING */
  void *stream;              /* CUDA: the host's stream, of the device's primary context; NULL: one of the library's */
  stw_log_fn log;
  void *log_user;
  stw_allocate_fn allocate;  /* both or none */
  stw_release_fn release;
  void *memory_user;
  stw_run_fn run;            /* NULL: a pool of the library's that sleeps when idle */
  void *run_user;
  const char *cublaslt;      /* CUDA: the path of a libcublasLt.so.13, for STW_KERNELS_CUBLASLT; NULL: what the system finds. Copied. */
  const char *cudnn;         /* CUDA: the path of a libcudnn.so.9 (9.15.1 on), for STW_ATTENTION_CUDNN; the same */
} stw_device_options;

typedef struct stw_device_info {
  uint32_t struct_size;
  uint32_t backend;
  uint64_t memory_total;     /* bytes */
  uint64_t memory_free;      /* CPU: what the system says is available; CUDA: 0 in stw_device_at */
  int32_t compute_major, compute_minor;   /* CUDA */
  uint32_t threads;          /* CPU */
  uint32_t isa;              /* CPU */
  char name[64];
  char profile[24];          /* of the embedded profiles the one to plan with: stw_plan_options.device */
  uint64_t memory_reserved;  /* CUDA: what the open device's context has taken already of what a plan's reserve counts, up to three quarters of
                                that; 0 where the driver does not tell, and in stw_device_at */
} stw_device_info;

/* The index-th device that can train here, the CPU first, then CUDA devices by ordinal; STW_BAD_ARGUMENT past the last one.
 * Guarantees: no CUDA device gets a context by being listed; stw_device_query tells what is free on one that is open.
 * Thread: any. Since: 0.1 */
STW_API stw_status stw_device_at(size_t index, stw_device_info *out, stw_error *error) STW_NOEXCEPT;
/* Opens a device. Errors: STW_UNSUPPORTED where this build or machine has no such backend or instruction set.
 * CUDA: the library works in the device's primary context; the calling thread's own, or none, comes back with every return
 * (a thread that had none, and whose device has none yet, may find this one chosen: choose again with cudaSetDevice).
 * Owner: the caller, who closes it after every trainer on it. Thread: any. Since: 0.1 */
STW_API stw_status stw_device_open(stw_device **out, const stw_device_options *options, stw_error *error) STW_NOEXCEPT;
/* Thread: exclusive. Since: 0.1 */
STW_API void stw_device_close(stw_device *device) STW_NOEXCEPT;
/* What the device is, and what is free there now. Errors (there is no stw_error): STW_BAD_ARGUMENT for NULL, STW_BAD_STRUCT_SIZE.
 * Thread: any. Since: 0.1 */
STW_API stw_status stw_device_query(const stw_device *device, stw_device_info *out) STW_NOEXCEPT;

typedef struct stw_memory_holder {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t process;          /* its number, as the system knows it; a container may see another one */
  uint64_t bytes;
  char name[64];             /* of the program, "" where that is unknown; cut where it is longer */
} stw_memory_holder;

/* The index-th of the processes that hold memory of a CUDA device, the largest first; STW_BAD_ARGUMENT past the last one.
 * Guarantees: every call asks the driver anew. Not all are told: of a CPU, inside some containers, and where the driver's
 * management library (libnvidia-ml.so.1) is missing, none are. Thread: any. Since: 0.1 */
STW_API stw_status stw_device_holder_at(const stw_device *device, size_t index, stw_memory_holder *out) STW_NOEXCEPT;

typedef struct stw_log_message {
  uint32_t struct_size;
  int32_t level;             /* STW_LOG_* */
  uint64_t number;           /* 1, 2, ... in the order they were written; 0: there is none */
  char component[32];
  char text[224];            /* cut where it is longer */
} stw_log_message;

/* What the log callback is told, for hosts that poll: the oldest message kept whose number is larger than `after`, or
 * number 0. The last 64 up to log_level are kept, with or without a callback. Thread: any. Since: 0.1 */
STW_API stw_status stw_device_next_log(const stw_device *device, uint64_t after, stw_log_message *out) STW_NOEXCEPT;

/* ---- model ------------------------------------------------------------------------------------------------------ */
enum { STW_SET_DROPOUT = 1, STW_SET_MODEL_SEED = 2 };
enum { STW_ADAPTER_RANK_STABILISED = 1 };
/* What a model is trained for. AUTOMATIC: as the config says; with label_count, and a config of a model without labels, LABEL.
 * LANGUAGE_MODEL: the token that follows each token. MASKED_LANGUAGE_MODEL: tokens that are hidden from it. LABEL: one label of a text.
 * LABELS: any number of labels of a text. NUMBER: a number of a text, or several. TOKEN_LABEL: one label of each token. */
enum {
  STW_TASK_AUTOMATIC = 0, STW_TASK_LANGUAGE_MODEL = 1, STW_TASK_MASKED_LANGUAGE_MODEL = 2, STW_TASK_LABEL = 3, STW_TASK_LABELS = 4, STW_TASK_NUMBER = 5,
  STW_TASK_TOKEN_LABEL = 6
};

typedef struct stw_model_options {
  uint32_t struct_size;
  uint32_t set_mask;
  const char *source;        /* a folder with config.json, a config.json, or the name of a preset such as "nano" */
  const char *config_json;   /* instead of source: the text of a config.json; not terminated, config_json_size bytes */
  size_t config_json_size;
  const char *weights;       /* a .safetensors file, or a folder with one or with an index (of several files without an index the one
                                named model.safetensors); NULL: those of the source folder if it has any, else random values
                                drawn from `seed` */
  uint64_t seed;             /* unset: 1337 */
  float dropout;             /* replaces all rates of the config; unset: those */
  uint32_t reserved;
  /* Low-rank adapters (LoRA): beside matrices W below the head two narrow ones, which alone are trained: W·x + scale·B·(A·x). A folder
   * of them, as PEFT writes it (adapter_config.json, adapter_model.safetensors), may also be `source`, and names the model then. What
   * they are for is a folder with its weights, since theirs can name no other; `weights` is refused. */
  const char *adapter;       /* a folder of adapters to go on with, for the model in `source`; NULL: none */
  const char *adapter_targets; /* new ones: which matrices have one: the last parts of their modules' names, such as "q_proj,v_proj", or
                                "all-linear"; NULL: all-linear */
  uint32_t adapter_rank;     /* new ones: rows of A and columns of B; 0: no new ones. A is drawn from `seed`, B is 0 */
  uint32_t adapter_flags;    /* STW_ADAPTER_RANK_STABILISED: scale = alpha / sqrt(rank) */
  float adapter_alpha;       /* scale = alpha / rank; 0: twice the rank */
  float adapter_dropout;     /* of what A reads, while it is trained */
  /* A classifier of whole samples (transformers' ...ForSequenceClassification). A language model gets a matrix (labels, width) without bias
   * in place of its head, "score.weight"; its logits after a sample's last token are the labels'. An encoder gets a matrix, an activation
   * and a matrix over a sample's first token, under the family's own names. With STW_TASK_TOKEN_LABEL (transformers' ...ForTokenClassification)
   * the head is a dropout and a matrix with a bias, "score" or "classifier", over every token; a language model stays causal. A config.json of such a model has
   * its labels; of another one label_count makes such a model, its head drawn from `seed`. With adapters the head is trained beside
   * them, and lies in their folder; labels.json there has the names, and the task if it is LABELS or NUMBER. Frozen then, as PEFT has it, are a
   * pooler, ModernBERT's matrix before the classifier, and a head for masked tokens, if the weights' files hold them. The loss of a text is for
   * LABEL cross entropy, for LABELS the mean over labels of the binary cross entropy of each, for NUMBER the mean of the squared errors. */
  const char *const *label_names; /* label_count of them, UTF-8, no two alike; NULL: the model's own, else "LABEL_0", "LABEL_1", ... */
  size_t label_count;        /* 0: as the config says; else 2 (for LABELS and NUMBER 1) to 1,048,576, and what the model has already */
  uint32_t task;             /* STW_TASK_*. One with labels needs label_count where the config has no labels. A config that says its task
                                (problem_type) has that one. MASKED_LANGUAGE_MODEL is for encoders (transformers' ...ForMaskedLM): what
                                the weights lack of its head is drawn from `seed` where the config is not of such a model, and a head for
                                next sentences (BertForPreTraining) is left out. LANGUAGE_MODEL is the body of an encoder */
  uint32_t reserved_end;
} stw_model_options;

typedef struct stw_model_info {
  uint32_t struct_size;
  uint32_t layers;
  uint64_t parameters;       /* tied ones counted once */
  uint64_t trainable;
  uint64_t vocabulary;
  uint64_t positions;        /* longest sequence */
  uint32_t has_weights;      /* 1: read from files; 0: drawn from the seed */
  uint32_t width;
  char architecture[32];     /* its model_type: "gpt2", "llama", "gemma3_text", … */
  uint32_t adapter_rank;     /* 0: there are no adapters */
  uint32_t has_codes;        /* 1: its files hold matrices in 4 bits, as bitsandbytes makes them (nf4, also with nested scales) */
  uint64_t labels;           /* of a classifier; 0: a language model */
  int64_t padding_token;     /* of the config: transformers takes what stands at a text's end and is this token for padding, and looks at the last
                                token before it; -1: none */
  uint32_t generates;        /* 1: continues texts, and attends to no later token; 0: an encoder, which reads a text as a whole */
  uint32_t token_types;      /* types of tokens that the model tells apart, such as those of a first and of a second text; 0: none */
  uint32_t task;             /* STW_TASK_*; an encoder of STW_TASK_LANGUAGE_MODEL has no head, and is trained with a task that gives it one */
  uint32_t head_is_new;      /* 1: weights were read from files, and of the head some were drawn from the seed */
} stw_model_info;

typedef struct stw_tensor_info {
  uint32_t struct_size;
  uint32_t ndim;
  const char *name;          /* as in the weight files; lives as long as the model */
  int64_t shape[4];
  uint64_t elements;
} stw_tensor_info;

/* Describes a model; weights are only opened and checked (names, shapes, dtypes), and read when a trainer is made.
 * Errors: STW_IO_ERROR, STW_CORRUPT, STW_UNSUPPORTED (architecture; a folder with weights of another format alone;
 * weights in a block that the model has no place for), STW_UNSUPPORTED_FIELD, STW_BAD_ARGUMENT.
 * Owner: the caller. A model may be destroyed before what was made from it. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_create(stw_model **out, const stw_model_options *options, stw_error *error) STW_NOEXCEPT;
/* Thread: exclusive. Since: 0.1 */
STW_API void stw_model_destroy(stw_model *model) STW_NOEXCEPT;
/* What the model is; how many parameters it has; the index-th of them, from 0 on, in the order of every index of tensors here
 * (STW_BAD_ARGUMENT past the last one); and the index of one by its name, which is left alone where no parameter has it
 * (STW_BAD_ARGUMENT). Names live as long as the model. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_query(const stw_model *model, stw_model_info *out) STW_NOEXCEPT;
STW_API size_t stw_model_tensor_count(const stw_model *model) STW_NOEXCEPT;
STW_API stw_status stw_model_tensor_at(const stw_model *model, size_t index, stw_tensor_info *out) STW_NOEXCEPT;
STW_API stw_status stw_model_tensor_find(const stw_model *model, const char *name, size_t *index) STW_NOEXCEPT;
/* The index-th label's name, which lives as long as the model; NULL past the last one, and of a language model. Thread: any. Since: 0.1 */
STW_API const char *stw_model_label_at(const stw_model *model, size_t index) STW_NOEXCEPT;
/* Writes config.json and model.safetensors into a folder, with the adapters added to the matrices they are for, in the types that the
 * model's own files have (F32 where there are none). Errors: STW_IO_ERROR, STW_CORRUPT, STW_BAD_ARGUMENT (the model's own
 * files would be replaced, or the folder has adapters or shards). config.json comes last; on an error neither file is there that was not
 * before. Thread: any. Since: 0.1 */
STW_API stw_status stw_model_export(const stw_model *model, const char *folder, stw_error *error) STW_NOEXCEPT;
/* The index-th preset's name; NULL past the last one. Thread: any. Since: 0.1 */
STW_API const char *stw_model_preset_at(size_t index) STW_NOEXCEPT;

/* ---- plan: no device, no file, no clock; the machine is asked only for what a CPU's memory and threads are left 0 ---- */
enum { STW_PRECISION_DEFAULT = 0, STW_PRECISION_FP32 = 1, STW_PRECISION_BF16 = 2, STW_PRECISION_FP16 = 3 };
/* Update rules: stw_trainer_options. Muon is for the matrices of blocks, all else then gets AdamW. */
enum {
  STW_OPTIMIZER_ADAMW = 0, STW_OPTIMIZER_SGD = 1, STW_OPTIMIZER_LION = 2, STW_OPTIMIZER_MUON = 3, STW_OPTIMIZER_ADAFACTOR = 4
};
enum { STW_STATES_AUTO = 0, STW_STATES_32 = 32, STW_STATES_8 = 8 };
/* exact: all of it, 4 bytes a parameter in all; split8: 24 bits of it, 3 bytes; stochastic: the bf16 value alone, 2 bytes,
 * rounded up or down at random, so that steps too small to change it do so in the mean. */
enum { STW_MASTER_EXACT = 0, STW_MASTER_SPLIT8 = 1, STW_MASTER_STOCHASTIC = 2 };
/* What the matrices of blocks sum their gradients up in, all others in fp32. bf16: 2 bytes a parameter instead of 4, rounded up
 * or down at random after every sample, so that the micro-batch still changes no bit; no gradient hook. */
enum { STW_GRADIENTS_FP32 = 0, STW_GRADIENTS_BF16 = 1 };
/* Who adds up matrix products, and in which order.
 *   auto      tensor where the device and the precision have it, cublaslt in fast mode, else portable
 *   portable  in the one order that all devices share, so that CPU and CUDA train the same bits
 *   tensor    the tensor cores of a CUDA device, of 16-bit values, in an order of their own, many times faster
 *   cublaslt  NVIDIA's library on a CUDA device, found at run time (stw_device_options.cublaslt), with the bits of its version
 *             and of the card
 *   wgmma     as tensor, but products, and attention with heads of 64 or 128 and no sliding window, by the tensor cores'
 *             asynchronous instructions of compute capability 9.0 (H100, H200); unsupported elsewhere
 *   cublaslt_wgmma  as cublaslt, but wgmma computes what the library does not, and all weight gradients of exact plans;
 *             16-bit precisions on compute capability 9.0 */
enum { STW_KERNELS_AUTO = 0, STW_KERNELS_PORTABLE = 1, STW_KERNELS_TENSOR = 2, STW_KERNELS_CUBLASLT = 3, STW_KERNELS_WGMMA = 4,
       STW_KERNELS_CUBLASLT_WGMMA = 5 };
/* Who computes attention.
 *   own    the kernels above
 *   cudnn  NVIDIA's cuDNN on a CUDA device, of 16-bit values, found at run time (stw_device_options.cudnn), where a model has no
 *          dropout of attention and no sliding window shorter than a sample, and a sample is one document. Its gradient takes two
 *          bytes of scratch memory for every score of some samples or heads, which the plan counts as workspace. Its bits are
 *          those of its version and of the card. */
enum { STW_ATTENTION_OWN = 0, STW_ATTENTION_CUDNN = 1 };
/* What the blocks' matrices below adapters are stored as, in models with adapters. All other matrices are in the precision, but
 * for quantize_embeddings.
 *   auto  nf4 for models whose files have it (stw_model_info.has_codes), else none
 *   none  numbers in the precision
 *   nf4   codes of 4 bits for the values of "QLoRA" (Dettmers et al., arXiv:2305.14314), which are bitsandbytes'
 *         bnb_4bit_quant_type "nf4", times the largest magnitude of 64 neighbours: 4.5 bits an element
 *   int8  codes of 8 bits for 127ths of that magnitude: 8.5 bits an element
 * Magnitudes are fp32; neighbours are those of a matrix as it is stored, also in GPT-2. Codes are made of the model's weights
 * when a trainer is created; matrices of blocks that a model in 4 bits has as numbers stay numbers. Products take the values of
 * codes in the precision. */
enum { STW_QUANTIZE_AUTO = 0, STW_QUANTIZE_NONE = 1, STW_QUANTIZE_NF4 = 2, STW_QUANTIZE_INT8 = 3 };
/* What is learned. none: every target by itself. All others learn of pairs of documents, each a prompt with an answer: the first
 * one has the answer that was chosen, the second one the answer that was rejected. The loss of a pair:
 *   dpo    (1 - e) * S(x) + e * S(-x), x = beta * D(P - R)          Rafailov et al., arXiv:2305.18290
 *   ipo    (D((P - R) / n) - 1 / (2 * beta)) squared                Azar et al., arXiv:2310.12036
 *   simpo  as dpo, x = beta * D(P / n) - margin                     Meng et al., arXiv:2405.14734
 *   orpo   -P / n of the chosen one + beta * S(D(log odds of exp(P / n)))   Hong et al., arXiv:2403.07691
 * and, for each of them, answer_share * (-P / n) of the chosen one. In these formulas
 *   P     is the sum of the log-probabilities of a document's targets, and n their number
 *   R     is P of a reference, mostly of the model from before
 *   D(v)  is v of the chosen document less v of the rejected one
 *   S(x)  is log(1 + exp(-x))
 *   beta, margin, answer_share, and label_smoothing as e, are those of stw_trainer_options.
 * Rules:
 *  - Language models alone have preferences. STW_INPUT_POSITIONS comes with them, STW_INPUT_WEIGHTS is refused beside them.
 *  - The documents of a sample are pairs: the first and second, third and fourth, ... A pair does not count where one of its
 *    documents has no target.
 *  - A step's loss is the mean over its pairs, which are what counts as its targets.
 *  - Logits are computed twice in a micro-step, unless all of them are kept (plan info: one loss chunk). */
enum { STW_PREFERENCE_NONE = 0, STW_PREFERENCE_DPO = 1, STW_PREFERENCE_IPO = 2, STW_PREFERENCE_SIMPO = 3, STW_PREFERENCE_ORPO = 4 };
enum { STW_MODE_EXACT = 0, STW_MODE_FAST = 1 };
enum { STW_SET_RESERVE = 1 };
enum { STW_INPUT_POSITIONS = 1, STW_INPUT_WEIGHTS = 2 };
enum { STW_RECOMPUTE_AUTO = 0, STW_RECOMPUTE_NONE = 1, STW_RECOMPUTE_FULL = 2 };

enum { STW_SET_GROUP_FROZEN = 1, STW_SET_GROUP_RATE = 2, STW_SET_GROUP_DECAY = 4, STW_SET_GROUP_STATES = 8 };

/* Settings of all parameters that a pattern names:
 *   "embeddings"   all that comes before the first block        "blocks", "blocks.3", "blocks.0-1"   of blocks, from 0
 *   "head"         (a tied one is the embedding; an encoder's   "matrices"   of blocks, adapters too
 *                  has its pooler)
 *   "norms", "biases"    "adapters"                             else a tensor's name, with * and ?
 * What several blocks share, as ALBERT's do, belongs to each of them.
 * A frozen parameter has no gradient, state or master, is no part of the norm, and keeps its bytes. */
typedef struct stw_parameter_group {
  uint32_t struct_size;
  uint32_t set_mask;         /* STW_SET_GROUP_*: zeros that the group means; what is unset stays as it is */
  const char *pattern;
  uint32_t frozen;           /* 1: frozen; 0: trained, although a group before it says otherwise */
  uint32_t state_bits;       /* 32 or 8, although the others have 8 or 32; embeddings and tensors of less than 4096 elements keep 32 */
  double learning_rate;      /* a factor of the run's */
  double weight_decay;       /* instead of the trainer's, and of none for norms and biases */
} stw_parameter_group;

typedef struct stw_plan_options {
  uint32_t struct_size;
  uint32_t set_mask;         /* STW_SET_RESERVE */
  uint64_t memory_bytes;     /* bounds the peak, as in stw_trainer_replan; 0: all that the device has: device_memory, or the profile's, or for a
                                CPU what is available on this machine now */
  uint64_t global_batch;     /* samples of one optimizer step; required */
  uint64_t sequence;         /* tokens of a sample; 0: the model's positions, at most 1024 */
  const char *device;        /* "cpu", or a profile's name such as "rtx4090"; NULL: "cpu" */
  uint64_t device_memory;    /* bytes that are free there now: of a device that is open, memory_free + memory_reserved; 0: as memory_bytes says */
  uint64_t reserve_bytes;    /* taken off for what lies outside the arena; unset: the profile's (CPU: none) */
  uint32_t threads;          /* CPU: threads that will compute (scratch memory depends on it); 0: one a processor */
  uint32_t precision;        /* default: fp32 on the CPU, bf16 elsewhere */
  uint32_t optimizer;
  uint32_t state_bits;       /* STW_STATES_AUTO: 32 unless that does not fit or costs more than 10 % of the speed; AdamW and
                                Lion have 8, for tensors of 4096 elements and more that are no embeddings */
  uint32_t micro_batch;      /* 0: chosen */
  uint32_t recompute;        /* STW_RECOMPUTE_* */
  uint32_t mode;             /* STW_MODE_*: fast gives up contract E3 (the split into micro-batches changes no bit) where
                                kernels have a faster way: CUDA devices with STW_KERNELS_CUBLASLT, which is the default
                                there then, or STW_KERNELS_CUBLASLT_WGMMA; other plans stay exact */
  uint32_t inputs;           /* STW_INPUT_*: what batches may bring beside tokens, targets and lengths */
  uint64_t host_bytes;       /* of host memory for what is offloaded; 0: nothing is */
  const char *profile;       /* what stw_trainer_calibrate wrote; NULL: the device's embedded profile. A `device` that is
                                NULL is then the profile's, another one than the profile's is refused. */
  size_t profile_size;       /* bytes of it, a zero byte at the end not counted */
  const stw_parameter_group *groups;  /* an array; of groups that name the same parameter later ones win. All have the
                                         struct_size of the first one. */
  size_t group_count;
  uint32_t master;           /* STW_MASTER_*: what bf16 keeps of the fp32 value of a trained parameter */
  uint32_t kernels;          /* STW_KERNELS_*: part of what a checkpoint must agree with */
  uint32_t gradients;        /* STW_GRADIENTS_* */
  uint32_t fused_update;     /* 1: parameters of blocks are updated inside the backward pass, which keeps no gradients of them.
                                The same bits as without clipping, but: the micro-batch is the global batch; no fp16, no
                                gradients in bf16, no host memory, no gradient hook, clip_norm 0, no skipping of outliers; and a
                                gradient that is not finite ends the run (STW_NON_FINITE) with parameters half updated: restore
                                a checkpoint */
  uint32_t attention;        /* STW_ATTENTION_*: part of what a checkpoint must agree with */
  uint32_t quantize;         /* STW_QUANTIZE_*: the same */
  uint32_t quantize_embeddings; /* STW_QUANTIZE_INT8: so are the table that tokens look up and the head (not that of positions), for
                                   models with adapters, whatever their files have; auto: none. The same */
  uint32_t preference;       /* STW_PREFERENCE_*: the same */
  stw_watch *watch;          /* of this call; NULL: none */
} stw_plan_options;

typedef struct stw_plan_info {
  uint32_t struct_size;
  uint32_t fits;             /* 0: nothing fits; minimum_bytes says what would */
  uint64_t micro_batch, accumulation_steps, last_micro_batch, loss_chunks;
  uint64_t global_batch, sequence;
  /* Bytes at the moment of the peak; `parameters` to `padding` add up to `arena`. */
  uint64_t parameters, gradients, optimizer, saved_activations, transient, workspace, inputs, padding;
  uint64_t arena;            /* what a trainer allocates */
  uint64_t reserve, peak;    /* peak = arena + reserve */
  uint64_t budget;
  uint64_t host;             /* host memory that a trainer allocates besides, for what is offloaded */
  uint64_t minimum_bytes;    /* smallest memory_bytes that works with these options */
  uint32_t state_bits, precision;
  double step_seconds, tokens_per_second, recompute_fraction;   /* predicted */
  char fingerprint[20];      /* 16 hexadecimal digits: XXH3-64 of the plan */
  uint32_t proven;           /* 1: no plan of these numerics is faster within the budget, by the cost model */
  double bound_seconds;      /* none is faster than this */
  double unlimited_seconds;  /* nor than this within any budget */
  double next_gib_seconds;   /* with one GiB more and the same state format */
  uint64_t copied_bytes;     /* of a step, from host memory to the device and back */
  uint64_t tiled_blocks;     /* blocks whose feed-forward part runs in tiles of rows */
  uint64_t tile_rows;        /* the fewest that a block's tiles are planned with; 0: no block has tiles */
} stw_plan_info;

typedef struct stw_buffer_info {
  uint32_t struct_size;
  uint32_t persistent;       /* 1: lives for ever, first and last are 0 */
  const char *name;          /* of the tensor; lives as long as the plan */
  const char *owner;         /* "parameters", "gradients", ... */
  uint64_t offset, bytes;    /* in the arena */
  uint32_t first, last;      /* instructions of the micro-step's program, both included */
} stw_buffer_info;

/* Chooses the fastest way to train that fits. Guarantees: deterministic; a smaller budget never gives a larger peak, a
 * larger one never a slower plan of the same state format; a calibrated profile becomes a part of the plan's JSON.
 * Errors: STW_OVER_BUDGET when nothing fits: `out` is then still a plan, with info.fits = 0, that can be queried and
 * printed but not trained (an exception to "outputs are NULL"); STW_BAD_ARGUMENT, STW_UNSUPPORTED; STW_CORRUPT for a
 * profile that is none. Owner: the caller. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_create(stw_plan **out, const stw_model *model, const stw_plan_options *options,
                                   stw_error *error) STW_NOEXCEPT;
/* Thread: exclusive. Since: 0.1 */
STW_API void stw_plan_destroy(stw_plan *plan) STW_NOEXCEPT;
/* Its decisions and their figures. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_query(const stw_plan *plan, stw_plan_info *out) STW_NOEXCEPT;
/* The plan as JSON text, and as a table for people; both end with a zero byte and live as long as the plan; NULL of NULL.
 * Thread: any. Since: 0.1 */
STW_API const char *stw_plan_json(const stw_plan *plan) STW_NOEXCEPT;
STW_API const char *stw_plan_report(const stw_plan *plan) STW_NOEXCEPT;
/* Reads what stw_plan_json wrote. Errors: STW_CORRUPT where the text was edited (fingerprint) or is of another model
 * or version. Owner: the caller. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_load(stw_plan **out, const stw_model *model, const char *json, size_t json_size,
                                 stw_error *error) STW_NOEXCEPT;
/* Replays every program of the plan in an independent judge: that buffers lie in the arena and do not overlap while they are alive, and that what
 * an op reads was written before. Errors: STW_INTERNAL for a mistake, which its message names. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_verify(const stw_plan *plan, stw_error *error) STW_NOEXCEPT;

/* One thing that could be given up. `change` is one setting or several, joined by ", ": the name of a flag of the command, with _
 * for -, mostly followed by a blank and a value.
 *   "micro_batch auto", "recompute auto"     what was asked for is left to the planner
 *   "states 8", "master split8", "gradients bf16", "precision bf16", "attention own"
 *   "quantize int8", "quantize nf4", "quantize_embeddings int8"     of models with adapters
 *   "host_memory N"     N bytes of host memory, a decimal number
 *   "fused_update", behind which ", gradients fp32" and ", micro_batch auto" name what it excludes, where that was asked for
 * Later versions may have other names. */
typedef struct stw_relaxation_info {
  uint32_t struct_size;
  uint32_t changes_numerics; /* 1: the trained bits would be others */
  uint64_t saves_bytes;      /* of the smallest peak; with host memory that is enough: what the plan within the budget takes less */
  double costs_fraction;     /* of the step time at the smallest peak, negative: faster; within the budget where it fits, else at its own smallest peak */
  char change[64];           /* the settings to change: "states 8", "host_memory 1048576" (bytes), ...; stowage.h lists them */
  uint32_t fits;             /* 1: it is enough by itself */
  uint32_t reserved;
} stw_relaxation_info;

/* What could be given up where a plan does not fit: the index-th, those that keep the bits first, then by cost.
 * STW_BAD_ARGUMENT past the last one. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_relaxation_at(const stw_plan *plan, size_t index, stw_relaxation_info *out) STW_NOEXCEPT;

typedef struct stw_offload_info {
  uint32_t struct_size;
  uint32_t outside_blocks;   /* 1: also what belongs to parameters outside of blocks */
  uint32_t blocks;           /* of the first so many blocks */
  uint32_t reserved;
  uint64_t bytes;            /* in host memory */
  const char *tensors;       /* "optimizer", "masters", "gradients", "weights" or "inputs" (of blocks); lives for ever */
} stw_offload_info;

/* What the plan keeps in host memory: the index-th kind of tensors. STW_BAD_ARGUMENT past the last one. Thread: any.
 * Since: 0.1 */
STW_API stw_status stw_plan_offload_at(const stw_plan *plan, size_t index, stw_offload_info *out) STW_NOEXCEPT;

typedef struct stw_frontier_point {
  uint32_t struct_size;
  uint32_t is_knee;          /* 1: from here on more memory brings much less */
  uint64_t peak;             /* the smallest budget that gets this plan */
  uint64_t micro_batch, loss_chunks;
  double step_seconds, tokens_per_second;
} stw_frontier_point;

/* The plans that other budgets would get, from the smallest budget that works to the one beyond which nothing is gained,
 * by growing peak, each faster than all before it: `*count` of them, at most `capacity`, into an array of structs of
 * out[0].struct_size bytes each. Numerics are the plan's. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_frontier(const stw_plan *plan, stw_frontier_point *out, size_t capacity, size_t *count,
                                     stw_error *error) STW_NOEXCEPT;
/* The longest sequence that fits with otherwise these options, at most the model's positions; options.sequence is not
 * read. Errors: those of stw_plan_create; STW_OVER_BUDGET where not even one token fits. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_longest_sequence(const stw_model *model, const stw_plan_options *options, uint64_t *sequence,
                                             stw_error *error) STW_NOEXCEPT;

/* What the cost model knows of a device, present or not: the figures of data sheets, or those of a calibration. An op
 * takes launch + max(FLOP / (GFLOP/s * share), bytes / (GB/s * share)), with its kind's launch and share if it was timed. */
typedef struct stw_profile_info {
  uint32_t struct_size;
  uint32_t is_cuda;
  uint64_t memory, reserve;              /* bytes; 0: the machine's own */
  uint64_t gflops_fp32, gflops_bf16;     /* peak, fp32 accumulation; CPU: of one thread */
  uint64_t gbytes_per_second;            /* of memory */
  uint32_t product_permille;             /* share of the peak that matrix products reach */
  uint32_t stream_permille;              /* share of the bandwidth that streaming ops reach */
  uint64_t launch_nanoseconds;           /* of every op */
  const char *name, *title, *source;     /* live for ever */
  uint64_t host_gbytes_per_second;       /* to host memory and back, in each direction */
  uint32_t threads;                      /* a calibrated one: that computed while it was measured; else 0 */
  uint32_t precision;                    /* a calibrated one: STW_PRECISION_* of what was measured; else 0 */
  uint64_t step_nanoseconds;             /* a calibrated one: measured, a step of the plan that was timed; else 0 */
  uint32_t kernels;                      /* a calibrated one: STW_KERNELS_* of what was measured; else 0 */
  uint32_t reserved;
} stw_profile_info;

/* The index-th device that can be planned for; STW_BAD_ARGUMENT past the last one. Thread: any. Since: 0.1 */
STW_API stw_status stw_profile_at(size_t index, stw_profile_info *out) STW_NOEXCEPT;
/* Reads a calibrated profile, what stw_trainer_calibrate wrote. Errors: STW_CORRUPT, naming the figure, op, device or
 * version that is wrong. Thread: any. Since: 0.1 */
STW_API stw_status stw_profile_read(const char *profile, size_t profile_size, stw_profile_info *out,
                                    stw_error *error) STW_NOEXCEPT;

typedef struct stw_profile_op_info {
  uint32_t struct_size;
  uint32_t permille;         /* of the peak that bounds the op, arithmetic or bandwidth; above 1000 in caches */
  uint64_t launch_nanoseconds;   /* of every op of the kind */
  uint64_t nanoseconds;      /* measured, of all ops of the kind in the step that was timed */
  const char *name;          /* of the kind; lives for ever */
} stw_profile_op_info;

/* The index-th kind of op that a calibrated profile has figures of; STW_BAD_ARGUMENT past the last one, STW_CORRUPT where
 * stw_profile_read fails. Thread: any. Since: 0.1 */
STW_API stw_status stw_profile_op_at(const char *profile, size_t profile_size, size_t index,
                                     stw_profile_op_info *out) STW_NOEXCEPT;

enum { STW_PICTURE_SVG = 0, STW_PICTURE_HTML = 1, STW_PICTURE_CSV = 2 };
/* The plan as a picture, as text that ends with a zero byte. SVG: the arena, offset against instruction, one rectangle a
 * buffer. HTML: one page without anything from outside, with that picture, live bytes over time, and the decisions.
 * CSV: the buffers of the program that reaches the peak, persistent ones included, with the columns
 * id,lower,upper,size,offset,name,class; lifetimes are half-open, sizes are multiples of the alignment, and the largest
 * offset + size is info.arena. `out` receives the text where its size with the zero byte is at most `capacity`;
 * `*needed` (may be NULL) receives that size also where it is larger; out = NULL with capacity 0 only asks for it. Guarantees: the
 * same plan gives the same bytes; text from files is escaped. Large plans draw buffers together that are too small to
 * see, and say so. Errors: STW_BAD_ARGUMENT for a kind that is none, or a capacity that is too small: then nothing is
 * written. Thread: any. Since: 0.1 */
STW_API stw_status stw_plan_picture(const stw_plan *plan, uint32_t kind, char *out, size_t capacity, size_t *needed,
                                    stw_error *error) STW_NOEXCEPT;
/* What lies in the arena during a step: the index-th buffer, STW_BAD_ARGUMENT past the last one. Names live as long as the plan. Thread: any.
 * Since: 0.1 */
STW_API size_t stw_plan_buffer_count(const stw_plan *plan) STW_NOEXCEPT;
STW_API stw_status stw_plan_buffer_at(const stw_plan *plan, size_t index, stw_buffer_info *out) STW_NOEXCEPT;

/* ---- pack: offsets for any buffers that share memory, not only those of a plan ----------------------------------- */
/* An element of an array: it never grows. */
typedef struct stw_buffer_lifetime {
  int64_t lower, upper;      /* alive in [lower, upper), in any unit of time; upper == lower takes no space */
  uint64_t size;             /* bytes */
} stw_buffer_lifetime;

/* Elements of arrays: they never grow. Within [lower, upper) of its lifetime a buffer takes its bytes [first, end) alone; none if they are equal. */
typedef struct stw_buffer_gap {
  int64_t lower, upper;
  uint64_t first, end;       /* end is at most the buffer's size */
} stw_buffer_gap;

enum { STW_SET_OFFSET = 1 };
/* What holds for a buffer's place; all zeros: nothing. */
typedef struct stw_buffer_constraint {
  uint64_t alignment;        /* its offset is a multiple of it; 0: 1 */
  uint64_t offset;           /* with STW_SET_OFFSET: its offset */
  const stw_buffer_gap *gaps; /* gap_count of them, which do not overlap */
  uint32_t gap_count;
  uint32_t set_mask;         /* STW_SET_OFFSET */
} stw_buffer_constraint;

typedef struct stw_pack_options {
  uint32_t struct_size;
  uint32_t set_mask;         /* reserved, 0 */
  uint64_t capacity;         /* bytes to fit into; 0: as low as possible */
  uint64_t node_limit;       /* decisions that the search may take, some microseconds each; 0: 1,000,000 */
  const stw_buffer_constraint *constraints; /* of the buffers, as many; NULL: none. With them the exact search is one for a few dozen buffers */
} stw_pack_options;

enum {
  STW_PACK_OPTIMAL = 0,      /* no placement is lower */
  STW_PACK_FITS = 1,         /* within the capacity; without one: the lowest found, perhaps not the lowest there is */
  STW_PACK_IMPOSSIBLE = 2,   /* proven: no placement is within the capacity */
  STW_PACK_UNKNOWN = 3       /* none within the capacity was found, and none was ruled out */
};

typedef struct stw_pack_result {
  uint32_t struct_size;
  uint32_t answer;           /* STW_PACK_* */
  uint64_t height;           /* largest offset + size of the lowest placement found, within the capacity or not */
  uint64_t bound;            /* proven: no placement is lower */
  uint64_t nodes;            /* decisions taken */
} stw_pack_result;

/* Gives `count` buffers offsets so that those alive at the same time do not overlap, and all constraints hold. A buffer that takes a byte at
 * any time ends at offset + size, whatever its gaps. Guarantees: deterministic, the same on every machine. `offsets` receives `count` of them; `options` and `result` may be NULL, and with `count` 0 so
 * may the arrays. Errors: STW_OVER_BUDGET for the answers STW_PACK_IMPOSSIBLE and STW_PACK_UNKNOWN: `offsets` are then
 * untouched, `result` is filled in all the same, and error.bytes_needed is a capacity that would do; STW_BAD_ARGUMENT
 * for an upper below its lower, where 2^62 bytes or more are needed, for gaps that overlap or lie outside of the lifetime, and for given offsets
 * that overlap or are no multiples of their alignment. Thread: any. Since: 0.1 */
STW_API stw_status stw_pack(uint64_t *offsets, const stw_buffer_lifetime *lifetimes, size_t count,
                            const stw_pack_options *options, stw_pack_result *result, stw_error *error) STW_NOEXCEPT;

/* ---- dataset ---------------------------------------------------------------------------------------------------- */
enum { STW_TOKENIZER_AUTO = 0, STW_TOKENIZER_BYTE = 1, STW_TOKENIZER_IDS = 2 };
/* How ids are stored, all little-endian. AUTO: as the header of a .npy file says; of others uint16, or uint32 where the vocabulary exceeds 65,536. */
enum { STW_TOKEN_TYPE_AUTO = 0, STW_TOKEN_TYPE_UINT16 = 1, STW_TOKEN_TYPE_UINT32 = 2, STW_TOKEN_TYPE_INT32 = 3, STW_TOKEN_TYPE_INT64 = 4 };
enum { STW_SET_DOCUMENT_END = 1, STW_SET_HELD_OUT = 2, STW_SET_DATASET_SEED = 4 };
/* Marks of a token. TARGET: the model learns to predict it. BEGIN: a document begins with it. SECOND: it belongs to its document's second
 * text, and its token type is 1. */
enum { STW_MARK_TARGET = 1, STW_MARK_BEGIN = 2, STW_MARK_SECOND = 4 };
/* Kinds of tokens of a vocabulary. SPECIAL: is never hidden from a masked language model. CONTINUES: goes on with the word of the token before. */
enum { STW_TOKEN_SPECIAL = 1, STW_TOKEN_CONTINUES = 2 };

typedef struct stw_dataset_options {
  uint32_t struct_size;
  uint32_t tokenizer;        /* auto: ids for .bin and .npy files, bytes otherwise */
  const char *path;          /* text, or ids of token_type: bare numbers, or a NumPy array of one dimension (.npy) */
  uint64_t vocabulary;       /* every id must be smaller */
  uint64_t sequence;         /* tokens of a sample */
  uint64_t seed;             /* of the windows; unset: 1337 */
  uint32_t set_mask;         /* STW_SET_DOCUMENT_END, STW_SET_HELD_OUT, STW_SET_DATASET_SEED */
  uint32_t pairs;            /* 1: with marks, without labels, for plans with a preference: documents are pairs, chosen and rejected ones in turn,
                                and samples hold whole pairs, none longer than `sequence` + 1 tokens */
  uint64_t document_end;     /* the token that ends a document: attention stays inside of documents, and what follows an end
                                is no target. Needs a plan with STW_INPUT_POSITIONS. Unset: there are no documents. */
  const char *marks;         /* a file with a byte for each token, STW_MARK_* together: for prompts and answers, of which the answers
                                are learned. Documents are kept apart as above, but begin where they are marked, the first one with
                                the first token. Samples hold them whole, as many as there is room for, and longer ones cut; all
                                samples are trained on before one is again, in another order each time. For plans of `sequence`
                                alone (else STW_BAD_STATE), not together with document_end. NULL: all tokens are targets, and
                                samples begin anywhere. */
  const char *labels;        /* for classifiers: a file with a little-endian uint32 for each document that `marks` begin: its label, or
                                UINT32_MAX for none. It is the target of the document's last token inside of the sample; for an
                                encoder, of the document's first token. STW_MARK_TARGET is not looked at then. With
                                STW_TASK_TOKEN_LABEL: a uint32 for each token, the target of that token. NULL:
                                targets are tokens. */
  uint64_t label_count;      /* with labels: how many the model has; every uint32 must be smaller */
  double held_out;           /* share of the tokens that is held out, from the end on: 0 to 1; unset: 0.1. With marks whole documents, of
                                which longer ones than a sample count as what samples have of them */
  const char *reference;     /* with pairs, for STW_PREFERENCE_DPO and _IPO: the file that stw_trainer_write_reference wrote for these tokens and
                                marks (of others: STW_BAD_STATE) */
  /* For masked language models (STW_TASK_MASKED_LANGUAGE_MODEL), without labels and pairs: each token is hidden by itself with a chance of
   * mask_rate. 80 % of the hidden tokens become mask_token, 10 % a random token that is not special, and 10 % stay. The hidden tokens are
   * the targets. With `marks` only those with STW_MARK_TARGET are hidden. What is hidden depends on the seed, the number of the batch,
   * the sample's place in it and the token's place in the sample; of the held-out part, on the window alone, so that every evaluation
   * hides the same tokens. */
  double mask_rate;          /* more than 0, up to 1; 0: tokens are not hidden */
  uint64_t mask_token;
  const uint8_t *token_kinds; /* `vocabulary` bytes, each STW_TOKEN_* together; NULL: all are 0 */
  uint32_t mask_whole_words; /* 1: with token_kinds, words are drawn in place of tokens: a token that continues a word is hidden with it */
  uint32_t task;             /* with labels: STW_TASK_* that they are for, the model's: LABEL, LABELS, NUMBER or TOKEN_LABEL; AUTOMATIC: LABEL. For
                                LABELS and NUMBER the file of labels has label_count little-endian float32 for each document instead: of LABELS how
                                much it has of each, 0 to 1; of NUMBER finite numbers; a NaN in the first place: none */
  uint32_t in_order;         /* 1: without marks and mask_rate: evaluations are of all of the held-out part, in windows end to end from its first token
                                on, the last one shorter: each token but the first is a target once */
  uint32_t token_type;       /* STW_TOKEN_TYPE_*, of ids. AUTO refuses a file whose numbers look like those of another type */
  stw_watch *watch;          /* of this call; NULL: none */
} stw_dataset_options;

typedef struct stw_dataset_info {
  uint32_t struct_size;
  uint32_t tokenizer;
  uint64_t training_tokens, evaluation_tokens;   /* of held_out; with marks, from the nearest document on */
  uint64_t training_samples, evaluation_samples; /* with marks: that hold every document of a part once; with in_order: evaluation_samples
                                                    hold every token once; else 0 */
  uint64_t content_hash;     /* XXH3, 64 bits, of the files of tokens, marks and labels, one behind the other: a run that goes on from a checkpoint
                                has the bits of one that was never stopped if this is the same too */
} stw_dataset_info;

/* Opens and checks a file; it is read window by window, never loaded. The held-out part may be too short for an evaluation;
 * stw_trainer_evaluate then says so. Errors: STW_IO_ERROR; STW_CORRUPT for an id outside of the vocabulary, marks that do not belong
 * to the tokens, documents that are no pairs or too long, a reference that is none, an empty file or, without marks, a training part
 * shorter than a sequence and one token (with held_out 1: a held-out part). Owner: the caller; it may be used by several trainers
 * one after the other. Thread: exclusive. Since: 0.1 */
STW_API stw_status stw_dataset_open(stw_dataset **out, const stw_dataset_options *options, stw_error *error) STW_NOEXCEPT;
/* Thread: exclusive. Since: 0.1 */
STW_API void stw_dataset_close(stw_dataset *dataset) STW_NOEXCEPT;
/* How much it holds. Errors: as stw_device_query. Thread: any. Since: 0.1 */
STW_API stw_status stw_dataset_query(const stw_dataset *dataset, stw_dataset_info *out) STW_NOEXCEPT;

/* ---- trainer ---------------------------------------------------------------------------------------------------- */
enum {
  STW_PHASE_IDLE = 0, STW_PHASE_TRAIN = 1, STW_PHASE_EVALUATE = 2, STW_PHASE_GENERATE = 3, STW_PHASE_SAVE = 4,
  STW_PHASE_CALIBRATE = 5
};

enum { STW_SKIP_NONE = 0, STW_SKIP_NO_TARGET = 1, STW_SKIP_NOT_FINITE = 2, STW_SKIP_OUTLIER = 3 };

/* What a callback is told and stw_trainer_progress tells at any time. */
typedef struct stw_progress {
  uint32_t struct_size;
  uint32_t phase;
  uint64_t step;             /* successful updates so far */
  uint64_t batches;          /* global batches consumed so far: step + skipped */
  uint64_t skipped;          /* steps without an update: STW_SKIP_* */
  double loss;               /* of the last step, mean per target */
  double grad_norm;          /* before clipping */
  double learning_rate;
  double seconds;            /* of the last step */
  double tokens_per_second;  /* targets, that is; of a preference pairs */
  uint64_t tokens;           /* the same, trained on so far */
  double evaluation_loss;    /* of the last evaluation; 0 before the first */
  double loss_scale;         /* for the next step; 1 unless the precision is fp16 */
  uint32_t skip_reason;      /* STW_SKIP_*, of the last step */
  uint32_t reserved;
  double evaluation_accuracy;   /* of a classifier or a masked language model, of the last evaluation: share of the targets whose logit was the
                                   largest, of equal ones the first; of LABELS: share of the texts whose logits were all right, above 0 where the
                                   label is above 0.5 and not elsewhere; of a preference: as accuracy; not a number where there were none, and of NUMBER */
  double accuracy;           /* of a preference, of the last step: share of the pairs whose chosen document was ahead: dpo by P - R, ipo by
                                (P - R) / n, simpo and orpo by P / n; else 0 */
  uint64_t evaluation_samples;  /* of the evaluation under way, or of the last one, stw_trainer_log_probabilities and _write_reference among them: in all */
  uint64_t evaluated_samples;   /* how many of them have been given to the device */
  uint64_t evaluation_targets;  /* that evaluation_loss is the mean over: tokens, of a classifier texts or words, of a preference pairs */
  uint64_t micro_steps;      /* of the step under way, or of the last one: in all */
  uint64_t micro_steps_done; /* how many of them have been given to the device; on the CPU they are computed then */
} stw_progress;

/* Called on the calling thread after every `progress_every` steps; non-zero stops before the next step. It may evaluate,
 * generate, save and step in between. */
typedef int32_t (*stw_progress_fn)(void *user, const stw_progress *now);

/* Between the last micro-step and the norm. The host may change what the pointers point to, in stream order (CPU:
 * before it returns): adding up `data`, `*loss_sum`, `*target_count` and `*in_order` over several trainers makes one step of the
 * joint batch. Non-zero: the step fails with STW_CALLBACK_FAILED and nothing was updated. From inside of it calls that
 * compute, or that read or write the trainer's state, answer STW_BAD_STATE (see the rules above). */
typedef struct stw_gradients {
  uint32_t struct_size;
  uint32_t reserved;
  float *data;               /* sums over tokens (of a preference: over pairs), not normalised, of all trainable parameters; holes are to be ignored */
  uint64_t count;            /* floats, holes included */
  double *loss_sum;
  uint64_t *target_count;
  void *stream;
  double scale;              /* that `data` carries: 1 unless the precision is fp16; trainers that are added up must have
                                the same */
  uint32_t *in_order;        /* of a preference: pairs whose chosen document was ahead, to be added up too */
} stw_gradients;
typedef int32_t (*stw_gradient_fn)(void *user, const stw_gradients *gradients);

enum {
  STW_SET_WEIGHT_DECAY = 1, STW_SET_CLIP_NORM = 2, STW_SET_BETA1 = 4, STW_SET_BETA2 = 8, STW_SET_MOMENTUM = 16, STW_SET_MARGIN = 32,
  STW_SET_TRAINER_SEED = 64
};
enum { STW_NON_FINITE_SKIP = 0, STW_NON_FINITE_STOP = 1 };

/* g: gradient, mean per target, clipped. lr: learning rate. Arithmetic in fp32 on the fp32 master.
 *   adamw      Loshchilov and Hutter, arXiv:1711.05101, as torch.optim.AdamW
 *   sgd        momentum, weight decay added to g, as torch.optim.SGD
 *   lion       Chen et al., arXiv:2302.06675; wants a learning rate 3 to 10 times smaller than AdamW
 *   muon       Jordan 2024: momentum with look-ahead, orthogonalised, times 0.2·sqrt(larger side), so that AdamW's rates
 *              fit (Liu et al., arXiv:2502.16982)
 *   adafactor  Shazeer and Stern, arXiv:1804.04235, as torch.optim.Adafactor
 * A float stands for the shortest decimal number that is rounded to it: 0.95f for 0.95, whose 1 - 0.95 enters the update. */
typedef struct stw_trainer_options {
  uint32_t struct_size;
  uint32_t set_mask;
  uint64_t seed;             /* of dropout; unset: 1337 */
  float beta1, beta2;        /* adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99 */
  float epsilon;             /* adamw, muon: 0: 1e-8 */
  float weight_decay;        /* unset: 0.1, none on 1-D tensors; sgd, adafactor: 0; at most 1e6 */
  float clip_norm;           /* unset: 1, with a fused update 0; 0: no clipping */
  uint32_t nesterov;         /* sgd: 1: look ahead */
  void *arena;               /* the host's memory, at least info.arena bytes at a multiple of 256; NULL: allocated */
  uint64_t arena_bytes;
  stw_gradient_fn gradient_hook;
  void *gradient_user;
  float momentum;            /* sgd: unset 0.9; muon: unset 0.95 */
  float label_smoothing;     /* in [0, 1): this share of the target's probability goes to all tokens alike; with a preference in [0, 0.5): the
                                share of pairs that is taken to be the wrong way round. 0 for LABELS and NUMBER */
  float z_loss;              /* times the square of log Σ exp(logits), added to every token's loss; 0 for LABELS and NUMBER */
  float outlier_limit;       /* 0: none; else a step is skipped whose loss or gradient norm lies more standard deviations
                                above its running mean than this (exponential, about 128 steps; from 64 steps on) */
  double loss_scale;         /* fp16: of the first step, a power of two; 0: 65536 */
  uint32_t growth_interval;  /* fp16: updates after which it doubles; 0: 2000. A step that is not finite halves it. */
  uint32_t non_finite;       /* STW_NON_FINITE_*: skip: a step whose loss or gradient is not finite updates nothing, and is
                                counted and logged; stop: it fails with STW_NON_FINITE. fp16 skips, and fails with
                                STW_NUMERIC where the scale would fall below 1. */
  /* Of the plan's preference, whose formulas stand there. */
  float beta;                /* 0: 0.1, of simpo 2; at most 1e6 */
  float margin;              /* simpo: unset half of beta */
  float answer_share;        /* 0 to 1e6: how often the chosen document's mean token loss is added (Pang et al., arXiv:2404.19733) */
  uint32_t reserved;
  stw_watch *watch;          /* of its creation and of every call that names it, as long as it lives; NULL: none */
} stw_trainer_options;

typedef struct stw_batch {
  uint32_t struct_size;
  uint32_t count;            /* tensors */
  /* Named tensors of int32 in host memory, at multiples of 4 bytes, with any strides. (samples, tokens), at most
   * (global_batch, sequence): "tokens", and either "targets" (already shifted: the token that follows) or "labels" (beside
   * their tokens; the library shifts them, so that the first one of a sample, or of a document, has no loss); -100: no
   * loss. For a masked language model both stand beside their tokens, some of which the host has hidden itself: the token that was
   * there, and -100 elsewhere; nothing is shifted.
   * For a classifier these are labels, not tokens: "targets" at any token, or "labels" (samples), one a sample. Such a label belongs
   * to the sample's last token that counts; for an encoder, to its first token. For a model of STW_TASK_TOKEN_LABEL "labels" are (samples, tokens), each
   * the label of the token beside it, as "targets" are. For LABELS and NUMBER there are no "targets", and "labels" is of
   * float32 (samples, labels): of LABELS how much a sample has of each, 0 to 1; of NUMBER finite numbers; a row that begins with a NaN
   * has no loss. Optional: "lengths" (samples), how many tokens of each
   * sample count, 0 to tokens. Missing samples and tokens count as ignored; what lies past a length is not looked at.
   * Optional with STW_INPUT_POSITIONS, and for encoders always: "positions" (samples,
   * tokens), of each token in its document: a sample holds several documents end to end, each counted 0, 1, 2, ..., and
   * attention stays inside of them. Optional for models with token types: "token_types" (samples, tokens), each below
   * stw_model_info.token_types; without it all are 0. With STW_INPUT_WEIGHTS, optional: "weights" (samples, tokens) of float32, finite:
   * factors of the losses of the targets or labels beside which they stand (with a language model's labels they are shifted, too), which are
   * still divided by the number of targets. With a preference "positions" are required, and for STW_PREFERENCE_DPO and _IPO
   * "reference" (samples, tokens) of float32, finite: log-probabilities of the targets or labels beside which they stand. */
  const char *const *names;
  const struct DLManagedTensorVersioned *const *tensors;
  double learning_rate;      /* at most 1e6; there is no default: with 0 states change, parameters do not */
} stw_batch;

typedef struct stw_step_result {
  uint32_t struct_size;
  uint32_t skipped;          /* 1: no update; nothing but the count of batches has changed, the running statistics of
                                outlier_limit and in fp16 the loss scale */
  uint64_t step;             /* successful updates so far, this one included */
  double loss, grad_norm;
  uint64_t targets;          /* that had a loss */
  double seconds;
  double loss_scale;         /* of this step; 1 unless the precision is fp16 */
  uint32_t skip_reason;      /* STW_SKIP_* */
  uint32_t reserved;
  double accuracy;           /* as stw_progress has it */
} stw_step_result;

/* After the warm-up, step by step from the full rate: cosine, linear: down to min_rate, which the step after the last one has;
 * constant; warm-up-stable-decay: constant, and in a line down to min_rate over the last decay_steps, in the same way;
 * inverse root: rate · sqrt(warmup / step), not below min_rate. */
enum {
  STW_SCHEDULE_COSINE = 0, STW_SCHEDULE_LINEAR = 1, STW_SCHEDULE_CONSTANT = 2, STW_SCHEDULE_WSD = 3,
  STW_SCHEDULE_INVERSE_ROOT = 4
};
enum { STW_SET_MIN_RATE = 1 };
enum { STW_SET_GENERATE_SEED = 1 };

typedef struct stw_run_options {
  uint32_t struct_size;
  uint32_t set_mask;
  uint64_t until;            /* run until this many batches have been consumed; what has them already returns at once */
  uint64_t total;            /* length of the schedule; 0: `until` */
  uint64_t warmup;           /* steps of linear warm-up */
  double learning_rate;      /* 0: adamw, muon 3e-4; lion 1e-4; sgd, adafactor 1e-2; at most 1e6, also as base_batch scales it */
  double min_rate;           /* unset: a tenth of it; inverse root: 0; constant: not used */
  uint32_t schedule;
  uint32_t progress_every;   /* 0: 1 */
  stw_progress_fn progress;
  void *progress_user;
  uint64_t decay_steps;      /* warm-up-stable-decay: 0: a fifth of `total` */
  uint64_t base_batch;       /* learning rates are meant for so many samples a step, and multiplied by the root of
                                global_batch / base_batch; 0: they are taken as they are */
} stw_run_options;

typedef struct stw_generate_options {
  uint32_t struct_size;
  uint32_t top_k;            /* 0: all */
  const int32_t *prompt;     /* at least one token */
  uint64_t prompt_count;
  int32_t *out;              /* receives new tokens */
  uint64_t out_capacity;     /* and at most this many */
  double temperature;        /* 0: the most probable token */
  uint64_t seed;             /* unset: 1337 */
  const int32_t *stop;       /* tokens of which any ends the answer, such as the model's end of text; it is the last in `out` */
  uint64_t stop_count;
  double top_p;              /* of the top_k at `temperature`: draw from the fewest most probable tokens that have at least this
                                probability together; 0: all; at most 1 */
  uint32_t set_mask;         /* STW_SET_GENERATE_SEED */
  uint32_t reserved;
} stw_generate_options;

/* Allocates the plan's arena, and host memory (info.host) where the plan offloads, fills them with weights, and is ready. No
 * memory for tensors is allocated after this until it is destroyed. On the CPU both come from the device's allocator. Errors:
 * STW_OUT_OF_MEMORY, STW_BAD_STATE (a plan that does not fit, or of another model or device; a gradient hook where gradients
 * are offloaded), STW_UNSUPPORTED (kernels of a library that is not there), STW_DEVICE_ERROR, those of reading weights. Owner:
 * the caller. The plan and model may be destroyed; the device may not. Thread: exclusive
 * use of the device during the call, but for its other trainers, which may compute meanwhile. Since: 0.1 */
STW_API stw_status stw_trainer_create(stw_trainer **out, stw_device *device, const stw_model *model,
                                      const stw_plan *plan, const stw_trainer_options *options,
                                      stw_error *error) STW_NOEXCEPT;
/* Waits for what is under way; the arena goes back to whoever brought it. Thread: exclusive. Since: 0.1 */
STW_API void stw_trainer_destroy(stw_trainer *trainer) STW_NOEXCEPT;
/* One optimizer step over a whole global batch. The batch is borrowed until stw_trainer_wait returns. A step is a
 * transaction: after a cancel or a failed callback the trainer stands at the last completed step.
 * Errors: STW_BAD_ARGUMENT (names, shapes, a token outside the vocabulary, the learning rate), STW_UNSUPPORTED (an input that
 * the plan was not made for), STW_CANCELLED, STW_CALLBACK_FAILED. Since: 0.1 */
STW_API stw_status stw_trainer_step(stw_trainer *trainer, const stw_batch *batch, stw_error *error) STW_NOEXCEPT;
/* Waits for the last step and tells its result. Errors: STW_BAD_STATE without a step. Since: 0.1 */
STW_API stw_status stw_trainer_wait(stw_trainer *trainer, stw_step_result *out, stw_error *error) STW_NOEXCEPT;
/* Steps over a dataset. Windows depend on the dataset's seed and on the number of batches consumed, so an interrupted
 * run continues where it stood. Errors: STW_CANCELLED when a callback or stw_trainer_cancel stopped it. Since: 0.1 */
STW_API stw_status stw_trainer_run(stw_trainer *trainer, stw_dataset *dataset, const stw_run_options *options,
                                   stw_error *error) STW_NOEXCEPT;
/* Mean loss per target over `batches` global batches of the held-out part, in the same arena, the same windows each
 * time; with marks or in_order, each sample once at most; of a preference the mean over pairs, without label_smoothing. Not a number where
 * none of the tokens is a target. Errors: STW_CORRUPT where the held-out part is shorter than a sequence and one token, or with marks
 * empty; STW_CANCELLED. Since: 0.1 */
STW_API stw_status stw_trainer_evaluate(stw_trainer *trainer, stw_dataset *dataset, uint64_t batches, double *loss,
                                        stw_error *error) STW_NOEXCEPT;
/* Continues a prompt, in the same arena; prompt and new tokens together fit the plan's sequence. `*count` receives the
 * number of new tokens, which is less than asked for where one of `stop` came. Errors: STW_BAD_ARGUMENT,
 * STW_UNSUPPORTED (a classifier or an encoder), STW_UNSUPPORTED_SHAPE (too long); STW_CANCELLED, and STW_NON_FINITE where the model's
 * logits are not finite, after which
 * `out` may hold tokens. Since: 0.1 */
STW_API stw_status stw_trainer_generate(stw_trainer *trainer, const stw_generate_options *options, uint64_t *count,
                                        stw_error *error) STW_NOEXCEPT;
/* The model's logits behind a text, in the same arena: of the tokens that may follow, or of a classifier's labels, vocabulary or labels
 * of them in fp32 (not probabilities: softmax makes those, of LABELS the sigmoid of each; of NUMBER they are the numbers). `out` has room for
 * `capacity`. At most as many tokens as the plan's
 * sequence has. Errors: STW_BAD_ARGUMENT (tokens, capacity), STW_UNSUPPORTED_SHAPE (no token, or too many), STW_UNSUPPORTED (a masked
 * language model, whose log-probabilities stw_trainer_log_probabilities has, and STW_TASK_TOKEN_LABEL, whose logits stw_trainer_classify
 * has); STW_CANCELLED; STW_NON_FINITE where they are not finite. Since: 0.1 */
STW_API stw_status stw_trainer_logits(stw_trainer *trainer, const int32_t *tokens, uint64_t count, float *out, uint64_t capacity,
                                      stw_error *error) STW_NOEXCEPT;
/* The logits of a classifier's labels for `texts` texts, or its numbers, in the same arena. `tokens` holds the texts' tokens one after the other, and
 * `lengths` how many each text has, 1 to the plan's sequence. `token_types` has a type for each token, below the model's token_types; NULL
 * where all are 0. `out` receives texts * labels outputs as they are, in fp32: not probabilities, which softmax makes, of LABELS the
 * sigmoid of each; of NUMBER the numbers. It has room for `capacity`. Of a
 * model of STW_TASK_TOKEN_LABEL it receives tokens * labels numbers, those of each token of each text in turn: as many tokens as `lengths` sum up to. An
 * encoder takes as many texts at once as fit the plan's sequence; the answers are the same as one by one. Errors: STW_UNSUPPORTED (not a
 * classifier), STW_BAD_ARGUMENT (tokens, types, capacity), STW_UNSUPPORTED_SHAPE (a length); STW_CANCELLED; STW_NON_FINITE where logits
 * are not finite. `out` may have been written in part then. Since: 0.1 */
STW_API stw_status stw_trainer_classify(stw_trainer *trainer, const int32_t *tokens, const int32_t *token_types, const uint64_t *lengths,
                                        uint64_t texts, float *out, uint64_t capacity, stw_error *error) STW_NOEXCEPT;
/* The log-probability that the model as it is, without dropout, gives every target of a batch of one sample or more (at most global_batch;
 * its learning rate is not looked at, and it has neither "weights" nor "reference"), in the same arena: samples * tokens of
 * them into `out`, which has room for `capacity`, each in the place of its target or label; 0 where there is no target. Of a classifier's
 * "labels": in the place of the sample's last token. Errors: those of stw_trainer_step; STW_NON_FINITE where the model's loss is not finite;
 * STW_UNSUPPORTED for LABELS and NUMBER; `out` is unchanged then. Since: 0.1 */
STW_API stw_status stw_trainer_log_probabilities(stw_trainer *trainer, const stw_batch *batch, float *out, uint64_t capacity,
                                                 stw_error *error) STW_NOEXCEPT;
/* Goes over a dataset of pairs once, both parts, and writes the log-probabilities that the model as it is gives its targets into the file
 * `path`, for stw_dataset_options.reference: a little-endian float32 for each token, and 32 bytes that say of which tokens and marks they are,
 * with a checksum. Mostly before the first step, as the model that is not to be left too far behind. The
 * trainer's plan has a preference, whichever it is; the dataset needs no reference. Errors: STW_BAD_STATE (another kind of plan or dataset),
 * STW_IO_ERROR, STW_NON_FINITE, STW_CANCELLED; then no file has been replaced. Since: 0.1 */
STW_API stw_status stw_trainer_write_reference(stw_trainer *trainer, stw_dataset *dataset, const char *path,
                                               stw_error *error) STW_NOEXCEPT;
/* Changes the budget of a trainer that stands between two steps: plans again for `memory_bytes` (0: all that the device has: what is
 * free there now, with the arena that this trainer gives back; of a host's arena, that), with the same numerics,
 * batch, micro-batch and recompute policy (in fast mode the micro-batch that was chosen), and goes on with the same bits. `*plan`
 * (may be NULL) receives the new plan, which the caller destroys. The arena never takes more than the larger of both, unless it
 * comes from the host's allocator, which is asked for the new one before the old one is released; a host's arena must be large
 * enough for the new plan. Views of stw_trainer_export_tensor end. Errors: STW_OVER_BUDGET with error.bytes_needed;
 * STW_OUT_OF_MEMORY; STW_BAD_STATE from inside a callback of the trainer, and where the new plan would offload gradients that a
 * hook needs; it is then unchanged, and `*plan` is NULL. One exception: while the library's own arena changes its size, a CUDA device has
 * nothing of it. Where somebody else takes that memory meanwhile, the answer is STW_OUT_OF_MEMORY too, its message says so, and the trainer
 * answers STW_BAD_STATE until it is restored. Since: 0.1 */
STW_API stw_status stw_trainer_replan(stw_trainer *trainer, uint64_t memory_bytes, stw_plan **plan,
                                      stw_error *error) STW_NOEXCEPT;
enum { STW_PROFILE_BYTES = 16384 };   /* room for any profile, with its zero byte */
/* Measures the device: times every instruction of the plan's step, on made-up tokens, a median of several runs after one
 * that warms up, and of a micro-step of one sample besides. Writes a profile to plan with (stw_plan_options.profile) as
 * JSON text that ends with a zero byte; `*size` (may be NULL) receives its bytes without that. The host keeps other work
 * off the device meanwhile. Of a CUDA device whose context the library made, and where the driver tells, the reserve is
 * measured too: what has come into use of the card since then, by anybody, beside this trainer's arena.
 * Guarantees: no gradient hook is called, and afterwards, also after a failure, every byte of
 * the trainer is as stw_trainer_create left it; weights are read again for that, and where they no longer can be, the
 * trainer does nothing but answer STW_BAD_STATE until it is restored, or measured again. Errors: STW_BAD_STATE for a trainer that has
 * stepped, was restored or had a tensor imported; STW_BAD_ARGUMENT for a capacity below STW_PROFILE_BYTES; STW_NON_FINITE
 * where the model's loss or gradients are not finite; STW_CANCELLED; those of reading weights. Since: 0.1 */
STW_API stw_status stw_trainer_calibrate(stw_trainer *trainer, char *out, size_t capacity, size_t *size,
                                         stw_error *error) STW_NOEXCEPT;
/* Measures as stw_trainer_calibrate does, with its guarantees and errors, and writes a step's timeline to the file `path`:
 * every instruction, what it took beside what the plan expected, in Google's Trace Event Format (JSON), which
 * chrome://tracing and Perfetto show. A micro-step that is repeated is there once, with how often it runs. Copies that would
 * run beside ops stand behind each other. Errors: also STW_IO_ERROR. Since: 0.1 */
STW_API stw_status stw_trainer_timeline(stw_trainer *trainer, const char *path, stw_error *error) STW_NOEXCEPT;
/* Cancels the call under way that uses the trainer; where none is, the next one, so that no cancel is lost. What stw_watch_create says of a
 * cancel holds. Thread: any, and signal handlers. Since: 0.1 */
STW_API void stw_trainer_cancel(stw_trainer *trainer) STW_NOEXCEPT;
/* How far the trainer is. Thread: any, while the trainer exists. Since: 0.1 */
STW_API stw_status stw_trainer_progress(const stw_trainer *trainer, stw_progress *out) STW_NOEXCEPT;
/* The trainer's CUDA stream (a cudaStream_t); NULL on the CPU. Since: 0.1 */
STW_API void *stw_trainer_stream(const stw_trainer *trainer) STW_NOEXCEPT;

enum { STW_TENSOR_PARAMETER = 0, STW_TENSOR_GRADIENT = 1, STW_TENSOR_FIRST_MOMENT = 2, STW_TENSOR_SECOND_MOMENT = 3 };
/* A view of a tensor in the arena, without a copy, valid until the trainer is destroyed or planned again; gradients hold the
 * last step's sums (of a tensor that two ops use, as a tied one, those of the first use; of one that more use, as ALBERT's blocks
 * do, those of all) until the next call that computes, in fp16 times what stw_gradients.scale
 * is: the step's loss_scale, divided by the next power of two from global_batch * sequence on (of ipo, simpo and orpo: from global_batch on). The caller calls its deleter.
 * Rows are in the order of the files, except in BLOOM's query_key_value (matrix, bias, and B of an adapter):
 * in memory the queries of all heads come first, then all keys, then all values; in files each head has its queries, keys and values.
 * Errors: STW_UNSUPPORTED where the state is not stored as one array of fp32, bf16 or fp16. Since: 0.1 */
STW_API stw_status stw_trainer_export_tensor(stw_trainer *trainer, size_t index, uint32_t kind,
                                             struct DLManagedTensorVersioned **out, stw_error *error) STW_NOEXCEPT;
/* Overwrites a parameter with fp32 values of the same shape, compact and at a multiple of 4 bytes in host memory, with rows in the order
 * of stw_trainer_export_tensor; masters follow.
 * Errors: STW_BAD_ARGUMENT for anything else, STW_BAD_STATE from inside a callback, and of a trainer that is to be restored. Since: 0.1 */
STW_API stw_status stw_trainer_import_tensor(stw_trainer *trainer, size_t index,
                                             const struct DLManagedTensorVersioned *in, stw_error *error) STW_NOEXCEPT;

/* Checkpoint: parameters, states, step, random numbers, loss scale and data position in one file, replaced atomically and
 * checksummed. Where the path is a symbolic link, the file that it leads to is replaced; a pipe or a device is written to as it
 * is. Any budget, micro-batch or recompute choice may restore it; other numerics or another model may not. So may another global
 * batch, whose bits are its own: a dataset with marks goes on behind the last sample.
 * Errors: STW_IO_ERROR; restore: STW_CORRUPT, STW_BAD_STATE naming the field that does not match, with the trainer
 * unchanged. Since: 0.1 */
STW_API stw_status stw_trainer_save(stw_trainer *trainer, const char *path, stw_error *error) STW_NOEXCEPT;
STW_API stw_status stw_trainer_restore(stw_trainer *trainer, const char *path, stw_error *error) STW_NOEXCEPT;
/* Reads a checkpoint once and compares every checksum. Errors: STW_IO_ERROR, STW_CORRUPT naming what is damaged,
 * STW_UNSUPPORTED (a version of the future). Thread: any. Since: 0.1 */
STW_API stw_status stw_checkpoint_verify(const char *path, stw_error *error) STW_NOEXCEPT;
/* Writes config.json and model.safetensors into a folder that transformers can load; of a model with adapters these alone, as
 * adapter_config.json and adapter_model.safetensors that PEFT can load. fp32 runs write F32, bf16 runs BF16, fp16 runs F16.
 * Errors: STW_IO_ERROR, STW_DEVICE_ERROR, STW_BAD_STATE (from inside a callback, or a trainer that is to be restored). Since: 0.1 */
STW_API stw_status stw_trainer_export_model(stw_trainer *trainer, const char *folder, stw_error *error) STW_NOEXCEPT;

/* A struct of that type, zero but for its size, as the value that a variable begins with:
 *   stw_plan_options options = STW_INIT(stw_plan_options);
 * For every struct that begins with struct_size, in C99, in C++98, and in what came after them. */
#ifdef __cplusplus
}
template <class Struct>
inline Struct stw_initial() {
  Struct made = Struct();
  made.struct_size = static_cast<uint32_t>(sizeof(Struct));
  return made;
}
#  define STW_INIT(type) stw_initial<type>()
#else
#  define STW_INIT(type) {.struct_size = sizeof(type)}
#endif
#endif
