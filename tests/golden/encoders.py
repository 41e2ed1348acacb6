"""Makes the goldens of encoders: models with a head for texts, tokens or masked tokens, as transformers
saves them.

Run once by a person (see README.md); the tests read only the files. Texts have different lengths and are
padded at their end. If a family has two token types, each text is a run of type 0 followed by a run of
type 1."""

import json
import pathlib
import sys

import torch
from classifiers import LABELS, LENGTHS, tell, write
from models import IGNORED, TOLERANCE, evaluate_double, randomise, relative
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertConfig,
    BertForPreTraining,
    CamembertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    XLMRobertaConfig,
)
from transformers.models.modernbert import modeling_modernbert
from transformers.utils import logging

VOCABULARY, WIDTH, INNER, HEADS, LAYERS, POSITIONS = 131, 40, 72, 5, 3, 40
TYPES = "token_types"


def configurations():
    """Folder name: a seed, the class and the configuration."""
    shared = {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    bert = {**shared, "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "pad_token_id": 0}
    # Positions begin after the number of the padding token.
    roberta = {
        **shared,
        "max_position_embeddings": POSITIONS + 2,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
    }
    fewer_layers = {**bert, "num_hidden_layers": 2}
    one_layer = {key: value for key, value in bert.items() if key != "hidden_act"} | {"num_hidden_layers": 1}
    distilbert = {
        "vocab_size": VOCABULARY,
        "dim": WIDTH,
        "hidden_dim": INNER,
        "n_heads": HEADS,
        "activation": "gelu",
        "max_position_embeddings": POSITIONS,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "seq_classif_dropout": 0.0,
        "pad_token_id": 0,
    }
    modernbert = {
        "vocab_size": VOCABULARY,
        "hidden_size": 36,
        "intermediate_size": 44,
        "num_attention_heads": 3,
        "max_position_embeddings": POSITIONS,
        "local_attention": 6,
        "pad_token_id": 0,
    }
    # As DeBERTa-v3: distances beyond 3 share rows, and distances beyond 12 the last one.
    deberta = {
        **shared,
        "max_position_embeddings": 12,
        "relative_attention": True,
        "position_buckets": 6,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": "p2c|c2p",
        "position_biased_input": False,
        "pad_token_id": 0,
    }
    texts, tokens, masked = (
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
        AutoModelForMaskedLM,
    )
    return {
        "bert": (20280, texts, BertConfig(**bert)),
        "roberta": (20281, texts, RobertaConfig(**roberta)),
        "xlm-roberta": (20282, texts, XLMRobertaConfig(**roberta)),
        "camembert": (20298, texts, CamembertConfig(**{**roberta, "num_hidden_layers": 1})),
        "distilbert": (20283, texts, DistilBertConfig(**distilbert, n_layers=LAYERS)),
        # Embeddings are narrower than the layers. A matrix with a bias widens them.
        "electra": (20284, texts, ElectraConfig(**bert, embedding_size=24)),
        "bert_tokens": (20285, tokens, BertConfig(**fewer_layers)),
        "bert_mlm": (20286, masked, BertConfig(**fewer_layers)),
        # All layers share the parameters of one.
        "albert": (
            20287,
            texts,
            AlbertConfig(
                **{**bert, "hidden_act": "gelu_new"}, embedding_size=24, classifier_dropout_prob=0.0
            ),
        ),
        "roberta_tokens": (20291, tokens, RobertaConfig(**{**roberta, "num_hidden_layers": 1})),
        "distilbert_tokens": (20292, tokens, DistilBertConfig(**distilbert, n_layers=1)),
        "electra_tokens": (
            20293,
            tokens,
            ElectraConfig(**{**bert, "num_hidden_layers": 1}, embedding_size=24),
        ),
        # Masked models of one layer. In the first, the output matrix is not tied to the word embeddings,
        # which also changes the name of its bias.
        "bert_mlm_untied": (
            20288,
            masked,
            BertConfig(**one_layer, hidden_act="relu", tie_word_embeddings=False),
        ),
        # its head uses GELU regardless of hidden_act
        "roberta_mlm": (
            20289,
            masked,
            RobertaConfig(**{**roberta, "num_hidden_layers": 1, "hidden_act": "relu"}),
        ),
        "distilbert_mlm": (20290, masked, DistilBertConfig(**distilbert, n_layers=1)),
        "electra_mlm": (20291, masked, ElectraConfig(**one_layer, embedding_size=24)),
        # With a problem type, transformers computes the loss in the type of the logits.
        "deberta": (
            20299,
            texts,
            DebertaV2Config(**deberta, problem_type="single_label_classification"),
        ),
        # Matrices of their own for positions, without buckets or a norm; absolute positions and types too.
        "deberta_tokens": (
            20300,
            tokens,
            DebertaV2Config(
                **{
                    **deberta,
                    "num_hidden_layers": 2,
                    "max_position_embeddings": POSITIONS,
                    "max_relative_positions": 7,
                    "position_buckets": -1,
                    "norm_rel_ebd": "none",
                    "share_att_key": False,
                    "position_biased_input": True,
                    "type_vocab_size": 2,
                },
                embedding_size=24,
            ),
        ),
        # One kind of relative positions each.
        "deberta_mlm": (
            20301,
            masked,
            DebertaV2Config(**{**deberta, "num_hidden_layers": 2, "pos_att_type": "p2c"}),
        ),
        "deberta_mlm_untied": (
            20302,
            masked,
            DebertaV2Config(
                **{
                    **deberta,
                    "num_hidden_layers": 1,
                    "pos_att_type": "c2p",
                    "share_att_key": False,
                    "norm_rel_ebd": "none",
                    "tie_word_embeddings": False,
                }
            ),
        ),
        # Without biases, as published. Local layers see three tokens on each side.
        "modernbert": (
            20287,
            texts,
            ModernBertConfig(
                vocab_size=VOCABULARY,
                hidden_size=WIDTH,
                intermediate_size=52,
                num_attention_heads=HEADS,
                num_hidden_layers=4,
                max_position_embeddings=POSITIONS,
                local_attention=6,
                pad_token_id=0,
            ),
        ),
        # All options that "modernbert" does not use.
        "modernbert_mean": (
            20288,
            texts,
            ModernBertConfig(
                vocab_size=VOCABULARY,
                hidden_size=48,
                intermediate_size=70,
                num_attention_heads=4,
                num_hidden_layers=LAYERS,
                max_position_embeddings=POSITIONS,
                local_attention=9,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                pad_token_id=0,
                norm_bias=True,
                attention_bias=True,
                mlp_bias=True,
                classifier_bias=True,
                classifier_pooling="mean",
                classifier_activation="relu",
                hidden_activation="gelu_pytorch_tanh",
                norm_eps=1e-3,
                rope_parameters={
                    "full_attention": {"rope_type": "default", "rope_theta": 700.0},
                    "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 30.0},
                },
            ),
        ),
        "albert_mlm": (
            20294,
            masked,
            AlbertConfig(**{**fewer_layers, "hidden_act": "gelu_new"}, embedding_size=27),
        ),
        # As published: only the logits have a bias, and they are computed only for tokens with a label.
        "modernbert_mlm": (
            20295,
            masked,
            ModernBertConfig(**modernbert, num_hidden_layers=2, sparse_prediction=True),
        ),
        # All options that "modernbert_mlm" does not use, and an untied output matrix.
        "modernbert_mlm_untied": (
            20296,
            masked,
            ModernBertConfig(
                **modernbert,
                num_hidden_layers=1,
                norm_bias=True,
                classifier_bias=True,
                decoder_bias=False,
                classifier_activation="gelu_pytorch_tanh",
                tie_word_embeddings=False,
            ),
        ),
        # A text head would read the mean of this model.
        "modernbert_tokens": (
            20297,
            tokens,
            ModernBertConfig(
                **modernbert,
                num_hidden_layers=2,
                classifier_bias=True,
                classifier_pooling="mean",
                classifier_activation="relu",
            ),
        ),
    }


def draw_inputs(generator, config):
    """No token of a text is the padding token."""
    tokens = torch.randint(0, VOCABULARY - 1, (len(LENGTHS), max(LENGTHS)), generator=generator)
    tokens += tokens >= config.pad_token_id
    types = torch.zeros_like(tokens)
    for row, length in enumerate(LENGTHS):
        tokens[row, length:] = config.pad_token_id
        types[row, int(torch.randint(1, max(length, 2), (1,), generator=generator)) : length] = 1
    return {"tokens": tokens} | ({TYPES: types} if getattr(config, "type_vocab_size", 1) > 1 else {})


def draw_labels(generator, kind, tokens):
    if kind is AutoModelForSequenceClassification:
        return torch.randint(0, len(LABELS), (len(LENGTHS),), generator=generator)
    # A masked model has labels for a quarter of the tokens, a token classifier for most of them. Padding has
    # no label.
    classes, share = (VOCABULARY, 0.25) if kind is AutoModelForMaskedLM else (len(LABELS), 0.8)
    labels = torch.randint(0, classes, tokens.shape, generator=generator)
    labels[torch.rand(tokens.shape, generator=generator) >= share] = IGNORED
    for row, length in enumerate(LENGTHS):
        labels[row, length:] = IGNORED
    assert IGNORED in labels[0] and (labels[0] != IGNORED).any()
    return labels


def evaluate(model, inputs, labels):
    model.zero_grad(set_to_none=True)
    tokens = inputs["tokens"].long()
    types = {"token_type_ids": inputs[TYPES].long()} if TYPES in inputs else {}
    output = model(
        input_ids=tokens,
        attention_mask=(tokens != model.config.pad_token_id).long(),
        labels=labels.long(),
        **types,
    )
    output.loss.backward()
    logits = output.logits.detach()
    # also compute the logits of tokens without a label
    if getattr(model.config, "sparse_prediction", False):
        with torch.no_grad():
            logits = model(
                input_ids=tokens, attention_mask=(tokens != model.config.pad_token_id).long(), **types
            ).logits
    values = {"logits": logits, "loss": output.loss.detach().reshape(1)}
    # The bias that an untied matrix leaves unused has no gradient.
    return values | {
        f"grad.{name}": parameter.grad.detach().clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def rotate(queries, keys, cosine, sine, unsqueeze_dim=1):
    """ModernBERT computes this in fp32 whatever the type of queries and keys. This version keeps their
    type."""
    half = modeling_modernbert.rotate_half
    cosine, sine = cosine.unsqueeze(unsqueeze_dim), sine.unsqueeze(unsqueeze_dim)
    return queries * cosine + half(queries) * sine, keys * cosine + half(keys) * sine


def mean_loss(logits, labels, **_):
    """ModernBERT computes this loss in fp32 whatever the type of the logits. This version keeps their
    type."""
    return torch.nn.functional.cross_entropy(
        logits.view(-1, VOCABULARY), labels.view(-1), ignore_index=IGNORED
    )


def evaluate_in_double(model, inputs, labels, evaluate=evaluate):
    published = modeling_modernbert.apply_rotary_pos_emb
    modeling_modernbert.apply_rotary_pos_emb = rotate
    for part in model.modules():
        if type(part) is ModernBertForMaskedLM:
            part.loss_function = mean_loss
    try:
        return evaluate_double(model, inputs, labels, evaluate)
    finally:
        modeling_modernbert.apply_rotary_pos_emb = published


def is_key_bias(name, config):
    """A key's bias adds the same number to all scores of a query, so its gradient is zero up to rounding.
    This does not hold if the scores have products of keys with relative positions."""
    if config.model_type == "deberta-v2":
        own = () if "p2c" in config.pos_att_type else (".key_proj.bias",)
        return name.startswith("grad.") and name.endswith((*own, ".pos_key_proj.bias"))
    return name.startswith("grad.") and name.endswith((".key.bias", ".k_lin.bias"))


def check(model, expected):
    """Checks that transformers, in fp32 and without patches, gives the stored results for the folder."""
    actual = evaluate(model.eval(), expected, expected["labels"])
    assert set(actual) | {"tokens", "labels", "lengths"} == set(expected) - {TYPES}
    keys = [name for name in actual if is_key_bias(name, model.config)]
    groups = getattr(model.config, "num_hidden_groups", model.config.num_hidden_layers)
    # ModernBERT has one bias for all three
    if model.config.model_type not in ("modernbert", "deberta-v2"):
        assert len(keys) == groups
    for name in keys:
        other = name.replace(".key.", ".query.").replace(".k_lin.", ".q_lin.")
        largest = expected[other.replace("key_proj.bias", "key_proj.weight")].abs().max()
        assert (
            expected[name].abs().max() < 1e-13 * largest
            and actual.pop(name).abs().max() < TOLERANCE * largest
        ), name
    worst = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert worst[0] < TOLERANCE, worst
    return worst


def attention_of(config):
    return "eager" if config.model_type == "deberta-v2" else "sdpa"


def generate(name, kind, config, seed, root):
    folder = root / f"encoder_{name}"
    if kind is not AutoModelForMaskedLM:
        config.id2label, config.label2id = (
            dict(enumerate(LABELS)),
            {label: i for i, label in enumerate(LABELS)},
        )
    generator = torch.Generator().manual_seed(seed)
    model = kind.from_config(config, attn_implementation=attention_of(config), dtype=torch.float32).eval()
    randomise(model, generator)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    inputs = draw_inputs(generator, config)
    labels = draw_labels(generator, kind, inputs["tokens"])
    values = evaluate_in_double(model, inputs, labels)
    assert all(value.dtype == torch.float64 for value in values.values())
    expected = write(folder, values, labels=labels, **inputs)
    load = {"attn_implementation": attention_of(config), "dtype": torch.float32}
    worst = check(kind.from_pretrained(folder, **load), expected)
    tell(folder, {key: value for key, value in expected.items() if not is_key_bias(key, config)}, worst)


def generate_old(seed, root):
    """Writes the model of `encoder_bert_mlm` in the format of the checkpoints of 2018.

    Norms have a gamma and a beta. The tied matrix and the position numbers are stored too, and so are a
    pooler and a head for next sentences. The configuration leaves out all later options."""
    source, folder = root / "encoder_bert_mlm", root / "encoder_bert_old"
    config = BertConfig.from_pretrained(source)
    model = BertForPreTraining(config)
    randomise(model, torch.Generator().manual_seed(seed))
    known = load_file(source / "model.safetensors")
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()} | known
    tensors["cls.predictions.decoder.weight"] = known["bert.embeddings.word_embeddings.weight"].clone()
    tensors.pop("cls.predictions.decoder.bias", None)
    tensors["bert.embeddings.position_ids"] = torch.arange(POSITIONS).reshape(1, -1)
    renamed = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for key, value in tensors.items()
    }
    folder.mkdir(exist_ok=True)
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    later = {
        "add_cross_attention",
        "bos_token_id",
        "classifier_dropout",
        "dtype",
        "eos_token_id",
        "is_decoder",
        "layer_norm_eps",
        "pad_token_id",
        "tie_word_embeddings",
        "transformers_version",
        "use_cache",
    }
    kept = {
        key: value
        for key, value in json.loads((source / "config.json").read_text()).items()
        if key not in later
    }
    (folder / "config.json").write_text(
        json.dumps(kept | {"architectures": ["BertForPreTraining"]}, indent=2, sort_keys=True) + "\n"
    )
    for file in folder.iterdir():
        file.chmod(0o644)
    load = {"attn_implementation": "sdpa", "dtype": torch.float32}
    check(AutoModelForMaskedLM.from_pretrained(folder, **load), load_file(source / "expected.safetensors"))
    stranger = BertForPreTraining.from_pretrained(folder, **load).state_dict()
    assert set(tensors) - set(stranger) == {"bert.embeddings.position_ids"}
    assert all(torch.equal(stranger[key], value) for key, value in tensors.items() if key in stranger)
    print(
        f"{folder.name}: {len(renamed)} tensors, "
        f"{sum(file.stat().st_size for file in folder.iterdir())} bytes"
    )


def generate_padding(seed, root):
    """Writes the logits of `encoder_roberta` for texts with the padding token inside of them, all of whose
    tokens are attended to. The padding token has a position of its own, and later tokens do not count it."""
    folder = root / "encoder_roberta"
    generator = torch.Generator().manual_seed(seed)
    load = {"attn_implementation": "sdpa", "dtype": torch.float32}
    model = AutoModelForSequenceClassification.from_pretrained(folder, **load).eval()
    tokens = torch.randint(0, VOCABULARY, (len(LENGTHS), max(LENGTHS)), generator=generator)
    tokens[torch.rand(tokens.shape, generator=generator) < 0.2] = model.config.pad_token_id
    for row, length in enumerate(LENGTHS):
        tokens[row, length:] = model.config.pad_token_id
    attended = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).reshape(-1, 1)

    def logits(model, tokens, attended):
        with torch.no_grad():
            return {"logits": model(input_ids=tokens, attention_mask=attended.long()).logits}

    single = logits(model, tokens, attended)["logits"]
    expected = evaluate_double(model, tokens, attended, logits)["logits"]
    assert relative(single, expected) < TOLERANCE
    lengths = torch.tensor(LENGTHS, dtype=torch.int32)
    file = folder / "padding.safetensors"
    save_file({"tokens": tokens.int(), "lengths": lengths, "logits": expected.float()}, file)
    file.chmod(0o644)
    inside = ((tokens == model.config.pad_token_id) & attended).sum().item()
    print(f"{file.name}: {inside} padding tokens inside of texts")


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # encoder_bert_old has parts that a masked model does not use
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    chosen = sys.argv[2:]  # the given names, or all
    for name, (seed, kind, config) in configurations().items():
        if not chosen or name in chosen:
            generate(name, kind, config, seed, root)
    if not chosen or "bert_old" in chosen:
        generate_old(20290, root)
    if not chosen or "roberta_padding" in chosen:
        generate_padding(20299, root)


if __name__ == "__main__":
    main()
