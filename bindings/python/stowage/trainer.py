"""Training: datasets, steps with a dataset or with a program's own batches, and the answers of a trained
model."""

import contextlib
import ctypes
import itertools
import math
import signal
import threading

from . import _abi
from ._library import Error, Handle, call, copied, entry, expect, library, python_ends, struct
from ._options import encoded, info, options, query_info
from ._tensors import Lease, View, numbers, shape_of, take_back, tensor_of
from .device import Device
from .model import Model
from .plan import Plan
from .watch import Watch, used

KINDS = {
    "parameter": _abi.STW_TENSOR_PARAMETER,
    "gradient": _abi.STW_TENSOR_GRADIENT,
    "first_moment": _abi.STW_TENSOR_FIRST_MOMENT,
    "second_moment": _abi.STW_TENSOR_SECOND_MOMENT,
}


class Dataset(Handle):
    """A dataset: a file of tokens. Keyword arguments: fields of stw_dataset_options. token_kinds: bytes, one
    for each token of the vocabulary."""

    _destroy = "stw_dataset_close"

    def __init__(self, path, vocabulary, sequence, **values):
        super().__init__()
        kinds = values.pop("token_kinds", None)
        if kinds is not None:
            kinds = bytes(kinds)
            if len(kinds) != vocabulary:
                raise ValueError(
                    f"token_kinds: expected {vocabulary} bytes, one for each token of the vocabulary, "
                    f"found {len(kinds)}"
                )
            values["token_kinds"] = (ctypes.c_uint8 * len(kinds)).from_buffer_copy(kinds)
        if values.get("watch") is not None:
            expect(values["watch"], Watch, "watch")
        chosen = options("stw_dataset_options", path=path, vocabulary=vocabulary, sequence=sequence, **values)
        with used(values.get("watch")):
            call("stw_dataset_open", ctypes.byref(self._pointer), ctypes.byref(chosen))

    @property
    def info(self):
        return query_info("stw_dataset_query", "stw_dataset_info", self)


class Gradients:
    """The gradients that a hook may change while it is called, before the update: sums over the targets, of
    all trained parameters. On a GPU they are in device memory at `address`; work on them in the order of
    `stream`."""

    def __init__(self, gradients, on_host, lease):
        self._gradients, self._on_host, self._lease, self._given = gradients, on_host, lease, []
        self.count, self.scale, self.stream = gradients.count, gradients.scale, gradients.stream

    def _end(self):
        self._gradients = None
        take_back(self._given)

    def _of_host(self):
        if self._gradients is None:
            raise ValueError("the gradients' hook has returned")
        if not self._on_host:
            raise BufferError("the gradients lie in a GPU's memory")
        return self._gradients

    @property
    def address(self):
        """The address of `count` floats: in host memory on a CPU, in device memory on a GPU."""
        if self._gradients is None:
            raise ValueError("the gradients' hook has returned")
        return ctypes.cast(self._gradients.data, ctypes.c_void_p).value

    @property
    def memory(self):
        """On a CPU: a memoryview of the floats, valid until the hook returns."""
        return self._lease.memory_at(
            ctypes.cast(self._of_host().data, ctypes.c_void_p).value, "f", (self.count,), self._given
        )

    loss_sum = property(
        lambda self: self._of_host().loss_sum[0],
        lambda self, value: self._of_host().loss_sum.__setitem__(0, value),
        doc="On a CPU: the sum of the batch's losses.",
    )
    correct_pairs = property(
        lambda self: self._of_host().correct_pairs[0],
        lambda self, value: self._of_host().correct_pairs.__setitem__(0, value),
        doc="On a CPU: for a preference, the number of pairs whose chosen document was ahead.",
    )
    target_count = property(
        lambda self: self._of_host().target_count[0],
        lambda self, value: self._of_host().target_count.__setitem__(0, value),
        doc="On a CPU: the number of the batch's targets.",
    )


