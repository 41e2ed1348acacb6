"""Stowage in Python: train neural networks on one device in exactly the memory you give it.

    import stowage

    model = stowage.Model("path/to/model")                      # or a preset such as "nano"
    device = stowage.Device()                                   # a GPU if there is one, else the CPU
    plan = stowage.Plan(model, device=device, global_batch=32, sequence=512, memory_bytes=4 << 30)
    trainer = stowage.Trainer(device, model, plan)              # the only allocation of tensors
    data = stowage.Dataset("tokens.bin", vocabulary=model.info.vocabulary, sequence=512)
    trainer.run(data, until=1000, learning_rate=3e-4, progress=lambda now: print(now.step, now.loss))
    trainer.export_model("out")

The package calls the C API by ctypes and needs nothing but Python. stowage.h says what options mean and what
is guaranteed. Keyword arguments have the names of its fields. Constants that have names there are words here
("bf16", "adamw"). Failures are `stowage.Error`.
"""

from . import _abi
from ._library import Cancelled, Error, Info, OverBudget, entry, load, text
from .device import Device, devices, profiles
from .model import Model, presets
from .plan import Plan, longest_sequence, pack, profile_info
from .trainer import Dataset, Trainer, verify_checkpoint
from .watch import Watch

__all__ = [
    "Cancelled",
    "Dataset",
    "Device",
    "Error",
    "Info",
    "Model",
    "OverBudget",
    "Plan",
    "Trainer",
    "Watch",
    "build_info",
    "devices",
    "load",
    "longest_sequence",
    "pack",
    "presets",
    "profile_info",
    "profiles",
    "verify_checkpoint",
    "version",
]

# The version of this package, and of the header that it was made from.
__version__ = f"{_abi.STW_VERSION_MAJOR}.{_abi.STW_VERSION_MINOR}.{_abi.STW_VERSION_PATCH}"


def version():
    """The version of the loaded library: (major, minor, patch)."""
    number = entry("stw_version")
    return number // 10000, number // 100 % 100, number % 100


def build_info():
    """How the library was built, and which parts of CUDA it finds on this machine."""
    return text(entry("stw_build_info"))
