"""The memory of PyTorch and transformers for a training step of a text classifier, counted without a GPU.

The step runs on fake tensors, which have shapes and no data, and every storage is counted while it lives: the
parameters, gradients, states, saved activations, and temporary tensors of eager PyTorch. The count leaves
out the CUDA context, gaps of the allocator and scratch memory of libraries, which a card needs as well. Two
steps are counted, because the optimizer's states exist only in the second. Prints one line of JSON."""

import argparse
import json
import weakref

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DEBERTA_V3 = {
    "model_type": "deberta-v2",
    "vocab_size": 128100,
    "intermediate_size": 3072,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "max_position_embeddings": 512,
    "max_relative_positions": -1,
    "position_buckets": 256,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "pooler_dropout": 0,
    "pooler_hidden_act": "gelu",
}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", help="config.json of a model; without it, that of deberta-v3-base")
    parser.add_argument("--layers", type=int, help="number of layers, in place of the config's")
    parser.add_argument("--labels", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1, help="texts of a micro-batch")
    parser.add_argument("--seq", type=int, default=512, help="tokens of a text")
    parser.add_argument("--bf16", action="store_true", help="autocast of bf16")
    parser.add_argument("--checkpointing", action="store_true", help="gradient checkpointing of each layer")
    parser.add_argument("--freeze-embeddings", action="store_true", help="freezes relative positions too")
    parser.add_argument("--freeze-layers", type=int, default=0, help="number of first layers to freeze")
    parser.add_argument(
        "--optimizer",
        choices=["adamw", "adamw8bit"],
        default="adamw",
        help="torch's, for one tensor after the other; or states as bitsandbytes keeps them: 8 bits with a "
        "scale for each 256 elements, 32 bits for tensors below 4,096 elements and for embeddings, updated "
        "in place",
    )
    return parser.parse_args()


class Storages(TorchDispatchMode):
    """Adds up the bytes of all living storages that the mode's ops return."""

    def __init__(self):
        super().__init__()
        self.known, self.live, self.peak = set(), 0, 0

    def add(self, tensor):
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self.known:
            return
        self.known.add(key)
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self.remove, key, size)

    def remove(self, key, size):
        self.known.discard(key)
        self.live -= size

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.add(leaf)
        return result


class BitsAndBytes:
    def __init__(self, parameters, embeddings):
        self.parameters, self.embeddings, self.states = parameters, embeddings, None

    def step(self):
        if self.states is not None:
            return
        self.states = []
        for p in self.parameters:
            for _ in range(2):
                if p.numel() < 4096 or any(p is e for e in self.embeddings):
                    self.states.append(torch.zeros_like(p, dtype=torch.float32))
                else:
                    self.states.append(torch.zeros(p.numel(), dtype=torch.uint8))
                    self.states.append(torch.zeros((p.numel() + 255) // 256, dtype=torch.float32))

    def zero_grad(self, set_to_none):
        assert set_to_none
        for p in self.parameters:
            p.grad = None


def freeze(model, options):
    base = getattr(model, model.base_model_prefix)
    frozen = []
    if options.freeze_embeddings:
        frozen += [base.embeddings, *filter(None, [getattr(base.encoder, "rel_embeddings", None)])]
    frozen += list(base.encoder.layer[: options.freeze_layers])
    for module in frozen:
        for parameter in module.parameters():
            parameter.requires_grad = False


def main():
    options = arguments()
    given = json.load(open(options.config, encoding="utf-8")) if options.config else dict(DEBERTA_V3)
    if options.layers:
        given["num_hidden_layers"] = options.layers
    given["problem_type"], given["num_labels"] = "single_label_classification", options.labels
    config = transformers.AutoConfig.for_model(given.pop("model_type"), **given)
    counted = Storages()
    with FakeTensorMode(allow_non_fake_inputs=True), counted:
        model = transformers.AutoModelForSequenceClassification.from_config(
            config, attn_implementation="eager"
        )
        model.train()
        freeze(model, options)
        if options.checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        ids = torch.zeros((options.batch, options.seq), dtype=torch.long)
        mask, labels = torch.ones_like(ids), torch.zeros(options.batch, dtype=torch.long)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = (
            torch.optim.AdamW(trained, foreach=False)
            if options.optimizer == "adamw"
            else BitsAndBytes(trained, list(model.get_input_embeddings().parameters()))
        )
        counted.peak = counted.live
        at_rest = []
        for _ in range(2):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bf16):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            loss.backward()
            del loss
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            at_rest.append(counted.live)
    print(
        json.dumps(
            {
                "peer": "transformers",
                "version": transformers.__version__,
                "torch": torch.__version__,
                "parameters": sum(p.numel() for p in model.parameters()),
                "trained": sum(p.numel() for p in trained),
                "batch": options.batch,
                "seq": options.seq,
                "at_rest_mib": round(at_rest[-1] / 2**20, 1),
                "peak_mib": round(counted.peak / 2**20, 1),
            }
        )
    )


main()
