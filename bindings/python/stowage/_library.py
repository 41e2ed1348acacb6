"""The shared library and calls of it. Structs state their size, and statuses become exceptions."""

import atexit
import ctypes
import ctypes.util
import os
import pathlib
import threading
import time
import types

from . import _abi

_library = None
# guards the counts of uses and the closing of objects; reentrant, because a signal handler or a destructor
# may run inside it
_lock = threading.RLock()
_under_way = {}  # the calls in progress, each with the objects that it uses
_ending_thread = None  # the thread that ends Python; None until it does
# The smallest and largest numbers of C types. ctypes would wrap other numbers silently.
_LIMITS = {
    kind: (lowest, highest)
    for bits in (8, 32, 64)
    for kind, lowest, highest in (
        (getattr(ctypes, f"c_int{bits}"), -(1 << bits - 1), (1 << bits - 1) - 1),
        (getattr(ctypes, f"c_uint{bits}"), 0, (1 << bits) - 1),
    )
}


class Error(Exception):
    """A failure of the library: `name` such as "STW_OVER_BUDGET", its number `status`, and one line of
    text."""

    def __init__(self, status, name, message, native_code=0, bytes_needed=0, bytes_available=0):
        super().__init__(f"{name}: {message}" if message else name)
        self.status, self.name, self.message = status, name, message
        self.native_code, self.bytes_needed, self.bytes_available = native_code, bytes_needed, bytes_available

    def __reduce__(self):
        return type(self), (
            self.status,
            self.name,
            self.message,
            self.native_code,
            self.bytes_needed,
            self.bytes_available,
        )


class Cancelled(Error):
    """A call was stopped by `Trainer.cancel` or by a watch."""


class OverBudget(Error):
    """Nothing fits the budget. `bytes_needed` is a budget that works. If Plan raised it, `plan` can be
    queried and printed, and its report says what would fit."""

    plan = None


class Info(types.SimpleNamespace):
    """A result of the library: numbers and names."""


def load(path=None):
    """Loads the library at `path`. Call it before any other use of this package. Without a path, or without
    this call, the library is the one in this package's folder, else the one that the system finds."""
    global _library
    found = _open(os.fsdecode(path) if path else None)
    for function, (result, arguments) in _abi.FUNCTIONS.items():
        if hasattr(found, function):  # an older library lacks some functions
            getattr(found, function).restype, getattr(found, function).argtypes = result, arguments
    _library = found
    return found


def _open(path):
    """Opens the library at `path`, or in the usual places. Raises OSError, which names these places and says
    what to do."""
    name = "libstowage.so.0"
    here = pathlib.Path(__file__).parent / name
    place = path or (str(here) if here.exists() else ctypes.util.find_library("stowage") or name)
    try:
        found = ctypes.CDLL(place)
    except OSError as error:
        looked = (
            f"{place} ({error})"
            if path or place == str(here)
            else f"{here} (no such file), then where the system looks (LD_LIBRARY_PATH is "
            f"{os.environ.get('LD_LIBRARY_PATH', '')!r}; {error})"
        )
        raise OSError(
            f"Stowage's shared library could not be loaded; looked at {looked}. "
            f"Install it (meson install -C build && ldconfig), copy {name} into {here.parent}, "
            "or say where it is: stowage.load(path)"
        ) from None
    if not hasattr(found, "stw_version"):
        raise OSError(f"{place} is not Stowage's library: it has no stw_version")
    version = found.stw_version()
    if version // 10000 != _abi.STW_VERSION_MAJOR:
        raise OSError(
            f"{place} is Stowage {version // 10000}.{version // 100 % 100}.{version % 100}, "
            f"expected version {_abi.STW_VERSION_MAJOR}.x"
        )
    return found


def library():
    return _library or load()


def struct(name, **values):
    """A struct of that name: zero except for its size and these fields."""
    result = getattr(_abi, name)(**values)
    if hasattr(result, "struct_size"):
        result.struct_size = ctypes.sizeof(result)
    return result


def copied(pointer):
    """A copy of a callback's argument. An older library may know fewer fields: the rest is zero."""
    kind = type(pointer.contents)
    copy = kind()
    ctypes.memmove(ctypes.byref(copy), pointer, min(pointer.contents.struct_size, ctypes.sizeof(kind)))
    return copy


def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def fitting(kind, value, name):
    """The number, if the C type can hold it."""
    lowest, highest = _LIMITS.get(kind, (value, value))
    if isinstance(value, int) and not lowest <= value <= highest:
        raise ValueError(f"{name}: expected {lowest} to {highest}, found {value}")
    return value


