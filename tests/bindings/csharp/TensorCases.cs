using System;
using System.Linq;
using Stowage;

internal sealed partial class Cases
{
    public void TensorsAreCopiedAndSet()
    {
        using (var world = new World())
        {
            world.Steps(1);
            int index = world.Model.Tensors().TakeWhile(tensor => tensor.Shape.Count != 1).Count();
            float[] values = Enumerable.Repeat(0.5f, (int)world.Model.Tensors()[index].Elements).ToArray();
            world.Trainer.SetTensor(index, values);
            Tensor set = world.Trainer.GetTensor(index);
            AllEqual(set.Values, values);
            Equal($"{set.DType} {set.Shape[0]} {set.Bits == null}", $"Float32 {values.Length} True");
            True(world.Trainer.GetTensor(index, TensorKind.FirstMoment).Values.Any(value => value != 0));
            True(world.Trainer.GetTensor(index, TensorKind.SecondMoment).Values.All(value => value >= 0));
            Throws(Status.BadArgument, () => world.Trainer.SetTensor(index, new float[1]));
            Throws(Status.BadArgument, () => world.Trainer.SetTensor(-1, values));
            Throws(Status.BadArgument, () => world.Trainer.GetTensor(1000));
            Throws(Status.BadArgument, () => world.Trainer.GetTensor(-1));
            Throws(Status.BadArgument, () => world.Trainer.GetTensor(0, (TensorKind)9));
        }
        foreach (Precision precision in new[] { Precision.Bf16, Precision.Fp16 })
            using (World half = new World(World.Small(o => o.Precision = precision)), whole = new World())
            {
                Tensor rounded = half.Trainer.GetTensor(0), exact = whole.Trainer.GetTensor(0);
                Equal($"{rounded.DType} {rounded.Bits.Length}",
                    precision == Precision.Bf16 ? "Bfloat16 2048" : "Float16 2048");
                True(rounded.Values.Zip(exact.Values,
                    (one, other) => Math.Abs(one - other) <= Math.Abs(other) / 200 + 1e-7)
                    .All(isNear => isNear));
                True(!rounded.Values.SequenceEqual(exact.Values));
            }
    }

    public void ViewsKeepTheirMemory()
    {
        var memory = new CountedMemory();
        var world = new World(null, null, null, new DeviceOptions { Memory = memory });
        world.Steps(1);
        TensorView view = world.Trainer.View(0);
        float[] copy = world.Trainer.GetTensor(0).Values;
        AllEqual(view.Shape, new long[] { 64, 32 });
        Equal(view[5], copy[5]);
        world.Steps(1);
        True(view[5] != copy[5]);   // the view shows the trainer's own memory
        Throws(Status.BadState, () => world.Trainer.Replan(64 << 20));
        Throws<ArgumentOutOfRangeException>(() => { float none = view[2048]; });
        Throws<ArgumentOutOfRangeException>(() => view.CopyTo(2000, new float[100], 0, 100));
        Throws<ArgumentOutOfRangeException>(() => view.CopyTo(0, new float[100], 1, 100));
        Throws(Status.Unsupported, () => view.CopyBitsTo(0, new ushort[1], 0, 1));
        copy = world.Trainer.GetTensor(0).Values;
        world.Dispose();
        GC.Collect();
        True(memory.Held > 0 && view[5] == copy[5] && view.Address != IntPtr.Zero);
        view.Dispose();
        Equal(memory.Held, 0);
        Throws<ObjectDisposedException>(() => { float none = view[5]; });
        using (var other = new World())
        {
            other.Trainer.View(0).Dispose();
            other.Trainer.Replan(64 << 20).Dispose();
        }
    }
}
