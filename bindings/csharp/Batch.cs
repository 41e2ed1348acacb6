using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>A tensor of a batch, of int or float: rows of one length, or one number for each sample. The
    /// array is not copied.</summary>
    public sealed class Rows<T> where T : struct
    {
        internal Array Values { get; }
        internal long[] Shape { get; }

        internal Rows(Array values, params long[] shape)
        {
            Values = values;
            Shape = shape;
        }

        /// <summary>(samples, tokens)</summary>
        public static implicit operator Rows<T>(T[,] values)
        {
            return values == null ? null : new Rows<T>(values, values.GetLength(0), values.GetLength(1));
        }

        /// <summary>(samples): one number for each sample.</summary>
        public static implicit operator Rows<T>(T[] values)
        {
            return values == null ? null : new Rows<T>(values, values.Length);
        }
    }

    /// <summary>Rows that lie in one array.</summary>
    public static class Rows
    {
        /// <summary>(samples, tokens): every row has `length` numbers, one after the other.</summary>
        public static Rows<T> Of<T>(T[] values, int length) where T : struct
        {
            int count = Numbers.NotNull(values, nameof(values)).Length;
            if (length <= 0 || count % length != 0)
                throw new StowageException(Status.BadArgument,
                    $"{count} numbers cannot form rows of {length}");
            return new Rows<T>(values, count / length, length);
        }
    }

    /// <summary>stw_batch: tokens, and either Targets or Labels. −100 means no loss.</summary>
    public sealed class Batch
    {
        /// <summary>(samples, tokens)</summary>
        public Rows<int> Tokens { get; set; }
        /// <summary>The token that follows each token.</summary>
        public Rows<int> Targets { get; set; }
        /// <summary>Each in the place of its token; the library shifts a language model's labels. For a
        /// classifier: one label for each sample.</summary>
        public Rows<int> Labels { get; set; }
        /// <summary>How many tokens of each sample count.</summary>
        public Rows<int> Lengths { get; set; }
        /// <summary>The position of each token in its document.</summary>
        public Rows<int> Positions { get; set; }
        /// <summary>Each token's type, for models with token types.</summary>
        public Rows<int> TokenTypes { get; set; }
        /// <summary>Factors of the losses.</summary>
        public Rows<float> Weights { get; set; }
        /// <summary>Log-probabilities of the targets or labels, for preferences with a reference.</summary>
        public Rows<float> Reference { get; set; }
        /// <summary>Instead of Labels, for the tasks Labels, Number and Spans: (samples,
        /// labels).</summary>
        public Rows<float> Values { get; set; }

        /// <summary>For a language model: every token is predicted from the tokens before it in its
        /// row.</summary>
        public static Batch OfTokens(Rows<int> tokens)
        {
            return new Batch { Tokens = tokens, Labels = tokens };
        }
    }

    /// <summary>A batch as a C struct. Its arrays are pinned until it is disposed of.</summary>
    internal sealed unsafe class PinnedBatch : IDisposable
    {
        private const int Most = 9;
        private readonly Texts memory = new Texts();
        private readonly List<GCHandle> pinned = new List<GCHandle>();
        private readonly stw_batch* batch;
        private readonly DLManagedTensorVersioned* tensors;

        public PinnedBatch(Batch source, double learningRate)
        {
            try
            {
                batch = (stw_batch*)memory.Take(sizeof(stw_batch));
                *batch = stw_batch.Sized();
                batch->learning_rate = learningRate;
                batch->names = (byte**)memory.Take(Most * sizeof(byte*));
                batch->tensors = (DLManagedTensorVersioned**)memory.Take(
                    Most * sizeof(DLManagedTensorVersioned*));
                tensors = (DLManagedTensorVersioned*)memory.Take(Most * sizeof(DLManagedTensorVersioned));
                Add("tokens", source.Tokens, DLManagedTensorVersioned.Int);
                Add("targets", source.Targets, DLManagedTensorVersioned.Int);
                Add("labels", source.Labels, DLManagedTensorVersioned.Int);
                Add("lengths", source.Lengths, DLManagedTensorVersioned.Int);
                Add("positions", source.Positions, DLManagedTensorVersioned.Int);
                Add("token_types", source.TokenTypes, DLManagedTensorVersioned.Int);
                Add("weights", source.Weights, DLManagedTensorVersioned.Float);
                Add("reference", source.Reference, DLManagedTensorVersioned.Float);
                Add("labels", source.Values, DLManagedTensorVersioned.Float);
            }
            catch
            {
                Dispose();
                throw;
            }
        }

        public stw_batch* Pointer
        {
            get { return batch; }
        }

        private void Add<T>(string name, Rows<T> rows, byte code) where T : struct
        {
            if (rows == null)
                return;
            pinned.Add(GCHandle.Alloc(rows.Values, GCHandleType.Pinned));
            long* shape = (long*)memory.Take(rows.Shape.Length * sizeof(long));
            for (int i = 0; i < rows.Shape.Length; ++i)
                shape[i] = rows.Shape[i];
            uint index = batch->count++;
            tensors[index] = DLManagedTensorVersioned.Borrowed(
                Marshal.UnsafeAddrOfPinnedArrayElement(rows.Values, 0), code, shape, rows.Shape.Length);
            batch->tensors[index] = &tensors[index];
            batch->names[index] = memory.Of(name);
        }

        public void Dispose()
        {
            foreach (GCHandle one in pinned)
                one.Free();
            pinned.Clear();
            memory.Dispose();
        }
    }
}
