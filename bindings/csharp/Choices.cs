using System;
using static Stowage.Abi;

// Numbers of the API that have names. A newer library may tell others, which have none here.
namespace Stowage
{
    /// <summary>Where to compute.</summary>
    public enum Backend : uint
    {
        /// <summary>CUDA where there is one, else the CPU.</summary>
        Auto = STW_BACKEND_AUTO,
        /// <summary>STW_BACKEND_CPU</summary>
        Cpu = STW_BACKEND_CPU,
        /// <summary>STW_BACKEND_CUDA</summary>
        Cuda = STW_BACKEND_CUDA,
    }

    /// <summary>Which messages are told: those of a level and of all before it.</summary>
    public enum LogLevel : uint
    {
        /// <summary>STW_LOG_ERROR</summary>
        Error = STW_LOG_ERROR,
        /// <summary>STW_LOG_WARNING</summary>
        Warning = STW_LOG_WARNING,
        /// <summary>STW_LOG_INFO</summary>
        Info = STW_LOG_INFO,
    }

    /// <summary>Instructions of a CPU. No bit depends on them.</summary>
    public enum Isa : uint
    {
        /// <summary>The widest that runs here.</summary>
        Auto = STW_ISA_AUTO,
        /// <summary>STW_ISA_SCALAR</summary>
        Scalar = STW_ISA_SCALAR,
        /// <summary>STW_ISA_AVX2</summary>
        Avx2 = STW_ISA_AVX2,
        /// <summary>STW_ISA_AVX512</summary>
        Avx512 = STW_ISA_AVX512,
        /// <summary>STW_ISA_NEON</summary>
        Neon = STW_ISA_NEON,
    }

    /// <summary>What activations, and the weights that products read, are stored as.</summary>
    public enum Precision : uint
    {
        /// <summary>fp32 on the CPU, bf16 elsewhere.</summary>
        Default = STW_PRECISION_DEFAULT,
        /// <summary>STW_PRECISION_FP32</summary>
        Fp32 = STW_PRECISION_FP32,
        /// <summary>STW_PRECISION_BF16</summary>
        Bf16 = STW_PRECISION_BF16,
        /// <summary>STW_PRECISION_FP16</summary>
        Fp16 = STW_PRECISION_FP16,
    }

    /// <summary>The rule of updates.</summary>
    public enum Optimizer : uint
    {
        /// <summary>STW_OPTIMIZER_ADAMW</summary>
        AdamW = STW_OPTIMIZER_ADAMW,
        /// <summary>STW_OPTIMIZER_SGD</summary>
        Sgd = STW_OPTIMIZER_SGD,
        /// <summary>STW_OPTIMIZER_LION</summary>
        Lion = STW_OPTIMIZER_LION,
        /// <summary>Of the matrices of blocks; all else gets AdamW.</summary>
        Muon = STW_OPTIMIZER_MUON,
        /// <summary>STW_OPTIMIZER_ADAFACTOR</summary>
        Adafactor = STW_OPTIMIZER_ADAFACTOR,
    }

    /// <summary>Bits of the optimizer's states.</summary>
    public enum States : uint
    {
        /// <summary>32 unless that does not fit or costs too much.</summary>
        Auto = STW_STATES_AUTO,
        /// <summary>STW_STATES_32</summary>
        Bits32 = STW_STATES_32,
        /// <summary>STW_STATES_8</summary>
        Bits8 = STW_STATES_8,
    }

    /// <summary>What bf16 keeps of a trained parameter's fp32 value.</summary>
    public enum Master : uint
    {
        /// <summary>All of it.</summary>
        Exact = STW_MASTER_EXACT,
        /// <summary>24 bits.</summary>
        Split8 = STW_MASTER_SPLIT8,
        /// <summary>The bf16 value alone, rounded at random.</summary>
        Stochastic = STW_MASTER_STOCHASTIC,
    }

    /// <summary>What the matrices of blocks sum their gradients up in.</summary>
    public enum GradientPrecision : uint
    {
        /// <summary>STW_GRADIENTS_FP32</summary>
        Fp32 = STW_GRADIENTS_FP32,
        /// <summary>STW_GRADIENTS_BF16</summary>
        Bf16 = STW_GRADIENTS_BF16,
    }

