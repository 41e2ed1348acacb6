"""Watches: they cancel long calls, and tell how far these are."""
import contextlib
import ctypes

from . import _abi
from ._library import Handle, _lock, call, copied, entry, expect
from ._options import ask, info, options


class _Told:
    """What the callback shares with its watch, which it must not hold."""

    def __init__(self, notify):
        self.notify, self.error = notify, None
        self.interrupted = lambda: False   # of a trainer: whether Ctrl-C waits

    def called(self, _, now):
        try:
            return int(bool(self.notify and self.notify(info(copied(now)))) or self.interrupted())
        except BaseException as error:   # nothing may pass through the library
            self.error = error
            return 1


class Watch(Handle):
    """For the keyword argument `watch` of Plan, its `frontier` and `picture`, `Model.export`, Dataset and Trainer, whose calls use it one after the other. `notify(now)` is called in the middle of
    a long call, now and then (`interval_milliseconds`); what it returns, if that is true, cancels the call, which then raises Cancelled. `now`
    has `work` and `unit`, words such as "step" and "micro_steps", `done` of `total`, and `share`, 0 to 1."""

    _destroy = "stw_watch_destroy"

    def __init__(self, notify=None, **values):
        super().__init__()
        self._told = _Told(notify)
        self._callback = _abi.stw_watch_fn(self._told.called)
        chosen = options("stw_watch_options", notify=self._callback, **values)
        call("stw_watch_create", ctypes.byref(self._pointer), ctypes.byref(chosen))

    def __del__(self):
        if not self._uses:   # at the end of a program names go in any order: a trainer may still hold it
            super().__del__()

    def cancel(self):
        """From any thread: ends the call under way that uses the watch, or else the next one."""
        entry("stw_watch_cancel", self)

    @property
    def state(self):
        """How far the call under way is; any thread."""
        return ask("stw_watch_query", "stw_watch_info", self)

    def _hold(self, count):
        with _lock:
            self._uses += count


@contextlib.contextmanager
def used(watch):
    """Around a call that uses it: it stays open, and what its callback raised goes on from here."""
    if watch is None:
        yield
        return
    expect(watch, Watch, "watch")
    watch._hold(1)
    try:
        yield
    finally:
        watch._hold(-1)
        error, watch._told.error = watch._told.error, None
        if error is not None:
            raise error
