using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The decisions of a plan and their figures. Bytes are those at the moment of the peak;
    /// Parameters to Padding add up to Arena.</summary>
    public sealed unsafe class PlanInfo
    {
        internal PlanInfo(stw_plan_info native)
        {
            Fits = native.fits != 0;
            MicroBatch = Numbers.Of(native.micro_batch);
            AccumulationSteps = Numbers.Of(native.accumulation_steps);
            LastMicroBatch = Numbers.Of(native.last_micro_batch);
            LossChunks = Numbers.Of(native.loss_chunks);
            GlobalBatch = Numbers.Of(native.global_batch);
            Sequence = Numbers.Of(native.sequence);
            Parameters = Numbers.Of(native.parameters);
            Gradients = Numbers.Of(native.gradients);
            Optimizer = Numbers.Of(native.optimizer);
            SavedActivations = Numbers.Of(native.saved_activations);
            Transient = Numbers.Of(native.transient);
            Workspace = Numbers.Of(native.workspace);
            Inputs = Numbers.Of(native.inputs);
            Padding = Numbers.Of(native.padding);
            Arena = Numbers.Of(native.arena);
            Reserve = Numbers.Of(native.reserve);
            Peak = Numbers.Of(native.peak);
            Budget = Numbers.Of(native.budget);
            Host = Numbers.Of(native.host);
            MinimumBytes = Numbers.Of(native.minimum_bytes);
            StateBits = (States)native.state_bits;
            Precision = (Precision)native.precision;
            StepSeconds = native.step_seconds;
            TokensPerSecond = native.tokens_per_second;
            RecomputeFraction = native.recompute_fraction;
            Fingerprint = global::Stowage.Texts.Read(native.fingerprint, 20);
            Proven = native.proven != 0;
            BoundSeconds = native.bound_seconds;
            UnlimitedSeconds = native.unlimited_seconds;
            NextGibSeconds = native.next_gib_seconds;
            CopiedBytes = Numbers.Of(native.copied_bytes);
            TiledBlocks = Numbers.Of(native.tiled_blocks);
            TileRows = Numbers.Of(native.tile_rows);
            Texts = Numbers.Of(native.texts);
        }

        /// <summary>false: nothing fits; MinimumBytes is the budget that would be enough.</summary>
        public bool Fits { get; }
        /// <summary>The samples of a micro-batch.</summary>
        public long MicroBatch { get; }
        /// <summary>The number of micro-batches of a step.</summary>
        public long AccumulationSteps { get; }
        /// <summary>The samples of the last micro-batch.</summary>
        public long LastMicroBatch { get; }
        /// <summary>The number of pieces in which logits are computed.</summary>
        public long LossChunks { get; }
        /// <summary>Samples of a step.</summary>
        public long GlobalBatch { get; }
        /// <summary>Tokens of a sample.</summary>
        public long Sequence { get; }
        /// <summary>Bytes.</summary>
        public long Parameters { get; }
        /// <summary>Bytes.</summary>
        public long Gradients { get; }
        /// <summary>Bytes of the optimizer's states.</summary>
        public long Optimizer { get; }
        /// <summary>Bytes.</summary>
        public long SavedActivations { get; }
        /// <summary>Bytes.</summary>
        public long Transient { get; }
        /// <summary>Bytes.</summary>
        public long Workspace { get; }
        /// <summary>Bytes.</summary>
        public long Inputs { get; }
        /// <summary>Bytes.</summary>
        public long Padding { get; }
        /// <summary>Bytes that a trainer allocates.</summary>
        public long Arena { get; }
        /// <summary>Bytes outside of the arena.</summary>
        public long Reserve { get; }
        /// <summary>Arena and reserve.</summary>
        public long Peak { get; }
        /// <summary>The budget in bytes.</summary>
        public long Budget { get; }
        /// <summary>Bytes of host memory that a trainer allocates for offloaded tensors.</summary>
        public long Host { get; }
        /// <summary>The smallest MemoryBytes that works with these options.</summary>
        public long MinimumBytes { get; }
        /// <summary>The bits of the optimizer's states.</summary>
        public States StateBits { get; }
        /// <summary>The chosen precision.</summary>
        public Precision Precision { get; }
        /// <summary>Predicted.</summary>
        public double StepSeconds { get; }
        /// <summary>Predicted.</summary>
        public double TokensPerSecond { get; }
        /// <summary>The share of a step's time that is recompute, as predicted.</summary>
        public double RecomputeFraction { get; }
        /// <summary>16 hexadecimal digits: XXH3-64 of the plan.</summary>
        public string Fingerprint { get; }
        /// <summary>Whether, by the cost model, no plan with these numerics is faster within the
        /// budget.</summary>
        public bool Proven { get; }
        /// <summary>The lower bound of the step time within the budget.</summary>
        public double BoundSeconds { get; }
        /// <summary>The lower bound of the step time for any budget.</summary>
        public double UnlimitedSeconds { get; }
        /// <summary>The step time with one GiB more and the same state format.</summary>
        public double NextGibSeconds { get; }
        /// <summary>Bytes that a step copies between host memory and the device, both directions
        /// together.</summary>
        public long CopiedBytes { get; }
        /// <summary>Blocks whose feed-forward part runs in tiles of rows.</summary>
        public long TiledBlocks { get; }
        /// <summary>The rows of the smallest tile that a block is planned with; 0: no block has
        /// tiles.</summary>
        public long TileRows { get; }
        /// <summary>PlanOptions.Texts.</summary>
        public long Texts { get; }
    }

    /// <summary>A buffer of a plan.</summary>
    public sealed unsafe class BufferInfo
    {
        internal BufferInfo(stw_buffer_info native)
        {
            Name = Texts.Read(native.name);
            Owner = Texts.Read(native.owner);
            Offset = Numbers.Of(native.offset);
            Bytes = Numbers.Of(native.bytes);
            Persistent = native.persistent != 0;
            First = Numbers.Of(native.first);
            Last = Numbers.Of(native.last);
        }

        /// <summary>The name of the tensor.</summary>
        public string Name { get; }
        /// <summary>"parameters", "gradients", …</summary>
        public string Owner { get; }
        /// <summary>The offset in the arena.</summary>
        public long Offset { get; }
        /// <summary>The size in bytes.</summary>
        public long Bytes { get; }
        /// <summary>Whether it is always alive.</summary>
        public bool Persistent { get; }
        /// <summary>The first instruction of the micro-step's program that needs it.</summary>
        public int First { get; }
        /// <summary>The last instruction that needs it.</summary>
        public int Last { get; }
    }

    /// <summary>A change of settings with which a plan would need less memory.</summary>
    public sealed unsafe class Relaxation
    {
        internal Relaxation(stw_relaxation_info native)
        {
            Change = Texts.Read(native.change, 64);
            SavesBytes = Numbers.Of(native.saves_bytes);
            CostsFraction = native.costs_fraction;
            ChangesNumerics = native.changes_numerics != 0;
            Fits = native.fits != 0;
            Flags = Texts.Read(native.flags, 192);
            Effect = Texts.Read(native.effect, 192);
            TokensPerSecond = native.tokens_per_second;
            Peak = Numbers.Of(native.peak);
            Host = Numbers.Of(native.host);
            LeastHost = Numbers.Of(native.least_host);
        }

        /// <summary>The settings to change, as flags of the command: "states 8", …</summary>
        public string Change { get; }
        /// <summary>Bytes by which the smallest peak falls.</summary>
        public long SavesBytes { get; }
        /// <summary>The change in the time of a token, as a fraction; negative: faster.</summary>
        public double CostsFraction { get; }
        /// <summary>Whether the trained bits would be different.</summary>
        public bool ChangesNumerics { get; }
        /// <summary>Whether this change is enough.</summary>
        public bool Fits { get; }
        /// <summary>The change as flags of the command.</summary>
        public string Flags { get; }
        /// <summary>What is different in the result; empty: nothing.</summary>
        public string Effect { get; }
        /// <summary>Tokens per second of the plan.</summary>
        public double TokensPerSecond { get; }
        /// <summary>The plan's peak in bytes; if it does not fit, the smallest budget that works.</summary>
        public long Peak { get; }
        /// <summary>Bytes of host memory that the plan takes.</summary>
        public long Host { get; }
        /// <summary>The least host memory with which a plan fits; 0: the change needs none.</summary>
        public long LeastHost { get; }
    }

    /// <summary>Tensors that a plan keeps in host memory.</summary>
    public sealed unsafe class Offload
    {
        internal Offload(stw_offload_info native)
        {
            Tensors = Texts.Read(native.tensors);
            Blocks = Numbers.Of(native.blocks);
            OutsideBlocks = native.outside_blocks != 0;
            Bytes = Numbers.Of(native.bytes);
        }

        /// <summary>"optimizer", "masters", "gradients", "weights" or "inputs" (of blocks).</summary>
        public string Tensors { get; }
        /// <summary>The number of blocks, from the first one on.</summary>
        public int Blocks { get; }
        /// <summary>Whether tensors of parameters outside of blocks are offloaded, too.</summary>
        public bool OutsideBlocks { get; }
        /// <summary>Bytes in host memory.</summary>
        public long Bytes { get; }
    }

    /// <summary>A plan that another budget would get.</summary>
    public sealed class FrontierPoint
    {
        internal FrontierPoint(stw_frontier_point native)
        {
            Peak = Numbers.Of(native.peak);
            MicroBatch = Numbers.Of(native.micro_batch);
            LossChunks = Numbers.Of(native.loss_chunks);
            StepSeconds = native.step_seconds;
            TokensPerSecond = native.tokens_per_second;
            IsKnee = native.is_knee != 0;
        }

        /// <summary>The smallest budget that gets this plan.</summary>
        public long Peak { get; }
        /// <summary>The samples of a micro-batch.</summary>
        public long MicroBatch { get; }
        /// <summary>The number of pieces in which logits are computed.</summary>
        public long LossChunks { get; }
        /// <summary>Predicted.</summary>
        public double StepSeconds { get; }
        /// <summary>Predicted.</summary>
        public double TokensPerSecond { get; }
        /// <summary>Whether, from this point on, more memory gains much less speed.</summary>
        public bool IsKnee { get; }
    }
}
