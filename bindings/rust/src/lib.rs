//! Stowage trains neural networks on one device in exactly the memory you give it. This crate calls its C API
//! and has no dependencies.
//!
//! ```no_run
//! use stowage::{Batch, Device, DeviceOptions, Model, Plan, PlanOptions, Trainer, TrainerOptions};
//!
//! # fn main() -> stowage::Result<()> {
//! let model = Model::open("path/to/model")?;                        // or a preset
//! let mut device = Device::open(DeviceOptions::default())?;         // a GPU if there is one, else the CPU
//! let about = device.info();
//! let asked = PlanOptions { global_batch: 32, sequence: 512, memory_bytes: 4 << 30, ..Default::default() };
//! let plan = Plan::new(&model, &asked.on(&about))?;  // over budget: error.plan() says what fits
//! // The only allocation of tensors.
//! let mut trainer = Trainer::new(&mut device, &model, &plan, TrainerOptions::default())?;
//! let tokens = vec![0i32; 32 * 512];
//! let done = trainer.step(&Batch::of_tokens(&tokens, 512), 3e-4)?;
//! println!("{}", done.loss);
//! trainer.export_model("out")
//! # }
//! ```
//!
//! `stowage.h` is the contract. It says what every entry guarantees, and what the fields of options and
//! results mean. The fields have the same names here. Methods that several threads may call at once take
//! `&self`, all others `&mut self`. A panic of a progress callback or of a gradient hook ends the call and
//! then continues in its caller. The other callbacks' comments say what happens to their panics. Paths are
//! UTF-8.
#![allow(clippy::missing_safety_doc, unused_unsafe)]

pub mod abi;
mod batch;
mod choices;
mod dataset;
mod device;
mod dlpack;
mod error;
mod hook;
mod model;
mod pack;
mod plan;
mod text;
mod trainer;
mod watch;

#[doc(inline)]
pub use abi::{
    stw_buffer_gap as Gap, stw_buffer_lifetime as Lifetime, stw_dataset_info as DatasetInfo,
    stw_device_info as DeviceInfo, stw_frontier_point as FrontierPoint, stw_log_message as LogMessage,
    stw_memory_holder as MemoryHolder, stw_model_info as ModelInfo, stw_plan_info as PlanInfo,
    stw_progress as Progress, stw_relaxation_info as Relaxation, stw_step_result as StepResult,
    stw_watch_info as WatchState,
};
pub use batch::{Batch, Rows};
pub use choices::*;
pub use dataset::{Dataset, DatasetOptions};
pub use device::{devices, Device, DeviceOptions, Executor, Log, Memory, Stream};
pub use dlpack::{DLDevice, DLManagedTensorVersioned, DType, Number, View};
pub use error::{Error, Result, Status};
pub use hook::{BoxedError, GradientHook, Gradients, HostGradients};
pub use model::{presets, Model, ModelOptions, TensorInfo};
pub use pack::{pack, pack_constrained, Constraint, Packed};
pub use plan::{profiles, Buffer, Offload, ParameterGroup, Plan, PlanOptions, Profile, ProfileOp};
pub use text::Text;
pub use trainer::{
    verify_checkpoint, Between, Ended, GenerateOptions, Remote, RunOptions, Trainer, TrainerOptions,
};
pub use watch::{Notify, Watch, WatchOptions};

/// The version of the loaded library: major, minor and patch.
pub fn version() -> (u32, u32, u32) {
    let number = unsafe { abi::stw_version() };
    (number / 10000, number / 100 % 100, number % 100)
}

/// How the library was built, in words.
pub fn build_info() -> String {
    unsafe { text::from_c(abi::stw_build_info()) }.to_owned()
}
