using static Stowage.Abi;

namespace Stowage
{
    /// <summary>What a plan says. Bytes are those at the moment of the peak; Parameters to Padding add up to Arena.</summary>
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

        /// <summary>false: nothing fits; MinimumBytes says what would.</summary>
        public bool Fits { get; }
        /// <summary>Samples computed at once.</summary>
        public long MicroBatch { get; }
        /// <summary>Micro-batches of a step.</summary>
        public long AccumulationSteps { get; }
        /// <summary>Samples of the last one.</summary>
        public long LastMicroBatch { get; }
        /// <summary>Pieces that logits are computed in.</summary>
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
        /// <summary>Bytes it was planned for.</summary>
        public long Budget { get; }
        /// <summary>Bytes of host memory that a trainer allocates besides.</summary>
        public long Host { get; }
        /// <summary>The smallest MemoryBytes that works with these options.</summary>
        public long MinimumBytes { get; }
        /// <summary>Of the optimizer.</summary>
        public States StateBits { get; }
        /// <summary>That was chosen.</summary>
        public Precision Precision { get; }
        /// <summary>Predicted.</summary>
        public double StepSeconds { get; }
        /// <summary>Predicted.</summary>
        public double TokensPerSecond { get; }
        /// <summary>Of a step's time, predicted.</summary>
        public double RecomputeFraction { get; }
        /// <summary>16 hexadecimal digits: XXH3-64 of the plan.</summary>
        public string Fingerprint { get; }
        /// <summary>No plan of these numerics is faster within the budget, by the cost model.</summary>
        public bool Proven { get; }
        /// <summary>None is faster than this.</summary>
        public double BoundSeconds { get; }
        /// <summary>Nor than this within any budget.</summary>
        public double UnlimitedSeconds { get; }
        /// <summary>With one GiB more and the same state format.</summary>
        public double NextGibSeconds { get; }
        /// <summary>Of a step, from host memory to the device and back.</summary>
        public long CopiedBytes { get; }
        /// <summary>Blocks whose feed-forward part runs in tiles of rows.</summary>
        public long TiledBlocks { get; }
        /// <summary>The fewest that a block's tiles are planned with; 0: no block has tiles.</summary>
        public long TileRows { get; }
    }

    /// <summary>One of a plan's buffers.</summary>
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

        /// <summary>Of the tensor.</summary>
        public string Name { get; }
        /// <summary>"parameters", "gradients", …</summary>
        public string Owner { get; }
        /// <summary>In the arena.</summary>
        public long Offset { get; }
        /// <summary>Of its values.</summary>
        public long Bytes { get; }
        /// <summary>It lives for ever.</summary>
        public bool Persistent { get; }
        /// <summary>Instruction of the micro-step's program that it lives from.</summary>
        public int First { get; }
        /// <summary>The last one, included.</summary>
        public int Last { get; }
    }

    /// <summary>What could be given up where a plan does not fit.</summary>
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

        /// <summary>What flags of the command say: "states 8", …</summary>
        public string Change { get; }
        /// <summary>Of the smallest peak.</summary>
        public long SavesBytes { get; }
        /// <summary>Of the step's time; negative: faster.</summary>
        public double CostsFraction { get; }
        /// <summary>The trained bits would be others.</summary>
        public bool ChangesNumerics { get; }
        /// <summary>It is enough by itself.</summary>
        public bool Fits { get; }
    }

    /// <summary>What a plan keeps in host memory.</summary>
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
        /// <summary>Of the first so many.</summary>
        public int Blocks { get; }
        /// <summary>Also what belongs to parameters outside of them.</summary>
        public bool OutsideBlocks { get; }
        /// <summary>In host memory.</summary>
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

        /// <summary>The smallest budget that gets it.</summary>
        public long Peak { get; }
        /// <summary>Samples computed at once.</summary>
        public long MicroBatch { get; }
        /// <summary>Pieces that logits are computed in.</summary>
        public long LossChunks { get; }
        /// <summary>Predicted.</summary>
        public double StepSeconds { get; }
        /// <summary>Predicted.</summary>
        public double TokensPerSecond { get; }
        /// <summary>From here on more memory brings much less.</summary>
        public bool IsKnee { get; }
    }
}
