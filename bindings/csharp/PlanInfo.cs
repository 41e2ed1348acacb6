using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The decisions of a plan and their figures. Bytes are those at the moment of the peak;
    /// Parameters to Padding add up to Arena.</summary>
    public sealed unsafe class PlanInfo
    {
        internal PlanInfo(stw_plan_info told)
        {
            Fits = told.fits != 0;
            MicroBatch = Numbers.Of(told.micro_batch);
            AccumulationSteps = Numbers.Of(told.accumulation_steps);
            LastMicroBatch = Numbers.Of(told.last_micro_batch);
            LossChunks = Numbers.Of(told.loss_chunks);
            GlobalBatch = Numbers.Of(told.global_batch);
            Sequence = Numbers.Of(told.sequence);
            Parameters = Numbers.Of(told.parameters);
            Gradients = Numbers.Of(told.gradients);
            Optimizer = Numbers.Of(told.optimizer);
            SavedActivations = Numbers.Of(told.saved_activations);
            Transient = Numbers.Of(told.transient);
            Workspace = Numbers.Of(told.workspace);
            Inputs = Numbers.Of(told.inputs);
            Padding = Numbers.Of(told.padding);
            Arena = Numbers.Of(told.arena);
            Reserve = Numbers.Of(told.reserve);
            Peak = Numbers.Of(told.peak);
            Budget = Numbers.Of(told.budget);
            Host = Numbers.Of(told.host);
            MinimumBytes = Numbers.Of(told.minimum_bytes);
            StateBits = (States)told.state_bits;
            Precision = (Precision)told.precision;
            StepSeconds = told.step_seconds;
            TokensPerSecond = told.tokens_per_second;
            RecomputeFraction = told.recompute_fraction;
            Fingerprint = Texts.Read(told.fingerprint, 20);
            Proven = told.proven != 0;
            BoundSeconds = told.bound_seconds;
            UnlimitedSeconds = told.unlimited_seconds;
            NextGibSeconds = told.next_gib_seconds;
            CopiedBytes = Numbers.Of(told.copied_bytes);
            TiledBlocks = Numbers.Of(told.tiled_blocks);
            TileRows = Numbers.Of(told.tile_rows);
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
        /// <summary>Bytes of its states.</summary>
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
    }

    /// <summary>A buffer of a plan.</summary>
    public sealed unsafe class BufferInfo
    {
        internal BufferInfo(stw_buffer_info told)
        {
            Name = Texts.Read(told.name);
            Owner = Texts.Read(told.owner);
            Offset = Numbers.Of(told.offset);
            Bytes = Numbers.Of(told.bytes);
            Persistent = told.persistent != 0;
            First = Numbers.Of(told.first);
            Last = Numbers.Of(told.last);
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
        internal Relaxation(stw_relaxation_info told)
        {
            Change = Texts.Read(told.change, 64);
            SavesBytes = Numbers.Of(told.saves_bytes);
            CostsFraction = told.costs_fraction;
            ChangesNumerics = told.changes_numerics != 0;
            Fits = told.fits != 0;
        }

        /// <summary>The settings to change, as flags of the command: "states 8", …</summary>
        public string Change { get; }
        /// <summary>Bytes by which the smallest peak falls.</summary>
        public long SavesBytes { get; }
        /// <summary>The change in step time, as a fraction; negative: faster.</summary>
        public double CostsFraction { get; }
        /// <summary>Whether the trained bits would be different.</summary>
        public bool ChangesNumerics { get; }
        /// <summary>Whether this change alone is enough.</summary>
        public bool Fits { get; }
    }

    /// <summary>Tensors that a plan keeps in host memory.</summary>
    public sealed unsafe class Offload
    {
        internal Offload(stw_offload_info told)
        {
            Tensors = Texts.Read(told.tensors);
            Blocks = Numbers.Of(told.blocks);
            OutsideBlocks = told.outside_blocks != 0;
            Bytes = Numbers.Of(told.bytes);
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
        internal FrontierPoint(stw_frontier_point told)
        {
            Peak = Numbers.Of(told.peak);
            MicroBatch = Numbers.Of(told.micro_batch);
            LossChunks = Numbers.Of(told.loss_chunks);
            StepSeconds = told.step_seconds;
            TokensPerSecond = told.tokens_per_second;
            IsKnee = told.is_knee != 0;
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
