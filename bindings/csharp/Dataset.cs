using System;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>stw_dataset_options; null: unset.</summary>
    public sealed class DatasetOptions
    {
        /// <summary>Auto: ids for .bin and .npy files, else bytes.</summary>
        public Tokenizer Tokenizer { get; set; }
        /// <summary>The type of ids. Auto refuses a file whose numbers look like another type.</summary>
        public TokenType TokenType { get; set; }
        /// <summary>Every id must be smaller.</summary>
        public long Vocabulary { get; set; }
        /// <summary>Tokens of a sample.</summary>
        public long Sequence { get; set; }
        /// <summary>Chooses the windows of tokens; null: 1337.</summary>
        public ulong? Seed { get; set; }
        /// <summary>The token that ends a document; for plans with Positions.</summary>
        public long? DocumentEnd { get; set; }
        /// <summary>A file with one byte of <see cref="Marks"/> for each token.</summary>
        public string Marks { get; set; }
        /// <summary>For classifiers: a file with one little-endian uint32 for each document that Marks begin.
        /// With TrainingTask.TokenLabel: one for each token. With Labels, Number and Spans: LabelCount
        /// little-endian floats for each document.</summary>
        public string Labels { get; set; }
        /// <summary>With Labels: the number of labels of the model.</summary>
        public long LabelCount { get; set; }
        /// <summary>With Labels: the task of the model; Automatic: Label.</summary>
        public TrainingTask Task { get; set; }
        /// <summary>Share of the tokens, at the end of the file, that is held out; null: 0.1.</summary>
        public double? HeldOut { get; set; }
        /// <summary>For plans with a preference: documents that Marks begin are pairs, with chosen and
        /// rejected ones in turn.</summary>
        public bool Pairs { get; set; }
        /// <summary>With Pairs: the file that <see cref="Trainer.WriteReference"/> wrote.</summary>
        public string Reference { get; set; }
        /// <summary>For masked language models: the share of tokens that are hidden; 0: none.</summary>
        public double MaskRate { get; set; }
        /// <summary>The token that hidden tokens become.</summary>
        public long MaskToken { get; set; }
        /// <summary>The kinds of each token of the vocabulary; null: all are None.</summary>
        public TokenKinds[] TokenKinds { get; set; }
        /// <summary>With TokenKinds: whole words are hidden.</summary>
        public bool MaskWholeWords { get; set; }
        /// <summary>Evaluations cover the whole held-out part, in consecutive windows. Excludes Marks and
        /// MaskRate.</summary>
        public bool Sequential { get; set; }
        /// <summary>With Marks: the largest number of documents in a sample, as PlanInfo.Texts says; 0: as
        /// many as fit.</summary>
        public long Texts { get; set; }
        /// <summary>Reports and cancels the opening.</summary>
        public Watch Watch { get; set; }
    }

    /// <summary>The numbers of tokens and samples of a dataset.</summary>
    public sealed class DatasetInfo
    {
        internal DatasetInfo(stw_dataset_info native)
        {
            Tokenizer = (Tokenizer)native.tokenizer;
            TrainingTokens = Numbers.Of(native.training_tokens);
            EvaluationTokens = Numbers.Of(native.evaluation_tokens);
            TrainingSamples = Numbers.Of(native.training_samples);
            EvaluationSamples = Numbers.Of(native.evaluation_samples);
            ContentHash = native.content_hash;
        }

        /// <summary>The content of the file.</summary>
        public Tokenizer Tokenizer { get; }
        /// <summary>Tokens that are trained on.</summary>
        public long TrainingTokens { get; }
        /// <summary>Tokens that are held out.</summary>
        public long EvaluationTokens { get; }
        /// <summary>With marks: samples in which every document of the part occurs once; else 0.</summary>
        public long TrainingSamples { get; }
        /// <summary>With marks: samples in which every document of the part occurs once. With Sequential:
        /// samples that hold every token once. Else 0.</summary>
        public long EvaluationSamples { get; }
        /// <summary>XXH3 of the files of tokens, marks and labels.</summary>
        public ulong ContentHash { get; }
    }

    /// <summary>A file of tokens, read window by window. For several trainers, one after the other.</summary>
    public sealed unsafe class Dataset : NativeObject
    {
        /// <summary>Opens text, or little-endian ids of the type TokenType of the options.</summary>
        /// <exception cref="StowageException">IOError; Corrupt, which says where; BadState for a reference
        /// for other tokens</exception>
        public Dataset(string path, DatasetOptions options)
        {
            Own((IntPtr)Open(Numbers.NotNull(path, nameof(path)), Numbers.NotNull(options, nameof(options))),
                pointer => stw_dataset_close((stw_dataset*)pointer));
        }

        private static stw_dataset* Open(string path, DatasetOptions options)
        {
            stw_dataset_options given = stw_dataset_options.Sized();
            given.tokenizer = (uint)options.Tokenizer;
            given.vocabulary = Numbers.Unsigned(options.Vocabulary, nameof(options.Vocabulary));
            given.sequence = Numbers.Unsigned(options.Sequence, nameof(options.Sequence));
            given.seed = options.Seed ?? 0;
            given.token_type = (uint)options.TokenType;
            given.pairs = Numbers.Flag(options.Pairs);
            given.document_end = Numbers.Unsigned(options.DocumentEnd ?? 0, nameof(options.DocumentEnd));
            given.held_out = options.HeldOut ?? 0;
            given.set_mask = (options.DocumentEnd != null ? STW_SET_DOCUMENT_END : 0) |
                (options.HeldOut != null ? STW_SET_HELD_OUT : 0) |
                (options.Seed != null ? STW_SET_DATASET_SEED : 0);
            given.label_count = Numbers.Unsigned(options.LabelCount, nameof(options.LabelCount));
            given.task = (uint)options.Task;
            given.mask_rate = options.MaskRate;
            given.mask_token = Numbers.Unsigned(options.MaskToken, nameof(options.MaskToken));
            given.mask_whole_words = Numbers.Flag(options.MaskWholeWords);
            given.sequential = Numbers.Flag(options.Sequential);
            given.texts = Numbers.Unsigned(options.Texts, nameof(options.Texts));
            if (options.TokenKinds != null && options.TokenKinds.LongLength != options.Vocabulary)
                throw new ArgumentException("expected " + options.Vocabulary +
                    " of them, one for each token of the vocabulary, found " + options.TokenKinds.LongLength,
                    nameof(options.TokenKinds));
            stw_dataset* dataset = null;
            stw_error error = stw_error.Sized();
            fixed (TokenKinds* kinds = options.TokenKinds)
            using (var texts = new Texts())
            {
                given.token_kinds = (byte*)kinds;
                given.path = texts.Of(path);
                given.marks = texts.Of(options.Marks);
                given.labels = texts.Of(options.Labels);
                given.reference = texts.Of(options.Reference);
                given.watch = texts.Of(options.Watch);
                int status = stw_dataset_open(&dataset, &given, &error);
                options.Watch?.TakeFailure()?.Throw();
                Errors.Check(status, &error);
            }
            return dataset;
        }

        /// <summary>The numbers of tokens and samples.</summary>
        public DatasetInfo Info
        {
            get
            {
                stw_dataset_info native = stw_dataset_info.Sized();
                using (Held held = Hold())
                    Errors.Check(stw_dataset_query((stw_dataset*)held.Pointer, &native));
                return new DatasetInfo(native);
            }
        }
    }
}
