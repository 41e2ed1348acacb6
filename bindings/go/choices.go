package stowage

/*
#include "glue.h"
*/
import "C"

// Constants of the API; 0 is the default.
type (
	Backend           uint32
	LogLevel          int32
	ISA               uint32
	Precision         uint32
	Optimizer         uint32
	Master            uint32
	GradientPrecision uint32
	Kernels           uint32
	Attention         uint32
	Quantize          uint32
	Preference        uint32
	Keep              uint32 // bits that can be combined
	Task              uint32
	Mode              uint32
	Recompute         uint32
	Tokenizer         uint32
	TokenType         uint32
	Schedule          uint32
	NonFinitePolicy   uint32
	Phase             uint32
	SkipReason        uint32
	Picture           uint32
	PackAnswer        uint32
	TensorKind        uint32
)

const (
	BackendAuto Backend = C.STW_BACKEND_AUTO
	CPU         Backend = C.STW_BACKEND_CPU
	CUDA        Backend = C.STW_BACKEND_CUDA

	LogError   LogLevel = C.STW_LOG_ERROR
	LogWarning LogLevel = C.STW_LOG_WARNING
	LogInfo    LogLevel = C.STW_LOG_INFO

	ISAAuto ISA = C.STW_ISA_AUTO
	Scalar  ISA = C.STW_ISA_SCALAR
	AVX2    ISA = C.STW_ISA_AVX2
	AVX512  ISA = C.STW_ISA_AVX512
	NEON    ISA = C.STW_ISA_NEON

	PrecisionDefault Precision = C.STW_PRECISION_DEFAULT
	FP32             Precision = C.STW_PRECISION_FP32
	BF16             Precision = C.STW_PRECISION_BF16
	FP16             Precision = C.STW_PRECISION_FP16

	AdamW     Optimizer = C.STW_OPTIMIZER_ADAMW
	SGD       Optimizer = C.STW_OPTIMIZER_SGD
	Lion      Optimizer = C.STW_OPTIMIZER_LION
	Muon      Optimizer = C.STW_OPTIMIZER_MUON
	Adafactor Optimizer = C.STW_OPTIMIZER_ADAFACTOR

	MasterExact      Master = C.STW_MASTER_EXACT
	MasterSplit8     Master = C.STW_MASTER_SPLIT8
	MasterStochastic Master = C.STW_MASTER_STOCHASTIC

	GradientsFP32 GradientPrecision = C.STW_GRADIENTS_FP32
	GradientsBF16 GradientPrecision = C.STW_GRADIENTS_BF16

	KernelsAuto          Kernels = C.STW_KERNELS_AUTO
	KernelsPortable      Kernels = C.STW_KERNELS_PORTABLE
	KernelsTensor        Kernels = C.STW_KERNELS_TENSOR
	KernelsCublasLt      Kernels = C.STW_KERNELS_CUBLASLT
	KernelsWgmma         Kernels = C.STW_KERNELS_WGMMA
	KernelsCublasLtWgmma Kernels = C.STW_KERNELS_CUBLASLT_WGMMA

	AttentionOwn   Attention = C.STW_ATTENTION_OWN
	AttentionCudnn Attention = C.STW_ATTENTION_CUDNN

	QuantizeAuto Quantize = C.STW_QUANTIZE_AUTO
	QuantizeNone Quantize = C.STW_QUANTIZE_NONE
	NF4          Quantize = C.STW_QUANTIZE_NF4
	Int8         Quantize = C.STW_QUANTIZE_INT8

	PreferenceNone Preference = C.STW_PREFERENCE_NONE
	DPO            Preference = C.STW_PREFERENCE_DPO
	IPO            Preference = C.STW_PREFERENCE_IPO
	SimPO          Preference = C.STW_PREFERENCE_SIMPO
	ORPO           Preference = C.STW_PREFERENCE_ORPO

	KeepNumerics  Keep = C.STW_KEEP_NUMERICS
	KeepModel     Keep = C.STW_KEEP_MODEL
	KeepAdapters  Keep = C.STW_KEEP_ADAPTERS
	KeepSequence  Keep = C.STW_KEEP_SEQUENCE
	KeepOptimizer Keep = C.STW_KEEP_OPTIMIZER
	KeepClipping  Keep = C.STW_KEEP_CLIPPING
	KeepDivision  Keep = C.STW_KEEP_DIVISION
	KeepPrecision Keep = C.STW_KEEP_PRECISION
	KeepAll       Keep = C.STW_KEEP_ALL

	TaskAutomatic           Task = C.STW_TASK_AUTOMATIC
	TaskLanguageModel       Task = C.STW_TASK_LANGUAGE_MODEL
	TaskMaskedLanguageModel Task = C.STW_TASK_MASKED_LANGUAGE_MODEL
	TaskLabel               Task = C.STW_TASK_LABEL
	TaskLabels              Task = C.STW_TASK_LABELS
	TaskNumber              Task = C.STW_TASK_NUMBER
	TaskTokenLabel          Task = C.STW_TASK_TOKEN_LABEL
	TaskSpans               Task = C.STW_TASK_SPANS

	Exact Mode = C.STW_MODE_EXACT
	Fast  Mode = C.STW_MODE_FAST

	RecomputeAuto Recompute = C.STW_RECOMPUTE_AUTO
	RecomputeNone Recompute = C.STW_RECOMPUTE_NONE
	RecomputeFull Recompute = C.STW_RECOMPUTE_FULL

	TokenizerAuto Tokenizer = C.STW_TOKENIZER_AUTO
	TokenizerByte Tokenizer = C.STW_TOKENIZER_BYTE
	TokenizerIDs  Tokenizer = C.STW_TOKENIZER_IDS

	TokenTypeAuto   TokenType = C.STW_TOKEN_TYPE_AUTO
	TokenTypeUint16 TokenType = C.STW_TOKEN_TYPE_UINT16
	TokenTypeUint32 TokenType = C.STW_TOKEN_TYPE_UINT32
	TokenTypeInt32  TokenType = C.STW_TOKEN_TYPE_INT32
	TokenTypeInt64  TokenType = C.STW_TOKEN_TYPE_INT64

	Cosine      Schedule = C.STW_SCHEDULE_COSINE
	Linear      Schedule = C.STW_SCHEDULE_LINEAR
	Constant    Schedule = C.STW_SCHEDULE_CONSTANT
	WSD         Schedule = C.STW_SCHEDULE_WSD
	InverseRoot Schedule = C.STW_SCHEDULE_INVERSE_ROOT

	NonFiniteSkip NonFinitePolicy = C.STW_NON_FINITE_SKIP
	NonFiniteStop NonFinitePolicy = C.STW_NON_FINITE_STOP

	Idle        Phase = C.STW_PHASE_IDLE
	Training    Phase = C.STW_PHASE_TRAIN
	Evaluating  Phase = C.STW_PHASE_EVALUATE
	Generating  Phase = C.STW_PHASE_GENERATE
	Saving      Phase = C.STW_PHASE_SAVE
	Calibrating Phase = C.STW_PHASE_CALIBRATE

	SkipNone      SkipReason = C.STW_SKIP_NONE
	SkipNoTarget  SkipReason = C.STW_SKIP_NO_TARGET
	SkipNotFinite SkipReason = C.STW_SKIP_NOT_FINITE
	SkipOutlier   SkipReason = C.STW_SKIP_OUTLIER

	SVG  Picture = C.STW_PICTURE_SVG
	HTML Picture = C.STW_PICTURE_HTML
	CSV  Picture = C.STW_PICTURE_CSV

	PackOptimal    PackAnswer = C.STW_PACK_OPTIMAL
	PackFits       PackAnswer = C.STW_PACK_FITS
	PackImpossible PackAnswer = C.STW_PACK_IMPOSSIBLE
	PackUnknown    PackAnswer = C.STW_PACK_UNKNOWN

	Parameter    TensorKind = C.STW_TENSOR_PARAMETER
	Gradient     TensorKind = C.STW_TENSOR_GRADIENT
	FirstMoment  TensorKind = C.STW_TENSOR_FIRST_MOMENT
	SecondMoment TensorKind = C.STW_TENSOR_SECOND_MOMENT
)
