"""Tensors in and out without copies: DLPack 1.0 (https://dmlc.github.io/dlpack, "C API"), and Python's buffers."""
import array
import ctypes
import math
import sys
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from ._library import fitting

CPU, CUDA = 1, 2   # DLDeviceType
INT, UNSIGNED, FLOAT, BFLOAT = 0, 1, 2, 4
_FORMATS = {**dict.fromkeys("bhilq", INT), **dict.fromkeys("BHILQ", UNSIGNED), **dict.fromkeys("efd", FLOAT)}   # of buffers


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p)), ("flags", c_uint64),
                ("dl_tensor", DLTensor)]


# Capsules by their addresses: a reference to one that is about to go would end it once more.
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
_VERSIONED, _PLAIN = b"dltensor_versioned", b"dltensor"


def _integers(values):
    return (c_int64 * len(values))(*values)


def _of_buffer(view):
    """A tensor over a memoryview, which must outlive it."""
    form = view.format[1:] if view.format[:1] in ("@", "=", "<" if sys.byteorder == "little" else ">") else view.format
    if form not in _FORMATS:
        raise TypeError(f"a buffer of format {view.format!r} is no tensor of numbers")
    size, code = view.itemsize, _FORMATS[form]
    if any(stride % size for stride in view.strides):   # a field of packed records
        raise ValueError(f"a tensor's strides are whole items of {size} bytes, found {view.strides}: make a copy of it")
    made = DLManagedTensorVersioned(major=1, minor=0)
    made.keeps = (view, _integers(view.shape), _integers([stride // size for stride in view.strides]))
    tensor = made.dl_tensor
    tensor.data = _address(view)
    tensor.device, tensor.ndim, tensor.dtype = DLDevice(CPU, 0), view.ndim, DLDataType(code, 8 * size, 1)
    tensor.shape, tensor.strides = made.keeps[1], made.keeps[2]
    return made


class _Buffer(ctypes.Structure):   # Py_buffer
    _fields_ = [("buf", c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


_get_buffer, _release_buffer = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
_get_buffer.argtypes, _release_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int], [ctypes.POINTER(_Buffer)]
_release_buffer.restype = None


def _address(view):
    """Of its first element: ctypes hands out none of memory that may only be read, or has strides."""
    buffer = _Buffer()
    _get_buffer(view, ctypes.byref(buffer), 0x18)   # PyBUF_STRIDES
    address = buffer.buf
    _release_buffer(ctypes.byref(buffer))
    return address


def _of_rows(rows, code):
    """Lists of numbers, or lists of such lists that are all as long."""
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
    """A DLManagedTensorVersioned over anything that has numbers: what DLPack exports, a buffer such as a NumPy array, or lists, which become
    `code` ("i": int32, "f": float32). It keeps what it looks at."""
    if isinstance(values, (list, tuple)):
        return _of_rows(values, code)
    try:
        return _of_buffer(memoryview(values))
    except (TypeError, BufferError):
        if not hasattr(values, "__dlpack__"):
            raise
    return _of_capsule(values)


def memory_of(values):
    """Where memory lies that may be written to: its address, its bytes, its device as DLPack numbers it, and what keeps it."""
    try:
        view = memoryview(values)
    except (TypeError, BufferError):
        if not hasattr(values, "__dlpack__"):
            raise
    else:
        if view.readonly or not view.c_contiguous:
            raise BufferError("memory that may be written to, without holes, was expected")
        return _address(view), view.nbytes, (CPU, 0), view
    made = _of_capsule(values)
    tensor, shape = made.dl_tensor, shape_of(made)
    if tensor.strides:
        dense = [math.prod(shape[i + 1:]) for i in range(len(shape))]
        if any(size > 1 and tensor.strides[i] != dense[i] for i, size in enumerate(shape)):
            raise BufferError("memory without holes was expected")
    if made.flags & 1:   # DLPACK_FLAG_BITMASK_READ_ONLY
        raise BufferError("memory that may be written to was expected")
    size = math.prod(shape) * tensor.dtype.bits * tensor.dtype.lanes // 8
    return tensor.data + tensor.byte_offset, size, (tensor.device.device_type, tensor.device.device_id), (values, made)


def shape_of(managed):
    return tuple(managed.dl_tensor.shape[i] for i in range(managed.dl_tensor.ndim))


def _of_capsule(values):
    try:
        capsule = values.__dlpack__(max_version=(1, 0))
    except TypeError:   # of before there were versions
        capsule = values.__dlpack__()
    if _is_capsule(id(capsule), _VERSIONED):   # whose id is its address
        made = DLManagedTensorVersioned.from_address(_capsule_pointer(id(capsule), _VERSIONED))
        made.keeps = capsule
        return made
    made = DLManagedTensorVersioned(major=1, minor=0)
    made.dl_tensor = DLTensor.from_address(_capsule_pointer(id(capsule), _PLAIN))
    made.keeps = capsule
    return made


class View:
    """A tensor of a trainer, in its own memory, until the trainer is closed or planned again. NumPy and PyTorch take it without a copy
    (`numpy.asarray`, `torch.from_dlpack`), and so does everything else that reads DLPack 1.0, or of host memory buffers (`view.memory`). What they made
    of it ends with the trainer's memory, too."""

    def __init__(self, pointer, owner):
        self._managed = DLManagedTensorVersioned.from_address(pointer)
        self._owner, self._lease = owner, owner._lease
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
        if self._owner._lease is not self._lease:
            raise ValueError("the trainer was closed or planned again, and its views have ended")
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
        """Of a tensor in host memory: a memoryview of its numbers, of 16 bits as they are stored."""
        self._check(on_host=True)
        kind = ctypes.c_float if self.dtype == "float32" else ctypes.c_uint16
        numbers = (kind * math.prod(self.shape)).from_address(self._managed.dl_tensor.data)
        numbers.keeps = self
        return memoryview(numbers).cast("B").cast("f" if self.dtype == "float32" else "H", self.shape)

    @property
    def __array_interface__(self):
        if self.device[0] != CPU or self.dtype == "bfloat16":
            raise AttributeError("__array_interface__")
        self._check()
        return {"version": 3, "shape": self.shape, "typestr": "<f4" if self.dtype == "float32" else "<f2", "data": (self._managed.dl_tensor.data, False)}

    def __array__(self, *_, **__):
        raise TypeError(f"NumPy has no {self.dtype} of this device; `memory` has its bits")


_exports = {}   # what others hold, by the address of its struct


@ctypes.CFUNCTYPE(None, c_void_p)
def _delete(address, exports=_exports):   # its own, whatever the module still has when Python ends
    exports.pop(address, None)


ctypes.pythonapi.Py_IncRef(ctypes.py_object(_delete))   # who holds a tensor may let go of it after everything here is gone
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_exports))


def _references(address):
    return sys.getrefcount(_exports[address][0])


def drop_unclaimed():
    """Lets go of what was exported and that nobody took. A capsule's own end would be too late: there may be an exception under way."""
    _exports[0] = (object(),)   # that nobody else has
    alone = _references(0)
    del _exports[0]
    for address in list(_exports):
        if _references(address) == alone and _is_capsule(id(_exports[address][0]), _VERSIONED):
            del _exports[address]


def _exported(view):
    """A struct of its own, which keeps the view until its new owner deletes it."""
    drop_unclaimed()
    made = DLManagedTensorVersioned(major=1, minor=0, deleter=_delete, dl_tensor=view._managed.dl_tensor)
    address = ctypes.addressof(made)
    capsule = _new_capsule(address, _VERSIONED, None)
    _exports[address] = (capsule, made, view)
    return capsule


def numbers(values, kind, name):
    """A one-dimensional C array of the numbers."""
    values = [fitting(kind, value, name) for value in values]
    return (kind * len(values))(*values)
