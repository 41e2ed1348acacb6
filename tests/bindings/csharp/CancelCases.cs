using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Stowage;

internal sealed partial class Cases
{
    public void TokensCancel()
    {
        using (var world = new World())
        using (Dataset data = Data())
        {
            var forever = new RunOptions { Until = 1L << 40 };
            using (var stop = new CancellationTokenSource())
            {
                Task other = Task.Run(() =>
                {
                    while (world.Trainer.Progress.Step < 3)
                        Thread.Yield();
                    stop.Cancel();
                });
                Equal(Throws<OperationCanceledException>(() => world.Trainer.Run(data, forever, stop.Token))
                    .CancellationToken, stop.Token);
                other.Wait();
                True(world.Trainer.Progress.Step >= 3);
                Throws<OperationCanceledException>(() => world.Trainer.Run(data, forever, stop.Token));
                Throws<OperationCanceledException>(() => world.Trainer.Step(World.Batch(), 1e-3, stop.Token));
            }
            world.Steps(1);   // no cancel stays pending
            // in the middle of a run, and after its last step
            foreach (long last in new[] { 1L << 40, world.Trainer.Progress.Batches + 1 })
                using (var stop = new CancellationTokenSource())
                {
                    var options = new RunOptions { Until = last, ProgressEvery = 3,
                        Progress = now => { stop.Cancel(); return true; } };
                    if (last == 1L << 40)
                        Throws<OperationCanceledException>(
                            () => world.Trainer.Run(data, options, stop.Token));
                    else
                    {
                        options.Until = world.Trainer.Progress.Batches + 1;
                        True(world.Trainer.Run(data, options, stop.Token));
                    }
                    world.Steps(1);
                }
            using (var stop = new CancellationTokenSource())
            {
                // The token also cancels a call that a callback makes on the trainer.
                var options = new RunOptions { Until = 1L << 40,
                    Progress = now => { stop.Cancel(); return world.Trainer.Evaluate(data, 2) > 0; } };
                Throws<OperationCanceledException>(() => world.Trainer.Run(data, options, stop.Token));
                world.Steps(1);
            }
            using (var stop = new CancellationTokenSource())
            {
                // The run ends as cancelled even if a nested call consumed the cancel and the callback did
                // not report it.
                var options = new RunOptions { Until = 1L << 40,
                    Progress = now =>
                    {
                        stop.Cancel();
                        Throws(Status.Cancelled, () => world.Trainer.Evaluate(data, 2));
                        return true;
                    } };
                Throws<OperationCanceledException>(() => world.Trainer.Run(data, options, stop.Token));
                Throws<OperationCanceledException>(
                    () => world.Trainer.Run(data, new RunOptions { Until = 0 }, stop.Token));
                world.Steps(1);
            }
            using (var stop = new CancellationTokenSource(50))
                Throws<OperationCanceledException>(() => world.Trainer.Evaluate(data, 1L << 40, stop.Token));
            using (var stop = new CancellationTokenSource())
            {
                world.Trainer.Evaluate(data, 1, stop.Token);
                stop.Cancel();   // the token of a call that has ended
                world.Steps(1);
            }
        }
    }

