"""The program's own memory for arenas: a tensor of PyTorch, an array of NumPy, a mapped file."""

from . import _abi
from ._tensors import memory_of


class Memory:
    """The allocator of a device: `make(bytes)`. Its result is held until the library releases it."""

    def __init__(self, make):
        self.make, self.held, self.error = make, {}, None
        self.device = None  # the device's type and number in DLPack

    def take(self, count, alignment):
        memory = self.make(count + alignment)  # arrays need not be aligned
        if memory is None:
            return None
        address, size, device, keeps = memory_of(memory)
        if device != self.device:
            raise ValueError(
                f"memory of another device was given: {device}, expected {self.device}, "
                "as DLPack numbers them"
            )
        begin = -(-address // alignment) * alignment
        if begin + count > address + size:
            raise ValueError(f"{count + alignment} bytes of memory were expected, found {size}")
        self.held[begin] = keeps
        return begin

    def explain(self, error):
        """The library's error, with the exception of `make` as its cause. An exception that ends the program
        is raised instead."""
        raised, self.error = self.error, None
        if raised is not None and not isinstance(raised, Exception):
            raise raised
        raise error from raised


def callbacks_of(memory):
    """The two callbacks for stw_device_options. They hold the Memory object, and it does not hold them, so
    that there is no cycle."""

    def allocate(_, count, alignment, stream):
        try:
            return memory.take(count, alignment)
        except BaseException as error:  # no exception may pass through the library
            memory.error = error
            return None

    def release(_, address, count, stream):
        memory.held.pop(address, None)

    return _abi.stw_allocate_fn(allocate), _abi.stw_release_fn(release)
