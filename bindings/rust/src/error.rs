//! Failures of the library.
use std::fmt;
use std::sync::Arc;

use crate::abi;
use crate::plan::Plan;
use crate::text::from_c;

/// The result of an operation, or the reason why it failed.
pub type Result<T> = std::result::Result<T, Error>;

/// A status code of the library.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $constant:ident,)*) => {
        impl Status {
            $(#[doc = concat!("`", stringify!($constant), "` of stowage.h")]
              pub const $name: Status = Status(abi::$constant);)*
        }
    };
}

statuses! {
    BAD_ARGUMENT = STW_BAD_ARGUMENT, BAD_STRUCT_SIZE = STW_BAD_STRUCT_SIZE, BAD_STATE = STW_BAD_STATE,
    UNSUPPORTED = STW_UNSUPPORTED, UNSUPPORTED_FIELD = STW_UNSUPPORTED_FIELD,
    UNSUPPORTED_SHAPE = STW_UNSUPPORTED_SHAPE,
    OUT_OF_MEMORY = STW_OUT_OF_MEMORY, OVER_BUDGET = STW_OVER_BUDGET,
    HOST_OUT_OF_MEMORY = STW_HOST_OUT_OF_MEMORY,
    DEVICE_ERROR = STW_DEVICE_ERROR, DEVICE_LOST = STW_DEVICE_LOST, IO_ERROR = STW_IO_ERROR,
    CORRUPT = STW_CORRUPT,
    CANCELLED = STW_CANCELLED, CALLBACK_FAILED = STW_CALLBACK_FAILED, NUMERIC = STW_NUMERIC,
    NON_FINITE = STW_NON_FINITE,
    INTERNAL = STW_INTERNAL,
}

impl Status {
    /// The name of the code, such as `"STW_OVER_BUDGET"`.
    pub fn name(self) -> &'static str {
        unsafe { from_c(abi::stw_status_name(self.0)) }
    }

    /// The category of the code, such as [`Status::OUT_OF_MEMORY`] for [`Status::OVER_BUDGET`].
    pub fn category(self) -> Status {
        Status(self.0 / 1000 * 1000)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// A failure: a code, one line of text, and details.
#[derive(Debug, Clone)]
pub struct Error {
    pub status: Status,
    pub message: String,
    /// errno or cudaError_t, else 0.
    pub native_code: i32,
    /// Bytes, if there was too little memory; else 0.
    pub bytes_needed: u64,
    pub bytes_available: u64,
    plan: Option<Arc<Plan>>,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Error {
        Error {
            status,
            message: message.into(),
            native_code: 0,
            bytes_needed: 0,
            bytes_available: 0,
            plan: None,
            cause: None,
        }
    }

    pub(crate) fn with_plan(mut self, plan: Plan) -> Error {
        self.plan = Some(Arc::new(plan));
        self
    }

    pub(crate) fn with_cause(mut self, cause: Box<dyn std::error::Error + Send + Sync>) -> Error {
        self.cause = Some(Arc::from(cause));
        self
    }

    /// From [`Plan::new`] if nothing fits: the plan that needs the least memory. It cannot be trained, but it
    /// has a report, the smallest budget, and the settings that would help.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            return to.write_str(self.status.name());
        }
        write!(to, "{}: {}", self.status.name(), self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn std::error::Error + 'static))
    }
}

/// Makes a call that may fail. A failure becomes an [`Error`] with the details that the library wrote.
pub(crate) fn check(call: impl FnOnce(*mut abi::stw_error) -> abi::stw_status) -> Result<()> {
    let mut error = abi::stw_error::default();
    match call(&mut error) {
        abi::STW_OK => Ok(()),
        status => Err(Error {
            native_code: error.native_code,
            bytes_needed: error.bytes_needed,
            bytes_available: error.bytes_available,
            ..Error::new(Status(status), error.message.as_str())
        }),
    }
}

/// The result of an entry that has no error argument; none if the entry answers that there is no such object.
pub(crate) fn query<T: Default>(call: impl FnOnce(&mut T) -> abi::stw_status) -> Option<T> {
    let mut result = T::default();
    (call(&mut result) == abi::STW_OK).then_some(result)
}

/// A copy of a callback's argument. An older library may know fewer fields: the rest is zero.
///
/// # Safety
/// `argument` must begin with its size, a u32.
pub(crate) unsafe fn copied<T: Default>(argument: *const T) -> T {
    let mut copy = T::default();
    let size = std::mem::size_of::<T>().min(*(argument as *const u32) as usize);
    std::ptr::copy_nonoverlapping(argument as *const u8, &mut copy as *mut T as *mut u8, size);
    copy
}

/// All results of an entry, from index 0 on.
pub(crate) fn every<T: Default>(call: impl Fn(usize, &mut T) -> abi::stw_status) -> Vec<T> {
    (0..).map_while(|index| query(|out| call(index, out))).collect()
}
