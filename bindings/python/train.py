"""Trains a model within a number of bytes: python train.py TEXT [MODEL [STEPS [FOLDER]]]

Plans how to train MODEL (a preset, a config.json or a folder; default "nano") on the bytes of the file TEXT
within one GiB, shows the plan, trains, evaluates, and writes a checkpoint and a model that transformers can
load into FOLDER.
"""

import pathlib
import sys

import stowage


def show(now):
    print(
        f"step {now.step:3}  loss {now.loss:.4f}  gradient norm {now.grad_norm:.3f}  "
        f"{now.tokens_per_second:.0f} tokens/s"
    )


def main(text, source="nano", steps=100, folder="."):
    model = stowage.Model(source)
    device = stowage.Device()  # a GPU if there is one, else the CPU
    try:
        plan = stowage.Plan(model, device=device, global_batch=8, sequence=64, memory_bytes=1 << 30)
    except stowage.OverBudget as error:
        sys.exit(error.plan.report)  # says why nothing fits, and what would
    print(plan.report)
    data = stowage.Dataset(text, vocabulary=model.info.vocabulary, sequence=64)
    # allocates exactly the plan's arena; the run allocates nothing else
    trainer = stowage.Trainer(device, model, plan)
    trainer.run(data, until=int(steps), learning_rate=1e-3, progress=show)
    print(f"evaluation loss {trainer.evaluate(data, batches=4):.4f}")
    trainer.save(pathlib.Path(folder) / "checkpoint.stw")
    trainer.export_model(folder)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: train.py TEXT [MODEL [STEPS [FOLDER]]]")
    try:
        main(*sys.argv[1:5])
    except stowage.Error as error:
        sys.exit(f"train: {error}")
