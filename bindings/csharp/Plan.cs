using System;
using System.Collections.Generic;
using System.Text;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A plan: the place of every buffer in memory, before anything is allocated. It may be disposed
    /// of before its trainers.</summary>
    public sealed unsafe class Plan : NativeObject
    {
        /// <summary>Takes a plan of the library.</summary>
        internal Plan(stw_plan* plan)
        {
            Own((IntPtr)plan, pointer => stw_plan_destroy((stw_plan*)pointer));
        }

        /// <summary>Chooses the fastest way to train that fits. If a device is given, its profile, number of
        /// threads and free memory replace options that are unset.</summary>
        /// <exception cref="OverBudgetException">nothing fits</exception>
        /// <exception cref="StowageException">BadArgument, Unsupported; Corrupt for a profile that cannot be
        /// read</exception>
        public Plan(Model model, PlanOptions options, Device device = null)
            : this(Create(model, options, device))
        {
        }

        private static stw_plan* Create(Model model, PlanOptions options, Device device)
        {
            stw_plan* plan = null;
            stw_error error = stw_error.Sized();
            using (Held held = Numbers.NotNull(model, nameof(model)).Hold())
            using (var texts = new Texts())
            {
                stw_plan_options given = Numbers.NotNull(options, nameof(options)).ToNative(texts, device);
                int status = stw_plan_create(&plan, (stw_model*)held.Pointer, &given, &error);
                options.Watch?.TakeFailure()?.Throw();
                if (status == STW_OVER_BUDGET)
                    throw new OverBudgetException(&error, plan == null ? null : new Plan(plan));
                Errors.Check(status, &error);
            }
            return plan;
        }

        /// <summary>Reads text that <see cref="Json"/> returned.</summary>
        /// <exception cref="StowageException">Corrupt if the text was edited, BadState if it belongs to
        /// another model, Unsupported if it has another version</exception>
        public static Plan Load(Model model, string json)
        {
            stw_plan* plan = null;
            stw_error error = stw_error.Sized();
            using (Held held = Numbers.NotNull(model, nameof(model)).Hold())
            using (var texts = new Texts())
            {
                byte* text = texts.Of(Numbers.NotNull(json, nameof(json)), out UIntPtr size);
                Errors.Check(stw_plan_load(&plan, (stw_model*)held.Pointer, text, size, &error), &error);
            }
            return new Plan(plan);
        }

        /// <summary>The longest sequence, in tokens, that fits with these options; at most the model's
        /// positions.</summary>
        /// <exception cref="OverBudgetException">not even one token fits</exception>
        public static long LongestSequence(Model model, PlanOptions options, Device device = null)
        {
            ulong longest;
            stw_error error = stw_error.Sized();
            using (Held held = Numbers.NotNull(model, nameof(model)).Hold())
            using (var texts = new Texts())
            {
                stw_plan_options given = Numbers.NotNull(options, nameof(options)).ToNative(texts, device);
                int status = stw_plan_longest_sequence((stw_model*)held.Pointer, &given, &longest, &error);
                options.Watch?.TakeFailure()?.Throw();
                Errors.Check(status, &error);
            }
            return Numbers.Of(longest);
        }

        /// <summary>The decisions of the plan and their figures.</summary>
        public PlanInfo Info
        {
            get
            {
                stw_plan_info native = stw_plan_info.Sized();
                using (Held held = Hold())
                    Errors.Check(stw_plan_query((stw_plan*)held.Pointer, &native));
                return new PlanInfo(native);
            }
        }

        /// <summary>The plan as text, which <see cref="Load"/> reads.</summary>
        public string Json
        {
            get
            {
                using (Held held = Hold())
                    return Texts.Read(stw_plan_json((stw_plan*)held.Pointer));
            }
        }

        /// <summary>The plan as a table for people.</summary>
        public string Report
        {
            get
            {
                using (Held held = Hold())
                    return Texts.Read(stw_plan_report((stw_plan*)held.Pointer));
            }
        }

        /// <summary>Checks every program of the plan with an independent verifier.</summary>
        /// <exception cref="StowageException">a mistake that the verifier found</exception>
        public void Verify()
        {
            stw_error error = stw_error.Sized();
            using (Held held = Hold())
                Errors.Check(stw_plan_verify((stw_plan*)held.Pointer, &error), &error);
        }

        /// <summary>The settings that would need less memory, if the plan does not fit. Those that keep the
        /// trained bits come first.</summary>
        public IReadOnlyList<Relaxation> Relaxations()
        {
            var found = new List<Relaxation>();
            stw_relaxation_info native = stw_relaxation_info.Sized();
            using (Held held = Hold())
                while (stw_plan_relaxation_at((stw_plan*)held.Pointer, (UIntPtr)found.Count,
                    &native) == STW_OK)
                    found.Add(new Relaxation(native));
            return found;
        }

        /// <summary>The tensors that the plan keeps in host memory.</summary>
        public IReadOnlyList<Offload> Offloads()
        {
            var found = new List<Offload>();
            stw_offload_info native = stw_offload_info.Sized();
            using (Held held = Hold())
                while (stw_plan_offload_at((stw_plan*)held.Pointer, (UIntPtr)found.Count, &native) == STW_OK)
                    found.Add(new Offload(native));
            return found;
        }

        /// <summary>The plans that other budgets would get (the Pareto frontier of memory and speed), by
        /// growing peak, each faster than all before it.</summary>
        public IReadOnlyList<FrontierPoint> Frontier(Watch watch = null)
        {
            using (Held held = Hold())
            using (var texts = new Texts())
                // if there are more points than fit, the library leaves some out; it gives at most 1000
                for (int capacity = 1024; ; capacity *= 2)
                {
                    var points = new stw_frontier_point[capacity];
                    points[0] = stw_frontier_point.Sized();
                    UIntPtr count;
                    stw_error error = stw_error.Sized();
                    int status;
                    fixed (stw_frontier_point* to = points)
                        status = stw_plan_frontier_watched((stw_plan*)held.Pointer, to, (UIntPtr)capacity,
                            &count, texts.Of(watch), &error);
                    watch?.TakeFailure()?.Throw();
                    Errors.Check(status, &error);
                    if ((int)count == capacity)
                        continue;
                    Array.Resize(ref points, (int)count);
                    return Array.ConvertAll(points, point => new FrontierPoint(point));
                }
        }

        /// <summary>The arena as a picture, or its buffers as a table.</summary>
        public string Picture(Picture kind, Watch watch = null)
        {
            UIntPtr size;
            stw_error error = stw_error.Sized();
            using (Held held = Hold())
            using (var texts = new Texts())
            {
                var plan = (stw_plan*)held.Pointer;
                stw_watch* watching = texts.Of(watch);
                int status = stw_plan_picture_watched(plan, (uint)kind, null, UIntPtr.Zero, &size,
                    watching, &error);
                watch?.TakeFailure()?.Throw();
                Errors.Check(status, &error);
                var text = new byte[(long)size];
                fixed (byte* to = text)
                    status = stw_plan_picture_watched(plan, (uint)kind, to, size, null, watching, &error);
                watch?.TakeFailure()?.Throw();
                Errors.Check(status, &error);
                return Encoding.UTF8.GetString(text, 0, text.Length - 1);
            }
        }

        /// <summary>All buffers of a micro-step.</summary>
        public IReadOnlyList<BufferInfo> Buffers()
        {
            using (Held held = Hold())
            {
                var plan = (stw_plan*)held.Pointer;
                var found = new BufferInfo[(int)stw_plan_buffer_count(plan)];
                for (int i = 0; i < found.Length; ++i)
                {
                    stw_buffer_info native = stw_buffer_info.Sized();
                    Errors.Check(stw_plan_buffer_at(plan, (UIntPtr)i, &native));
                    found[i] = new BufferInfo(native);
                }
                return found;
            }
        }
    }
}