class _Raised:
    """Keeps an exception of a callback until the library has returned, because no exception may pass through
    the library. A KeyboardInterrupt waits, too: Python would raise it at the beginning of a callback, where
    ctypes drops exceptions."""

    def __init__(self):
        self.error = None

    def guard(self, function):
        """The callback's result for the library: any value except 0 stops the call."""
        try:
            return 1 if self.error is not None or python_ends() else int(bool(function()))
        except BaseException as error:
            self.error = error
            return 1

    def throw(self):
        error, self.error = self.error, None
        if error is not None:
            raise error

    def keep(self, *_):
        self.error = KeyboardInterrupt()

    @contextlib.contextmanager
    def interrupts(self):
        mine = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if mine:
            signal.signal(signal.SIGINT, self.keep)
        try:
            yield
        finally:
            if mine:
                signal.signal(signal.SIGINT, signal.default_int_handler)


# Tensors of a batch that are float32. Labels are float32, too, if the task is in TASKS_WITH_VALUES.
FLOATS = {"weights", "reference"}
TASKS_WITH_VALUES = {"labels", "number", "spans"}


def _batch(learning_rate=0, has_values=False, **named):
    """A stw_batch of the tensors that are given. It keeps them alive."""
    is_float = lambda name: name in FLOATS or (has_values and name == "labels")
    given = {
        name: tensor_of(values, "f" if is_float(name) else "i")
        for name, values in named.items()
        if values is not None
    }
    batch = struct("stw_batch", count=len(given), learning_rate=learning_rate)
    batch.names = (ctypes.c_char_p * len(given))(*(name.encode() for name in given))
    batch.tensors = (ctypes.c_void_p * len(given))(*map(ctypes.addressof, given.values()))
    batch.keeps = given
    return batch


def _end_to_end(lists, name):
    """Lists of numbers as one C array, and the length of each list."""
    lists = [[*one] for one in lists]
    return numbers((value for one in lists for value in one), ctypes.c_int32, name), [*map(len, lists)]


def _hook_of(hook, raised, on_host, lease):
    """Makes the hook without a reference to the trainer, because an object that the trainer holds must not
    hold the trainer."""

    def called(_, gradients):
        given = Gradients(copied(gradients), on_host, lease)
        try:
            return raised.guard(lambda: hook(given) and None)  # its result does not matter
        finally:
            given._end()

    return _abi.stw_gradient_fn(called)


