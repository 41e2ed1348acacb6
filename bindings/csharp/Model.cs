using System;
using System.Collections.Generic;
using static Stowage.Abi;

namespace Stowage
{
    /// <summary>stw_model_options; null: unset.</summary>
    public sealed class ModelOptions
    {
        /// <summary>
        /// A folder with config.json, a config.json, or the name of a preset such as "nano".
        /// </summary>
        public string Source { get; set; }
        /// <summary>Instead of Source: the text of a config.json.</summary>
        public string ConfigJson { get; set; }
        /// <summary>A .safetensors file or a folder; null: the weights of the source folder, and if it has
        /// none, random values drawn from Seed.</summary>
        public string Weights { get; set; }
        /// <summary>null: 1337.</summary>
        public ulong? Seed { get; set; }
        /// <summary>Replaces all dropout rates of the config.</summary>
        public float? Dropout { get; set; }
        /// <summary>A folder of adapters (LoRA) to continue.</summary>
        public string Adapter { get; set; }
        /// <summary>New adapters: the matrices that get one, such as "q_proj,v_proj"; null: all matrices of
        /// blocks.</summary>
        public string AdapterTargets { get; set; }
        /// <summary>Rank of new adapters; 0: no new adapters.</summary>
        public int AdapterRank { get; set; }
        /// <summary>Scale = alpha / sqrt(rank), in place of alpha / rank.</summary>
        public bool AdapterRankStabilised { get; set; }
        /// <summary>0: twice the rank.</summary>
        public float AdapterAlpha { get; set; }
        /// <summary>The dropout rate of the input of A during training.</summary>
        public float AdapterDropout { get; set; }
        /// <summary>Names of a classifier's labels, all different; null: the names of the model, else
        /// LABEL_0, LABEL_1, …</summary>
        public IReadOnlyList<string> LabelNames { get; set; }
        /// <summary>Makes the model a classifier of texts; 0: the number of LabelNames, or as the config
        /// says.</summary>
        public int LabelCount { get; set; }
        /// <summary>The task that the model is trained for.</summary>
        public TrainingTask Task { get; set; }
        /// <summary>Draws a new head for the labels, whatever labels the config has.</summary>
        public bool NewHead { get; set; }
    }

    /// <summary>The description of a model.</summary>
    public sealed unsafe class ModelInfo
    {
        internal ModelInfo(stw_model_info native)
        {
            Layers = Numbers.Of(native.layers);
            Width = Numbers.Of(native.width);
            Parameters = Numbers.Of(native.parameters);
            Trainable = Numbers.Of(native.trainable);
            Vocabulary = Numbers.Of(native.vocabulary);
            Positions = Numbers.Of(native.positions);
            HasWeights = native.has_weights != 0;
            Architecture = Texts.Read(native.architecture, 32);
            AdapterRank = Numbers.Of(native.adapter_rank);
            HasCodes = native.has_codes != 0;
            Labels = Numbers.Of(native.labels);
            PaddingToken = native.padding_token;
            Generates = native.generates != 0;
            TokenTypes = Numbers.Of(native.token_types);
            Task = (TrainingTask)native.task;
            HeadIsNew = native.head_is_new != 0;
            FileLayers = Numbers.Of(native.file_layers);
        }

        /// <summary>The number of blocks.</summary>
        public int Layers { get; }
        /// <summary>Features of a token between two blocks.</summary>
        public int Width { get; }
        /// <summary>The number of parameters; tied ones are counted once.</summary>
        public long Parameters { get; }
        /// <summary>The number of parameters that are trained.</summary>
        public long Trainable { get; }
        /// <summary>The size of the vocabulary.</summary>
        public long Vocabulary { get; }
        /// <summary>Tokens of the longest sequence.</summary>
        public long Positions { get; }
        /// <summary>Whether weights come from files; else they are drawn from the seed.</summary>
        public bool HasWeights { get; }
        /// <summary>The config's model_type, such as "gpt2" or "llama".</summary>
        public string Architecture { get; }
        /// <summary>0: there are no adapters.</summary>
        public int AdapterRank { get; }
        /// <summary>Whether the files hold matrices in 4 bits.</summary>
        public bool HasCodes { get; }
        /// <summary>The number of a classifier's labels; 0: not a classifier.</summary>
        public long Labels { get; }
        /// <summary>The padding token of the config; −1: none.</summary>
        public long PaddingToken { get; }
        /// <summary>Continues texts; false: an encoder, which reads a text as a whole.</summary>
        public bool Generates { get; }
        /// <summary>How many token types it distinguishes, such as those of a first and of a second text; 0:
        /// none.</summary>
        public int TokenTypes { get; }
        /// <summary>The task that the model is trained for.</summary>
        public TrainingTask Task { get; }
        /// <summary>Weights were read from files, but at least a part of the head was drawn from the
        /// seed.</summary>
        public bool HeadIsNew { get; }
        /// <summary>The layers in the weights' files, which may be more than Layers; 0: there are no
        /// files.</summary>
        public long FileLayers { get; }
    }

    /// <summary>A tensor of a model.</summary>
    public sealed unsafe class TensorInfo
    {
        internal TensorInfo(stw_tensor_info native)
        {
            Name = Texts.Read(native.name);
            Elements = Numbers.Of(native.elements);
            var shape = new long[native.ndim];
            for (int i = 0; i < shape.Length; ++i)
                shape[i] = native.shape[i];
            Shape = shape;
        }

