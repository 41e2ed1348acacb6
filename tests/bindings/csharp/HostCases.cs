using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Stowage;

internal sealed partial class Cases
{
    private sealed class CountedMemory : IMemory
    {
        private readonly Dictionary<IntPtr, IntPtr> taken = new Dictionary<IntPtr, IntPtr>();
        private long held;
        public long Most;

        public long Held
        {
            get { return Interlocked.Read(ref held); }
        }

        public IntPtr Allocate(long bytes, long alignment, IntPtr stream)
        {
            IntPtr memory = Marshal.AllocHGlobal((IntPtr)(bytes + alignment));
            var aligned = (IntPtr)(((long)memory + alignment - 1) / alignment * alignment);
            lock (taken)
                taken.Add(aligned, memory);
            Most = Math.Max(Most, Interlocked.Add(ref held, bytes));
            return aligned;
        }

        public void Release(IntPtr memory, long bytes, IntPtr stream)
        {
            lock (taken)
            {
                Marshal.FreeHGlobal(taken[memory]);
                taken.Remove(memory);
            }
            Interlocked.Add(ref held, -bytes);
        }
    }

    private sealed class NoMemory : IMemory
    {
        public IntPtr Allocate(long bytes, long alignment, IntPtr stream)
        {
            throw new InvalidOperationException("of the host");
        }

        public void Release(IntPtr memory, long bytes, IntPtr stream)
        {
        }
    }

    // Runs the tasks in reverse order, the odd ones on another thread.
    private sealed class Backwards : IExecutor
    {
        public int Calls;

        public void Run(int tasks, Action<int> task)
        {
            Interlocked.Increment(ref Calls);
            Task odd = Task.Run(() =>
            {
                for (int i = tasks - 1; i >= 0; --i)
                    if (i % 2 == 1)
                        task(i);
            });
            for (int i = tasks - 1; i >= 0; --i)
                if (i % 2 == 0)
                    task(i);
            odd.Wait();
        }
    }

    public void TheHostProvidesMemoryThreadsAndLog()
    {
        var memory = new CountedMemory();
        var executor = new Backwards();
        var heard = new List<string>();
        var options = new DeviceOptions { Memory = memory, Executor = executor, LogLevel = LogLevel.Info,
            Log = (level, component, text) => heard.Add($"{level} {component} {text}") };
        using (World hosted = new World(null, null, null, options), own = new World())
        {
            using (var plan = new Plan(hosted.Model, World.Small()))
                Equal(memory.Most, plan.Info.Arena);
            hosted.Steps(3);
            own.Steps(3);
            Equal(hosted.Weights(), own.Weights());
            True(executor.Calls > 0);
            foreach (int i in new[] { 0, 1 })   // skipped steps are reported
                hosted.Trainer.Step(new Batch { Tokens = new int[4, 16],
                    Targets = Rows.Of(Enumerable.Repeat(-100, 64).ToArray(), 16) }, 1e-3);
            LogMessage first = hosted.Device.NextLog(0), last = first;
            for (LogMessage next = first; next != null; next = hosted.Device.NextLog(next.Number))
                last = next;
            True(last.Number > first.Number && last.Text.Contains("skipped") &&
                last.Level == LogLevel.Warning);
            Equal(heard.Last(), $"{last.Level} {last.Component} {last.Text}");
            Equal(hosted.Trainer.Progress.Skipped, 2);
            Equal(hosted.Trainer.Progress.SkipReason, SkipReason.NoTarget);
        }
        Equal(memory.Held, 0);
        Equal(Throws(Status.OutOfMemory, () => new World(null, null, null,
            new DeviceOptions { Memory = new NoMemory() })).InnerException?.Message, "of the host");
        using (var deaf = new World(null, null, null, new DeviceOptions { LogLevel = LogLevel.Info,
            Log = (level, component, text) => { throw new InvalidOperationException(); } }))
            deaf.Trainer.Step(new Batch { Tokens = new int[4, 16],
                Targets = Rows.Of(Enumerable.Repeat(-100, 64).ToArray(), 16) }, 1e-3);
    }

    public void TheHostProvidesAnArena()
    {
        using (var own = new World())
        using (var plan = new Plan(own.Model, World.Small()))
        {
            own.Steps(2);
            IntPtr memory = Marshal.AllocHGlobal((IntPtr)(plan.Info.Arena + 256));
            var options = new TrainerOptions { Arena = (IntPtr)(((long)memory + 255) / 256 * 256),
                ArenaBytes = plan.Info.Arena };
            using (var hosted = new World(null, options))
            {
                hosted.Steps(2);
                Equal(hosted.Weights(), own.Weights());
                using (TensorView view = hosted.Trainer.View(0))
                    True((long)view.Address >= (long)options.Arena &&
                        (long)view.Address < (long)options.Arena + options.ArenaBytes);
            }
            options.ArenaBytes -= 1;
            Throws<StowageException>(() => new World(null, options));
            Marshal.FreeHGlobal(memory);
        }
    }
}