    public void WatchesReportAndCancel()
    {
        var done = new System.Collections.Generic.List<long>();
        bool goesOn = true, throws = false;
        var options = new WatchOptions { IntervalMilliseconds = 0 };
        options.Notify = now =>
        {
            if (now.Work == Work.Step)
                done.Add(now.Done);
            if (throws)
                throw new InvalidOperationException("of the watch");
            return goesOn;
        };
        using (var watch = new Watch(options))
        {
            PlanOptions plan = World.Small(o => { o.MicroBatch = 2; o.Watch = watch; });
            using (var world = new World(plan, new TrainerOptions { Watch = watch }))
            {
                world.Steps(1);
                Equal(done[0], 0L);
                Equal(done[done.Count - 1], 2L);
                Equal(world.Trainer.Progress.MicroStepsDone, 2L);
                Equal(watch.State.Work, Work.None);
                goesOn = false;
                Throws(Status.Cancelled, () => world.Steps(1));
                goesOn = true;
                throws = true;
                Throws<InvalidOperationException>(() => world.Steps(1));
                throws = false;
                watch.Cancel();
                Throws(Status.Cancelled, () => new Plan(world.Model, plan));
                using (var planned = new Plan(world.Model, World.Small()))
                {
                    watch.Cancel();
                    Throws(Status.Cancelled, () => planned.Frontier(watch));
                    watch.Cancel();
                    Throws(Status.Cancelled, () => planned.Picture(Picture.Html, watch));
                    Equal(planned.Picture(Picture.Html, watch), planned.Picture(Picture.Html));
                }
                watch.Dispose();   // after its trainer ended
                world.Steps(1);
                Throws<ObjectDisposedException>(() => new Plan(world.Model, plan));
            }
        }
    }

    public void ZeroIsASeed()
    {
        Func<ulong?, ulong> weights = seed =>
        {
            using (var world = new World(model: new ModelOptions { ConfigJson = World.Gpt2, Seed = seed }))
                return world.Weights();
        };
        Equal(weights(null), weights(1337));
        True(weights(0) != weights(1337));
    }

    // A token stops the call that it was given to, whenever it is cancelled, and no other call.
    public void TokensStopOneCallAlone()
    {
        using (var world = new World())
        {
            var random = new Random(1);
            int stopped = 0;
            for (int round = 0; round < 300; ++round)
                using (var stop = new CancellationTokenSource())
                {
                    int spins = random.Next(20000);
                    Task other = Task.Run(() =>
                    {
                        Thread.SpinWait(spins);
                        stop.Cancel();
                    });
                    try
                    {
                        world.Trainer.Step(World.Batch(), 1e-3, stop.Token);
                    }
                    catch (OperationCanceledException)
                    {
                        ++stopped;
                    }
                    world.Steps(1);
                    other.Wait();
                }
            Equal(world.Trainer.Progress.Step, 600 - stopped);
        }
    }

    public void OtherThreadsMayStopIt()
    {
        using (var world = new World())
        using (Dataset data = Data())
        {
            Task other = Task.Run(() =>
            {
                while (world.Trainer.Progress.Step < 3)
                    Thread.Yield();
                world.Trainer.Cancel();
            });
            Equal(world.Trainer.Run(data, new RunOptions { Until = 1L << 40 }), false);
            other.Wait();
            world.Trainer.Cancel();
            Throws(Status.Cancelled, () => world.Steps(1));   // a cancel by the host itself is not lost
            world.Steps(1);
        }
    }

    public void OneThreadAtATime()
    {
        using (World world = new World(), other = new World())
        using (Dataset data = Data(), another = Data())
        {
            var options = new RunOptions { Until = 1L << 40 };
            options.Progress = now =>
            {
                // Calls from another thread are refused during a run. A trainer of that thread's own works.
                Task.Run(() =>
                {
                    Throws(Status.BadState, () => world.Trainer.Step(World.Batch(), 1e-3));
                    Throws(Status.BadState, () => other.Trainer.Evaluate(data, 1));
                    Equal(world.Trainer.Progress.Phase, Phase.Train);
                    other.Trainer.Run(another,
                        new RunOptions { Until = other.Trainer.Progress.Batches + 2 });
                }).Wait();
                return now.Batches < 3;
            };
            Equal(world.Trainer.Run(data, options), false);
            Equal(other.Trainer.Progress.Batches, 6);
            Task.Run(() => world.Steps(1)).Wait();   // a trainer can move to another thread
        }
        ulong[] trained = Enumerable.Range(0, 3).AsParallel().WithDegreeOfParallelism(3).Select(i =>
        {
            using (var world = new World())
            {
                world.Steps(5);
                return world.Weights();
            }
        }).ToArray();
        Equal(trained.Distinct().Count(), 1);
    }
}
