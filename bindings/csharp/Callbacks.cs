using System;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Threading;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The target of a callback's user pointer. The object that may call the callback keeps this
    /// target alive, but the target does not keep that object alive. Therefore the garbage collector can end
    /// an object together with its callbacks, and these can still be called while it ends.</summary>
    internal abstract unsafe class Callee
    {
        private GCHandle handle;

        protected Callee()
        {
            handle = GCHandle.Alloc(this, GCHandleType.WeakTrackResurrection);
        }

        public void* User
        {
            get { return (void*)GCHandle.ToIntPtr(handle); }
        }

        /// <summary>Frees the handle after the last call.</summary>
        public void End()
        {
            if (handle.IsAllocated)
                handle.Free();
        }

        protected static T Of<T>(void* user) where T : Callee
        {
            return (T)GCHandle.FromIntPtr((IntPtr)user).Target;
        }

        /// <summary>Copies a callback's argument, which begins with its size. An older library may know fewer
        /// fields: the rest stays zero.</summary>
        protected static void Copy(void* argument, void* to, int bytes)
        {
            Buffer.MemoryCopy(argument, to, bytes, Math.Min(*(uint*)argument, (uint)bytes));
        }
    }

    /// <summary>A callee that keeps its exceptions, because no exception may cross C's frames. The call in
    /// which it ran throws them.</summary>
    internal abstract class Carrier : Callee
    {
        private ExceptionDispatchInfo failed;

        /// <summary>0, or 1 if the call failed.</summary>
        protected int Guard(Func<bool> call)
        {
            try
            {
                return call() ? 0 : 1;
            }
            catch (Exception exception)
            {
                failed = ExceptionDispatchInfo.Capture(exception);
                return 1;
            }
        }

        public ExceptionDispatchInfo Take()
        {
            ExceptionDispatchInfo taken = failed;
            failed = null;
            return taken;
        }
    }

    /// <summary>The callbacks of a device.</summary>
    internal sealed unsafe class HostCalls : Callee
    {
        // C keeps the addresses of the delegates, and static fields keep the delegates alive.
        private static readonly stw_log_fn OfLog = OnLog;
        private static readonly stw_allocate_fn OfAllocate = OnAllocate;
        private static readonly stw_release_fn OfRelease = OnRelease;
        private static readonly stw_run_fn OfRun = OnRun;

        private readonly Action<LogLevel, string, string> log;
        private readonly IMemory memory;
        private readonly IExecutor executor;
        private Exception failed;

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void Task(void* context, uint index);

        public HostCalls(DeviceOptions options)
        {
            log = options.Log;
            memory = options.Memory;
            executor = options.Executor;
        }

        /// <summary>The last exception of Allocate.</summary>
        public Exception Take()
        {
            return Interlocked.Exchange(ref failed, null);
        }

        public void Enter(ref stw_device_options given)
        {
            if (log != null)
            {
                given.log = Marshal.GetFunctionPointerForDelegate(OfLog);
                given.log_user = User;
            }
            if (memory != null)
            {
                given.allocate = Marshal.GetFunctionPointerForDelegate(OfAllocate);
                given.release = Marshal.GetFunctionPointerForDelegate(OfRelease);
                given.memory_user = User;
            }
            if (executor != null)
            {
                given.run = Marshal.GetFunctionPointerForDelegate(OfRun);
                given.run_user = User;
            }
        }

        private static void OnLog(void* user, int level, byte* component, byte* message)
        {
            try
            {
                Of<HostCalls>(user).log((LogLevel)level, Texts.Read(component), Texts.Read(message));
            }
            catch (Exception)   // no caller could receive it
            {
            }
        }

        private static void* OnAllocate(void* user, UIntPtr bytes, UIntPtr alignment, void* stream)
        {
            HostCalls calls = Of<HostCalls>(user);
            try
            {
                return (void*)calls.memory.Allocate(checked((long)bytes), checked((long)alignment),
                    (IntPtr)stream);
            }
            catch (Exception exception)
            {
                calls.failed = exception;
                return null;
            }
        }

        private static void OnRelease(void* user, void* released, UIntPtr bytes, void* stream)
        {
            try
            {
                Of<HostCalls>(user).memory.Release((IntPtr)released, (long)bytes, (IntPtr)stream);
            }
            catch (Exception)
            {
            }
        }

        private static void OnRun(void* user, uint tasks, IntPtr task, void* context)
        {
            try
            {
                var call = Marshal.GetDelegateForFunctionPointer<Task>(task);
                Of<HostCalls>(user).executor.Run(checked((int)tasks), index => call(context, (uint)index));
            }
            catch (Exception exception)
            {
                Environment.FailFast("stowage: an executor failed, and its tasks may still be running",
                    exception);
            }
        }
    }

    /// <summary>The gradient hook of a trainer.</summary>
    internal sealed unsafe class HookCalls : Carrier
    {
        private static readonly stw_gradient_fn OfHook = OnHook;
        private readonly Action<Gradients> hook;
        private readonly bool onHost;

        public HookCalls(Action<Gradients> hook, bool onHost)
        {
            this.hook = hook;
            this.onHost = onHost;
        }

        public void Enter(ref stw_trainer_options given)
        {
            given.gradient_hook = Marshal.GetFunctionPointerForDelegate(OfHook);
            given.gradient_user = User;
        }

        private static int OnHook(void* user, stw_gradients* argument)
        {
            HookCalls calls = Of<HookCalls>(user);
            stw_gradients native = Copied(argument);
            return calls.Guard(() =>
            {
                var given = new Gradients(native, calls.onHost);
                try
                {
                    calls.hook(given);
                    return true;
                }
                finally
                {
                    given.End();
                }
            });
        }

        private static stw_gradients Copied(stw_gradients* argument)
        {
            stw_gradients native = stw_gradients.Sized();
            Copy(argument, &native, sizeof(stw_gradients));
            return native;
        }
    }

    /// <summary>The progress callback of a run. The library calls it after every step, so that a cancellation
    /// token is checked there.</summary>
    internal sealed unsafe class ProgressCalls : Carrier
    {
        private static readonly stw_progress_fn OfProgress = OnProgress;
        private readonly Func<Progress, bool> progress;
        private readonly ulong until, every;
        private readonly CancellationToken cancellation;

        public ProgressCalls(RunOptions options, CancellationToken cancellation)
        {
            progress = options.Progress;
            until = Numbers.Unsigned(options.Until, nameof(options.Until));
            every = Math.Max(1, Numbers.Unsigned(options.ProgressEvery, nameof(options.ProgressEvery)));
            this.cancellation = cancellation;
        }

        public void Enter(ref stw_run_options given)
        {
            given.progress_every = 1;
            given.progress = Marshal.GetFunctionPointerForDelegate(OfProgress);
            given.progress_user = User;
        }

        private static int OnProgress(void* user, stw_progress* argument)
        {
            ProgressCalls calls = Of<ProgressCalls>(user);
            stw_progress native = Copied(argument);
            bool isDue = calls.progress != null &&
                (native.batches % calls.every == 0 || native.batches >= calls.until);
            return calls.Guard(() => !calls.cancellation.IsCancellationRequested &&
                (!isDue || calls.progress(new Progress(native))));
        }

        private static stw_progress Copied(stw_progress* argument)
        {
            stw_progress native = stw_progress.Sized();
            Copy(argument, &native, sizeof(stw_progress));
            return native;
        }
    }
}