    /// <summary>In which order products add up, and by whose code.</summary>
    public enum Kernels : uint
    {
        /// <summary>STW_KERNELS_AUTO</summary>
        Auto = STW_KERNELS_AUTO,
        /// <summary>The one order that all devices share.</summary>
        Portable = STW_KERNELS_PORTABLE,
        /// <summary>That of tensor cores.</summary>
        Tensor = STW_KERNELS_TENSOR,
        /// <summary>NVIDIA's library.</summary>
        CublasLt = STW_KERNELS_CUBLASLT,
        /// <summary>Of H100 and H200.</summary>
        Wgmma = STW_KERNELS_WGMMA,
        /// <summary>NVIDIA's library, and wgmma for what it does not compute.</summary>
        CublasLtWgmma = STW_KERNELS_CUBLASLT_WGMMA,
    }

    /// <summary>Whose attention it is.</summary>
    public enum Attention : uint
    {
        /// <summary>STW_ATTENTION_OWN</summary>
        Own = STW_ATTENTION_OWN,
        /// <summary>NVIDIA's cuDNN.</summary>
        Cudnn = STW_ATTENTION_CUDNN,
    }

    /// <summary>What frozen matrices below adapters are stored as.</summary>
    public enum Quantize : uint
    {
        /// <summary>As the model's files have them.</summary>
        Auto = STW_QUANTIZE_AUTO,
        /// <summary>STW_QUANTIZE_NONE</summary>
        None = STW_QUANTIZE_NONE,
        /// <summary>4.5 bits an element.</summary>
        Nf4 = STW_QUANTIZE_NF4,
        /// <summary>8.5 bits an element.</summary>
        Int8 = STW_QUANTIZE_INT8,
    }

    /// <summary>What is learned: every target by itself, or which of two answers is the better one.</summary>
    public enum Preference : uint
    {
        /// <summary>STW_PREFERENCE_NONE</summary>
        None = STW_PREFERENCE_NONE,
        /// <summary>STW_PREFERENCE_DPO</summary>
        Dpo = STW_PREFERENCE_DPO,
        /// <summary>STW_PREFERENCE_IPO</summary>
        Ipo = STW_PREFERENCE_IPO,
        /// <summary>STW_PREFERENCE_SIMPO</summary>
        Simpo = STW_PREFERENCE_SIMPO,
        /// <summary>STW_PREFERENCE_ORPO</summary>
        Orpo = STW_PREFERENCE_ORPO,
    }

    /// <summary>What a model is trained for.</summary>
    public enum TrainingTask : uint
    {
        /// <summary>As the config says; with labels, of a model without any: Label.</summary>
        Automatic = STW_TASK_AUTOMATIC,
        /// <summary>The token that follows each token.</summary>
        LanguageModel = STW_TASK_LANGUAGE_MODEL,
        /// <summary>Tokens that are hidden from the model.</summary>
        MaskedLanguageModel = STW_TASK_MASKED_LANGUAGE_MODEL,
        /// <summary>One label of a text.</summary>
        Label = STW_TASK_LABEL,
        /// <summary>Any number of labels of a text.</summary>
        Labels = STW_TASK_LABELS,
        /// <summary>A number of a text, or several.</summary>
        Number = STW_TASK_NUMBER,
        /// <summary>One label of each token.</summary>
        TokenLabel = STW_TASK_TOKEN_LABEL,
    }

    /// <summary>Whether the micro-batch may change bits.</summary>
    public enum Mode : uint
    {
        /// <summary>STW_MODE_EXACT</summary>
        Exact = STW_MODE_EXACT,
        /// <summary>STW_MODE_FAST</summary>
        Fast = STW_MODE_FAST,
    }

    /// <summary>Whether activations are computed again in the backward pass.</summary>
    public enum Recompute : uint
    {
        /// <summary>STW_RECOMPUTE_AUTO</summary>
        Auto = STW_RECOMPUTE_AUTO,
        /// <summary>STW_RECOMPUTE_NONE</summary>
        None = STW_RECOMPUTE_NONE,
        /// <summary>STW_RECOMPUTE_FULL</summary>
        Full = STW_RECOMPUTE_FULL,
    }

