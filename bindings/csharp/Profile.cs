using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A kind of op of a calibrated profile.</summary>
    public sealed unsafe class ProfileOp
    {
        internal ProfileOp(stw_profile_op_info native)
        {
            Name = Texts.Read(native.name);
            Permille = Numbers.Of(native.permille);
            LaunchNanoseconds = Numbers.Of(native.launch_nanoseconds);
            Nanoseconds = Numbers.Of(native.nanoseconds);
        }

        /// <summary>The name of the kind.</summary>
        public string Name { get; }
        /// <summary>Share of the peak that limits the op; above 1000 if data is in caches.</summary>
        public int Permille { get; }
        /// <summary>Fixed time of every op of this kind.</summary>
        public long LaunchNanoseconds { get; }
        /// <summary>Measured time of all ops of this kind in the timed step.</summary>
        public long Nanoseconds { get; }
    }

    /// <summary>The figures that the cost model has for a device, whether present or not.</summary>
    public sealed unsafe class Profile
    {
        private Profile(stw_profile_info native, IReadOnlyList<ProfileOp> ops)
        {
            Name = Texts.Read(native.name);
            Title = Texts.Read(native.title);
            Source = Texts.Read(native.source);
            IsCuda = native.is_cuda != 0;
            Memory = Numbers.Of(native.memory);
            Reserve = Numbers.Of(native.reserve);
            GflopsFp32 = Numbers.Of(native.gflops_fp32);
            GflopsBf16 = Numbers.Of(native.gflops_bf16);
            GbytesPerSecond = Numbers.Of(native.gbytes_per_second);
            HostGbytesPerSecond = Numbers.Of(native.host_gbytes_per_second);
            ProductPermille = Numbers.Of(native.product_permille);
            StreamPermille = Numbers.Of(native.stream_permille);
            LaunchNanoseconds = Numbers.Of(native.launch_nanoseconds);
            Watts = Numbers.Of(native.watts);
            GflopsPerWatt = Numbers.Of(native.gflops_per_watt);
            MmaPermille = Numbers.Of(native.mma_permille);
            WgmmaPermille = Numbers.Of(native.wgmma_permille);
            AttentionPermille = Numbers.Of(native.attention_permille);
            WideAttentionPermille = Numbers.Of(native.wide_attention_permille);
            Fp32Permille = Numbers.Of(native.fp32_permille);
            Threads = Numbers.Of(native.threads);
            Precision = (Precision)native.precision;
            Kernels = (Kernels)native.kernels;
            StepNanoseconds = Numbers.Of(native.step_nanoseconds);
            Ops = ops;
        }

        /// <summary>The name for <see cref="PlanOptions.Device"/>.</summary>
        public string Name { get; }
        /// <summary>A title for people.</summary>
        public string Title { get; }
        /// <summary>The source of the figures.</summary>
        public string Source { get; }
        /// <summary>true: a CUDA device; false: a CPU.</summary>
        public bool IsCuda { get; }
        /// <summary>Bytes; 0: those of the machine.</summary>
        public long Memory { get; }
        /// <summary>Bytes outside of the arena.</summary>
        public long Reserve { get; }
        /// <summary>Peak; for a CPU that of one thread.</summary>
        public long GflopsFp32 { get; }
        /// <summary>Peak; for a CPU that of one thread.</summary>
        public long GflopsBf16 { get; }
        /// <summary>Bandwidth of the device's memory.</summary>
        public long GbytesPerSecond { get; }
        /// <summary>Bandwidth to host memory and back, in each direction.</summary>
        public long HostGbytesPerSecond { get; }
        /// <summary>Share of the peak that matrix products reach.</summary>
        public int ProductPermille { get; }
        /// <summary>Share of the bandwidth that streaming ops reach.</summary>
        public int StreamPermille { get; }
        /// <summary>Fixed time of every op.</summary>
        public long LaunchNanoseconds { get; }
        /// <summary>GPUs: power of the board; 0: unknown.</summary>
        public long Watts { get; }
        /// <summary>GPUs: of 16-bit products where power limits them.</summary>
        public long GflopsPerWatt { get; }
        /// <summary>Share of the speed of libraries that the kernels Tensor reach.</summary>
        public int MmaPermille { get; }
        /// <summary>Share of the speed of libraries that the kernels Wgmma reach.</summary>
        public int WgmmaPermille { get; }
        /// <summary>Share of the peak that attention reaches in libraries, with heads of up to 64 numbers;
        /// 0: ProductPermille.</summary>
        public int AttentionPermille { get; }
        /// <summary>The same with larger heads; 0: AttentionPermille.</summary>
        public int WideAttentionPermille { get; }
        /// <summary>Share of the fp32 peak that products reach; 0: ProductPermille.</summary>
        public int Fp32Permille { get; }
        /// <summary>Calibrated profiles: threads that computed during the measurement.</summary>
        public int Threads { get; }
        /// <summary>Calibrated profiles: the precision of the measurement.</summary>
        public Precision Precision { get; }
        /// <summary>Calibrated profiles: the kernels of the measurement.</summary>
        public Kernels Kernels { get; }
        /// <summary>Calibrated profiles: the measured time of a step of the timed plan.</summary>
        public long StepNanoseconds { get; }
        /// <summary>Calibrated profiles: the figures of each kind of op.</summary>
        public IReadOnlyList<ProfileOp> Ops { get; }

        /// <summary>The devices that can be planned for.</summary>
        public static IReadOnlyList<Profile> All()
        {
            var found = new List<Profile>();
            stw_profile_info native = stw_profile_info.Sized();
            while (stw_profile_at((UIntPtr)found.Count, &native) == STW_OK)
                found.Add(new Profile(native, new ProfileOp[0]));
            return found;
        }

        /// <summary>Reads a profile that <see cref="Trainer.Calibrate"/> returned.</summary>
        /// <exception cref="StowageException">Corrupt, which names the wrong figure, op, device or
        /// version</exception>
        public static Profile Read(string profile)
        {
            stw_profile_info native = stw_profile_info.Sized();
            stw_profile_op_info op = stw_profile_op_info.Sized();
            stw_error error = stw_error.Sized();
            var ops = new List<ProfileOp>();
            using (var texts = new Texts())
            {
                byte* text = texts.Of(Numbers.NotNull(profile, nameof(profile)), out UIntPtr size);
                Errors.Check(stw_profile_read(text, size, &native, &error), &error);
                while (stw_profile_op_at(text, size, (UIntPtr)ops.Count, &op) == STW_OK)
                    ops.Add(new ProfileOp(op));
            }
            return new Profile(native, ops);
        }
    }
}
