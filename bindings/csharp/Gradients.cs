using System;
using System.Runtime.InteropServices;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The values that a hook may change while it is called, before the update. Adding up all of
    /// them over several trainers makes one step of the joint batch. Numbers in a GPU's memory cannot be read
    /// or written here (<see cref="Status.Unsupported"/>): use their addresses, in the order of the
    /// stream.</summary>
    public sealed unsafe class Gradients
    {
        private readonly stw_gradients native;
        private bool isOver;

        internal Gradients(stw_gradients native, bool onHost)
        {
            this.native = native;
            OnHost = onHost;
        }

        internal void End()
        {
            isOver = true;
        }

        /// <summary>Whether the gradients are in host memory.</summary>
        public bool OnHost { get; }
        /// <summary>The number of floats, including gaps, which you ignore.</summary>
        public long Count { get { return Numbers.Of(native.count); } }
        /// <summary>The scale that the gradients contain: 1 unless the precision is fp16.</summary>
        public double Scale { get { return native.scale; } }
        /// <summary>The address of Count floats: gradients of all trainable parameters, sums over tokens that
        /// are not divided by their number.</summary>
        public IntPtr DataAddress { get { return Address(native.data); } }
        /// <summary>The address of a double.</summary>
        public IntPtr LossSumAddress { get { return Address(native.loss_sum); } }
        /// <summary>The address of an unsigned number of 64 bits.</summary>
        public IntPtr TargetCountAddress { get { return Address(native.target_count); } }
        /// <summary>The address of an unsigned number of 32 bits; 0 if the library does not know
        /// it.</summary>
        public IntPtr CorrectPairsAddress { get { return Address(native.correct_pairs); } }
        /// <summary>CUDA: the stream in whose order the values are computed and used.</summary>
        public IntPtr Stream { get { return Address(native.stream); } }

        /// <summary>One gradient.</summary>
        public float this[long index]
        {
            get { return *At(index, 1); }
            set { *At(index, 1) = value; }
        }

        /// <summary>Copies some gradients, from index `from` on, into an array.</summary>
        public void CopyTo(long from, float[] to, int at, int count)
        {
            CheckPart(to, at, count);
            Marshal.Copy((IntPtr)At(from, count), to, at, count);
        }

        /// <summary>Overwrites some gradients, from index `to` on.</summary>
        public void CopyFrom(float[] from, int at, int count, long to)
        {
            CheckPart(from, at, count);
            Marshal.Copy(from, at, (IntPtr)At(to, count), count);
        }

        /// <summary>The sum of the losses of all targets.</summary>
        public double LossSum
        {
            get { return *(double*)HostPointer(native.loss_sum); }
            set { *(double*)HostPointer(native.loss_sum) = value; }
        }

        /// <summary>The number of targets.</summary>
        public long TargetCount
        {
            get { return Numbers.Of(*(ulong*)HostPointer(native.target_count)); }
            set { *(ulong*)HostPointer(native.target_count) = Numbers.Unsigned(value, nameof(TargetCount)); }
        }

        /// <summary>With a preference: the number of pairs whose chosen document was ahead. null, and not
        /// settable, if the library does not know it.</summary>
        public int? CorrectPairs
        {
            get
            {
                return HostPointer(native.correct_pairs) == null ? (int?)null
                                                                 : Numbers.Of(*native.correct_pairs);
            }
            set
            {
                if (HostPointer(native.correct_pairs) == null || value == null)
                    throw new InvalidOperationException(
                        "CorrectPairs: this library does not know it, or there is no number");
                *native.correct_pairs = Numbers.Unsigned(value.Value, nameof(CorrectPairs));
            }
        }

        private float* At(long index, long count)
        {
            if (index < 0 || count < 0 || index > Count - count)
                throw new ArgumentOutOfRangeException(nameof(index),
                    $"expected {count} of {Count} gradients, from {index} on");
            return (float*)HostPointer(native.data) + index;
        }

        private static void CheckPart(float[] values, int at, int count)
        {
            if (at < 0 || count < 0 || at > Numbers.NotNull(values, nameof(values)).Length - count)
                throw new ArgumentOutOfRangeException(nameof(at),
                    $"expected {count} of {values.Length} numbers, from {at} on");
        }

        private IntPtr Address(void* pointer)
        {
            if (isOver)
                throw new ObjectDisposedException(nameof(Gradients),
                    "the hook that received these gradients has returned");
            return (IntPtr)pointer;
        }

        private void* HostPointer(void* pointer)
        {
            Address(pointer);
            if (!OnHost)
                throw new StowageException(Status.Unsupported, "gradients: they lie in a GPU's memory");
            return pointer;
        }
    }
}
