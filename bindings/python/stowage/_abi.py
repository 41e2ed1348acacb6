"""The C API for ctypes. Written by generate_abi.py from include/stowage.h: do not edit it."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float,
                    c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)

stw_status = c_int32

STW_VERSION_MAJOR = 0
STW_VERSION_MINOR = 1
STW_VERSION_PATCH = 0
STW_OK = 0
STW_BAD_ARGUMENT = 1000
STW_BAD_STRUCT_SIZE = 1001
STW_BAD_STATE = 1002
STW_UNSUPPORTED = 2000
STW_UNSUPPORTED_FIELD = 2001
STW_UNSUPPORTED_SHAPE = 2002
STW_OUT_OF_MEMORY = 3000
STW_OVER_BUDGET = 3001
STW_HOST_OUT_OF_MEMORY = 3002
STW_DEVICE_ERROR = 4000
STW_DEVICE_LOST = 4001
STW_IO_ERROR = 5000
STW_CORRUPT = 5001
STW_CANCELLED = 6000
STW_CALLBACK_FAILED = 6001
STW_NUMERIC = 7000
STW_NON_FINITE = 7001
STW_INTERNAL = 9000
STW_WORK_NONE = 0
STW_WORK_PLAN = 1
STW_WORK_OPEN_DATASET = 2
STW_WORK_CREATE_TRAINER = 3
STW_WORK_STEP = 4
STW_WORK_EVALUATE = 5
STW_WORK_GENERATE = 6
STW_WORK_CALIBRATE = 7
STW_WORK_SAVE = 8
STW_WORK_RESTORE = 9
STW_WORK_EXPORT = 10
STW_UNIT_NONE = 0
STW_UNIT_BYTES = 1
STW_UNIT_MICRO_STEPS = 2
STW_UNIT_SAMPLES = 3
STW_SET_INTERVAL = 1
STW_BACKEND_AUTO = 0
STW_BACKEND_CPU = 1
STW_BACKEND_CUDA = 2
STW_LOG_ERROR = 1
STW_LOG_WARNING = 2
STW_LOG_INFO = 3
STW_ISA_AUTO = 0
STW_ISA_SCALAR = 1
STW_ISA_AVX2 = 2
STW_ISA_AVX512 = 3
STW_ISA_NEON = 4
STW_SET_DROPOUT = 1
STW_SET_MODEL_SEED = 2
STW_ADAPTER_RANK_STABILISED = 1
STW_TASK_AUTOMATIC = 0
STW_TASK_LANGUAGE_MODEL = 1
STW_TASK_MASKED_LANGUAGE_MODEL = 2
STW_TASK_LABEL = 3
STW_TASK_LABELS = 4
STW_TASK_NUMBER = 5
STW_TASK_TOKEN_LABEL = 6
STW_TASK_SPANS = 7
STW_PRECISION_DEFAULT = 0
STW_PRECISION_FP32 = 1
STW_PRECISION_BF16 = 2
STW_PRECISION_FP16 = 3
STW_OPTIMIZER_ADAMW = 0
STW_OPTIMIZER_SGD = 1
STW_OPTIMIZER_LION = 2
STW_OPTIMIZER_MUON = 3
STW_OPTIMIZER_ADAFACTOR = 4
STW_STATES_AUTO = 0
STW_STATES_32 = 32
STW_STATES_8 = 8
STW_MASTER_EXACT = 0
STW_MASTER_SPLIT8 = 1
STW_MASTER_STOCHASTIC = 2
STW_GRADIENTS_FP32 = 0
STW_GRADIENTS_BF16 = 1
STW_KERNELS_AUTO = 0
STW_KERNELS_PORTABLE = 1
STW_KERNELS_TENSOR = 2
STW_KERNELS_CUBLASLT = 3
STW_KERNELS_WGMMA = 4
STW_KERNELS_CUBLASLT_WGMMA = 5
STW_ATTENTION_OWN = 0
STW_ATTENTION_CUDNN = 1
STW_QUANTIZE_AUTO = 0
STW_QUANTIZE_NONE = 1
STW_QUANTIZE_NF4 = 2
STW_QUANTIZE_INT8 = 3
STW_PREFERENCE_NONE = 0
STW_PREFERENCE_DPO = 1
STW_PREFERENCE_IPO = 2
STW_PREFERENCE_SIMPO = 3
STW_PREFERENCE_ORPO = 4
STW_MODE_EXACT = 0
STW_MODE_FAST = 1
STW_SET_RESERVE = 1
STW_KEEP_NUMERICS = 1
STW_KEEP_MODEL = 2
STW_KEEP_ADAPTERS = 4
STW_KEEP_SEQUENCE = 8
STW_KEEP_OPTIMIZER = 16
STW_KEEP_CLIPPING = 32
STW_KEEP_DIVISION = 64
STW_KEEP_PRECISION = 128
STW_KEEP_ALL = 255
STW_INPUT_POSITIONS = 1
STW_INPUT_WEIGHTS = 2
STW_RECOMPUTE_AUTO = 0
STW_RECOMPUTE_NONE = 1
STW_RECOMPUTE_FULL = 2
STW_SET_GROUP_FROZEN = 1
STW_SET_GROUP_RATE = 2
STW_SET_GROUP_DECAY = 4
STW_SET_GROUP_STATES = 8
STW_PICTURE_SVG = 0
STW_PICTURE_HTML = 1
STW_PICTURE_CSV = 2
STW_SET_OFFSET = 1
STW_PACK_OPTIMAL = 0
STW_PACK_FITS = 1
STW_PACK_IMPOSSIBLE = 2
STW_PACK_UNKNOWN = 3
STW_TOKENIZER_AUTO = 0
STW_TOKENIZER_BYTE = 1
STW_TOKENIZER_IDS = 2
STW_TOKEN_TYPE_AUTO = 0
STW_TOKEN_TYPE_UINT16 = 1
STW_TOKEN_TYPE_UINT32 = 2
STW_TOKEN_TYPE_INT32 = 3
STW_TOKEN_TYPE_INT64 = 4
STW_SET_DOCUMENT_END = 1
STW_SET_HELD_OUT = 2
STW_SET_DATASET_SEED = 4
STW_MARK_TARGET = 1
STW_MARK_BEGIN = 2
STW_MARK_SECOND = 4
STW_TOKEN_SPECIAL = 1
STW_TOKEN_CONTINUES = 2
STW_PHASE_IDLE = 0
STW_PHASE_TRAIN = 1
STW_PHASE_EVALUATE = 2
STW_PHASE_GENERATE = 3
STW_PHASE_SAVE = 4
STW_PHASE_CALIBRATE = 5
STW_SKIP_NONE = 0
STW_SKIP_NO_TARGET = 1
STW_SKIP_NOT_FINITE = 2
STW_SKIP_OUTLIER = 3
STW_SET_WEIGHT_DECAY = 1
STW_SET_CLIP_NORM = 2
STW_SET_BETA1 = 4
STW_SET_BETA2 = 8
STW_SET_MOMENTUM = 16
STW_SET_MARGIN = 32
STW_SET_TRAINER_SEED = 64
STW_NON_FINITE_SKIP = 0
STW_NON_FINITE_STOP = 1
STW_SCHEDULE_COSINE = 0
STW_SCHEDULE_LINEAR = 1
STW_SCHEDULE_CONSTANT = 2
STW_SCHEDULE_WSD = 3
STW_SCHEDULE_INVERSE_ROOT = 4
STW_SET_MIN_RATE = 1
STW_SET_GENERATE_SEED = 1
STW_PROFILE_BYTES = 16384
STW_TENSOR_PARAMETER = 0
STW_TENSOR_GRADIENT = 1
STW_TENSOR_FIRST_MOMENT = 2
STW_TENSOR_SECOND_MOMENT = 3


class stw_watch_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("work", c_uint32),
        ("unit", c_uint32),
        ("reserved", c_uint32),
        ("done", c_uint64),
        ("total", c_uint64),
        ("share", c_double),
    ]


stw_watch_fn = CFUNCTYPE(c_int32, c_void_p, POINTER(stw_watch_info))
stw_log_fn = CFUNCTYPE(None, c_void_p, c_int32, c_char_p, c_char_p)
stw_allocate_fn = CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t, c_void_p)
stw_release_fn = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)
stw_run_fn = CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_void_p)


class stw_progress(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("phase", c_uint32),
        ("step", c_uint64),
        ("batches", c_uint64),
        ("skipped", c_uint64),
        ("loss", c_double),
        ("grad_norm", c_double),
        ("learning_rate", c_double),
        ("seconds", c_double),
        ("tokens_per_second", c_double),
        ("tokens", c_uint64),
        ("evaluation_loss", c_double),
        ("loss_scale", c_double),
        ("skip_reason", c_uint32),
        ("reserved", c_uint32),
        ("evaluation_accuracy", c_double),
        ("accuracy", c_double),
        ("evaluation_samples", c_uint64),
        ("evaluated_samples", c_uint64),
        ("evaluation_targets", c_uint64),
        ("micro_steps", c_uint64),
        ("micro_steps_done", c_uint64),
        ("sample_tokens", c_uint64),
        ("evaluation_tokens", c_uint64),
    ]


stw_progress_fn = CFUNCTYPE(c_int32, c_void_p, POINTER(stw_progress))


class stw_gradients(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("data", POINTER(c_float)),
        ("count", c_uint64),
        ("loss_sum", POINTER(c_double)),
        ("target_count", POINTER(c_uint64)),
        ("stream", c_void_p),
        ("scale", c_double),
        ("correct_pairs", POINTER(c_uint32)),
    ]


stw_gradient_fn = CFUNCTYPE(c_int32, c_void_p, POINTER(stw_gradients))


class stw_error(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("status", stw_status),
        ("native_code", c_int32),
        ("reserved", c_uint32),
        ("bytes_needed", c_uint64),
        ("bytes_available", c_uint64),
        ("message", c_char * 480),
    ]


class stw_watch_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("notify", stw_watch_fn),
        ("user", c_void_p),
        ("interval_milliseconds", c_uint32),
        ("reserved", c_uint32),
    ]


class stw_device_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("backend", c_uint32),
        ("ordinal", c_int32),
        ("threads", c_uint32),
        ("isa", c_uint32),
        ("log_level", c_int32),
        ("stream", c_void_p),
        ("log", stw_log_fn),
        ("log_user", c_void_p),
        ("allocate", stw_allocate_fn),
        ("release", stw_release_fn),
        ("memory_user", c_void_p),
        ("run", stw_run_fn),
        ("run_user", c_void_p),
        ("cublaslt", c_char_p),
        ("cudnn", c_char_p),
    ]


class stw_device_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("backend", c_uint32),
        ("memory_total", c_uint64),
        ("memory_free", c_uint64),
        ("compute_major", c_int32),
        ("compute_minor", c_int32),
        ("threads", c_uint32),
        ("isa", c_uint32),
        ("name", c_char * 64),
        ("profile", c_char * 24),
        ("memory_reserved", c_uint64),
    ]


class stw_memory_holder(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("process", c_uint64),
        ("bytes", c_uint64),
        ("name", c_char * 64),
    ]


class stw_log_message(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("level", c_int32),
        ("number", c_uint64),
        ("component", c_char * 32),
        ("text", c_char * 224),
    ]


class stw_model_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("source", c_char_p),
        ("config_json", c_char_p),
        ("config_json_size", c_size_t),
        ("weights", c_char_p),
        ("seed", c_uint64),
        ("dropout", c_float),
        ("reserved", c_uint32),
        ("adapter", c_char_p),
        ("adapter_targets", c_char_p),
        ("adapter_rank", c_uint32),
        ("adapter_flags", c_uint32),
        ("adapter_alpha", c_float),
        ("adapter_dropout", c_float),
        ("label_names", POINTER(c_char_p)),
        ("label_count", c_size_t),
        ("task", c_uint32),
        ("new_head", c_uint32),
    ]


class stw_model_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("layers", c_uint32),
        ("parameters", c_uint64),
        ("trainable", c_uint64),
        ("vocabulary", c_uint64),
        ("positions", c_uint64),
        ("has_weights", c_uint32),
        ("width", c_uint32),
        ("architecture", c_char * 32),
        ("adapter_rank", c_uint32),
        ("has_codes", c_uint32),
        ("labels", c_uint64),
        ("padding_token", c_int64),
        ("generates", c_uint32),
        ("token_types", c_uint32),
        ("task", c_uint32),
        ("head_is_new", c_uint32),
        ("file_layers", c_uint64),
    ]


class stw_tensor_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("ndim", c_uint32),
        ("name", c_char_p),
        ("shape", c_int64 * 4),
        ("elements", c_uint64),
    ]


class stw_parameter_group(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("pattern", c_char_p),
        ("frozen", c_uint32),
        ("state_bits", c_uint32),
        ("learning_rate", c_double),
        ("weight_decay", c_double),
    ]


class stw_plan_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("memory_bytes", c_uint64),
        ("global_batch", c_uint64),
        ("sequence", c_uint64),
        ("device", c_char_p),
        ("device_memory", c_uint64),
        ("reserve_bytes", c_uint64),
        ("threads", c_uint32),
        ("precision", c_uint32),
        ("optimizer", c_uint32),
        ("state_bits", c_uint32),
        ("micro_batch", c_uint32),
        ("recompute", c_uint32),
        ("mode", c_uint32),
        ("inputs", c_uint32),
        ("host_bytes", c_uint64),
        ("profile", c_char_p),
        ("profile_size", c_size_t),
        ("groups", POINTER(stw_parameter_group)),
        ("group_count", c_size_t),
        ("master", c_uint32),
        ("kernels", c_uint32),
        ("gradients", c_uint32),
        ("fused_update", c_uint32),
        ("attention", c_uint32),
        ("quantize", c_uint32),
        ("quantize_embeddings", c_uint32),
        ("preference", c_uint32),
        ("watch", c_void_p),
        ("keep", c_uint32),
        ("gradient_hook", c_uint32),
        ("texts", c_uint64),
    ]


class stw_plan_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("fits", c_uint32),
        ("micro_batch", c_uint64),
        ("accumulation_steps", c_uint64),
        ("last_micro_batch", c_uint64),
        ("loss_chunks", c_uint64),
        ("global_batch", c_uint64),
        ("sequence", c_uint64),
        ("parameters", c_uint64),
        ("gradients", c_uint64),
        ("optimizer", c_uint64),
        ("saved_activations", c_uint64),
        ("transient", c_uint64),
        ("workspace", c_uint64),
        ("inputs", c_uint64),
        ("padding", c_uint64),
        ("arena", c_uint64),
        ("reserve", c_uint64),
        ("peak", c_uint64),
        ("budget", c_uint64),
        ("host", c_uint64),
        ("minimum_bytes", c_uint64),
        ("state_bits", c_uint32),
        ("precision", c_uint32),
        ("step_seconds", c_double),
        ("tokens_per_second", c_double),
        ("recompute_fraction", c_double),
        ("fingerprint", c_char * 20),
        ("proven", c_uint32),
        ("bound_seconds", c_double),
        ("unlimited_seconds", c_double),
        ("next_gib_seconds", c_double),
        ("copied_bytes", c_uint64),
        ("tiled_blocks", c_uint64),
        ("tile_rows", c_uint64),
        ("texts", c_uint64),
    ]


class stw_buffer_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("persistent", c_uint32),
        ("name", c_char_p),
        ("owner", c_char_p),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("first", c_uint32),
        ("last", c_uint32),
    ]


class stw_relaxation_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("changes_numerics", c_uint32),
        ("saves_bytes", c_uint64),
        ("costs_fraction", c_double),
        ("change", c_char * 64),
        ("fits", c_uint32),
        ("reserved", c_uint32),
        ("flags", c_char * 192),
        ("effect", c_char * 192),
        ("tokens_per_second", c_double),
        ("peak", c_uint64),
        ("host", c_uint64),
        ("least_host", c_uint64),
    ]


class stw_offload_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("outside_blocks", c_uint32),
        ("blocks", c_uint32),
        ("reserved", c_uint32),
        ("bytes", c_uint64),
        ("tensors", c_char_p),
    ]


class stw_frontier_point(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_knee", c_uint32),
        ("peak", c_uint64),
        ("micro_batch", c_uint64),
        ("loss_chunks", c_uint64),
        ("step_seconds", c_double),
        ("tokens_per_second", c_double),
    ]


class stw_profile_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("is_cuda", c_uint32),
        ("memory", c_uint64),
        ("reserve", c_uint64),
        ("gflops_fp32", c_uint64),
        ("gflops_bf16", c_uint64),
        ("gbytes_per_second", c_uint64),
        ("product_permille", c_uint32),
        ("stream_permille", c_uint32),
        ("launch_nanoseconds", c_uint64),
        ("name", c_char_p),
        ("title", c_char_p),
        ("source", c_char_p),
        ("host_gbytes_per_second", c_uint64),
        ("threads", c_uint32),
        ("precision", c_uint32),
        ("step_nanoseconds", c_uint64),
        ("kernels", c_uint32),
        ("reserved", c_uint32),
        ("watts", c_uint64),
        ("gflops_per_watt", c_uint64),
        ("mma_permille", c_uint32),
        ("wgmma_permille", c_uint32),
        ("attention_permille", c_uint32),
        ("wide_attention_permille", c_uint32),
        ("fp32_permille", c_uint32),
        ("reserved_end", c_uint32),
    ]


class stw_profile_op_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("permille", c_uint32),
        ("launch_nanoseconds", c_uint64),
        ("nanoseconds", c_uint64),
        ("name", c_char_p),
    ]


class stw_buffer_lifetime(Structure):
    _fields_ = [
        ("lower", c_int64),
        ("upper", c_int64),
        ("size", c_uint64),
    ]


class stw_buffer_gap(Structure):
    _fields_ = [
        ("lower", c_int64),
        ("upper", c_int64),
        ("first", c_uint64),
        ("end", c_uint64),
    ]


class stw_buffer_constraint(Structure):
    _fields_ = [
        ("alignment", c_uint64),
        ("offset", c_uint64),
        ("gaps", POINTER(stw_buffer_gap)),
        ("gap_count", c_uint32),
        ("set_mask", c_uint32),
    ]


class stw_pack_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("capacity", c_uint64),
        ("node_limit", c_uint64),
        ("constraints", POINTER(stw_buffer_constraint)),
    ]


class stw_pack_result(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("answer", c_uint32),
        ("height", c_uint64),
        ("bound", c_uint64),
        ("nodes", c_uint64),
    ]


class stw_dataset_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("tokenizer", c_uint32),
        ("path", c_char_p),
        ("vocabulary", c_uint64),
        ("sequence", c_uint64),
        ("seed", c_uint64),
        ("set_mask", c_uint32),
        ("pairs", c_uint32),
        ("document_end", c_uint64),
        ("marks", c_char_p),
        ("labels", c_char_p),
        ("label_count", c_uint64),
        ("held_out", c_double),
        ("reference", c_char_p),
        ("mask_rate", c_double),
        ("mask_token", c_uint64),
        ("token_kinds", POINTER(c_uint8)),
        ("mask_whole_words", c_uint32),
        ("task", c_uint32),
        ("sequential", c_uint32),
        ("token_type", c_uint32),
        ("watch", c_void_p),
        ("texts", c_uint64),
    ]


class stw_dataset_info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("tokenizer", c_uint32),
        ("training_tokens", c_uint64),
        ("evaluation_tokens", c_uint64),
        ("training_samples", c_uint64),
        ("evaluation_samples", c_uint64),
        ("content_hash", c_uint64),
    ]


class stw_trainer_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("seed", c_uint64),
        ("beta1", c_float),
        ("beta2", c_float),
        ("epsilon", c_float),
        ("weight_decay", c_float),
        ("clip_norm", c_float),
        ("nesterov", c_uint32),
        ("arena", c_void_p),
        ("arena_bytes", c_uint64),
        ("gradient_hook", stw_gradient_fn),
        ("gradient_user", c_void_p),
        ("momentum", c_float),
        ("label_smoothing", c_float),
        ("z_loss", c_float),
        ("outlier_limit", c_float),
        ("loss_scale", c_double),
        ("growth_interval", c_uint32),
        ("non_finite", c_uint32),
        ("beta", c_float),
        ("margin", c_float),
        ("answer_share", c_float),
        ("reserved", c_uint32),
        ("watch", c_void_p),
        ("first_sample", c_uint64),
    ]


class stw_batch(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("count", c_uint32),
        ("names", POINTER(c_char_p)),
        ("tensors", POINTER(c_void_p)),
        ("learning_rate", c_double),
    ]


class stw_step_result(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("skipped", c_uint32),
        ("step", c_uint64),
        ("loss", c_double),
        ("grad_norm", c_double),
        ("targets", c_uint64),
        ("seconds", c_double),
        ("loss_scale", c_double),
        ("skip_reason", c_uint32),
        ("reserved", c_uint32),
        ("accuracy", c_double),
    ]


class stw_run_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("set_mask", c_uint32),
        ("until", c_uint64),
        ("total", c_uint64),
        ("warmup", c_uint64),
        ("learning_rate", c_double),
        ("min_rate", c_double),
        ("schedule", c_uint32),
        ("progress_every", c_uint32),
        ("progress", stw_progress_fn),
        ("progress_user", c_void_p),
        ("decay_steps", c_uint64),
        ("base_batch", c_uint64),
    ]


class stw_generate_options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("top_k", c_uint32),
        ("prompt", POINTER(c_int32)),
        ("prompt_count", c_uint64),
        ("out", POINTER(c_int32)),
        ("out_capacity", c_uint64),
        ("temperature", c_double),
        ("seed", c_uint64),
        ("stop", POINTER(c_int32)),
        ("stop_count", c_uint64),
        ("top_p", c_double),
        ("set_mask", c_uint32),
        ("reserved", c_uint32),
    ]


FUNCTIONS = {   # name: (type of the result, types of the arguments)
    "stw_version": (c_uint32, []),
    "stw_build_info": (c_char_p, []),
    "stw_status_name": (c_char_p, [stw_status]),
    "stw_watch_create": (stw_status, [POINTER(c_void_p), POINTER(stw_watch_options), POINTER(stw_error)]),
    "stw_watch_destroy": (None, [c_void_p]),
    "stw_watch_cancel": (None, [c_void_p]),
    "stw_watch_query": (stw_status, [c_void_p, POINTER(stw_watch_info)]),
    "stw_device_at": (stw_status, [c_size_t, POINTER(stw_device_info), POINTER(stw_error)]),
    "stw_device_open": (stw_status, [POINTER(c_void_p), POINTER(stw_device_options), POINTER(stw_error)]),
    "stw_device_close": (None, [c_void_p]),
    "stw_device_query": (stw_status, [c_void_p, POINTER(stw_device_info)]),
    "stw_device_holder_at": (stw_status, [c_void_p, c_size_t, POINTER(stw_memory_holder)]),
    "stw_device_next_log": (stw_status, [c_void_p, c_uint64, POINTER(stw_log_message)]),
    "stw_model_create": (stw_status, [POINTER(c_void_p), POINTER(stw_model_options), POINTER(stw_error)]),
    "stw_model_destroy": (None, [c_void_p]),
    "stw_model_query": (stw_status, [c_void_p, POINTER(stw_model_info)]),
    "stw_model_tensor_count": (c_size_t, [c_void_p]),
    "stw_model_tensor_at": (stw_status, [c_void_p, c_size_t, POINTER(stw_tensor_info)]),
    "stw_model_tensor_find": (stw_status, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "stw_model_label_at": (c_char_p, [c_void_p, c_size_t]),
    "stw_model_config": (c_char_p, [c_void_p]),
    "stw_model_export": (stw_status, [c_void_p, c_char_p, POINTER(stw_error)]),
    "stw_model_export_watched": (stw_status, [c_void_p, c_char_p, c_void_p, POINTER(stw_error)]),
    "stw_model_preset_at": (c_char_p, [c_size_t]),
    "stw_plan_create": (stw_status, [POINTER(c_void_p), c_void_p, POINTER(stw_plan_options),
        POINTER(stw_error)]),
    "stw_plan_destroy": (None, [c_void_p]),
    "stw_plan_query": (stw_status, [c_void_p, POINTER(stw_plan_info)]),
    "stw_plan_json": (c_char_p, [c_void_p]),
    "stw_plan_report": (c_char_p, [c_void_p]),
    "stw_plan_load": (stw_status, [POINTER(c_void_p), c_void_p, c_char_p, c_size_t, POINTER(stw_error)]),
    "stw_plan_verify": (stw_status, [c_void_p, POINTER(stw_error)]),
    "stw_plan_relaxation_at": (stw_status, [c_void_p, c_size_t, POINTER(stw_relaxation_info)]),
    "stw_plan_offload_at": (stw_status, [c_void_p, c_size_t, POINTER(stw_offload_info)]),
    "stw_plan_frontier": (stw_status, [c_void_p, POINTER(stw_frontier_point), c_size_t, POINTER(c_size_t),
        POINTER(stw_error)]),
    "stw_plan_frontier_watched": (stw_status, [c_void_p, POINTER(stw_frontier_point), c_size_t,
        POINTER(c_size_t), c_void_p, POINTER(stw_error)]),
    "stw_plan_longest_sequence": (stw_status, [c_void_p, POINTER(stw_plan_options), POINTER(c_uint64),
        POINTER(stw_error)]),
    "stw_profile_at": (stw_status, [c_size_t, POINTER(stw_profile_info)]),
    "stw_profile_read": (stw_status, [c_char_p, c_size_t, POINTER(stw_profile_info), POINTER(stw_error)]),
    "stw_profile_op_at": (stw_status, [c_char_p, c_size_t, c_size_t, POINTER(stw_profile_op_info)]),
    "stw_plan_picture": (stw_status, [c_void_p, c_uint32, c_char_p, c_size_t, POINTER(c_size_t),
        POINTER(stw_error)]),
    "stw_plan_picture_watched": (stw_status, [c_void_p, c_uint32, c_char_p, c_size_t, POINTER(c_size_t),
        c_void_p, POINTER(stw_error)]),
    "stw_plan_buffer_count": (c_size_t, [c_void_p]),
    "stw_plan_buffer_at": (stw_status, [c_void_p, c_size_t, POINTER(stw_buffer_info)]),
    "stw_pack": (stw_status, [POINTER(c_uint64), POINTER(stw_buffer_lifetime), c_size_t,
        POINTER(stw_pack_options), POINTER(stw_pack_result), POINTER(stw_error)]),
    "stw_dataset_open": (stw_status, [POINTER(c_void_p), POINTER(stw_dataset_options), POINTER(stw_error)]),
    "stw_dataset_close": (None, [c_void_p]),
    "stw_dataset_query": (stw_status, [c_void_p, POINTER(stw_dataset_info)]),
    "stw_trainer_create": (stw_status, [POINTER(c_void_p), c_void_p, c_void_p, c_void_p,
        POINTER(stw_trainer_options), POINTER(stw_error)]),
    "stw_trainer_destroy": (None, [c_void_p]),
    "stw_trainer_step": (stw_status, [c_void_p, POINTER(stw_batch), POINTER(stw_error)]),
    "stw_trainer_wait": (stw_status, [c_void_p, POINTER(stw_step_result), POINTER(stw_error)]),
    "stw_trainer_run": (stw_status, [c_void_p, c_void_p, POINTER(stw_run_options), POINTER(stw_error)]),
    "stw_trainer_evaluate": (stw_status, [c_void_p, c_void_p, c_uint64, POINTER(c_double),
        POINTER(stw_error)]),
    "stw_trainer_generate": (stw_status, [c_void_p, POINTER(stw_generate_options), POINTER(c_uint64),
        POINTER(stw_error)]),
    "stw_trainer_logits": (stw_status, [c_void_p, POINTER(c_int32), c_uint64, POINTER(c_float), c_uint64,
        POINTER(stw_error)]),
    "stw_trainer_classify": (stw_status, [c_void_p, POINTER(c_int32), POINTER(c_int32), POINTER(c_uint64),
        c_uint64, POINTER(c_float), c_uint64, POINTER(stw_error)]),
    "stw_trainer_log_probabilities": (stw_status, [c_void_p, POINTER(stw_batch), POINTER(c_float), c_uint64,
        POINTER(stw_error)]),
    "stw_trainer_write_reference": (stw_status, [c_void_p, c_void_p, c_char_p, POINTER(stw_error)]),
    "stw_trainer_replan": (stw_status, [c_void_p, c_uint64, POINTER(c_void_p), POINTER(stw_error)]),
    "stw_trainer_calibrate": (stw_status, [c_void_p, c_char_p, c_size_t, POINTER(c_size_t),
        POINTER(stw_error)]),
    "stw_trainer_timeline": (stw_status, [c_void_p, c_char_p, POINTER(stw_error)]),
    "stw_trainer_cancel": (None, [c_void_p]),
    "stw_trainer_progress": (stw_status, [c_void_p, POINTER(stw_progress)]),
    "stw_trainer_stream": (c_void_p, [c_void_p]),
    "stw_trainer_export_tensor": (stw_status, [c_void_p, c_size_t, c_uint32, POINTER(c_void_p),
        POINTER(stw_error)]),
    "stw_trainer_import_tensor": (stw_status, [c_void_p, c_size_t, c_void_p, POINTER(stw_error)]),
    "stw_trainer_save": (stw_status, [c_void_p, c_char_p, POINTER(stw_error)]),
    "stw_trainer_restore": (stw_status, [c_void_p, c_char_p, POINTER(stw_error)]),
    "stw_checkpoint_verify": (stw_status, [c_char_p, POINTER(stw_error)]),
    "stw_trainer_export_model": (stw_status, [c_void_p, c_char_p, POINTER(stw_error)]),
}
