using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Stowage
{
    /// <summary>An object of the library. It is destroyed once: by Dispose, or by the garbage collector. If a
    /// call uses it, it is destroyed after that call.</summary>
    public abstract class NativeObject : IDisposable
    {
        private readonly object gate = new object();
        private NativeHandle handle;
        // the handle is closed later if a call is in progress or other objects need it
        private volatile bool isDisposed;

        internal NativeObject()
        {
        }

        /// <summary>Takes an object of the library and the function that destroys it, which may run on any
        /// thread.</summary>
        internal void Own(IntPtr pointer, Action<IntPtr> end)
        {
            handle = new NativeHandle(pointer, end);
        }

        /// <summary>Disposes of the object; disposing again does nothing. A call in progress continues to its
        /// end. A later use throws ObjectDisposedException.</summary>
        public void Dispose()
        {
            isDisposed = true;
            handle.Dispose();
        }

        /// <summary>Keeps the object open until the result is disposed of.</summary>
        internal Held Hold()
        {
            return new Held(OpenHandle(), null);
        }

        /// <summary>Like Hold, and keeps other threads out. This thread may call it again.</summary>
        internal Held HoldAlone()
        {
            if (!Monitor.TryEnter(gate))
                throw new StowageException(Status.BadState,
                    $"another thread is using this {GetType().Name}, " +
                    "which only one thread at a time may use");
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
            handle.DangerousAddRef(ref isHeld);   // throws if it was closed just now
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
