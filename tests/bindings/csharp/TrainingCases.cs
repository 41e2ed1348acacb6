using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using Stowage;

internal sealed partial class Cases
{
    public void EveryBudgetTrainsTheSameBits()
    {
        long smallest;
        using (var model = new Model(new ModelOptions { ConfigJson = World.Gpt2 }))
        using (var plan = new Plan(model, World.Small()))
            smallest = plan.Frontier()[0].Peak;
        using (World all = new World(), least = new World(World.Small(o => o.MemoryBytes = smallest)))
        {
            StepResult first = all.Steps(1);
            True(Math.Abs(first.Loss - Math.Log(64)) < 0.5);
            Equal($"{first.Targets} {first.Step} {first.Skipped} {first.SkipReason} {first.LossScale}",
                "60 1 False None 1");
            True(all.Steps(9).Loss < first.Loss);
            least.Steps(10);
            Equal(all.Weights(), least.Weights());
            using (Plan plan = all.Trainer.Replan(smallest))
                Equal(plan.Info.Peak, smallest);
            all.Steps(2);
            least.Steps(2);
            Equal(all.Weights(), least.Weights());
            Equal(Throws<OverBudgetException>(() => all.Trainer.Replan(1)).Plan, null);
            all.Steps(1);
        }
    }

    public void Batches()
    {
        using (World one = new World(), other = new World(), third = new World())
        {
            one.Steps(1);
            int[] tokens = World.Tokens();
            int[] targets = tokens.Select(
                (token, i) => i % World.Length == World.Length - 1 ? -100 : tokens[i + 1]).ToArray();
            Rows<int> rows = Rows.Of(tokens, World.Length);
            var given = new Batch { Tokens = rows, Targets = Rows.Of(targets, World.Length),
                Lengths = new[] { 16, 16, 16, 16 } };
            other.Trainer.Step(given, 1e-3);
            Equal(one.Weights(), other.Weights());
            var square = new int[World.Samples, World.Length];
            Buffer.BlockCopy(tokens, 0, square, 0, tokens.Length * sizeof(int));
            Equal(third.Trainer.Step(Batch.OfTokens(square), 1e-3).Targets, 60);
            Equal(one.Weights(), third.Weights());
            given.Weights = new float[World.Samples, World.Length];
            Throws(Status.Unsupported, () => other.Trainer.Step(given, 1e-3));
            Throws(Status.BadArgument, () => Rows.Of(tokens, 5));
            Throws(Status.BadArgument, () => other.Trainer.Step(Batch.OfTokens(new int[4, 17]), 1e-3));
            Throws(Status.BadArgument, () => other.Trainer.Step(Batch.OfTokens(new int[0, 0]), 1e-3));
            Throws(Status.BadArgument, () => other.Trainer.Step(new Batch(), 1e-3));
            Throws(Status.BadArgument,
                () => other.Trainer.Step(new Batch { Tokens = rows, Labels = new int[4, 15] }, 1e-3));
            Throws(Status.BadArgument, () => other.Trainer.Step(World.Batch(), double.NaN));
            tokens[5] = 99;   // the array is not copied
            Throws(Status.BadArgument, () => other.Trainer.Step(Batch.OfTokens(rows), 1e-3));
            Equal(one.Weights(), other.Weights());
        }
        using (var weighted = new World(World.Small(o => o.Weights = true)))
        {
            var weights = new float[World.Samples, World.Length];
            for (int i = 0; i < World.Length; ++i)
                weights[0, i] = 2;
            StepResult done = weighted.Trainer.Step(new Batch {
                Tokens = Rows.Of(World.Tokens(), World.Length),
                Labels = Rows.Of(World.Tokens(), World.Length), Weights = weights }, 1e-3);
            True(done.Loss > 0 && done.Loss < 3);   // the weights leave only half of the samples' losses
        }
    }

