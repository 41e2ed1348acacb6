using System;
using System.Collections.Generic;
using System.Linq;
using Stowage;

// A device, a model and a trainer, which can be disposed in either order.
internal sealed class World : IDisposable
{
    public const int Samples = 4, Length = 16;
    public const string Gpt2 =
        @"{""architectures"": [""GPT2LMHeadModel""], ""model_type"": ""gpt2"", ""vocab_size"": 64, " +
        @"""n_positions"": 16, ""n_embd"": 32, ""n_layer"": 2,
                                 ""n_head"": 2, ""embd_pdrop"": 0.0, ""attn_pdrop"": 0.0, " +
        @"""resid_pdrop"": 0.0}";

    // A classifier with three labels and two token types.
    public const string Bert =
        @"{""architectures"": [""BertForSequenceClassification""], ""model_type"": ""bert"", " +
        @"""vocab_size"": 64, ""max_position_embeddings"": 16, ""hidden_size"": 32,
                                 ""num_hidden_layers"": 1, ""num_attention_heads"": 2, " +
        @"""intermediate_size"": 64, ""id2label"": {""0"": ""a"", ""1"": ""b"", ""2"": ""c""}}";

    public readonly Device Device;
    public readonly Model Model;
    public readonly Trainer Trainer;

    public World(PlanOptions plan = null, TrainerOptions trainer = null, ModelOptions model = null,
        DeviceOptions device = null)
    {
        Device = OpenCpu(device);
        Model = new Model(model ?? new ModelOptions { ConfigJson = Gpt2 });
        using (var chosen = new Plan(Model, plan ?? Small()))
            Trainer = new Trainer(Device, Model, chosen, trainer);
    }

    public static Device OpenCpu(DeviceOptions options = null, int threads = 2)
    {
        options = options ?? new DeviceOptions();
        options.Backend = Backend.Cpu;
        options.Threads = threads;
        return new Device(options);
    }

    public void Dispose()
    {
        Device.Dispose();
        Model.Dispose();
        Trainer.Dispose();
    }

    public static PlanOptions Small(Action<PlanOptions> change = null)
    {
        var options = new PlanOptions { GlobalBatch = Samples, Sequence = Length, MemoryBytes = 64 << 20,
            StateBits = States.Bits32, Threads = 2 };
        change?.Invoke(options);
        return options;
    }

    public static int[] Tokens()
    {
        uint seed = 1;
        return Enumerable.Range(0, Samples * Length)
            .Select(i => (int)((seed = seed * 1664525 + 1013904223) >> 26)).ToArray();
    }

    public static Batch Batch()
    {
        return Stowage.Batch.OfTokens(Rows.Of(Tokens(), Length));
    }

    public StepResult Steps(int count)
    {
        StepResult last = null;
        for (int i = 0; i < count; ++i)
            last = Trainer.Step(Batch(), 1e-3);
        return last;
    }

    // FNV-1a hash of all parameters' bits.
    public ulong Weights()
    {
        IEnumerable<byte> bytes = Enumerable.Range(0, Model.Tensors().Count)
            .SelectMany(i => Trainer.GetTensor(i).Values.SelectMany(BitConverter.GetBytes));
        return bytes.Aggregate(14695981039346656037UL,
            (digest, one) => unchecked((digest ^ one) * 1099511628211UL));
    }
}
