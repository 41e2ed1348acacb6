using System;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Stowage;

internal sealed partial class Cases
{
    public void AnyOrderOfEnds()
    {
        var memory = new CountedMemory();
        Device device = World.OpenCpu(new DeviceOptions { Memory = memory });
        var model = new Model(new ModelOptions { ConfigJson = World.Gpt2 });
        var plan = new Plan(model, World.Small());
        var trainer = new Trainer(device, model, plan);
        Dataset data = Data();
        device.Dispose();
        model.Dispose();
        plan.Dispose();
        model.Dispose();   // a second Dispose does nothing
        trainer.Step(World.Batch(), 1e-3);
        Equal(Throws<ObjectDisposedException>(() => { DeviceInfo none = device.Info; }).ObjectName, "Device");
        Throws<ObjectDisposedException>(() => { ModelInfo none = model.Info; });
        Throws<ObjectDisposedException>(() => model.Labels());
        Throws<ObjectDisposedException>(() => { string none = plan.Report; });
        Throws<ObjectDisposedException>(() => new Plan(model, World.Small()));
        Throws<ObjectDisposedException>(() => new Trainer(device, model, plan));
        True(memory.Held > 0);
        // Disposed by a callback in the middle of a run, the trainer stays open until the run ends.
        Equal(trainer.Run(data, new RunOptions { Until = 1L << 40, Progress = now =>
        {
            trainer.Dispose();
            data.Dispose();
            Throws<ObjectDisposedException>(() => trainer.Step(World.Batch(), 1e-3));
            True(memory.Held > 0);
            return now.Batches < 3;
        } }), false);
        Equal(memory.Held, 0);
        Throws<ObjectDisposedException>(() => trainer.Step(World.Batch(), 1e-3));
        Throws<ObjectDisposedException>(() => trainer.Cancel());
        Throws<ObjectDisposedException>(() => { Progress none = trainer.Progress; });
        Throws<ObjectDisposedException>(() => { DatasetInfo none = data.Info; });
        var other = new World();
        // on another thread, while the token is still registered
        Task run = Task.Run(() => Throws<OperationCanceledException>(() =>
        {
            using (var stop = new CancellationTokenSource())
            using (Dataset again = Data())
                other.Trainer.Run(again, new RunOptions { Until = 1L << 40,
                    Progress = now =>
                    {
                        if (now.Batches == 2) { Task.Run(() => other.Dispose()).Wait(); stop.Cancel(); }
                        return true;
                    } }, stop.Token);
        }));
        run.Wait();
        Throws<ObjectDisposedException>(() => other.Steps(1));
    }

    // Has a stack frame of its own, so that no local keeps the objects alive. The callbacks refer to the
    // objects that own them.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Forget(CountedMemory memory)
    {
        for (int i = 0; i < 3; ++i)
        {
            World world = null;
            int heard = 0;
            world = new World(null, new TrainerOptions { GradientHook = gradients => GC.KeepAlive(world) },
                null, new DeviceOptions { Memory = memory, LogLevel = LogLevel.Info,
                    Log = (level, component, text) => { ++heard; GC.KeepAlive(world); } });
            world.Steps(1);
            world.Trainer.View(0);
        }
        True(memory.Held > 0);
    }

    public void UnreachableObjectsEnd()
    {
        var memory = new CountedMemory();
        // on a thread whose stack is gone, because mono treats any word on a stack as a possible reference
        Task.Factory.StartNew(() => Forget(memory), TaskCreationOptions.LongRunning).Wait();
        for (int i = 0; i < 500 && memory.Held > 0; ++i)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(1);
        }
        Equal(memory.Held, 0);
    }

    // In the middle of every step, moves objects on the heap and allocates others in their place.
    private sealed class Moves : IExecutor
    {
        public static int[] Taken;

        public void Run(int tasks, Action<int> task)
        {
            GC.Collect(0);
            for (int i = 0; i < 50; ++i)
                Taken = Enumerable.Repeat(63, World.Samples * World.Length).ToArray();
            for (int i = 0; i < tasks; ++i)
                task(i);
        }
    }

    public void BatchesStayWhereTheyAre()
    {
        // later samples are read after the first ones are computed
        PlanOptions plan = World.Small(o => o.MicroBatch = 1);
        using (World quiet = new World(plan), moved = new World(plan, null, null,
            new DeviceOptions { Executor = new Moves() }))
        {
            quiet.Steps(5);
            moved.Steps(5);
            Equal(moved.Weights(), quiet.Weights());
        }
    }

    public void GarbageIsCollectedMeanwhile()
    {
        bool isOver = false;
        int collections = 0;
        var collector = new Thread(() =>
        {
            while (!Volatile.Read(ref isOver))
            {
                GC.Collect();
                ++collections;
            }
        });
        ulong expected;
        using (var quiet = new World())
        {
            quiet.Steps(20);
            expected = quiet.Weights();
        }
        collector.Start();
        try
        {
            for (int round = 0; round < 3; ++round)
            {
                var options = new DeviceOptions { Memory = new CountedMemory(), Executor = new Backwards(),
                    LogLevel = LogLevel.Info, Log = (level, component, text) => { } };
                using (var world = new World(null, new TrainerOptions {
                    GradientHook = gradients => gradients.LossSum = new[] { gradients.LossSum }[0] }, null,
                    options))
                {
                    world.Steps(20);
                    Equal(world.Weights(), expected);
                    using (Dataset data = Data())
                        True(world.Trainer.Run(data,
                            new RunOptions { Until = 30, Progress = now =>
                                world.Trainer.Generate(new[] { 1 }, new GenerateOptions { Count = 2 })
                                    .Length == 2 }));
                }
            }
        }
        finally
        {
            Volatile.Write(ref isOver, true);
            collector.Join();
        }
        True(collections > 10);
    }
}
