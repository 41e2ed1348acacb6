// Trains a model within a number of bytes: Train.exe TEXT [MODEL [STEPS [FOLDER]]]
//
// Plans how to train MODEL (a preset, a config.json or a folder; default "nano") on the bytes of the file
// TEXT within one GiB, shows the plan, trains until Ctrl-C or its steps are done, evaluates, and writes a
// checkpoint and a model that transformers can load into FOLDER.
using System;
using System.Globalization;
using System.IO;
using System.Threading;
using Stowage;

internal static class Train
{
    private static void Run(string text, string source, long steps, string folder, CancellationToken stop)
    {
        using (var model = new Model(source))
        using (var device = new Device())   // a GPU if there is one, else the CPU
        using (var plan = new Plan(model,
            new PlanOptions { GlobalBatch = 8, Sequence = 64, MemoryBytes = 1 << 30 }, device))
        {
            Console.Write(plan.Report);
            using (var data = new Dataset(text,
                new DatasetOptions { Vocabulary = model.Info.Vocabulary, Sequence = 64 }))
            // allocates exactly the plan's arena; the run allocates nothing else
            using (var trainer = new Trainer(device, model, plan))
            {
                try
                {
                    trainer.Run(data, new RunOptions { Until = steps, LearningRate = 1e-3, Progress = Show },
                        stop);
                }
                catch (OperationCanceledException)
                {
                }
                Console.WriteLine($"evaluation loss {trainer.Evaluate(data, 4):f4}");
                trainer.Save(Path.Combine(folder, "checkpoint.stw"));
                trainer.ExportModel(folder);
            }
        }
    }

    private static bool Show(Progress now)
    {
        Console.WriteLine(
            $"step {now.Step,3}  loss {now.Loss:f4}  gradient norm {now.GradNorm:f3}  " +
            $"{now.TokensPerSecond:f0} tokens/s");
        return true;
    }

    private static int Main(string[] given)
    {
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        long steps = 100;
        if (given.Length == 0 || (given.Length > 2 && !long.TryParse(given[2], out steps)))
        {
            Console.Error.WriteLine("usage: Train.exe TEXT [MODEL [STEPS [FOLDER]]]");
            return 2;
        }
        using (var stop = new CancellationTokenSource())
        {
            Console.CancelKeyPress += (sender, key) =>
            {
                key.Cancel = !stop.IsCancellationRequested;   // Ctrl-C once more ends it at once
                stop.Cancel();
            };
            try
            {
                Run(given[0], given.Length > 1 ? given[1] : "nano", steps, given.Length > 3 ? given[3] : ".",
                    stop.Token);
                return 0;
            }
            catch (StowageException failure)
            {
                if (failure is OverBudgetException over && over.Plan != null)
                    Console.Error.Write(over.Plan.Report);   // says why nothing fits, and what would
                Console.Error.WriteLine($"train: {failure.Message}");
                return 1;
            }
        }
    }
}
