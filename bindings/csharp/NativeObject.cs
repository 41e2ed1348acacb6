using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Stowage
{
    /// <summary>Something of the library's that is given back once: by Dispose, or some time after it was forgotten; in the middle of a call, after that.</summary>
    public abstract class NativeObject : IDisposable
    {
        private readonly object gate = new object();
        private NativeHandle handle;
        private volatile bool isDisposed;   // the handle is closed later, where something is under way, or others need it

        internal NativeObject()
        {
        }

        /// <summary>Takes what the library made, and how it is given back, on any thread.</summary>
        internal void Own(IntPtr pointer, Action<IntPtr> end)
        {
            handle = new NativeHandle(pointer, end);
        }

        /// <summary>Once more is nothing. What is under way goes on to its end; what comes afterwards throws ObjectDisposedException.</summary>
        public void Dispose()
        {
            isDisposed = true;
            handle.Dispose();
        }

        /// <summary>It stays open until what is returned is disposed of.</summary>
        internal Held Hold()
        {
            return new Held(OpenHandle(), null);
        }

        /// <summary>The same, for this thread alone, which may do so once more.</summary>
        internal Held HoldAlone()
        {
            if (!Monitor.TryEnter(gate))
                throw new StowageException(Status.BadState, $"another thread is using this {GetType().Name}, which is for one at a time");
            try
            {
                return new Held(OpenHandle(), gate);
            }
            catch
            {
                Monitor.Exit(gate);
                throw;
            }
        }

        private NativeHandle OpenHandle()
        {
            return isDisposed ? throw new ObjectDisposedException(GetType().Name) : handle;
        }
    }

    internal sealed class NativeHandle : SafeHandle
    {
        private readonly Action<IntPtr> end;

        public NativeHandle(IntPtr pointer, Action<IntPtr> end) : base(IntPtr.Zero, true)
        {
            this.end = end;
            SetHandle(pointer);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        protected override bool ReleaseHandle()
        {
            end(handle);
            return true;
        }
    }

    internal struct Held : IDisposable
    {
        private readonly object gate;

        public NativeHandle Handle { get; }
        public IntPtr Pointer { get; }

        public Held(NativeHandle handle, object gate)
        {
            bool isHeld = false;
            handle.DangerousAddRef(ref isHeld);   // throws where it was closed just now
            Handle = handle;
            Pointer = handle.DangerousGetHandle();
            this.gate = gate;
        }

        public void Dispose()
        {
            Handle.DangerousRelease();
            if (gate != null)
                Monitor.Exit(gate);
        }
    }
}