    /// <summary>What the bytes of a dataset's file are.</summary>
    public enum Tokenizer : uint
    {
        /// <summary>Ids of .bin files, else bytes.</summary>
        Auto = STW_TOKENIZER_AUTO,
        /// <summary>STW_TOKENIZER_BYTE</summary>
        Byte = STW_TOKENIZER_BYTE,
        /// <summary>STW_TOKENIZER_IDS</summary>
        Ids = STW_TOKENIZER_IDS,
    }

    /// <summary>How ids are stored, all little-endian.</summary>
    public enum TokenType : uint
    {
        /// <summary>uint16, or uint32 where the vocabulary exceeds 65,536.</summary>
        Auto = STW_TOKEN_TYPE_AUTO,
        /// <summary>STW_TOKEN_TYPE_UINT16</summary>
        UInt16 = STW_TOKEN_TYPE_UINT16,
        /// <summary>STW_TOKEN_TYPE_UINT32</summary>
        UInt32 = STW_TOKEN_TYPE_UINT32,
        /// <summary>STW_TOKEN_TYPE_INT32</summary>
        Int32 = STW_TOKEN_TYPE_INT32,
        /// <summary>STW_TOKEN_TYPE_INT64</summary>
        Int64 = STW_TOKEN_TYPE_INT64,
    }

    /// <summary>The learning rate's course after the warm-up.</summary>
    public enum Schedule : uint
    {
        /// <summary>STW_SCHEDULE_COSINE</summary>
        Cosine = STW_SCHEDULE_COSINE,
        /// <summary>STW_SCHEDULE_LINEAR</summary>
        Linear = STW_SCHEDULE_LINEAR,
        /// <summary>STW_SCHEDULE_CONSTANT</summary>
        Constant = STW_SCHEDULE_CONSTANT,
        /// <summary>Warm-up-stable-decay.</summary>
        Wsd = STW_SCHEDULE_WSD,
        /// <summary>STW_SCHEDULE_INVERSE_ROOT</summary>
        InverseRoot = STW_SCHEDULE_INVERSE_ROOT,
    }

    /// <summary>What happens where a loss or gradient is not finite.</summary>
    public enum NonFinite : uint
    {
        /// <summary>The step updates nothing.</summary>
        Skip = STW_NON_FINITE_SKIP,
        /// <summary>It fails.</summary>
        Stop = STW_NON_FINITE_STOP,
    }

    /// <summary>What a trainer is doing.</summary>
    public enum Phase : uint
    {
        /// <summary>STW_PHASE_IDLE</summary>
        Idle = STW_PHASE_IDLE,
        /// <summary>STW_PHASE_TRAIN</summary>
        Train = STW_PHASE_TRAIN,
        /// <summary>STW_PHASE_EVALUATE</summary>
        Evaluate = STW_PHASE_EVALUATE,
        /// <summary>STW_PHASE_GENERATE</summary>
        Generate = STW_PHASE_GENERATE,
        /// <summary>STW_PHASE_SAVE</summary>
        Save = STW_PHASE_SAVE,
        /// <summary>STW_PHASE_CALIBRATE</summary>
        Calibrate = STW_PHASE_CALIBRATE,
    }

    /// <summary>What long call is under way.</summary>
    public enum Work : uint
    {
        /// <summary>STW_WORK_NONE</summary>
        None = STW_WORK_NONE,
        /// <summary>STW_WORK_PLAN</summary>
        Plan = STW_WORK_PLAN,
        /// <summary>STW_WORK_OPEN_DATASET</summary>
        OpenDataset = STW_WORK_OPEN_DATASET,
        /// <summary>STW_WORK_CREATE_TRAINER</summary>
        CreateTrainer = STW_WORK_CREATE_TRAINER,
        /// <summary>STW_WORK_STEP</summary>
        Step = STW_WORK_STEP,
        /// <summary>STW_WORK_EVALUATE</summary>
        Evaluate = STW_WORK_EVALUATE,
        /// <summary>STW_WORK_GENERATE</summary>
        Generate = STW_WORK_GENERATE,
        /// <summary>STW_WORK_CALIBRATE</summary>
        Calibrate = STW_WORK_CALIBRATE,
        /// <summary>STW_WORK_SAVE</summary>
        Save = STW_WORK_SAVE,
        /// <summary>STW_WORK_RESTORE</summary>
        Restore = STW_WORK_RESTORE,
        /// <summary>STW_WORK_EXPORT</summary>
        Export = STW_WORK_EXPORT,
    }

