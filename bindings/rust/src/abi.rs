//! The C API for Rust. Written by generate_abi.py from include/stowage.h: do not edit it.
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
pub const STW_TASK_SPANS: u32 = 7;
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
pub const STW_KEEP_NUMERICS: u32 = 1;
pub const STW_KEEP_MODEL: u32 = 2;
pub const STW_KEEP_ADAPTERS: u32 = 4;
pub const STW_KEEP_SEQUENCE: u32 = 8;
pub const STW_KEEP_OPTIMIZER: u32 = 16;
pub const STW_KEEP_CLIPPING: u32 = 32;
pub const STW_KEEP_DIVISION: u32 = 64;
pub const STW_KEEP_PRECISION: u32 = 128;
pub const STW_KEEP_ALL: u32 = 255;
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
    _shared_only_as_the_header_says:
        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_model {
    _private: [u8; 0],
    _shared_only_as_the_header_says:
        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_plan {
    _private: [u8; 0],
    _shared_only_as_the_header_says:
        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_dataset {
    _private: [u8; 0],
    _shared_only_as_the_header_says:
        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_trainer {
    _private: [u8; 0],
    _shared_only_as_the_header_says:
        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

#[repr(C)]
pub struct stw_watch {
    _private: [u8; 0],
    _shared_only_as_the_header_says:
        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
}

pub use crate::dlpack::DLManagedTensorVersioned;

pub type stw_watch_fn = Option<unsafe extern "C" fn(user: *mut c_void, now: *const stw_watch_info) -> i32>;

pub type stw_log_fn = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, component: *const c_char,
    message: *const c_char)>;

pub type stw_allocate_fn = Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment: usize,
    stream: *mut c_void) -> *mut c_void>;

pub type stw_release_fn = Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, bytes: usize,
    stream: *mut c_void)>;

pub type stw_run_fn = Option<unsafe extern "C" fn(user: *mut c_void, tasks: u32,
    task: Option<unsafe extern "C" fn(context: *mut c_void, index: u32)>, context: *mut c_void)>;

pub type stw_progress_fn = Option<unsafe extern "C" fn(user: *mut c_void, now: *const stw_progress) -> i32>;

pub type stw_gradient_fn = Option<unsafe extern "C" fn(user: *mut c_void,
    gradients: *const stw_gradients) -> i32>;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct stw_error {
    pub struct_size: u32,
    pub status: stw_status,
    /// errno or cudaError\_t, else 0
    pub native_code: i32,
    pub reserved: u32,
    /// for the codes 3000 to 3999
    pub bytes_needed: u64,
    /// for the codes 3000 to 3999
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
    /// finished work, counted in \`unit\`. When no call is in progress: the finished work of the last call
    pub done: u64,
    /// all work of the call, counted in \`unit\`; 0: unknown
    pub total: u64,
    /// share of the work that is done, 0 to 1. On the CPU it also grows within a micro-step. 0 if the total
    /// is unknown
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
    /// NULL: the host polls with stw\_watch\_query, or only cancels
    pub notify: stw_watch_fn,
    /// passed to \`notify\`
    pub user: *mut c_void,
    /// shortest time between two calls of \`notify\`. An entry that takes less time is not reported.
    /// Unset: 100. 0: \`notify\` is called after every piece of work
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
    /// STW\_BACKEND\_\*; auto: CUDA if there is a CUDA device, else the CPU
    pub backend: u32,
    /// number of the CUDA device, from 0
    pub ordinal: i32,
    /// CPU: threads that compute, including the caller's, at most 1024; 0: one for each processor. CUDA:
    /// threads that draw random weights or quantize while a trainer is created or calibrated
    pub threads: u32,
    /// CPU: STW\_ISA\_\*; auto: the widest that runs here. No trained bit depends on it.
    pub isa: u32,
    /// STW\_LOG\_\*; 0: STW\_LOG\_WARNING
    pub log_level: i32,
    /// CUDA: the host's stream, of the device's primary context; NULL: the library makes one
    pub stream: *mut c_void,
    /// NULL: messages are kept for stw\_device\_next\_log only
    pub log: stw_log_fn,
    pub log_user: *mut c_void,
    /// set both \`allocate\` and \`release\`, or neither
    pub allocate: stw_allocate_fn,
    pub release: stw_release_fn,
    pub memory_user: *mut c_void,
    /// NULL: the library uses its own pool of threads, which sleeps when it is idle
    pub run: stw_run_fn,
    pub run_user: *mut c_void,
    /// CUDA: path of a libcublasLt.so.13, for STW\_KERNELS\_CUBLASLT; NULL: the one that the system finds.
    /// The text is copied.
    pub cublaslt: *const c_char,
    /// CUDA: path of a libcudnn.so.9 (9.15.1 or newer), for STW\_ATTENTION\_CUDNN; NULL: the one that the
    /// system finds. The text is copied.
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
    /// STW\_BACKEND\_CPU or STW\_BACKEND\_CUDA
    pub backend: u32,
    /// bytes
    pub memory_total: u64,
    /// bytes. CPU: as the system reports available memory. CUDA: 0 in stw\_device\_at
    pub memory_free: u64,
    /// CUDA: compute capability
    pub compute_major: i32,
    /// CUDA: compute capability
    pub compute_minor: i32,
    /// CPU: threads that compute
    pub threads: u32,
    /// CPU: STW\_ISA\_\* in use
    pub isa: u32,
    pub name: Text<64>,
    /// name of the embedded profile to plan with: stw\_plan\_options.device
    pub profile: Text<24>,
    /// CUDA: bytes that the open device's context already holds. A plan counts them in its reserve, so add
    /// them to memory\_free (stw\_plan\_options.device\_memory). At most three quarters of the profile's
    /// reserve. 0 if the driver does not report them, and in stw\_device\_at
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
    /// process id in the host system. A container may show another id
    pub process: u64,
    /// device memory that the process holds
    pub bytes: u64,
    /// name of the program, cut to fit; "" if it is unknown
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
    /// 1, 2, ... in the order in which messages were written; 0: there is no message
    pub number: u64,
    /// the part of the library that wrote it
    pub component: Text<32>,
    /// cut to fit
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
    /// STW\_SET\_DROPOUT, STW\_SET\_MODEL\_SEED
    pub set_mask: u32,
    /// a folder with config.json, a config.json, or the name of a preset such as "nano"
    pub source: *const c_char,
    /// instead of source: the text of a config.json, config\_json\_size bytes long; it needs no zero byte at
    /// its end
    pub config_json: *const c_char,
    pub config_json_size: usize,
    /// a .safetensors file, or a folder that has one or has an index. If a folder has several files and no
    /// index, the file named model.safetensors is read. NULL: the weights of the source folder; if it has
    /// none, random values drawn from \`seed\`
    pub weights: *const c_char,
    /// unset: 1337
    pub seed: u64,
    /// replaces all dropout rates of the config; unset: the config's rates
    pub dropout: f32,
    pub reserved: u32,
    /// a folder of adapters to continue, for the model in \`source\`; NULL: none
    pub adapter: *const c_char,
    /// new adapters: the matrices that get an adapter, by the last parts of their modules' names, such as
    /// "q\_proj,v\_proj", or "all-linear"; NULL: all-linear
    pub adapter_targets: *const c_char,
    /// new adapters: rows of A and columns of B; 0: no new adapters. A is drawn from \`seed\`, B is 0
    pub adapter_rank: u32,
    /// STW\_ADAPTER\_RANK\_STABILISED: scale = alpha / sqrt(rank)
    pub adapter_flags: u32,
    /// scale = alpha / rank; 0: alpha is twice the rank
    pub adapter_alpha: f32,
    /// dropout rate of the input of A during training
    pub adapter_dropout: f32,
    /// label\_count different UTF-8 names; NULL: the names of the model, else "LABEL\_0", "LABEL\_1", ...
    pub label_names: *const *const c_char,
    /// 0: as the config says. Else 2 (1 for LABELS and NUMBER) to 1,048,576, and equal to the number that the
    /// model already has (new\_head)
    pub label_count: usize,
    /// STW\_TASK\_\*. A task with labels, except SPANS, needs label\_count if the config has no labels. If
    /// the config states its task (problem\_type), no other task is possible without new\_head.
    /// MASKED\_LANGUAGE\_MODEL is for encoders (transformers' ...ForMaskedLM): if the config is of another
    /// kind of model, the parts of the head that the weights lack are drawn from \`seed\`, and a head for
    /// next sentences (BertForPreTraining) is left out. For an encoder, LANGUAGE\_MODEL means its body
    /// without a head
    pub task: u32,
    /// 1: the model gets a new head for label\_count labels, whatever labels the config has. The matrix of
    /// the logits and its bias are drawn from \`seed\`, and so are the parts of the head that the weights
    /// lack. Needs label\_count, or SPANS, and excludes \`adapter\`
    pub new_head: u32,
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
    /// number of blocks
    pub layers: u32,
    /// number of parameters; tied ones are counted once
    pub parameters: u64,
    /// number of parameters that are trained
    pub trainable: u64,
    /// number of different tokens
    pub vocabulary: u64,
    /// longest sequence, in tokens
    pub positions: u64,
    /// 1: weights come from files; 0: they are drawn from the seed
    pub has_weights: u32,
    /// features of a token between two blocks (hidden\_size)
    pub width: u32,
    /// the config's model\_type: "gpt2", "llama", "gemma3\_text", …
    pub architecture: Text<32>,
    /// 0: there are no adapters
    pub adapter_rank: u32,
    /// 1: the files hold matrices in 4 bits, as bitsandbytes writes them (nf4, also with double quantization)
    pub has_codes: u32,
    /// number of a classifier's labels; 0: the model is not a classifier
    pub labels: u64,
    /// from the config; -1: none. transformers takes tokens of this id at the end of a text for padding, and
    /// classifies the text by the last token before them
    pub padding_token: i64,
    /// 1: the model continues texts, and no token attends to later ones; 0: an encoder, which reads a text as
    /// a whole
    pub generates: u32,
    /// number of token types that the model distinguishes, such as those of a first and of a second text; 0:
    /// none
    pub token_types: u32,
    /// STW\_TASK\_\*. An encoder with STW\_TASK\_LANGUAGE\_MODEL has no head; to train it, choose a task that
    /// gives it one
    pub task: u32,
    /// 1: weights were read from files, but at least a part of the head was drawn from the seed
    pub head_is_new: u32,
    /// number of layers in the weights' files; 0: there are no files. The model does not have those past
    /// \`layers\`
    pub file_layers: u64,
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
    /// number of dimensions, at most 4
    pub ndim: u32,
    /// as in the weight files; lives as long as the model
    pub name: *const c_char,
    /// ndim sizes, the outermost first; the rest is 0
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
    /// STW\_SET\_GROUP\_\*: fields whose zero is a value. Unset fields change nothing
    pub set_mask: u32,
    pub pattern: *const c_char,
    /// 1: frozen; 0: trained, even if an earlier group says otherwise
    pub frozen: u32,
    /// 32 or 8, even if the plan's state\_bits differ. Embeddings and tensors of less than 4096 elements keep
    /// 32
    pub state_bits: u32,
    /// factor by which the run's learning rate is multiplied
    pub learning_rate: f64,
    /// replaces the trainer's weight decay, and the 0 that norms and biases have
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
    /// largest peak that the plan may reach. 0: all memory of the device. This is device\_memory if it is
    /// set, else the profile's memory, else (CPU) the memory that is available on this machine now
    pub memory_bytes: u64,
    /// samples of one optimizer step; required
    pub global_batch: u64,
    /// tokens of a sample; 0: the model's positions, at most 1024
    pub sequence: u64,
    /// "cpu", or the name of a profile such as "rtx4090"; NULL: "cpu"
    pub device: *const c_char,
    /// bytes that are free on the device now. For an open device that is memory\_free + memory\_reserved of
    /// stw\_device\_info. 0: unknown, see memory\_bytes
    pub device_memory: u64,
    /// part of the budget that is left for memory outside the arena; unset: the profile's reserve (CPU: none)
    pub reserve_bytes: u64,
    /// CPU: threads that will compute, on which the size of scratch memory depends; 0: one for each processor
    pub threads: u32,
    /// STW\_PRECISION\_\*; default: fp32 on the CPU, bf16 elsewhere
    pub precision: u32,
    /// STW\_OPTIMIZER\_\*
    pub optimizer: u32,
    /// STW\_STATES\_AUTO: 32, unless that does not fit or costs more than 10 % of the speed. AdamW and Lion
    /// support 8, for tensors of at least 4096 elements that are not embeddings
    pub state_bits: u32,
    /// samples of one micro-step; 0: the planner chooses
    pub micro_batch: u32,
    /// STW\_RECOMPUTE\_\*
    pub recompute: u32,
    /// STW\_MODE\_\*. In exact mode the split into micro-batches changes no bit. fast gives this guarantee up
    /// where kernels have a faster way: on CUDA devices with STW\_KERNELS\_CUBLASLT, which is then the
    /// default there, or STW\_KERNELS\_CUBLASLT\_WGMMA. Other plans stay exact
    pub mode: u32,
    /// STW\_INPUT\_\*: inputs that batches may have in addition to tokens, targets and lengths
    pub inputs: u32,
    /// host memory that offloaded tensors may take; 0: nothing is offloaded
    pub host_bytes: u64,
    /// the profile that stw\_trainer\_calibrate wrote; NULL: the device's embedded profile. If \`device\` is
    /// NULL, the profile's device is planned for. Another device is refused.
    pub profile: *const c_char,
    /// bytes of \`profile\`, without a zero byte at the end
    pub profile_size: usize,
    /// an array. If several groups name a parameter, the later ones win. All elements have the struct\_size
    /// of the first one.
    pub groups: *const stw_parameter_group,
    pub group_count: usize,
    /// STW\_MASTER\_\*
    pub master: u32,
    /// STW\_KERNELS\_\*. A checkpoint can only be restored with the same ones
    pub kernels: u32,
    /// STW\_GRADIENTS\_\*
    pub gradients: u32,
    /// 1: the backward pass updates the parameters of blocks, so that their gradients need not be kept. The
    /// trained bits are those of a run without clipping. It requires that the micro-batch is the global
    /// batch, that clip\_norm is 0 and that outliers are not skipped. It excludes fp16, gradients in bf16,
    /// host memory and a gradient hook. A gradient that is not finite ends the run (STW\_NON\_FINITE) with
    /// some parameters updated: restore a checkpoint
    pub fused_update: u32,
    /// STW\_ATTENTION\_\*. A checkpoint can only be restored with the same one
    pub attention: u32,
    /// STW\_QUANTIZE\_\*. A checkpoint can only be restored with the same one
    pub quantize: u32,
    /// for models with adapters. STW\_QUANTIZE\_INT8: the token embedding and the head are int8, whatever
    /// format the model's files have. The table of positions keeps its format. auto: none. A checkpoint can
    /// only be restored with the same one
    pub quantize_embeddings: u32,
    /// STW\_PREFERENCE\_\*. A checkpoint can only be restored with the same one
    pub preference: u32,
    /// reports and cancels this call; NULL: none
    pub watch: *mut stw_watch,
    /// STW\_KEEP\_\*: settings that relaxations must not change
    pub keep: u32,
    /// 1: the plan is for a trainer with a gradient hook: all gradients are in the arena when the hook is
    /// called. This may need a larger budget. A plan with 0 may also suit a hook; if it does not,
    /// stw\_trainer\_create refuses it
    pub gradient_hook: u32,
    /// for encoders with an output for each text (STW\_TASK\_LABEL, LABELS, NUMBER): the largest number of
    /// texts in a sample. The head, and of the last block all that follows attention, are computed for so
    /// many rows of a sample instead of all. 0: any number of texts. A sample with more texts that have
    /// targets is refused. A checkpoint can only be restored with the same one
    pub texts: u64,
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
    /// 0: no plan fits; minimum\_bytes is the budget that would be enough
    pub fits: u32,
    /// samples of a micro-step
    pub micro_batch: u64,
    /// micro-steps of a step
    pub accumulation_steps: u64,
    /// samples of the last micro-step of a step
    pub last_micro_batch: u64,
    /// parts into which a micro-step's logits and losses are cut
    pub loss_chunks: u64,
    /// samples of a step
    pub global_batch: u64,
    /// tokens of a sample
    pub sequence: u64,
    pub parameters: u64,
    pub gradients: u64,
    pub optimizer: u64,
    pub saved_activations: u64,
    pub transient: u64,
    pub workspace: u64,
    pub inputs: u64,
    pub padding: u64,
    /// bytes of device memory that a trainer allocates
    pub arena: u64,
    /// peak = arena + reserve
    pub reserve: u64,
    /// peak = arena + reserve
    pub peak: u64,
    pub budget: u64,
    /// bytes of host memory that a trainer allocates for offloaded tensors
    pub host: u64,
    /// smallest memory\_bytes that works with these options
    pub minimum_bytes: u64,
    /// 32 or 8
    pub state_bits: u32,
    /// STW\_PRECISION\_\*
    pub precision: u32,
    /// time of a step, predicted by the cost model
    pub step_seconds: f64,
    /// global\_batch \* sequence / step\_seconds
    pub tokens_per_second: f64,
    /// share of step\_seconds that is spent on recompute, 0 to 1
    pub recompute_fraction: f64,
    /// 16 hexadecimal digits: XXH3-64 of the plan
    pub fingerprint: Text<20>,
    /// 1: by the cost model, no plan with these numerics is faster within the budget
    pub proven: u32,
    /// lower bound of the step time within the budget
    pub bound_seconds: f64,
    /// lower bound of the step time for any budget
    pub unlimited_seconds: f64,
    /// step time with one GiB more and the same state format
    pub next_gib_seconds: f64,
    /// bytes that a step copies between host memory and the device, both directions together
    pub copied_bytes: u64,
    /// number of blocks whose feed-forward part runs in tiles of rows
    pub tiled_blocks: u64,
    /// rows of the smallest tile that a block is planned with; 0: no block has tiles
    pub tile_rows: u64,
    /// stw\_plan\_options.texts
    pub texts: u64,
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
    /// 1: the buffer always lives, and \`first\` and \`last\` are 0
    pub persistent: u32,
    /// name of the tensor; lives as long as the plan
    pub name: *const c_char,
    /// kind of memory: a field of stw\_plan\_info, "parameters" to "inputs"
    pub owner: *const c_char,
    /// place in the arena, in bytes from its beginning
    pub offset: u64,
    /// place in the arena, in bytes from its beginning
    pub bytes: u64,
    /// first and last instruction of the micro-step's program that need it, both included
    pub first: u32,
    /// first and last instruction of the micro-step's program that need it, both included
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
    /// 1: the trained bits would be different
    pub changes_numerics: u32,
    /// bytes by which the change lowers the smallest peak; if \`fits\` is 1, it may be a little more. For
    /// host\_memory: bytes by which the peak with this host memory is below the smallest peak without it
    pub saves_bytes: u64,
    /// change in the time of a token, as a fraction of its time if there were enough memory without the
    /// change; negative: faster
    pub costs_fraction: f64,
    /// the settings to change: "states 8, master split8", ...; the comment of this struct lists them. Cut
    /// where it is longer; \`flags\` is complete
    pub change: Text<64>,
    /// 1: this change is enough
    pub fits: u32,
    pub reserved: u32,
    /// the change as flags of the command: "--states 8 --master split8"
    pub flags: Text<192>,
    /// what is different in the result, in words; empty: nothing
    pub effect: Text<192>,
    /// as in stw\_plan\_info
    pub tokens_per_second: f64,
    /// as in stw\_plan\_info. If \`fits\` is 0: the smallest budget that works
    pub peak: u64,
    /// as in stw\_plan\_info
    pub host: u64,
    /// for host\_memory: the least host memory with which a plan, maybe a slower one, fits; else 0
    pub least_host: u64,
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
    /// 1: tensors of parameters outside of blocks are offloaded, too
    pub outside_blocks: u32,
    /// number of blocks, from the first one on, whose tensors are offloaded
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
    /// 1: from this point on, more memory gains much less speed
    pub is_knee: u32,
    /// the smallest budget that gets this plan, in bytes
    pub peak: u64,
    /// as in stw\_plan\_info
    pub micro_batch: u64,
    /// as in stw\_plan\_info
    pub loss_chunks: u64,
    /// as in stw\_plan\_info
    pub step_seconds: f64,
    /// as in stw\_plan\_info
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
    /// bytes; 0: those of the machine
    pub memory: u64,
    /// bytes; 0: those of the machine
    pub reserve: u64,
    /// peak with fp32 accumulation; CPU: of one thread
    pub gflops_fp32: u64,
    /// peak with fp32 accumulation; CPU: of one thread
    pub gflops_bf16: u64,
    /// bandwidth of the device's memory
    pub gbytes_per_second: u64,
    /// share of the peak that matrix products reach
    pub product_permille: u32,
    /// share of the bandwidth that streaming ops reach
    pub stream_permille: u32,
    /// fixed time of every op
    pub launch_nanoseconds: u64,
    /// the name that stw\_plan\_options.device takes; lives for ever
    pub name: *const c_char,
    /// the name for people; lives for ever
    pub title: *const c_char,
    /// where the figures come from; lives for ever
    pub source: *const c_char,
    /// bandwidth to host memory and back, in each direction
    pub host_gbytes_per_second: u64,
    /// calibrated profiles: threads that computed during the measurement; else 0
    pub threads: u32,
    /// calibrated profiles: STW\_PRECISION\_\* of the measurement; else 0
    pub precision: u32,
    /// calibrated profiles: measured time of a step of the timed plan; else 0
    pub step_nanoseconds: u64,
    /// calibrated profiles: STW\_KERNELS\_\* of the measurement; else 0
    pub kernels: u32,
    pub reserved: u32,
    /// GPUs: power of the board; 0: unknown
    pub watts: u64,
    /// GPUs: of 16-bit products where power limits them. product\_permille is the share of the peak that
    /// watts \* gflops\_per\_watt allows, at most 1000, with a smooth corner where both are close
    pub gflops_per_watt: u64,
    /// GPUs: share of the speed of libraries that the kernels of STW\_KERNELS\_TENSOR reach
    pub mma_permille: u32,
    /// the same for STW\_KERNELS\_WGMMA
    pub wgmma_permille: u32,
    /// share of the peak that attention reaches in libraries, with heads of up to 64 numbers; 0:
    /// product\_permille
    pub attention_permille: u32,
    /// the same with larger heads; 0: attention\_permille
    pub wide_attention_permille: u32,
    /// share of the fp32 peak that products reach; 0: product\_permille
    pub fp32_permille: u32,
    pub reserved_end: u32,
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
    /// share of the peak that limits the op, arithmetic or bandwidth; above 1000 if data is in caches
    pub permille: u32,
    /// fixed time of every op of this kind
    pub launch_nanoseconds: u64,
    /// measured time of all ops of this kind in the timed step
    pub nanoseconds: u64,
    /// name of the kind; lives for ever
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
    /// the buffer is alive in \[lower, upper), in any unit of time; upper == lower: it takes no space
    pub lower: i64,
    /// the buffer is alive in \[lower, upper), in any unit of time; upper == lower: it takes no space
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
    /// \`end\` is at most the size of the buffer
    pub first: u64,
    /// \`end\` is at most the size of the buffer
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
    /// the offset is a multiple of it; 0: 1
    pub alignment: u64,
    /// with STW\_SET\_OFFSET: the buffer's offset
    pub offset: u64,
    /// gap\_count gaps that do not overlap
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
    /// bytes that the buffers must fit into; 0: as few as possible
    pub capacity: u64,
    /// decisions that the search may take, some microseconds each; 0: 1,000,000
    pub node_limit: u64,
    /// one for each buffer, in the same order; NULL: none. With constraints the exact search is practical for
    /// a few dozen buffers
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
    /// largest offset + size of the lowest placement found, even if it exceeds the capacity
    pub height: u64,
    /// proven: no placement is lower
    pub bound: u64,
    /// decisions that the search took
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
    /// STW\_TOKENIZER\_\*; auto: ids for .bin and .npy files, else bytes
    pub tokenizer: u32,
    /// a file of text, or of ids of token\_type: bare numbers, or a NumPy array of one dimension (.npy)
    pub path: *const c_char,
    /// size of the vocabulary; every id must be smaller
    pub vocabulary: u64,
    /// tokens of a sample
    pub sequence: u64,
    /// chooses the windows of tokens that are trained on; unset: 1337
    pub seed: u64,
    /// STW\_SET\_DOCUMENT\_END, STW\_SET\_HELD\_OUT, STW\_SET\_DATASET\_SEED
    pub set_mask: u32,
    /// 1: for plans with a preference; needs marks and excludes labels. Documents are pairs: chosen and
    /// rejected ones in turn. A sample holds whole pairs. No pair may have more than \`sequence\` + 1 tokens
    pub pairs: u32,
    /// the token that ends a document. Attention then stays inside a document, and the token after an end is
    /// not a target. Needs a plan with STW\_INPUT\_POSITIONS. Unset: the file is not divided into documents
    pub document_end: u64,
    /// a file with one byte for each token: STW\_MARK\_\*. With marks, a model can learn answers without
    /// learning prompts. Documents are kept apart as with document\_end, but they begin at the marked tokens;
    /// the first token must be marked. A sample holds as many whole documents as fit. Longer documents are
    /// cut. All samples are trained on once before any is repeated, in a different order each time. Needs
    /// plans with the same \`sequence\` (else STW\_BAD\_STATE). Excludes document\_end. NULL: all tokens are
    /// targets, and a sample may begin at any token
    pub marks: *const c_char,
    /// for classifiers: a file with one little-endian uint32 for each document that \`marks\` begin. It is
    /// the document's label, or UINT32\_MAX for no label. It becomes the target of the document's last token
    /// inside the sample; for an encoder, of its first token. STW\_MARK\_TARGET is ignored. With
    /// STW\_TASK\_TOKEN\_LABEL: one uint32 for each token, the target of that token. NULL: targets are tokens
    pub labels: *const c_char,
    /// with labels: the number of labels of the model; every uint32 must be smaller
    pub label_count: u64,
    /// share of the tokens, at the end of the file, that is held out for evaluation: 0 to 1; unset: 0.1. With
    /// marks, whole documents are held out; a document that is longer than a sample counts with the tokens
    /// that fit into a sample
    pub held_out: f64,
    /// with pairs, for STW\_PREFERENCE\_DPO and \_IPO: the file that stw\_trainer\_write\_reference wrote for
    /// these tokens and marks (a file for other ones: STW\_BAD\_STATE)
    pub reference: *const c_char,
    /// above 0, at most 1; 0: no tokens are hidden
    pub mask_rate: f64,
    pub mask_token: u64,
    /// \`vocabulary\` bytes, each a combination of STW\_TOKEN\_\*; NULL: all are 0
    pub token_kinds: *const u8,
    /// 1: with token\_kinds, whole words are drawn instead of tokens: a token that continues a word is hidden
    /// together with the word
    pub mask_whole_words: u32,
    /// with labels: the model's task, LABEL, LABELS, NUMBER, TOKEN\_LABEL or SPANS; AUTOMATIC: LABEL. For
    /// LABELS, NUMBER and SPANS the file of labels has label\_count little-endian float32 for each document
    /// instead. LABELS: the degree to which the document has each label, 0 to 1. NUMBER: finite numbers.
    /// SPANS: the indices in the document of the answer's first and last token; documents are at most as long
    /// as a sample. If the first float32 is a NaN, the document has no labels
    pub task: u32,
    /// 1: evaluations cover the whole held-out part, in consecutive windows from its first token on; the last
    /// window may be shorter. Each token except the first is a target once. Excludes marks and mask\_rate
    pub sequential: u32,
    /// STW\_TOKEN\_TYPE\_\*, for ids. AUTO refuses a file whose numbers look like another type
    pub token_type: u32,
    /// reports and cancels this call; NULL: none
    pub watch: *mut stw_watch,
    /// with marks: the largest number of documents in a sample, as stw\_plan\_info.texts of the plan says. 0:
    /// as many as fit. If it is not 0 and the documents have labels, training samples take the documents in
    /// an order that leaves little padding. All other samples take them in the order of the file
    pub texts: u64,
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
    /// STW\_TOKENIZER\_BYTE or STW\_TOKENIZER\_IDS
    pub tokenizer: u32,
    /// as held\_out divides them; with marks, the held-out part begins with the nearest document
    pub training_tokens: u64,
    /// as held\_out divides them; with marks, the held-out part begins with the nearest document
    pub evaluation_tokens: u64,
    /// with marks: the number of samples in which every document of the part occurs once. With sequential:
    /// evaluation\_samples is the number of samples that hold every token once. Else 0
    pub training_samples: u64,
    /// with marks: the number of samples in which every document of the part occurs once. With sequential:
    /// evaluation\_samples is the number of samples that hold every token once. Else 0
    pub evaluation_samples: u64,
    /// XXH3, 64 bits, of the files of tokens, marks and labels in this order. A run that continues from a
    /// checkpoint trains the bits of an uninterrupted run only if this is the same, too
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
    /// STW\_PHASE\_\*
    pub phase: u32,
    /// successful updates so far
    pub step: u64,
    /// global batches consumed so far: step + skipped
    pub batches: u64,
    /// steps without an update so far: STW\_SKIP\_\*
    pub skipped: u64,
    /// of the last step, mean per target
    pub loss: f64,
    /// of the last step, before clipping
    pub grad_norm: f64,
    /// of the last step
    pub learning_rate: f64,
    /// duration of the last step
    pub seconds: f64,
    /// targets of the last step per second; with a preference: pairs per second
    pub tokens_per_second: f64,
    /// targets trained on so far; with a preference: pairs
    pub tokens: u64,
    /// of the last evaluation; 0 before the first one
    pub evaluation_loss: f64,
    /// for the next step; 1 unless the precision is fp16
    pub loss_scale: f64,
    /// STW\_SKIP\_\* of the last step
    pub skip_reason: u32,
    pub reserved: u32,
    /// of the last evaluation. Classifiers and masked language models: share of the targets whose logit was
    /// the largest; of equal logits the first one counts. LABELS: share of the texts whose logits are all
    /// right. A logit is right if it is above 0 where the label's degree is above 0.5, and at most 0
    /// elsewhere. Preferences: as \`accuracy\`. NaN if there were no targets, and for NUMBER
    pub evaluation_accuracy: f64,
    /// with a preference, of the last step: share of the pairs whose chosen document was ahead, compared by
    /// P - R (dpo), (P - R) / n (ipo), or P / n (simpo, orpo); else 0
    pub accuracy: f64,
    /// all samples of the evaluation in progress, or of the last one. stw\_trainer\_log\_probabilities and
    /// \_write\_reference count as evaluations
    pub evaluation_samples: u64,
    /// samples of that evaluation that have been given to the device
    pub evaluated_samples: u64,
    /// targets that evaluation\_loss is the mean over: tokens; for a classifier texts or words; with a
    /// preference pairs
    pub evaluation_targets: u64,
    /// all micro-steps of the step in progress, or of the last one
    pub micro_steps: u64,
    /// micro-steps of that step that have been given to the device; on the CPU these are computed
    pub micro_steps_done: u64,
    /// tokens of the last step's samples, without padding; 0: the host gave the batch
    pub sample_tokens: u64,
    /// tokens of the samples of the last stw\_trainer\_evaluate, without padding
    pub evaluation_tokens: u64,
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
    /// gradients of all trainable parameters: sums over tokens (with a preference: over pairs), not divided
    /// by their number. Ignore the gaps between parameters. Trainers whose gradients are added up must have
    /// plans that agree in \`keeps\_rows\` (a field of a plan's JSON): a tied token table has one gradient if
    /// it is true, otherwise two
    pub data: *mut f32,
    /// number of floats in \`data\`, including gaps
    pub count: u64,
    pub loss_sum: *mut f64,
    pub target_count: *mut u64,
    /// a cudaStream\_t; NULL on the CPU
    pub stream: *mut c_void,
    /// factor that \`data\` contains: 1 unless the precision is fp16. Trainers whose gradients are added up
    /// must have the same scale
    pub scale: f64,
    /// with a preference: number of pairs whose chosen document was ahead
    pub correct_pairs: *mut u32,
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
    /// STW\_SET\_WEIGHT\_DECAY to STW\_SET\_TRAINER\_SEED
    pub set_mask: u32,
    /// seed of dropout; unset: 1337
    pub seed: u64,
    /// adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99
    pub beta1: f32,
    /// adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99
    pub beta2: f32,
    /// adamw, muon: 0: 1e-8
    pub epsilon: f32,
    /// 0 to 1e6; unset: 0.1, for sgd and adafactor 0. Tensors of one dimension get none, unless a group sets
    /// theirs
    pub weight_decay: f32,
    /// largest gradient norm; 0: no clipping; unset: 1, with a fused update 0
    pub clip_norm: f32,
    /// sgd: 1: Nesterov momentum
    pub nesterov: u32,
    /// memory of the host, at least info.arena bytes at a multiple of 256; NULL: the trainer allocates it
    pub arena: *mut c_void,
    /// size of \`arena\`
    pub arena_bytes: u64,
    /// NULL: none
    pub gradient_hook: stw_gradient_fn,
    pub gradient_user: *mut c_void,
    /// sgd: unset 0.9; muon: unset 0.95
    pub momentum: f32,
    /// in \[0, 1): share of the target's probability that all tokens share equally. With a preference, in
    /// \[0, 0.5): share of the pairs that are assumed to be the wrong way round. Must be 0 for LABELS, NUMBER
    /// and SPANS
    pub label_smoothing: f32,
    /// every token's loss grows by z\_loss times the square of log Σ exp(logits). Must be 0 for LABELS,
    /// NUMBER and SPANS
    pub z_loss: f32,
    /// 0: none. Else above 1: a step is skipped if its loss or gradient norm lies more than this many
    /// standard deviations above its running mean. Mean and deviation are exponential averages over about 128
    /// steps. No step is skipped before 64 steps were observed
    pub outlier_limit: f32,
    /// fp16: scale of the first step, a power of two; 0: 65536
    pub loss_scale: f64,
    /// fp16: number of updates after which the scale doubles; 0: 2000. A step whose loss or gradient is not
    /// finite halves the scale.
    pub growth_interval: u32,
    /// STW\_NON\_FINITE\_\*. skip: a step whose loss or gradient is not finite updates nothing, and is
    /// counted and logged. stop: it fails with STW\_NON\_FINITE. fp16 always skips, and fails with
    /// STW\_NUMERIC if the scale would fall below 1.
    pub non_finite: u32,
    /// 0: 0.1, for simpo 2; at most 1e6
    pub beta: f32,
    /// simpo: unset half of beta
    pub margin: f32,
    /// factor, 0 to 1e6, with which the chosen document's mean token loss is added (Pang et al.,
    /// arXiv:2404.19733)
    pub answer_share: f32,
    pub reserved: u32,
    /// reports and cancels the creation and all later calls that name the trainer; it must outlive the
    /// trainer; NULL: none
    pub watch: *mut stw_watch,
    /// for a gradient hook that adds up several trainers: the number, in their joint batch, of the first
    /// sample of this trainer's batches. Dropout depends on a sample's number, so that the trainers together
    /// drop what one with the whole batch drops. Else 0. first\_sample + global\_batch is at most 2^32.
    /// Checkpoints do not hold it
    pub first_sample: u64,
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
    /// number of tensors
    pub count: u32,
    pub names: *const *const c_char,
    pub tensors: *const *const DLManagedTensorVersioned,
    /// 0 to 1e6. There is no default: with 0 the optimizer's state changes and parameters do not
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
    /// 1: there was no update. Only three things have changed: the count of batches, the running statistics
    /// of outlier\_limit, and in fp16 the loss scale
    pub skipped: u32,
    /// successful updates so far, this one included
    pub step: u64,
    /// mean per target; norm before clipping
    pub loss: f64,
    /// mean per target; norm before clipping
    pub grad_norm: f64,
    /// number of targets with a loss; with a preference: of pairs
    pub targets: u64,
    /// duration of the step
    pub seconds: f64,
    /// of this step; 1 unless the precision is fp16
    pub loss_scale: f64,
    /// STW\_SKIP\_\*
    pub skip_reason: u32,
    pub reserved: u32,
    /// as in stw\_progress
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
    /// STW\_SET\_MIN\_RATE
    pub set_mask: u32,
    /// the run ends when the trainer has consumed this many batches in all; if it already has, the call
    /// returns at once
    pub until: u64,
    /// length of the schedule in steps; 0: \`until\`
    pub total: u64,
    /// steps of linear warm-up
    pub warmup: u64,
    /// the full rate. 0: adamw, muon 3e-4; lion 1e-4; sgd, adafactor 1e-2. At most 1e6, also after
    /// base\_batch has scaled it
    pub learning_rate: f64,
    /// unset: a tenth of the full rate; inverse root: 0; constant: not used
    pub min_rate: f64,
    /// STW\_SCHEDULE\_\*
    pub schedule: u32,
    /// steps between two calls of \`progress\`; 0: 1
    pub progress_every: u32,
    /// NULL: none
    pub progress: stw_progress_fn,
    pub progress_user: *mut c_void,
    /// warm-up-stable-decay: length of the decay; 0: a fifth of \`total\`
    pub decay_steps: u64,
    /// the number of samples in a step that the learning rates were chosen for. Rates are multiplied by the
    /// square root of global\_batch / base\_batch; 0: rates are used as they are
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
    /// draw from this many most probable tokens; 0: from all
    pub top_k: u32,
    /// at least one token
    pub prompt: *const i32,
    /// number of tokens in \`prompt\`
    pub prompt_count: u64,
    /// receives the new tokens
    pub out: *mut i32,
    /// the most tokens to generate
    pub out_capacity: u64,
    /// 0: always the most probable token
    pub temperature: f64,
    /// unset: 1337
    pub seed: u64,
    /// tokens that end the answer, such as the model's end of text. The one that ended it is the last token
    /// in \`out\`
    pub stop: *const i32,
    /// number of tokens in \`stop\`
    pub stop_count: u64,
    /// at most 1. Among the top\_k tokens, after \`temperature\`, draw from the fewest most probable ones
    /// that together have at least this probability; 0: from all
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
    pub fn stw_watch_create(out: *mut *mut stw_watch, options: *const stw_watch_options,
        error: *mut stw_error) -> stw_status;
    pub fn stw_watch_destroy(watch: *mut stw_watch);
    pub fn stw_watch_cancel(watch: *mut stw_watch);
    pub fn stw_watch_query(watch: *const stw_watch, out: *mut stw_watch_info) -> stw_status;
    pub fn stw_device_at(index: usize, out: *mut stw_device_info, error: *mut stw_error) -> stw_status;
    pub fn stw_device_open(out: *mut *mut stw_device, options: *const stw_device_options,
        error: *mut stw_error) -> stw_status;
    pub fn stw_device_close(device: *mut stw_device);
    pub fn stw_device_query(device: *const stw_device, out: *mut stw_device_info) -> stw_status;
    pub fn stw_device_holder_at(device: *const stw_device, index: usize,
        out: *mut stw_memory_holder) -> stw_status;
    pub fn stw_device_next_log(device: *const stw_device, after: u64,
        out: *mut stw_log_message) -> stw_status;
    pub fn stw_model_create(out: *mut *mut stw_model, options: *const stw_model_options,
        error: *mut stw_error) -> stw_status;
    pub fn stw_model_destroy(model: *mut stw_model);
    pub fn stw_model_query(model: *const stw_model, out: *mut stw_model_info) -> stw_status;
    pub fn stw_model_tensor_count(model: *const stw_model) -> usize;
    pub fn stw_model_tensor_at(model: *const stw_model, index: usize,
        out: *mut stw_tensor_info) -> stw_status;
    pub fn stw_model_tensor_find(model: *const stw_model, name: *const c_char,
        index: *mut usize) -> stw_status;
    pub fn stw_model_label_at(model: *const stw_model, index: usize) -> *const c_char;
    pub fn stw_model_config(model: *const stw_model) -> *const c_char;
    pub fn stw_model_export(model: *const stw_model, folder: *const c_char,
        error: *mut stw_error) -> stw_status;
    pub fn stw_model_export_watched(model: *const stw_model, folder: *const c_char, watch: *mut stw_watch,
        error: *mut stw_error) -> stw_status;
    pub fn stw_model_preset_at(index: usize) -> *const c_char;
    pub fn stw_plan_create(out: *mut *mut stw_plan, model: *const stw_model, options: *const stw_plan_options,
        error: *mut stw_error) -> stw_status;
    pub fn stw_plan_destroy(plan: *mut stw_plan);
    pub fn stw_plan_query(plan: *const stw_plan, out: *mut stw_plan_info) -> stw_status;
    pub fn stw_plan_json(plan: *const stw_plan) -> *const c_char;
    pub fn stw_plan_report(plan: *const stw_plan) -> *const c_char;
    pub fn stw_plan_load(out: *mut *mut stw_plan, model: *const stw_model, json: *const c_char,
        json_size: usize, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_verify(plan: *const stw_plan, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_relaxation_at(plan: *const stw_plan, index: usize,
        out: *mut stw_relaxation_info) -> stw_status;
    pub fn stw_plan_offload_at(plan: *const stw_plan, index: usize, out: *mut stw_offload_info) -> stw_status;
    pub fn stw_plan_frontier(plan: *const stw_plan, out: *mut stw_frontier_point, capacity: usize,
        count: *mut usize, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_frontier_watched(plan: *const stw_plan, out: *mut stw_frontier_point, capacity: usize,
        count: *mut usize, watch: *mut stw_watch, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_longest_sequence(model: *const stw_model, options: *const stw_plan_options,
        sequence: *mut u64, error: *mut stw_error) -> stw_status;
    pub fn stw_profile_at(index: usize, out: *mut stw_profile_info) -> stw_status;
    pub fn stw_profile_read(profile: *const c_char, profile_size: usize, out: *mut stw_profile_info,
        error: *mut stw_error) -> stw_status;
    pub fn stw_profile_op_at(profile: *const c_char, profile_size: usize, index: usize,
        out: *mut stw_profile_op_info) -> stw_status;
    pub fn stw_plan_picture(plan: *const stw_plan, kind: u32, out: *mut c_char, capacity: usize,
        needed: *mut usize, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_picture_watched(plan: *const stw_plan, kind: u32, out: *mut c_char, capacity: usize,
        needed: *mut usize, watch: *mut stw_watch, error: *mut stw_error) -> stw_status;
    pub fn stw_plan_buffer_count(plan: *const stw_plan) -> usize;
    pub fn stw_plan_buffer_at(plan: *const stw_plan, index: usize, out: *mut stw_buffer_info) -> stw_status;
    pub fn stw_pack(offsets: *mut u64, lifetimes: *const stw_buffer_lifetime, count: usize,
        options: *const stw_pack_options, result: *mut stw_pack_result, error: *mut stw_error) -> stw_status;
    pub fn stw_dataset_open(out: *mut *mut stw_dataset, options: *const stw_dataset_options,
        error: *mut stw_error) -> stw_status;
    pub fn stw_dataset_close(dataset: *mut stw_dataset);
    pub fn stw_dataset_query(dataset: *const stw_dataset, out: *mut stw_dataset_info) -> stw_status;
    pub fn stw_trainer_create(out: *mut *mut stw_trainer, device: *mut stw_device, model: *const stw_model,
        plan: *const stw_plan, options: *const stw_trainer_options, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_destroy(trainer: *mut stw_trainer);
    pub fn stw_trainer_step(trainer: *mut stw_trainer, batch: *const stw_batch,
        error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_wait(trainer: *mut stw_trainer, out: *mut stw_step_result,
        error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_run(trainer: *mut stw_trainer, dataset: *mut stw_dataset,
        options: *const stw_run_options, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_evaluate(trainer: *mut stw_trainer, dataset: *mut stw_dataset, batches: u64,
        loss: *mut f64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_generate(trainer: *mut stw_trainer, options: *const stw_generate_options,
        count: *mut u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_logits(trainer: *mut stw_trainer, tokens: *const i32, count: u64, out: *mut f32,
        capacity: u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_classify(trainer: *mut stw_trainer, tokens: *const i32, token_types: *const i32,
        lengths: *const u64, texts: u64, out: *mut f32, capacity: u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_log_probabilities(trainer: *mut stw_trainer, batch: *const stw_batch, out: *mut f32,
        capacity: u64, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_write_reference(trainer: *mut stw_trainer, dataset: *mut stw_dataset,
        path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_replan(trainer: *mut stw_trainer, memory_bytes: u64, plan: *mut *mut stw_plan,
        error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_calibrate(trainer: *mut stw_trainer, out: *mut c_char, capacity: usize,
        size: *mut usize, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_timeline(trainer: *mut stw_trainer, path: *const c_char,
        error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_cancel(trainer: *mut stw_trainer);
    pub fn stw_trainer_progress(trainer: *const stw_trainer, out: *mut stw_progress) -> stw_status;
    pub fn stw_trainer_stream(trainer: *const stw_trainer) -> *mut c_void;
    pub fn stw_trainer_export_tensor(trainer: *mut stw_trainer, index: usize, kind: u32,
        out: *mut *mut DLManagedTensorVersioned, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_import_tensor(trainer: *mut stw_trainer, index: usize,
        r#in: *const DLManagedTensorVersioned, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_save(trainer: *mut stw_trainer, path: *const c_char,
        error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_restore(trainer: *mut stw_trainer, path: *const c_char,
        error: *mut stw_error) -> stw_status;
    pub fn stw_checkpoint_verify(path: *const c_char, error: *mut stw_error) -> stw_status;
    pub fn stw_trainer_export_model(trainer: *mut stw_trainer, folder: *const c_char,
        error: *mut stw_error) -> stw_status;
}

/// Struct, field (none: the whole struct), offset or size: as this compiler has them.
#[doc(hidden)]
pub fn layout() -> Vec<(&'static str, &'static str, usize)> {
    let mut found = Vec::new();
    macro_rules! of {
        ($kind:ident $(, $field:ident)*) => {
            found.push((stringify!($kind), "", std::mem::size_of::<$kind>()));
            let _at = std::mem::MaybeUninit::<$kind>::uninit();
            $(
                let member = unsafe { std::ptr::addr_of!((*_at.as_ptr()).$field) } as usize;
                let offset = member - _at.as_ptr() as usize;
                found.push((stringify!($kind), stringify!($field), offset));
            )*
        };
    }
    of!(stw_error, struct_size, status, native_code, reserved, bytes_needed, bytes_available, message);
    of!(stw_watch_info, struct_size, work, unit, reserved, done, total, share);
    of!(stw_watch_options, struct_size, set_mask, notify, user, interval_milliseconds, reserved);
    of!(stw_device_options, struct_size, backend, ordinal, threads, isa, log_level, stream, log, log_user,
        allocate, release, memory_user, run, run_user, cublaslt, cudnn);
    of!(stw_device_info, struct_size, backend, memory_total, memory_free, compute_major, compute_minor,
        threads, isa, name, profile, memory_reserved);
    of!(stw_memory_holder, struct_size, reserved, process, bytes, name);
    of!(stw_log_message, struct_size, level, number, component, text);
    of!(stw_model_options, struct_size, set_mask, source, config_json, config_json_size, weights, seed,
        dropout, reserved, adapter, adapter_targets, adapter_rank, adapter_flags, adapter_alpha,
        adapter_dropout, label_names, label_count, task, new_head);
    of!(stw_model_info, struct_size, layers, parameters, trainable, vocabulary, positions, has_weights, width,
        architecture, adapter_rank, has_codes, labels, padding_token, generates, token_types, task,
        head_is_new, file_layers);
    of!(stw_tensor_info, struct_size, ndim, name, shape, elements);
    of!(stw_parameter_group, struct_size, set_mask, pattern, frozen, state_bits, learning_rate, weight_decay);
    of!(stw_plan_options, struct_size, set_mask, memory_bytes, global_batch, sequence, device, device_memory,
        reserve_bytes, threads, precision, optimizer, state_bits, micro_batch, recompute, mode, inputs,
        host_bytes, profile, profile_size, groups, group_count, master, kernels, gradients, fused_update,
        attention, quantize, quantize_embeddings, preference, watch, keep, gradient_hook, texts);
    of!(stw_plan_info, struct_size, fits, micro_batch, accumulation_steps, last_micro_batch, loss_chunks,
        global_batch, sequence, parameters, gradients, optimizer, saved_activations, transient, workspace,
        inputs, padding, arena, reserve, peak, budget, host, minimum_bytes, state_bits, precision,
        step_seconds, tokens_per_second, recompute_fraction, fingerprint, proven, bound_seconds,
        unlimited_seconds, next_gib_seconds, copied_bytes, tiled_blocks, tile_rows, texts);
    of!(stw_buffer_info, struct_size, persistent, name, owner, offset, bytes, first, last);
    of!(stw_relaxation_info, struct_size, changes_numerics, saves_bytes, costs_fraction, change, fits,
        reserved, flags, effect, tokens_per_second, peak, host, least_host);
    of!(stw_offload_info, struct_size, outside_blocks, blocks, reserved, bytes, tensors);
    of!(stw_frontier_point, struct_size, is_knee, peak, micro_batch, loss_chunks, step_seconds,
        tokens_per_second);
    of!(stw_profile_info, struct_size, is_cuda, memory, reserve, gflops_fp32, gflops_bf16, gbytes_per_second,
        product_permille, stream_permille, launch_nanoseconds, name, title, source, host_gbytes_per_second,
        threads, precision, step_nanoseconds, kernels, reserved, watts, gflops_per_watt, mma_permille,
        wgmma_permille, attention_permille, wide_attention_permille, fp32_permille, reserved_end);
    of!(stw_profile_op_info, struct_size, permille, launch_nanoseconds, nanoseconds, name);
    of!(stw_buffer_lifetime, lower, upper, size);
    of!(stw_buffer_gap, lower, upper, first, end);
    of!(stw_buffer_constraint, alignment, offset, gaps, gap_count, set_mask);
    of!(stw_pack_options, struct_size, set_mask, capacity, node_limit, constraints);
    of!(stw_pack_result, struct_size, answer, height, bound, nodes);
    of!(stw_dataset_options, struct_size, tokenizer, path, vocabulary, sequence, seed, set_mask, pairs,
        document_end, marks, labels, label_count, held_out, reference, mask_rate, mask_token, token_kinds,
        mask_whole_words, task, sequential, token_type, watch, texts);
    of!(stw_dataset_info, struct_size, tokenizer, training_tokens, evaluation_tokens, training_samples,
        evaluation_samples, content_hash);
    of!(stw_progress, struct_size, phase, step, batches, skipped, loss, grad_norm, learning_rate, seconds,
        tokens_per_second, tokens, evaluation_loss, loss_scale, skip_reason, reserved, evaluation_accuracy,
        accuracy, evaluation_samples, evaluated_samples, evaluation_targets, micro_steps, micro_steps_done,
        sample_tokens, evaluation_tokens);
    of!(stw_gradients, struct_size, reserved, data, count, loss_sum, target_count, stream, scale,
        correct_pairs);
    of!(stw_trainer_options, struct_size, set_mask, seed, beta1, beta2, epsilon, weight_decay, clip_norm,
        nesterov, arena, arena_bytes, gradient_hook, gradient_user, momentum, label_smoothing, z_loss,
        outlier_limit, loss_scale, growth_interval, non_finite, beta, margin, answer_share, reserved, watch,
        first_sample);
    of!(stw_batch, struct_size, count, names, tensors, learning_rate);
    of!(stw_step_result, struct_size, skipped, step, loss, grad_norm, targets, seconds, loss_scale,
        skip_reason, reserved, accuracy);
    of!(stw_run_options, struct_size, set_mask, until, total, warmup, learning_rate, min_rate, schedule,
        progress_every, progress, progress_user, decay_steps, base_batch);
    of!(stw_generate_options, struct_size, top_k, prompt, prompt_count, out, out_capacity, temperature, seed,
        stop, stop_count, top_p, set_mask, reserved);
    found
}