        /// <summary>The name in the weight files.</summary>
        public string Name { get; }
        /// <summary>Rows first.</summary>
        public IReadOnlyList<long> Shape { get; }
        /// <summary>The number of elements.</summary>
        public long Elements { get; }
    }

    /// <summary>The description of a model. Weights are read when a trainer is created. A model may be
    /// disposed of before the objects made from it.</summary>
    public sealed unsafe class Model : NativeObject
    {
        /// <summary>A folder, a config.json, or a preset by its name.</summary>
        public Model(string source) : this(new ModelOptions { Source = source })
        {
        }

        /// <summary>Describes a model.</summary>
        /// <exception cref="StowageException">IOError, Corrupt, Unsupported (architecture), UnsupportedField,
        /// BadArgument</exception>
        public Model(ModelOptions options)
        {
            Own((IntPtr)Create(Numbers.NotNull(options, nameof(options))),
                pointer => stw_model_destroy((stw_model*)pointer));
        }

        private static stw_model* Create(ModelOptions options)
        {
            stw_model_options given = stw_model_options.Sized();
            given.seed = options.Seed ?? 0;
            given.set_mask = options.Seed != null ? STW_SET_MODEL_SEED : 0;
            if (options.Dropout != null)
            {
                given.set_mask |= STW_SET_DROPOUT;
                given.dropout = options.Dropout.Value;
            }
            given.adapter_rank = Numbers.Unsigned(options.AdapterRank, nameof(options.AdapterRank));
            given.adapter_flags = options.AdapterRankStabilised ? STW_ADAPTER_RANK_STABILISED : 0;
            given.adapter_alpha = options.AdapterAlpha;
            given.adapter_dropout = options.AdapterDropout;
            int names = options.LabelNames?.Count ?? 0;
            if (names > 0 && options.LabelCount != 0 && options.LabelCount != names)
                throw new StowageException(Status.BadArgument,
                    $"LabelCount {options.LabelCount}: there are {names} LabelNames");
            given.label_count = (UIntPtr)Numbers.Unsigned(names > 0 ? names : options.LabelCount,
                nameof(options.LabelCount));
            given.task = (uint)options.Task;
            given.new_head = options.NewHead ? 1u : 0u;
            stw_model* model = null;
            stw_error error = stw_error.Sized();
            using (var texts = new Texts())
            {
                given.source = texts.Of(options.Source);
                given.config_json = texts.Of(options.ConfigJson, out given.config_json_size);
                given.weights = texts.Of(options.Weights);
                given.adapter = texts.Of(options.Adapter);
                given.adapter_targets = texts.Of(options.AdapterTargets);
                given.label_names = texts.Of(options.LabelNames);
                Errors.Check(stw_model_create(&model, &given, &error), &error);
            }
            return model;
        }

        /// <summary>The description of the model.</summary>
        public ModelInfo Info
        {
            get
            {
                stw_model_info native = stw_model_info.Sized();
                using (Held held = Hold())
                    Errors.Check(stw_model_query((stw_model*)held.Pointer, &native));
                return new ModelInfo(native);
            }
        }

        /// <summary>All tensors, by index.</summary>
        public IReadOnlyList<TensorInfo> Tensors()
        {
            using (Held held = Hold())
            {
                var model = (stw_model*)held.Pointer;
                var found = new TensorInfo[(int)stw_model_tensor_count(model)];
                for (int i = 0; i < found.Length; ++i)
                {
                    stw_tensor_info native = stw_tensor_info.Sized();
                    Errors.Check(stw_model_tensor_at(model, (UIntPtr)i, &native));
                    found[i] = new TensorInfo(native);
                }
                return found;
            }
        }

        /// <summary>The index of the tensor with that name; null if there is none.</summary>
        public int? TensorIndex(string name)
        {
            UIntPtr index;
            using (Held held = Hold())
            using (var texts = new Texts())
                return stw_model_tensor_find((stw_model*)held.Pointer,
                    texts.Of(Numbers.NotNull(name, nameof(name))), &index) == STW_OK
                    ? (int)index : (int?)null;
        }

        /// <summary>The labels of a classifier.</summary>
        public IReadOnlyList<string> Labels()
        {
            using (Held held = Hold())
            {
                var model = (stw_model*)held.Pointer;
                return Texts.All(index => stw_model_label_at(model, index));
            }
        }

        /// <summary>The text of its config.json, with its task and labels.</summary>
        public string Config
        {
            get
            {
                using (Held held = Hold())
                    return Texts.Read(stw_model_config((stw_model*)held.Pointer));
            }
        }

        /// <summary>Writes config.json and model.safetensors, with the adapters merged into their
        /// matrices.</summary>
        /// <exception cref="StowageException">IOError, Corrupt, BadArgument (the model's own files would be
        /// replaced); Cancelled by the watch</exception>
        public void Export(string folder, Watch watch = null)
        {
            stw_error error = stw_error.Sized();
            using (Held held = Hold())
            using (var texts = new Texts())
            {
                int status = stw_model_export_watched((stw_model*)held.Pointer, texts.Of(folder),
                    texts.Of(watch), &error);
                watch?.TakeFailure()?.Throw();
                Errors.Check(status, &error);
            }
        }

        /// <summary>Models that need no file.</summary>
        public static IReadOnlyList<string> Presets()
        {
            return Texts.All(index => stw_model_preset_at(index));
        }
    }
}
