"""Plans: the place of every buffer in memory, before anything is allocated. Also offsets for any other
buffers."""

import ctypes
import json

from . import _abi
from ._library import Handle, call, check, entry, every, expect, failure, fitting, struct, text
from ._options import encoded, info, options, query_info
from .device import Device
from .model import Model
from .watch import Watch, used

INPUTS = {"positions": _abi.STW_INPUT_POSITIONS, "weights": _abi.STW_INPUT_WEIGHTS}
KEEP = {name[9:].lower(): value for name, value in vars(_abi).items() if name.startswith("STW_KEEP_")}


def bits(names, known, what):
    """The sum of the bits with these names; one name may stand alone."""
    names = [names] if isinstance(names, str) else names or ()
    for name in names:
        if name not in known:
            raise ValueError(f"{what}: expected {' or '.join(known)}, found {name!r}")
    total = 0
    for name in names:
        total |= known[name]
    return total


def plan_options(model, global_batch, device=None, inputs=(), groups=(), profile=None, keep=(), **values):
    """A stw_plan_options. `device`: an open device, or the name of a profile. `inputs`: what batches may
    have ("positions", "weights"). `keep`: what relaxations must not change ("numerics", "model",
    "adapters", "sequence", "optimizer", "clipping", "division", "precision", "all"). `groups`: one dict for
    each group, such as {"pattern": "embeddings", "frozen": True}. `profile`: a profile that
    Trainer.calibrate returned."""
    expect(model, Model, "model")
    if device is not None and not isinstance(device, str):
        about = expect(device, Device, "device").info
        device = about.profile
        if about.backend == "cuda":
            values.setdefault("device_memory", about.memory_free + about.memory_reserved)
        else:
            values.setdefault("threads", about.threads)
    if values.get("watch") is not None:
        expect(values["watch"], Watch, "watch")
    if profile is not None:
        values["profile"] = encoded(profile)
        values["profile_size"] = len(values["profile"])
    groups = [groups] if isinstance(groups, dict) else list(groups or ())
    chosen = options(
        "stw_plan_options",
        global_batch=global_batch,
        device=device,
        inputs=bits(inputs, INPUTS, "inputs"),
        keep=bits(keep, KEEP, "keep"),
        **values,
    )
    if groups:
        chosen.groups = (_abi.stw_parameter_group * len(groups))(
            *(options("stw_parameter_group", **group) for group in groups)
        )
        chosen.group_count = len(groups)
    return chosen


class Plan(Handle):
    """The fastest way to train that fits. Raises OverBudget if nothing fits. Keyword arguments: those of
    plan_options."""

    _destroy = "stw_plan_destroy"

    def __init__(self, model, global_batch, **values):
        super().__init__()
        error = struct("stw_error")
        chosen = plan_options(model, global_batch, **values)
        with used(values.get("watch")):
            status = entry(
                "stw_plan_create",
                ctypes.byref(self._pointer),
                model,
                ctypes.byref(chosen),
                ctypes.byref(error),
            )
        if status == _abi.STW_OVER_BUDGET:
            answer = failure(status, error)
            answer.plan = self
            raise answer
        check(status, error)

    @classmethod
    def _around(cls, pointer):
        plan = cls.__new__(cls)
        Handle.__init__(plan)
        plan._pointer = pointer
        return plan

    @classmethod
    def load(cls, model, json_text):
        """Reads text that `json` returned."""
        pointer, data = ctypes.c_void_p(), encoded(json_text)
        call("stw_plan_load", ctypes.byref(pointer), expect(model, Model, "model"), data, len(data))
        return cls._around(pointer)

    @property
    def info(self):
        return query_info("stw_plan_query", "stw_plan_info", self)

    @property
    def json(self):
        return text(entry("stw_plan_json", self))

    @property
    def details(self):
        """The content of `json` as Python objects."""
        return json.loads(self.json)

    @property
    def report(self):
        """The plan as a table for people."""
        return text(entry("stw_plan_report", self))

    def verify(self):
        """Checks every program of the plan with an independent verifier. Raises Error for a mistake."""
        call("stw_plan_verify", self)

    @property
    def relaxations(self):
        """The settings that would help, if the plan does not fit: the closest to the request first."""
        return [info(one) for one in every("stw_plan_relaxation_at", "stw_relaxation_info", self)]

    @property
    def offloads(self):
        """The tensors that the plan keeps in host memory."""
        return [info(one) for one in every("stw_plan_offload_at", "stw_offload_info", self)]

    @property
    def buffers(self):
        """The buffers in the arena: their places and lifetimes."""
        return [info(one) for one in every("stw_plan_buffer_at", "stw_buffer_info", self)]

    def frontier(self, most=1024, watch=None):
        """The plans that other budgets would get (the Pareto frontier of memory and speed), by growing
        peak."""
        points = (_abi.stw_frontier_point * most)()
        points[0].struct_size = ctypes.sizeof(_abi.stw_frontier_point)
        count = ctypes.c_size_t()
        with used(watch):
            call("stw_plan_frontier_watched", self, points, most, ctypes.byref(count), watch)
        return [info(points[i]) for i in range(min(count.value, most))]

    def picture(self, kind="svg", watch=None):
        """The plan as "svg", "html" (a page that loads nothing else) or "csv"."""
        number, size = number_of_picture(kind), ctypes.c_size_t()
        with used(watch):
            call("stw_plan_picture_watched", self, number, None, 0, ctypes.byref(size), watch)
            out = ctypes.create_string_buffer(size.value)
            call("stw_plan_picture_watched", self, number, out, size.value, None, watch)
        return text(out.value)


