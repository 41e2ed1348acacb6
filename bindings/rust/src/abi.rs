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
pub const STW_ADAPTER_RANK_STABILISED: u32 = 1;
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
pub const STW_ATTENTION_OWN: u32 = 0;
pub const STW_ATTENTION_CUDNN: u32 = 1;
pub const STW_QUANTIZE_AUTO: u32 = 0;
pub const STW_QUANTIZE_NONE: u32 = 1;
pub const STW_QUANTIZE_NF4: u32 = 2;
pub const STW_QUANTIZE_INT8: u32 = 3;
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
pub const STW_PACK_OPTIMAL: u32 = 0;
pub const STW_PACK_FITS: u32 = 1;
pub const STW_PACK_IMPOSSIBLE: u32 = 2;
pub const STW_PACK_UNKNOWN: u32 = 3;
pub const STW_TOKENIZER_AUTO: u32 = 0;
pub const STW_TOKENIZER_BYTE: u32 = 1;
pub const STW_TOKENIZER_IDS: u32 = 2;
pub const STW_SET_DOCUMENT_END: u32 = 1;
pub const STW_SET_HELD_OUT: u32 = 2;
pub const STW_MARK_TARGET: u32 = 1;
pub const STW_MARK_BEGIN: u32 = 2;
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
pub const STW_NON_FINITE_SKIP: u32 = 0;
pub const STW_NON_FINITE_STOP: u32 = 1;
pub const STW_SCHEDULE_COSINE: u32 = 0;
pub const STW_SCHEDULE_LINEAR: u32 = 1;
pub const STW_SCHEDULE_CONSTANT: u32 = 2;
pub const STW_SCHEDULE_WSD: u32 = 3;
pub const STW_SCHEDULE_INVERSE_ROOT: u32 = 4;
pub const STW_SET_MIN_RATE: u32 = 1;
pub const STW_PROFILE_BYTES: u32 = 16384;
pub const STW_TENSOR_PARAMETER: u32 = 0;
pub const STW_TENSOR_GRADIENT: u32 = 1;
pub const STW_TENSOR_FIRST_MOMENT: u32 = 2;
pub const STW_TENSOR_SECOND_MOMENT: u32 = 3;

#[repr(C)]
pub struct stw_device {
    _private: [u8; 0],
}

#[repr(C)]
pub struct stw_model {
    _private: [u8; 0],
}

#[repr(C)]
pub struct stw_plan {
    _private: [u8; 0],
}

#[repr(C)]
pub struct stw_dataset {
    _private: [u8; 0],
}

#[repr(C)]
pub struct stw_trainer {
    _private: [u8; 0],
}

pub use crate::dlpack::DLManagedTensorVersioned;

pub type stw_log_fn = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, component: *const c_char, message: *const c_char)>;

pub type stw_allocate_fn = Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment: usize, stream: *mut c_void) -> *mut c_void>;

pub type stw_release_fn = Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, bytes: usize, stream: *mut c_void)>;

pub type stw_run_fn = Option<unsafe extern "C" fn(user: *mut c_void, tasks: u32, task: Option<unsafe extern "C" fn(context: *mut c_void, index: u32)>, context: *mut c_void)>;

pub type stw_progress_fn = Option<unsafe extern "C" fn(user: *mut c_void, now: *const stw_progress) -> i32>;

