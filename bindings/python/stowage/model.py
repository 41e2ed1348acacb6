"""Models: their configuration, and the source of their weights."""

import ctypes
import json

from ._library import Handle, call, entry, every, names, text
from ._options import encoded, info, options, query_info, strings
from .watch import used


class Model(Handle):
    """A model. `source`: a folder, a config.json, a preset, or a dict with a config. `labels`, a number or a
    list of names, makes the model a classifier. Other keyword arguments: fields of stw_model_options."""

    _destroy = "stw_model_destroy"

    def __init__(self, source=None, labels=None, **values):
        super().__init__()
        if isinstance(source, dict):
            values["config_json"] = json.dumps(source)
        if "config_json" in values:
            values["config_json"] = encoded(values["config_json"])
            values["config_json_size"] = len(values["config_json"])
        if not isinstance(source, dict) and source is not None:
            values["source"] = source
        if isinstance(labels, int):
            values["label_count"] = labels
        elif labels is not None:
            values["label_names"], values["label_count"] = strings(labels), len(labels)
        chosen = options("stw_model_options", **values)
        call("stw_model_create", ctypes.byref(self._pointer), ctypes.byref(chosen))

    @property
    def info(self):
        return query_info("stw_model_query", "stw_model_info", self)

    @property
    def labels(self):
        """The names of a classifier's labels; empty for other models."""
        return names("stw_model_label_at", self)

    @property
    def config(self):
        """The content of its config.json, with its task and labels."""
        return json.loads(text(entry("stw_model_config", self)))

    @property
    def tensors(self):
        """The parameters, as they are in files: `name`, `shape`, `elements`. Tied parameters appear once."""
        found = [info(one) for one in every("stw_model_tensor_at", "stw_tensor_info", self)]
        for one in found:
            one.shape = tuple(one.shape[: one.ndim])
        return found

    def index_of(self, name):
        """The index of a parameter, by its name."""
        index = ctypes.c_size_t()
        if entry("stw_model_tensor_find", self, encoded(name), ctypes.byref(index)):
            raise KeyError(name)
        return index.value

    def export(self, folder, watch=None):
        """Writes config.json and model.safetensors, with the adapters merged into their matrices."""
        with used(watch):
            call("stw_model_export_watched", self, encoded(folder), watch)


def presets():
    return names("stw_model_preset_at")
