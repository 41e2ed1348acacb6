"""Devices that compute: the CPU, and CUDA devices."""

import ctypes
import os
import weakref

from . import _abi
from ._library import Handle, call, entry, every, query, struct, text
from ._memory import Memory, callbacks_of
from ._options import info, options, query_info
from ._tensors import CPU, CUDA


class _Open:
    """A device that is closed when nothing computes on it any more. It is needed because Python destroys
    several objects at once in no fixed order."""

    def __init__(self, pointer, keeps):
        self.pointer, self.uses, self.process = pointer, 1, os.getpid()
        self.keeps = keeps  # callbacks

    def release(self):
        self.uses -= 1
        if self.uses == 0 and self.process == os.getpid():
            entry("stw_device_close", self.pointer)


class Device(Handle):
    """An open device. `log(level, component, message)` receives messages; its exceptions are printed.
    `memory(bytes)` returns the program's own memory for an arena: a buffer or a tensor on that device with at
    least that many bytes, such as `torch.empty(bytes, dtype=torch.uint8, device="cuda")`, or None if there is
    no memory. It is held until its trainer is closed or planned again. Keyword arguments: fields of
    stw_device_options, except `run` (the host's threads). Closing a device closes the trainers on it."""

    def __init__(self, backend="auto", log=None, memory=None, **values):
        super().__init__()
        self._trainers = weakref.WeakSet()
        if log:
            values["log"] = _abi.stw_log_fn(
                lambda _, level, component, message: log(level, text(component), text(message))
            )
        self._memory = Memory(memory) if memory else None
        if memory:
            values["allocate"], values["release"] = callbacks_of(self._memory)
        chosen = options("stw_device_options", backend=backend, **values)
        call("stw_device_open", ctypes.byref(self._pointer), ctypes.byref(chosen))
        self._open = _Open(self._pointer, (chosen, values))
        if memory:
            self._memory.device = (CUDA, chosen.ordinal) if self.info.backend == "cuda" else (CPU, 0)

    def __del__(self):
        if getattr(self, "_pointer", None):
            super().close()  # the trainers on the device stay open

    def close(self):
        self._check_unused()
        for trainer in list(self._trainers):
            trainer.close()
        super().close()

    def _give_back(self, pointer):
        self._open.release()

    def _lend(self, trainer):
        """Lends the device to a trainer, which releases the result after its own end."""
        self._trainers.add(trainer)
        self._open.uses += 1
        return self._open

    @property
    def info(self):
        return query_info("stw_device_query", "stw_device_info", self)

    @property
    def holders(self):
        """The processes that hold memory of a CUDA device, as far as the driver reports them."""
        return [info(one) for one in every("stw_device_holder_at", "stw_memory_holder", self)]

    def logged(self, after=0):
        """The kept messages whose number is larger than `after`."""
        while (message := query("stw_device_next_log", "stw_log_message", self, after)) and message.number:
            yield info(message)
            after = message.number


def devices():
    """The devices that can train on this machine, the CPU first."""
    found, index = [], 0
    while True:
        result = struct("stw_device_info")
        status = call("stw_device_at", index, ctypes.byref(result), allowed=(_abi.STW_BAD_ARGUMENT,))
        if status != _abi.STW_OK:
            return found
        found.append(info(result))
        index += 1


def profiles():
    """The devices that can be planned for, whether present or not."""
    return [info(one) for one in every("stw_profile_at", "stw_profile_info")]