class Trainer(Handle):
    """A trainer: a model in an arena of the plan's bytes. `gradient_hook(gradients)` is called between the
    last micro-step and the update. Keyword arguments: fields of stw_trainer_options. Ctrl-C ends the call in
    progress, within a step too. When Python ends, calls of daemon threads are cancelled and waited for."""

    _destroy = "stw_trainer_destroy"
    _of_process = True

    def __init__(self, device, model, plan, gradient_hook=None, **values):
        super().__init__()
        expect(device, Device, "device"), expect(model, Model, "model"), expect(plan, Plan, "plan")
        self._raised, self._memory, self._model, self._lease = _Raised(), device._memory, model, Lease()
        about = model.info
        self._watch = expect(values.get("watch") or Watch(), Watch, "watch")  # its callback notices Ctrl-C
        raised = self._raised
        self._watch._notifier.interrupted = lambda: raised.error is not None
        values["watch"] = self._watch
        self._labels, self._classes = about.labels, about.labels or about.vocabulary
        self._labels_tokens = about.task in ("token_label", "spans")
        self._has_values = about.task in TASKS_WITH_VALUES
        if gradient_hook:
            values["gradient_hook"] = self._hook = _hook_of(
                gradient_hook, self._raised, device.info.backend == "cpu", self._lease
            )
        chosen = options("stw_trainer_options", **values)
        try:
            with used(self._watch):
                call(
                    "stw_trainer_create",
                    ctypes.byref(self._pointer),
                    device,
                    model,
                    plan,
                    ctypes.byref(chosen),
                )
        except Error as error:
            self._explain(error)
        self._watch._hold(1)  # released when the trainer is closed
        self._open = device._lend(self)

    def _give_back(self, pointer):
        destroy, opened, watch = super()._give_back, self._open, self._watch
        self._lease.end(lambda: (destroy(pointer), watch._hold(-1), opened.release()))

    def _stop(self):
        library().stw_trainer_cancel(self._pointer)

    def _call(self, function, *arguments, allowed=()):
        try:
            with self._raised.interrupts(), used(self._watch):
                status = call(function, self, *arguments, allowed=allowed)
        except Error as error:
            self._raised.throw()
            self._explain(error)
        self._raised.throw()
        return status

    def _explain(self, error):
        """Raises the error, with the exception of the allocator as its cause."""
        if self._memory:
            self._memory.explain(error)
        raise error

    def step(
        self,
        tokens,
        targets=None,
        *,
        labels=None,
        lengths=None,
        positions=None,
        token_types=None,
        weights=None,
        reference=None,
        learning_rate,
    ):
        """Makes one optimizer step with a whole global batch. Tensors are int32 in host memory (weights,
        reference: float32), by DLPack, as buffers, or as lists. Returns the result of the step: `loss`,
        `grad_norm`, `targets`, ..."""
        batch = _batch(
            learning_rate,
            self._has_values,
            tokens=tokens,
            targets=targets,
            labels=labels,
            lengths=lengths,
            positions=positions,
            token_types=token_types,
            weights=weights,
            reference=reference,
        )
        self._call("stw_trainer_step", ctypes.byref(batch))
        result = struct("stw_step_result")
        self._call("stw_trainer_wait", ctypes.byref(result))
        return info(result)

    def run(self, dataset, until, progress=None, **values):
        """Makes steps until `until` batches have been consumed in all. `progress(now)` is called after every
        `progress_every` steps; a true result stops the run. Returns True if the run went to the end, False if
        `progress` or cancel() stopped it. Keyword arguments: fields of stw_run_options."""
        every = max(1, values.pop("progress_every", 1))

        def called(_, now):  # after every step, so that Ctrl-C is noticed there
            is_due = progress and (now.contents.batches % every == 0 or now.contents.batches >= until)
            return self._raised.guard(lambda: progress(info(copied(now))) if is_due else None)

        values["progress"] = _abi.stw_progress_fn(called)
        chosen = options("stw_run_options", until=until, **values)
        return (
            self._call(
                "stw_trainer_run",
                expect(dataset, Dataset, "dataset"),
                ctypes.byref(chosen),
                allowed=(_abi.STW_CANCELLED,),
            )
            == _abi.STW_OK
        )

    def evaluate(self, dataset, batches=20):
        """The mean loss per target over `batches` global batches of the held-out part. Afterwards
        `progress.evaluation_accuracy` has the accuracy of a classifier or a preference."""
        loss = ctypes.c_double()
        self._call("stw_trainer_evaluate", expect(dataset, Dataset, "dataset"), batches, ctypes.byref(loss))
        return loss.value

    def generate(self, prompt, count, stop=(), **values):
        """At most `count` tokens that continue the prompt. Keyword arguments: fields of
        stw_generate_options."""
        prompt_tokens, ends, out = (
            numbers(prompt, ctypes.c_int32, "prompt"),
            numbers(stop, ctypes.c_int32, "stop"),
            (ctypes.c_int32 * count)(),
        )
        chosen = options(
            "stw_generate_options",
            prompt=prompt_tokens,
            prompt_count=len(prompt_tokens),
            out=out,
            out_capacity=count,
            stop=ends,
            stop_count=len(ends),
            **values,
        )
        received = ctypes.c_uint64()
        self._call("stw_trainer_generate", ctypes.byref(chosen), ctypes.byref(received))
        return list(out[: received.value])

    def logits(self, tokens):
        """The logits after these tokens: of the tokens that may follow, or of a classifier's labels."""
        given, out = numbers(tokens, ctypes.c_int32, "tokens"), (ctypes.c_float * self._classes)()
        self._call("stw_trainer_logits", given, len(given), out, len(out))
        return list(out)

    def classify(self, texts, token_types=None):
        """The logits of a classifier's labels: one list for each text, which is a list of tokens.
        `token_types` has one list for each text, with a type for each token; None: all are 0. If tokens have
        labels, a text has one list for each of its tokens."""
        tokens, lengths = _end_to_end(texts, "texts")
        types, given = (None, lengths) if token_types is None else _end_to_end(token_types, "token_types")
        if len(given) != len(lengths):
            raise ValueError(f"token_types: expected {len(lengths)} lists, found {len(given)}")
        for i, (expected, found) in enumerate(zip(lengths, given)):
            if expected != found:
                raise ValueError(f"token_types: text {i}: expected {expected} numbers, found {found}")
        count, rows = len(lengths), sum(lengths) if self._labels_tokens else len(lengths)
        out = (ctypes.c_float * (rows * self._labels))()
        self._call(
            "stw_trainer_classify", tokens, types, (ctypes.c_uint64 * count)(*lengths), count, out, len(out)
        )
        lists = [out[i * self._labels : (i + 1) * self._labels] for i in range(rows)]
        if not self._labels_tokens:
            return lists
        begins = itertools.accumulate(lengths, initial=0)
        return [lists[begin : begin + length] for begin, length in zip(begins, lengths)]

    def log_probabilities(
        self, tokens, targets=None, *, labels=None, lengths=None, positions=None, token_types=None
    ):
        """The log-probability that the model, without dropout, gives every target of one or more samples: one
        list for each sample. Each number has the place of its target or label; places without a target hold
        0. The result can be the `reference` of later steps."""
        batch = _batch(
            has_values=self._has_values,
            tokens=tokens,
            targets=targets,
            labels=labels,
            lengths=lengths,
            positions=positions,
            token_types=token_types,
        )
        shape = shape_of(batch.keeps["tokens"]) if "tokens" in batch.keeps else (0, 0)
        out = (ctypes.c_float * math.prod(shape))()
        self._call("stw_trainer_log_probabilities", ctypes.byref(batch), out, len(out))
        samples, length = shape
        return [out[i * length : (i + 1) * length] for i in range(samples)]

    def write_reference(self, dataset, path):
        """Goes once over a dataset of pairs and writes the log-probabilities of its targets into a file, for
        the `reference` of a Dataset."""
        self._call("stw_trainer_write_reference", expect(dataset, Dataset, "dataset"), encoded(path))

    def replan(self, memory_bytes):
        """Changes the budget from the next step on, with the same bits. Returns the new plan. Views of
        tensors become invalid. Raises BufferError while there are arrays that were made from views."""
        pointer = ctypes.c_void_p()
        self._lease.move(lambda: self._call("stw_trainer_replan", memory_bytes, ctypes.byref(pointer)))
        return Plan._around(pointer)

    def calibrate(self):
        """Measures the device and returns a profile for planning."""
        out = ctypes.create_string_buffer(_abi.STW_PROFILE_BYTES)
        self._call("stw_trainer_calibrate", out, len(out), None)
        return out.value.decode()

    def timeline(self, path):
        """Measures a step in the same way and writes a trace."""
        self._call("stw_trainer_timeline", encoded(path))

    def cancel(self):
        """Stops the call in progress, within a step too, or else the next one. For any thread."""
        entry("stw_trainer_cancel", self)

    @property
    def progress(self):
        return query_info("stw_trainer_progress", "stw_progress", self)

    def _index(self, parameter):
        return self._model.index_of(parameter) if isinstance(parameter, str) else parameter

    def tensor(self, parameter, kind="parameter"):
        """A View of a parameter, by name or index, or of its "gradient", "first_moment" or "second_moment".
        It is valid until the trainer is closed or planned again."""
        if kind not in KINDS:
            raise ValueError(f'kind "{kind}": expected one of {", ".join(KINDS)}')
        pointer = ctypes.c_void_p()
        self._call("stw_trainer_export_tensor", self._index(parameter), KINDS[kind], ctypes.byref(pointer))
        return View(pointer.value, self)

    def set_tensor(self, parameter, values):
        """Overwrites a parameter with fp32 values of its shape."""
        given = tensor_of(values, "f")
        self._call("stw_trainer_import_tensor", self._index(parameter), ctypes.addressof(given))

    def save(self, path):
        """Writes a checkpoint, which can be restored with any budget."""
        self._call("stw_trainer_save", encoded(path))

    def restore(self, path):
        self._call("stw_trainer_restore", encoded(path))

    def export_model(self, folder):
        """Writes the model for transformers. For a model with adapters, writes only the adapters, for
        PEFT."""
        self._call("stw_trainer_export_model", encoded(folder))

    @property
    def stream(self):
        """The address of a CUDA device's stream; else None."""
        return entry("stw_trainer_stream", self)


def verify_checkpoint(path):
    """Checks a checkpoint. Raises Error if it is damaged."""
    call("stw_checkpoint_verify", encoded(path))
