using System;
using System.Runtime.InteropServices;

// Tensors as they cross the API: DLPack 1.0 (https://dmlc.github.io/dlpack, "C API").
namespace Stowage
{
    [StructLayout(LayoutKind.Sequential)]
    internal struct DLDevice
    {
        public int device_type;
        public int device_id;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct DLDataType
    {
        public byte code;
        public byte bits;
        public ushort lanes;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct DLTensor
    {
        public void* data;
        public DLDevice device;
        public int ndim;
        public DLDataType dtype;
        public long* shape;
        public long* strides;
        public ulong byte_offset;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct DLManagedTensorVersioned
    {
        public const int Host = 1;
        public const byte Int = 0, Float = 2, Bfloat = 4;

        public uint major;
        public uint minor;
        public void* manager_ctx;
        public IntPtr deleter;
        public ulong flags;
        public DLTensor dl_tensor;

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void Deleter(DLManagedTensorVersioned* self);

        /// <summary>A compact tensor of 32-bit elements in host memory, for the duration of a call.</summary>
        public static DLManagedTensorVersioned Borrowed(IntPtr values, byte code, long* shape, int ndim)
        {
            var tensor = new DLManagedTensorVersioned { major = 1 };
            tensor.dl_tensor.data = (void*)values;
            tensor.dl_tensor.device.device_type = Host;
            tensor.dl_tensor.ndim = ndim;
            tensor.dl_tensor.dtype = new DLDataType { code = code, bits = 32, lanes = 1 };
            tensor.dl_tensor.shape = shape;
            return tensor;
        }

        /// <summary>Deletes a tensor that the library exported.</summary>
        public static void Delete(DLManagedTensorVersioned* exported)
        {
            if (exported->deleter != IntPtr.Zero)
                Marshal.GetDelegateForFunctionPointer<Deleter>(exported->deleter)(exported);
        }
    }
}
