using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Stowage;

internal sealed partial class Cases
{
    public void OverBudgetIsAnAnswer()
    {
        using (var model = new Model("nano"))
        {
            var options = new PlanOptions { GlobalBatch = 4, Sequence = 64, MemoryBytes = 1 << 20 };
            var over = Throws<OverBudgetException>(() => new Plan(model, options));
            Equal(over.Status, Status.OverBudget);
            Equal(over.BytesAvailable, 1 << 20);
            Equal(over.Plan.Info.Fits, false);
            Equal(over.Plan.Info.MinimumBytes, over.BytesNeeded);
            True(over.Plan.Report.Contains("does not fit"));
            True(over.Plan.Relaxations().Any(one => one.Change.Length > 0 && one.SavesBytes > 0));
            options.MemoryBytes = over.BytesNeeded;
            using (var plan = new Plan(model, options))
                Equal(plan.Info.Peak, over.BytesNeeded);
            using (Device device = World.OpenCpu())
                Throws(Status.BadState, () => new Trainer(device, model, over.Plan));
            over.Plan.Dispose();
            options.MemoryBytes = 1;
            Equal(Throws<OverBudgetException>(() => Plan.LongestSequence(model, options)).Plan, null);
        }
    }

    public void PlansHaveAllFields()
    {
        using (var model = new Model(new ModelOptions { ConfigJson = World.Gpt2 }))
        using (var all = new Plan(model, World.Small()))
        using (var plan = new Plan(model,
            World.Small(o => o.Groups = new[] {
                new ParameterGroup { Pattern = "blocks.0", LearningRate = 0.5 },
                new ParameterGroup { Pattern = "embeddings", Frozen = true } })))
        {
            PlanInfo info = plan.Info;
            True(info.Fits && info.Gradients < all.Info.Gradients);
            Equal(info.Parameters + info.Gradients + info.Optimizer + info.SavedActivations + info.Transient +
                info.Workspace + info.Inputs + info.Padding, info.Arena);
            Equal(info.Arena + info.Reserve, info.Peak);
            Equal($"{info.GlobalBatch} {info.Sequence} {info.StateBits} {info.Precision} " +
                $"{info.Budget} {info.Fingerprint.Length}", $"4 16 Bits32 Fp32 {64 << 20} 16");
            plan.Verify();
            using (Plan read = Plan.Load(model, plan.Json))
                Equal(read.Info.Fingerprint, info.Fingerprint);
            Throws(Status.Corrupt, () => Plan.Load(model, plan.Json.Replace("64", "65")));
            Throws(Status.Corrupt, () => Plan.Load(model, ""));
            True(plan.Picture(Picture.Svg).EndsWith("</svg>\n"));
            True(plan.Picture(Picture.Csv).StartsWith("id,lower,upper,size,offset,name,class\n"));
            Throws(Status.BadArgument, () => plan.Picture((Picture)9));
            IReadOnlyList<BufferInfo> buffers = plan.Buffers();
            True(buffers.Any(buffer => buffer.Persistent && buffer.Owner == "parameters") &&
                buffers.Any(buffer => !buffer.Persistent && buffer.Last > buffer.First));
            True(buffers.All(buffer => buffer.Offset + buffer.Bytes <= info.Arena));
            IReadOnlyList<FrontierPoint> points = plan.Frontier();
            True(points.Count > 1);
            for (int i = 1; i < points.Count; ++i)
                True(points[i - 1].Peak < points[i].Peak &&
                    points[i - 1].StepSeconds > points[i].StepSeconds);
            using (var nano = new Model("nano"))
            using (var unlimited = new Plan(nano, new PlanOptions { GlobalBatch = 8, Sequence = 256,
                Device = "rtx4090" }))
                // no plan is left out
                True(unlimited.Frontier().Count > 64 &&
                    unlimited.Frontier().Last().StepSeconds == unlimited.Info.StepSeconds);
            Equal(Plan.LongestSequence(model, World.Small()), 16);
            Throws(Status.BadArgument,
                () => new Plan(model, World.Small(o => o.Groups = new[] {
                    new ParameterGroup { Pattern = "no such", Frozen = true } })));
            Throws(Status.BadArgument, () => new Plan(model, World.Small(o => o.Threads = -1)));
            using (var few = new Plan(model, World.Small(o => o.Groups = new[] {
                new ParameterGroup { Pattern = "matrices", StateBits = States.Bits8 } })))
                True(few.Info.Optimizer < all.Info.Optimizer);
            Throws(Status.BadArgument,
                () => new Plan(model, World.Small(o => o.Groups = new[] {
                    new ParameterGroup { Pattern = "matrices", LearningRate = 0.5, StateBits = States.Auto }
                })));
            using (Device device = World.OpenCpu(null, 1))
            using (var planned = new Plan(model, World.Small(o => o.Threads = 0), device))
            using (var one = new Plan(model, World.Small(o => o.Threads = 1)))
                Equal(planned.Info.Arena, one.Info.Arena);
            Action<PlanOptions> onCard = o =>
            {
                o.HostBytes = 1 << 30;
                o.Device = "rtx4090";
                o.ReserveBytes = 0;
                o.Precision = Precision.Fp32;
            };
            using (var card = new Plan(model, World.Small(onCard)))
            using (var least = new Plan(model,
                World.Small(o => { onCard(o); o.MemoryBytes = card.Frontier()[0].Peak; })))
            {
                True(least.Offloads().Any(one => one.Bytes > 0 && one.Tensors.Length > 0));
                True(least.Offloads().Sum(one => one.Bytes) <= least.Info.Host &&
                    least.Info.CopiedBytes > 0 && card.Offloads().Count == 0);
            }
        }
    }

