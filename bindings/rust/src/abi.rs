//! The C API as Rust sees it: made by generate_abi.py of include/stowage.h, not by hand.
#![allow(non_camel_case_types)]
use crate::text::Text;
use std::os::raw::{c_char, c_void};

pub type stw_status = i32;
pub const STW_VERSION_MAJOR: u32 = 0;
pub const STW_VERSION_MINOR: u32 = 1;
pub const STW_VERSION_PATCH: u32 = 0;
pub const STW_OK: stw_status = 0;
pub const STW_BAD_ARGUMENT: stw_status = 1000;
pub const STW_BAD_STRUCT_SIZE: stw_status = 1001;
pub const STW_BAD_STATE: stw_status = 1002;
pub const STW_UNSUPPORTED: stw_status = 2000;
pub const STW_UNSUPPORTED_FIELD: stw_status = 2001;
pub const STW_UNSUPPORTED_SHAPE: stw_status = 2002;
pub const STW_OUT_OF_MEMORY: stw_status = 3000;
pub const STW_OVER_BUDGET: stw_status = 3001;
pub const STW_HOST_OUT_OF_MEMORY: stw_status = 3002;
pub const STW_DEVICE_ERROR: stw_status = 4000;
pub const STW_DEVICE_LOST: stw_status = 4001;
pub const STW_IO_ERROR: stw_status = 5000;
pub const STW_CORRUPT: stw_status = 5001;
pub const STW_CANCELLED: stw_status = 6000;
pub const STW_CALLBACK_FAILED: stw_status = 6001;
pub const STW_NUMERIC: stw_status = 7000;
pub const STW_NON_FINITE: stw_status = 7001;
pub const STW_INTERNAL: stw_status = 9000;
pub const STW_WORK_NONE: u32 = 0;
pub const STW_WORK_PLAN: u32 = 1;
pub const STW_WORK_OPEN_DATASET: u32 = 2;
pub const STW_WORK_CREATE_TRAINER: u32 = 3;
pub const STW_WORK_STEP: u32 = 4;
pub const STW_WORK_EVALUATE: u32 = 5;
pub const STW_WORK_GENERATE: u32 = 6;
pub const STW_WORK_CALIBRATE: u32 = 7;
pub const STW_WORK_SAVE: u32 = 8;
pub const STW_WORK_RESTORE: u32 = 9;
pub const STW_WORK_EXPORT: u32 = 10;
pub const STW_UNIT_NONE: u32 = 0;
pub const STW_UNIT_BYTES: u32 = 1;
pub const STW_UNIT_MICRO_STEPS: u32 = 2;
pub const STW_UNIT_SAMPLES: u32 = 3;
pub const STW_SET_INTERVAL: u32 = 1;
pub const STW_BACKEND_AUTO: u32 = 0;
pub const STW_BACKEND_CPU: u32 = 1;
pub const STW_BACKEND_CUDA: u32 = 2;
pub const STW_LOG_ERROR: u32 = 1;
pub const STW_LOG_WARNING: u32 = 2;
pub const STW_LOG_INFO: u32 = 3;
pub const STW_ISA_AUTO: u32 = 0;
pub const STW_ISA_SCALAR: u32 = 1;
pub const STW_ISA_AVX2: u32 = 2;
pub const STW_ISA_AVX512: u32 = 3;
pub const STW_ISA_NEON: u32 = 4;
pub const STW_SET_DROPOUT: u32 = 1;
pub const STW_SET_MODEL_SEED: u32 = 2;
pub const STW_ADAPTER_RANK_STABILISED: u32 = 1;
pub const STW_TASK_AUTOMATIC: u32 = 0;
pub const STW_TASK_LANGUAGE_MODEL: u32 = 1;
pub const STW_TASK_MASKED_LANGUAGE_MODEL: u32 = 2;
pub const STW_TASK_LABEL: u32 = 3;
pub const STW_TASK_LABELS: u32 = 4;
pub const STW_TASK_NUMBER: u32 = 5;
pub const STW_TASK_TOKEN_LABEL: u32 = 6;
pub const STW_PRECISION_DEFAULT: u32 = 0;
pub const STW_PRECISION_FP32: u32 = 1;
pub const STW_PRECISION_BF16: u32 = 2;
pub const STW_PRECISION_FP16: u32 = 3;
pub const STW_OPTIMIZER_ADAMW: u32 = 0;
pub const STW_OPTIMIZER_SGD: u32 = 1;
pub const STW_OPTIMIZER_LION: u32 = 2;
pub const STW_OPTIMIZER_MUON: u32 = 3;
pub const STW_OPTIMIZER_ADAFACTOR: u32 = 4;
pub const STW_STATES_AUTO: u32 = 0;
pub const STW_STATES_32: u32 = 32;
pub const STW_STATES_8: u32 = 8;
pub const STW_MASTER_EXACT: u32 = 0;
pub const STW_MASTER_SPLIT8: u32 = 1;
pub const STW_MASTER_STOCHASTIC: u32 = 2;
pub const STW_GRADIENTS_FP32: u32 = 0;
pub const STW_GRADIENTS_BF16: u32 = 1;
pub const STW_KERNELS_AUTO: u32 = 0;
pub const STW_KERNELS_PORTABLE: u32 = 1;
pub const STW_KERNELS_TENSOR: u32 = 2;
pub const STW_KERNELS_CUBLASLT: u32 = 3;
pub const STW_KERNELS_WGMMA: u32 = 4;
pub const STW_KERNELS_CUBLASLT_WGMMA: u32 = 5;
pub const STW_ATTENTION_OWN: u32 = 0;
pub const STW_ATTENTION_CUDNN: u32 = 1;
pub const STW_QUANTIZE_AUTO: u32 = 0;
pub const STW_QUANTIZE_NONE: u32 = 1;
pub const STW_QUANTIZE_NF4: u32 = 2;
pub const STW_QUANTIZE_INT8: u32 = 3;
pub const STW_PREFERENCE_NONE: u32 = 0;
pub const STW_PREFERENCE_DPO: u32 = 1;
pub const STW_PREFERENCE_IPO: u32 = 2;
pub const STW_PREFERENCE_SIMPO: u32 = 3;
pub const STW_PREFERENCE_ORPO: u32 = 4;
pub const STW_MODE_EXACT: u32 = 0;
pub const STW_MODE_FAST: u32 = 1;
pub const STW_SET_RESERVE: u32 = 1;
pub const STW_INPUT_POSITIONS: u32 = 1;
pub const STW_INPUT_WEIGHTS: u32 = 2;
pub const STW_RECOMPUTE_AUTO: u32 = 0;
pub const STW_RECOMPUTE_NONE: u32 = 1;
pub const STW_RECOMPUTE_FULL: u32 = 2;
pub const STW_SET_GROUP_FROZEN: u32 = 1;
pub const STW_SET_GROUP_RATE: u32 = 2;
pub const STW_SET_GROUP_DECAY: u32 = 4;
pub const STW_SET_GROUP_STATES: u32 = 8;
pub const STW_PICTURE_SVG: u32 = 0;
pub const STW_PICTURE_HTML: u32 = 1;
pub const STW_PICTURE_CSV: u32 = 2;
pub const STW_SET_OFFSET: u32 = 1;
pub const STW_PACK_OPTIMAL: u32 = 0;
pub const STW_PACK_FITS: u32 = 1;
pub const STW_PACK_IMPOSSIBLE: u32 = 2;
pub const STW_PACK_UNKNOWN: u32 = 3;
pub const STW_TOKENIZER_AUTO: u32 = 0;
pub const STW_TOKENIZER_BYTE: u32 = 1;
pub const STW_TOKENIZER_IDS: u32 = 2;
pub const STW_TOKEN_TYPE_AUTO: u32 = 0;
pub const STW_TOKEN_TYPE_UINT16: u32 = 1;
pub const STW_TOKEN_TYPE_UINT32: u32 = 2;
pub const STW_TOKEN_TYPE_INT32: u32 = 3;
pub const STW_TOKEN_TYPE_INT64: u32 = 4;
pub const STW_SET_DOCUMENT_END: u32 = 1;
pub const STW_SET_HELD_OUT: u32 = 2;
pub const STW_SET_DATASET_SEED: u32 = 4;
pub const STW_MARK_TARGET: u32 = 1;
pub const STW_MARK_BEGIN: u32 = 2;
pub const STW_MARK_SECOND: u32 = 4;
pub const STW_TOKEN_SPECIAL: u32 = 1;
pub const STW_TOKEN_CONTINUES: u32 = 2;
pub const STW_PHASE_IDLE: u32 = 0;
pub const STW_PHASE_TRAIN: u32 = 1;
pub const STW_PHASE_EVALUATE: u32 = 2;
pub const STW_PHASE_GENERATE: u32 = 3;
pub const STW_PHASE_SAVE: u32 = 4;
pub const STW_PHASE_CALIBRATE: u32 = 5;
pub const STW_SKIP_NONE: u32 = 0;
pub const STW_SKIP_NO_TARGET: u32 = 1;
pub const STW_SKIP_NOT_FINITE: u32 = 2;
pub const STW_SKIP_OUTLIER: u32 = 3;
pub const STW_SET_WEIGHT_DECAY: u32 = 1;
pub const STW_SET_CLIP_NORM: u32 = 2;
pub const STW_SET_BETA1: u32 = 4;
pub const STW_SET_BETA2: u32 = 8;
pub const STW_SET_MOMENTUM: u32 = 16;
pub const STW_SET_MARGIN: u32 = 32;
pub const STW_SET_TRAINER_SEED: u32 = 64;
pub const STW_NON_FINITE_SKIP: u32 = 0;
pub const STW_NON_FINITE_STOP: u32 = 1;
pub const STW_SCHEDULE_COSINE: u32 = 0;
pub const STW_SCHEDULE_LINEAR: u32 = 1;
pub const STW_SCHEDULE_CONSTANT: u32 = 2;
pub const STW_SCHEDULE_WSD: u32 = 3;
pub const STW_SCHEDULE_INVERSE_ROOT: u32 = 4;
pub const STW_SET_MIN_RATE: u32 = 1;
pub const STW_SET_GENERATE_SEED: u32 = 1;
pub const STW_PROFILE_BYTES: u32 = 16384;
pub const STW_TENSOR_PARAMETER: u32 = 0;
pub const STW_TENSOR_GRADIENT: u32 = 1;
pub const STW_TENSOR_FIRST_MOMENT: u32 = 2;
pub const STW_TENSOR_SECOND_MOMENT: u32 = 3;