pub type stw_gradient_fn = Option<unsafe extern "C" fn(user: *mut c_void, gradients: *const stw_gradients) -> i32>;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct stw_error {
    pub struct_size: u32,
    pub status: stw_status,
    pub native_code: i32,
    pub reserved: u32,
    pub bytes_needed: u64,
    pub bytes_available: u64,
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
#[derive(Clone, Copy)]
pub struct stw_device_options {
    pub struct_size: u32,
    pub backend: u32,
    pub ordinal: i32,
    pub threads: u32,
    pub isa: u32,
    pub log_level: i32,
    pub stream: *mut c_void,
    pub log: stw_log_fn,
    pub log_user: *mut c_void,
    pub allocate: stw_allocate_fn,
    pub release: stw_release_fn,
    pub memory_user: *mut c_void,
    pub run: stw_run_fn,
    pub run_user: *mut c_void,
    pub cublaslt: *const c_char,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_device_info {
    pub struct_size: u32,
    pub backend: u32,
    pub memory_total: u64,
    pub memory_free: u64,
    pub compute_major: i32,
    pub compute_minor: i32,
    pub threads: u32,
    pub isa: u32,
    pub name: Text<64>,
    pub profile: Text<24>,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_memory_holder {
    pub struct_size: u32,
    pub reserved: u32,
    pub process: u64,
    pub bytes: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_log_message {
    pub struct_size: u32,
    pub level: i32,
    pub number: u64,
    pub component: Text<32>,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_model_options {
    pub struct_size: u32,
    pub set_mask: u32,
    pub source: *const c_char,
    pub config_json: *const c_char,
    pub config_json_size: usize,
    pub weights: *const c_char,
    pub seed: u64,
    pub dropout: f32,
    pub reserved: u32,
    pub adapter: *const c_char,
    pub adapter_targets: *const c_char,
    pub adapter_rank: u32,
    pub adapter_flags: u32,
    pub adapter_alpha: f32,
    pub adapter_dropout: f32,
    pub label_names: *const *const c_char,
    pub label_count: usize,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_model_info {
    pub struct_size: u32,
    pub layers: u32,
    pub parameters: u64,
    pub trainable: u64,
    pub vocabulary: u64,
    pub positions: u64,
    pub has_weights: u32,
    pub width: u32,
    pub architecture: Text<32>,
    pub adapter_rank: u32,
    pub has_codes: u32,
    pub labels: u64,
    pub padding_token: i64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_tensor_info {
    pub struct_size: u32,
    pub ndim: u32,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_parameter_group {
    pub struct_size: u32,
    pub set_mask: u32,
    pub pattern: *const c_char,
    pub frozen: u32,
    pub state_bits: u32,
    pub learning_rate: f64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_plan_options {
    pub struct_size: u32,
    pub set_mask: u32,
    pub memory_bytes: u64,
    pub global_batch: u64,
    pub sequence: u64,
    pub device: *const c_char,
    pub device_memory: u64,
    pub reserve_bytes: u64,
    pub threads: u32,
    pub precision: u32,
    pub optimizer: u32,
    pub state_bits: u32,
    pub micro_batch: u32,
    pub recompute: u32,
    pub mode: u32,
    pub inputs: u32,
    pub host_bytes: u64,
    pub profile: *const c_char,
    pub profile_size: usize,
    pub groups: *const stw_parameter_group,
    pub group_count: usize,
    pub master: u32,
    pub kernels: u32,
    pub gradients: u32,
    pub fused_update: u32,
    pub attention: u32,
    pub quantize: u32,
    pub quantize_embeddings: u32,
    pub reserved: u32,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_plan_info {
    pub struct_size: u32,
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
    pub arena: u64,
    pub reserve: u64,
    pub peak: u64,
    pub budget: u64,
    pub host: u64,
    pub minimum_bytes: u64,
    pub state_bits: u32,
    pub precision: u32,
    pub step_seconds: f64,
    pub tokens_per_second: f64,
    pub recompute_fraction: f64,
    pub fingerprint: Text<20>,
    pub proven: u32,
    pub bound_seconds: f64,
    pub unlimited_seconds: f64,
    pub next_gib_seconds: f64,
    pub copied_bytes: u64,
    pub tiled_blocks: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_buffer_info {
    pub struct_size: u32,
    pub persistent: u32,
    pub name: *const c_char,
    pub owner: *const c_char,
    pub offset: u64,
    pub bytes: u64,
    pub first: u32,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_relaxation_info {
    pub struct_size: u32,
    pub changes_numerics: u32,
    pub saves_bytes: u64,
    pub costs_fraction: f64,
    pub change: Text<64>,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_offload_info {
    pub struct_size: u32,
    pub outside_blocks: u32,
    pub blocks: u32,
    pub reserved: u32,
    pub bytes: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_frontier_point {
    pub struct_size: u32,
    pub is_knee: u32,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_profile_info {
    pub struct_size: u32,
    pub is_cuda: u32,
    pub memory: u64,
    pub reserve: u64,
    pub gflops_fp32: u64,
    pub gflops_bf16: u64,
    pub gbytes_per_second: u64,
    pub product_permille: u32,
    pub stream_permille: u32,
    pub launch_nanoseconds: u64,
    pub name: *const c_char,
    pub title: *const c_char,
    pub source: *const c_char,
    pub host_gbytes_per_second: u64,
    pub threads: u32,
    pub precision: u32,
    pub step_nanoseconds: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_profile_op_info {
    pub struct_size: u32,
    pub permille: u32,
    pub launch_nanoseconds: u64,
    pub nanoseconds: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_buffer_lifetime {
    pub lower: i64,
    pub upper: i64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_pack_options {
    pub struct_size: u32,
    pub set_mask: u32,
    pub capacity: u64,
    pub node_limit: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_pack_result {
    pub struct_size: u32,
    pub answer: u32,
    pub height: u64,
    pub bound: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_dataset_options {
    pub struct_size: u32,
    pub tokenizer: u32,
    pub path: *const c_char,
    pub vocabulary: u64,
    pub sequence: u64,
    pub seed: u64,
    pub set_mask: u32,
    pub reserved: u32,
    pub document_end: u64,
    pub marks: *const c_char,
    pub labels: *const c_char,
    pub label_count: u64,
    pub held_out: f64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_dataset_info {
    pub struct_size: u32,
    pub tokenizer: u32,
    pub training_tokens: u64,
    pub evaluation_tokens: u64,
    pub training_samples: u64,
    pub evaluation_samples: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_progress {
    pub struct_size: u32,
    pub phase: u32,
    pub step: u64,
    pub batches: u64,
    pub skipped: u64,
    pub loss: f64,
    pub grad_norm: f64,
    pub learning_rate: f64,
    pub seconds: f64,
    pub tokens_per_second: f64,
    pub tokens: u64,
    pub evaluation_loss: f64,
    pub loss_scale: f64,
    pub skip_reason: u32,
    pub reserved: u32,
    pub evaluation_accuracy: f64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_gradients {
    pub struct_size: u32,
    pub reserved: u32,
    pub data: *mut f32,
    pub count: u64,
    pub loss_sum: *mut f64,
    pub target_count: *mut u64,
    pub stream: *mut c_void,
    pub scale: f64,
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
    pub seed: u64,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    pub weight_decay: f32,
    pub clip_norm: f32,
    pub nesterov: u32,
    pub arena: *mut c_void,
    pub arena_bytes: u64,
    pub gradient_hook: stw_gradient_fn,
    pub gradient_user: *mut c_void,
    pub momentum: f32,
    pub label_smoothing: f32,
    pub z_loss: f32,
    pub outlier_limit: f32,
    pub loss_scale: f64,
    pub growth_interval: u32,
    pub non_finite: u32,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_batch {
    pub struct_size: u32,
    pub count: u32,
    pub names: *const *const c_char,
    pub tensors: *const *const DLManagedTensorVersioned,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_step_result {
    pub struct_size: u32,
    pub skipped: u32,
    pub step: u64,
    pub loss: f64,
    pub grad_norm: f64,
    pub targets: u64,
    pub seconds: f64,
    pub loss_scale: f64,
    pub skip_reason: u32,
    pub reserved: u32,
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
    pub until: u64,
    pub total: u64,
    pub warmup: u64,
    pub learning_rate: f64,
    pub min_rate: f64,
    pub schedule: u32,
    pub progress_every: u32,
    pub progress: stw_progress_fn,
    pub progress_user: *mut c_void,
    pub decay_steps: u64,
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
#[derive(Clone, Copy, Debug)]
pub struct stw_generate_options {
    pub struct_size: u32,
    pub top_k: u32,
    pub prompt: *const i32,
    pub prompt_count: u64,
    pub out: *mut i32,
    pub out_capacity: u64,
    pub temperature: f64,
    pub seed: u64,
    pub stop: *const i32,
    pub stop_count: u64,
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
    of!(stw_device_options, struct_size, backend, ordinal, threads, isa, log_level, stream, log, log_user, allocate, release, memory_user, run, run_user, cublaslt, cudnn);
    of!(stw_device_info, struct_size, backend, memory_total, memory_free, compute_major, compute_minor, threads, isa, name, profile);
    of!(stw_memory_holder, struct_size, reserved, process, bytes, name);
    of!(stw_log_message, struct_size, level, number, component, text);
    of!(stw_model_options, struct_size, set_mask, source, config_json, config_json_size, weights, seed, dropout, reserved, adapter, adapter_targets, adapter_rank, adapter_flags, adapter_alpha, adapter_dropout, label_names, label_count);
    of!(stw_model_info, struct_size, layers, parameters, trainable, vocabulary, positions, has_weights, width, architecture, adapter_rank, has_codes, labels, padding_token);
    of!(stw_tensor_info, struct_size, ndim, name, shape, elements);
    of!(stw_parameter_group, struct_size, set_mask, pattern, frozen, state_bits, learning_rate, weight_decay);
    of!(stw_plan_options, struct_size, set_mask, memory_bytes, global_batch, sequence, device, device_memory, reserve_bytes, threads, precision, optimizer, state_bits, micro_batch, recompute, mode, inputs, host_bytes, profile, profile_size, groups, group_count, master, kernels, gradients, fused_update, attention, quantize, quantize_embeddings, reserved);
    of!(stw_plan_info, struct_size, fits, micro_batch, accumulation_steps, last_micro_batch, loss_chunks, global_batch, sequence, parameters, gradients, optimizer, saved_activations, transient, workspace, inputs, padding, arena, reserve, peak, budget, host, minimum_bytes, state_bits, precision, step_seconds, tokens_per_second, recompute_fraction, fingerprint, proven, bound_seconds, unlimited_seconds, next_gib_seconds, copied_bytes, tiled_blocks, tile_rows);
    of!(stw_buffer_info, struct_size, persistent, name, owner, offset, bytes, first, last);
    of!(stw_relaxation_info, struct_size, changes_numerics, saves_bytes, costs_fraction, change);
    of!(stw_offload_info, struct_size, outside_blocks, blocks, reserved, bytes, tensors);
    of!(stw_frontier_point, struct_size, is_knee, peak, micro_batch, loss_chunks, step_seconds, tokens_per_second);
    of!(stw_profile_info, struct_size, is_cuda, memory, reserve, gflops_fp32, gflops_bf16, gbytes_per_second, product_permille, stream_permille, launch_nanoseconds, name, title, source, host_gbytes_per_second, threads, precision, step_nanoseconds, kernels, reserved);
    of!(stw_profile_op_info, struct_size, permille, launch_nanoseconds, nanoseconds, name);
    of!(stw_buffer_lifetime, lower, upper, size);
    of!(stw_pack_options, struct_size, set_mask, capacity, node_limit);
    of!(stw_pack_result, struct_size, answer, height, bound, nodes);
    of!(stw_dataset_options, struct_size, tokenizer, path, vocabulary, sequence, seed, set_mask, reserved, document_end, marks, labels, label_count, held_out);
    of!(stw_dataset_info, struct_size, tokenizer, training_tokens, evaluation_tokens, training_samples, evaluation_samples);
    of!(stw_progress, struct_size, phase, step, batches, skipped, loss, grad_norm, learning_rate, seconds, tokens_per_second, tokens, evaluation_loss, loss_scale, skip_reason, reserved, evaluation_accuracy);
    of!(stw_gradients, struct_size, reserved, data, count, loss_sum, target_count, stream, scale);
    of!(stw_trainer_options, struct_size, set_mask, seed, beta1, beta2, epsilon, weight_decay, clip_norm, nesterov, arena, arena_bytes, gradient_hook, gradient_user, momentum, label_smoothing, z_loss, outlier_limit, loss_scale, growth_interval, non_finite);
    of!(stw_batch, struct_size, count, names, tensors, learning_rate);
    of!(stw_step_result, struct_size, skipped, step, loss, grad_norm, targets, seconds, loss_scale, skip_reason, reserved);
    of!(stw_run_options, struct_size, set_mask, until, total, warmup, learning_rate, min_rate, schedule, progress_every, progress, progress_user, decay_steps, base_batch);
    of!(stw_generate_options, struct_size, top_k, prompt, prompt_count, out, out_capacity, temperature, seed, stop, stop_count);
    found
}
