using System;
using System.IO;
using System.Linq;
using System.Threading;
using Stowage;

internal sealed partial class Cases
{
    public void LabelsOfTokens()
    {
        using (var world = new World(null, null, new ModelOptions { ConfigJson = World.Gpt2, LabelCount = 3,
            Task = TrainingTask.TokenLabel }))
        {
            int[] classes = World.Tokens().Select(token => token % 3).ToArray();
            Equal(world.Trainer.Step(new Batch { Tokens = Rows.Of(World.Tokens(), World.Length),
                Labels = Rows.Of(classes, World.Length) }, 1e-3).Targets, classes.Length);
            float[][] rows = world.Trainer.Classify(new[] { new[] { 1, 2, 3 }, new[] { 4 } });
            Equal(rows.Length, 4);
            AllEqual(rows[3], world.Trainer.Classify(new[] { new[] { 4 } })[0]);
        }
    }

    public void Classifiers()
    {
        using (var world = new World(World.Small(o => o.Positions = true), null,
            new ModelOptions { ConfigJson = World.Gpt2, LabelCount = 3 }))
        {
            AllEqual(world.Model.Labels(), new[] { "LABEL_0", "LABEL_1", "LABEL_2" });
            Rows<int> tokens = Rows.Of(World.Tokens(), World.Length);
            var batch = new Batch { Tokens = tokens, Labels = new[] { 0, 1, 2, 1 } };
            StepResult first = world.Trainer.Step(batch, 1e-2), last = null;
            Equal(first.Targets, 4);
            for (int i = 0; i < 20; ++i)
                last = world.Trainer.Step(batch, 1e-2);
            True(last.Loss < first.Loss / 2);
            float[] logits = world.Trainer.Logits(World.Tokens().Take(World.Length).ToArray());
            Equal(logits.Length, 3);
            Equal(Largest(logits), 0);
            float[,] probabilities = world.Trainer.LogProbabilities(batch);
            True(probabilities[0, 15] < 0 && probabilities[0, 14] == 0 && probabilities[3, 15] < 0);
            Throws(Status.Unsupported,
                () => world.Trainer.Generate(new[] { 1 }, new GenerateOptions { Count = 1 }));
            Throws(Status.BadArgument, () => world.Trainer.Step(World.Batch(), 1e-3));
            int[][] texts = { new[] { 1, 2, 3 }, new[] { 4 } };
            AllEqual(world.Trainer.Classify(texts).SelectMany(row => row),
                texts.SelectMany(text => world.Trainer.Logits(text)));
            Equal(world.Trainer.Classify(new int[0][]).Length, 0);
            // the model has no token types
            Throws(Status.BadArgument, () => world.Trainer.Classify(texts, texts));
            Throws(Status.UnsupportedShape, () => world.Trainer.Classify(new[] { new int[0] }));
            using (var language = new World())
                Throws(Status.Unsupported, () => language.Trainer.Classify(texts));
            using (var stop = new CancellationTokenSource())   // a cancelled call leaves a classifier usable
            using (Dataset data = LabelledData())
            {
                True(world.Trainer.Run(data, new RunOptions { Until = world.Trainer.Progress.Batches + 1,
                    Progress = now => { stop.Cancel(); return true; } }, stop.Token));
                world.Trainer.Step(batch, 1e-3);
                True(!double.IsNaN(world.Trainer.Evaluate(data, 1)) &&
                    world.Trainer.Progress.EvaluationAccuracy >= 0);
            }
        }
    }

    public void HiddenTokens()
    {
        var kinds = new TokenKinds[64];
        kinds[63] = TokenKinds.Special;
        var options = new DatasetOptions { Vocabulary = 64, Sequence = World.Length, MaskRate = 0.3,
            MaskToken = 63, TokenKinds = kinds, MaskWholeWords = true };
        var masked = new ModelOptions {
            ConfigJson = World.Bert.Replace("BertForSequenceClassification", "BertModel"),
            Task = TrainingTask.MaskedLanguageModel };
        string path = TokensOfDocuments();
        using (var world = new World(null, null, masked))
        using (var data = new Dataset(path, options))
        {
            Equal($"{world.Model.Info.Task} {world.Model.Info.HeadIsNew}", "MaskedLanguageModel False");
            double before = world.Trainer.Evaluate(data, 3);
            True(world.Trainer.Run(data, new RunOptions { Until = 3 }));
            True(world.Trainer.Evaluate(data, 3) != before);
        }
        options.TokenKinds = new TokenKinds[63];
        Throws<ArgumentException>(() => new Dataset(path, options));
        options.TokenKinds = Enumerable.Repeat((TokenKinds)4, 64).ToArray();
        Throws(Status.BadArgument, () => new Dataset(path, options));
    }

