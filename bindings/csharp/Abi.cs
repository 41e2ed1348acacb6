// The C API as C# sees it: made by generate_abi.py of include/stowage.h, not by hand.
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
        /// <summary>3xxx</summary>
        public ulong bytes_needed;
        /// <summary>3xxx</summary>
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
        /// <summary>of `unit`; where nothing is under way, of the last call</summary>
        public ulong done;
        /// <summary>0: unknown</summary>
        public ulong total;
        /// <summary>of the whole, 0 to 1; within a micro-step it follows the ops (CPU). 0 where the total is unknown</summary>
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
        /// <summary>NULL: the host polls by stw_watch_query, or only cancels</summary>
        public IntPtr notify;
        public void* user;
        /// <summary>between two calls of `notify`; a call that takes no longer is not told of. Unset: 100; 0: after every piece</summary>
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
        /// <summary>STW_BACKEND_*; auto: CUDA where there is one, else the CPU</summary>
        public uint backend;
        /// <summary>of several CUDA devices</summary>
        public int ordinal;
        /// <summary>CPU: threads that compute, the caller's included; 0: one for each processor. CUDA: that draw random weights or quantize, while a trainer is created or calibrated</summary>
        public uint threads;
        /// <summary>CPU: STW_ISA_*; auto: the widest that runs here. No bit depends on it.</summary>
        public uint isa;
        /// <summary>0: STW_LOG_WARNING</summary>
        public int log_level;
        /// <summary>CUDA: the host's stream, of the device's primary context; NULL: one of the library's</summary>
        public void* stream;
        public IntPtr log;
        public void* log_user;
        /// <summary>both or none</summary>
        public IntPtr allocate;
        public IntPtr release;
        public void* memory_user;
        /// <summary>NULL: a pool of the library's that sleeps when idle</summary>
        public IntPtr run;
        public void* run_user;
        /// <summary>CUDA: the path of a libcublasLt.so.13, for STW_KERNELS_CUBLASLT; NULL: what the system finds. Copied.</summary>
        public byte* cublaslt;
        /// <summary>CUDA: the path of a libcudnn.so.9 (9.15.1 on), for STW_ATTENTION_CUDNN; the same</summary>
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
        public uint backend;
        /// <summary>bytes</summary>
        public ulong memory_total;
        /// <summary>CPU: what the system says is available; CUDA: 0 in stw_device_at</summary>
        public ulong memory_free;
        /// <summary>CUDA</summary>
        public int compute_major;
        /// <summary>CUDA</summary>
        public int compute_minor;
        /// <summary>CPU</summary>
        public uint threads;
        /// <summary>CPU</summary>
        public uint isa;
        public fixed byte name[64];
        /// <summary>of the embedded profiles the one to plan with: stw_plan_options.device</summary>
        public fixed byte profile[24];
        /// <summary>CUDA: what the open device's context has taken already of what a plan's reserve counts, up to three quarters of that; 0 where the driver does not tell, and in stw_device_at</summary>
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
        /// <summary>its number, as the system knows it; a container may see another one</summary>
        public ulong process;
        public ulong bytes;
        /// <summary>of the program, "" where that is unknown; cut where it is longer</summary>
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
        /// <summary>1, 2, ... in the order they were written; 0: there is none</summary>
        public ulong number;
        public fixed byte component[32];
        /// <summary>cut where it is longer</summary>
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
        public uint set_mask;
        /// <summary>a folder with config.json, a config.json, or the name of a preset such as "nano"</summary>
        public byte* source;
        /// <summary>instead of source: the text of a config.json; not terminated, config_json_size bytes</summary>
        public byte* config_json;
        public UIntPtr config_json_size;
        /// <summary>a .safetensors file, or a folder with one or with an index (of several files without an index the one named model.safetensors); NULL: those of the source folder if it has any, else random values drawn from `seed`</summary>
        public byte* weights;
        /// <summary>unset: 1337</summary>
        public ulong seed;
        /// <summary>replaces all rates of the config; unset: those</summary>
        public float dropout;
        public uint reserved;
        /// <summary>a folder of adapters to go on with, for the model in `source`; NULL: none</summary>
        public byte* adapter;
        /// <summary>new ones: which matrices have one: the last parts of their modules' names, such as "q_proj,v_proj", or "all-linear"; NULL: all-linear</summary>
        public byte* adapter_targets;
        /// <summary>new ones: rows of A and columns of B; 0: no new ones. A is drawn from `seed`, B is 0</summary>
        public uint adapter_rank;
        /// <summary>STW_ADAPTER_RANK_STABILISED: scale = alpha / sqrt(rank)</summary>
        public uint adapter_flags;
        /// <summary>scale = alpha / rank; 0: twice the rank</summary>
        public float adapter_alpha;
        /// <summary>of what A reads, while it is trained</summary>
        public float adapter_dropout;
        /// <summary>label_count of them, UTF-8, no two alike; NULL: the model's own, else "LABEL_0", "LABEL_1", ...</summary>
        public byte** label_names;
        /// <summary>0: as the config says; else 2 (for LABELS and NUMBER 1) to 1,048,576, and what the model has already</summary>
        public UIntPtr label_count;
        /// <summary>STW_TASK_*. One with labels needs label_count where the config has no labels. A config that says its task (problem_type) has that one. MASKED_LANGUAGE_MODEL is for encoders (transformers' ...ForMaskedLM): what the weights lack of its head is drawn from `seed` where the config is not of such a model, and a head for next sentences (BertForPreTraining) is left out. LANGUAGE_MODEL is the body of an encoder</summary>
        public uint task;
        public uint reserved_end;

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
        public uint layers;
        /// <summary>tied ones counted once</summary>
        public ulong parameters;
        public ulong trainable;
        public ulong vocabulary;
        /// <summary>longest sequence</summary>
        public ulong positions;
        /// <summary>1: read from files; 0: drawn from the seed</summary>
        public uint has_weights;
        public uint width;
        /// <summary>its model_type: "gpt2", "llama", "gemma3_text", …</summary>
        public fixed byte architecture[32];
        /// <summary>0: there are no adapters</summary>
        public uint adapter_rank;
        /// <summary>1: its files hold matrices in 4 bits, as bitsandbytes makes them (nf4, also with nested scales)</summary>
        public uint has_codes;
        /// <summary>of a classifier; 0: a language model</summary>
        public ulong labels;
        /// <summary>of the config: transformers takes what stands at a text's end and is this token for padding, and looks at the last token before it; -1: none</summary>
        public long padding_token;
        /// <summary>1: continues texts, and attends to no later token; 0: an encoder, which reads a text as a whole</summary>
        public uint generates;
        /// <summary>types of tokens that the model tells apart, such as those of a first and of a second text; 0: none</summary>
        public uint token_types;
        /// <summary>STW_TASK_*; an encoder of STW_TASK_LANGUAGE_MODEL has no head, and is trained with a task that gives it one</summary>
        public uint task;
        /// <summary>1: weights were read from files, and of the head some were drawn from the seed</summary>
        public uint head_is_new;

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
        public uint ndim;
        /// <summary>as in the weight files; lives as long as the model</summary>
        public byte* name;
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
        /// <summary>STW_SET_GROUP_*: zeros that the group means; what is unset stays as it is</summary>
        public uint set_mask;
        public byte* pattern;
        /// <summary>1: frozen; 0: trained, although a group before it says otherwise</summary>
        public uint frozen;
        /// <summary>32 or 8, although the others have 8 or 32; embeddings and tensors of less than 4096 elements keep 32</summary>
        public uint state_bits;
        /// <summary>a factor of the run's</summary>
        public double learning_rate;
        /// <summary>instead of the trainer's, and of none for norms and biases</summary>
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
        /// <summary>bounds the peak, as in stw_trainer_replan; 0: all that the device has: device_memory, or the profile's, or for a CPU what is available on this machine now</summary>
        public ulong memory_bytes;
        /// <summary>samples of one optimizer step; required</summary>
        public ulong global_batch;
        /// <summary>tokens of a sample; 0: the model's positions, at most 1024</summary>
        public ulong sequence;
        /// <summary>"cpu", or a profile's name such as "rtx4090"; NULL: "cpu"</summary>
        public byte* device;
        /// <summary>bytes that are free there now: of a device that is open, memory_free + memory_reserved; 0: as memory_bytes says</summary>
        public ulong device_memory;
        /// <summary>taken off for what lies outside the arena; unset: the profile's (CPU: none)</summary>
        public ulong reserve_bytes;
        /// <summary>CPU: threads that will compute (scratch memory depends on it); 0: one a processor</summary>
        public uint threads;
        /// <summary>default: fp32 on the CPU, bf16 elsewhere</summary>
        public uint precision;
        public uint optimizer;
        /// <summary>STW_STATES_AUTO: 32 unless that does not fit or costs more than 10 % of the speed; AdamW and Lion have 8, for tensors of 4096 elements and more that are no embeddings</summary>
        public uint state_bits;
        /// <summary>0: chosen</summary>
        public uint micro_batch;
        /// <summary>STW_RECOMPUTE_*</summary>
        public uint recompute;
        /// <summary>STW_MODE_*: fast gives up contract E3 (the split into micro-batches changes no bit) where kernels have a faster way: CUDA devices with STW_KERNELS_CUBLASLT, which is the default there then, or STW_KERNELS_CUBLASLT_WGMMA; other plans stay exact</summary>
        public uint mode;
        /// <summary>STW_INPUT_*: what batches may bring beside tokens, targets and lengths</summary>
        public uint inputs;
        /// <summary>of host memory for what is offloaded; 0: nothing is</summary>
        public ulong host_bytes;
        /// <summary>what stw_trainer_calibrate wrote; NULL: the device's embedded profile. A `device` that is NULL is then the profile's, another one than the profile's is refused.</summary>
        public byte* profile;
        /// <summary>bytes of it, a zero byte at the end not counted</summary>
        public UIntPtr profile_size;
        /// <summary>an array; of groups that name the same parameter later ones win. All have the struct_size of the first one.</summary>
        public stw_parameter_group* groups;
        public UIntPtr group_count;
        /// <summary>STW_MASTER_*: what bf16 keeps of the fp32 value of a trained parameter</summary>
        public uint master;
        /// <summary>STW_KERNELS_*: part of what a checkpoint must agree with</summary>
        public uint kernels;
        /// <summary>STW_GRADIENTS_*</summary>
        public uint gradients;
        /// <summary>1: parameters of blocks are updated inside the backward pass, which keeps no gradients of them. The same bits as without clipping, but: the micro-batch is the global batch; no fp16, no gradients in bf16, no host memory, no gradient hook, clip_norm 0, no skipping of outliers; and a gradient that is not finite ends the run (STW_NON_FINITE) with parameters half updated: restore a checkpoint</summary>
        public uint fused_update;
        /// <summary>STW_ATTENTION_*: part of what a checkpoint must agree with</summary>
        public uint attention;
        /// <summary>STW_QUANTIZE_*: the same</summary>
        public uint quantize;
        /// <summary>STW_QUANTIZE_INT8: so are the table that tokens look up and the head (not that of positions), for models with adapters, whatever their files have; auto: none. The same</summary>
        public uint quantize_embeddings;
        /// <summary>STW_PREFERENCE_*: the same</summary>
        public uint preference;
        /// <summary>of this call; NULL: none</summary>
        public stw_watch* watch;

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
        /// <summary>0: nothing fits; minimum_bytes says what would</summary>
        public uint fits;
        public ulong micro_batch;
        public ulong accumulation_steps;
        public ulong last_micro_batch;
        public ulong loss_chunks;
        public ulong global_batch;
        public ulong sequence;
        public ulong parameters;
        public ulong gradients;
        public ulong optimizer;
        public ulong saved_activations;
        public ulong transient;
        public ulong workspace;
        public ulong inputs;
        public ulong padding;
        /// <summary>what a trainer allocates</summary>
        public ulong arena;
        /// <summary>peak = arena + reserve</summary>
        public ulong reserve;
        /// <summary>peak = arena + reserve</summary>
        public ulong peak;
        public ulong budget;
        /// <summary>host memory that a trainer allocates besides, for what is offloaded</summary>
        public ulong host;
        /// <summary>smallest memory_bytes that works with these options</summary>
        public ulong minimum_bytes;
        public uint state_bits;
        public uint precision;
        /// <summary>predicted</summary>
        public double step_seconds;
        /// <summary>predicted</summary>
        public double tokens_per_second;
        /// <summary>predicted</summary>
        public double recompute_fraction;
        /// <summary>16 hexadecimal digits: XXH3-64 of the plan</summary>
        public fixed byte fingerprint[20];
        /// <summary>1: no plan of these numerics is faster within the budget, by the cost model</summary>
        public uint proven;
        /// <summary>none is faster than this</summary>
        public double bound_seconds;
        /// <summary>nor than this within any budget</summary>
        public double unlimited_seconds;
        /// <summary>with one GiB more and the same state format</summary>
        public double next_gib_seconds;
        /// <summary>of a step, from host memory to the device and back</summary>
        public ulong copied_bytes;
        /// <summary>blocks whose feed-forward part runs in tiles of rows</summary>
        public ulong tiled_blocks;
        /// <summary>the fewest that a block's tiles are planned with; 0: no block has tiles</summary>
        public ulong tile_rows;

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
        /// <summary>1: lives for ever, first and last are 0</summary>
        public uint persistent;
        /// <summary>of the tensor; lives as long as the plan</summary>
        public byte* name;
        /// <summary>"parameters", "gradients", ...</summary>
        public byte* owner;
        /// <summary>in the arena</summary>
        public ulong offset;
        /// <summary>in the arena</summary>
        public ulong bytes;
        /// <summary>instructions of the micro-step's program, both included</summary>
        public uint first;
        /// <summary>instructions of the micro-step's program, both included</summary>
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
        /// <summary>1: the trained bits would be others</summary>
        public uint changes_numerics;
        /// <summary>of the smallest peak; with host memory that is enough: what the plan within the budget takes less</summary>
        public ulong saves_bytes;
        /// <summary>of the step time at the smallest peak, negative: faster; within the budget where it fits, else at its own smallest peak</summary>
        public double costs_fraction;
        /// <summary>the settings to change: "states 8", "host_memory 1048576" (bytes), ...; stowage.h lists them</summary>
        public fixed byte change[64];
        /// <summary>1: it is enough by itself</summary>
        public uint fits;
        public uint reserved;

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
        /// <summary>1: also what belongs to parameters outside of blocks</summary>
        public uint outside_blocks;
        /// <summary>of the first so many blocks</summary>
        public uint blocks;
        public uint reserved;
        /// <summary>in host memory</summary>
        public ulong bytes;
        /// <summary>"optimizer", "masters", "gradients", "weights" or "inputs" (of blocks); lives for ever</summary>
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
        /// <summary>1: from here on more memory brings much less</summary>
        public uint is_knee;
        /// <summary>the smallest budget that gets this plan</summary>
        public ulong peak;
        public ulong micro_batch;
        public ulong loss_chunks;
        public double step_seconds;
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
        /// <summary>bytes; 0: the machine's own</summary>
        public ulong memory;
        /// <summary>bytes; 0: the machine's own</summary>
        public ulong reserve;
        /// <summary>peak, fp32 accumulation; CPU: of one thread</summary>
        public ulong gflops_fp32;
        /// <summary>peak, fp32 accumulation; CPU: of one thread</summary>
        public ulong gflops_bf16;
        /// <summary>of memory</summary>
        public ulong gbytes_per_second;
        /// <summary>share of the peak that matrix products reach</summary>
        public uint product_permille;
        /// <summary>share of the bandwidth that streaming ops reach</summary>
        public uint stream_permille;
        /// <summary>of every op</summary>
        public ulong launch_nanoseconds;
        /// <summary>live for ever</summary>
        public byte* name;
        /// <summary>live for ever</summary>
        public byte* title;
        /// <summary>live for ever</summary>
        public byte* source;
        /// <summary>to host memory and back, in each direction</summary>
        public ulong host_gbytes_per_second;
        /// <summary>a calibrated one: that computed while it was measured; else 0</summary>
        public uint threads;
        /// <summary>a calibrated one: STW_PRECISION_* of what was measured; else 0</summary>
        public uint precision;
        /// <summary>a calibrated one: measured, a step of the plan that was timed; else 0</summary>
        public ulong step_nanoseconds;
        /// <summary>a calibrated one: STW_KERNELS_* of what was measured; else 0</summary>
        public uint kernels;
        public uint reserved;

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
        /// <summary>of the peak that bounds the op, arithmetic or bandwidth; above 1000 in caches</summary>
        public uint permille;
        /// <summary>of every op of the kind</summary>
        public ulong launch_nanoseconds;
        /// <summary>measured, of all ops of the kind in the step that was timed</summary>
        public ulong nanoseconds;
        /// <summary>of the kind; lives for ever</summary>
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
        /// <summary>alive in [lower, upper), in any unit of time; upper == lower takes no space</summary>
        public long lower;
        /// <summary>alive in [lower, upper), in any unit of time; upper == lower takes no space</summary>
        public long upper;
        /// <summary>bytes</summary>
        public ulong size;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_buffer_gap
    {
        public long lower;
        public long upper;
        /// <summary>end is at most the buffer's size</summary>
        public ulong first;
        /// <summary>end is at most the buffer's size</summary>
        public ulong end;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct stw_buffer_constraint
    {
        /// <summary>its offset is a multiple of it; 0: 1</summary>
        public ulong alignment;
        /// <summary>with STW_SET_OFFSET: its offset</summary>
        public ulong offset;
        /// <summary>gap_count of them, which do not overlap</summary>
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
        /// <summary>bytes to fit into; 0: as low as possible</summary>
        public ulong capacity;
        /// <summary>decisions that the search may take, some microseconds each; 0: 1,000,000</summary>
        public ulong node_limit;
        /// <summary>of the buffers, as many; NULL: none. With them the exact search is one for a few dozen buffers</summary>
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
        /// <summary>largest offset + size of the lowest placement found, within the capacity or not</summary>
        public ulong height;
        /// <summary>proven: no placement is lower</summary>
        public ulong bound;
        /// <summary>decisions taken</summary>
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
        /// <summary>auto: ids for .bin and .npy files, bytes otherwise</summary>
        public uint tokenizer;
        /// <summary>text, or ids of token_type: bare numbers, or a NumPy array of one dimension (.npy)</summary>
        public byte* path;
        /// <summary>every id must be smaller</summary>
        public ulong vocabulary;
        /// <summary>tokens of a sample</summary>
        public ulong sequence;
        /// <summary>of the windows; unset: 1337</summary>
        public ulong seed;
        /// <summary>STW_SET_DOCUMENT_END, STW_SET_HELD_OUT, STW_SET_DATASET_SEED</summary>
        public uint set_mask;
        /// <summary>1: with marks, without labels, for plans with a preference: documents are pairs, chosen and rejected ones in turn, and samples hold whole pairs, none longer than `sequence` + 1 tokens</summary>
        public uint pairs;
        /// <summary>the token that ends a document: attention stays inside of documents, and what follows an end is no target. Needs a plan with STW_INPUT_POSITIONS. Unset: there are no documents.</summary>
        public ulong document_end;
        /// <summary>a file with a byte for each token, STW_MARK_* together: for prompts and answers, of which the answers are learned. Documents are kept apart as above, but begin where they are marked, the first one with the first token. Samples hold them whole, as many as there is room for, and longer ones cut; all samples are trained on before one is again, in another order each time. For plans of `sequence` alone (else STW_BAD_STATE), not together with document_end. NULL: all tokens are targets, and samples begin anywhere.</summary>
        public byte* marks;
        /// <summary>for classifiers: a file with a little-endian uint32 for each document that `marks` begin: its label, or UINT32_MAX for none. It is the target of the document's last token inside of the sample; for an encoder, of the document's first token. STW_MARK_TARGET is not looked at then. With STW_TASK_TOKEN_LABEL: a uint32 for each token, the target of that token. NULL: targets are tokens.</summary>
        public byte* labels;
        /// <summary>with labels: how many the model has; every uint32 must be smaller</summary>
        public ulong label_count;
        /// <summary>share of the tokens that is held out, from the end on: 0 to 1; unset: 0.1. With marks whole documents, of which longer ones than a sample count as what samples have of them</summary>
        public double held_out;
        /// <summary>with pairs, for STW_PREFERENCE_DPO and _IPO: the file that stw_trainer_write_reference wrote for these tokens and marks (of others: STW_BAD_STATE)</summary>
        public byte* reference;
        /// <summary>more than 0, up to 1; 0: tokens are not hidden</summary>
        public double mask_rate;
        public ulong mask_token;
        /// <summary>`vocabulary` bytes, each STW_TOKEN_* together; NULL: all are 0</summary>
        public byte* token_kinds;
        /// <summary>1: with token_kinds, words are drawn in place of tokens: a token that continues a word is hidden with it</summary>
        public uint mask_whole_words;
        /// <summary>with labels: STW_TASK_* that they are for, the model's: LABEL, LABELS, NUMBER or TOKEN_LABEL; AUTOMATIC: LABEL. For LABELS and NUMBER the file of labels has label_count little-endian float32 for each document instead: of LABELS how much it has of each, 0 to 1; of NUMBER finite numbers; a NaN in the first place: none</summary>
        public uint task;
        /// <summary>1: without marks and mask_rate: evaluations are of all of the held-out part, in windows end to end from its first token on, the last one shorter: each token but the first is a target once</summary>
        public uint in_order;
        /// <summary>STW_TOKEN_TYPE_*, of ids. AUTO refuses a file whose numbers look like those of another type</summary>
        public uint token_type;
        /// <summary>of this call; NULL: none</summary>
        public stw_watch* watch;

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
        public uint tokenizer;
        /// <summary>of held_out; with marks, from the nearest document on</summary>
        public ulong training_tokens;
        /// <summary>of held_out; with marks, from the nearest document on</summary>
        public ulong evaluation_tokens;
        /// <summary>with marks: that hold every document of a part once; with in_order: evaluation_samples hold every token once; else 0</summary>
        public ulong training_samples;
        /// <summary>with marks: that hold every document of a part once; with in_order: evaluation_samples hold every token once; else 0</summary>
        public ulong evaluation_samples;
        /// <summary>XXH3, 64 bits, of the files of tokens, marks and labels, one behind the other: a run that goes on from a checkpoint has the bits of one that was never stopped if this is the same too</summary>
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
        public uint phase;
        /// <summary>successful updates so far</summary>
        public ulong step;
        /// <summary>global batches consumed so far: step + skipped</summary>
        public ulong batches;
        /// <summary>steps without an update: STW_SKIP_*</summary>
        public ulong skipped;
        /// <summary>of the last step, mean per target</summary>
        public double loss;
        /// <summary>before clipping</summary>
        public double grad_norm;
        public double learning_rate;
        /// <summary>of the last step</summary>
        public double seconds;
        /// <summary>targets, that is; of a preference pairs</summary>
        public double tokens_per_second;
        /// <summary>the same, trained on so far</summary>
        public ulong tokens;
        /// <summary>of the last evaluation; 0 before the first</summary>
        public double evaluation_loss;
        /// <summary>for the next step; 1 unless the precision is fp16</summary>
        public double loss_scale;
        /// <summary>STW_SKIP_*, of the last step</summary>
        public uint skip_reason;
        public uint reserved;
        /// <summary>of a classifier or a masked language model, of the last evaluation: share of the targets whose logit was the largest, of equal ones the first; of LABELS: share of the texts whose logits were all right, above 0 where the label is above 0.5 and not elsewhere; of a preference: as accuracy; not a number where there were none, and of NUMBER</summary>
        public double evaluation_accuracy;
        /// <summary>of a preference, of the last step: share of the pairs whose chosen document was ahead: dpo by P - R, ipo by (P - R) / n, simpo and orpo by P / n; else 0</summary>
        public double accuracy;
        /// <summary>of the evaluation under way, or of the last one, stw_trainer_log_probabilities and _write_reference among them: in all</summary>
        public ulong evaluation_samples;
        /// <summary>how many of them have been given to the device</summary>
        public ulong evaluated_samples;
        /// <summary>that evaluation_loss is the mean over: tokens, of a classifier texts or words, of a preference pairs</summary>
        public ulong evaluation_targets;
        /// <summary>of the step under way, or of the last one: in all</summary>
        public ulong micro_steps;
        /// <summary>how many of them have been given to the device; on the CPU they are computed then</summary>
        public ulong micro_steps_done;

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
        /// <summary>sums over tokens (of a preference: over pairs), not normalised, of all trainable parameters; holes are to be ignored</summary>
        public float* data;
        /// <summary>floats, holes included</summary>
        public ulong count;
        public double* loss_sum;
        public ulong* target_count;
        public void* stream;
        /// <summary>that `data` carries: 1 unless the precision is fp16; trainers that are added up must have the same</summary>
        public double scale;
        /// <summary>of a preference: pairs whose chosen document was ahead, to be added up too</summary>
        public uint* in_order;

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
        public uint set_mask;
        /// <summary>of dropout; unset: 1337</summary>
        public ulong seed;
        /// <summary>adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99</summary>
        public float beta1;
        /// <summary>adamw, muon: unset 0.9, 0.95; lion: unset 0.9, 0.99</summary>
        public float beta2;
        /// <summary>adamw, muon: 0: 1e-8</summary>
        public float epsilon;
        /// <summary>unset: 0.1, none on 1-D tensors; sgd, adafactor: 0; at most 1e6</summary>
        public float weight_decay;
        /// <summary>unset: 1, with a fused update 0; 0: no clipping</summary>
        public float clip_norm;
        /// <summary>sgd: 1: look ahead</summary>
        public uint nesterov;
        /// <summary>the host's memory, at least info.arena bytes at a multiple of 256; NULL: allocated</summary>
        public void* arena;
        public ulong arena_bytes;
        public IntPtr gradient_hook;
        public void* gradient_user;
        /// <summary>sgd: unset 0.9; muon: unset 0.95</summary>
        public float momentum;
        /// <summary>in [0, 1): this share of the target's probability goes to all tokens alike; with a preference in [0, 0.5): the share of pairs that is taken to be the wrong way round. 0 for LABELS and NUMBER</summary>
        public float label_smoothing;
        /// <summary>times the square of log Σ exp(logits), added to every token's loss; 0 for LABELS and NUMBER</summary>
        public float z_loss;
        /// <summary>0: none; else a step is skipped whose loss or gradient norm lies more standard deviations above its running mean than this (exponential, about 128 steps; from 64 steps on)</summary>
        public float outlier_limit;
        /// <summary>fp16: of the first step, a power of two; 0: 65536</summary>
        public double loss_scale;
        /// <summary>fp16: updates after which it doubles; 0: 2000. A step that is not finite halves it.</summary>
        public uint growth_interval;
        /// <summary>STW_NON_FINITE_*: skip: a step whose loss or gradient is not finite updates nothing, and is counted and logged; stop: it fails with STW_NON_FINITE. fp16 skips, and fails with STW_NUMERIC where the scale would fall below 1.</summary>
        public uint non_finite;
        /// <summary>0: 0.1, of simpo 2; at most 1e6</summary>
        public float beta;
        /// <summary>simpo: unset half of beta</summary>
        public float margin;
        /// <summary>0 to 1e6: how often the chosen document's mean token loss is added (Pang et al., arXiv:2404.19733)</summary>
        public float answer_share;
        public uint reserved;
        /// <summary>of its creation and of every call that names it, as long as it lives; NULL: none</summary>
        public stw_watch* watch;

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
        /// <summary>tensors</summary>
        public uint count;
        public byte** names;
        public DLManagedTensorVersioned** tensors;
        /// <summary>at most 1e6; there is no default: with 0 states change, parameters do not</summary>
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
        /// <summary>1: no update; nothing but the count of batches has changed, the running statistics of outlier_limit and in fp16 the loss scale</summary>
        public uint skipped;
        /// <summary>successful updates so far, this one included</summary>
        public ulong step;
        public double loss;
        public double grad_norm;
        /// <summary>that had a loss</summary>
        public ulong targets;
        public double seconds;
        /// <summary>of this step; 1 unless the precision is fp16</summary>
        public double loss_scale;
        /// <summary>STW_SKIP_*</summary>
        public uint skip_reason;
        public uint reserved;
        /// <summary>as stw_progress has it</summary>
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
        public uint set_mask;
        /// <summary>run until this many batches have been consumed; what has them already returns at once</summary>
        public ulong until;
        /// <summary>length of the schedule; 0: `until`</summary>
        public ulong total;
        /// <summary>steps of linear warm-up</summary>
        public ulong warmup;
        /// <summary>0: adamw, muon 3e-4; lion 1e-4; sgd, adafactor 1e-2; at most 1e6, also as base_batch scales it</summary>
        public double learning_rate;
        /// <summary>unset: a tenth of it; inverse root: 0; constant: not used</summary>
        public double min_rate;
        public uint schedule;
        /// <summary>0: 1</summary>
        public uint progress_every;
        public IntPtr progress;
        public void* progress_user;
        /// <summary>warm-up-stable-decay: 0: a fifth of `total`</summary>
        public ulong decay_steps;
        /// <summary>learning rates are meant for so many samples a step, and multiplied by the root of global_batch / base_batch; 0: they are taken as they are</summary>
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
        /// <summary>0: all</summary>
        public uint top_k;
        /// <summary>at least one token</summary>
        public int* prompt;
        public ulong prompt_count;
        /// <summary>receives new tokens</summary>
        public int* @out;
        /// <summary>and at most this many</summary>
        public ulong out_capacity;
        /// <summary>0: the most probable token</summary>
        public double temperature;
        /// <summary>unset: 1337</summary>
        public ulong seed;
        /// <summary>tokens of which any ends the answer, such as the model's end of text; it is the last in `out`</summary>
        public int* stop;
        public ulong stop_count;
        /// <summary>of the top_k at `temperature`: draw from the fewest most probable tokens that have at least this probability together; 0: all; at most 1</summary>
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
    public static extern int stw_device_open(stw_device** @out, stw_device_options* options, stw_error* error);

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
    public static extern int stw_model_export(stw_model* model, byte* folder, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_model_preset_at(UIntPtr index);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_create(stw_plan** @out, stw_model* model, stw_plan_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_plan_destroy(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_query(stw_plan* plan, stw_plan_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_plan_json(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern byte* stw_plan_report(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_load(stw_plan** @out, stw_model* model, byte* json, UIntPtr json_size, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_verify(stw_plan* plan, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_relaxation_at(stw_plan* plan, UIntPtr index, stw_relaxation_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_offload_at(stw_plan* plan, UIntPtr index, stw_offload_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_frontier(stw_plan* plan, stw_frontier_point* @out, UIntPtr capacity, UIntPtr* count, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_longest_sequence(stw_model* model, stw_plan_options* options, ulong* sequence, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_profile_at(UIntPtr index, stw_profile_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_profile_read(byte* profile, UIntPtr profile_size, stw_profile_info* @out, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_profile_op_at(byte* profile, UIntPtr profile_size, UIntPtr index, stw_profile_op_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_picture(stw_plan* plan, uint kind, byte* @out, UIntPtr capacity, UIntPtr* needed, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern UIntPtr stw_plan_buffer_count(stw_plan* plan);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_plan_buffer_at(stw_plan* plan, UIntPtr index, stw_buffer_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_pack(ulong* offsets, stw_buffer_lifetime* lifetimes, UIntPtr count, stw_pack_options* options, stw_pack_result* result, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_dataset_open(stw_dataset** @out, stw_dataset_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_dataset_close(stw_dataset* dataset);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_dataset_query(stw_dataset* dataset, stw_dataset_info* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_create(stw_trainer** @out, stw_device* device, stw_model* model, stw_plan* plan, stw_trainer_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_trainer_destroy(stw_trainer* trainer);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_step(stw_trainer* trainer, stw_batch* batch, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_wait(stw_trainer* trainer, stw_step_result* @out, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_run(stw_trainer* trainer, stw_dataset* dataset, stw_run_options* options, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_evaluate(stw_trainer* trainer, stw_dataset* dataset, ulong batches, double* loss, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_generate(stw_trainer* trainer, stw_generate_options* options, ulong* count, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_logits(stw_trainer* trainer, int* tokens, ulong count, float* @out, ulong capacity, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_classify(stw_trainer* trainer, int* tokens, int* token_types, ulong* lengths, ulong texts, float* @out, ulong capacity, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_log_probabilities(stw_trainer* trainer, stw_batch* batch, float* @out, ulong capacity, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_write_reference(stw_trainer* trainer, stw_dataset* dataset, byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_replan(stw_trainer* trainer, ulong memory_bytes, stw_plan** plan, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_calibrate(stw_trainer* trainer, byte* @out, UIntPtr capacity, UIntPtr* size, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_timeline(stw_trainer* trainer, byte* path, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void stw_trainer_cancel(stw_trainer* trainer);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_progress(stw_trainer* trainer, stw_progress* @out);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern void* stw_trainer_stream(stw_trainer* trainer);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_export_tensor(stw_trainer* trainer, UIntPtr index, uint kind, DLManagedTensorVersioned** @out, stw_error* error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
    public static extern int stw_trainer_import_tensor(stw_trainer* trainer, UIntPtr index, DLManagedTensorVersioned* @in, stw_error* error);

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
