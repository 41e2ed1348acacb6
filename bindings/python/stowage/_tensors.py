"""Passes tensors in and out without copies, by DLPack 1.0 (https://dmlc.github.io/dlpack, "C API") and by
Python's buffers."""

import array
import ctypes
import gc
import math
import sys
import weakref
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from ._library import _lock, fitting

CPU, CUDA = 1, 2  # DLDeviceType
INT, UNSIGNED, FLOAT, BFLOAT = 0, 1, 2, 4
# The type code for each format character of a buffer.
_FORMATS = {**dict.fromkeys("bhilq", INT), **dict.fromkeys("BHILQ", UNSIGNED), **dict.fromkeys("efd", FLOAT)}


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, c_void_p)),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


# These functions take the address of a capsule, because a reference to a capsule that is being destroyed
# would destroy it again.
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
_VERSIONED, _PLAIN = b"dltensor_versioned", b"dltensor"


def _integers(values):
    return (c_int64 * len(values))(*values)


def _of_buffer(view):
    """A tensor over a memoryview, which must outlive the tensor."""
    form = (
        view.format[1:]
        if view.format[:1] in ("@", "=", "<" if sys.byteorder == "little" else ">")
        else view.format
    )
    if form not in _FORMATS:
        raise TypeError(f"a buffer of format {view.format!r} is no tensor of numbers")
    size, code = view.itemsize, _FORMATS[form]
    if any(stride % size for stride in view.strides):  # a field of packed records
        raise ValueError(
            f"a tensor's strides are whole items of {size} bytes, found {view.strides}: make a copy of it"
        )
    managed = DLManagedTensorVersioned(major=1, minor=0)
    managed.keeps = (view, _integers(view.shape), _integers([stride // size for stride in view.strides]))
    tensor = managed.dl_tensor
    tensor.data = _address(view)
    tensor.device, tensor.ndim, tensor.dtype = DLDevice(CPU, 0), view.ndim, DLDataType(code, 8 * size, 1)
    tensor.shape, tensor.strides = managed.keeps[1], managed.keeps[2]
    return managed


class _Buffer(ctypes.Structure):  # Py_buffer
    _fields_ = [
        ("buf", c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get_buffer, _release_buffer = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
_get_buffer.argtypes, _release_buffer.argtypes = (
    [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int],
    [ctypes.POINTER(_Buffer)],
)
_release_buffer.restype = None


def _address(view):
    """The address of the first element. ctypes gives no address of memory that is read-only or has
    strides."""
    buffer = _Buffer()
    _get_buffer(view, ctypes.byref(buffer), 0x18)  # PyBUF_STRIDES
    address = buffer.buf
    _release_buffer(ctypes.byref(buffer))
    return address


def _of_rows(rows, code):
    """A tensor from a list of numbers, or from a list of such lists of one length."""
    nested = bool(rows) and hasattr(rows[0], "__len__")
    if nested and any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("rows of one length were expected; pad them, and say how long they are (lengths)")
    try:
        flat = array.array(code, (x for row in rows for x in row) if nested else rows)
    except OverflowError as error:
        raise ValueError(f"a number that int32 does not hold: {error}") from None
    view = memoryview(flat)
    return _of_buffer(view.cast("B").cast(code, (len(rows), len(rows[0]))) if nested and flat else view)


def tensor_of(values, code):
    """A DLManagedTensorVersioned over any object with numbers: a tensor with DLPack, a buffer such as a NumPy
    array, or lists, which become `code` ("i": int32, "f": float32). It keeps that object alive."""
    if isinstance(values, (list, tuple)):
        return _of_rows(values, code)
    try:
        return _of_buffer(memoryview(values))
    except (TypeError, BufferError):
        if not hasattr(values, "__dlpack__"):
            raise
    return _of_capsule(values)


def memory_of(values):
    """Writable memory: its address, its bytes, its device in DLPack's numbers, and the object that keeps it
    alive."""
    try:
        view = memoryview(values)
    except (TypeError, BufferError):
        if not hasattr(values, "__dlpack__"):
            raise
    else:
        if view.readonly or not view.c_contiguous:
            raise BufferError("memory that may be written to, without holes, was expected")
        return _address(view), view.nbytes, (CPU, 0), view
    managed = _of_capsule(values)
    tensor, shape = managed.dl_tensor, shape_of(managed)
    if tensor.strides:
        dense = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        if any(size > 1 and tensor.strides[i] != dense[i] for i, size in enumerate(shape)):
            raise BufferError("memory without holes was expected")
    if managed.flags & 1:  # DLPACK_FLAG_BITMASK_READ_ONLY
        raise BufferError("memory that may be written to was expected")
    size = math.prod(shape) * tensor.dtype.bits * tensor.dtype.lanes // 8
    return (
        tensor.data + tensor.byte_offset,
        size,
        (tensor.device.device_type, tensor.device.device_id),
        (values, managed),
    )


def shape_of(managed):
    return tuple(managed.dl_tensor.shape[i] for i in range(managed.dl_tensor.ndim))


def _of_capsule(values):
    try:
        capsule = values.__dlpack__(max_version=(1, 0))
    except TypeError:  # an older producer, which does not know max_version
        capsule = values.__dlpack__()
    if _is_capsule(id(capsule), _VERSIONED):  # the id of an object is its address
        managed = DLManagedTensorVersioned.from_address(_capsule_pointer(id(capsule), _VERSIONED))
        managed.keeps = capsule
        return managed
    managed = DLManagedTensorVersioned(major=1, minor=0)
    managed.dl_tensor = DLTensor.from_address(_capsule_pointer(id(capsule), _PLAIN))
    managed.keeps = capsule
    return managed


def take_back(given):
    """Releases memoryviews: a later use raises ValueError. Memoryviews that an array uses stay valid."""
    with _lock:
        views, given[:] = [one() for one in given], []
    for view in views:
        try:
            if view is not None:
                view.release()
        except BufferError:
            with _lock:
                given.append(weakref.ref(view))


class Hold:
    """Keeps a trainer's memory alive as long as this object exists."""

    def __init__(self, lease):
        self._lease = lease
        with _lock:
            lease.holds += 1

    def __del__(self):
        with _lock:
            self._lease.holds -= 1
            last = self._lease.take_last()
        if last:
            last()


class Lease:
    """A lease of a trainer's memory. The library releases the memory when the trainer is closed and no object
    uses the memory any more. So arrays that NumPy or PyTorch made from a view stay valid."""

    def __init__(self):
        self.holds, self.generation, self.ended = 0, 0, False
        self._given = []  # memoryviews, which can be taken back
        self._last = None  # releases the memory

    def check(self, generation):
        if self.ended or self.generation != generation:
            raise ValueError("the trainer was closed or planned again, and its views have ended")

    def memory_at(self, address, kind, shape, given=None):
        """A memoryview of numbers in this memory, "f" or "H". It is noted in the list `given`."""
        numbers = self.numbers_at(
            address, ctypes.c_float if kind == "f" else ctypes.c_uint16, math.prod(shape)
        )
        view = memoryview(numbers).cast("B").cast(kind, shape)
        given = self._given if given is None else given
        with _lock:
            given[:] = [one for one in given if one() is not None] + [weakref.ref(view)]
        return view

    def numbers_at(self, address, kind, count):
        """An array of ctypes that holds the memory."""
        numbers = (kind * count).from_address(address)
        numbers.hold = Hold(self)
        return numbers

    def take_last(self):
        """Takes the function that releases the memory, if nothing uses the memory. The caller holds the
        lock."""
        last = None
        if self.holds == 0:
            last, self._last = self._last, None
        return last

    def end(self, last):
        """Ends the trainer's use. Calls `last` when nothing uses the memory any more."""
        self.ended, self._last = True, last
        take_back(self._given)
        drop_unclaimed()
        with _lock:
            last = self.take_last()
        if last:
            last()

    def move(self, moving):
        """Calls `moving`, which releases the memory and takes other memory. Raises BufferError if an object
        uses the memory."""
        take_back(self._given)
        drop_unclaimed()
        if self.holds:
            gc.collect()  # frees reference cycles, too
        if self.holds:
            raise BufferError(
                f"{self.holds} arrays or tensors made of this trainer's views look at the memory that "
                "would go: delete them first, or copy them"
            )
        result = moving()
        self.generation += 1
        return result


class View:
    """A view of a trainer's tensor, in the trainer's memory, until the trainer is closed or planned again.
    NumPy and PyTorch read it without a copy (`numpy.asarray`, `torch.from_dlpack`), and so does every other
    reader of DLPack 1.0. In host memory it is also a buffer (`view.memory`). After a `close`, the view and
    its memoryviews raise ValueError, and arrays keep the trainer's memory alive. `replan` raises BufferError
    while there are such arrays."""

    def __init__(self, pointer, owner):
        self._managed = DLManagedTensorVersioned.from_address(pointer)
        self._owner, self._lease, self._generation = owner, owner._lease, owner._lease.generation
        tensor = self._managed.dl_tensor
        self.shape = shape_of(self._managed)
        self.device = (tensor.device.device_type, tensor.device.device_id)
        self.dtype = "bfloat16" if tensor.dtype.code == BFLOAT else f"float{tensor.dtype.bits}"

    def __del__(self):
        managed, self._managed = getattr(self, "_managed", None), None
        if managed is not None:
            managed.deleter(ctypes.addressof(managed))

    def __reduce__(self):
        raise TypeError("a View has no copies")

    def _check(self, on_host=False):
        self._lease.check(self._generation)
        if on_host and self.device[0] != CPU:
            raise BufferError("the tensor lies in a GPU's memory")

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self._check()
        if not max_version or max_version[0] < 1:
            raise BufferError("DLPack 1.0 was expected")
        if copy or (dl_device is not None and tuple(dl_device) != self.device):
            raise BufferError("a view makes no copies")
        return _exported(self)

    @property
    def memory(self):
        """For a tensor in host memory: a memoryview of its numbers. 16-bit numbers are given as they are
        stored."""
        self._check(on_host=True)
        return self._lease.memory_at(
            self._managed.dl_tensor.data, "f" if self.dtype == "float32" else "H", self.shape
        )

    @property
    def __array_interface__(self):
        if self.device[0] != CPU or self.dtype == "bfloat16":
            raise AttributeError("__array_interface__")
        self._check()
        is_long = self.dtype == "float32"
        numbers = self._lease.numbers_at(
            self._managed.dl_tensor.data,
            ctypes.c_float if is_long else ctypes.c_uint16,
            math.prod(self.shape),
        )
        # the array, and not this view, keeps `data` alive
        return {"version": 3, "shape": self.shape, "typestr": "<f4" if is_long else "<f2", "data": numbers}

    def __array__(self, *_, **__):
        raise TypeError(f"NumPy has no {self.dtype} of this device; `memory` has its bits")


_exports = {}  # tensors that others hold, by the address of their struct


@ctypes.CFUNCTYPE(None, c_void_p)
def _delete(address, exports=_exports):  # a default, because the module may be empty when Python ends
    exports.pop(address, None)


# a holder may release its tensor after this module is gone
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_delete))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_exports))


def _references(address):
    return sys.getrefcount(_exports[address][0])


def drop_unclaimed():
    """Releases tensors that were exported and that no reader took. Capsules have no destructor for this,
    because it could run in the middle of an exception."""
    _exports[0] = (object(),)  # an object that no other code holds
    alone = _references(0)
    del _exports[0]
    for address in list(_exports):
        if _references(address) == alone and _is_capsule(id(_exports[address][0]), _VERSIONED):
            del _exports[address]


def _exported(view):
    """A struct of its own. It keeps the view alive until its new owner deletes it."""
    drop_unclaimed()
    managed = DLManagedTensorVersioned(major=1, minor=0, deleter=_delete, dl_tensor=view._managed.dl_tensor)
    address = ctypes.addressof(managed)
    capsule = _new_capsule(address, _VERSIONED, None)
    _exports[address] = (capsule, managed, view, Hold(view._lease))
    return capsule


def numbers(values, kind, name):
    """A one-dimensional C array of the numbers."""
    values = [fitting(kind, value, name) for value in values]
    return (kind * len(values))(*values)
