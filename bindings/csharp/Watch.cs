using System;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>The progress of a long call.</summary>
    public sealed class WatchState
    {
        internal WatchState(stw_watch_info native)
        {
            Work = (Work)native.work;
            Unit = (Unit)native.unit;
            Done = Numbers.Of(native.done);
            Total = Numbers.Of(native.total);
            Share = native.share;
        }

        /// <summary>The kind of call in progress.</summary>
        public Work Work { get; }
        /// <summary>The unit of Done and Total.</summary>
        public Unit Unit { get; }
        /// <summary>Finished work. When no call is in progress: that of the last call.</summary>
        public long Done { get; }
        /// <summary>All work of the call; 0: unknown.</summary>
        public long Total { get; }
        /// <summary>The share of the work that is done, 0 to 1.</summary>
        public double Share { get; }
    }

    /// <summary>stw_watch_options; null: unset.</summary>
    public sealed class WatchOptions
    {
        /// <summary>Called in the middle of a long call. A result of false cancels the call. An exception
        /// cancels it, too, and the call throws it.</summary>
        public Func<WatchState, bool> Notify { get; set; }
        /// <summary>Shortest time between two calls of Notify; null: 100; 0: Notify is called after every
        /// piece of work.</summary>
        public int? IntervalMilliseconds { get; set; }
    }

    /// <summary>Cancels long calls and reports their progress, one call at a time. Put it into PlanOptions,
    /// DatasetOptions and TrainerOptions, or pass it to Plan's Frontier and Picture and to Model's
    /// Export.</summary>
    public sealed unsafe class Watch : NativeObject
    {
        private readonly WatchCalls calls;

        /// <summary>Creates a watch.</summary>
        /// <exception cref="StowageException">BadArgument</exception>
        public Watch(WatchOptions options = null)
        {
            stw_watch_options given = stw_watch_options.Sized();
            if (options?.IntervalMilliseconds != null)
            {
                given.set_mask = STW_SET_INTERVAL;
                given.interval_milliseconds = Numbers.Unsigned(options.IntervalMilliseconds.Value,
                    nameof(options.IntervalMilliseconds));
            }
            if (options?.Notify != null)
            {
                calls = new WatchCalls(options.Notify);
                calls.Enter(ref given);
            }
            stw_watch* watch = null;
            stw_error error = stw_error.Sized();
            WatchCalls called = calls;   // not `this`, which would be a reference cycle
            try
            {
                Errors.Check(stw_watch_create(&watch, &given, &error), &error);
            }
            catch
            {
                called?.End();
                throw;
            }
            Own((IntPtr)watch, pointer =>
            {
                stw_watch_destroy((stw_watch*)pointer);
                called?.End();
            });
        }

        /// <summary>Ends the call in progress that uses the watch, or else the next one. For any
        /// thread.</summary>
        public void Cancel()
        {
            using (Held held = Hold())
                stw_watch_cancel((stw_watch*)held.Pointer);
        }

        /// <summary>The progress of the call in progress. For any thread.</summary>
        public WatchState State
        {
            get
            {
                stw_watch_info native = stw_watch_info.Sized();
                using (Held held = Hold())
                    Errors.Check(stw_watch_query((stw_watch*)held.Pointer, &native));
                return new WatchState(native);
            }
        }

        /// <summary>The exception of Notify in the call that is over.</summary>
        internal ExceptionDispatchInfo TakeFailure()
        {
            return calls?.Take();
        }
    }

    /// <summary>The callback of a watch.</summary>
    internal sealed unsafe class WatchCalls : Carrier
    {
        private static readonly stw_watch_fn OfNotify = OnNotify;
        private readonly Func<WatchState, bool> notify;

        public WatchCalls(Func<WatchState, bool> notify)
        {
            this.notify = notify;
        }

        public void Enter(ref stw_watch_options given)
        {
            given.notify = Marshal.GetFunctionPointerForDelegate(OfNotify);
            given.user = User;
        }

        private static int OnNotify(void* user, stw_watch_info* argument)
        {
            WatchCalls calls = Of<WatchCalls>(user);
            stw_watch_info native = Copied(argument);
            return calls.Guard(() => calls.notify(new WatchState(native)));
        }

        private static stw_watch_info Copied(stw_watch_info* argument)
        {
            stw_watch_info native = stw_watch_info.Sized();
            Copy(argument, &native, sizeof(stw_watch_info));
            return native;
        }
    }
}
