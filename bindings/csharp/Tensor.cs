using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Stowage
{
    /// <summary>The format in which a tensor of a trainer is stored.</summary>
    public enum DType
    {
        /// <summary>fp32</summary>
        Float32,
        /// <summary>The upper half of an fp32.</summary>
        Bfloat16,
        /// <summary>IEEE 754 binary16.</summary>
        Float16,
    }

    /// <summary>A copy of a tensor of a trainer.</summary>
    public sealed class Tensor
    {
        internal Tensor(TensorView view)
        {
            Shape = view.Shape;
            DType = view.DType;
            Values = new float[view.Count];
            view.CopyTo(0, Values, 0, Values.Length);
            if (DType == DType.Float32)
                return;
            Bits = new ushort[view.Count];
            view.CopyBitsTo(0, Bits, 0, Bits.Length);
        }

        /// <summary>Rows first.</summary>
        public IReadOnlyList<long> Shape { get; }
        /// <summary>The format in which it is stored.</summary>
        public DType DType { get; }
        /// <summary>The numbers, for every type.</summary>
        public float[] Values { get; }
        /// <summary>For 16-bit types: the bits as they are stored; else null.</summary>
        public ushort[] Bits { get; }
    }

    /// <summary>A view of a tensor in a trainer's memory, without a copy. The arena stays until the view is
    /// disposed of, even if the trainer is disposed of before. Until then the trainer cannot be planned
    /// again. Numbers that the trainer computes at the same time become visible as they are
    /// written.</summary>
    public sealed unsafe class TensorView : NativeObject
    {
        private readonly byte* data;
        private readonly bool onHost;

        /// <summary>Takes a tensor that the library exported and that was counted as a view of this
        /// trainer.</summary>
        internal TensorView(DLManagedTensorVersioned* exported, Action end)
        {
            Own((IntPtr)exported, pointer =>
            {
                DLManagedTensorVersioned.Delete((DLManagedTensorVersioned*)pointer);
                end();
            });
            DLTensor tensor = exported->dl_tensor;
            if (exported->major != 1 || tensor.dtype.lanes != 1 ||
                (tensor.dtype.bits != 16 &&
                 (tensor.dtype.bits != 32 || tensor.dtype.code != DLManagedTensorVersioned.Float)))
            {
                uint major = exported->major;
                Dispose();
                throw new StowageException(Status.Unsupported,
                    $"a tensor of DLPack {major}, of kind {tensor.dtype.code} in {tensor.dtype.bits} bits");
            }
            data = (byte*)tensor.data + tensor.byte_offset;
            onHost = tensor.device.device_type == DLManagedTensorVersioned.Host;
            DType = tensor.dtype.code == DLManagedTensorVersioned.Bfloat ? DType.Bfloat16
                : tensor.dtype.bits == 16 ? DType.Float16 : DType.Float32;
            var shape = new long[tensor.ndim];
            Count = 1;
            for (int i = 0; i < shape.Length; ++i)
                Count *= shape[i] = tensor.shape[i];
            Shape = shape;
        }

        /// <summary>The shape, rows first. Elements are contiguous.</summary>
        public IReadOnlyList<long> Shape { get; }
        /// <summary>The format in which it is stored.</summary>
        public DType DType { get; }
        /// <summary>The number of elements.</summary>
        public long Count { get; }

        /// <summary>The address of the first element, in the device's memory, until the view is disposed
        /// of.</summary>
        public IntPtr Address
        {
            get
            {
                using (Hold())
                    return (IntPtr)data;
            }
        }

        /// <summary>An element, of any type.</summary>
        /// <exception cref="StowageException">Unsupported if the tensor is in a GPU's memory</exception>
        public float this[long index]
        {
            get
            {
                using (HoldPart(index, 1))
                    return Element(index);
            }
        }

        /// <summary>Copies some elements, of any type, from index `from` on.</summary>
        /// <exception cref="StowageException">Unsupported if the tensor is in a GPU's memory</exception>
        public void CopyTo(long from, float[] to, int at, int count)
        {
            CheckPart(to, at, count);
            using (HoldPart(from, count))
                if (DType == DType.Float32)
                    Marshal.Copy((IntPtr)((float*)data + from), to, at, count);
                else
                    for (int i = 0; i < count; ++i)
                        to[at + i] = Element(from + i);
        }

        /// <summary>Copies some elements of 16 bits as they are stored.</summary>
        /// <exception cref="StowageException">Unsupported if the elements do not have 16 bits, or are in a
        /// GPU's memory</exception>
        public void CopyBitsTo(long from, ushort[] to, int at, int count)
        {
            if (DType == DType.Float32)
                throw new StowageException(Status.Unsupported, "tensor: its elements have 32 bits");
            CheckPart(to, at, count);
            using (HoldPart(from, count))
                for (int i = 0; i < count; ++i)
                    to[at + i] = ((ushort*)data)[from + i];
        }

        private Held HoldPart(long from, long count)
        {
            if (!onHost)
                throw new StowageException(Status.Unsupported, "tensor: it lies in a GPU's memory");
            if (from < 0 || count < 0 || from > Count - count)
                throw new ArgumentOutOfRangeException(nameof(from),
                    $"expected {count} of {Count} elements, from {from} on");
            return Hold();
        }

        private static void CheckPart(Array to, int at, int count)
        {
            if (at < 0 || count < 0 || at > Numbers.NotNull(to, nameof(to)).Length - count)
                throw new ArgumentOutOfRangeException(nameof(at),
                    $"expected {count} of {to.Length} numbers, from {at} on");
        }

        private float Element(long index)
        {
            switch (DType)
            {
                case DType.Float32: return ((float*)data)[index];
                case DType.Bfloat16: return OfBits((uint)((ushort*)data)[index] << 16);
                default: return OfFloat16(((ushort*)data)[index]);
            }
        }

        private static float OfBits(uint bits)
        {
            return *(float*)&bits;
        }

        /// <summary>A sign, five bits of exponent, ten of the fraction.</summary>
        private static float OfFloat16(ushort bits)
        {
            uint sign = (uint)(bits >> 15) << 31, exponent = (uint)(bits >> 10) & 31,
                fraction = (uint)bits & 1023;
            if (exponent == 31)
                return OfBits(sign | 255u << 23 | fraction << 13);
            if (exponent > 0)
                return OfBits(sign | exponent + 112 << 23 | fraction << 13);
            float small = fraction / (float)(1 << 24);   // exactly
            return sign == 0 ? small : -small;
        }
    }
}
