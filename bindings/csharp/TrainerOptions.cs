using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>stw_trainer_options. null: the optimizer's default.</summary>
    public sealed class TrainerOptions
    {
        /// <summary>Seed of dropout; null: 1337.</summary>
        public ulong? Seed { get; set; }
        /// <summary>AdamW, Muon, Lion.</summary>
        public float? Beta1 { get; set; }
        /// <summary>AdamW, Muon, Lion.</summary>
        public float? Beta2 { get; set; }
        /// <summary>AdamW, Muon; 0: 1e-8.</summary>
        public float Epsilon { get; set; }
        /// <summary>Tensors of one dimension get none.</summary>
        public float? WeightDecay { get; set; }
        /// <summary>0: no clipping.</summary>
        public float? ClipNorm { get; set; }
        /// <summary>SGD: Nesterov momentum.</summary>
        public bool Nesterov { get; set; }
        /// <summary>SGD, Muon.</summary>
        public float? Momentum { get; set; }
        /// <summary>Memory of the host, at least <see cref="PlanInfo.Arena"/> bytes at a multiple of 256,
        /// until the trainer and its views have ended; zero: the trainer allocates it.</summary>
        public IntPtr Arena { get; set; }
        /// <summary>The size of Arena, in bytes.</summary>
        public long ArenaBytes { get; set; }
        /// <summary>May change the gradients before they are used. Its exception fails the step, which then
        /// updates nothing; the call throws it.</summary>
        public Action<Gradients> GradientHook { get; set; }
        /// <summary>The share of the target's probability that all tokens share equally.</summary>
        public float LabelSmoothing { get; set; }
        /// <summary>Every token's loss grows by this factor times the square of log Σ exp(logits).</summary>
        public float ZLoss { get; set; }
        /// <summary>How many standard deviations a loss or gradient norm may lie above its running mean; 0:
        /// no limit.</summary>
        public float OutlierLimit { get; set; }
        /// <summary>fp16: scale of the first step; 0: 65536.</summary>
        public double LossScale { get; set; }
        /// <summary>fp16: number of updates after which the scale doubles; 0: 2000.</summary>
        public int GrowthInterval { get; set; }
        /// <summary>The reaction to a loss or gradient that is not finite.</summary>
        public NonFinite NonFinite { get; set; }
        /// <summary>For the preference of the plan; 0: 0.1, for SimPO 2.</summary>
        public float Beta { get; set; }
        /// <summary>SimPO; null: half of Beta.</summary>
        public float? Margin { get; set; }
        /// <summary>Factor with which the chosen document's mean token loss is added to a preference's
        /// loss.</summary>
        public float AnswerShare { get; set; }
        /// <summary>For a GradientHook that adds up several trainers: the number, in their joint batch, of
        /// the first sample of this trainer's batches.</summary>
        public long FirstSample { get; set; }
        /// <summary>Reports and cancels the creation and all calls of the trainer.</summary>
        public Watch Watch { get; set; }

        internal unsafe stw_trainer_options ToNative()
        {
            stw_trainer_options given = stw_trainer_options.Sized();
            given.seed = Seed ?? 0;
            given.beta1 = Beta1 ?? 0;
            given.beta2 = Beta2 ?? 0;
            given.epsilon = Epsilon;
            given.weight_decay = WeightDecay ?? 0;
            given.clip_norm = ClipNorm ?? 0;
            given.nesterov = Numbers.Flag(Nesterov);
            given.arena = (void*)Arena;
            given.arena_bytes = Numbers.Unsigned(ArenaBytes, nameof(ArenaBytes));
            given.momentum = Momentum ?? 0;
            given.label_smoothing = LabelSmoothing;
            given.z_loss = ZLoss;
            given.outlier_limit = OutlierLimit;
            given.loss_scale = LossScale;
            given.growth_interval = Numbers.Unsigned(GrowthInterval, nameof(GrowthInterval));
            given.non_finite = (uint)NonFinite;
            given.beta = Beta;
            given.margin = Margin ?? 0;
            given.answer_share = AnswerShare;
            given.first_sample = Numbers.Unsigned(FirstSample, nameof(FirstSample));
            given.set_mask = (Seed != null ? STW_SET_TRAINER_SEED : 0) |
                             (Beta1 != null ? STW_SET_BETA1 : 0) |
                             (Beta2 != null ? STW_SET_BETA2 : 0) |
                             (WeightDecay != null ? STW_SET_WEIGHT_DECAY : 0) |
                             (ClipNorm != null ? STW_SET_CLIP_NORM : 0) |
                             (Momentum != null ? STW_SET_MOMENTUM : 0) |
                             (Margin != null ? STW_SET_MARGIN : 0);
            return given;
        }
    }

    /// <summary>stw_run_options; null: unset.</summary>
    public sealed class RunOptions
    {
        /// <summary>The run ends when this many batches have been consumed in all.</summary>
        public long Until { get; set; }
        /// <summary>Length of the schedule; 0: Until.</summary>
        public long Total { get; set; }
        /// <summary>Steps of linear warm-up.</summary>
        public long Warmup { get; set; }
        /// <summary>The full rate; 0: the optimizer's default.</summary>
        public double LearningRate { get; set; }
        /// <summary>null: a tenth of the full rate; inverse root: 0.</summary>
        public double? MinRate { get; set; }
        /// <summary>The course of the learning rate after the warm-up.</summary>
        public Schedule Schedule { get; set; }
        /// <summary>Steps between two calls of Progress; 0: 1.</summary>
        public int ProgressEvery { get; set; }
        /// <summary>Called between two steps, after every ProgressEvery steps. It may evaluate, generate and
        /// save. A result of false stops the run. The run throws its exception.</summary>
        public Func<Progress, bool> Progress { get; set; }
        /// <summary>Warm-up-stable-decay: length of the decay in steps; 0: a fifth of Total.</summary>
        public long DecaySteps { get; set; }
        /// <summary>The number of samples in a step that the learning rates were chosen for; 0: rates are
        /// used as they are.</summary>
        public long BaseBatch { get; set; }

        internal stw_run_options ToNative()
        {
            stw_run_options given = stw_run_options.Sized();
            given.until = Numbers.Unsigned(Until, nameof(Until));
            given.total = Numbers.Unsigned(Total, nameof(Total));
            given.warmup = Numbers.Unsigned(Warmup, nameof(Warmup));
            given.learning_rate = LearningRate;
            given.min_rate = MinRate ?? 0;
            given.set_mask = MinRate != null ? STW_SET_MIN_RATE : 0;
            given.schedule = (uint)Schedule;
            given.decay_steps = Numbers.Unsigned(DecaySteps, nameof(DecaySteps));
            given.base_batch = Numbers.Unsigned(BaseBatch, nameof(BaseBatch));
            return given;
        }
    }

    /// <summary>stw_generate_options.</summary>
    public sealed class GenerateOptions
    {
        /// <summary>The most tokens to generate.</summary>
        public int Count { get; set; }
        /// <summary>0: all.</summary>
        public int TopK { get; set; }
        /// <summary>0: all.</summary>
        public double TopP { get; set; }
        /// <summary>0: the most probable token.</summary>
        public double Temperature { get; set; }
        /// <summary>null: 1337.</summary>
        public ulong? Seed { get; set; }
        /// <summary>Tokens that end the answer. The one that ended it is the last token.</summary>
        public IReadOnlyList<int> Stop { get; set; }
    }
}
