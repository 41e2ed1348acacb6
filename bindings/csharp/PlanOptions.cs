using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>stw_parameter_group: settings for all parameters that match a pattern. A setting that is null
    /// changes nothing.</summary>
    public sealed class ParameterGroup
    {
        /// <summary>"embeddings", "blocks.0-1", "matrices", "norms", …, or the name of a tensor with * and
        /// ?.</summary>
        public string Pattern { get; set; }
        /// <summary>Whether these parameters keep their values.</summary>
        public bool? Frozen { get; set; }
        /// <summary>32 or 8, even if the plan's StateBits differ.</summary>
        public States? StateBits { get; set; }
        /// <summary>Factor by which the run's learning rate is multiplied.</summary>
        public double? LearningRate { get; set; }
        /// <summary>Replaces the trainer's weight decay.</summary>
        public double? WeightDecay { get; set; }

        internal unsafe stw_parameter_group ToNative(Texts texts)
        {
            stw_parameter_group given = stw_parameter_group.Sized();
            given.pattern = texts.Of(Pattern);
            given.frozen = Numbers.Flag(Frozen ?? false);
            given.state_bits = (uint)(StateBits ?? States.Auto);
            given.learning_rate = LearningRate ?? 0;
            given.weight_decay = WeightDecay ?? 0;
            given.set_mask = (Frozen != null ? STW_SET_GROUP_FROZEN : 0) |
                             (StateBits != null ? STW_SET_GROUP_STATES : 0) |
                             (LearningRate != null ? STW_SET_GROUP_RATE : 0) |
                             (WeightDecay != null ? STW_SET_GROUP_DECAY : 0);
            return given;
        }
    }

    /// <summary>stw_plan_options; null: unset.</summary>
    public sealed class PlanOptions
    {
        /// <summary>Largest peak, in bytes; 0: all memory of the device.</summary>
        public long MemoryBytes { get; set; }
        /// <summary>Samples of one optimizer step; required.</summary>
        public long GlobalBatch { get; set; }
        /// <summary>Tokens of a sample; 0: the model's positions, at most 1024.</summary>
        public long Sequence { get; set; }
        /// <summary>"cpu", or the name of a profile such as "rtx4090"; null: the profile of the device, if
        /// one is given, else "cpu".</summary>
        public string Device { get; set; }
        /// <summary>Bytes that are free on the device now; 0: those of a GPU that is given, else unknown, see
        /// MemoryBytes.</summary>
        public long DeviceMemory { get; set; }
        /// <summary>Part of the budget that is left for memory outside the arena; null: the profile's
        /// reserve.</summary>
        public long? ReserveBytes { get; set; }
        /// <summary>CPU: threads that will compute; 0: those of the device, if one is given, else one for
        /// each processor.</summary>
        public int Threads { get; set; }
        /// <summary>Default: fp32 on the CPU, bf16 elsewhere.</summary>
        public Precision Precision { get; set; }
        /// <summary>The optimizer.</summary>
        public Optimizer Optimizer { get; set; }
        /// <summary>Auto: the planner chooses.</summary>
        public States StateBits { get; set; }
        /// <summary>0: the planner chooses.</summary>
        public int MicroBatch { get; set; }
        /// <summary>Auto: the planner chooses.</summary>
        public Recompute Recompute { get; set; }
        /// <summary>Fast: the micro-batch may change bits.</summary>
        public Mode Mode { get; set; }
        /// <summary>Batches may have positions: several documents in a sample.</summary>
        public bool Positions { get; set; }
        /// <summary>Batches may have weights of tokens.</summary>
        public bool Weights { get; set; }
        /// <summary>Host memory, in bytes, that offloaded tensors may take; 0: nothing is
        /// offloaded.</summary>
        public long HostBytes { get; set; }
        /// <summary>A profile that <see cref="Trainer.Calibrate"/> returned; null: the device's embedded
        /// profile.</summary>
        public string Profile { get; set; }
        /// <summary>If several groups name a parameter, the later ones win.</summary>
        public IReadOnlyList<ParameterGroup> Groups { get; set; }
        /// <summary>How bf16 keeps the fp32 value of a trained parameter.</summary>
        public Master Master { get; set; }
        /// <summary>The kernels that compute matrix products, which differ in the order in which they
        /// add.</summary>
        public Kernels Kernels { get; set; }
        /// <summary>The format in which the gradients of the blocks' matrices are summed.</summary>
        public GradientPrecision Gradients { get; set; }
        /// <summary>The backward pass updates the parameters of blocks, so that their gradients need not be
        /// kept.</summary>
        public bool FusedUpdate { get; set; }
        /// <summary>The implementation of attention.</summary>
        public Attention Attention { get; set; }
        /// <summary>The format in which the blocks' matrices under adapters are stored.</summary>
        public Quantize Quantize { get; set; }
        /// <summary>Int8: the table of tokens and the head are stored as int8, too.</summary>
        public Quantize QuantizeEmbeddings { get; set; }
        /// <summary>For pairs of documents. Batches then have positions even without Positions.</summary>
        public Preference Preference { get; set; }
        /// <summary>Settings that the plan's relaxations must not change.</summary>
        public Keep Keep { get; set; }
        /// <summary>The trainer will have a gradient hook, so all gradients are in the arena.</summary>
        public bool GradientHook { get; set; }
        /// <summary>For encoders that label texts: the largest number of texts in a sample, for which the
        /// last rows are computed; 0: any number.</summary>
        public long Texts { get; set; }
        /// <summary>Reports and cancels the planning.</summary>
        public Watch Watch { get; set; }

        /// <summary>The options as a C struct. Unset options take the device's values, if there is a
        /// device.</summary>
        internal unsafe stw_plan_options ToNative(Texts texts, Device device)
        {
            DeviceInfo info = device?.Info;
            stw_plan_options given = stw_plan_options.Sized();
            given.memory_bytes = Numbers.Unsigned(MemoryBytes, nameof(MemoryBytes));
            given.global_batch = Numbers.Unsigned(GlobalBatch, nameof(GlobalBatch));
            given.sequence = Numbers.Unsigned(Sequence, nameof(Sequence));
            given.device = texts.Of(Device ?? (Profile == null ? info?.Profile : null));
            given.device_memory = Numbers.Unsigned(
                DeviceMemory == 0 && info?.Backend == Backend.Cuda
                    ? info.MemoryFree + info.MemoryReserved : DeviceMemory,
                nameof(DeviceMemory));
            if (ReserveBytes != null)
            {
                given.set_mask = STW_SET_RESERVE;
                given.reserve_bytes = Numbers.Unsigned(ReserveBytes.Value, nameof(ReserveBytes));
            }
            given.threads = Numbers.Unsigned(
                Threads == 0 && info?.Backend == Backend.Cpu ? info.Threads : Threads, nameof(Threads));
            given.precision = (uint)Precision;
            given.optimizer = (uint)Optimizer;
            given.state_bits = (uint)StateBits;
            given.micro_batch = Numbers.Unsigned(MicroBatch, nameof(MicroBatch));
            given.recompute = (uint)Recompute;
            given.mode = (uint)Mode;
            given.inputs = (Positions ? STW_INPUT_POSITIONS : 0) | (Weights ? STW_INPUT_WEIGHTS : 0);
            given.host_bytes = Numbers.Unsigned(HostBytes, nameof(HostBytes));
            given.profile = texts.Of(Profile, out given.profile_size);
            int count = Groups?.Count ?? 0;
            given.groups = (stw_parameter_group*)(count == 0 ? null
                : texts.Take((long)count * sizeof(stw_parameter_group)));
            given.group_count = (UIntPtr)count;
            for (int i = 0; i < count; ++i)
                given.groups[i] = Numbers.NotNull(Groups[i], nameof(Groups)).ToNative(texts);
            given.master = (uint)Master;
            given.kernels = (uint)Kernels;
            given.gradients = (uint)Gradients;
            given.fused_update = Numbers.Flag(FusedUpdate);
            given.attention = (uint)Attention;
            given.quantize = (uint)Quantize;
            given.quantize_embeddings = (uint)QuantizeEmbeddings;
            given.preference = (uint)Preference;
            given.watch = texts.Of(Watch);
            given.keep = (uint)Keep;
            given.gradient_hook = Numbers.Flag(GradientHook);
            given.texts = Numbers.Unsigned(Texts, nameof(Texts));
            return given;
        }
    }
}
