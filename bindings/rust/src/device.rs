//! Devices that compute: the CPU, and CUDA devices.
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::abi::{
    self, stw_device_info as DeviceInfo, stw_log_message as LogMessage, stw_memory_holder as MemoryHolder,
};
use crate::choices::{Backend, Isa, LogLevel};
use crate::error::{check, every, query, Error, Result, Status};
use crate::text::{optional_path, pointer};

/// Receives messages (level, component, message), on the threads that call the library. Its panics are
/// dropped.
pub type Log = Box<dyn Fn(LogLevel, &str, &str) + Send + Sync>;

/// The host's memory for arenas.
///
/// # Safety
/// `allocate` returns memory of at least `bytes` at a multiple of `alignment`, or null. No other code uses
/// the memory until `release` is called. On a CUDA device it is memory of the device, in the order of
/// `stream` ([`DeviceOptions::stream`], else null). A panic counts as null.
pub unsafe trait Memory: Send + Sync {
    fn allocate(&self, bytes: usize, alignment: usize, stream: *mut c_void) -> *mut c_void;
    /// # Safety
    /// `memory` came from `allocate` with the same number of bytes, and is no longer used.
    unsafe fn release(&self, memory: *mut c_void, bytes: usize, stream: *mut c_void);
}

/// The host's threads.
///
/// # Safety
/// `run` calls `task(i)` once for every i in 0..tasks, on any threads and in any order, at most
/// [`DeviceOptions::threads`] at the same time. It returns when all have returned. A panic of `run` ends the
/// process, because tasks may still be running.
pub unsafe trait Executor: Send + Sync {
    fn run(&self, tasks: u32, task: &(dyn Fn(u32) + Sync));
}

/// A CUDA stream of the host.
#[derive(Debug, Clone, Copy)]
pub struct Stream(*mut c_void);

impl Stream {
    /// # Safety
    /// The stream must belong to the device's primary context, and must live until the device is closed after
    /// its last trainer.
    pub unsafe fn new(stream: *mut c_void) -> Stream {
        Stream(stream)
    }
}

/// `stw_device_options`; the rest is `..Default::default()`.
#[derive(Default)]
pub struct DeviceOptions<'a> {
    pub backend: Backend,
    /// The number of the CUDA device, if there are several.
    pub ordinal: i32,
    /// CPU: threads that compute; 0: one for each processor. CUDA: threads that draw weights or quantize.
    pub threads: u32,
    pub isa: Isa,
    pub log_level: LogLevel,
    pub log: Option<Log>,
    pub memory: Option<Box<dyn Memory>>,
    /// None: the library's own threads, which sleep when they are idle.
    pub executor: Option<Box<dyn Executor>>,
    /// CUDA: the host's stream; none: the library makes one.
    pub stream: Option<Stream>,
    /// CUDA: the path of a libcublasLt.so.13 or libcudnn.so.9; none: the one that the system finds.
    pub cublaslt: Option<&'a Path>,
    pub cudnn: Option<&'a Path>,
}

/// A callback of the library, as a thin pointer to its own box. The box is freed after the device is closed.
struct Callback<T>(*mut T);

impl<T> Callback<T> {
    fn new(target: Option<T>) -> Callback<T> {
        Callback(target.map_or(ptr::null_mut(), |target| Box::into_raw(Box::new(target))))
    }

    /// Null for none.
    fn user(&self) -> *mut c_void {
        self.0.cast()
    }
}

impl<T> Drop for Callback<T> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

/// The result of a callback whose panic no caller receives. Dropping the payload of the panic could panic,
/// too, so the payload is leaked: no panic may pass through C's frames.
fn quietly<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(std::mem::forget).ok()
}

pub(crate) struct Open {
    pub(crate) pointer: NonNull<abi::stw_device>,
    // Dropped after the device is closed.
    _log: Callback<Log>,
    _memory: Callback<Box<dyn Memory>>,
    _executor: Callback<Box<dyn Executor>>,
}

// Through an `&Open`, threads call only entries that take the device `const`, which is allowed at any time.
// Creating a trainer takes a `&mut Device`.
unsafe impl Send for Open {}
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        unsafe { abi::stw_device_close(self.pointer.as_ptr()) }
    }
}

unsafe extern "C" fn log(user: *mut c_void, level: i32, component: *const c_char, message: *const c_char) {
    let callback = &*(user as *const Log);
    let level = LogLevel::from_number(level as u32).unwrap_or_default();
    let (component, message) =
        (CStr::from_ptr(component).to_string_lossy(), CStr::from_ptr(message).to_string_lossy());
    quietly(|| callback(level, &component, &message));
}

