//! Watches, which cancel long calls and report their progress.
use std::any::Any;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use crate::abi::{self, stw_watch_info as WatchState};
use crate::error::{check, copied, query, Error, Result, Status};

/// Called in the middle of a long call. A break cancels the call.
pub type Notify = Box<dyn FnMut(&WatchState) -> ControlFlow<()> + Send>;

/// `stw_watch_options`; the rest is `..Default::default()`.
#[derive(Default)]
pub struct WatchOptions {
    /// None: the host polls the [`state`](Watch::state), or only cancels.
    pub notify: Option<Notify>,
    /// Shortest time between two calls of `notify`, in milliseconds; none: 100; 0: `notify` is called after
    /// every piece of work.
    pub interval_milliseconds: Option<u32>,
}

struct Notified {
    notify: Notify,
    panic: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
}

struct Shared {
    pointer: NonNull<abi::stw_watch>,
    notified: Option<NonNull<Notified>>,
    panic: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
}

// All entries that are called through it may be called from any thread, and callbacks are Send.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        unsafe {
            abi::stw_watch_destroy(self.pointer.as_ptr());
            if let Some(notified) = self.notified {
                drop(Box::from_raw(notified.as_ptr()));
            }
        }
    }
}

/// Cancels long calls and reports their progress, one call at a time. Put it into the options of plans,
/// datasets and trainers, or pass it to methods whose names end in `_watched`. Clones are the same watch.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Watch").field("pointer", &self.0.pointer).finish_non_exhaustive()
    }
}

impl Watch {
    pub fn new(options: WatchOptions) -> Result<Watch> {
        let panic = Arc::new(Mutex::new(None));
        let notified = options.notify.map(|notify| Box::new(Notified { notify, panic: Arc::clone(&panic) }));
        let notified = notified.map(|notified| unsafe { NonNull::new_unchecked(Box::into_raw(notified)) });
        let given = abi::stw_watch_options {
            set_mask: if options.interval_milliseconds.is_some() { abi::STW_SET_INTERVAL } else { 0 },
            interval_milliseconds: options.interval_milliseconds.unwrap_or(0),
            notify: if notified.is_some() { Some(call_notify) } else { None },
            user: notified.map_or(ptr::null_mut(), |notified| notified.as_ptr() as *mut c_void),
            ..Default::default()
        };
        let mut out = ptr::null_mut();
        let created = check(|error| unsafe { abi::stw_watch_create(&mut out, &given, error) });
        match (created, NonNull::new(out)) {
            (Ok(()), Some(pointer)) => Ok(Watch(Arc::new(Shared { pointer, notified, panic }))),
            (created, _) => {
                if let Some(notified) = notified {
                    drop(unsafe { Box::from_raw(notified.as_ptr()) });
                }
                Err(created.err().unwrap_or_else(|| Error::new(Status::INTERNAL, "no watch")))
            }
        }
    }

    /// Ends the call in progress that uses the watch, or else the next one.
    pub fn cancel(&self) {
        unsafe { abi::stw_watch_cancel(self.0.pointer.as_ptr()) }
    }

    /// The progress of the call in progress.
    pub fn state(&self) -> WatchState {
        query(|out| unsafe { abi::stw_watch_query(self.0.pointer.as_ptr(), out) }).unwrap_or_default()
    }

    /// Null for none.
    pub(crate) fn pointer_of(watch: Option<&Watch>) -> *mut abi::stw_watch {
        watch.map_or(ptr::null_mut(), |watch| watch.0.pointer.as_ptr())
    }

    /// Called after a call that used the watch: resumes a panic of its callback.
    pub(crate) fn explain(watch: Option<&Watch>) {
        if let Some(panic) =
            watch.and_then(|watch| watch.0.panic.lock().unwrap_or_else(PoisonError::into_inner).take())
        {
            resume_unwind(panic);
        }
    }
}

unsafe extern "C" fn call_notify(user: *mut c_void, now: *const abi::stw_watch_info) -> i32 {
    let notified = &mut *(user as *mut Notified);
    let state = copied(now);
    match catch_unwind(AssertUnwindSafe(|| (notified.notify)(&state))) {
        Ok(answer) => answer.is_break() as i32,
        Err(panic) => {
            *notified.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            1
        }
    }
}