#[repr(C)]
pub struct stw_device {
    _private: [u8; 0],
    _shared_only_as_the_header_says: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_model {
    _private: [u8; 0],
    _shared_only_as_the_header_says: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_plan {
    _private: [u8; 0],
    _shared_only_as_the_header_says: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_dataset {
    _private: [u8; 0],
    _shared_only_as_the_header_says: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_trainer {
    _private: [u8; 0],
    _shared_only_as_the_header_says: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_watch {
    _private: [u8; 0],
    _shared_only_as_the_header_says: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

pub use crate::dlpack::DLManagedTensorVersioned;

pub type stw_watch_fn = Option<unsafe extern "C" fn(user: *mut c_void, now: *const stw_watch_info) -> i32>;

pub type stw_log_fn = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, component: *const c_char, message: *const c_char)>;

pub type stw_allocate_fn = Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment: usize, stream: *mut c_void) -> *mut c_void>;

pub type stw_release_fn = Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, bytes: usize, stream: *mut c_void)>;

pub type stw_run_fn = Option<unsafe extern "C" fn(user: *mut c_void, tasks: u32, task: Option<unsafe extern "C" fn(context: *mut c_void, index: u32)>, context: *mut c_void)>;

pub type stw_progress_fn = Option<unsafe extern "C" fn(user: *mut c_void, now: *const stw_progress) -> i32>;

pub type stw_gradient_fn = Option<unsafe extern "C" fn(user: *mut c_void, gradients: *const stw_gradients) -> i32>;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_error {
    pub struct_size: u32,
    pub status: stw_status,
    /// errno or cudaError\_t, else 0
    pub native_code: i32,
    pub reserved: u32,
    /// 3xxx
    pub bytes_needed: u64,
    /// 3xxx
    pub bytes_available: u64,
    /// one line
    pub message: Text<480>,
}

impl Default for stw_error {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_watch_info {
    pub struct_size: u32,
    /// STW\_WORK\_\*
    pub work: u32,
    /// STW\_UNIT\_\*
    pub unit: u32,
    pub reserved: u32,
    /// of \`unit\`; where nothing is under way, of the last call
    pub done: u64,
    /// 0: unknown
    pub total: u64,
    /// of the whole, 0 to 1; within a micro-step it follows the ops (CPU). 0 where the total is unknown
    pub share: f64,
}

impl Default for stw_watch_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stw_watch_options {
    pub struct_size: u32,
    /// STW\_SET\_INTERVAL
    pub set_mask: u32,
    /// NULL: the host polls by stw\_watch\_query, or only cancels
    pub notify: stw_watch_fn,
    pub user: *mut c_void,
    /// between two calls of \`notify\`; a call that takes no longer is not told of. Unset: 100; 0: after every piece
    pub interval_milliseconds: u32,
    pub reserved: u32,
}

impl Default for stw_watch_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stw_device_options {
    pub struct_size: u32,
    /// STW\_BACKEND\_\*; auto: CUDA where there is one, else the CPU
    pub backend: u32,
    /// of several CUDA devices
    pub ordinal: i32,
    /// CPU: threads that compute, the caller's included; 0: one for each processor. CUDA: that draw random weights or quantize, while a trainer is created or calibrated
    pub threads: u32,
    /// CPU: STW\_ISA\_\*; auto: the widest that runs here. No bit depends on it.
    pub isa: u32,
    /// 0: STW\_LOG\_WARNING
    pub log_level: i32,
    /// CUDA: the host's stream, of the device's primary context; NULL: one of the library's
    pub stream: *mut c_void,
    pub log: stw_log_fn,
    pub log_user: *mut c_void,
    /// both or none
    pub allocate: stw_allocate_fn,
    pub release: stw_release_fn,
    pub memory_user: *mut c_void,
    /// NULL: a pool of the library's that sleeps when idle
    pub run: stw_run_fn,
    pub run_user: *mut c_void,
    /// CUDA: the path of a libcublasLt.so.13, for STW\_KERNELS\_CUBLASLT; NULL: what the system finds. Copied.
    pub cublaslt: *const c_char,
    /// CUDA: the path of a libcudnn.so.9 (9.15.1 on), for STW\_ATTENTION\_CUDNN; the same
    pub cudnn: *const c_char,
}

impl Default for stw_device_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_device_info {
    pub struct_size: u32,
    pub backend: u32,
    /// bytes
    pub memory_total: u64,
    /// CPU: what the system says is available; CUDA: 0 in stw\_device\_at
    pub memory_free: u64,
    /// CUDA
    pub compute_major: i32,
    /// CUDA
    pub compute_minor: i32,
    /// CPU
    pub threads: u32,
    /// CPU
    pub isa: u32,
    pub name: Text<64>,
    /// of the embedded profiles the one to plan with: stw\_plan\_options.device
    pub profile: Text<24>,
    /// CUDA: what the open device's context has taken already of what a plan's reserve counts, up to three quarters of that; 0 where the driver does not tell, and in stw\_device\_at
    pub memory_reserved: u64,
}

impl Default for stw_device_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_memory_holder {
    pub struct_size: u32,
    pub reserved: u32,
    /// its number, as the system knows it; a container may see another one
    pub process: u64,
    pub bytes: u64,
    /// of the program, "" where that is unknown; cut where it is longer
    pub name: Text<64>,
}

impl Default for stw_memory_holder {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_log_message {
    pub struct_size: u32,
    /// STW\_LOG\_\*
    pub level: i32,
    /// 1, 2, ... in the order they were written; 0: there is none
    pub number: u64,
    pub component: Text<32>,
    /// cut where it is longer
    pub text: Text<224>,
}

impl Default for stw_log_message {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_model_options {
    pub struct_size: u32,
    pub set_mask: u32,
    /// a folder with config.json, a config.json, or the name of a preset such as "nano"
    pub source: *const c_char,
    /// instead of source: the text of a config.json; not terminated, config\_json\_size bytes
    pub config_json: *const c_char,
    pub config_json_size: usize,
    /// a .safetensors file, or a folder with one or with an index (of several files without an index the one named model.safetensors); NULL: those of the source folder if it has any, else random values drawn from \`seed\`
    pub weights: *const c_char,
    /// unset: 1337
    pub seed: u64,
    /// replaces all rates of the config; unset: those
    pub dropout: f32,
    pub reserved: u32,
    /// a folder of adapters to go on with, for the model in \`source\`; NULL: none
    pub adapter: *const c_char,
    /// new ones: which matrices have one: the last parts of their modules' names, such as "q\_proj,v\_proj", or "all-linear"; NULL: all-linear
    pub adapter_targets: *const c_char,
    /// new ones: rows of A and columns of B; 0: no new ones. A is drawn from \`seed\`, B is 0
    pub adapter_rank: u32,
    /// STW\_ADAPTER\_RANK\_STABILISED: scale = alpha / sqrt(rank)
    pub adapter_flags: u32,
    /// scale = alpha / rank; 0: twice the rank
    pub adapter_alpha: f32,
    /// of what A reads, while it is trained
    pub adapter_dropout: f32,
    /// label\_count of them, UTF-8, no two alike; NULL: the model's own, else "LABEL\_0", "LABEL\_1", ...
    pub label_names: *const *const c_char,
    /// 0: as the config says; else 2 (for LABELS and NUMBER 1) to 1,048,576, and what the model has already
    pub label_count: usize,
    /// STW\_TASK\_\*. One with labels needs label\_count where the config has no labels. A config that says its task (problem\_type) has that one. MASKED\_LANGUAGE\_MODEL is for encoders (transformers' ...ForMaskedLM): what the weights lack of its head is drawn from \`seed\` where the config is not of such a model, and a head for next sentences (BertForPreTraining) is left out. LANGUAGE\_MODEL is the body of an encoder
    pub task: u32,
    pub reserved_end: u32,
}

impl Default for stw_model_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_model_info {
    pub struct_size: u32,
    pub layers: u32,
    /// tied ones counted once
    pub parameters: u64,
    pub trainable: u64,
    pub vocabulary: u64,
    /// longest sequence
    pub positions: u64,
    /// 1: read from files; 0: drawn from the seed
    pub has_weights: u32,
    pub width: u32,
    /// its model\_type: "gpt2", "llama", "gemma3\_text", …
    pub architecture: Text<32>,
    /// 0: there are no adapters
    pub adapter_rank: u32,
    /// 1: its files hold matrices in 4 bits, as bitsandbytes makes them (nf4, also with nested scales)
    pub has_codes: u32,
    /// of a classifier; 0: a language model
    pub labels: u64,
    /// of the config: transformers takes what stands at a text's end and is this token for padding, and looks at the last token before it; -1: none
    pub padding_token: i64,
    /// 1: continues texts, and attends to no later token; 0: an encoder, which reads a text as a whole
    pub generates: u32,
    /// types of tokens that the model tells apart, such as those of a first and of a second text; 0: none
    pub token_types: u32,
    /// STW\_TASK\_\*; an encoder of STW\_TASK\_LANGUAGE\_MODEL has no head, and is trained with a task that gives it one
    pub task: u32,
    /// 1: weights were read from files, and of the head some were drawn from the seed
    pub head_is_new: u32,
}

impl Default for stw_model_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_tensor_info {
    pub struct_size: u32,
    pub ndim: u32,
    /// as in the weight files; lives as long as the model
    pub name: *const c_char,
    pub shape: [i64; 4],
    pub elements: u64,
}

impl Default for stw_tensor_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_parameter_group {
    pub struct_size: u32,
    /// STW\_SET\_GROUP\_\*: zeros that the group means; what is unset stays as it is
    pub set_mask: u32,
    pub pattern: *const c_char,
    /// 1: frozen; 0: trained, although a group before it says otherwise
    pub frozen: u32,
    /// 32 or 8, although the others have 8 or 32; embeddings and tensors of less than 4096 elements keep 32
    pub state_bits: u32,
    /// a factor of the run's
    pub learning_rate: f64,
    /// instead of the trainer's, and of none for norms and biases
    pub weight_decay: f64,
}

impl Default for stw_parameter_group {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_plan_options {
    pub struct_size: u32,
    /// STW\_SET\_RESERVE
    pub set_mask: u32,
    /// bounds the peak, as in stw\_trainer\_replan; 0: all that the device has: device\_memory, or the profile's, or for a CPU what is available on this machine now
    pub memory_bytes: u64,
    /// samples of one optimizer step; required
    pub global_batch: u64,
    /// tokens of a sample; 0: the model's positions, at most 1024
    pub sequence: u64,
    /// "cpu", or a profile's name such as "rtx4090"; NULL: "cpu"
    pub device: *const c_char,
    /// bytes that are free there now: of a device that is open, memory\_free + memory\_reserved; 0: as memory\_bytes says
    pub device_memory: u64,
    /// taken off for what lies outside the arena; unset: the profile's (CPU: none)
    pub reserve_bytes: u64,
    /// CPU: threads that will compute (scratch memory depends on it); 0: one a processor
    pub threads: u32,
    /// default: fp32 on the CPU, bf16 elsewhere
    pub precision: u32,
    pub optimizer: u32,
    /// STW\_STATES\_AUTO: 32 unless that does not fit or costs more than 10 % of the speed; AdamW and Lion have 8, for tensors of 4096 elements and more that are no embeddings
    pub state_bits: u32,
    /// 0: chosen
    pub micro_batch: u32,
    /// STW\_RECOMPUTE\_\*
    pub recompute: u32,
    /// STW\_MODE\_\*: fast gives up contract E3 (the split into micro-batches changes no bit) where kernels have a faster way: CUDA devices with STW\_KERNELS\_CUBLASLT, which is the default there then, or STW\_KERNELS\_CUBLASLT\_WGMMA; other plans stay exact
    pub mode: u32,
    /// STW\_INPUT\_\*: what batches may bring beside tokens, targets and lengths
    pub inputs: u32,
    /// of host memory for what is offloaded; 0: nothing is
    pub host_bytes: u64,
    /// what stw\_trainer\_calibrate wrote; NULL: the device's embedded profile. A \`device\` that is NULL is then the profile's, another one than the profile's is refused.
    pub profile: *const c_char,
    /// bytes of it, a zero byte at the end not counted
    pub profile_size: usize,
    /// an array; of groups that name the same parameter later ones win. All have the struct\_size of the first one.
    pub groups: *const stw_parameter_group,
    pub group_count: usize,
    /// STW\_MASTER\_\*: what bf16 keeps of the fp32 value of a trained parameter
    pub master: u32,
    /// STW\_KERNELS\_\*: part of what a checkpoint must agree with
    pub kernels: u32,
    /// STW\_GRADIENTS\_\*
    pub gradients: u32,
    /// 1: parameters of blocks are updated inside the backward pass, which keeps no gradients of them. The same bits as without clipping, but: the micro-batch is the global batch; no fp16, no gradients in bf16, no host memory, no gradient hook, clip\_norm 0, no skipping of outliers; and a gradient that is not finite ends the run (STW\_NON\_FINITE) with parameters half updated: restore a checkpoint
    pub fused_update: u32,
    /// STW\_ATTENTION\_\*: part of what a checkpoint must agree with
    pub attention: u32,
    /// STW\_QUANTIZE\_\*: the same
    pub quantize: u32,
    /// STW\_QUANTIZE\_INT8: so are the table that tokens look up and the head (not that of positions), for models with adapters, whatever their files have; auto: none. The same
    pub quantize_embeddings: u32,
    /// STW\_PREFERENCE\_\*: the same
    pub preference: u32,
    /// of this call; NULL: none
    pub watch: *mut stw_watch,
}

impl Default for stw_plan_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_plan_info {
    pub struct_size: u32,
    /// 0: nothing fits; minimum\_bytes says what would
    pub fits: u32,
    pub micro_batch: u64,
    pub accumulation_steps: u64,
    pub last_micro_batch: u64,
    pub loss_chunks: u64,
    pub global_batch: u64,
    pub sequence: u64,
    pub parameters: u64,
    pub gradients: u64,
    pub optimizer: u64,
    pub saved_activations: u64,
    pub transient: u64,
    pub workspace: u64,
    pub inputs: u64,
    pub padding: u64,
    /// what a trainer allocates
    pub arena: u64,
    /// peak = arena + reserve
    pub reserve: u64,
    /// peak = arena + reserve
    pub peak: u64,
    pub budget: u64,
    /// host memory that a trainer allocates besides, for what is offloaded
    pub host: u64,
    /// smallest memory\_bytes that works with these options
    pub minimum_bytes: u64,
    pub state_bits: u32,
    pub precision: u32,
    /// predicted
    pub step_seconds: f64,
    /// predicted
    pub tokens_per_second: f64,
    /// predicted
    pub recompute_fraction: f64,
    /// 16 hexadecimal digits: XXH3-64 of the plan
    pub fingerprint: Text<20>,
    /// 1: no plan of these numerics is faster within the budget, by the cost model
    pub proven: u32,
    /// none is faster than this
    pub bound_seconds: f64,
    /// nor than this within any budget
    pub unlimited_seconds: f64,
    /// with one GiB more and the same state format
    pub next_gib_seconds: f64,
    /// of a step, from host memory to the device and back
    pub copied_bytes: u64,
    /// blocks whose feed-forward part runs in tiles of rows
    pub tiled_blocks: u64,
    /// the fewest that a block's tiles are planned with; 0: no block has tiles
    pub tile_rows: u64,
}

impl Default for stw_plan_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_buffer_info {
    pub struct_size: u32,
    /// 1: lives for ever, first and last are 0
    pub persistent: u32,
    /// of the tensor; lives as long as the plan
    pub name: *const c_char,
    /// "parameters", "gradients", ...
    pub owner: *const c_char,
    /// in the arena
    pub offset: u64,
    /// in the arena
    pub bytes: u64,
    /// instructions of the micro-step's program, both included
    pub first: u32,
    /// instructions of the micro-step's program, both included
    pub last: u32,
}

impl Default for stw_buffer_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_relaxation_info {
    pub struct_size: u32,
    /// 1: the trained bits would be others
    pub changes_numerics: u32,
    /// of the smallest peak; with host memory that is enough: what the plan within the budget takes less
    pub saves_bytes: u64,
    /// of the step time at the smallest peak, negative: faster; within the budget where it fits, else at its own smallest peak
    pub costs_fraction: f64,
    /// the settings to change: "states 8", "host\_memory 1048576" (bytes), ...; stowage.h lists them
    pub change: Text<64>,
    /// 1: it is enough by itself
    pub fits: u32,
    pub reserved: u32,
}

impl Default for stw_relaxation_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_offload_info {
    pub struct_size: u32,
    /// 1: also what belongs to parameters outside of blocks
    pub outside_blocks: u32,
    /// of the first so many blocks
    pub blocks: u32,
    pub reserved: u32,
    /// in host memory
    pub bytes: u64,
    /// "optimizer", "masters", "gradients", "weights" or "inputs" (of blocks); lives for ever
    pub tensors: *const c_char,
}

impl Default for stw_offload_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_frontier_point {
    pub struct_size: u32,
    /// 1: from here on more memory brings much less
    pub is_knee: u32,
    /// the smallest budget that gets this plan
    pub peak: u64,
    pub micro_batch: u64,
    pub loss_chunks: u64,
    pub step_seconds: f64,
    pub tokens_per_second: f64,
}

impl Default for stw_frontier_point {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_profile_info {
    pub struct_size: u32,
    pub is_cuda: u32,
    /// bytes; 0: the machine's own
    pub memory: u64,
    /// bytes; 0: the machine's own
    pub reserve: u64,
    /// peak, fp32 accumulation; CPU: of one thread
    pub gflops_fp32: u64,
    /// peak, fp32 accumulation; CPU: of one thread
    pub gflops_bf16: u64,
    /// of memory
    pub gbytes_per_second: u64,
    /// share of the peak that matrix products reach
    pub product_permille: u32,
    /// share of the bandwidth that streaming ops reach
    pub stream_permille: u32,
    /// of every op
    pub launch_nanoseconds: u64,
    /// live for ever
    pub name: *const c_char,
    /// live for ever
    pub title: *const c_char,
    /// live for ever
    pub source: *const c_char,
    /// to host memory and back, in each direction
    pub host_gbytes_per_second: u64,
    /// a calibrated one: that computed while it was measured; else 0
    pub threads: u32,
    /// a calibrated one: STW\_PRECISION\_\* of what was measured; else 0
    pub precision: u32,
    /// a calibrated one: measured, a step of the plan that was timed; else 0
    pub step_nanoseconds: u64,
    /// a calibrated one: STW\_KERNELS\_\* of what was measured; else 0
    pub kernels: u32,
    pub reserved: u32,
}

impl Default for stw_profile_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_profile_op_info {
    pub struct_size: u32,
    /// of the peak that bounds the op, arithmetic or bandwidth; above 1000 in caches
    pub permille: u32,
    /// of every op of the kind
    pub launch_nanoseconds: u64,
    /// measured, of all ops of the kind in the step that was timed
    pub nanoseconds: u64,
    /// of the kind; lives for ever
    pub name: *const c_char,
}

impl Default for stw_profile_op_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_buffer_lifetime {
    /// alive in \[lower, upper), in any unit of time; upper == lower takes no space
    pub lower: i64,
    /// alive in \[lower, upper), in any unit of time; upper == lower takes no space
    pub upper: i64,
    /// bytes
    pub size: u64,
}

impl Default for stw_buffer_lifetime {
    /// Zero, but for its size.
    fn default() -> Self {
        let made: Self = unsafe { std::mem::zeroed() };
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_buffer_gap {
    pub lower: i64,
    pub upper: i64,
    /// end is at most the buffer's size
    pub first: u64,
    /// end is at most the buffer's size
    pub end: u64,
}

impl Default for stw_buffer_gap {
    /// Zero, but for its size.
    fn default() -> Self {
        let made: Self = unsafe { std::mem::zeroed() };
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_buffer_constraint {
    /// its offset is a multiple of it; 0: 1
    pub alignment: u64,
    /// with STW\_SET\_OFFSET: its offset
    pub offset: u64,
    /// gap\_count of them, which do not overlap
    pub gaps: *const stw_buffer_gap,
    pub gap_count: u32,
    /// STW\_SET\_OFFSET
    pub set_mask: u32,
}

impl Default for stw_buffer_constraint {
    /// Zero, but for its size.
    fn default() -> Self {
        let made: Self = unsafe { std::mem::zeroed() };
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_pack_options {
    pub struct_size: u32,
    /// reserved, 0
    pub set_mask: u32,
    /// bytes to fit into; 0: as low as possible
    pub capacity: u64,
    /// decisions that the search may take, some microseconds each; 0: 1,000,000
    pub node_limit: u64,
    /// of the buffers, as many; NULL: none. With them the exact search is one for a few dozen buffers
    pub constraints: *const stw_buffer_constraint,
}

impl Default for stw_pack_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_pack_result {
    pub struct_size: u32,
    /// STW\_PACK\_\*
    pub answer: u32,
    /// largest offset + size of the lowest placement found, within the capacity or not
    pub height: u64,
    /// proven: no placement is lower
    pub bound: u64,
    /// decisions taken
    pub nodes: u64,
}

impl Default for stw_pack_result {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_dataset_options {
    pub struct_size: u32,
    /// auto: ids for .bin and .npy files, bytes otherwise
    pub tokenizer: u32,
    /// text, or ids of token\_type: bare numbers, or a NumPy array of one dimension (.npy)
    pub path: *const c_char,
    /// every id must be smaller
    pub vocabulary: u64,
    /// tokens of a sample
    pub sequence: u64,
    /// of the windows; unset: 1337
    pub seed: u64,
    /// STW\_SET\_DOCUMENT\_END, STW\_SET\_HELD\_OUT, STW\_SET\_DATASET\_SEED
    pub set_mask: u32,
    /// 1: with marks, without labels, for plans with a preference: documents are pairs, chosen and rejected ones in turn, and samples hold whole pairs, none longer than \`sequence\` + 1 tokens
    pub pairs: u32,
    /// the token that ends a document: attention stays inside of documents, and what follows an end is no target. Needs a plan with STW\_INPUT\_POSITIONS. Unset: there are no documents.
    pub document_end: u64,
    /// a file with a byte for each token, STW\_MARK\_\* together: for prompts and answers, of which the answers are learned. Documents are kept apart as above, but begin where they are marked, the first one with the first token. Samples hold them whole, as many as there is room for, and longer ones cut; all samples are trained on before one is again, in another order each time. For plans of \`sequence\` alone (else STW\_BAD\_STATE), not together with document\_end. NULL: all tokens are targets, and samples begin anywhere.
    pub marks: *const c_char,
    /// for classifiers: a file with a little-endian uint32 for each document that \`marks\` begin: its label, or UINT32\_MAX for none. It is the target of the document's last token inside of the sample; for an encoder, of the document's first token. STW\_MARK\_TARGET is not looked at then. With STW\_TASK\_TOKEN\_LABEL: a uint32 for each token, the target of that token. NULL: targets are tokens.
    pub labels: *const c_char,
    /// with labels: how many the model has; every uint32 must be smaller
    pub label_count: u64,
    /// share of the tokens that is held out, from the end on: 0 to 1; unset: 0.1. With marks whole documents, of which longer ones than a sample count as what samples have of them
    pub held_out: f64,
    /// with pairs, for STW\_PREFERENCE\_DPO and \_IPO: the file that stw\_trainer\_write\_reference wrote for these tokens and marks (of others: STW\_BAD\_STATE)
    pub reference: *const c_char,
    /// more than 0, up to 1; 0: tokens are not hidden
    pub mask_rate: f64,
    pub mask_token: u64,
    /// \`vocabulary\` bytes, each STW\_TOKEN\_\* together; NULL: all are 0
    pub token_kinds: *const u8,
    /// 1: with token\_kinds, words are drawn in place of tokens: a token that continues a word is hidden with it
    pub mask_whole_words: u32,
    /// with labels: STW\_TASK\_\* that they are for, the model's: LABEL, LABELS, NUMBER or TOKEN\_LABEL; AUTOMATIC: LABEL. For LABELS and NUMBER the file of labels has label\_count little-endian float32 for each document instead: of LABELS how much it has of each, 0 to 1; of NUMBER finite numbers; a NaN in the first place: none
    pub task: u32,
    /// 1: without marks and mask\_rate: evaluations are of all of the held-out part, in windows end to end from its first token on, the last one shorter: each token but the first is a target once
    pub in_order: u32,
    /// STW\_TOKEN\_TYPE\_\*, of ids. AUTO refuses a file whose numbers look like those of another type
    pub token_type: u32,
    /// of this call; NULL: none
    pub watch: *mut stw_watch,
}

impl Default for stw_dataset_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_dataset_info {
    pub struct_size: u32,
    pub tokenizer: u32,
    /// of held\_out; with marks, from the nearest document on
    pub training_tokens: u64,
    /// of held\_out; with marks, from the nearest document on
    pub evaluation_tokens: u64,
    /// with marks: that hold every document of a part once; with in\_order: evaluation\_samples hold every token once; else 0
    pub training_samples: u64,
    /// with marks: that hold every document of a part once; with in\_order: evaluation\_samples hold every token once; else 0
    pub evaluation_samples: u64,
    /// XXH3, 64 bits, of the files of tokens, marks and labels, one behind the other: a run that goes on from a checkpoint has the bits of one that was never stopped if this is the same too
    pub content_hash: u64,
}

impl Default for stw_dataset_info {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_progress {
    pub struct_size: u32,
    pub phase: u32,
    /// successful updates so far
    pub step: u64,
    /// global batches consumed so far: step + skipped
    pub batches: u64,
    /// steps without an update: STW\_SKIP\_\*
    pub skipped: u64,
    /// of the last step, mean per target
    pub loss: f64,
    /// before clipping
    pub grad_norm: f64,
    pub learning_rate: f64,
    /// of the last step
    pub seconds: f64,
    /// targets, that is; of a preference pairs
    pub tokens_per_second: f64,
    /// the same, trained on so far
    pub tokens: u64,
    /// of the last evaluation; 0 before the first
    pub evaluation_loss: f64,
    /// for the next step; 1 unless the precision is fp16
    pub loss_scale: f64,
    /// STW\_SKIP\_\*, of the last step
    pub skip_reason: u32,
    pub reserved: u32,
    /// of a classifier or a masked language model, of the last evaluation: share of the targets whose logit was the largest, of equal ones the first; of LABELS: share of the texts whose logits were all right, above 0 where the label is above 0.5 and not elsewhere; of a preference: as accuracy; not a number where there were none, and of NUMBER
    pub evaluation_accuracy: f64,
    /// of a preference, of the last step: share of the pairs whose chosen document was ahead: dpo by P - R, ipo by (P - R) / n, simpo and orpo by P / n; else 0
    pub accuracy: f64,
    /// of the evaluation under way, or of the last one, stw\_trainer\_log\_probabilities and \_write\_reference among them: in all
    pub evaluation_samples: u64,
    /// how many of them have been given to the device
    pub evaluated_samples: u64,
    /// that evaluation\_loss is the mean over: tokens, of a classifier texts or words, of a preference pairs
    pub evaluation_targets: u64,
    /// of the step under way, or of the last one: in all
    pub micro_steps: u64,
    /// how many of them have been given to the device; on the CPU they are computed then
    pub micro_steps_done: u64,
}

impl Default for stw_progress {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_gradients {
    pub struct_size: u32,
    pub reserved: u32,
    /// sums over tokens (of a preference: over pairs), not normalised, of all trainable parameters; holes are to be ignored
    pub data: *mut f32,
    /// floats, holes included
    pub count: u64,
    pub loss_sum: *mut f64,
    pub target_count: *mut u64,
    pub stream: *mut c_void,
    /// that \`data\` carries: 1 unless the precision is fp16; trainers that are added up must have the same
    pub scale: f64,
    /// of a preference: pairs whose chosen document was ahead, to be added up too
    pub in_order: *mut u32,
}

impl Default for stw_gradients {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stw_trainer_options {
    pub struct_size: u32,
    pub set_mask: u32,
    /// of dropout; unset: 1337
    pub seed: u64,
    /// adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99
    pub beta1: f32,
    /// adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99
    pub beta2: f32,
    /// adamw, muon: 0: 1e-8
    pub epsilon: f32,
    /// unset: 0.1, none on 1-D tensors; sgd, adafactor: 0; at most 1e6
    pub weight_decay: f32,
    /// unset: 1, with a fused update 0; 0: no clipping
    pub clip_norm: f32,
    /// sgd: 1: look ahead
    pub nesterov: u32,
    /// the host's memory, at least info.arena bytes at a multiple of 256; NULL: allocated
    pub arena: *mut c_void,
    pub arena_bytes: u64,
    pub gradient_hook: stw_gradient_fn,
    pub gradient_user: *mut c_void,
    /// sgd: unset 0.9; muon: unset 0.95
    pub momentum: f32,
    /// in \[0, 1): this share of the target's probability goes to all tokens alike; with a preference in \[0, 0.5): the share of pairs that is taken to be the wrong way round. 0 for LABELS and NUMBER
    pub label_smoothing: f32,
    /// times the square of log Σ exp(logits), added to every token's loss; 0 for LABELS and NUMBER
    pub z_loss: f32,
    /// 0: none; else a step is skipped whose loss or gradient norm lies more standard deviations above its running mean than this (exponential, about 128 steps; from 64 steps on)
    pub outlier_limit: f32,
    /// fp16: of the first step, a power of two; 0: 65536
    pub loss_scale: f64,
    /// fp16: updates after which it doubles; 0: 2000. A step that is not finite halves it.
    pub growth_interval: u32,
    /// STW\_NON\_FINITE\_\*: skip: a step whose loss or gradient is not finite updates nothing, and is counted and logged; stop: it fails with STW\_NON\_FINITE. fp16 skips, and fails with STW\_NUMERIC where the scale would fall below 1.
    pub non_finite: u32,
    /// 0: 0.1, of simpo 2; at most 1e6
    pub beta: f32,
    /// simpo: unset half of beta
    pub margin: f32,
    /// 0 to 1e6: how often the chosen document's mean token loss is added (Pang et al., arXiv:2404.19733)
    pub answer_share: f32,
    pub reserved: u32,
    /// of its creation and of every call that names it, as long as it lives; NULL: none
    pub watch: *mut stw_watch,
}

impl Default for stw_trainer_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_batch {
    pub struct_size: u32,
    /// tensors
    pub count: u32,
    pub names: *const *const c_char,
    pub tensors: *const *const DLManagedTensorVersioned,
    /// at most 1e6; there is no default: with 0 states change, parameters do not
    pub learning_rate: f64,
}

impl Default for stw_batch {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_step_result {
    pub struct_size: u32,
    /// 1: no update; nothing but the count of batches has changed, the running statistics of outlier\_limit and in fp16 the loss scale
    pub skipped: u32,
    /// successful updates so far, this one included
    pub step: u64,
    pub loss: f64,
    pub grad_norm: f64,
    /// that had a loss
    pub targets: u64,
    pub seconds: f64,
    /// of this step; 1 unless the precision is fp16
    pub loss_scale: f64,
    /// STW\_SKIP\_\*
    pub skip_reason: u32,
    pub reserved: u32,
    /// as stw\_progress has it
    pub accuracy: f64,
}

impl Default for stw_step_result {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct stw_run_options {
    pub struct_size: u32,
    pub set_mask: u32,
    /// run until this many batches have been consumed; what has them already returns at once
    pub until: u64,
    /// length of the schedule; 0: \`until\`
    pub total: u64,
    /// steps of linear warm-up
    pub warmup: u64,
    /// 0: adamw, muon 3e-4; lion 1e-4; sgd, adafactor 1e-2; at most 1e6, also as base\_batch scales it
    pub learning_rate: f64,
    /// unset: a tenth of it; inverse root: 0; constant: not used
    pub min_rate: f64,
    pub schedule: u32,
    /// 0: 1
    pub progress_every: u32,
    pub progress: stw_progress_fn,
    pub progress_user: *mut c_void,
    /// warm-up-stable-decay: 0: a fifth of \`total\`
    pub decay_steps: u64,
    /// learning rates are meant for so many samples a step, and multiplied by the root of global\_batch / base\_batch; 0: they are taken as they are
    pub base_batch: u64,
}

impl Default for stw_run_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_generate_options {
    pub struct_size: u32,
    /// 0: all
    pub top_k: u32,
    /// at least one token
    pub prompt: *const i32,
    pub prompt_count: u64,
    /// receives new tokens
    pub out: *mut i32,
    /// and at most this many
    pub out_capacity: u64,
    /// 0: the most probable token
    pub temperature: f64,
    /// unset: 1337
    pub seed: u64,
    /// tokens of which any ends the answer, such as the model's end of text; it is the last in \`out\`
    pub stop: *const i32,
    pub stop_count: u64,
    /// of the top\_k at \`temperature\`: draw from the fewest most probable tokens that have at least this probability together; 0: all; at most 1
    pub top_p: f64,
    /// STW\_SET\_GENERATE\_SEED
    pub set_mask: u32,
    pub reserved: u32,
}

impl Default for stw_generate_options {
    /// Zero, but for its size.
    fn default() -> Self {
        let mut made: Self = unsafe { std::mem::zeroed() };
        made.struct_size = std::mem::size_of::<Self>() as u32;
        made
    }
}

extern "C" {
    pub fn stw_version() -> u32;
    pub fn stw_build_info() -> *const c_char;
    pub fn stw_status_name(status: stw_status) -> *const c_char;
    pub fn stw_watch_create(out: *mut *mut stw_watch, options: *const stw_watch_options, error: *mut stw_error) -> stw_status;
    pub fn stw_watch_destroy(watch: *mut stw_watch);
    pub fn stw_watch_cancel(watch: *mut stw_watch);
    pub fn stw_watch_query(watch: *const stw_watch, out: *mut stw_watch_info) -> stw_status;
    pub fn stw_device_at(index: usize, out: *mut stw_device_info, error: *mut stw_error) -> stw_status;
    pub fn stw_device_open(out: *mut *mut stw_device, options: *const stw_device_options, error: *mut stw_error) -> stw_status;
    pub fn stw_device_close(device: *mut stw_device);
    pub fn stw_device_query(device: *const stw_device, out: *mut stw_device_info) -> stw_status;
    pub fn stw_device_holder_at(device: *const stw_device, index: usize, out: *mut stw_memory_holder) -> stw_status;
    pub fn stw_device_next_log(device: *const stw_device, after: u64, out: *mut stw_log_message) -> stw_status;
    pub fn stw_model_create(out: *mut *mut stw_model, options: *const stw_model_options, error: *mut stw_error) -> stw_status;
    pub fn stw_model_destroy(model: *mut stw_model);
    pub fn stw_model_query(model: *const stw_model, out: *mut stw_model_info) -> stw_status;
    pub fn stw_model_tensor_count(model: *const stw_model) -> usize;
    pub fn stw_model_tensor_at(model: *const stw_model, index: usize, out: *mut stw_tensor_info) -> stw_status;
    pub fn stw_model_tensor_find(model: *const stw_model, name: *const c_char, index: *mut usize) -> stw_status;
    pub fn stw_model_label_at(model: *const stw_model, index: usize) -> *const c_char;
    pub fn stw_model_export(model: *const stw_model, folder: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_model_preset_at(index: usize) -> *const c_char;
    pub fn stw_plan_create(out: *mut *mut stw_plan, model: *const stw_model, options: *const stw_plan_options, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_destroy(plan: *mut stw_plan);
    pub fn stw_plan_query(plan: *const stw_plan, out: *mut stw_plan_info) -> stw_status;
    pub fn stw_plan_json(plan: *const stw_plan) -> *const c_char;
    pub fn stw_plan_report(plan: *const stw_plan) -> *const c_char;
    pub fn stw_plan_load(out: *mut *mut stw_plan, model: *const stw_model, json: *const c_char, json_size: usize, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_verify(plan: *const stw_plan, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_relaxation_at(plan: *const stw_plan, index: usize, out: *mut stw_relaxation_info) -> stw_status;
    pub fn stw_plan_offload_at(plan: *const stw_plan, index: usize, out: *mut stw_offload_info) -> stw_status;
    pub fn stw_plan_frontier(plan: *const stw_plan, out: *mut stw_frontier_point, capacity: usize, count: *mut usize, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_longest_sequence(model: *const stw_model, options: *const stw_plan_options, sequence: *mut u64, error: *mut stw_error) -> stw_status;
    pub fn stw_profile_at(index: usize, out: *mut stw_profile_info) -> stw_status;
    pub fn stw_profile_read(profile: *const c_char, profile_size: usize, out: *mut stw_profile_info, error: *mut stw_error) -> stw_status;
    pub fn stw_profile_op_at(profile: *const c_char, profile_size: usize, index: usize, out: *mut stw_profile_op_info) -> stw_status;
    pub fn stw_plan_picture(plan: *const stw_plan, kind: u32, out: *mut c_char, capacity: usize, needed: *mut usize, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_buffer_count(plan: *const stw_plan) -> usize;
    pub fn stw_plan_buffer_at(plan: *const stw_plan, index: usize, out: *mut stw_buffer_info) -> stw_status;
    pub fn stw_pack(offsets: *mut u64, lifetimes: *const stw_buffer_lifetime, count: usize, options: *const stw_pack_options, result: *mut stw_pack_result, error: *mut stw_error) -> stw_status;
    pub fn stw_dataset_open(out: *mut *mut stw_dataset, options: *const stw_dataset_options, error: *mut stw_error) -> stw_status;
    pub fn stw_dataset_close(dataset: *mut stw_dataset);
    pub fn stw_dataset_query(dataset: *const stw_dataset, out: *mut stw_dataset_info) -> stw_status;
    pub fn stw_trainer_create(out: *mut *mut stw_trainer, device: *mut stw_device, model: *const stw_model, plan: *const stw_plan, options: *const stw_trainer_options, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_destroy(trainer: *mut stw_trainer);
    pub fn stw_trainer_step(trainer: *mut stw_trainer, batch: *const stw_batch, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_wait(trainer: *mut stw_trainer, out: *mut stw_step_result, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_run(trainer: *mut stw_trainer, dataset: *mut stw_dataset, options: *const stw_run_options, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_evaluate(trainer: *mut stw_trainer, dataset: *mut stw_dataset, batches: u64, loss: *mut f64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_generate(trainer: *mut stw_trainer, options: *const stw_generate_options, count: *mut u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_logits(trainer: *mut stw_trainer, tokens: *const i32, count: u64, out: *mut f32, capacity: u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_classify(trainer: *mut stw_trainer, tokens: *const i32, token_types: *const i32, lengths: *const u64, texts: u64, out: *mut f32, capacity: u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_log_probabilities(trainer: *mut stw_trainer, batch: *const stw_batch, out: *mut f32, capacity: u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_write_reference(trainer: *mut stw_trainer, dataset: *mut stw_dataset, path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_replan(trainer: *mut stw_trainer, memory_bytes: u64, plan: *mut *mut stw_plan, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_calibrate(trainer: *mut stw_trainer, out: *mut c_char, capacity: usize, size: *mut usize, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_timeline(trainer: *mut stw_trainer, path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_cancel(trainer: *mut stw_trainer);
    pub fn stw_trainer_progress(trainer: *const stw_trainer, out: *mut stw_progress) -> stw_status;
    pub fn stw_trainer_stream(trainer: *const stw_trainer) -> *mut c_void;
    pub fn stw_trainer_export_tensor(trainer: *mut stw_trainer, index: usize, kind: u32, out: *mut *mut DLManagedTensorVersioned, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_import_tensor(trainer: *mut stw_trainer, index: usize, r#in: *const DLManagedTensorVersioned, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_save(trainer: *mut stw_trainer, path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_restore(trainer: *mut stw_trainer, path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_checkpoint_verify(path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_export_model(trainer: *mut stw_trainer, folder: *const c_char, error: *mut stw_error) -> stw_status;
}

/// Struct, field (none: the whole struct), offset or size: as this compiler has them.
#[doc(hidden)]
pub fn layout() -> Vec<(&'static str, &'static str, usize)> {
    let mut found = Vec::new();
    macro_rules! of {
        ($kind:ident $(, $field:ident)*) => {
            found.push((stringify!($kind), "", std::mem::size_of::<$kind>()));
            let _at = std::mem::MaybeUninit::<$kind>::uninit();
            $(found.push((stringify!($kind), stringify!($field), unsafe { std::ptr::addr_of!((*_at.as_ptr()).$field) } as usize - _at.as_ptr() as usize));)*
        };
    }
    of!(stw_error, struct_size, status, native_code, reserved, bytes_needed, bytes_available, message);
    of!(stw_watch_info, struct_size, work, unit, reserved, done, total, share);
    of!(stw_watch_options, struct_size, set_mask, notify, user, interval_milliseconds, reserved);
    of!(stw_device_options, struct_size, backend, ordinal, threads, isa, log_level, stream, log, log_user, allocate, release, memory_user, run, run_user, cublaslt, cudnn);
    of!(stw_device_info, struct_size, backend, memory_total, memory_free, compute_major, compute_minor, threads, isa, name, profile, memory_reserved);
    of!(stw_memory_holder, struct_size, reserved, process, bytes, name);
    of!(stw_log_message, struct_size, level, number, component, text);
    of!(stw_model_options, struct_size, set_mask, source, config_json, config_json_size, weights, seed, dropout, reserved, adapter, adapter_targets, adapter_rank, adapter_flags, adapter_alpha, adapter_dropout, label_names, label_count, task, reserved_end);
    of!(stw_model_info, struct_size, layers, parameters, trainable, vocabulary, positions, has_weights, width, architecture, adapter_rank, has_codes, labels, padding_token, generates, token_types, task, head_is_new);
    of!(stw_tensor_info, struct_size, ndim, name, shape, elements);
    of!(stw_parameter_group, struct_size, set_mask, pattern, frozen, state_bits, learning_rate, weight_decay);
    of!(stw_plan_options, struct_size, set_mask, memory_bytes, global_batch, sequence, device, device_memory, reserve_bytes, threads, precision, optimizer, state_bits, micro_batch, recompute, mode, inputs, host_bytes, profile, profile_size, groups, group_count, master, kernels, gradients, fused_update, attention, quantize, quantize_embeddings, preference, watch);
    of!(stw_plan_info, struct_size, fits, micro_batch, accumulation_steps, last_micro_batch, loss_chunks, global_batch, sequence, parameters, gradients, optimizer, saved_activations, transient, workspace, inputs, padding, arena, reserve, peak, budget, host, minimum_bytes, state_bits, precision, step_seconds, tokens_per_second, recompute_fraction, fingerprint, proven, bound_seconds, unlimited_seconds, next_gib_seconds, copied_bytes, tiled_blocks, tile_rows);
    of!(stw_buffer_info, struct_size, persistent, name, owner, offset, bytes, first, last);
    of!(stw_relaxation_info, struct_size, changes_numerics, saves_bytes, costs_fraction, change, fits, reserved);
    of!(stw_offload_info, struct_size, outside_blocks, blocks, reserved, bytes, tensors);
    of!(stw_frontier_point, struct_size, is_knee, peak, micro_batch, loss_chunks, step_seconds, tokens_per_second);
    of!(stw_profile_info, struct_size, is_cuda, memory, reserve, gflops_fp32, gflops_bf16, gbytes_per_second, product_permille, stream_permille, launch_nanoseconds, name, title, source, host_gbytes_per_second, threads, precision, step_nanoseconds, kernels, reserved);
    of!(stw_profile_op_info, struct_size, permille, launch_nanoseconds, nanoseconds, name);
    of!(stw_buffer_lifetime, lower, upper, size);
    of!(stw_buffer_gap, lower, upper, first, end);
    of!(stw_buffer_constraint, alignment, offset, gaps, gap_count, set_mask);
    of!(stw_pack_options, struct_size, set_mask, capacity, node_limit, constraints);
    of!(stw_pack_result, struct_size, answer, height, bound, nodes);
    of!(stw_dataset_options, struct_size, tokenizer, path, vocabulary, sequence, seed, set_mask, pairs, document_end, marks, labels, label_count, held_out, reference, mask_rate, mask_token, token_kinds, mask_whole_words, task, in_order, token_type, watch);
    of!(stw_dataset_info, struct_size, tokenizer, training_tokens, evaluation_tokens, training_samples, evaluation_samples, content_hash);
    of!(stw_progress, struct_size, phase, step, batches, skipped, loss, grad_norm, learning_rate, seconds, tokens_per_second, tokens, evaluation_loss, loss_scale, skip_reason, reserved, evaluation_accuracy, accuracy, evaluation_samples, evaluated_samples, evaluation_targets, micro_steps, micro_steps_done);
    of!(stw_gradients, struct_size, reserved, data, count, loss_sum, target_count, stream, scale, in_order);
    of!(stw_trainer_options, struct_size, set_mask, seed, beta1, beta2, epsilon, weight_decay, clip_norm, nesterov, arena, arena_bytes, gradient_hook, gradient_user, momentum, label_smoothing, z_loss, outlier_limit, loss_scale, growth_interval, non_finite, beta, margin, answer_share, reserved, watch);
    of!(stw_batch, struct_size, count, names, tensors, learning_rate);
    of!(stw_step_result, struct_size, skipped, step, loss, grad_norm, targets, seconds, loss_scale, skip_reason, reserved, accuracy);
    of!(stw_run_options, struct_size, set_mask, until, total, warmup, learning_rate, min_rate, schedule, progress_every, progress, progress_user, decay_steps, base_batch);
    of!(stw_generate_options, struct_size, top_k, prompt, prompt_count, out, out_capacity, temperature, seed, stop, stop_count, top_p, set_mask, reserved);
    found
}
