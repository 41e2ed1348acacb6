using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A kind of op of a calibrated profile.</summary>
    public sealed unsafe class ProfileOp
    {
        internal ProfileOp(stw_profile_op_info told)
        {
            Name = Texts.Read(told.name);
            Permille = Numbers.Of(told.permille);
            LaunchNanoseconds = Numbers.Of(told.launch_nanoseconds);
            Nanoseconds = Numbers.Of(told.nanoseconds);
        }

        /// <summary>Of the kind.</summary>
        public string Name { get; }
        /// <summary>Of the peak that bounds it; above 1000 in caches.</summary>
        public int Permille { get; }
        /// <summary>Of every op of the kind.</summary>
        public long LaunchNanoseconds { get; }
        /// <summary>Of all of them in the step that was timed.</summary>
        public long Nanoseconds { get; }
    }

    /// <summary>What the cost model knows of a device, present or not.</summary>
    public sealed unsafe class Profile
    {
        private Profile(stw_profile_info told, IReadOnlyList<ProfileOp> ops)
        {
            Name = Texts.Read(told.name);
            Title = Texts.Read(told.title);
            Source = Texts.Read(told.source);
            IsCuda = told.is_cuda != 0;
            Memory = Numbers.Of(told.memory);
            Reserve = Numbers.Of(told.reserve);
            GflopsFp32 = Numbers.Of(told.gflops_fp32);
            GflopsBf16 = Numbers.Of(told.gflops_bf16);
            GbytesPerSecond = Numbers.Of(told.gbytes_per_second);
            HostGbytesPerSecond = Numbers.Of(told.host_gbytes_per_second);
            ProductPermille = Numbers.Of(told.product_permille);
            StreamPermille = Numbers.Of(told.stream_permille);
            LaunchNanoseconds = Numbers.Of(told.launch_nanoseconds);
            Threads = Numbers.Of(told.threads);
            Precision = (Precision)told.precision;
            Kernels = (Kernels)told.kernels;
            StepNanoseconds = Numbers.Of(told.step_nanoseconds);
            Ops = ops;
        }

        /// <summary>What <see cref="PlanOptions.Device"/> takes.</summary>
        public string Name { get; }
        /// <summary>For people.</summary>
        public string Title { get; }
        /// <summary>Of the figures.</summary>
        public string Source { get; }
        /// <summary>Else a CPU.</summary>
        public bool IsCuda { get; }
        /// <summary>Bytes; 0: the machine's own.</summary>
        public long Memory { get; }
        /// <summary>Bytes outside of the arena.</summary>
        public long Reserve { get; }
        /// <summary>Peak; of a CPU that of one thread.</summary>
        public long GflopsFp32 { get; }
        /// <summary>Peak; of a CPU that of one thread.</summary>
        public long GflopsBf16 { get; }
        /// <summary>Of memory.</summary>
        public long GbytesPerSecond { get; }
        /// <summary>To host memory and back, in each direction.</summary>
        public long HostGbytesPerSecond { get; }
        /// <summary>Share of the peak that matrix products reach.</summary>
        public int ProductPermille { get; }
        /// <summary>Share of the bandwidth that streaming ops reach.</summary>
        public int StreamPermille { get; }
        /// <summary>Of every op.</summary>
        public long LaunchNanoseconds { get; }
        /// <summary>Of a calibrated one: that computed while it was measured.</summary>
        public int Threads { get; }
        /// <summary>Of a calibrated one: of what was measured.</summary>
        public Precision Precision { get; }
        /// <summary>Of a calibrated one: of what was measured.</summary>
        public Kernels Kernels { get; }
        /// <summary>Of a calibrated one: a step of the plan that was timed.</summary>
        public long StepNanoseconds { get; }
        /// <summary>Of a calibrated one.</summary>
        public IReadOnlyList<ProfileOp> Ops { get; }

        /// <summary>What can be planned for.</summary>
        public static IReadOnlyList<Profile> All()
        {
            var found = new List<Profile>();
            stw_profile_info told = stw_profile_info.Sized();
            while (stw_profile_at((UIntPtr)found.Count, &told) == STW_OK)
                found.Add(new Profile(told, new ProfileOp[0]));
            return found;
        }

        /// <summary>Reads what <see cref="Trainer.Calibrate"/> gave.</summary>
        /// <exception cref="StowageException">Corrupt, naming the figure, op, device or version that is wrong</exception>
        public static Profile Read(string profile)
        {
            stw_profile_info told = stw_profile_info.Sized();
            stw_profile_op_info op = stw_profile_op_info.Sized();
            stw_error error = stw_error.Sized();
            var ops = new List<ProfileOp>();
            using (var texts = new Texts())
            {
                byte* text = texts.Of(Numbers.Given(profile, nameof(profile)), out UIntPtr size);
                Errors.Check(stw_profile_read(text, size, &told, &error), &error);
                while (stw_profile_op_at(text, size, (UIntPtr)ops.Count, &op) == STW_OK)
                    ops.Add(new ProfileOp(op));
            }
            return new Profile(told, ops);
        }
    }
}