    /// <summary>What is counted of it.</summary>
    public enum Unit : uint
    {
        /// <summary>STW_UNIT_NONE</summary>
        None = STW_UNIT_NONE,
        /// <summary>STW_UNIT_BYTES</summary>
        Bytes = STW_UNIT_BYTES,
        /// <summary>STW_UNIT_MICRO_STEPS</summary>
        MicroSteps = STW_UNIT_MICRO_STEPS,
        /// <summary>STW_UNIT_SAMPLES</summary>
        Samples = STW_UNIT_SAMPLES,
    }

    /// <summary>Why a step updated nothing.</summary>
    public enum SkipReason : uint
    {
        /// <summary>STW_SKIP_NONE</summary>
        None = STW_SKIP_NONE,
        /// <summary>STW_SKIP_NO_TARGET</summary>
        NoTarget = STW_SKIP_NO_TARGET,
        /// <summary>STW_SKIP_NOT_FINITE</summary>
        NotFinite = STW_SKIP_NOT_FINITE,
        /// <summary>STW_SKIP_OUTLIER</summary>
        Outlier = STW_SKIP_OUTLIER,
    }

    /// <summary>Pictures of a plan.</summary>
    public enum Picture : uint
    {
        /// <summary>The arena.</summary>
        Svg = STW_PICTURE_SVG,
        /// <summary>A page with it, and the decisions.</summary>
        Html = STW_PICTURE_HTML,
        /// <summary>Its buffers as a table.</summary>
        Csv = STW_PICTURE_CSV,
    }

    /// <summary>What a search for offsets has found.</summary>
    public enum PackAnswer : uint
    {
        /// <summary>No placement is lower.</summary>
        Optimal = STW_PACK_OPTIMAL,
        /// <summary>Within the capacity; without one perhaps not the lowest.</summary>
        Fits = STW_PACK_FITS,
        /// <summary>Proven: none is within the capacity.</summary>
        Impossible = STW_PACK_IMPOSSIBLE,
        /// <summary>None was found, and none was ruled out.</summary>
        Unknown = STW_PACK_UNKNOWN,
    }

    /// <summary>Which of a parameter's tensors.</summary>
    public enum TensorKind : uint
    {
        /// <summary>STW_TENSOR_PARAMETER</summary>
        Parameter = STW_TENSOR_PARAMETER,
        /// <summary>STW_TENSOR_GRADIENT</summary>
        Gradient = STW_TENSOR_GRADIENT,
        /// <summary>STW_TENSOR_FIRST_MOMENT</summary>
        FirstMoment = STW_TENSOR_FIRST_MOMENT,
        /// <summary>STW_TENSOR_SECOND_MOMENT</summary>
        SecondMoment = STW_TENSOR_SECOND_MOMENT,
    }

    /// <summary>Of a token, in a file of marks: a byte for each.</summary>
    [Flags]
    public enum Marks : byte
    {
        /// <summary>Neither.</summary>
        None = 0,
        /// <summary>The model learns to predict it.</summary>
        Target = (byte)STW_MARK_TARGET,
        /// <summary>A document begins with it.</summary>
        Begin = (byte)STW_MARK_BEGIN,
        /// <summary>It belongs to its document's second text, and its type is 1.</summary>
        Second = (byte)STW_MARK_SECOND,
    }

    /// <summary>What a token of a vocabulary is to a masked language model.</summary>
    [Flags]
    public enum TokenKinds : byte
    {
        /// <summary>Neither.</summary>
        None = 0,
        /// <summary>It is never hidden.</summary>
        Special = (byte)STW_TOKEN_SPECIAL,
        /// <summary>It goes on with the word of the token before.</summary>
        Continues = (byte)STW_TOKEN_CONTINUES,
    }
}
