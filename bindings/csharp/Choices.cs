using System;
using static Stowage.Abi;

// Constants of the API. A newer library may give numbers that have no name here.
namespace Stowage
{
    /// <summary>The kind of device.</summary>
    public enum Backend : uint
    {
        /// <summary>CUDA if there is a CUDA device, else the CPU.</summary>
        Auto = STW_BACKEND_AUTO,
        /// <summary>STW_BACKEND_CPU</summary>
        Cpu = STW_BACKEND_CPU,
        /// <summary>STW_BACKEND_CUDA</summary>
        Cuda = STW_BACKEND_CUDA,
    }

    /// <summary>The messages that are logged: those of this level and of all levels before it.</summary>
    public enum LogLevel : uint
    {
        /// <summary>STW_LOG_ERROR</summary>
        Error = STW_LOG_ERROR,
        /// <summary>STW_LOG_WARNING</summary>
        Warning = STW_LOG_WARNING,
        /// <summary>STW_LOG_INFO</summary>
        Info = STW_LOG_INFO,
    }

    /// <summary>Instruction sets of a CPU. No trained bit depends on them.</summary>
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

    /// <summary>The format in which activations are stored, and the weights that products read.</summary>
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

    /// <summary>The optimizer.</summary>
    public enum Optimizer : uint
    {
        /// <summary>STW_OPTIMIZER_ADAMW</summary>
        AdamW = STW_OPTIMIZER_ADAMW,
        /// <summary>STW_OPTIMIZER_SGD</summary>
        Sgd = STW_OPTIMIZER_SGD,
        /// <summary>STW_OPTIMIZER_LION</summary>
        Lion = STW_OPTIMIZER_LION,
        /// <summary>For the matrices of blocks; AdamW updates all other parameters.</summary>
        Muon = STW_OPTIMIZER_MUON,
        /// <summary>STW_OPTIMIZER_ADAFACTOR</summary>
        Adafactor = STW_OPTIMIZER_ADAFACTOR,
    }

    /// <summary>Bits of the optimizer's states.</summary>
    public enum States : uint
    {
        /// <summary>32, unless that does not fit or costs too much speed.</summary>
        Auto = STW_STATES_AUTO,
        /// <summary>STW_STATES_32</summary>
        Bits32 = STW_STATES_32,
        /// <summary>STW_STATES_8</summary>
        Bits8 = STW_STATES_8,
    }

    /// <summary>How bf16 keeps the fp32 value of a trained parameter.</summary>
    public enum Master : uint
    {
        /// <summary>All 32 bits.</summary>
        Exact = STW_MASTER_EXACT,
        /// <summary>24 bits.</summary>
        Split8 = STW_MASTER_SPLIT8,
        /// <summary>Only the bf16 value, rounded at random.</summary>
        Stochastic = STW_MASTER_STOCHASTIC,
    }

    /// <summary>The format in which the gradients of the blocks' matrices are summed.</summary>
    public enum GradientPrecision : uint
    {
        /// <summary>STW_GRADIENTS_FP32</summary>
        Fp32 = STW_GRADIENTS_FP32,
        /// <summary>STW_GRADIENTS_BF16</summary>
        Bf16 = STW_GRADIENTS_BF16,
    }

    /// <summary>The kernels that compute matrix products, which differ in the order in which they
    /// add.</summary>
    public enum Kernels : uint
    {
        /// <summary>STW_KERNELS_AUTO</summary>
        Auto = STW_KERNELS_AUTO,
        /// <summary>One order that all devices share.</summary>
        Portable = STW_KERNELS_PORTABLE,
        /// <summary>The order of the tensor cores.</summary>
        Tensor = STW_KERNELS_TENSOR,
        /// <summary>NVIDIA's library.</summary>
        CublasLt = STW_KERNELS_CUBLASLT,
        /// <summary>For H100 and H200.</summary>
        Wgmma = STW_KERNELS_WGMMA,
        /// <summary>NVIDIA's library, and wgmma for products that it does not support.</summary>
        CublasLtWgmma = STW_KERNELS_CUBLASLT_WGMMA,
    }

    /// <summary>The implementation of attention.</summary>
    public enum Attention : uint
    {
        /// <summary>STW_ATTENTION_OWN</summary>
        Own = STW_ATTENTION_OWN,
        /// <summary>NVIDIA's cuDNN.</summary>
        Cudnn = STW_ATTENTION_CUDNN,
    }

    /// <summary>The format in which frozen matrices under adapters are stored.</summary>
    public enum Quantize : uint
    {
        /// <summary>The format of the model's files.</summary>
        Auto = STW_QUANTIZE_AUTO,
        /// <summary>STW_QUANTIZE_NONE</summary>
        None = STW_QUANTIZE_NONE,
        /// <summary>4.5 bits an element.</summary>
        Nf4 = STW_QUANTIZE_NF4,
        /// <summary>8.5 bits an element.</summary>
        Int8 = STW_QUANTIZE_INT8,
    }

