using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The result of a step.</summary>
    public sealed class StepResult
    {
        internal StepResult(stw_step_result native)
        {
            Skipped = native.skipped != 0;
            Step = Numbers.Of(native.step);
            Loss = native.loss;
            GradNorm = native.grad_norm;
            Targets = Numbers.Of(native.targets);
            Seconds = native.seconds;
            LossScale = native.loss_scale;
            SkipReason = (SkipReason)native.skip_reason;
            Accuracy = native.accuracy;
        }

        /// <summary>Whether the step updated nothing.</summary>
        public bool Skipped { get; }
        /// <summary>Successful updates so far.</summary>
        public long Step { get; }
        /// <summary>The loss, mean per target.</summary>
        public double Loss { get; }
        /// <summary>The gradient norm before clipping.</summary>
        public double GradNorm { get; }
        /// <summary>The number of targets that had a loss.</summary>
        public long Targets { get; }
        /// <summary>The duration of the step.</summary>
        public double Seconds { get; }
        /// <summary>The loss scale of this step; 1 unless the precision is fp16.</summary>
        public double LossScale { get; }
        /// <summary>The reason why the step updated nothing.</summary>
        public SkipReason SkipReason { get; }
        /// <summary>With a preference: the share of the pairs whose chosen document was ahead.</summary>
        public double Accuracy { get; }
    }

    /// <summary>The state of a trainer.</summary>
    public sealed class Progress
    {
        internal Progress(stw_progress native)
        {
            Phase = (Phase)native.phase;
            Step = Numbers.Of(native.step);
            Batches = Numbers.Of(native.batches);
            Skipped = Numbers.Of(native.skipped);
            Loss = native.loss;
            GradNorm = native.grad_norm;
            LearningRate = native.learning_rate;
            Seconds = native.seconds;
            TokensPerSecond = native.tokens_per_second;
            Tokens = Numbers.Of(native.tokens);
            EvaluationLoss = native.evaluation_loss;
            LossScale = native.loss_scale;
            SkipReason = (SkipReason)native.skip_reason;
            EvaluationAccuracy = native.evaluation_accuracy;
            Accuracy = native.accuracy;
            EvaluationSamples = Numbers.Of(native.evaluation_samples);
            EvaluatedSamples = Numbers.Of(native.evaluated_samples);
            EvaluationTargets = Numbers.Of(native.evaluation_targets);
            MicroSteps = Numbers.Of(native.micro_steps);
            MicroStepsDone = Numbers.Of(native.micro_steps_done);
            SampleTokens = Numbers.Of(native.sample_tokens);
            EvaluationTokens = Numbers.Of(native.evaluation_tokens);
        }

        /// <summary>The activity of the trainer.</summary>
        public Phase Phase { get; }
        /// <summary>Successful updates so far.</summary>
        public long Step { get; }
        /// <summary>Global batches consumed so far.</summary>
        public long Batches { get; }
        /// <summary>Steps without an update.</summary>
        public long Skipped { get; }
        /// <summary>The loss of the last step, mean per target.</summary>
        public double Loss { get; }
        /// <summary>The gradient norm before clipping.</summary>
        public double GradNorm { get; }
        /// <summary>The learning rate of the last step.</summary>
        public double LearningRate { get; }
        /// <summary>The duration of the last step.</summary>
        public double Seconds { get; }
        /// <summary>Targets of the last step per second; with a preference: pairs.</summary>
        public double TokensPerSecond { get; }
        /// <summary>Targets trained on so far; with a preference: pairs.</summary>
        public long Tokens { get; }
        /// <summary>The loss of the last evaluation.</summary>
        public double EvaluationLoss { get; }
        /// <summary>The loss scale for the next step; 1 unless the precision is fp16.</summary>
        public double LossScale { get; }
        /// <summary>The reason why the last step updated nothing.</summary>
        public SkipReason SkipReason { get; }
        /// <summary>The accuracy of the last evaluation, for a classifier or a preference.</summary>
        public double EvaluationAccuracy { get; }
        /// <summary>With a preference: the accuracy of the last step.</summary>
        public double Accuracy { get; }
        /// <summary>All samples of the evaluation in progress, or of the last one.</summary>
        public long EvaluationSamples { get; }
        /// <summary>How many samples of that evaluation have been given to the device.</summary>
        public long EvaluatedSamples { get; }
        /// <summary>The targets that EvaluationLoss is the mean over.</summary>
        public long EvaluationTargets { get; }
        /// <summary>All micro-steps of the step in progress, or of the last one.</summary>
        public long MicroSteps { get; }
        /// <summary>How many micro-steps of that step have been given to the device.</summary>
        public long MicroStepsDone { get; }
        /// <summary>
        /// The tokens of the last step's samples, without padding; 0 if the host gave the batch.
        /// </summary>
        public long SampleTokens { get; }
        /// <summary>The tokens of the samples of the last evaluation, without padding.</summary>
        public long EvaluationTokens { get; }
    }
}
