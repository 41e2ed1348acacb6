// The C API for C#. Written by generate_abi.py from include/stowage.h: do not edit it.
using System;
using System.Runtime.InteropServices;

namespace Stowage
{
internal static unsafe class Abi
{
    public const string Library = "stowage";   // libstowage.so, stowage.dll, libstowage.dylib
    public const uint STW_VERSION_MAJOR = 0;
    public const uint STW_VERSION_MINOR = 1;
    public const uint STW_VERSION_PATCH = 0;
    public const int STW_OK = 0;
    public const int STW_BAD_ARGUMENT = 1000;
    public const int STW_BAD_STRUCT_SIZE = 1001;
    public const int STW_BAD_STATE = 1002;
    public const int STW_UNSUPPORTED = 2000;
    public const int STW_UNSUPPORTED_FIELD = 2001;
    public const int STW_UNSUPPORTED_SHAPE = 2002;
    public const int STW_OUT_OF_MEMORY = 3000;
    public const int STW_OVER_BUDGET = 3001;
    public const int STW_HOST_OUT_OF_MEMORY = 3002;
    public const int STW_DEVICE_ERROR = 4000;
    public const int STW_DEVICE_LOST = 4001;
    public const int STW_IO_ERROR = 5000;
    public const int STW_CORRUPT = 5001;
    public const int STW_CANCELLED = 6000;
    public const int STW_CALLBACK_FAILED = 6001;
    public const int STW_NUMERIC = 7000;
    public const int STW_NON_FINITE = 7001;
    public const int STW_INTERNAL = 9000;
    public const uint STW_WORK_NONE = 0;
    public const uint STW_WORK_PLAN = 1;
    public const uint STW_WORK_OPEN_DATASET = 2;
    public const uint STW_WORK_CREATE_TRAINER = 3;
    public const uint STW_WORK_STEP = 4;
    public const uint STW_WORK_EVALUATE = 5;
    public const uint STW_WORK_GENERATE = 6;
    public const uint STW_WORK_CALIBRATE = 7;
    public const uint STW_WORK_SAVE = 8;
    public const uint STW_WORK_RESTORE = 9;
    public const uint STW_WORK_EXPORT = 10;
    public const uint STW_UNIT_NONE = 0;
    public const uint STW_UNIT_BYTES = 1;
    public const uint STW_UNIT_MICRO_STEPS = 2;
    public const uint STW_UNIT_SAMPLES = 3;
    public const uint STW_SET_INTERVAL = 1;
    public const uint STW_BACKEND_AUTO = 0;
    public const uint STW_BACKEND_CPU = 1;
    public const uint STW_BACKEND_CUDA = 2;
    public const uint STW_LOG_ERROR = 1;
    public const uint STW_LOG_WARNING = 2;
    public const uint STW_LOG_INFO = 3;
    public const uint STW_ISA_AUTO = 0;
    public const uint STW_ISA_SCALAR = 1;
    public const uint STW_ISA_AVX2 = 2;
    public const uint STW_ISA_AVX512 = 3;
    public const uint STW_ISA_NEON = 4;
    public const uint STW_SET_DROPOUT = 1;
    public const uint STW_SET_MODEL_SEED = 2;
    public const uint STW_ADAPTER_RANK_STABILISED = 1;
    public const uint STW_TASK_AUTOMATIC = 0;
    public const uint STW_TASK_LANGUAGE_MODEL = 1;
    public const uint STW_TASK_MASKED_LANGUAGE_MODEL = 2;
    public const uint STW_TASK_LABEL = 3;
    public const uint STW_TASK_LABELS = 4;
    public const uint STW_TASK_NUMBER = 5;
    public const uint STW_TASK_TOKEN_LABEL = 6;
    public const uint STW_TASK_SPANS = 7;
    public const uint STW_PRECISION_DEFAULT = 0;
    public const uint STW_PRECISION_FP32 = 1;
    public const uint STW_PRECISION_BF16 = 2;
    public const uint STW_PRECISION_FP16 = 3;
    public const uint STW_OPTIMIZER_ADAMW = 0;
    public const uint STW_OPTIMIZER_SGD = 1;
    public const uint STW_OPTIMIZER_LION = 2;
    public const uint STW_OPTIMIZER_MUON = 3;
    public const uint STW_OPTIMIZER_ADAFACTOR = 4;
    public const uint STW_STATES_AUTO = 0;
    public const uint STW_STATES_32 = 32;
    public const uint STW_STATES_8 = 8;
    public const uint STW_MASTER_EXACT = 0;
    public const uint STW_MASTER_SPLIT8 = 1;
    public const uint STW_MASTER_STOCHASTIC = 2;
    public const uint STW_GRADIENTS_FP32 = 0;
    public const uint STW_GRADIENTS_BF16 = 1;
    public const uint STW_KERNELS_AUTO = 0;
    public const uint STW_KERNELS_PORTABLE = 1;
    public const uint STW_KERNELS_TENSOR = 2;
    public const uint STW_KERNELS_CUBLASLT = 3;
    public const uint STW_KERNELS_WGMMA = 4;
    public const uint STW_KERNELS_CUBLASLT_WGMMA = 5;
    public const uint STW_ATTENTION_OWN = 0;
    public const uint STW_ATTENTION_CUDNN = 1;
    public const uint STW_QUANTIZE_AUTO = 0;
    public const uint STW_QUANTIZE_NONE = 1;
    public const uint STW_QUANTIZE_NF4 = 2;
    public const uint STW_QUANTIZE_INT8 = 3;
    public const uint STW_PREFERENCE_NONE = 0;
    public const uint STW_PREFERENCE_DPO = 1;
    public const uint STW_PREFERENCE_IPO = 2;
    public const uint STW_PREFERENCE_SIMPO = 3;
    public const uint STW_PREFERENCE_ORPO = 4;
    public const uint STW_MODE_EXACT = 0;
    public const uint STW_MODE_FAST = 1;
    public const uint STW_SET_RESERVE = 1;
    public const uint STW_KEEP_NUMERICS = 1;
    public const uint STW_KEEP_MODEL = 2;
    public const uint STW_KEEP_ADAPTERS = 4;
    public const uint STW_KEEP_SEQUENCE = 8;
    public const uint STW_KEEP_OPTIMIZER = 16;
    public const uint STW_KEEP_CLIPPING = 32;
    public const uint STW_KEEP_DIVISION = 64;
    public const uint STW_KEEP_PRECISION = 128;
    public const uint STW_KEEP_ALL = 255;
    public const uint STW_INPUT_POSITIONS = 1;
    public const uint STW_INPUT_WEIGHTS = 2;
    public const uint STW_RECOMPUTE_AUTO = 0;
    public const uint STW_RECOMPUTE_NONE = 1;
    public const uint STW_RECOMPUTE_FULL = 2;
    public const uint STW_SET_GROUP_FROZEN = 1;
    public const uint STW_SET_GROUP_RATE = 2;
    public const uint STW_SET_GROUP_DECAY = 4;
    public const uint STW_SET_GROUP_STATES = 8;
    public const uint STW_PICTURE_SVG = 0;
    public const uint STW_PICTURE_HTML = 1;
    public const uint STW_PICTURE_CSV = 2;
    public const uint STW_SET_OFFSET = 1;
    public const uint STW_PACK_OPTIMAL = 0;
    public const uint STW_PACK_FITS = 1;
    public const uint STW_PACK_IMPOSSIBLE = 2;
    public const uint STW_PACK_UNKNOWN = 3;
    public const uint STW_TOKENIZER_AUTO = 0;
    public const uint STW_TOKENIZER_BYTE = 1;
    public const uint STW_TOKENIZER_IDS = 2;
    public const uint STW_TOKEN_TYPE_AUTO = 0;
    public const uint STW_TOKEN_TYPE_UINT16 = 1;
    public const uint STW_TOKEN_TYPE_UINT32 = 2;
    public const uint STW_TOKEN_TYPE_INT32 = 3;
    public const uint STW_TOKEN_TYPE_INT64 = 4;
    public const uint STW_SET_DOCUMENT_END = 1;
    public const uint STW_SET_HELD_OUT = 2;
    public const uint STW_SET_DATASET_SEED = 4;
    public const uint STW_MARK_TARGET = 1;
    public const uint STW_MARK_BEGIN = 2;
    public const uint STW_MARK_SECOND = 4;
    public const uint STW_TOKEN_SPECIAL = 1;
    public const uint STW_TOKEN_CONTINUES = 2;
    public const uint STW_PHASE_IDLE = 0;
    public const uint STW_PHASE_TRAIN = 1;
    public const uint STW_PHASE_EVALUATE = 2;
    public const uint STW_PHASE_GENERATE = 3;
    public const uint STW_PHASE_SAVE = 4;
    public const uint STW_PHASE_CALIBRATE = 5;
    public const uint STW_SKIP_NONE = 0;
    public const uint STW_SKIP_NO_TARGET = 1;
    public const uint STW_SKIP_NOT_FINITE = 2;
    public const uint STW_SKIP_OUTLIER = 3;
    public const uint STW_SET_WEIGHT_DECAY = 1;
    public const uint STW_SET_CLIP_NORM = 2;
    public const uint STW_SET_BETA1 = 4;
    public const uint STW_SET_BETA2 = 8;
    public const uint STW_SET_MOMENTUM = 16;
    public const uint STW_SET_MARGIN = 32;
    public const uint STW_SET_TRAINER_SEED = 64;
    public const uint STW_NON_FINITE_SKIP = 0;
    public const uint STW_NON_FINITE_STOP = 1;
    public const uint STW_SCHEDULE_COSINE = 0;
    public const uint STW_SCHEDULE_LINEAR = 1;
    public const uint STW_SCHEDULE_CONSTANT = 2;
    public const uint STW_SCHEDULE_WSD = 3;
    public const uint STW_SCHEDULE_INVERSE_ROOT = 4;
    public const uint STW_SET_MIN_RATE = 1;
    public const uint STW_SET_GENERATE_SEED = 1;
    public const uint STW_PROFILE_BYTES = 16384;
    public const uint STW_TENSOR_PARAMETER = 0;
    public const uint STW_TENSOR_GRADIENT = 1;
    public const uint STW_TENSOR_FIRST_MOMENT = 2;
    public const uint STW_TENSOR_SECOND_MOMENT = 3;