    /// <summary>Settings that the relaxations of a plan that does not fit must not change.</summary>
    [Flags]
    public enum Keep : uint
    {
        /// <summary>Nothing: all settings may change.</summary>
        None = 0,
        /// <summary>STW_KEEP_NUMERICS</summary>
        Numerics = STW_KEEP_NUMERICS,
        /// <summary>STW_KEEP_MODEL</summary>
        Model = STW_KEEP_MODEL,
        /// <summary>STW_KEEP_ADAPTERS</summary>
        Adapters = STW_KEEP_ADAPTERS,
        /// <summary>STW_KEEP_SEQUENCE</summary>
        Sequence = STW_KEEP_SEQUENCE,
        /// <summary>STW_KEEP_OPTIMIZER</summary>
        Optimizer = STW_KEEP_OPTIMIZER,
        /// <summary>STW_KEEP_CLIPPING</summary>
        Clipping = STW_KEEP_CLIPPING,
        /// <summary>STW_KEEP_DIVISION</summary>
        Division = STW_KEEP_DIVISION,
        /// <summary>STW_KEEP_PRECISION</summary>
        Precision = STW_KEEP_PRECISION,
        /// <summary>STW_KEEP_ALL</summary>
        All = STW_KEEP_ALL,
    }

    /// <summary>The training objective: every target by itself, or the better one of two answers.</summary>
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

    /// <summary>The task that a model is trained for.</summary>
    public enum TrainingTask : uint
    {
        /// <summary>The task of the config; Label if a number of labels is set and the config has no
        /// labels.</summary>
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
        /// <summary>The first and the last token of an answer in a text.</summary>
        Spans = STW_TASK_SPANS,
    }

    /// <summary>Whether the micro-batch may change bits.</summary>
    public enum Mode : uint
    {
        /// <summary>STW_MODE_EXACT</summary>
        Exact = STW_MODE_EXACT,
        /// <summary>STW_MODE_FAST</summary>
        Fast = STW_MODE_FAST,
    }

    /// <summary>Whether activations are recomputed in the backward pass.</summary>
    public enum Recompute : uint
    {
        /// <summary>STW_RECOMPUTE_AUTO</summary>
        Auto = STW_RECOMPUTE_AUTO,
        /// <summary>STW_RECOMPUTE_NONE</summary>
        None = STW_RECOMPUTE_NONE,
        /// <summary>STW_RECOMPUTE_FULL</summary>
        Full = STW_RECOMPUTE_FULL,
    }

    /// <summary>The content of a dataset's file.</summary>
    public enum Tokenizer : uint
    {
        /// <summary>Ids for .bin and .npy files, else bytes.</summary>
        Auto = STW_TOKENIZER_AUTO,
        /// <summary>STW_TOKENIZER_BYTE</summary>
        Byte = STW_TOKENIZER_BYTE,
        /// <summary>STW_TOKENIZER_IDS</summary>
        Ids = STW_TOKENIZER_IDS,
    }

    /// <summary>How ids are stored, all little-endian.</summary>
    public enum TokenType : uint
    {
        /// <summary>
        /// The type in a .npy file; else uint16, or uint32 if the vocabulary exceeds 65,536.
        /// </summary>
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

    /// <summary>The course of the learning rate after the warm-up.</summary>
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

    /// <summary>The reaction to a loss or gradient that is not finite.</summary>
    public enum NonFinite : uint
    {
        /// <summary>The step updates nothing.</summary>
        Skip = STW_NON_FINITE_SKIP,
        /// <summary>The step fails.</summary>
        Stop = STW_NON_FINITE_STOP,
    }

    /// <summary>The activity of a trainer.</summary>
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

    /// <summary>The kind of long call in progress.</summary>
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

    /// <summary>The unit in which a long call counts its work.</summary>
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

    /// <summary>The reason why a step updated nothing.</summary>
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
        /// <summary>A picture of the arena.</summary>
        Svg = STW_PICTURE_SVG,
        /// <summary>A page with that picture and the decisions.</summary>
        Html = STW_PICTURE_HTML,
        /// <summary>The buffers as a table.</summary>
        Csv = STW_PICTURE_CSV,
    }

    /// <summary>The answer of a search for offsets.</summary>
    public enum PackAnswer : uint
    {
        /// <summary>No placement is lower.</summary>
        Optimal = STW_PACK_OPTIMAL,
        /// <summary>Within the capacity. Without a capacity: perhaps not the lowest placement.</summary>
        Fits = STW_PACK_FITS,
        /// <summary>Proven: no placement is within the capacity.</summary>
        Impossible = STW_PACK_IMPOSSIBLE,
        /// <summary>No placement was found, but one may exist.</summary>
        Unknown = STW_PACK_UNKNOWN,
    }

    /// <summary>The kinds of tensors of a parameter.</summary>
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

    /// <summary>Marks of a token, in a file of marks with one byte for each token.</summary>
    [Flags]
    public enum Marks : byte
    {
        /// <summary>No mark.</summary>
        None = 0,
        /// <summary>The model learns to predict it.</summary>
        Target = (byte)STW_MARK_TARGET,
        /// <summary>A document begins with it.</summary>
        Begin = (byte)STW_MARK_BEGIN,
        /// <summary>The token belongs to the second text of its document, and its token type is 1.</summary>
        Second = (byte)STW_MARK_SECOND,
    }

    /// <summary>Kinds of tokens for a masked language model.</summary>
    [Flags]
    public enum TokenKinds : byte
    {
        /// <summary>No kind.</summary>
        None = 0,
        /// <summary>The token is special, and never hidden.</summary>
        Special = (byte)STW_TOKEN_SPECIAL,
        /// <summary>The token continues the word of the token before.</summary>
        Continues = (byte)STW_TOKEN_CONTINUES,
    }
}