    public void RunsOverDatasets()
    {
        using (var world = new World())
        using (Dataset data = Data())
        {
            Equal(data.Info.TrainingTokens, 3600);
            var seen = new List<long>();
            var options = new RunOptions { Until = 5, LearningRate = 1e-2, ProgressEvery = 2 };
            options.Progress = now =>
            {
                seen.Add(now.Step);
                True(now.Loss > 0 && now.LearningRate > 0 && now.Tokens > 0);
                Equal(world.Trainer.Generate(new[] { 1, 2 }, new GenerateOptions { Count = 3 }).Length, 3);
                return true;
            };
            True(world.Trainer.Run(data, options));
            AllEqual(seen, new long[] { 2, 4, 5 });
            double loss = world.Trainer.Evaluate(data, 2);
            Progress progress = world.Trainer.Progress;
            Equal($"{progress.EvaluationLoss} {progress.Phase} " +
                $"{progress.EvaluatedSamples} {progress.EvaluationSamples}", $"{loss} Idle 8 8");
            Equal(world.Trainer.Run(data, new RunOptions { Until = 20, Progress = now => false }), false);
            Equal(world.Trainer.Progress.Step, 6);
            var losses = new List<double>();
            True(world.Trainer.Run(data,
                new RunOptions { Until = 8,
                    Progress = now => { losses.Add(world.Trainer.Evaluate(data, 2)); return true; } }));
            True(losses.Count == 2 && losses[0] != losses[1]);
            True(world.Trainer.Run(data, new RunOptions { Until = 9 }));
            Throws(Status.BadArgument,
                () => world.Trainer.Run(
                    data, new RunOptions { Until = 10, LearningRate = 1e-3, MinRate = 1 }));
            Throws(Status.BadArgument, () => world.Trainer.Run(data, new RunOptions { Until = -1 }));
            Throws(Status.UnsupportedShape,
                () => world.Trainer.Generate(new[] { 1 }, new GenerateOptions { Count = int.MaxValue }));
            Throws(Status.UnsupportedShape,
                () => world.Trainer.Generate(new[] { 1 }, new GenerateOptions { Count = 16 }));
            Throws(Status.BadArgument,
                () => world.Trainer.Generate(new int[0], new GenerateOptions { Count = 1 }));
            int[] all = world.Trainer.Generate(new[] { 1 }, new GenerateOptions { Count = 8 });
            int[] cut = world.Trainer.Generate(
                new[] { 1 }, new GenerateOptions { Count = 8, Stop = new[] { all[0] } });
            AllEqual(cut, all.Take(1));
            Equal(all[0], Largest(world.Trainer.Logits(new[] { 1 })));
            Throws(Status.UnsupportedShape, () => world.Trainer.Logits(new int[0]));
            var drawn = new GenerateOptions { Count = 8, Temperature = 1, Seed = 7, TopK = 5, TopP = 0.9 };
            AllEqual(world.Trainer.Generate(new[] { 1 }, drawn), world.Trainer.Generate(new[] { 1 }, drawn));
        }
    }

    private static int Largest(float[] values)
    {
        return Array.IndexOf(values, values.Max());
    }

    public void ExceptionsOfProgressComeBack()
    {
        using (var world = new World())
        using (Dataset data = Data())
        {
            var mine = new InvalidDataException("of the host");
            var caught = Throws<InvalidDataException>(() => world.Trainer.Run(data,
                new RunOptions { Until = 20, Progress = now => ThrowsFromHere(mine) }));
            Equal(caught, mine);
            True(caught.StackTrace.Contains(nameof(ThrowsFromHere)));
            Equal(world.Trainer.Progress.Step, 1);
            // Also reports an error of a call that the callback makes on the trainer.
            Throws(Status.UnsupportedShape,
                () => world.Trainer.Run(data, new RunOptions { Until = 20,
                    Progress = now => world.Trainer.Logits(new int[99]).Length > 0 }));
            True(world.Trainer.Run(data, new RunOptions { Until = 4 }));
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static bool ThrowsFromHere(Exception exception)
    {
        throw exception;
    }
}