    private static ulong Trained(PlanOptions plan, TrainerOptions options, ModelOptions model = null)
    {
        using (var world = new World(plan, options, model))
        {
            world.Steps(3);
            return world.Weights();
        }
    }

    // An explicit zero differs from an option that is not set: its bit is set.
    public void ExplicitZerosAreKept()
    {
        ulong usual = Trained(null, null);
        Equal(Trained(null, new TrainerOptions { Beta1 = 0.9f, Beta2 = 0.95f, WeightDecay = 0.1f,
            ClipNorm = 1 }), usual);
        foreach (TrainerOptions zero in new[] { new TrainerOptions { Beta1 = 0 },
            new TrainerOptions { Beta2 = 0 }, new TrainerOptions { WeightDecay = 0 } })
            True(Trained(null, zero) != usual);
        Action<Gradients> large = gradients =>
        {
            for (long i = 0; i < gradients.Count; ++i)
                gradients[i] *= 1000;
        };
        True(Trained(null, new TrainerOptions { GradientHook = large, ClipNorm = 0 }) !=
            Trained(null, new TrainerOptions { GradientHook = large }));
        Func<PlanOptions> sgd = () => World.Small(o => o.Optimizer = Optimizer.Sgd);
        True(Trained(sgd(), new TrainerOptions { Momentum = 0 }) != Trained(sgd(), null));
        Func<ParameterGroup[], ulong> grouped = groups => Trained(World.Small(o => o.Groups = groups), null);
        Equal(grouped(new[] { new ParameterGroup { Pattern = "matrices", Frozen = true },
            new ParameterGroup { Pattern = "matrices", Frozen = false } }), usual);
        var strange = new ParameterGroup { Pattern = "matrices", LearningRate = 0.5, WeightDecay = 30 };
        ulong half = grouped(new[] { strange });
        True(half != usual);
        Equal(grouped(new[] { strange, new ParameterGroup { Pattern = "matrices", LearningRate = 0.5 } }),
            half);
        foreach (ParameterGroup zero in new[] { new ParameterGroup { Pattern = "matrices", WeightDecay = 0 },
            new ParameterGroup { Pattern = "matrices", LearningRate = 0 } })
            True(grouped(new[] { strange, zero }) != half);
        const string dropped = "\"embd_pdrop\": 0.5";
        var dropping = new ModelOptions { ConfigJson = World.Gpt2.Replace("\"embd_pdrop\": 0.0", dropped) };
        True(Trained(null, null, dropping) != usual);
        dropping.Dropout = 0;
        Equal(Trained(null, null, dropping), usual);
        using (var model = new Model("nano"))
        {
            Func<long?, long> reserve = bytes =>
            {
                using (var plan = new Plan(model, new PlanOptions { GlobalBatch = 4, Device = "rtx4090",
                    ReserveBytes = bytes }))
                    return plan.Info.Reserve;
            };
            True(reserve(null) > 0);
            Equal(reserve(0), 0);
        }
        using (Dataset tenth = Data(), none = Data(0))
        {
            foreach (double? least in new double?[] { null, 0 })
                using (var world = new World())
                {
                    world.Trainer.Run(tenth, new RunOptions { Until = 2, Total = 1, LearningRate = 1e-2,
                        MinRate = least });
                    Equal(world.Trainer.Progress.LearningRate, least ?? 1e-3);
                }
            Equal(tenth.Info.EvaluationTokens, 400);
            Equal(none.Info.EvaluationTokens, 0);
            Equal(none.Info.Tokenizer, Tokenizer.Ids);
            using (var world = new World())
            using (var documents = new Dataset(Path.Combine(folder, "data.bin"),
                new DatasetOptions { Vocabulary = 64, Sequence = World.Length, DocumentEnd = 0 }))
                // the data needs Positions
                Throws(Status.BadState, () => world.Trainer.Run(documents, new RunOptions { Until = 1 }));
        }
    }

    public void Packs()
    {
        Lifetime[] lifetimes = { new Lifetime(0, 2, 10), new Lifetime(1, 3, 5), new Lifetime(2, 4, 10) };
        Packing found = Packing.Find(lifetimes);
        Equal($"{found.Answer} {found.Height} {found.Bound} {found.Offsets.Count}", "Optimal 15 15 3");
        found = Packing.Find(lifetimes, 14);
        Equal($"{found.Answer} {found.Height}", "Impossible 15");
        Equal(found.Offsets, null);
        found = Packing.Find(new[] { new Lifetime(0, 10, 8), new Lifetime(0, 10, 5), new Lifetime(4, 6, 8) },
            constraints: new[]
        {
            new BufferConstraint { Alignment = 64, Gaps = new[] { new BufferGap(4, 6) } },
            new BufferConstraint { Alignment = 64 }, new BufferConstraint { Offset = 0 },
        });
        Equal(string.Join(" ", found.Offsets), "0 64 0");
        Throws(Status.BadArgument, () => Packing.Find(new[] { new Lifetime(2, 1, 3) }));
        Throws(Status.BadArgument, () => Packing.Find(new[] { new Lifetime(1, 2, -3) }));
        Equal(Packing.Find(new Lifetime[0]).Height, 0);
    }
}