    public struct stw_device
    {
    }

    public struct stw_model
    {
    }

    public struct stw_plan
    {
    }

    public struct stw_dataset
    {
    }

    public struct stw_trainer
    {
    }

    public struct stw_watch
    {
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate int stw_watch_fn(void* user, stw_watch_info* now);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void stw_log_fn(void* user, int level, byte* component, byte* message);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void* stw_allocate_fn(void* user, UIntPtr bytes, UIntPtr alignment, void* stream);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void stw_release_fn(void* user, void* memory, UIntPtr bytes, void* stream);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate void stw_run_fn(void* user, uint tasks, IntPtr task, void* context);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate int stw_progress_fn(void* user, stw_progress* now);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate int stw_gradient_fn(void* user, stw_gradients* gradients);

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_error
    {
        public uint struct_size;
        public int status;
        /// <summary>errno or cudaError_t, else 0</summary>
        public int native_code;
        public uint reserved;
        /// <summary>for the codes 3000 to 3999</summary>
        public ulong bytes_needed;
        /// <summary>for the codes 3000 to 3999</summary>
        public ulong bytes_available;
        /// <summary>one line</summary>
        public fixed byte message[480];

        /// <summary>Zero, but for its size.</summary>
        public static stw_error Sized()
        {
            return new stw_error { struct_size = (uint)sizeof(stw_error) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_watch_info
    {
        public uint struct_size;
        /// <summary>STW_WORK_*</summary>
        public uint work;
        /// <summary>STW_UNIT_*</summary>
        public uint unit;
        public uint reserved;
        /// <summary>
        /// finished work, counted in `unit`. When no call is in progress: the finished work of the last call
        /// </summary>
        public ulong done;
        /// <summary>all work of the call, counted in `unit`; 0: unknown</summary>
        public ulong total;
        /// <summary>
        /// share of the work that is done, 0 to 1. On the CPU it also grows within a micro-step. 0 if the
        /// total is unknown
        /// </summary>
        public double share;

        /// <summary>Zero, but for its size.</summary>
        public static stw_watch_info Sized()
        {
            return new stw_watch_info { struct_size = (uint)sizeof(stw_watch_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_watch_options
    {
        public uint struct_size;
        /// <summary>STW_SET_INTERVAL</summary>
        public uint set_mask;
        /// <summary>NULL: the host polls with stw_watch_query, or only cancels</summary>
        public IntPtr notify;
        /// <summary>passed to `notify`</summary>
        public void* user;
        /// <summary>
        /// shortest time between two calls of `notify`. An entry that takes less time is not reported.
        /// Unset: 100. 0: `notify` is called after every piece of work
        /// </summary>
        public uint interval_milliseconds;
        public uint reserved;

        /// <summary>Zero, but for its size.</summary>
        public static stw_watch_options Sized()
        {
            return new stw_watch_options { struct_size = (uint)sizeof(stw_watch_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_device_options
    {
        public uint struct_size;
        /// <summary>STW_BACKEND_*; auto: CUDA if there is a CUDA device, else the CPU</summary>
        public uint backend;
        /// <summary>number of the CUDA device, from 0</summary>
        public int ordinal;
        /// <summary>
        /// CPU: threads that compute, including the caller's, at most 1024; 0: one for each processor. CUDA:
        /// threads that draw random weights or quantize while a trainer is created or calibrated
        /// </summary>
        public uint threads;
        /// <summary>CPU: STW_ISA_*; auto: the widest that runs here. No trained bit depends on it.</summary>
        public uint isa;
        /// <summary>STW_LOG_*; 0: STW_LOG_WARNING</summary>
        public int log_level;
        /// <summary>
        /// CUDA: the host's stream, of the device's primary context; NULL: the library makes one
        /// </summary>
        public void* stream;
        /// <summary>NULL: messages are kept for stw_device_next_log only</summary>
        public IntPtr log;
        public void* log_user;
        /// <summary>set both `allocate` and `release`, or neither</summary>
        public IntPtr allocate;
        public IntPtr release;
        public void* memory_user;
        /// <summary>NULL: the library uses its own pool of threads, which sleeps when it is idle</summary>
        public IntPtr run;
        public void* run_user;
        /// <summary>
        /// CUDA: path of a libcublasLt.so.13, for STW_KERNELS_CUBLASLT; NULL: the one that the system finds.
        /// The text is copied.
        /// </summary>
        public byte* cublaslt;
        /// <summary>
        /// CUDA: path of a libcudnn.so.9 (9.15.1 or newer), for STW_ATTENTION_CUDNN; NULL: the one that the
        /// system finds. The text is copied.
        /// </summary>
        public byte* cudnn;

        /// <summary>Zero, but for its size.</summary>
        public static stw_device_options Sized()
        {
            return new stw_device_options { struct_size = (uint)sizeof(stw_device_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_device_info
    {
        public uint struct_size;
        /// <summary>STW_BACKEND_CPU or STW_BACKEND_CUDA</summary>
        public uint backend;
        /// <summary>bytes</summary>
        public ulong memory_total;
        /// <summary>bytes. CPU: as the system reports available memory. CUDA: 0 in stw_device_at</summary>
        public ulong memory_free;
        /// <summary>CUDA: compute capability</summary>
        public int compute_major;
        /// <summary>CUDA: compute capability</summary>
        public int compute_minor;
        /// <summary>CPU: threads that compute</summary>
        public uint threads;
        /// <summary>CPU: STW_ISA_* in use</summary>
        public uint isa;
        public fixed byte name[64];
        /// <summary>name of the embedded profile to plan with: stw_plan_options.device</summary>
        public fixed byte profile[24];
        /// <summary>
        /// CUDA: bytes that the open device's context already holds. A plan counts them in its reserve, so
        /// add them to memory_free (stw_plan_options.device_memory). At most three quarters of the profile's
        /// reserve. 0 if the driver does not report them, and in stw_device_at
        /// </summary>
        public ulong memory_reserved;

        /// <summary>Zero, but for its size.</summary>
        public static stw_device_info Sized()
        {
            return new stw_device_info { struct_size = (uint)sizeof(stw_device_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_memory_holder
    {
        public uint struct_size;
        public uint reserved;
        /// <summary>process id in the host system. A container may show another id</summary>
        public ulong process;
        /// <summary>device memory that the process holds</summary>
        public ulong bytes;
        /// <summary>name of the program, cut to fit; "" if it is unknown</summary>
        public fixed byte name[64];

        /// <summary>Zero, but for its size.</summary>
        public static stw_memory_holder Sized()
        {
            return new stw_memory_holder { struct_size = (uint)sizeof(stw_memory_holder) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_log_message
    {
        public uint struct_size;
        /// <summary>STW_LOG_*</summary>
        public int level;
        /// <summary>1, 2, ... in the order in which messages were written; 0: there is no message</summary>
        public ulong number;
        /// <summary>the part of the library that wrote it</summary>
        public fixed byte component[32];
        /// <summary>cut to fit</summary>
        public fixed byte text[224];

        /// <summary>Zero, but for its size.</summary>
        public static stw_log_message Sized()
        {
            return new stw_log_message { struct_size = (uint)sizeof(stw_log_message) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_model_options
    {
        public uint struct_size;
        /// <summary>STW_SET_DROPOUT, STW_SET_MODEL_SEED</summary>
        public uint set_mask;
        /// <summary>
        /// a folder with config.json, a config.json, or the name of a preset such as "nano"
        /// </summary>
        public byte* source;
        /// <summary>
        /// instead of source: the text of a config.json, config_json_size bytes long; it needs no zero byte
        /// at its end
        /// </summary>
        public byte* config_json;
        public UIntPtr config_json_size;
        /// <summary>
        /// a .safetensors file, or a folder that has one or has an index. If a folder has several files and
        /// no index, the file named model.safetensors is read. NULL: the weights of the source folder; if it
        /// has none, random values drawn from `seed`
        /// </summary>
        public byte* weights;
        /// <summary>unset: 1337</summary>
        public ulong seed;
        /// <summary>replaces all dropout rates of the config; unset: the config's rates</summary>
        public float dropout;
        public uint reserved;
        /// <summary>a folder of adapters to continue, for the model in `source`; NULL: none</summary>
        public byte* adapter;
        /// <summary>
        /// new adapters: the matrices that get an adapter, by the last parts of their modules' names, such as
        /// "q_proj,v_proj", or "all-linear"; NULL: all-linear
        /// </summary>
        public byte* adapter_targets;
        /// <summary>
        /// new adapters: rows of A and columns of B; 0: no new adapters. A is drawn from `seed`, B is 0
        /// </summary>
        public uint adapter_rank;
        /// <summary>STW_ADAPTER_RANK_STABILISED: scale = alpha / sqrt(rank)</summary>
        public uint adapter_flags;
        /// <summary>scale = alpha / rank; 0: alpha is twice the rank</summary>
        public float adapter_alpha;
        /// <summary>dropout rate of the input of A during training</summary>
        public float adapter_dropout;
        /// <summary>
        /// label_count different UTF-8 names; NULL: the names of the model, else "LABEL_0", "LABEL_1", ...
        /// </summary>
        public byte** label_names;
        /// <summary>
        /// 0: as the config says. Else 2 (1 for LABELS and NUMBER) to 1,048,576, and equal to the number that
        /// the model already has (new_head)
        /// </summary>
        public UIntPtr label_count;
        /// <summary>
        /// STW_TASK_*. A task with labels, except SPANS, needs label_count if the config has no labels. If
        /// the config states its task (problem_type), no other task is possible without new_head.
        /// MASKED_LANGUAGE_MODEL is for encoders (transformers' ...ForMaskedLM): if the config is of another
        /// kind of model, the parts of the head that the weights lack are drawn from `seed`, and a head for
        /// next sentences (BertForPreTraining) is left out. For an encoder, LANGUAGE_MODEL means its body
        /// without a head
        /// </summary>
        public uint task;
        /// <summary>
        /// 1: the model gets a new head for label_count labels, whatever labels the config has. The matrix of
        /// the logits and its bias are drawn from `seed`, and so are the parts of the head that the weights
        /// lack. Needs label_count, or SPANS, and excludes `adapter`
        /// </summary>
        public uint new_head;

        /// <summary>Zero, but for its size.</summary>
        public static stw_model_options Sized()
        {
            return new stw_model_options { struct_size = (uint)sizeof(stw_model_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_model_info
    {
        public uint struct_size;
        /// <summary>number of blocks</summary>
        public uint layers;
        /// <summary>number of parameters; tied ones are counted once</summary>
        public ulong parameters;
        /// <summary>number of parameters that are trained</summary>
        public ulong trainable;
        /// <summary>number of different tokens</summary>
        public ulong vocabulary;
        /// <summary>longest sequence, in tokens</summary>
        public ulong positions;
        /// <summary>1: weights come from files; 0: they are drawn from the seed</summary>
        public uint has_weights;
        /// <summary>features of a token between two blocks (hidden_size)</summary>
        public uint width;
        /// <summary>the config's model_type: "gpt2", "llama", "gemma3_text", …</summary>
        public fixed byte architecture[32];
        /// <summary>0: there are no adapters</summary>
        public uint adapter_rank;
        /// <summary>
        /// 1: the files hold matrices in 4 bits, as bitsandbytes writes them (nf4, also with double
        /// quantization)
        /// </summary>
        public uint has_codes;
        /// <summary>number of a classifier's labels; 0: the model is not a classifier</summary>
        public ulong labels;
        /// <summary>
        /// from the config; -1: none. transformers takes tokens of this id at the end of a text for padding,
        /// and classifies the text by the last token before them
        /// </summary>
        public long padding_token;
        /// <summary>
        /// 1: the model continues texts, and no token attends to later ones; 0: an encoder, which reads a
        /// text as a whole
        /// </summary>
        public uint generates;
        /// <summary>
        /// number of token types that the model distinguishes, such as those of a first and of a second text;
        /// 0: none
        /// </summary>
        public uint token_types;
        /// <summary>
        /// STW_TASK_*. An encoder with STW_TASK_LANGUAGE_MODEL has no head; to train it, choose a task that
        /// gives it one
        /// </summary>
        public uint task;
        /// <summary>
        /// 1: weights were read from files, but at least a part of the head was drawn from the seed
        /// </summary>
        public uint head_is_new;
        /// <summary>
        /// number of layers in the weights' files; 0: there are no files. The model does not have those past
        /// `layers`
        /// </summary>
        public ulong file_layers;

        /// <summary>Zero, but for its size.</summary>
        public static stw_model_info Sized()
        {
            return new stw_model_info { struct_size = (uint)sizeof(stw_model_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_tensor_info
    {
        public uint struct_size;
        /// <summary>number of dimensions, at most 4</summary>
        public uint ndim;
        /// <summary>as in the weight files; lives as long as the model</summary>
        public byte* name;
        /// <summary>ndim sizes, the outermost first; the rest is 0</summary>
        public fixed long shape[4];
        public ulong elements;

        /// <summary>Zero, but for its size.</summary>
        public static stw_tensor_info Sized()
        {
            return new stw_tensor_info { struct_size = (uint)sizeof(stw_tensor_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_parameter_group
    {
        public uint struct_size;
        /// <summary>STW_SET_GROUP_*: fields whose zero is a value. Unset fields change nothing</summary>
        public uint set_mask;
        public byte* pattern;
        /// <summary>1: frozen; 0: trained, even if an earlier group says otherwise</summary>
        public uint frozen;
        /// <summary>
        /// 32 or 8, even if the plan's state_bits differ. Embeddings and tensors of less than 4096 elements
        /// keep 32
        /// </summary>
        public uint state_bits;
        /// <summary>factor by which the run's learning rate is multiplied</summary>
        public double learning_rate;
        /// <summary>replaces the trainer's weight decay, and the 0 that norms and biases have</summary>
        public double weight_decay;

        /// <summary>Zero, but for its size.</summary>
        public static stw_parameter_group Sized()
        {
            return new stw_parameter_group { struct_size = (uint)sizeof(stw_parameter_group) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_plan_options
    {
        public uint struct_size;
        /// <summary>STW_SET_RESERVE</summary>
        public uint set_mask;
        /// <summary>
        /// largest peak that the plan may reach. 0: all memory of the device. This is device_memory if it is
        /// set, else the profile's memory, else (CPU) the memory that is available on this machine now
        /// </summary>
        public ulong memory_bytes;
        /// <summary>samples of one optimizer step; required</summary>
        public ulong global_batch;
        /// <summary>tokens of a sample; 0: the model's positions, at most 1024</summary>
        public ulong sequence;
        /// <summary>"cpu", or the name of a profile such as "rtx4090"; NULL: "cpu"</summary>
        public byte* device;
        /// <summary>
        /// bytes that are free on the device now. For an open device that is memory_free + memory_reserved of
        /// stw_device_info. 0: unknown, see memory_bytes
        /// </summary>
        public ulong device_memory;
        /// <summary>
        /// part of the budget that is left for memory outside the arena; unset: the profile's reserve (CPU:
        /// none)
        /// </summary>
        public ulong reserve_bytes;
        /// <summary>
        /// CPU: threads that will compute, on which the size of scratch memory depends; 0: one for each
        /// processor
        /// </summary>
        public uint threads;
        /// <summary>STW_PRECISION_*; default: fp32 on the CPU, bf16 elsewhere</summary>
        public uint precision;
        /// <summary>STW_OPTIMIZER_*</summary>
        public uint optimizer;
        /// <summary>
        /// STW_STATES_AUTO: 32, unless that does not fit or costs more than 10 % of the speed. AdamW and Lion
        /// support 8, for tensors of at least 4096 elements that are not embeddings
        /// </summary>
        public uint state_bits;
        /// <summary>samples of one micro-step; 0: the planner chooses</summary>
        public uint micro_batch;
        /// <summary>STW_RECOMPUTE_*</summary>
        public uint recompute;
        /// <summary>
        /// STW_MODE_*. In exact mode the split into micro-batches changes no bit. fast gives this guarantee
        /// up where kernels have a faster way: on CUDA devices with STW_KERNELS_CUBLASLT, which is then the
        /// default there, or STW_KERNELS_CUBLASLT_WGMMA. Other plans stay exact
        /// </summary>
        public uint mode;
        /// <summary>
        /// STW_INPUT_*: inputs that batches may have in addition to tokens, targets and lengths
        /// </summary>
        public uint inputs;
        /// <summary>host memory that offloaded tensors may take; 0: nothing is offloaded</summary>
        public ulong host_bytes;
        /// <summary>
        /// the profile that stw_trainer_calibrate wrote; NULL: the device's embedded profile. If `device` is
        /// NULL, the profile's device is planned for. Another device is refused.
        /// </summary>
        public byte* profile;
        /// <summary>bytes of `profile`, without a zero byte at the end</summary>
        public UIntPtr profile_size;
        /// <summary>
        /// an array. If several groups name a parameter, the later ones win. All elements have the
        /// struct_size of the first one.
        /// </summary>
        public stw_parameter_group* groups;
        public UIntPtr group_count;
        /// <summary>STW_MASTER_*</summary>
        public uint master;
        /// <summary>STW_KERNELS_*. A checkpoint can only be restored with the same ones</summary>
        public uint kernels;
        /// <summary>STW_GRADIENTS_*</summary>
        public uint gradients;
        /// <summary>
        /// 1: the backward pass updates the parameters of blocks, so that their gradients need not be kept.
        /// The trained bits are those of a run without clipping. It requires that the micro-batch is the
        /// global batch, that clip_norm is 0 and that outliers are not skipped. It excludes fp16, gradients
        /// in bf16, host memory and a gradient hook. A gradient that is not finite ends the run
        /// (STW_NON_FINITE) with some parameters updated: restore a checkpoint
        /// </summary>
        public uint fused_update;
        /// <summary>STW_ATTENTION_*. A checkpoint can only be restored with the same one</summary>
        public uint attention;
        /// <summary>STW_QUANTIZE_*. A checkpoint can only be restored with the same one</summary>
        public uint quantize;
        /// <summary>
        /// for models with adapters. STW_QUANTIZE_INT8: the token embedding and the head are int8, whatever
        /// format the model's files have. The table of positions keeps its format. auto: none. A checkpoint
        /// can only be restored with the same one
        /// </summary>
        public uint quantize_embeddings;
        /// <summary>STW_PREFERENCE_*. A checkpoint can only be restored with the same one</summary>
        public uint preference;
        /// <summary>reports and cancels this call; NULL: none</summary>
        public stw_watch* watch;
        /// <summary>STW_KEEP_*: settings that relaxations must not change</summary>
        public uint keep;
        /// <summary>
        /// 1: the plan is for a trainer with a gradient hook: all gradients are in the arena when the hook is
        /// called. This may need a larger budget. A plan with 0 may also suit a hook; if it does not,
        /// stw_trainer_create refuses it
        /// </summary>
        public uint gradient_hook;
        /// <summary>
        /// for encoders with an output for each text (STW_TASK_LABEL, LABELS, NUMBER): the largest number of
        /// texts in a sample. The head, and of the last block all that follows attention, are computed for so
        /// many rows of a sample instead of all. 0: any number of texts. A sample with more texts that have
        /// targets is refused. A checkpoint can only be restored with the same one
        /// </summary>
        public ulong texts;

        /// <summary>Zero, but for its size.</summary>
        public static stw_plan_options Sized()
        {
            return new stw_plan_options { struct_size = (uint)sizeof(stw_plan_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_plan_info
    {
        public uint struct_size;
        /// <summary>0: no plan fits; minimum_bytes is the budget that would be enough</summary>
        public uint fits;
        /// <summary>samples of a micro-step</summary>
        public ulong micro_batch;
        /// <summary>micro-steps of a step</summary>
        public ulong accumulation_steps;
        /// <summary>samples of the last micro-step of a step</summary>
        public ulong last_micro_batch;
        /// <summary>parts into which a micro-step's logits and losses are cut</summary>
        public ulong loss_chunks;
        /// <summary>samples of a step</summary>
        public ulong global_batch;
        /// <summary>tokens of a sample</summary>
        public ulong sequence;
        public ulong parameters;
        public ulong gradients;
        public ulong optimizer;
        public ulong saved_activations;
        public ulong transient;
        public ulong workspace;
        public ulong inputs;
        public ulong padding;
        /// <summary>bytes of device memory that a trainer allocates</summary>
        public ulong arena;
        /// <summary>peak = arena + reserve</summary>
        public ulong reserve;
        /// <summary>peak = arena + reserve</summary>
        public ulong peak;
        public ulong budget;
        /// <summary>bytes of host memory that a trainer allocates for offloaded tensors</summary>
        public ulong host;
        /// <summary>smallest memory_bytes that works with these options</summary>
        public ulong minimum_bytes;
        /// <summary>32 or 8</summary>
        public uint state_bits;
        /// <summary>STW_PRECISION_*</summary>
        public uint precision;
        /// <summary>time of a step, predicted by the cost model</summary>
        public double step_seconds;
        /// <summary>global_batch * sequence / step_seconds</summary>
        public double tokens_per_second;
        /// <summary>share of step_seconds that is spent on recompute, 0 to 1</summary>
        public double recompute_fraction;
        /// <summary>16 hexadecimal digits: XXH3-64 of the plan</summary>
        public fixed byte fingerprint[20];
        /// <summary>1: by the cost model, no plan with these numerics is faster within the budget</summary>
        public uint proven;
        /// <summary>lower bound of the step time within the budget</summary>
        public double bound_seconds;
        /// <summary>lower bound of the step time for any budget</summary>
        public double unlimited_seconds;
        /// <summary>step time with one GiB more and the same state format</summary>
        public double next_gib_seconds;
        /// <summary>
        /// bytes that a step copies between host memory and the device, both directions together
        /// </summary>
        public ulong copied_bytes;
        /// <summary>number of blocks whose feed-forward part runs in tiles of rows</summary>
        public ulong tiled_blocks;
        /// <summary>rows of the smallest tile that a block is planned with; 0: no block has tiles</summary>
        public ulong tile_rows;
        /// <summary>stw_plan_options.texts</summary>
        public ulong texts;

        /// <summary>Zero, but for its size.</summary>
        public static stw_plan_info Sized()
        {
            return new stw_plan_info { struct_size = (uint)sizeof(stw_plan_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_buffer_info
    {
        public uint struct_size;
        /// <summary>1: the buffer always lives, and `first` and `last` are 0</summary>
        public uint persistent;
        /// <summary>name of the tensor; lives as long as the plan</summary>
        public byte* name;
        /// <summary>kind of memory: a field of stw_plan_info, "parameters" to "inputs"</summary>
        public byte* owner;
        /// <summary>place in the arena, in bytes from its beginning</summary>
        public ulong offset;
        /// <summary>place in the arena, in bytes from its beginning</summary>
        public ulong bytes;
        /// <summary>
        /// first and last instruction of the micro-step's program that need it, both included
        /// </summary>
        public uint first;
        /// <summary>
        /// first and last instruction of the micro-step's program that need it, both included
        /// </summary>
        public uint last;

        /// <summary>Zero, but for its size.</summary>
        public static stw_buffer_info Sized()
        {
            return new stw_buffer_info { struct_size = (uint)sizeof(stw_buffer_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_relaxation_info
    {
        public uint struct_size;
        /// <summary>1: the trained bits would be different</summary>
        public uint changes_numerics;
        /// <summary>
        /// bytes by which the change lowers the smallest peak; if `fits` is 1, it may be a little more. For
        /// host_memory: bytes by which the peak with this host memory is below the smallest peak without it
        /// </summary>
        public ulong saves_bytes;
        /// <summary>
        /// change in the time of a token, as a fraction of its time if there were enough memory without the
        /// change; negative: faster
        /// </summary>
        public double costs_fraction;
        /// <summary>
        /// the settings to change: "states 8, master split8", ...; the comment of this struct lists them. Cut
        /// where it is longer; `flags` is complete
        /// </summary>
        public fixed byte change[64];
        /// <summary>1: this change is enough</summary>
        public uint fits;
        public uint reserved;
        /// <summary>the change as flags of the command: "--states 8 --master split8"</summary>
        public fixed byte flags[192];
        /// <summary>what is different in the result, in words; empty: nothing</summary>
        public fixed byte effect[192];
        /// <summary>as in stw_plan_info</summary>
        public double tokens_per_second;
        /// <summary>as in stw_plan_info. If `fits` is 0: the smallest budget that works</summary>
        public ulong peak;
        /// <summary>as in stw_plan_info</summary>
        public ulong host;
        /// <summary>
        /// for host_memory: the least host memory with which a plan, maybe a slower one, fits; else 0
        /// </summary>
        public ulong least_host;

        /// <summary>Zero, but for its size.</summary>
        public static stw_relaxation_info Sized()
        {
            return new stw_relaxation_info { struct_size = (uint)sizeof(stw_relaxation_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_offload_info
    {
        public uint struct_size;
        /// <summary>1: tensors of parameters outside of blocks are offloaded, too</summary>
        public uint outside_blocks;
        /// <summary>number of blocks, from the first one on, whose tensors are offloaded</summary>
        public uint blocks;
        public uint reserved;
        /// <summary>in host memory</summary>
        public ulong bytes;
        /// <summary>
        /// "optimizer", "masters", "gradients", "weights" or "inputs" (of blocks); lives for ever
        /// </summary>
        public byte* tensors;

        /// <summary>Zero, but for its size.</summary>
        public static stw_offload_info Sized()
        {
            return new stw_offload_info { struct_size = (uint)sizeof(stw_offload_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_frontier_point
    {
        public uint struct_size;
        /// <summary>1: from this point on, more memory gains much less speed</summary>
        public uint is_knee;
        /// <summary>the smallest budget that gets this plan, in bytes</summary>
        public ulong peak;
        /// <summary>as in stw_plan_info</summary>
        public ulong micro_batch;
        /// <summary>as in stw_plan_info</summary>
        public ulong loss_chunks;
        /// <summary>as in stw_plan_info</summary>
        public double step_seconds;
        /// <summary>as in stw_plan_info</summary>
        public double tokens_per_second;

        /// <summary>Zero, but for its size.</summary>
        public static stw_frontier_point Sized()
        {
            return new stw_frontier_point { struct_size = (uint)sizeof(stw_frontier_point) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_profile_info
    {
        public uint struct_size;
        public uint is_cuda;
        /// <summary>bytes; 0: those of the machine</summary>
        public ulong memory;
        /// <summary>bytes; 0: those of the machine</summary>
        public ulong reserve;
        /// <summary>peak with fp32 accumulation; CPU: of one thread</summary>
        public ulong gflops_fp32;
        /// <summary>peak with fp32 accumulation; CPU: of one thread</summary>
        public ulong gflops_bf16;
        /// <summary>bandwidth of the device's memory</summary>
        public ulong gbytes_per_second;
        /// <summary>share of the peak that matrix products reach</summary>
        public uint product_permille;
        /// <summary>share of the bandwidth that streaming ops reach</summary>
        public uint stream_permille;
        /// <summary>fixed time of every op</summary>
        public ulong launch_nanoseconds;
        /// <summary>the name that stw_plan_options.device takes; lives for ever</summary>
        public byte* name;
        /// <summary>the name for people; lives for ever</summary>
        public byte* title;
        /// <summary>where the figures come from; lives for ever</summary>
        public byte* source;
        /// <summary>bandwidth to host memory and back, in each direction</summary>
        public ulong host_gbytes_per_second;
        /// <summary>calibrated profiles: threads that computed during the measurement; else 0</summary>
        public uint threads;
        /// <summary>calibrated profiles: STW_PRECISION_* of the measurement; else 0</summary>
        public uint precision;
        /// <summary>calibrated profiles: measured time of a step of the timed plan; else 0</summary>
        public ulong step_nanoseconds;
        /// <summary>calibrated profiles: STW_KERNELS_* of the measurement; else 0</summary>
        public uint kernels;
        public uint reserved;
        /// <summary>GPUs: power of the board; 0: unknown</summary>
        public ulong watts;
        /// <summary>
        /// GPUs: of 16-bit products where power limits them. product_permille is the share of the peak that
        /// watts * gflops_per_watt allows, at most 1000, with a smooth corner where both are close
        /// </summary>
        public ulong gflops_per_watt;
        /// <summary>
        /// GPUs: share of the speed of libraries that the kernels of STW_KERNELS_TENSOR reach
        /// </summary>
        public uint mma_permille;
        /// <summary>the same for STW_KERNELS_WGMMA</summary>
        public uint wgmma_permille;
        /// <summary>
        /// share of the peak that attention reaches in libraries, with heads of up to 64 numbers; 0:
        /// product_permille
        /// </summary>
        public uint attention_permille;
        /// <summary>the same with larger heads; 0: attention_permille</summary>
        public uint wide_attention_permille;
        /// <summary>share of the fp32 peak that products reach; 0: product_permille</summary>
        public uint fp32_permille;
        public uint reserved_end;

        /// <summary>Zero, but for its size.</summary>
        public static stw_profile_info Sized()
        {
            return new stw_profile_info { struct_size = (uint)sizeof(stw_profile_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_profile_op_info
    {
        public uint struct_size;
        /// <summary>
        /// share of the peak that limits the op, arithmetic or bandwidth; above 1000 if data is in caches
        /// </summary>
        public uint permille;
        /// <summary>fixed time of every op of this kind</summary>
        public ulong launch_nanoseconds;
        /// <summary>measured time of all ops of this kind in the timed step</summary>
        public ulong nanoseconds;
        /// <summary>name of the kind; lives for ever</summary>
        public byte* name;

        /// <summary>Zero, but for its size.</summary>
        public static stw_profile_op_info Sized()
        {
            return new stw_profile_op_info { struct_size = (uint)sizeof(stw_profile_op_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_buffer_lifetime
    {
        /// <summary>
        /// the buffer is alive in [lower, upper), in any unit of time; upper == lower: it takes no space
        /// </summary>
        public long lower;
        /// <summary>
        /// the buffer is alive in [lower, upper), in any unit of time; upper == lower: it takes no space
        /// </summary>
        public long upper;
        /// <summary>bytes</summary>
        public ulong size;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_buffer_gap
    {
        public long lower;
        public long upper;
        /// <summary>`end` is at most the size of the buffer</summary>
        public ulong first;
        /// <summary>`end` is at most the size of the buffer</summary>
        public ulong end;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_buffer_constraint
    {
        /// <summary>the offset is a multiple of it; 0: 1</summary>
        public ulong alignment;
        /// <summary>with STW_SET_OFFSET: the buffer's offset</summary>
        public ulong offset;
        /// <summary>gap_count gaps that do not overlap</summary>
        public stw_buffer_gap* gaps;
        public uint gap_count;
        /// <summary>STW_SET_OFFSET</summary>
        public uint set_mask;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_pack_options
    {
        public uint struct_size;
        /// <summary>reserved, 0</summary>
        public uint set_mask;
        /// <summary>bytes that the buffers must fit into; 0: as few as possible</summary>
        public ulong capacity;
        /// <summary>decisions that the search may take, some microseconds each; 0: 1,000,000</summary>
        public ulong node_limit;
        /// <summary>
        /// one for each buffer, in the same order; NULL: none. With constraints the exact search is practical
        /// for a few dozen buffers
        /// </summary>
        public stw_buffer_constraint* constraints;

        /// <summary>Zero, but for its size.</summary>
        public static stw_pack_options Sized()
        {
            return new stw_pack_options { struct_size = (uint)sizeof(stw_pack_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_pack_result
    {
        public uint struct_size;
        /// <summary>STW_PACK_*</summary>
        public uint answer;
        /// <summary>
        /// largest offset + size of the lowest placement found, even if it exceeds the capacity
        /// </summary>
        public ulong height;
        /// <summary>proven: no placement is lower</summary>
        public ulong bound;
        /// <summary>decisions that the search took</summary>
        public ulong nodes;

        /// <summary>Zero, but for its size.</summary>
        public static stw_pack_result Sized()
        {
            return new stw_pack_result { struct_size = (uint)sizeof(stw_pack_result) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_dataset_options
    {
        public uint struct_size;
        /// <summary>STW_TOKENIZER_*; auto: ids for .bin and .npy files, else bytes</summary>
        public uint tokenizer;
        /// <summary>
        /// a file of text, or of ids of token_type: bare numbers, or a NumPy array of one dimension (.npy)
        /// </summary>
        public byte* path;
        /// <summary>size of the vocabulary; every id must be smaller</summary>
        public ulong vocabulary;
        /// <summary>tokens of a sample</summary>
        public ulong sequence;
        /// <summary>chooses the windows of tokens that are trained on; unset: 1337</summary>
        public ulong seed;
        /// <summary>STW_SET_DOCUMENT_END, STW_SET_HELD_OUT, STW_SET_DATASET_SEED</summary>
        public uint set_mask;
        /// <summary>
        /// 1: for plans with a preference; needs marks and excludes labels. Documents are pairs: chosen and
        /// rejected ones in turn. A sample holds whole pairs. No pair may have more than `sequence` + 1
        /// tokens
        /// </summary>
        public uint pairs;
        /// <summary>
        /// the token that ends a document. Attention then stays inside a document, and the token after an end
        /// is not a target. Needs a plan with STW_INPUT_POSITIONS. Unset: the file is not divided into
        /// documents
        /// </summary>
        public ulong document_end;
        /// <summary>
        /// a file with one byte for each token: STW_MARK_*. With marks, a model can learn answers without
        /// learning prompts. Documents are kept apart as with document_end, but they begin at the marked
        /// tokens; the first token must be marked. A sample holds as many whole documents as fit. Longer
        /// documents are cut. All samples are trained on once before any is repeated, in a different order
        /// each time. Needs plans with the same `sequence` (else STW_BAD_STATE). Excludes document_end. NULL:
        /// all tokens are targets, and a sample may begin at any token
        /// </summary>
        public byte* marks;
        /// <summary>
        /// for classifiers: a file with one little-endian uint32 for each document that `marks` begin. It is
        /// the document's label, or UINT32_MAX for no label. It becomes the target of the document's last
        /// token inside the sample; for an encoder, of its first token. STW_MARK_TARGET is ignored. With
        /// STW_TASK_TOKEN_LABEL: one uint32 for each token, the target of that token. NULL: targets are
        /// tokens
        /// </summary>
        public byte* labels;
        /// <summary>with labels: the number of labels of the model; every uint32 must be smaller</summary>
        public ulong label_count;
        /// <summary>
        /// share of the tokens, at the end of the file, that is held out for evaluation: 0 to 1; unset: 0.1.
        /// With marks, whole documents are held out; a document that is longer than a sample counts with the
        /// tokens that fit into a sample
        /// </summary>
        public double held_out;
        /// <summary>
        /// with pairs, for STW_PREFERENCE_DPO and _IPO: the file that stw_trainer_write_reference wrote for
        /// these tokens and marks (a file for other ones: STW_BAD_STATE)
        /// </summary>
        public byte* reference;
        /// <summary>above 0, at most 1; 0: no tokens are hidden</summary>
        public double mask_rate;
        public ulong mask_token;
        /// <summary>`vocabulary` bytes, each a combination of STW_TOKEN_*; NULL: all are 0</summary>
        public byte* token_kinds;
        /// <summary>
        /// 1: with token_kinds, whole words are drawn instead of tokens: a token that continues a word is
        /// hidden together with the word
        /// </summary>
        public uint mask_whole_words;
        /// <summary>
        /// with labels: the model's task, LABEL, LABELS, NUMBER, TOKEN_LABEL or SPANS; AUTOMATIC: LABEL. For
        /// LABELS, NUMBER and SPANS the file of labels has label_count little-endian float32 for each
        /// document instead. LABELS: the degree to which the document has each label, 0 to 1. NUMBER: finite
        /// numbers. SPANS: the indices in the document of the answer's first and last token; documents are at
        /// most as long as a sample. If the first float32 is a NaN, the document has no labels
        /// </summary>
        public uint task;
        /// <summary>
        /// 1: evaluations cover the whole held-out part, in consecutive windows from its first token on; the
        /// last window may be shorter. Each token except the first is a target once. Excludes marks and
        /// mask_rate
        /// </summary>
        public uint sequential;
        /// <summary>
        /// STW_TOKEN_TYPE_*, for ids. AUTO refuses a file whose numbers look like another type
        /// </summary>
        public uint token_type;
        /// <summary>reports and cancels this call; NULL: none</summary>
        public stw_watch* watch;
        /// <summary>
        /// with marks: the largest number of documents in a sample, as stw_plan_info.texts of the plan says.
        /// 0: as many as fit. If it is not 0 and the documents have labels, training samples take the
        /// documents in an order that leaves little padding. All other samples take them in the order of the
        /// file
        /// </summary>
        public ulong texts;

        /// <summary>Zero, but for its size.</summary>
        public static stw_dataset_options Sized()
        {
            return new stw_dataset_options { struct_size = (uint)sizeof(stw_dataset_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_dataset_info
    {
        public uint struct_size;
        /// <summary>STW_TOKENIZER_BYTE or STW_TOKENIZER_IDS</summary>
        public uint tokenizer;
        /// <summary>
        /// as held_out divides them; with marks, the held-out part begins with the nearest document
        /// </summary>
        public ulong training_tokens;
        /// <summary>
        /// as held_out divides them; with marks, the held-out part begins with the nearest document
        /// </summary>
        public ulong evaluation_tokens;
        /// <summary>
        /// with marks: the number of samples in which every document of the part occurs once. With
        /// sequential: evaluation_samples is the number of samples that hold every token once. Else 0
        /// </summary>
        public ulong training_samples;
        /// <summary>
        /// with marks: the number of samples in which every document of the part occurs once. With
        /// sequential: evaluation_samples is the number of samples that hold every token once. Else 0
        /// </summary>
        public ulong evaluation_samples;
        /// <summary>
        /// XXH3, 64 bits, of the files of tokens, marks and labels in this order. A run that continues from a
        /// checkpoint trains the bits of an uninterrupted run only if this is the same, too
        /// </summary>
        public ulong content_hash;

        /// <summary>Zero, but for its size.</summary>
        public static stw_dataset_info Sized()
        {
            return new stw_dataset_info { struct_size = (uint)sizeof(stw_dataset_info) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_progress
    {
        public uint struct_size;
        /// <summary>STW_PHASE_*</summary>
        public uint phase;
        /// <summary>successful updates so far</summary>
        public ulong step;
        /// <summary>global batches consumed so far: step + skipped</summary>
        public ulong batches;
        /// <summary>steps without an update so far: STW_SKIP_*</summary>
        public ulong skipped;
        /// <summary>of the last step, mean per target</summary>
        public double loss;
        /// <summary>of the last step, before clipping</summary>
        public double grad_norm;
        /// <summary>of the last step</summary>
        public double learning_rate;
        /// <summary>duration of the last step</summary>
        public double seconds;
        /// <summary>targets of the last step per second; with a preference: pairs per second</summary>
        public double tokens_per_second;
        /// <summary>targets trained on so far; with a preference: pairs</summary>
        public ulong tokens;
        /// <summary>of the last evaluation; 0 before the first one</summary>
        public double evaluation_loss;
        /// <summary>for the next step; 1 unless the precision is fp16</summary>
        public double loss_scale;
        /// <summary>STW_SKIP_* of the last step</summary>
        public uint skip_reason;
        public uint reserved;
        /// <summary>
        /// of the last evaluation. Classifiers and masked language models: share of the targets whose logit
        /// was the largest; of equal logits the first one counts. LABELS: share of the texts whose logits are
        /// all right. A logit is right if it is above 0 where the label's degree is above 0.5, and at most 0
        /// elsewhere. Preferences: as `accuracy`. NaN if there were no targets, and for NUMBER
        /// </summary>
        public double evaluation_accuracy;
        /// <summary>
        /// with a preference, of the last step: share of the pairs whose chosen document was ahead, compared
        /// by P - R (dpo), (P - R) / n (ipo), or P / n (simpo, orpo); else 0
        /// </summary>
        public double accuracy;
        /// <summary>
        /// all samples of the evaluation in progress, or of the last one. stw_trainer_log_probabilities and
        /// _write_reference count as evaluations
        /// </summary>
        public ulong evaluation_samples;
        /// <summary>samples of that evaluation that have been given to the device</summary>
        public ulong evaluated_samples;
        /// <summary>
        /// targets that evaluation_loss is the mean over: tokens; for a classifier texts or words; with a
        /// preference pairs
        /// </summary>
        public ulong evaluation_targets;
        /// <summary>all micro-steps of the step in progress, or of the last one</summary>
        public ulong micro_steps;
        /// <summary>
        /// micro-steps of that step that have been given to the device; on the CPU these are computed
        /// </summary>
        public ulong micro_steps_done;
        /// <summary>tokens of the last step's samples, without padding; 0: the host gave the batch</summary>
        public ulong sample_tokens;
        /// <summary>tokens of the samples of the last stw_trainer_evaluate, without padding</summary>
        public ulong evaluation_tokens;

        /// <summary>Zero, but for its size.</summary>
        public static stw_progress Sized()
        {
            return new stw_progress { struct_size = (uint)sizeof(stw_progress) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_gradients
    {
        public uint struct_size;
        public uint reserved;
        /// <summary>
        /// gradients of all trainable parameters: sums over tokens (with a preference: over pairs), not
        /// divided by their number. Ignore the gaps between parameters. Trainers whose gradients are added up
        /// must have plans that agree in `keeps_rows` (a field of a plan's JSON): a tied token table has one
        /// gradient if it is true, otherwise two
        /// </summary>
        public float* data;
        /// <summary>number of floats in `data`, including gaps</summary>
        public ulong count;
        public double* loss_sum;
        public ulong* target_count;
        /// <summary>a cudaStream_t; NULL on the CPU</summary>
        public void* stream;
        /// <summary>
        /// factor that `data` contains: 1 unless the precision is fp16. Trainers whose gradients are added up
        /// must have the same scale
        /// </summary>
        public double scale;
        /// <summary>with a preference: number of pairs whose chosen document was ahead</summary>
        public uint* correct_pairs;

        /// <summary>Zero, but for its size.</summary>
        public static stw_gradients Sized()
        {
            return new stw_gradients { struct_size = (uint)sizeof(stw_gradients) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_trainer_options
    {
        public uint struct_size;
        /// <summary>STW_SET_WEIGHT_DECAY to STW_SET_TRAINER_SEED</summary>
        public uint set_mask;
        /// <summary>seed of dropout; unset: 1337</summary>
        public ulong seed;
        /// <summary>adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99</summary>
        public float beta1;
        /// <summary>adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99</summary>
        public float beta2;
        /// <summary>adamw, muon: 0: 1e-8</summary>
        public float epsilon;
        /// <summary>
        /// 0 to 1e6; unset: 0.1, for sgd and adafactor 0. Tensors of one dimension get none, unless a group
        /// sets theirs
        /// </summary>
        public float weight_decay;
        /// <summary>largest gradient norm; 0: no clipping; unset: 1, with a fused update 0</summary>
        public float clip_norm;
        /// <summary>sgd: 1: Nesterov momentum</summary>
        public uint nesterov;
        /// <summary>
        /// memory of the host, at least info.arena bytes at a multiple of 256; NULL: the trainer allocates it
        /// </summary>
        public void* arena;
        /// <summary>size of `arena`</summary>
        public ulong arena_bytes;
        /// <summary>NULL: none</summary>
        public IntPtr gradient_hook;
        public void* gradient_user;
        /// <summary>sgd: unset 0.9; muon: unset 0.95</summary>
        public float momentum;
        /// <summary>
        /// in [0, 1): share of the target's probability that all tokens share equally. With a preference, in
        /// [0, 0.5): share of the pairs that are assumed to be the wrong way round. Must be 0 for LABELS,
        /// NUMBER and SPANS
        /// </summary>
        public float label_smoothing;
        /// <summary>
        /// every token's loss grows by z_loss times the square of log Σ exp(logits). Must be 0 for LABELS,
        /// NUMBER and SPANS
        /// </summary>
        public float z_loss;
        /// <summary>
        /// 0: none. Else above 1: a step is skipped if its loss or gradient norm lies more than this many
        /// standard deviations above its running mean. Mean and deviation are exponential averages over about
        /// 128 steps. No step is skipped before 64 steps were observed
        /// </summary>
        public float outlier_limit;
        /// <summary>fp16: scale of the first step, a power of two; 0: 65536</summary>
        public double loss_scale;
        /// <summary>
        /// fp16: number of updates after which the scale doubles; 0: 2000. A step whose loss or gradient is
        /// not finite halves the scale.
        /// </summary>
        public uint growth_interval;
        /// <summary>
        /// STW_NON_FINITE_*. skip: a step whose loss or gradient is not finite updates nothing, and is
        /// counted and logged. stop: it fails with STW_NON_FINITE. fp16 always skips, and fails with
        /// STW_NUMERIC if the scale would fall below 1.
        /// </summary>
        public uint non_finite;
        /// <summary>0: 0.1, for simpo 2; at most 1e6</summary>
        public float beta;
        /// <summary>simpo: unset half of beta</summary>
        public float margin;
        /// <summary>
        /// factor, 0 to 1e6, with which the chosen document's mean token loss is added (Pang et al.,
        /// arXiv:2404.19733)
        /// </summary>
        public float answer_share;
        public uint reserved;
        /// <summary>
        /// reports and cancels the creation and all later calls that name the trainer; it must outlive the
        /// trainer; NULL: none
        /// </summary>
        public stw_watch* watch;
        /// <summary>
        /// for a gradient hook that adds up several trainers: the number, in their joint batch, of the first
        /// sample of this trainer's batches. Dropout depends on a sample's number, so that the trainers
        /// together drop what one with the whole batch drops. Else 0. first_sample + global_batch is at most
        /// 2^32. Checkpoints do not hold it
        /// </summary>
        public ulong first_sample;

        /// <summary>Zero, but for its size.</summary>
        public static stw_trainer_options Sized()
        {
            return new stw_trainer_options { struct_size = (uint)sizeof(stw_trainer_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_batch
    {
        public uint struct_size;
        /// <summary>number of tensors</summary>
        public uint count;
        public byte** names;
        public DLManagedTensorVersioned** tensors;
        /// <summary>
        /// 0 to 1e6. There is no default: with 0 the optimizer's state changes and parameters do not
        /// </summary>
        public double learning_rate;

        /// <summary>Zero, but for its size.</summary>
        public static stw_batch Sized()
        {
            return new stw_batch { struct_size = (uint)sizeof(stw_batch) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_step_result
    {
        public uint struct_size;
        /// <summary>
        /// 1: there was no update. Only three things have changed: the count of batches, the running
        /// statistics of outlier_limit, and in fp16 the loss scale
        /// </summary>
        public uint skipped;
        /// <summary>successful updates so far, this one included</summary>
        public ulong step;
        /// <summary>mean per target; norm before clipping</summary>
        public double loss;
        /// <summary>mean per target; norm before clipping</summary>
        public double grad_norm;
        /// <summary>number of targets with a loss; with a preference: of pairs</summary>
        public ulong targets;
        /// <summary>duration of the step</summary>
        public double seconds;
        /// <summary>of this step; 1 unless the precision is fp16</summary>
        public double loss_scale;
        /// <summary>STW_SKIP_*</summary>
        public uint skip_reason;
        public uint reserved;
        /// <summary>as in stw_progress</summary>
        public double accuracy;

        /// <summary>Zero, but for its size.</summary>
        public static stw_step_result Sized()
        {
            return new stw_step_result { struct_size = (uint)sizeof(stw_step_result) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_run_options
    {
        public uint struct_size;
        /// <summary>STW_SET_MIN_RATE</summary>
        public uint set_mask;
        /// <summary>
        /// the run ends when the trainer has consumed this many batches in all; if it already has, the call
        /// returns at once
        /// </summary>
        public ulong until;
        /// <summary>length of the schedule in steps; 0: `until`</summary>
        public ulong total;
        /// <summary>steps of linear warm-up</summary>
        public ulong warmup;
        /// <summary>
        /// the full rate. 0: adamw, muon 3e-4; lion 1e-4; sgd, adafactor 1e-2. At most 1e6, also after
        /// base_batch has scaled it
        /// </summary>
        public double learning_rate;
        /// <summary>unset: a tenth of the full rate; inverse root: 0; constant: not used</summary>
        public double min_rate;
        /// <summary>STW_SCHEDULE_*</summary>
        public uint schedule;
        /// <summary>steps between two calls of `progress`; 0: 1</summary>
        public uint progress_every;
        /// <summary>NULL: none</summary>
        public IntPtr progress;
        public void* progress_user;
        /// <summary>warm-up-stable-decay: length of the decay; 0: a fifth of `total`</summary>
        public ulong decay_steps;
        /// <summary>
        /// the number of samples in a step that the learning rates were chosen for. Rates are multiplied by
        /// the square root of global_batch / base_batch; 0: rates are used as they are
        /// </summary>
        public ulong base_batch;

        /// <summary>Zero, but for its size.</summary>
        public static stw_run_options Sized()
        {
            return new stw_run_options { struct_size = (uint)sizeof(stw_run_options) };
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_generate_options
    {
        public uint struct_size;
        /// <summary>draw from this many most probable tokens; 0: from all</summary>
        public uint top_k;
        /// <summary>at least one token</summary>
        public int* prompt;
        /// <summary>number of tokens in `prompt`</summary>
        public ulong prompt_count;
        /// <summary>receives the new tokens</summary>
        public int* @out;
        /// <summary>the most tokens to generate</summary>
        public ulong out_capacity;
        /// <summary>0: always the most probable token</summary>
        public double temperature;
        /// <summary>unset: 1337</summary>
        public ulong seed;
        /// <summary>
        /// tokens that end the answer, such as the model's end of text. The one that ended it is the last
        /// token in `out`
        /// </summary>
        public int* stop;
        /// <summary>number of tokens in `stop`</summary>
        public ulong stop_count;
        /// <summary>
        /// at most 1. Among the top_k tokens, after `temperature`, draw from the fewest most probable ones
        /// that together have at least this probability; 0: from all
        /// </summary>
        public double top_p;
        /// <summary>STW_SET_GENERATE_SEED</summary>
        public uint set_mask;
        public uint reserved;

        /// <summary>Zero, but for its size.</summary>
        public static stw_generate_options Sized()
        {
            return new stw_generate_options { struct_size = (uint)sizeof(stw_generate_options) };
        }
    }

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern uint stw_version();

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_build_info();

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_status_name(int status);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_watch_create(stw_watch** @out, stw_watch_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_watch_destroy(stw_watch* watch);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_watch_cancel(stw_watch* watch);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_watch_query(stw_watch* watch, stw_watch_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_device_at(UIntPtr index, stw_device_info* @out, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_device_open(stw_device** @out, stw_device_options* options,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_device_close(stw_device* device);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_device_query(stw_device* device, stw_device_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_device_holder_at(stw_device* device, UIntPtr index, stw_memory_holder* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_device_next_log(stw_device* device, ulong after, stw_log_message* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_model_create(stw_model** @out, stw_model_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_model_destroy(stw_model* model);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_model_query(stw_model* model, stw_model_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern UIntPtr stw_model_tensor_count(stw_model* model);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_model_tensor_at(stw_model* model, UIntPtr index, stw_tensor_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_model_tensor_find(stw_model* model, byte* name, UIntPtr* index);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_model_label_at(stw_model* model, UIntPtr index);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_model_config(stw_model* model);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_model_export(stw_model* model, byte* folder, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_model_export_watched(stw_model* model, byte* folder, stw_watch* watch,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_model_preset_at(UIntPtr index);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_create(stw_plan** @out, stw_model* model, stw_plan_options* options,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_plan_destroy(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_query(stw_plan* plan, stw_plan_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_plan_json(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_plan_report(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_load(stw_plan** @out, stw_model* model, byte* json, UIntPtr json_size,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_verify(stw_plan* plan, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_relaxation_at(stw_plan* plan, UIntPtr index, stw_relaxation_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_offload_at(stw_plan* plan, UIntPtr index, stw_offload_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_frontier(stw_plan* plan, stw_frontier_point* @out, UIntPtr capacity,
        UIntPtr* count, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_frontier_watched(stw_plan* plan, stw_frontier_point* @out,
        UIntPtr capacity, UIntPtr* count, stw_watch* watch, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_longest_sequence(stw_model* model, stw_plan_options* options,
        ulong* sequence, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_profile_at(UIntPtr index, stw_profile_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_profile_read(byte* profile, UIntPtr profile_size, stw_profile_info* @out,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_profile_op_at(byte* profile, UIntPtr profile_size, UIntPtr index,
        stw_profile_op_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_picture(stw_plan* plan, uint kind, byte* @out, UIntPtr capacity,
        UIntPtr* needed, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_picture_watched(stw_plan* plan, uint kind, byte* @out, UIntPtr capacity,
        UIntPtr* needed, stw_watch* watch, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern UIntPtr stw_plan_buffer_count(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_buffer_at(stw_plan* plan, UIntPtr index, stw_buffer_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_pack(ulong* offsets, stw_buffer_lifetime* lifetimes, UIntPtr count,
        stw_pack_options* options, stw_pack_result* result, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_dataset_open(stw_dataset** @out, stw_dataset_options* options,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_dataset_close(stw_dataset* dataset);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_dataset_query(stw_dataset* dataset, stw_dataset_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_create(stw_trainer** @out, stw_device* device, stw_model* model,
        stw_plan* plan, stw_trainer_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_trainer_destroy(stw_trainer* trainer);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_step(stw_trainer* trainer, stw_batch* batch, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_wait(stw_trainer* trainer, stw_step_result* @out, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_run(stw_trainer* trainer, stw_dataset* dataset,
        stw_run_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_evaluate(stw_trainer* trainer, stw_dataset* dataset, ulong batches,
        double* loss, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_generate(stw_trainer* trainer, stw_generate_options* options,
        ulong* count, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_logits(stw_trainer* trainer, int* tokens, ulong count, float* @out,
        ulong capacity, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_classify(stw_trainer* trainer, int* tokens, int* token_types,
        ulong* lengths, ulong texts, float* @out, ulong capacity, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_log_probabilities(stw_trainer* trainer, stw_batch* batch,
        float* @out, ulong capacity, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_write_reference(stw_trainer* trainer, stw_dataset* dataset,
        byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_replan(stw_trainer* trainer, ulong memory_bytes, stw_plan** plan,
        stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_calibrate(stw_trainer* trainer, byte* @out, UIntPtr capacity,
        UIntPtr* size, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_timeline(stw_trainer* trainer, byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_trainer_cancel(stw_trainer* trainer);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_progress(stw_trainer* trainer, stw_progress* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void* stw_trainer_stream(stw_trainer* trainer);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_export_tensor(stw_trainer* trainer, UIntPtr index, uint kind,
        DLManagedTensorVersioned** @out, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_import_tensor(stw_trainer* trainer, UIntPtr index,
        DLManagedTensorVersioned* @in, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_save(stw_trainer* trainer, byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_restore(stw_trainer* trainer, byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_checkpoint_verify(byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_export_model(stw_trainer* trainer, byte* folder, stw_error* error);
}
}
