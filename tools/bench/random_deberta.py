"""Makes a folder with a DeBERTa-v3 of random weights and a Unigram tokenizer of the texts of a file, for
encoders.py: training it takes as long as training Microsoft's.

    PYTHON_WITH_TRANSFORMERS tools/bench/random_deberta.py FOLDER --data FOLDER_OF_BANKING77

Sizes are those of deberta-v3-small, unless options say otherwise. The table of tokens has 128,100 rows, as
there, of which the texts use a few thousand."""

import argparse
import csv
import json
import pathlib

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]


def tokenizer_of(texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        texts,
        trainers.UnigramTrainer(
            vocab_size=8000, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False
        ),
    )
    ends = [(token, tokenizer.token_to_id(token)) for token in ["[CLS]", "[SEP]"]]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return tokenizer


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder with train.csv")
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()
    torch.manual_seed(1)
    config = transformers.DebertaV2Config(
        vocab_size=128100,
        hidden_size=options.width,
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 64,
        intermediate_size=4 * options.width,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        max_relative_positions=-1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-7,
    )
    transformers.DebertaV2Model(config).save_pretrained(options.folder)
    with open(options.data / "train.csv", newline="", encoding="utf-8") as file:
        texts = [row[options.text_field] for row in csv.DictReader(file)]
    tokenizer_of(texts).save(str(options.folder / "tokenizer.json"))
    named = {token.strip("[]").lower() + "_token": token for token in SPECIAL}
    (options.folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **named}, indent=2)
    )


if __name__ == "__main__":
    main()
