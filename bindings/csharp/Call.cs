using System;
using System.Runtime.ExceptionServices;
using System.Threading;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A call that computes with a trainer, for one thread at a time. A cancellation token stops
    /// this call and no later one: if it comes after the end of the call, TakeBack removes the pending
    /// cancel. This call throws the exceptions of callbacks.</summary>
    internal sealed unsafe class Call : IDisposable
    {
        private readonly Trainer owner;
        private readonly CancellationToken cancellation;
        private readonly CancellationTokenRegistration registration;
        private Held held;
        private volatile bool isCancelRequested;

        public Call(Trainer owner, CancellationToken cancellation)
        {
            this.owner = owner;
            this.cancellation = cancellation;
            held = owner.HoldAlone();
            try
            {
                cancellation.ThrowIfCancellationRequested();
                registration = cancellation.Register(RequestCancel);
            }
            catch
            {
                held.Dispose();
                throw;
            }
        }

        public stw_trainer* Trainer
        {
            get { return (stw_trainer*)held.Pointer; }
        }

        /// <summary>Called on any thread, at the latest before the registration's Dispose returns.</summary>
        private void RequestCancel()
        {
            isCancelRequested = true;
            stw_trainer_cancel(Trainer);
        }

        /// <summary>Throws if the call failed. A run that `carrier`'s progress callback or a cancel stopped
        /// counts as a success.</summary>
        public int End(int status, stw_error* error, Carrier carrier = null)
        {
            registration.Dispose();
            if (isCancelRequested)
                TakeBack();
            ExceptionDispatchInfo failed = owner.TakeFailure() ?? carrier?.Take();
            bool isCancel = status == STW_CANCELLED &&
                (failed == null || (failed.SourceException as StowageException)?.Status == Status.Cancelled);
            if (isCancel && cancellation.IsCancellationRequested)
                throw new OperationCanceledException(cancellation);
            failed?.Throw();
            if (status != STW_CANCELLED || carrier == null)
                Errors.Check(status, error, owner.TakeCause());
            return status;
        }

        /// <summary>Makes a call that a pending cancel stops, so that the cancel stops no later call. If no
        /// cancel is pending, the call computes the logits of one token, which are not used.</summary>
        private void TakeBack()
        {
            int token = 0;
            var none = new float[owner.Classes];
            fixed (float* to = none)
                stw_trainer_logits(Trainer, &token, 1, to, (ulong)none.Length, null);
        }

        public void Dispose()
        {
            registration.Dispose();
            held.Dispose();
        }
    }
}