def expect(value, kind, name):
    """Checks the type of an object. ctypes would accept any address in its place."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected a {kind.__name__}, found {type(value).__name__}")
    return value


def entry(function, *arguments):
    """Calls an entry directly. Handles are passed as their pointers, and stay open during the call."""
    called = getattr(library(), function)
    used = [one for one in arguments if isinstance(one, Handle)]
    call_of_this = object()
    _stay_if_python_ends()
    with _lock:  # an object in use cannot be closed now
        given = [
            one.pointer
            if isinstance(one, Handle)
            else fitting(kind, one, function)
            if isinstance(one, int)
            else one
            for one, kind in zip(arguments, called.argtypes)
        ]
        for one in used:
            one._uses += 1
        _under_way[call_of_this] = used
    try:
        return called(*given)
    finally:
        with _lock:
            for one in used:
                one._uses -= 1
            _under_way.pop(call_of_this, None)
        _stay_if_python_ends()


def python_ends():
    """Whether Python is ending, and this thread is not the one that ends it."""
    return _ending_thread is not None and _ending_thread != threading.get_ident()


def _stay_if_python_ends():
    if python_ends():
        threading.Event().wait()  # waits for ever: this daemon thread ends with the process


@atexit.register
def _end():
    """When Python ends, it ends a daemon thread as soon as the thread asks for the interpreter's lock. If
    that happens inside a callback, with frames of the library on the stack, the process aborts. Therefore
    calls in progress are cancelled and waited for first."""
    global _ending_thread
    _ending_thread = threading.get_ident()
    while True:
        with _lock:
            used = [one for objects in _under_way.values() for one in objects]
            if not _under_way:
                return
            for one in used:
                one._stop()
        time.sleep(0.002)


os.register_at_fork(after_in_child=_under_way.clear)  # the child has none of the calling threads


def status_name(status):
    return text(entry("stw_status_name", status))


def check(status, error=None):
    if status == _abi.STW_OK:
        return
    raise failure(status, error)


def failure(status, error=None):
    """The exception for a failed call."""
    kind = {_abi.STW_CANCELLED: Cancelled, _abi.STW_OVER_BUDGET: OverBudget}.get(status, Error)
    details = (
        (text(error.message), error.native_code, error.bytes_needed, error.bytes_available)
        if error
        else ("",)
    )
    return kind(status, status_name(status), *details)


def call(function, *arguments, allowed=()):
    """Calls an entry whose last argument is an error. Raises Error unless the status is allowed, and returns
    the status."""
    error = struct("stw_error")
    status = entry(function, *arguments, ctypes.byref(error))
    if status not in allowed:
        check(status, error)
    return status


def query(function, kind, *arguments):
    """The result of an entry that has no error argument, as a struct of that kind; None if the entry answers
    that there is no such object."""
    result = struct(kind)
    status = entry(function, *arguments, ctypes.byref(result))
    if status == _abi.STW_BAD_ARGUMENT:
        return None
    check(status)
    return result


def every(function, kind, *arguments):
    """All results of an entry, from index 0 on."""
    index = 0
    while (one := query(function, kind, *arguments, index)) is not None:
        yield one
        index += 1


def names(function, *arguments):
    """All names that an entry gives, from index 0 on."""
    found = []
    while (name := entry(function, *arguments, len(found))) is not None:
        found.append(text(name))
    return found


class Handle:
    """An object of the library, which is destroyed once."""

    _destroy = None  # the name of the entry that destroys the object
    _of_process = False  # True: after fork(), the child does not destroy it
    _uses = 0  # calls in progress

    def __init__(self):
        self._pointer, self._process = ctypes.c_void_p(), os.getpid()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None) and _library:
            self.close()

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} has no copies")

    def close(self):
        """Destroys the object, which can no longer be used then. Raises RuntimeError while a call uses it."""
        with _lock:
            self._check_unused()
            pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer:
            self._give_back(pointer)

    def _stop(self):
        """Asks the call in progress to end soon, if that is possible."""

    def _check_unused(self):
        if self._uses:
            raise RuntimeError(f"this {type(self).__name__} is in use")

    def _give_back(self, pointer):
        if not (self._of_process and self._process != os.getpid()):
            entry(self._destroy, pointer)

    @property
    def pointer(self):
        """The library's pointer to the object."""
        if not self._pointer:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._pointer
