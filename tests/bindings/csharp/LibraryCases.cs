using System;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;
using Stowage;

internal sealed partial class Cases
{
    public void LayoutAgreesWithC()
    {
        Type all = typeof(Library).Assembly.GetType("Stowage.Abi", true);
        int compared = 0;
        foreach (Match found in Regex.Matches(abi, @"\bSIZE\((stw_\w+), (\d+)\)"))
        {
            Equal($"{found.Groups[1]} {Marshal.SizeOf(Struct(all, found))}",
                $"{found.Groups[1]} {found.Groups[2]}");
            ++compared;
        }
        foreach (Match found in Regex.Matches(abi, @"\bAT\((stw_\w+), (\w+), (\d+)\)"))
        {
            Equal($"{found.Groups[1]}.{found.Groups[2]} " +
                $"{Marshal.OffsetOf(Struct(all, found), found.Groups[2].Value)}",
                $"{found.Groups[1]}.{found.Groups[2]} {found.Groups[3]}");
            ++compared;
        }
        foreach (Match found in Regex.Matches(abi, @"\bVALUE\((STW_\w+), (\d+)\)"))
        {
            object value = all.GetField(found.Groups[1].Value).GetRawConstantValue();
            Equal($"{found.Groups[1]} {value}", $"{found.Groups[1]} {found.Groups[2]}");
            ++compared;
        }
        True(compared > 300);
    }

    private static Type Struct(Type all, Match found)
    {
        return all.GetNestedType(found.Groups[1].Value, BindingFlags.Public | BindingFlags.NonPublic);
    }

    public void NamesItsVersion()
    {
        Equal(Library.Version, new Version(0, 1, 0));
        Equal(Library.Version, Library.HeaderVersion);
        True(Library.BuildInfo.Contains("stowage 0.1.0"));
        True(Model.Presets().Contains("nano"));
        Profile card = Profile.All().Single(one => one.Name == "rtx4090");
        True(card.IsCuda && card.Memory > 23L << 30 && card.GflopsBf16 > card.GflopsFp32 &&
            card.Title.Length > 0 && card.Ops.Count == 0);
        Equal(Device.All()[0].Backend, Backend.Cpu);
        using (Device device = World.OpenCpu(null, 1))
        {
            Equal(device.Info.Profile, "cpu");
            Equal(device.Info.Threads, 1);
            True(device.Info.Name.Length > 0 && device.Info.MemoryTotal > 0 && device.Info.Isa != Isa.Auto);
            Equal(device.Holders().Count, 0);
        }
    }

    public void FailuresAreExceptions()
    {
        StowageException failure = Throws(Status.IOError, () => new Model("no/such/model"));
        True(failure.Message.StartsWith("STW_IO_ERROR: ") &&
            failure.Message.Contains("no such file or folder"));
        Equal(Status.OverBudget.Category(), Status.OutOfMemory);
        Equal(Status.OverBudget.Name(), "STW_OVER_BUDGET");
        Equal(((Status)77).Name(), "STW_UNKNOWN");
        Throws(Status.BadArgument, () => new Model("na\0no"));
        Throws(Status.BadArgument, () => new Model("na\ud800no"));
        True(Throws(Status.IOError, () => new Model("Grüße/☂")).Message.Contains("Grüße/☂"));
        Throws(Status.BadArgument, () => new Model(new ModelOptions { Source = "nano", Dropout = 7 }));
        Throws(Status.BadArgument, () => new Model(new ModelOptions()));
        Throws(Status.BadArgument, () => World.OpenCpu(null, -1));
        Throws<ArgumentNullException>(() => new Model((ModelOptions)null));
        Throws<ArgumentNullException>(() => new Plan(null, World.Small()));
        Throws(Status.BadArgument, () => new Device(new DeviceOptions { Backend = (Backend)77 }));
        Equal(Throws(Status.IOError, () => new Dataset(Path.Combine(folder, "none"),
            new DatasetOptions { Vocabulary = 64, Sequence = 16 })).NativeCode, 2);   // ENOENT
    }

    public void ModelsListTheirTensors()
    {
        using (var model = new Model(new ModelOptions { ConfigJson = World.Gpt2,
            LabelNames = new[] { "nein", "ja, ☂" } }))
        {
            AllEqual(model.Labels(), new[] { "nein", "ja, ☂" });
            True(model.Config.Contains("\"1\": \"ja, ☂\""));
            Equal($"{model.Info.Layers} {model.Info.Width} {model.Info.Architecture} " +
                $"{model.Info.Labels} {model.Info.Vocabulary} {model.Info.Positions}", "2 32 gpt2 2 64 16");
            Equal(model.Info.HasWeights, false);
            AllEqual(model.Tensors()[0].Shape, new long[] { 64, 32 });
            Equal(model.Tensors()[0].Elements, 2048);
            Equal(model.Tensors().Sum(tensor => tensor.Elements), model.Info.Parameters);
            Equal(model.TensorIndex(model.Tensors()[3].Name), 3);
            Equal(model.TensorIndex("no such tensor"), null);
        }
        using (var model = new Model(new ModelOptions { ConfigJson = World.Gpt2 }))
            Equal(model.Labels().Count, 0);
        Throws(Status.BadArgument, () => new Model(new ModelOptions { ConfigJson = World.Gpt2, LabelCount = 3,
            LabelNames = new[] { "a", "b" } }));
    }
}