def number_of_picture(kind):
    constant = f"STW_PICTURE_{kind.upper()}"
    if not hasattr(_abi, constant):
        raise ValueError(f'picture "{kind}": expected svg, html or csv')
    return getattr(_abi, constant)


def longest_sequence(model, global_batch, **values):
    """The longest sequence, in tokens, that fits with these options, which are those of a Plan."""
    chosen, length = plan_options(model, global_batch, **values), ctypes.c_uint64()
    call("stw_plan_longest_sequence", model, ctypes.byref(chosen), ctypes.byref(length))
    return length.value


def pack(buffers, constraints=None, **values):
    """Finds offsets for `buffers`, each (lower, upper, size): alive in [lower, upper). Returns the offsets
    and the result of the search: `answer`, `height`, `bound`, `nodes`. `constraints`: for each buffer None,
    or a mapping with any of `alignment`, `offset` (fixed) and `gaps`. A gap (lower, upper) is a time without
    bytes; in a gap (lower, upper, first, end) the buffer needs only those bytes. Other keyword arguments:
    fields of stw_pack_options. Raises Error if no placement within `capacity` is found."""
    kinds = [kind for _, kind in _abi.stw_buffer_lifetime._fields_]
    lives = (_abi.stw_buffer_lifetime * len(buffers))(
        *(
            _abi.stw_buffer_lifetime(*map(fitting, kinds, buffer, ("lower", "upper", "size")))
            for buffer in buffers
        )
    )
    offsets, found, chosen = (
        (ctypes.c_uint64 * len(buffers))(),
        struct("stw_pack_result"),
        options("stw_pack_options", **values),
    )
    held = _constraints(constraints, len(buffers))
    chosen.constraints = held
    call("stw_pack", offsets, lives, len(buffers), ctypes.byref(chosen), ctypes.byref(found))
    return list(offsets), info(found)


def _constraints(constraints, count):
    """An array of stw_buffer_constraint."""
    if constraints is None:
        return None
    if len(constraints) != count:
        raise ValueError(f"constraints: expected {count}, one for each buffer, found {len(constraints)}")
    held = (_abi.stw_buffer_constraint * count)()
    for to, one in zip(held, constraints):
        one = dict(one or {})
        if "offset" in one:
            to.offset, to.set_mask = (
                fitting(ctypes.c_uint64, one.pop("offset"), "offset"),
                _abi.STW_SET_OFFSET,
            )
        to.alignment = fitting(ctypes.c_uint64, one.pop("alignment", 0), "alignment")
        gaps = [tuple(gap) for gap in one.pop("gaps", ())]
        if one or any(len(gap) not in (2, 4) for gap in gaps):
            raise ValueError(
                "constraints: expected alignment, offset and gaps, each (lower, upper) or (lower, "
                f"upper, first, end), found {one or gaps}"
            )
        kinds = [kind for _, kind in _abi.stw_buffer_gap._fields_]
        to.gaps = (_abi.stw_buffer_gap * len(gaps))(
            *(
                _abi.stw_buffer_gap(*map(fitting, kinds, gap, ("lower", "upper", "first", "end")))
                for gap in gaps
            )
        )
        to.gap_count = len(gaps)
    return held


def profile_info(profile):
    """The figures of a calibrated profile, as Trainer.calibrate returned it. `ops` has the figures of every
    kind of op."""
    data, figures = encoded(profile), struct("stw_profile_info")
    call("stw_profile_read", data, len(data), ctypes.byref(figures))
    found = info(figures)
    found.ops = [info(one) for one in every("stw_profile_op_at", "stw_profile_op_info", data, len(data))]
    return found
