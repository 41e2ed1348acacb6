using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>stw_trainer_options; null: the optimizer's own.</summary>
    public sealed class TrainerOptions
    {
        /// <summary>Of dropout; null: 1337.</summary>
        public ulong? Seed { get; set; }
        /// <summary>AdamW, Muon, Lion.</summary>
        public float? Beta1 { get; set; }
        /// <summary>AdamW, Muon, Lion.</summary>
        public float? Beta2 { get; set; }
        /// <summary>AdamW, Muon; 0: 1e-8.</summary>
        public float Epsilon { get; set; }
        /// <summary>None on 1-D tensors.</summary>
        public float? WeightDecay { get; set; }
        /// <summary>0: no clipping.</summary>
        public float? ClipNorm { get; set; }
        /// <summary>SGD: look ahead.</summary>
        public bool Nesterov { get; set; }
        /// <summary>SGD, Muon.</summary>
        public float? Momentum { get; set; }
        /// <summary>The host's memory, at least <see cref="PlanInfo.Arena"/> bytes at a multiple of 256, until the trainer and its views have ended; zero: allocated.</summary>
        public IntPtr Arena { get; set; }
        /// <summary>Of Arena.</summary>
        public long ArenaBytes { get; set; }
        /// <summary>May change the gradients before they are used. What it throws fails the step, which then has updated nothing, and leaves it.</summary>
        public Action<Gradients> GradientHook { get; set; }
        /// <summary>This share of the target's probability goes to all tokens alike.</summary>
        public float LabelSmoothing { get; set; }
        /// <summary>Times the square of log Σ exp(logits), added to every token's loss.</summary>
        public float ZLoss { get; set; }
        /// <summary>0: none; else how many standard deviations a loss or norm may lie above its running mean.</summary>
        public float OutlierLimit { get; set; }
        /// <summary>fp16: of the first step; 0: 65536.</summary>
        public double LossScale { get; set; }
        /// <summary>fp16: updates after which it doubles; 0: 2000.</summary>
        public int GrowthInterval { get; set; }
        /// <summary>What happens where a loss or gradient is not finite.</summary>
        public NonFinite NonFinite { get; set; }
        /// <summary>Of the plan's preference; 0: 0.1, of SimPO 2.</summary>
        public float Beta { get; set; }
        /// <summary>SimPO; null: half of Beta.</summary>
        public float? Margin { get; set; }
        /// <summary>How often the chosen document's mean token loss is added to a preference's.</summary>
        public float AnswerShare { get; set; }
        /// <summary>Of the creation, and of all that the trainer does.</summary>
        public Watch Watch { get; set; }

        internal unsafe stw_trainer_options Given()
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
            given.set_mask = (Seed != null ? STW_SET_TRAINER_SEED : 0) | (Beta1 != null ? STW_SET_BETA1 : 0) | (Beta2 != null ? STW_SET_BETA2 : 0) | (WeightDecay != null ? STW_SET_WEIGHT_DECAY : 0) |
                             (ClipNorm != null ? STW_SET_CLIP_NORM : 0) | (Momentum != null ? STW_SET_MOMENTUM : 0) | (Margin != null ? STW_SET_MARGIN : 0);
            return given;
        }
    }

    /// <summary>stw_run_options; null: unset.</summary>
    public sealed class RunOptions
    {
        /// <summary>Until this many batches have been consumed.</summary>
        public long Until { get; set; }
        /// <summary>Length of the schedule; 0: Until.</summary>
        public long Total { get; set; }
        /// <summary>Steps of linear warm-up.</summary>
        public long Warmup { get; set; }
        /// <summary>0: the optimizer's own.</summary>
        public double LearningRate { get; set; }
        /// <summary>null: a tenth of it; inverse root: 0.</summary>
        public double? MinRate { get; set; }
        /// <summary>After the warm-up.</summary>
        public Schedule Schedule { get; set; }
        /// <summary>0: 1.</summary>
        public int ProgressEvery { get; set; }
        /// <summary>Is called after every ProgressEvery steps, between two of them: it may evaluate, generate and save. false stops the run; what it throws leaves it.</summary>
        public Func<Progress, bool> Progress { get; set; }
        /// <summary>Warm-up-stable-decay: 0: a fifth of Total.</summary>
        public long DecaySteps { get; set; }
        /// <summary>Learning rates are meant for so many samples a step; 0: they are taken as they are.</summary>
        public long BaseBatch { get; set; }

        internal stw_run_options Given()
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
        /// <summary>New tokens, at most.</summary>
        public int Count { get; set; }
        /// <summary>0: all.</summary>
        public int TopK { get; set; }
        /// <summary>0: all.</summary>
        public double TopP { get; set; }
        /// <summary>0: the most probable token.</summary>
        public double Temperature { get; set; }
        /// <summary>null: 1337.</summary>
        public ulong? Seed { get; set; }
        /// <summary>Tokens of which any ends the answer, and is the last one then.</summary>
        public IReadOnlyList<int> Stop { get; set; }
    }
}
