using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The host's memory for arenas. An exception of Allocate becomes the cause (InnerException) of
    /// OutOfMemory. An exception of Release is dropped.</summary>
    public interface IMemory
    {
        /// <summary>Returns at least `bytes` bytes at a multiple of the alignment, or zero. No other code
        /// uses them until they are released. On a CUDA device they are memory of the device, in the order of
        /// the stream, which is <see cref="DeviceOptions.Stream"/>.</summary>
        IntPtr Allocate(long bytes, long alignment, IntPtr stream);
        /// <summary>Frees memory that Allocate returned. Any thread may call it.</summary>
        void Release(IntPtr memory, long bytes, IntPtr stream);
    }

    /// <summary>The host's threads.</summary>
    public interface IExecutor
    {
        /// <summary>Calls task(i) once for every i in [0, tasks), at most <see cref="DeviceOptions.Threads"/>
        /// of them at the same time, and returns when all have returned. An exception ends the process,
        /// because tasks may still be running.</summary>
        void Run(int tasks, Action<int> task);
    }

    /// <summary>stw_device_options.</summary>
    public sealed class DeviceOptions
    {
        /// <summary>Where to compute. Auto: CUDA if there is a CUDA device, else the CPU.</summary>
        public Backend Backend { get; set; }
        /// <summary>The number of the CUDA device, if there are several.</summary>
        public int Ordinal { get; set; }
        /// <summary>CPU: threads that compute; 0: one for each processor. CUDA: threads that draw weights or
        /// quantize.</summary>
        public int Threads { get; set; }
        /// <summary>CPU: the instruction set.</summary>
        public Isa Isa { get; set; }
        /// <summary>The messages that are logged and kept.</summary>
        public LogLevel LogLevel { get; set; } = LogLevel.Warning;
        /// <summary>Receives level, component and message, on the thread that calls, which may be a thread of
        /// the runtime. Its exceptions are dropped.</summary>
        public Action<LogLevel, string, string> Log { get; set; }
        /// <summary>The host's memory for arenas; null: the library allocates.</summary>
        public IMemory Memory { get; set; }
        /// <summary>null: the library's own threads, which sleep when they are idle.</summary>
        public IExecutor Executor { get; set; }
        /// <summary>CUDA: a stream of the device's primary context, which must live as long as the device and
        /// its trainers are open; zero: the library makes one.</summary>
        public IntPtr Stream { get; set; }
        /// <summary>CUDA: the path of a libcublasLt.so.13; null: the one that the system finds.</summary>
        public string CublasLt { get; set; }
        /// <summary>CUDA: the path of a libcudnn.so.9; null: the one that the system finds.</summary>
        public string Cudnn { get; set; }
    }

    /// <summary>The description of a device.</summary>
    public sealed unsafe class DeviceInfo
    {
        internal DeviceInfo(stw_device_info native)
        {
            Backend = (Backend)native.backend;
            MemoryTotal = Numbers.Of(native.memory_total);
            MemoryFree = Numbers.Of(native.memory_free);
            MemoryReserved = Numbers.Of(native.memory_reserved);
            ComputeMajor = native.compute_major;
            ComputeMinor = native.compute_minor;
            Threads = Numbers.Of(native.threads);
            Isa = (Isa)native.isa;
            Name = Texts.Read(native.name, 64);
            Profile = Texts.Read(native.profile, 24);
        }

        /// <summary>CPU or CUDA.</summary>
        public Backend Backend { get; }
        /// <summary>Bytes.</summary>
        public long MemoryTotal { get; }
        /// <summary>Bytes that are available now; 0 for a CUDA device that is not open.</summary>
        public long MemoryFree { get; }
        /// <summary>CUDA: bytes of a plan's reserve that the open device's context already holds.</summary>
        public long MemoryReserved { get; }
        /// <summary>CUDA: compute capability.</summary>
        public int ComputeMajor { get; }
        /// <summary>CUDA: compute capability.</summary>
        public int ComputeMinor { get; }
        /// <summary>CPU.</summary>
        public int Threads { get; }
        /// <summary>CPU.</summary>
        public Isa Isa { get; }
        /// <summary>The name that the system gives it.</summary>
        public string Name { get; }
        /// <summary>The name for <see cref="PlanOptions.Device"/>.</summary>
        public string Profile { get; }
    }

    /// <summary>A process that holds memory of a CUDA device.</summary>
    public sealed unsafe class MemoryHolder
    {
        internal MemoryHolder(stw_memory_holder native)
        {
            Process = Numbers.Of(native.process);
            Bytes = Numbers.Of(native.bytes);
            Name = Texts.Read(native.name, 64);
        }

        /// <summary>The process id.</summary>
        public long Process { get; }
        /// <summary>The bytes that it holds.</summary>
        public long Bytes { get; }
        /// <summary>The name of the program; "" if it is unknown.</summary>
        public string Name { get; }
    }

    /// <summary>A message for <see cref="DeviceOptions.Log"/>.</summary>
    public sealed unsafe class LogMessage
    {
        internal LogMessage(stw_log_message native)
        {
            Level = (LogLevel)native.level;
            Number = Numbers.Of(native.number);
            Component = Texts.Read(native.component, 32);
            Text = Texts.Read(native.text, 224);
        }

        /// <summary>The level of the message.</summary>
        public LogLevel Level { get; }
        /// <summary>1, 2, … in the order they were written.</summary>
        public long Number { get; }
        /// <summary>The part of the library that wrote it.</summary>
        public string Component { get; }
        /// <summary>The text, cut to fit.</summary>
        public string Text { get; }
    }

    /// <summary>An open device. Even if it is disposed of, it stays open until the last trainer on it has
    /// ended.</summary>
    public sealed unsafe class Device : NativeObject
    {
        /// <summary>Opens a device.</summary>
        /// <exception cref="StowageException">Unsupported if this library or machine has no such backend or
        /// instruction set</exception>
        public Device(DeviceOptions options = null)
        {
            options = options ?? new DeviceOptions();
            HostCalls calls = Calls = new HostCalls(options);
            try
            {
                Own((IntPtr)Open(options, calls), pointer =>
                {
                    stw_device_close((stw_device*)pointer);
                    calls.End();
                });
            }
            catch
            {
                calls.End();
                throw;
            }
        }

        internal HostCalls Calls { get; }

        private static stw_device* Open(DeviceOptions options, HostCalls calls)
        {
            stw_device_options given = stw_device_options.Sized();
            given.backend = (uint)options.Backend;
            given.ordinal = options.Ordinal;
            given.threads = Numbers.Unsigned(options.Threads, nameof(options.Threads));
            given.isa = (uint)options.Isa;
            given.log_level = (int)options.LogLevel;
            given.stream = (void*)options.Stream;
            calls.Enter(ref given);
            stw_device* device = null;
            stw_error error = stw_error.Sized();
            using (var texts = new Texts())
            {
                given.cublaslt = texts.Of(options.CublasLt);
                given.cudnn = texts.Of(options.Cudnn);
                Errors.Check(stw_device_open(&device, &given, &error), &error);
            }
            GC.KeepAlive(calls);
            return device;
        }

        /// <summary>The description of the device, with the memory that is free now.</summary>
        public DeviceInfo Info
        {
            get
            {
                stw_device_info native = stw_device_info.Sized();
                using (Held held = Hold())
                    Errors.Check(stw_device_query((stw_device*)held.Pointer, &native));
                return new DeviceInfo(native);
            }
        }

        /// <summary>The processes that hold memory of a CUDA device, the largest first, as far as the driver
        /// reports them.</summary>
        public IReadOnlyList<MemoryHolder> Holders()
        {
            var found = new List<MemoryHolder>();
            stw_memory_holder native = stw_memory_holder.Sized();
            using (Held held = Hold())
                while (stw_device_holder_at((stw_device*)held.Pointer, (UIntPtr)found.Count,
                    &native) == STW_OK)
                    found.Add(new MemoryHolder(native));
            return found;
        }

        /// <summary>The oldest kept message whose number is larger than `after`; null if there is
        /// none.</summary>
        public LogMessage NextLog(long after)
        {
            stw_log_message native = stw_log_message.Sized();
            using (Held held = Hold())
                Errors.Check(stw_device_next_log((stw_device*)held.Pointer,
                    Numbers.Unsigned(after, nameof(after)), &native));
            return native.number == 0 ? null : new LogMessage(native);
        }

        /// <summary>The devices that can train on this machine, the CPU first.</summary>
        public static IReadOnlyList<DeviceInfo> All()
        {
            var found = new List<DeviceInfo>();
            while (true)
            {
                stw_device_info native = stw_device_info.Sized();
                stw_error error = stw_error.Sized();
                int status = stw_device_at((UIntPtr)found.Count, &native, &error);
                if (status == STW_BAD_ARGUMENT)
                    return found;
                Errors.Check(status, &error);
                found.Add(new DeviceInfo(native));
            }
        }
    }
}