unsafe extern "C" fn allocate(
    user: *mut c_void,
    bytes: usize,
    alignment: usize,
    stream: *mut c_void,
) -> *mut c_void {
    let memory = &*(user as *const Box<dyn Memory>);
    quietly(|| memory.allocate(bytes, alignment, stream)).unwrap_or(ptr::null_mut())
}

unsafe extern "C" fn release(user: *mut c_void, memory: *mut c_void, bytes: usize, stream: *mut c_void) {
    let allocator = &*(user as *const Box<dyn Memory>);
    quietly(|| allocator.release(memory, bytes, stream));
}

unsafe extern "C" fn run(
    user: *mut c_void,
    tasks: u32,
    task: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    context: *mut c_void,
) {
    struct Shared(*mut c_void);
    unsafe impl Sync for Shared {}
    impl Shared {
        fn context(&self) -> *mut c_void {
            self.0
        }
    }
    let (executor, shared) = (&*(user as *const Box<dyn Executor>), Shared(context));
    let done = quietly(|| {
        if let Some(task) = task {
            executor.run(tasks, &|index| unsafe { task(shared.context(), index) });
        }
    });
    if done.is_none() {
        std::process::abort();
    }
}

/// An open device. It is closed after the last trainer on it is dropped. On CUDA, work runs asynchronously on
/// [`DeviceOptions::stream`], or without it on a stream that the library makes.
pub struct Device {
    pub(crate) open: Arc<Open>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Device").field("pointer", &self.open.pointer).finish_non_exhaustive()
    }
}

impl Device {
    /// # Errors
    /// [`Status::UNSUPPORTED`] if this library or machine has no such backend or instruction set.
    pub fn open(options: DeviceOptions) -> Result<Device> {
        let (cublaslt, cudnn) = (optional_path(options.cublaslt)?, optional_path(options.cudnn)?);
        let (logger, memory, executor) =
            (Callback::new(options.log), Callback::new(options.memory), Callback::new(options.executor));
        let mut given = abi::stw_device_options {
            backend: options.backend as u32,
            ordinal: options.ordinal,
            threads: options.threads,
            isa: options.isa as u32,
            log_level: options.log_level as i32,
            stream: options.stream.map_or(ptr::null_mut(), |stream| stream.0),
            cublaslt: pointer(&cublaslt),
            cudnn: pointer(&cudnn),
            ..Default::default()
        };
        if !logger.user().is_null() {
            given.log = Some(log);
            given.log_user = logger.user();
        }
        if !memory.user().is_null() {
            given.allocate = Some(allocate);
            given.release = Some(release);
            given.memory_user = memory.user();
        }
        if !executor.user().is_null() {
            given.run = Some(run);
            given.run_user = executor.user();
        }
        let mut out = ptr::null_mut();
        check(|error| unsafe { abi::stw_device_open(&mut out, &given, error) })?;
        let pointer = NonNull::new(out).ok_or_else(|| Error::new(Status::INTERNAL, "no device"))?;
        Ok(Device { open: Arc::new(Open { pointer, _log: logger, _memory: memory, _executor: executor }) })
    }

    fn pointer(&self) -> *const abi::stw_device {
        self.open.pointer.as_ptr()
    }

    pub fn info(&self) -> DeviceInfo {
        query(|out| unsafe { abi::stw_device_query(self.pointer(), out) }).unwrap_or_default()
    }

    /// The processes that hold memory of a CUDA device, the largest first, as far as the driver reports them.
    pub fn holders(&self) -> Vec<MemoryHolder> {
        every(|index, out| unsafe { abi::stw_device_holder_at(self.pointer(), index, out) })
    }

    /// The oldest kept message whose number is larger than `after`.
    pub fn next_log(&self, after: u64) -> Option<LogMessage> {
        query(|out: &mut LogMessage| unsafe { abi::stw_device_next_log(self.pointer(), after, out) })
            .filter(|message| message.number != 0)
    }
}

impl DeviceInfo {
    /// CPU or CUDA.
    pub fn backend(&self) -> Backend {
        Backend::from_number(self.backend).unwrap_or_default()
    }
}

/// The devices that can train on this machine, the CPU first.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let mut found = Vec::new();
    loop {
        let mut info = DeviceInfo::default();
        match check(|error| unsafe { abi::stw_device_at(found.len(), &mut info, error) }) {
            Ok(()) => found.push(info),
            Err(error) if error.status == Status::BAD_ARGUMENT => return Ok(found),
            Err(error) => return Err(error),
        }
    }
}