    public void Encoders()
    {
        using (var world = new World(null, null, new ModelOptions { ConfigJson = World.Bert }))
        using (var language = new World())
        {
            Equal($"{world.Model.Info.Generates} {world.Model.Info.TokenTypes} " +
                $"{language.Model.Info.Generates} {language.Model.Info.TokenTypes}", "False 2 True 0");
            int[][] texts = { new[] { 1, 2, 3 }, new[] { 4, 5 } };
            float[][] without = world.Trainer.Classify(texts),
                with = world.Trainer.Classify(texts, new[] { new[] { 0, 1, 1 }, new[] { 0, 0 } });
            True(!with[0].SequenceEqual(without[0]) && with[1].SequenceEqual(without[1]) &&
                with[1].Length == 3);
            Throws(Status.BadArgument, () => world.Trainer.Classify(texts, new[] { new[] { 0, 1, 1 } }));
            Throws(Status.BadArgument,
                () => world.Trainer.Classify(texts, new[] { new[] { 0, 1 }, new[] { 0, 0 } }));
            Throws(Status.BadArgument,
                () => world.Trainer.Classify(texts, new[] { new[] { 0, 1, 2 }, new[] { 0, 0 } }));
            Throws<ArgumentNullException>(() => world.Trainer.Classify(new int[][] { null }));
            Rows<int> tokens = Rows.Of(World.Tokens(), World.Length),
                types = Rows.Of(Enumerable.Repeat(1, World.Samples * World.Length).ToArray(), World.Length);
            Batch plain = new Batch { Tokens = tokens, Labels = new[] { 0, 1, 2, 1 } },
                typed = new Batch { Tokens = tokens, Labels = new[] { 0, 1, 2, 1 }, TokenTypes = types };
            True(!world.Trainer.LogProbabilities(typed).Cast<float>()
                .SequenceEqual(world.Trainer.LogProbabilities(plain).Cast<float>()));
            Equal(world.Trainer.Step(typed, 1e-3).Targets, 4);
            Throws(Status.Unsupported,
                () => language.Trainer.Step(
                    new Batch { Tokens = tokens, Labels = tokens, TokenTypes = types }, 1e-3));
            using (var stop = new CancellationTokenSource())   // a cancelled call leaves an encoder usable
            using (Dataset data = LabelledData(Marks.Second))
            {
                True(world.Trainer.Run(data, new RunOptions { Until = world.Trainer.Progress.Batches + 1,
                    Progress = now => { stop.Cancel(); return true; } }, stop.Token));
                world.Trainer.Step(typed, 1e-3);
                Throws<OperationCanceledException>(() => world.Trainer.Classify(texts, null, stop.Token));
            }
        }
    }

    public void SeveralLabelsAndNumbers()
    {
        foreach (TrainingTask task in new[] { TrainingTask.Labels, TrainingTask.Number })
            using (var world = new World(World.Small(), null, new ModelOptions { ConfigJson = World.Gpt2,
                LabelCount = 2, Task = task }))
            {
                True(world.Model.Info.Task == task);
                Rows<int> tokens = Rows.Of(World.Tokens(), World.Length);
                var values = new float[,] { { 0, 1 }, { 1, 1 }, { 0.5f, 0 }, { 1, 0 } };
                Equal(world.Trainer.Step(new Batch { Tokens = tokens, Values = values }, 1e-3).Targets, 4);
                Equal(world.Trainer.Classify(new[] { new[] { 1, 2, 3 } })[0].Length, 2);
                Throws(Status.BadArgument,
                    () => world.Trainer.Step(
                        new Batch { Tokens = tokens, Labels = new[] { 0, 1, 2, 1 } }, 1e-3));
            }
    }

    // 80 documents of 8 tokens with three labels. With `halves`, the second half of each document is marked.
    private Dataset LabelledData(Marks halves = Marks.None)
    {
        string path = TokensOfDocuments(), marks = Path.Combine(folder, "marks"),
            labels = Path.Combine(folder, "labels");
        File.WriteAllBytes(marks, Enumerable.Range(0, 640)
            .Select(i => (byte)(i % 8 == 0 ? Marks.Begin : i % 8 > 3 ? halves : Marks.None)).ToArray());
        File.WriteAllBytes(labels, Enumerable.Range(0, 80)
            .SelectMany(i => BitConverter.GetBytes((uint)(i % 3))).ToArray());
        return new Dataset(path, new DatasetOptions { Vocabulary = 64, Sequence = World.Length, Marks = marks,
            Labels = labels, LabelCount = 3 });
    }

    private string TokensOfDocuments()
    {
        string path = Path.Combine(folder, "tokens.bin");
        File.WriteAllBytes(path, Enumerable.Range(0, 640)
            .SelectMany(i => BitConverter.GetBytes((ushort)(i * i / 7 % 61))).ToArray());
        return path;
    }

