"""Makes option structs from keyword arguments, and Python objects from results. Constants that have names
become words."""

import ctypes
import os

from . import _abi
from ._library import Handle, Info, check, entry, fitting, struct, text

# Fields whose values are named constants, with the common beginning of these names.
NAMED = {
    "backend": "STW_BACKEND_",
    "isa": "STW_ISA_",
    "precision": "STW_PRECISION_",
    "optimizer": "STW_OPTIMIZER_",
    "master": "STW_MASTER_",
    "gradients": "STW_GRADIENTS_",
    "kernels": "STW_KERNELS_",
    "attention": "STW_ATTENTION_",
    "quantize": "STW_QUANTIZE_",
    "quantize_embeddings": "STW_QUANTIZE_",
    "preference": "STW_PREFERENCE_",
    "mode": "STW_MODE_",
    "recompute": "STW_RECOMPUTE_",
    "schedule": "STW_SCHEDULE_",
    "non_finite": "STW_NON_FINITE_",
    "tokenizer": "STW_TOKENIZER_",
    "token_type": "STW_TOKEN_TYPE_",
    "log_level": "STW_LOG_",
    "state_bits": "STW_STATES_",
    "phase": "STW_PHASE_",
    "skip_reason": "STW_SKIP_",
    "answer": "STW_PACK_",
    "task": "STW_TASK_",
    "work": "STW_WORK_",
    "unit": "STW_UNIT_",
}
# The fields of results that are words. Other fields with these names are numbers of bytes.
WORD_FIELDS = {
    "backend",
    "isa",
    "precision",
    "kernels",
    "tokenizer",
    "phase",
    "skip_reason",
    "answer",
    "task",
    "work",
    "unit",
}

# Fields that are read only if a bit of set_mask is set.
MASKED = {
    ("stw_model_options", "dropout"): "STW_SET_DROPOUT",
    ("stw_model_options", "seed"): "STW_SET_MODEL_SEED",
    ("stw_dataset_options", "seed"): "STW_SET_DATASET_SEED",
    ("stw_trainer_options", "seed"): "STW_SET_TRAINER_SEED",
    ("stw_generate_options", "seed"): "STW_SET_GENERATE_SEED",
    ("stw_watch_options", "interval_milliseconds"): "STW_SET_INTERVAL",
    ("stw_buffer_constraint", "offset"): "STW_SET_OFFSET",
    ("stw_plan_options", "reserve_bytes"): "STW_SET_RESERVE",
    ("stw_parameter_group", "frozen"): "STW_SET_GROUP_FROZEN",
    ("stw_parameter_group", "learning_rate"): "STW_SET_GROUP_RATE",
    ("stw_parameter_group", "weight_decay"): "STW_SET_GROUP_DECAY",
    ("stw_parameter_group", "state_bits"): "STW_SET_GROUP_STATES",
    ("stw_dataset_options", "document_end"): "STW_SET_DOCUMENT_END",
    ("stw_dataset_options", "held_out"): "STW_SET_HELD_OUT",
    ("stw_trainer_options", "weight_decay"): "STW_SET_WEIGHT_DECAY",
    ("stw_trainer_options", "clip_norm"): "STW_SET_CLIP_NORM",
    ("stw_trainer_options", "beta1"): "STW_SET_BETA1",
    ("stw_trainer_options", "beta2"): "STW_SET_BETA2",
    ("stw_trainer_options", "momentum"): "STW_SET_MOMENTUM",
    ("stw_trainer_options", "margin"): "STW_SET_MARGIN",
    ("stw_run_options", "min_rate"): "STW_SET_MIN_RATE",
}

HIDDEN = {"struct_size", "set_mask", "reserved", "reserved_end"}


def number_of(field, value):
    """The number of a word such as "bf16". A number is returned as it is."""
    if not isinstance(value, str):
        return value
    if field == "state_bits" and value.isdigit():
        return int(value)
    constant = NAMED[field] + value.upper().replace("-", "_")
    if not hasattr(_abi, constant):
        known = [
            name.removeprefix(NAMED[field]).lower() for name in vars(_abi) if name.startswith(NAMED[field])
        ]
        raise ValueError(f'{field} "{value}": expected one of {", ".join(known)}')
    return getattr(_abi, constant)


def encoded(value):
    """Text or a path as bytes for C, which end with a zero byte."""
    if value is None:
        return None
    value = os.fsencode(value)
    if b"\0" in value:
        raise ValueError(f"a zero byte in {value!r}")
    return value


def options(kind, **values):
    """A struct of options. None means that an option is unset."""
    result = struct(kind)
    types = dict(result._fields_)
    for field, value in values.items():
        if field not in types or field in HIDDEN:
            raise TypeError(
                f'there is no option "{field}"; there are '
                f"{', '.join(name for name in types if name not in HIDDEN)}"
            )
        if value is None:
            continue
        if field in NAMED:
            value = number_of(field, value)
        elif types[field] is ctypes.c_char_p:
            value = encoded(value)
        elif isinstance(value, Handle):
            value = value.pointer
        setattr(result, field, fitting(types[field], value, field))
        if (kind, field) in MASKED:
            result.set_mask |= getattr(_abi, MASKED[kind, field])
    return result


def strings(values):
    """An array of C strings."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"expected a list of names, found {values!r}")
    return (ctypes.c_char_p * len(values))(*map(encoded, values))


def info(filled):
    """The fields of a struct that the library filled."""
    fields = {}
    for field, kind in filled._fields_:
        if field in HIDDEN:
            continue
        value = text(getattr(filled, field))
        if field in WORD_FIELDS and isinstance(value, int):
            words = [
                name.removeprefix(NAMED[field]).lower()
                for name, number in vars(_abi).items()
                if name.startswith(NAMED[field]) and number == value
            ]
            value = words[0] if words else value
        fields[field] = list(value) if isinstance(value, ctypes.Array) else value
    return Info(**fields)


def query_info(function, kind, *arguments):
    """The result of an entry, as a struct of that kind."""
    result = struct(kind)
    check(entry(function, *arguments, ctypes.byref(result)))
    return info(result)
