"""Watches, which cancel long calls and report their progress."""

import contextlib
import ctypes

from . import _abi
from ._library import Handle, _lock, call, copied, entry, expect
from ._options import info, options, query_info


class _Notifier:
    """The state that the callback shares with its watch. The callback must not hold the watch itself."""

    def __init__(self, notify):
        self.notify, self.error = notify, None
        self.interrupted = lambda: False  # a trainer replaces it; true: a Ctrl-C is pending

    def called(self, _, now):
        try:
            return int(bool(self.notify and self.notify(info(copied(now)))) or self.interrupted())
        except BaseException as error:  # no exception may pass through the library
            self.error = error
            return 1


class Watch(Handle):
    """Cancels long calls and reports their progress, one call at a time. Pass it as the keyword argument
    `watch` of Plan, its `frontier` and `picture`, `Model.export`, Dataset and Trainer. `notify(now)` is
    called in the middle of a long call, every `interval_milliseconds`. If it returns a true value, the call
    is cancelled and raises Cancelled. `now` has `work` and `unit`, which are words such as "step" and
    "micro_steps", `done` of `total`, and `share`, 0 to 1."""

    _destroy = "stw_watch_destroy"

    def __init__(self, notify=None, **values):
        super().__init__()
        self._notifier = _Notifier(notify)
        self._callback = _abi.stw_watch_fn(self._notifier.called)
        chosen = options("stw_watch_options", notify=self._callback, **values)
        call("stw_watch_create", ctypes.byref(self._pointer), ctypes.byref(chosen))

    def __del__(self):
        # When Python ends, objects are destroyed in any order. A trainer may still use this watch then.
        if not self._uses:
            super().__del__()

    def cancel(self):
        """Ends the call in progress that uses the watch, or else the next one. For any thread."""
        entry("stw_watch_cancel", self)

    @property
    def state(self):
        """The progress of the call in progress. For any thread."""
        return query_info("stw_watch_query", "stw_watch_info", self)

    def _hold(self, count):
        with _lock:
            self._uses += count


@contextlib.contextmanager
def used(watch):
    """A context for a call that uses the watch: the watch stays open, and an exception of its callback is
    raised at the end."""
    if watch is None:
        yield
        return
    expect(watch, Watch, "watch")
    watch._hold(1)
    try:
        yield
    finally:
        watch._hold(-1)
        error, watch._notifier.error = watch._notifier.error, None
        if error is not None:
            raise error