    public void Adapters()
    {
        string basis = Fresh("base"), tuned = Fresh("tuned"), merged = Fresh("merged");
        using (var plain = new World())
            plain.Trainer.ExportModel(basis);
        PlanOptions plan = World.Small(o => o.Quantize = Quantize.Nf4);
        int[] text = World.Tokens().Take(8).ToArray();
        float[] after;
        using (var world = new World(plan, null, new ModelOptions { Source = basis, AdapterRank = 4,
            AdapterTargets = "c_attn" }))
        {
            Equal($"{world.Model.Info.AdapterRank} {world.Model.Info.Trainable}", $"4 {2 * 4 * (32 + 96)}");
            float[] before = world.Trainer.Logits(text);
            world.Steps(3);
            after = world.Trainer.Logits(text);
            True(!after.SequenceEqual(before));
            world.Trainer.ExportModel(tuned);
        }
        // the adapter's adapter_config.json names the base model
        using (var again = new World(plan, null, new ModelOptions { Source = tuned }))
        {
            AllEqual(again.Trainer.Logits(text), after);
            again.Model.Export(merged);
        }
        using (var whole = new Model(merged))
            Equal(whole.Info.AdapterRank, 0);
        Throws(Status.BadArgument, () => new Model(new ModelOptions { Source = basis, AdapterRank = -4 }));
    }

    public void PrefersTheChosenAnswers()
    {
        Func<Preference, PlanOptions> preferring = preference => World.Small(o => o.Preference = preference);
        using (var world = new World(preferring(Preference.Dpo), new TrainerOptions { Beta = 0.5f }))
        {
            int[] tokens = World.Tokens();   // documents of 8 tokens; the last six of each have targets
            var pairs = new Batch
            {
                Tokens = Rows.Of(tokens, World.Length),
                Targets = Rows.Of(
                    tokens.Select((token, i) => i % 8 == 0 || i % 8 == 7 ? -100 : tokens[i + 1]).ToArray(),
                    World.Length),
                Positions = Rows.Of(
                    Enumerable.Range(0, tokens.Length).Select(i => i % 8).ToArray(), World.Length),
            };
            float[,] reference = world.Trainer.LogProbabilities(pairs);
            for (int i = 0; i < tokens.Length; ++i)
                Equal(reference[i / World.Length, i % World.Length] < 0, i % 8 != 0 && i % 8 != 7);
            Throws(Status.BadArgument, () => world.Trainer.Step(pairs, 1e-2));   // the reference is missing
            pairs.Reference = reference;
            Throws(Status.Unsupported, () => world.Trainer.LogProbabilities(pairs));
            Throws(Status.BadArgument, () => world.Trainer.LogProbabilities(new Batch()));
            StepResult first = world.Trainer.Step(pairs, 1e-2), last = null;
            True(Math.Abs(first.Loss - Math.Log(2)) < 1e-5);
            Equal($"{first.Accuracy} {first.Targets}", "0 4");
            for (int i = 0; i < 20; ++i)
                last = world.Trainer.Step(pairs, 1e-2);
            True(last.Loss < 0.6);
            Equal($"{last.Accuracy} {world.Trainer.Progress.Accuracy}", "1 1");
            using (var plan = new Plan(world.Model, preferring(Preference.Dpo)))
                // the margin belongs to SimPO
                Throws(Status.BadArgument, () => new Trainer(world.Device, world.Model, plan,
                    new TrainerOptions { Margin = 0 }));
        }
        new World(preferring(Preference.Simpo), new TrainerOptions { Margin = 0, AnswerShare = 1 }).Dispose();
    }

    public void WritesReferences()
    {
        string tokens = TokensOfDocuments(), marks = Path.Combine(folder, "pairs"),
            reference = Path.Combine(folder, "reference"), later = Path.Combine(folder, "later");
        var mark = new[] { Marks.Begin, Marks.None, Marks.None, Marks.None, Marks.None, Marks.Target,
            Marks.Target, Marks.Target };
        // documents, alternately chosen and rejected
        File.WriteAllBytes(marks, Enumerable.Range(0, 640).Select(i => (byte)mark[i % 8]).ToArray());
        var options = new DatasetOptions { Vocabulary = 64, Sequence = World.Length, Marks = marks,
            Pairs = true };
        using (var world = new World(World.Small(o => o.Preference = Preference.Dpo)))
        using (var bare = new Dataset(tokens, options))
        {
            Throws(Status.BadState, () => world.Trainer.Run(bare, new RunOptions { Until = 1 }));
            world.Trainer.WriteReference(bare, reference);
            byte[] written = File.ReadAllBytes(reference);
            Equal(written.Length, 640 * 4 + 32);
            for (int i = 0; i < 640; ++i)
                Equal(BitConverter.ToSingle(written, 4 * i) < 0, i % 8 > 4);
            options.Reference = reference;
            using (var data = new Dataset(tokens, options))
            {
                True(data.Info.TrainingSamples > 0 && data.Info.EvaluationSamples > 0);
                True(Math.Abs(world.Trainer.Evaluate(data, 100) - Math.Log(2)) < 1e-5);
                True(world.Trainer.Run(data,
                    new RunOptions { Until = 1,
                        Progress = now => { world.Trainer.WriteReference(data, later); return true; } }));
                True(!File.ReadAllBytes(later).SequenceEqual(written));   // after a further step of the model
            }
            bare.Dispose();
            Throws<ObjectDisposedException>(() => world.Trainer.WriteReference(bare, reference));
        }
    }
}
