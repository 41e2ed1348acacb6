//! Constants of the API.
use crate::abi;

macro_rules! choices {
    ($($(#[$about:meta])* $kind:ident { $($name:ident = $constant:ident,)* })*) => {$(
        $(#[$about])*
        #[repr(u32)]
        #[non_exhaustive]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $kind { $($name = abi::$constant,)* }

        impl $kind {
            /// The value for a number from the library. None for a number that this crate does not know.
            pub fn from_number(number: u32) -> Option<$kind> {
                match number {
                    $(abi::$constant => Some($kind::$name),)*
                    _ => None,
                }
            }
        }

        impl Default for $kind {
            /// The value whose number is 0, or the first one.
            fn default() -> $kind {
                $kind::from_number(0).unwrap_or([$($kind::$name),*][0])
            }
        }
    )*};
}

choices! {
    /// The kind of device.
    Backend { Auto = STW_BACKEND_AUTO, Cpu = STW_BACKEND_CPU, Cuda = STW_BACKEND_CUDA, }
    /// The messages that are logged.
    LogLevel { Warning = STW_LOG_WARNING, Error = STW_LOG_ERROR, Info = STW_LOG_INFO, }
    /// Instruction sets of a CPU. No trained bit depends on them.
    Isa { Auto = STW_ISA_AUTO, Scalar = STW_ISA_SCALAR, Avx2 = STW_ISA_AVX2, Avx512 = STW_ISA_AVX512,
        Neon = STW_ISA_NEON, }
    /// The format in which activations are stored, and the weights that products read.
    Precision { Default = STW_PRECISION_DEFAULT, Fp32 = STW_PRECISION_FP32, Bf16 = STW_PRECISION_BF16,
        Fp16 = STW_PRECISION_FP16, }
    /// The optimizer.
    Optimizer { AdamW = STW_OPTIMIZER_ADAMW, Sgd = STW_OPTIMIZER_SGD, Lion = STW_OPTIMIZER_LION,
        Muon = STW_OPTIMIZER_MUON, Adafactor = STW_OPTIMIZER_ADAFACTOR, }
    /// Bits of the optimizer's states.
    States { Auto = STW_STATES_AUTO, Bits32 = STW_STATES_32, Bits8 = STW_STATES_8, }
    /// How bf16 keeps the fp32 value of a trained parameter.
    Master { Exact = STW_MASTER_EXACT, Split8 = STW_MASTER_SPLIT8, Stochastic = STW_MASTER_STOCHASTIC, }
    /// The format in which the gradients of the blocks' matrices are summed.
    GradientPrecision { Fp32 = STW_GRADIENTS_FP32, Bf16 = STW_GRADIENTS_BF16, }
    /// The kernels that compute matrix products, which differ in the order in which they add.
    Kernels { Auto = STW_KERNELS_AUTO, Portable = STW_KERNELS_PORTABLE, Tensor = STW_KERNELS_TENSOR,
        CublasLt = STW_KERNELS_CUBLASLT, Wgmma = STW_KERNELS_WGMMA,
        CublasLtWgmma = STW_KERNELS_CUBLASLT_WGMMA, }
    /// The implementation of attention.
    Attention { Own = STW_ATTENTION_OWN, Cudnn = STW_ATTENTION_CUDNN, }
    /// The format in which frozen matrices under adapters are stored.
    Quantize { Auto = STW_QUANTIZE_AUTO, None = STW_QUANTIZE_NONE, Nf4 = STW_QUANTIZE_NF4,
        Int8 = STW_QUANTIZE_INT8, }
    /// The training objective: every target by itself, or the better one of two answers.
    Preference { None = STW_PREFERENCE_NONE, Dpo = STW_PREFERENCE_DPO, Ipo = STW_PREFERENCE_IPO,
        Simpo = STW_PREFERENCE_SIMPO, Orpo = STW_PREFERENCE_ORPO, }
    /// The task that a model is trained for.
    Task { Automatic = STW_TASK_AUTOMATIC, LanguageModel = STW_TASK_LANGUAGE_MODEL,
        MaskedLanguageModel = STW_TASK_MASKED_LANGUAGE_MODEL, Label = STW_TASK_LABEL,
        Labels = STW_TASK_LABELS, Number = STW_TASK_NUMBER, TokenLabel = STW_TASK_TOKEN_LABEL,
        Spans = STW_TASK_SPANS, }
    /// Whether the micro-batch may change bits.
    Mode { Exact = STW_MODE_EXACT, Fast = STW_MODE_FAST, }
    /// Whether activations are recomputed in the backward pass.
    Recompute { Auto = STW_RECOMPUTE_AUTO, None = STW_RECOMPUTE_NONE, Full = STW_RECOMPUTE_FULL, }
    /// The content of a dataset's file.
    Tokenizer { Auto = STW_TOKENIZER_AUTO, Byte = STW_TOKENIZER_BYTE, Ids = STW_TOKENIZER_IDS, }
    /// How ids are stored.
    TokenType { Auto = STW_TOKEN_TYPE_AUTO, Uint16 = STW_TOKEN_TYPE_UINT16, Uint32 = STW_TOKEN_TYPE_UINT32,
        Int32 = STW_TOKEN_TYPE_INT32, Int64 = STW_TOKEN_TYPE_INT64, }
    /// The course of the learning rate after the warm-up.
    Schedule { Cosine = STW_SCHEDULE_COSINE, Linear = STW_SCHEDULE_LINEAR, Constant = STW_SCHEDULE_CONSTANT,
        Wsd = STW_SCHEDULE_WSD, InverseRoot = STW_SCHEDULE_INVERSE_ROOT, }
    /// The reaction to a loss or gradient that is not finite.
    NonFinite { Skip = STW_NON_FINITE_SKIP, Stop = STW_NON_FINITE_STOP, }
    /// The activity of a trainer.
    Phase { Idle = STW_PHASE_IDLE, Train = STW_PHASE_TRAIN, Evaluate = STW_PHASE_EVALUATE,
        Generate = STW_PHASE_GENERATE, Save = STW_PHASE_SAVE, Calibrate = STW_PHASE_CALIBRATE, }
    /// The reason why a step updated nothing.
    SkipReason { None = STW_SKIP_NONE, NoTarget = STW_SKIP_NO_TARGET, NotFinite = STW_SKIP_NOT_FINITE,
        Outlier = STW_SKIP_OUTLIER, }
    /// Pictures of a plan.
    Picture { Svg = STW_PICTURE_SVG, Html = STW_PICTURE_HTML, Csv = STW_PICTURE_CSV, }
    /// The answer of a search for offsets.
    PackAnswer { Optimal = STW_PACK_OPTIMAL, Fits = STW_PACK_FITS, Impossible = STW_PACK_IMPOSSIBLE,
        Unknown = STW_PACK_UNKNOWN, }
    /// The kind of long call in progress.
    Work {
        None = STW_WORK_NONE, Plan = STW_WORK_PLAN, OpenDataset = STW_WORK_OPEN_DATASET,
        CreateTrainer = STW_WORK_CREATE_TRAINER, Step = STW_WORK_STEP,
        Evaluate = STW_WORK_EVALUATE, Generate = STW_WORK_GENERATE, Calibrate = STW_WORK_CALIBRATE,
        Save = STW_WORK_SAVE, Restore = STW_WORK_RESTORE,
        Export = STW_WORK_EXPORT,
    }
    /// The unit in which a long call counts its work.
    Unit { None = STW_UNIT_NONE, Bytes = STW_UNIT_BYTES, MicroSteps = STW_UNIT_MICRO_STEPS,
        Samples = STW_UNIT_SAMPLES, }
    /// The kinds of tensors of a parameter.
    TensorKind { Parameter = STW_TENSOR_PARAMETER, Gradient = STW_TENSOR_GRADIENT,
        FirstMoment = STW_TENSOR_FIRST_MOMENT, SecondMoment = STW_TENSOR_SECOND_MOMENT, }
}

/// Settings that the relaxations of a plan that does not fit must not change. Combine them with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Keep(u32);

impl Keep {
    /// All settings that change the trained bits.
    pub const NUMERICS: Keep = Keep(abi::STW_KEEP_NUMERICS);
    /// No smaller preset.
    pub const MODEL: Keep = Keep(abi::STW_KEEP_MODEL);
    /// No new adapters.
    pub const ADAPTERS: Keep = Keep(abi::STW_KEEP_ADAPTERS);
    /// No shorter samples.
    pub const SEQUENCE: Keep = Keep(abi::STW_KEEP_SEQUENCE);
    /// No other optimizer.
    pub const OPTIMIZER: Keep = Keep(abi::STW_KEEP_OPTIMIZER);
    /// No fused update.
    pub const CLIPPING: Keep = Keep(abi::STW_KEEP_CLIPPING);
    /// The micro-batch, recompute and host memory.
    pub const DIVISION: Keep = Keep(abi::STW_KEEP_DIVISION);
    /// The number format of computation.
    pub const PRECISION: Keep = Keep(abi::STW_KEEP_PRECISION);
    /// All of these: there are no relaxations.
    pub const ALL: Keep = Keep(abi::STW_KEEP_ALL);

    /// The number that the library takes.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl std::ops::BitOr for Keep {
    type Output = Keep;
    fn bitor(self, other: Keep) -> Keep {
        Keep(self.0 | other.0)
    }
}
