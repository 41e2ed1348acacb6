//! Between the last micro-step and the update: the host's own hands on the gradients.
use std::any::Any;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use crate::abi;
use crate::error::{copied, Error};

/// Any error of the host's.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// May change the gradients before they are used; an error fails the step, which then has updated nothing.
pub type GradientHook = Box<dyn FnMut(&mut Gradients) -> Result<(), BoxedError> + Send>;

/// `stw_gradients`: adding all of them up over several trainers makes one step of the joint batch.
pub struct Gradients<'a> {
    told: abi::stw_gradients,
    on_host: bool,
    _step: PhantomData<&'a mut f32>,
}

/// Of a trainer in host memory.
pub struct HostGradients<'a> {
    /// Sums over tokens, not normalised, of all trainable parameters; holes are to be ignored.
    pub data: &'a mut [f32],
    pub loss_sum: &'a mut f64,
    pub target_count: &'a mut u64,
    /// Of a preference: pairs whose chosen document was ahead. None with a library that does not know it.
    pub in_order: Option<&'a mut u32>,
}

impl Gradients<'_> {
    /// None where they lie in a GPU's memory.
    pub fn on_host(&mut self) -> Option<HostGradients<'_>> {
        let told = &self.told;
        self.on_host.then(|| unsafe {
            HostGradients {
                data: std::slice::from_raw_parts_mut(told.data, told.count as usize),
                loss_sum: &mut *told.loss_sum,
                target_count: &mut *told.target_count,
                in_order: told.in_order.as_mut(),
            }
        })
    }

    /// Their addresses, of a GPU's memory to be used in the order of their stream.
    pub fn raw(&self) -> &abi::stw_gradients {
        &self.told
    }

    /// That they carry: 1 unless the precision is fp16.
    pub fn scale(&self) -> f64 {
        self.told.scale
    }
}

/// A trainer's hook, and what became of its last call.
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

    /// After the call in which the hook was called.
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
    let mut given = Gradients { told: copied(gradients), on_host: hook.on_host, _step: PhantomData };
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
