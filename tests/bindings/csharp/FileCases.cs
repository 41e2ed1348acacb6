using System.IO;
using System.Linq;
using Stowage;

internal sealed partial class Cases
{
    public void CheckpointsContinueWithTheSameBits()
    {
        string folder = Fresh("checkpoint"), path = Path.Combine(folder, "Prüfpunkt.stw");
        using (World whole = new World(), other = new World(World.Small(o => o.MicroBatch = 1)))
        {
            whole.Steps(2);
            whole.Trainer.Save(path);
            Checkpoint.Verify(path);
            whole.Steps(2);
            other.Trainer.Restore(path);
            Equal(other.Trainer.Progress.Step, 2);
            other.Steps(2);
            Equal(whole.Weights(), other.Weights());
            whole.Trainer.ExportModel(folder);
            using (var again = new World(null, null, new ModelOptions { Source = folder }))
            {
                True(again.Model.Info.HasWeights);
                Equal(again.Weights(), whole.Weights());
            }
            using (var sgd = new World(World.Small(o => o.Optimizer = Optimizer.Sgd)))
                Throws(Status.BadState, () => sgd.Trainer.Restore(path));
            byte[] bytes = File.ReadAllBytes(path);
            bytes[bytes.Length - 40] ^= 1;
            File.WriteAllBytes(path, bytes);
            Throws(Status.Corrupt, () => Checkpoint.Verify(path));
            Throws(Status.Corrupt, () => other.Trainer.Restore(path));
            Throws(Status.IOError, () => other.Trainer.Save(Path.Combine(folder, "none", "checkpoint.stw")));
            Equal(whole.Weights(), other.Weights());
        }
        // for a run over a dataset
        using (World whole = new World(), half = new World(), rest = new World())
        using (Dataset data = Data())
        {
            True(whole.Trainer.Run(data, new RunOptions { Until = 6 }));
            True(half.Trainer.Run(data, new RunOptions { Until = 3, Total = 6 }));
            half.Trainer.Save(path);
            rest.Trainer.Restore(path);
            True(rest.Trainer.Run(data, new RunOptions { Until = 6 }));
            Equal(whole.Weights(), rest.Weights());
        }
    }

    public void Calibrates()
    {
        using (var world = new World())
        {
            ulong before = world.Weights();
            string profile = world.Trainer.Calibrate();
            using (var plan = new Plan(world.Model, World.Small(o => o.Profile = profile)))
                True(plan.Json.Contains("\"profile\"") && plan.Info.StepSeconds > 0);
            Profile read = Profile.Read(profile);
            Equal($"{read.Name} {read.Threads} {read.Precision} {read.IsCuda}", "cpu 2 Fp32 False");
            True(read.StepNanoseconds > 0 && read.Ops.Any(
                op => op.Name == "linear" && op.Nanoseconds > 0 && op.Permille > 0));
            Throws(Status.Corrupt, () => Profile.Read("{}"));
            string path = Path.Combine(folder, "step.json");
            world.Trainer.Timeline(path);
            True(File.ReadAllText(path).Contains("traceEvents"));
            Equal(world.Weights(), before);
            world.Steps(1);
            Throws(Status.BadState, () => world.Trainer.Calibrate());
        }
    }
}
