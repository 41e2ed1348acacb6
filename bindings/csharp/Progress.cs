using static Stowage.Abi;

namespace Stowage
{
    /// <summary>What a step did.</summary>
    public sealed class StepResult
    {
        internal StepResult(stw_step_result told)
        {
            Skipped = told.skipped != 0;
            Step = Numbers.Of(told.step);
            Loss = told.loss;
            GradNorm = told.grad_norm;
            Targets = Numbers.Of(told.targets);
            Seconds = told.seconds;
            LossScale = told.loss_scale;
            SkipReason = (SkipReason)told.skip_reason;
            Accuracy = told.accuracy;
        }

        /// <summary>It updated nothing.</summary>
        public bool Skipped { get; }
        /// <summary>Successful updates so far.</summary>
        public long Step { get; }
        /// <summary>Mean per target.</summary>
        public double Loss { get; }
        /// <summary>Before clipping.</summary>
        public double GradNorm { get; }
        /// <summary>That had a loss.</summary>
        public long Targets { get; }
        /// <summary>It took.</summary>
        public double Seconds { get; }
        /// <summary>Of this step; 1 unless the precision is fp16.</summary>
        public double LossScale { get; }
        /// <summary>Why it updated nothing.</summary>
        public SkipReason SkipReason { get; }
        /// <summary>Of a preference: share of the pairs whose chosen document was ahead.</summary>
        public double Accuracy { get; }
    }

    /// <summary>How far a trainer is.</summary>
    public sealed class Progress
    {
        internal Progress(stw_progress told)
        {
            Phase = (Phase)told.phase;
            Step = Numbers.Of(told.step);
            Batches = Numbers.Of(told.batches);
            Skipped = Numbers.Of(told.skipped);
            Loss = told.loss;
            GradNorm = told.grad_norm;
            LearningRate = told.learning_rate;
            Seconds = told.seconds;
            TokensPerSecond = told.tokens_per_second;
            Tokens = Numbers.Of(told.tokens);
            EvaluationLoss = told.evaluation_loss;
            LossScale = told.loss_scale;
            SkipReason = (SkipReason)told.skip_reason;
            EvaluationAccuracy = told.evaluation_accuracy;
            Accuracy = told.accuracy;
            EvaluationSamples = Numbers.Of(told.evaluation_samples);
            EvaluatedSamples = Numbers.Of(told.evaluated_samples);
            EvaluationTargets = Numbers.Of(told.evaluation_targets);
            MicroSteps = Numbers.Of(told.micro_steps);
            MicroStepsDone = Numbers.Of(told.micro_steps_done);
        }

        /// <summary>What it is doing.</summary>
        public Phase Phase { get; }
        /// <summary>Successful updates so far.</summary>
        public long Step { get; }
        /// <summary>Global batches consumed so far.</summary>
        public long Batches { get; }
        /// <summary>Steps without an update.</summary>
        public long Skipped { get; }
        /// <summary>Of the last step, mean per target.</summary>
        public double Loss { get; }
        /// <summary>Before clipping.</summary>
        public double GradNorm { get; }
        /// <summary>Of the last step.</summary>
        public double LearningRate { get; }
        /// <summary>Of the last step.</summary>
        public double Seconds { get; }
        /// <summary>Targets, that is; of a preference pairs.</summary>
        public double TokensPerSecond { get; }
        /// <summary>The same, trained on so far.</summary>
        public long Tokens { get; }
        /// <summary>Of the last evaluation.</summary>
        public double EvaluationLoss { get; }
        /// <summary>For the next step; 1 unless the precision is fp16.</summary>
        public double LossScale { get; }
        /// <summary>Of the last step.</summary>
        public SkipReason SkipReason { get; }
        /// <summary>Of a classifier or a preference.</summary>
        public double EvaluationAccuracy { get; }
        /// <summary>Of a preference, of the last step.</summary>
        public double Accuracy { get; }
        /// <summary>Of the evaluation under way or the last one: in all.</summary>
        public long EvaluationSamples { get; }
        /// <summary>How many of them have been given to the device.</summary>
        public long EvaluatedSamples { get; }
        /// <summary>That EvaluationLoss is the mean over.</summary>
        public long EvaluationTargets { get; }
        /// <summary>Of the step under way or the last one: in all.</summary>
        public long MicroSteps { get; }
        /// <summary>How many of them have been given to the device.</summary>
        public long MicroStepsDone { get; }
    }
}
