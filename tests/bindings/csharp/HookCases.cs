using System;
using System.IO;
using Stowage;

internal sealed partial class Cases
{
    public void HooksChangeGradients()
    {
        int count = 0;
        Gradients kept = null;
        // Twice the gradient over twice the targets gives the same step.
        Action<Gradients> hook = gradients =>
        {
            kept = gradients;
            ++count;
            Equal($"{gradients.Scale} {gradients.OnHost} {gradients.CorrectPairs}", "1 True 0");
            True(gradients.DataAddress != IntPtr.Zero && gradients.Stream == IntPtr.Zero);
            var all = new float[gradients.Count];
            gradients.CopyTo(0, all, 0, all.Length);
            gradients.CopyFrom(Array.ConvertAll(all, x => 2 * x), 0, all.Length, 0);
            gradients[0] = gradients[0] / 2 * 2;
            gradients.LossSum *= 2;
            gradients.TargetCount *= 2;
            gradients.CorrectPairs += 0;
            Throws<ArgumentOutOfRangeException>(() => gradients.CopyTo(1, all, 0, all.Length));
            Throws<ArgumentOutOfRangeException>(() => gradients[gradients.Count] = 0);
        };
        using (World one = new World(null, new TrainerOptions { GradientHook = hook }), other = new World())
        {
            Equal(one.Steps(3).Targets, 2 * other.Steps(3).Targets);
            Equal(one.Weights(), other.Weights());
            Equal(count, 3);
            Throws<ObjectDisposedException>(() => { float none = kept[0]; });
            Throws<ObjectDisposedException>(() => { IntPtr none = kept.DataAddress; });
        }
    }

    public void ExceptionsOfHooksComeBack()
    {
        Exception thrown = null;
        World world = null;
        using (world = new World(null,
            new TrainerOptions { GradientHook = gradients => { if (thrown != null) throw thrown; } }))
        using (Dataset data = Data())
        {
            ulong before = world.Weights();
            thrown = new IOException("the network is gone");
            Equal(Throws<IOException>(() => world.Steps(1)), thrown);
            Equal(Throws<IOException>(() => world.Trainer.Run(data, new RunOptions { Until = 3 })), thrown);
            thrown = new OperationCanceledException("of the hook");   // not a cancel by the binding
            Equal(Throws<OperationCanceledException>(() => world.Steps(1)), thrown);
            Equal(before, world.Weights());
            thrown = null;
            Equal(world.Steps(1).Step, 1);
        }
        world = null;
        Action<Gradients> compute = gradients => world?.Trainer.Evaluate(Data(), 1);
        using (world = new World(null, new TrainerOptions { GradientHook = compute }))
            Throws(Status.BadState, () => world.Steps(1));
    }
}
