//! The gradient hook: host code that runs between the last micro-step and the update.
use std::any::Any;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use crate::abi;
use crate::error::{copied, Error};

/// An error of the host.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// May change the gradients before they are used. An error fails the step, which then updates nothing.
pub type GradientHook = Box<dyn FnMut(&mut Gradients) -> Result<(), BoxedError> + Send>;

/// `stw_gradients`. Adding up all values over several trainers makes one step of the joint batch.
pub struct Gradients<'a> {
    raw: abi::stw_gradients,
    on_host: bool,
    _step: PhantomData<&'a mut f32>,
}

/// The gradients of a trainer in host memory.
pub struct HostGradients<'a> {
    /// Gradients of all trainable parameters: sums over tokens, not divided by their number. Ignore the gaps.
    pub data: &'a mut [f32],
    pub loss_sum: &'a mut f64,
    pub target_count: &'a mut u64,
    /// With a preference: the number of pairs whose chosen document was ahead. None if the library does not
    /// know it.
    pub correct_pairs: Option<&'a mut u32>,
}

impl Gradients<'_> {
    /// The gradients; none if they are in a GPU's memory.
    pub fn on_host(&mut self) -> Option<HostGradients<'_>> {
        let raw = &self.raw;
        self.on_host.then(|| unsafe {
            HostGradients {
                data: std::slice::from_raw_parts_mut(raw.data, raw.count as usize),
                loss_sum: &mut *raw.loss_sum,
                target_count: &mut *raw.target_count,
                correct_pairs: raw.correct_pairs.as_mut(),
            }
        })
    }

    /// The addresses of the gradients. On a GPU, use them in the order of their stream.
    pub fn raw(&self) -> &abi::stw_gradients {
        &self.raw
    }

    /// The scale that the gradients contain: 1 unless the precision is fp16.
    pub fn scale(&self) -> f64 {
        self.raw.scale
    }
}

/// A trainer's hook, and the result of its last call.
pub(crate) struct Hook {
    hook: GradientHook,
    on_host: bool,
    pub(crate) failure: Option<BoxedError>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Hook {
    pub(crate) fn new(hook: GradientHook, on_host: bool) -> Hook {
        Hook { hook, on_host, failure: None, panic: None }
    }

    /// Called after the call that ran the hook.
    pub(crate) fn explain(&mut self, error: Error) -> Error {
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
        match self.failure.take() {
            Some(cause) => error.with_cause(cause),
            None => error,
        }
    }
}

pub(crate) unsafe extern "C" fn call_hook(user: *mut c_void, gradients: *const abi::stw_gradients) -> i32 {
    let hook = &mut *(user as *mut Hook);
    let mut given = Gradients { raw: copied(gradients), on_host: hook.on_host, _step: PhantomData };
    match catch_unwind(AssertUnwindSafe(|| (hook.hook)(&mut given))) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            hook.failure = Some(failure);
            1
        }
        Err(panic) => {
            hook.panic = Some(panic);
            1
        }
    }
}
