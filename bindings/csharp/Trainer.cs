using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.ExceptionServices;
using System.Text;
using System.Threading;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A trainer: a model in an arena of the plan's bytes. One thread at a time may compute with it;
    /// any thread may call Cancel, Progress and Dispose. Inside a gradient hook, calls that compute throw
    /// BadState. A run's progress callback may call everything except Replan, Calibrate and
    /// Timeline.</summary>
    public sealed unsafe class Trainer : NativeObject
    {
        private readonly HostCalls host;
        private readonly HookCalls hook;
        private readonly ViewCount views = new ViewCount();
        private readonly IReadOnlyList<TensorInfo> tensors;
        private readonly long labels, sequence;
        private readonly bool labelsTokens;
        private readonly Watch watch;

        /// <summary>The number of logits.</summary>
        internal long Classes { get; }

        private sealed class ViewCount
        {
            public int Open;
        }

        /// <summary>Allocates the plan's arena, once, and fills it with weights. The device, the model and
        /// the plan may be disposed of afterwards.</summary>
        /// <exception cref="StowageException">OutOfMemory, BadState (a plan that does not fit, or is for
        /// another model or device), the errors of reading weights</exception>
        public Trainer(Device device, Model model, Plan plan, TrainerOptions options = null)
        {
            options = options ?? new TrainerOptions();
            stw_trainer_options given = options.ToNative();
            ModelInfo about = Numbers.NotNull(model, nameof(model)).Info;
            labels = about.Labels;
            labelsTokens = about.Task == TrainingTask.TokenLabel || about.Task == TrainingTask.Spans;
            Classes = labels > 0 ? labels : about.Vocabulary;
            tensors = model.Tensors();
            sequence = Numbers.NotNull(plan, nameof(plan)).Info.Sequence;
            if (options.GradientHook != null)
            {
                hook = new HookCalls(options.GradientHook,
                    Numbers.NotNull(device, nameof(device)).Info.Backend == Backend.Cpu);
                hook.Enter(ref given);
            }
            host = Numbers.NotNull(device, nameof(device)).Calls;
            watch = options.Watch;
            stw_trainer* trainer = null;
            stw_error error = stw_error.Sized();
            HookCalls called = hook;   // not `this`, which would be a reference cycle
            try
            {
                using (Held heldDevice = device.HoldAlone())
                using (Held heldModel = model.Hold())
                using (Held heldPlan = plan.Hold())
                {
                    NativeHandle watched = null;
                    if (watch != null)
                        using (Held seen = watch.Hold())
                        {
                            bool isWatched = false;
                            watched = seen.Handle;
                            watched.DangerousAddRef(ref isWatched);   // the watch ends after its trainer
                            given.watch = (stw_watch*)seen.Pointer;
                        }
                    int status = stw_trainer_create(&trainer, (stw_device*)heldDevice.Pointer,
                        (stw_model*)heldModel.Pointer, (stw_plan*)heldPlan.Pointer, &given, &error);
                    if (status != STW_OK)
                        watched?.DangerousRelease();
                    watch?.TakeFailure()?.Throw();
                    Errors.Check(status, &error, host.Take());
                    NativeHandle lent = heldDevice.Handle;
                    bool isLent = false;
                    lent.DangerousAddRef(ref isLent);   // the device ends after the last of its trainers
                    Own((IntPtr)trainer, pointer =>
                    {
                        stw_trainer_destroy((stw_trainer*)pointer);
                        called?.End();
                        watched?.DangerousRelease();
                        lent.DangerousRelease();
                    });
                }
            }
            catch
            {
                called?.End();
                throw;
            }
        }

        /// <summary>The exception of the hook in the call that is over.</summary>
        internal ExceptionDispatchInfo TakeFailure()
        {
            return hook?.Take() ?? watch?.TakeFailure();
        }

        /// <summary>The exception of the host's allocator.</summary>
        internal Exception TakeCause()
        {
            return host.Take();
        }

        /// <summary>Makes one optimizer step with a whole global batch.</summary>
        /// <exception cref="StowageException">BadArgument (shapes, a token outside the vocabulary, the rate),
        /// Unsupported (an input that the plan does not include), Cancelled</exception>
        public StepResult Step(Batch batch, double learningRate,
            CancellationToken cancellation = default(CancellationToken))
        {
            stw_step_result result = stw_step_result.Sized();
            stw_error error = stw_error.Sized();
            using (var given = new PinnedBatch(Numbers.NotNull(batch, nameof(batch)), learningRate))
            using (var call = new Call(this, cancellation))
            {
                int status = stw_trainer_step(call.Trainer, given.Pointer, &error);
                if (status == STW_OK)
                    status = stw_trainer_wait(call.Trainer, &result, &error);
                call.End(status, &error);
            }
            return new StepResult(result);
        }

        /// <summary>Makes steps over a dataset. Returns true at the end of the run, false if Progress or
        /// Cancel stopped it, perhaps after the last batch.</summary>
        /// <exception cref="OperationCanceledException">the token stopped the run; the trainer has the state
        /// of the last completed step</exception>
        public bool Run(Dataset dataset, RunOptions options,
            CancellationToken cancellation = default(CancellationToken))
        {
            stw_run_options given = Numbers.NotNull(options, nameof(options)).ToNative();
            var calls = new ProgressCalls(options, cancellation);
            stw_error error = stw_error.Sized();
            try
            {
                calls.Enter(ref given);
                using (Held from = Numbers.NotNull(dataset, nameof(dataset)).HoldAlone())
                using (var call = new Call(this, cancellation))
                    return call.End(stw_trainer_run(call.Trainer, (stw_dataset*)from.Pointer, &given, &error),
                        &error, calls) == STW_OK;
            }
            finally
            {
                calls.End();
            }
        }

        /// <summary>The mean loss per target over `batches` global batches of the held-out part. Afterwards
        /// <see cref="Progress"/> has the accuracy of a classifier or a preference.</summary>
        public double Evaluate(Dataset dataset, long batches,
            CancellationToken cancellation = default(CancellationToken))
        {
            double loss;
            stw_error error = stw_error.Sized();
            ulong count = Numbers.Unsigned(batches, nameof(batches));
            using (Held from = Numbers.NotNull(dataset, nameof(dataset)).HoldAlone())
            using (var call = new Call(this, cancellation))
                call.End(stw_trainer_evaluate(call.Trainer, (stw_dataset*)from.Pointer, count, &loss, &error),
                    &error);
            return loss;
        }

        /// <summary>Tokens that continue the prompt. Prompt and new tokens together must fit the plan's
        /// sequence.</summary>
        /// <exception cref="StowageException">UnsupportedShape (too long), Unsupported (a classifier),
        /// NonFinite, Cancelled</exception>
        public int[] Generate(int[] prompt, GenerateOptions options,
            CancellationToken cancellation = default(CancellationToken))
        {
            Numbers.NotNull(prompt, nameof(prompt));
            if (Numbers.NotNull(options, nameof(options)).Count > sequence)
                throw new StowageException(Status.UnsupportedShape,
                    $"generate: expected at most {sequence} tokens with the prompt, found {options.Count}");
            var generated = new int[Numbers.Unsigned(options.Count, nameof(options.Count))];
            int[] ends = options.Stop?.ToArray() ?? new int[0];
            stw_generate_options given = stw_generate_options.Sized();
            given.top_k = Numbers.Unsigned(options.TopK, nameof(options.TopK));
            given.top_p = options.TopP;
            given.temperature = options.Temperature;
            given.seed = options.Seed ?? 0;
            given.set_mask = options.Seed != null ? STW_SET_GENERATE_SEED : 0;
            ulong count;
            stw_error error = stw_error.Sized();
            fixed (int* input = prompt, stop = ends, to = generated)
            using (var call = new Call(this, cancellation))
            {
                given.prompt = input;
                given.prompt_count = (ulong)prompt.Length;
                given.stop = stop;
                given.stop_count = (ulong)ends.Length;
                given.@out = to;
                given.out_capacity = (ulong)generated.Length;
                call.End(stw_trainer_generate(call.Trainer, &given, &count, &error), &error);
            }
            Array.Resize(ref generated, (int)count);
            return generated;
        }

        /// <summary>The logits after these tokens: of the tokens that may follow, or of a classifier's
        /// labels.</summary>
        /// <exception cref="StowageException">BadArgument, UnsupportedShape (no token, or too many),
        /// NonFinite, Cancelled</exception>
        public float[] Logits(int[] tokens, CancellationToken cancellation = default(CancellationToken))
        {
            if (Numbers.NotNull(tokens, nameof(tokens)).Length == 0)
                throw new StowageException(Status.UnsupportedShape, "logits: expected at least one token");
            var logits = new float[Classes];
            stw_error error = stw_error.Sized();
            fixed (int* input = tokens)
            fixed (float* to = logits)
            using (var call = new Call(this, cancellation))
                call.End(stw_trainer_logits(call.Trainer, input, (ulong)tokens.Length, to,
                    (ulong)logits.Length, &error), &error);
            return logits;
        }

        /// <summary>The logits of a classifier's labels, one row for each text. If tokens have labels: one
        /// row for each token of each text in turn. tokenTypes has a type for each token; null: all are
        /// 0.</summary>
        /// <exception cref="StowageException">Unsupported (not a classifier), BadArgument (an unknown token
        /// or type, or not one type for each token), UnsupportedShape (no token, or too many), NonFinite,
        /// Cancelled</exception>
        public float[][] Classify(IReadOnlyList<int[]> texts, IReadOnlyList<int[]> tokenTypes = null,
            CancellationToken cancellation = default(CancellationToken))
        {
            int count = Numbers.NotNull(texts, nameof(texts)).Count;
            if (tokenTypes != null && tokenTypes.Count != count)
                throw new StowageException(Status.BadArgument,
                    $"{nameof(tokenTypes)}: expected {count} arrays, found {tokenTypes.Count}");
            for (int i = 0; i < count; ++i)
            {
                int length = Numbers.NotNull(texts[i], nameof(texts)).Length;
                if (tokenTypes != null && Numbers.NotNull(tokenTypes[i], nameof(tokenTypes)).Length != length)
                    throw new StowageException(Status.BadArgument,
                        $"{nameof(tokenTypes)}: text {i}: expected {length} numbers, " +
                        $"found {tokenTypes[i].Length}");
            }
            int[] all = texts.SelectMany(text => text).ToArray(),
                types = tokenTypes?.SelectMany(one => one).ToArray();
            ulong[] lengths = texts.Select(text => (ulong)text.Length).ToArray();
            int rowCount = labelsTokens ? all.Length : count;
            var logits = new float[checked(rowCount * labels)];
            stw_error error = stw_error.Sized();
            fixed (int* input = all, kinds = types)
            fixed (ulong* each = lengths)
            fixed (float* to = logits)
            using (var call = new Call(this, cancellation))
                call.End(stw_trainer_classify(call.Trainer, input, kinds, each, (ulong)count, to,
                    (ulong)logits.Length, &error), &error);
            var rows = new float[rowCount][];
            for (int i = 0; i < rowCount; ++i)
            {
                rows[i] = new float[labels];
                Array.Copy(logits, i * labels, rows[i], 0, labels);
            }
            return rows;
        }

        /// <summary>The log-probability that the model, without dropout, gives every target of one or more
        /// samples. Each value has the place of its target or label; places without a target hold 0. The
        /// result can be the <see cref="Batch.Reference"/> of later steps.</summary>
        /// <exception cref="StowageException">those of Step; Unsupported for a batch with weights or a
        /// reference</exception>
        public float[,] LogProbabilities(Batch batch,
            CancellationToken cancellation = default(CancellationToken))
        {
            long[] shape = Numbers.NotNull(batch, nameof(batch)).Tokens?.Shape;
            var probabilities = shape?.Length == 2
                ? new float[(int)shape[0], (int)shape[1]] : new float[0, 0];
            var flat = new float[probabilities.Length + 1];   // has an address even if it holds no numbers
            stw_error error = stw_error.Sized();
            fixed (float* to = flat)
            using (var given = new PinnedBatch(batch, 0))
            using (var call = new Call(this, cancellation))
                call.End(stw_trainer_log_probabilities(call.Trainer, given.Pointer, to,
                    (ulong)probabilities.Length, &error), &error);
            Buffer.BlockCopy(flat, 0, probabilities, 0, probabilities.Length * sizeof(float));
            return probabilities;
        }

        /// <summary>Goes once over a dataset of pairs and writes the log-probabilities of its targets into a
        /// file, for <see cref="DatasetOptions.Reference"/>.</summary>
        /// <exception cref="StowageException">BadState (a plan without a preference, a dataset without
        /// pairs), IOError, NonFinite, Cancelled. After an error no file has been replaced.</exception>
        public void WriteReference(Dataset dataset, string path,
            CancellationToken cancellation = default(CancellationToken))
        {
            stw_error error = stw_error.Sized();
            using (var texts = new Texts())
            using (Held from = Numbers.NotNull(dataset, nameof(dataset)).HoldAlone())
            using (var call = new Call(this, cancellation))
                call.End(stw_trainer_write_reference(call.Trainer, (stw_dataset*)from.Pointer, texts.Of(path),
                    &error), &error);
        }

        /// <summary>Changes the budget from the next step on, with the same bits, and returns the new
        /// plan.</summary>
        /// <exception cref="OverBudgetException">nothing fits the budget; the trainer is
        /// unchanged</exception>
        /// <exception cref="StowageException">OutOfMemory; BadState from inside a callback, and while a view
        /// is open; the trainer is unchanged</exception>
        public Plan Replan(long memoryBytes)
        {
            stw_plan* plan = null;
            stw_error error = stw_error.Sized();
            ulong bytes = Numbers.Unsigned(memoryBytes, nameof(memoryBytes));
            using (var call = new Call(this, CancellationToken.None))
            {
                int open = Volatile.Read(ref views.Open);
                if (open > 0)
                    throw new StowageException(Status.BadState,
                        $"replan: {open} views of tensors are open, and their memory would move; " +
                        "dispose of them first");
                call.End(stw_trainer_replan(call.Trainer, bytes, &plan, &error), &error);
            }
            return new Plan(plan);
        }

        /// <summary>Measures the device and returns a profile for planning,
        /// <see cref="PlanOptions.Profile"/>. Only for a trainer that has made no step.</summary>
        /// <exception cref="StowageException">BadState for a trainer that has made a step, NonFinite,
        /// Cancelled, and the errors of reading weights</exception>
        public string Calibrate(CancellationToken cancellation = default(CancellationToken))
        {
            var text = new byte[STW_PROFILE_BYTES];
            UIntPtr size;
            stw_error error = stw_error.Sized();
            fixed (byte* to = text)
            using (var call = new Call(this, cancellation))
                call.End(stw_trainer_calibrate(call.Trainer, to, (UIntPtr)text.Length, &size, &error),
                    &error);
            return Encoding.UTF8.GetString(text, 0, (int)size);
        }

        private delegate int EntryOfPath(stw_trainer* trainer, byte* path, stw_error* error);

        private void WithPath(EntryOfPath entry, string path,
            CancellationToken cancellation = default(CancellationToken))
        {
            stw_error error = stw_error.Sized();
            using (var texts = new Texts())
            using (var call = new Call(this, cancellation))
                call.End(entry(call.Trainer, texts.Of(path), &error), &error);
        }

        /// <summary>Measures a step in the same way and writes a trace, which Perfetto shows.</summary>
        public void Timeline(string path, CancellationToken cancellation = default(CancellationToken))
        {
            WithPath(stw_trainer_timeline, path, cancellation);
        }

        /// <summary>Writes a checkpoint, which can be restored with any budget.</summary>
        public void Save(string path)
        {
            WithPath(stw_trainer_save, path);
        }

        /// <summary>Reads a checkpoint, to continue from it.</summary>
        /// <exception cref="StowageException">Corrupt, BadState (it names the field that does not match),
        /// IOError; the trainer is unchanged</exception>
        public void Restore(string path)
        {
            WithPath(stw_trainer_restore, path);
        }

        /// <summary>Writes the model for transformers. For a model with adapters, writes only the adapters,
        /// for PEFT.</summary>
        public void ExportModel(string folder)
        {
            WithPath(stw_trainer_export_model, folder);
        }

        /// <summary>Stops the call in progress, within a step too, or else the next one. For any thread. A
        /// cancellation token, in contrast, stops only its own call.</summary>
        public void Cancel()
        {
            using (Held held = Hold())
                stw_trainer_cancel((stw_trainer*)held.Pointer);
        }

        /// <summary>The state of the trainer. For any thread.</summary>
        public Progress Progress
        {
            get
            {
                stw_progress native = stw_progress.Sized();
                using (Held held = Hold())
                    Errors.Check(stw_trainer_progress((stw_trainer*)held.Pointer, &native));
                return new Progress(native);
            }
        }

        /// <summary>The stream of a CUDA device; else zero.</summary>
        public IntPtr Stream
        {
            get
            {
                using (Held held = Hold())
                    return (IntPtr)stw_trainer_stream((stw_trainer*)held.Pointer);
            }
        }

        /// <summary>A view of a tensor, without a copy, by its index in <see cref="Model.Tensors"/>. Until
        /// the view is disposed of, the trainer cannot be planned again.</summary>
        /// <exception cref="StowageException">BadArgument; Unsupported if the tensor is not stored as one
        /// array of fp32, bf16 or fp16</exception>
        public TensorView View(int index, TensorKind kind = TensorKind.Parameter)
        {
            DLManagedTensorVersioned* tensor = null;
            stw_error error = stw_error.Sized();
            using (var call = new Call(this, CancellationToken.None))
            using (Held arena = Hold())
            {
                call.End(stw_trainer_export_tensor(call.Trainer,
                    (UIntPtr)Numbers.Unsigned(index, nameof(index)), (uint)kind, &tensor, &error), &error);
                NativeHandle lent = arena.Handle;
                bool isLent = false;
                lent.DangerousAddRef(ref isLent);
                Interlocked.Increment(ref views.Open);
                ViewCount counted = views;
                return new TensorView(tensor, () =>
                {
                    Interlocked.Decrement(ref counted.Open);
                    lent.DangerousRelease();
                });
            }
        }

        /// <summary>A copy of a tensor, by its index in <see cref="Model.Tensors"/>: a parameter, its
        /// gradient, or one of its optimizer states.</summary>
        /// <exception cref="StowageException">those of View; Unsupported if the tensor is in a GPU's
        /// memory</exception>
        public Tensor GetTensor(int index, TensorKind kind = TensorKind.Parameter)
        {
            using (TensorView view = View(index, kind))
                return new Tensor(view);
        }

        /// <summary>Overwrites a parameter. The number of values must be the same.</summary>
        public void SetTensor(int index, float[] values)
        {
            int count = Numbers.NotNull(values, nameof(values)).Length;
            if (index < 0 || index >= tensors.Count || count != tensors[index].Elements)
                throw new StowageException(Status.BadArgument,
                    $"tensor {index}: there is no tensor of {count} values with that index");
            long[] shape = tensors[index].Shape.ToArray();
            stw_error error = stw_error.Sized();
            fixed (float* from = values)
            fixed (long* sizes = shape)
            using (var call = new Call(this, CancellationToken.None))
            {
                DLManagedTensorVersioned given = DLManagedTensorVersioned.Borrowed((IntPtr)from,
                    DLManagedTensorVersioned.Float, sizes, shape.Length);
                call.End(stw_trainer_import_tensor(call.Trainer, (UIntPtr)(uint)index, &given, &error),
                    &error);
            }
        }
    }
}
