//! Plans: the place of every buffer in memory, the budget that it fits, and the predicted speed. Planning
//! needs no device, no file and no clock.
use std::os::raw::c_char;
use std::ptr::{self, NonNull};

use crate::abi::{
    self, stw_device_info as DeviceInfo, stw_frontier_point as FrontierPoint, stw_plan_info as PlanInfo,
    stw_relaxation_info as Relaxation,
};
use crate::choices::{
    Attention, Backend, GradientPrecision, Keep, Kernels, Master, Mode, Optimizer, Picture, Precision,
    Preference, Quantize, Recompute, States,
};
use crate::error::{check, every, query, Error, Result, Status};
use crate::model::Model;
use crate::text::{from_c, optional, pointer, to_c};
use crate::watch::Watch;

/// Settings for all parameters that match a pattern: `"embeddings"`, `"blocks.0-1"`, `"norms"`, …, or a
/// tensor's name with * and ?. A setting of `None` changes nothing.
#[derive(Default, Clone, Debug)]
pub struct ParameterGroup<'a> {
    pub pattern: &'a str,
    pub frozen: Option<bool>,
    /// Factor by which the run's learning rate is multiplied.
    pub learning_rate: Option<f64>,
    pub weight_decay: Option<f64>,
    /// 32 or 8 bits.
    pub states: Option<States>,
}

/// `stw_plan_options`; the rest is `..Default::default()`.
#[derive(Default, Clone, Debug)]
pub struct PlanOptions<'a> {
    /// Largest peak, in bytes; 0: all memory of the device.
    pub memory_bytes: u64,
    /// Samples of one optimizer step; required.
    pub global_batch: u64,
    /// Tokens of a sample; 0: the model's positions, at most 1024.
    pub sequence: u64,
    /// `"cpu"`, the name of a profile such as `"rtx4090"`, or a device's
    /// [`DeviceInfo::profile`](crate::DeviceInfo); none: `"cpu"`.
    pub device: Option<&'a str>,
    /// Bytes that are free on the device now; 0: unknown, see `memory_bytes`.
    pub device_memory: u64,
    /// Part of the budget that is left for memory outside the arena; none: the profile's reserve.
    pub reserve_bytes: Option<u64>,
    /// CPU: threads that will compute; 0: one for each processor.
    pub threads: u32,
    pub precision: Precision,
    pub optimizer: Optimizer,
    pub states: States,
    /// 0: the planner chooses.
    pub micro_batch: u32,
    pub recompute: Recompute,
    pub mode: Mode,
    /// Batches may have positions: several documents in a sample.
    pub positions: bool,
    /// Batches may have weights of tokens.
    pub weights: bool,
    /// Host memory, in bytes, that offloaded tensors may take; 0: nothing is offloaded.
    pub host_bytes: u64,
    /// A profile that [`Trainer::calibrate`](crate::Trainer::calibrate) returned.
    pub profile: Option<&'a str>,
    /// If several groups name a parameter, the later ones win.
    pub groups: &'a [ParameterGroup<'a>],
    pub master: Master,
    pub kernels: Kernels,
    pub gradients: GradientPrecision,
    /// The backward pass updates the parameters of blocks, so that their gradients need not be kept.
    pub fused_update: bool,
    pub attention: Attention,
    pub quantize: Quantize,
    pub quantize_embeddings: Quantize,
    /// For pairs of documents. Batches then have positions even without
    /// [`positions`](PlanOptions::positions).
    pub preference: Preference,
    /// Settings that [`Plan::relaxations`] must not change.
    pub keep: Keep,
    /// The trainer will have a gradient hook, so all gradients are in the arena.
    pub gradient_hook: bool,
    /// For encoders that label texts: the largest number of texts in a sample, for which the last rows are
    /// computed; 0: any number.
    pub texts: u64,
    /// Reports and cancels the planning.
    pub watch: Option<&'a Watch>,
}

impl<'a> PlanOptions<'a> {
    /// The same options for a device: its profile, its number of threads, and on a GPU its free memory, if
    /// the options leave them unset.
    pub fn on(mut self, device: &'a DeviceInfo) -> PlanOptions<'a> {
        if self.profile.is_none() {
            self.device = self.device.or(Some(&device.profile));
        }
        match device.backend() {
            Backend::Cpu if self.threads == 0 => self.threads = device.threads,
            Backend::Cuda if self.device_memory == 0 => {
                self.device_memory = device.memory_free + device.memory_reserved
            }
            _ => {}
        }
        self
    }
}

impl PlanOptions<'_> {
    /// Makes a call with these options as a C struct.
    fn with<T>(&self, call: impl FnOnce(&abi::stw_plan_options) -> T) -> Result<T> {
        let device = optional(self.device)?;
        let patterns = self.groups.iter().map(|group| to_c(group.pattern)).collect::<Result<Vec<_>>>()?;
        let groups: Vec<abi::stw_parameter_group> = self
            .groups
            .iter()
            .zip(&patterns)
            .map(|(group, pattern)| {
                let mask = [
                    (group.frozen.is_some(), abi::STW_SET_GROUP_FROZEN),
                    (group.learning_rate.is_some(), abi::STW_SET_GROUP_RATE),
                    (group.weight_decay.is_some(), abi::STW_SET_GROUP_DECAY),
                    (group.states.is_some(), abi::STW_SET_GROUP_STATES),
                ];
                abi::stw_parameter_group {
                    set_mask: mask.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum(),
                    pattern: pattern.as_ptr(),
                    frozen: group.frozen.unwrap_or(false) as u32,
                    state_bits: group.states.map_or(0, |states| states as u32),
                    learning_rate: group.learning_rate.unwrap_or(0.0),
                    weight_decay: group.weight_decay.unwrap_or(0.0),
                    ..Default::default()
                }
            })
            .collect();
        let inputs = [(self.positions, abi::STW_INPUT_POSITIONS), (self.weights, abi::STW_INPUT_WEIGHTS)];
        let answer = call(&abi::stw_plan_options {
            set_mask: if self.reserve_bytes.is_some() { abi::STW_SET_RESERVE } else { 0 },
            memory_bytes: self.memory_bytes,
            global_batch: self.global_batch,
            sequence: self.sequence,
            device: pointer(&device),
            device_memory: self.device_memory,
            reserve_bytes: self.reserve_bytes.unwrap_or(0),
            threads: self.threads,
            precision: self.precision as u32,
            optimizer: self.optimizer as u32,
            state_bits: self.states as u32,
            micro_batch: self.micro_batch,
            recompute: self.recompute as u32,
            mode: self.mode as u32,
            inputs: inputs.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum(),
            host_bytes: self.host_bytes,
            profile: self.profile.map_or(ptr::null(), |text| text.as_ptr() as *const c_char),
            profile_size: self.profile.map_or(0, str::len),
            groups: if groups.is_empty() { ptr::null() } else { groups.as_ptr() },
            group_count: groups.len(),
            master: self.master as u32,
            kernels: self.kernels as u32,
            gradients: self.gradients as u32,
            fused_update: self.fused_update as u32,
            attention: self.attention as u32,
            quantize: self.quantize as u32,
            quantize_embeddings: self.quantize_embeddings as u32,
            preference: self.preference as u32,
            keep: self.keep.bits(),
            gradient_hook: self.gradient_hook as u32,
            texts: self.texts,
            watch: Watch::pointer_of(self.watch),
            ..Default::default()
        });
        Watch::explain(self.watch);
        Ok(answer)
    }
}

/// A buffer of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer<'a> {
    pub name: &'a str,
    /// `"parameters"`, `"gradients"`, …
    pub owner: &'a str,
    /// The offset in the arena.
    pub offset: u64,
    pub bytes: u64,
    /// The instructions of the micro-step's program that need it; none: it is always alive.
    pub lifetime: Option<std::ops::RangeInclusive<u32>>,
}

/// Tensors that a plan keeps in host memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offload {
    /// `"optimizer"`, `"masters"`, `"gradients"`, `"weights"` or `"inputs"`.
    pub tensors: &'static str,
    /// The number of blocks, from the first one on.
    pub blocks: u32,
    pub outside_blocks: bool,
    pub bytes: u64,
}

/// A plan, which can be trained, printed or kept as JSON.
#[derive(Debug)]
pub struct Plan {
    pub(crate) pointer: NonNull<abi::stw_plan>,
}

// Every entry except stw_plan_destroy takes the plan `const`.
unsafe impl Send for Plan {}
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        unsafe { abi::stw_plan_destroy(self.pointer.as_ptr()) }
    }
}

impl Plan {
    pub(crate) fn around(pointer: *mut abi::stw_plan) -> Option<Plan> {
        NonNull::new(pointer).map(|pointer| Plan { pointer })
    }

    fn created(pointer: *mut abi::stw_plan) -> Result<Plan> {
        Plan::around(pointer).ok_or_else(|| Error::new(Status::INTERNAL, "no plan"))
    }

    /// Chooses the fastest way to train that fits.
    ///
    /// # Errors
    /// [`Status::OVER_BUDGET`] if nothing fits; [`Error::plan`] says what would. [`Status::BAD_ARGUMENT`],
    /// [`Status::UNSUPPORTED`]; [`Status::CORRUPT`] for a profile that cannot be read.
    pub fn new(model: &Model, options: &PlanOptions) -> Result<Plan> {
        let mut out = ptr::null_mut();
        match options.with(|given| {
            check(|error| unsafe { abi::stw_plan_create(&mut out, model.pointer.as_ptr(), given, error) })
        })? {
            Ok(()) => Plan::created(out),
            Err(error) => Err(match Plan::around(out) {
                Some(plan) => error.with_plan(plan),
                None => error,
            }),
        }
    }

    /// Reads text that [`Plan::json`] returned.
    ///
    /// # Errors
    /// [`Status::CORRUPT`] if the text was edited; [`Status::BAD_STATE`] if it belongs to another model;
    /// [`Status::UNSUPPORTED`] if it has another version.
    pub fn load(model: &Model, json: &str) -> Result<Plan> {
        let mut out = ptr::null_mut();
        check(|error| unsafe {
            abi::stw_plan_load(
                &mut out,
                model.pointer.as_ptr(),
                json.as_ptr() as *const c_char,
                json.len(),
                error,
            )
        })?;
        Plan::created(out)
    }

    /// The longest sequence, in tokens, that fits with these options. Their sequence is ignored.
    pub fn longest_sequence(model: &Model, options: &PlanOptions) -> Result<u64> {
        let mut longest = 0;
        options.with(|given| {
            check(|error| unsafe {
                abi::stw_plan_longest_sequence(model.pointer.as_ptr(), given, &mut longest, error)
            })
        })??;
        Ok(longest)
    }

    fn pointer(&self) -> *const abi::stw_plan {
        self.pointer.as_ptr()
    }

    pub fn info(&self) -> PlanInfo {
        query(|out| unsafe { abi::stw_plan_query(self.pointer(), out) }).unwrap_or_default()
    }

    pub fn json(&self) -> &str {
        unsafe { from_c(abi::stw_plan_json(self.pointer())) }
    }

    /// The plan as a table for people.
    pub fn report(&self) -> &str {
        unsafe { from_c(abi::stw_plan_report(self.pointer())) }
    }

    /// Checks every program of the plan with an independent verifier.
    pub fn verify(&self) -> Result<()> {
        check(|error| unsafe { abi::stw_plan_verify(self.pointer(), error) })
    }

    /// The settings that would help, if the plan does not fit. Those that are closest to the request come
    /// first.
    pub fn relaxations(&self) -> Vec<Relaxation> {
        every(|index, out| unsafe { abi::stw_plan_relaxation_at(self.pointer(), index, out) })
    }

    /// The tensors that the plan keeps in host memory.
    pub fn offloads(&self) -> Vec<Offload> {
        every(|index, out: &mut abi::stw_offload_info| unsafe {
            abi::stw_plan_offload_at(self.pointer(), index, out)
        })
        .into_iter()
        .map(|found| Offload {
            tensors: unsafe { from_c(found.tensors) },
            blocks: found.blocks,
            outside_blocks: found.outside_blocks != 0,
            bytes: found.bytes,
        })
        .collect()
    }

    /// The plans that other budgets would get (the Pareto frontier of memory and speed), by growing peak.
    pub fn frontier(&self) -> Result<Vec<FrontierPoint>> {
        self.frontier_watched(None)
    }

    /// [`frontier`](Plan::frontier) with a watch.
    pub fn frontier_watched(&self, watch: Option<&Watch>) -> Result<Vec<FrontierPoint>> {
        // If there are more points than fit, the library leaves some out. It gives at most 1000.
        let mut found = vec![FrontierPoint::default(); 1024];
        loop {
            let mut count = 0;
            let watching = Watch::pointer_of(watch);
            let done = check(|error| unsafe {
                abi::stw_plan_frontier_watched(
                    self.pointer(),
                    found.as_mut_ptr(),
                    found.len(),
                    &mut count,
                    watching,
                    error,
                )
            });
            Watch::explain(watch);
            done?;
            let all = count < found.len();
            found.resize_with(if all { count } else { 2 * found.len() }, FrontierPoint::default);
            if all {
                return Ok(found);
            }
        }
    }

    /// The arena as a picture, or its buffers as a table.
    pub fn picture(&self, kind: Picture) -> Result<String> {
        self.picture_watched(kind, None)
    }

    /// [`picture`](Plan::picture) with a watch.
    pub fn picture_watched(&self, kind: Picture, watch: Option<&Watch>) -> Result<String> {
        let draw = |to: *mut c_char, capacity: usize, needed: *mut usize| {
            let watching = Watch::pointer_of(watch);
            let done = check(|error| unsafe {
                abi::stw_plan_picture_watched(
                    self.pointer(),
                    kind as u32,
                    to,
                    capacity,
                    needed,
                    watching,
                    error,
                )
            });
            Watch::explain(watch);
            done
        };
        let mut size = 0;
        draw(ptr::null_mut(), 0, &mut size)?;
        let mut text = vec![0u8; size];
        draw(text.as_mut_ptr() as *mut c_char, size, ptr::null_mut())?;
        text.pop(); // the zero byte
        String::from_utf8(text).map_err(|error| Error::new(Status::INTERNAL, error.to_string()))
    }

    /// All buffers of a micro-step.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let count = unsafe { abi::stw_plan_buffer_count(self.pointer()) };
        let info_at = |index| {
            query(|out: &mut abi::stw_buffer_info| unsafe {
                abi::stw_plan_buffer_at(self.pointer(), index, out)
            })
        };
        (0..count)
            .filter_map(info_at)
            .map(|found| Buffer {
                name: unsafe { from_c(found.name) },
                owner: unsafe { from_c(found.owner) },
                offset: found.offset,
                bytes: found.bytes,
                lifetime: (found.persistent == 0).then_some(found.first..=found.last),
            })
            .collect()
    }
}

/// The figures that the cost model has for a device, whether present or not.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name for [`PlanOptions::device`].
    pub name: &'static str,
    pub title: &'static str,
    /// The source of the figures.
    pub source: &'static str,
    pub figures: abi::stw_profile_info,
    /// Calibrated profiles: the measured figures of each kind of op.
    pub ops: Vec<ProfileOp>,
}

// Its pointers are to static data.
unsafe impl Send for Profile {}
unsafe impl Sync for Profile {}

/// A kind of op of a calibrated profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileOp {
    pub name: &'static str,
    /// Share of the peak that limits the op; above 1000 if data is in caches.
    pub permille: u32,
    /// Fixed time of every op of this kind.
    pub launch_nanoseconds: u64,
    /// Measured time of all ops of this kind in the timed step.
    pub nanoseconds: u64,
}

impl Profile {
    /// Reads a profile that [`Trainer::calibrate`](crate::Trainer::calibrate) returned.
    ///
    /// # Errors
    /// [`Status::CORRUPT`], which names the wrong figure, op, device or version.
    pub fn read(text: &str) -> Result<Profile> {
        let (pointer, mut figures) = (text.as_ptr() as *const c_char, abi::stw_profile_info::default());
        check(|error| unsafe { abi::stw_profile_read(pointer, text.len(), &mut figures, error) })?;
        let ops = every(|index, out: &mut abi::stw_profile_op_info| unsafe {
            abi::stw_profile_op_at(pointer, text.len(), index, out)
        });
        Ok(Profile::from_figures(
            figures,
            ops.into_iter()
                .map(|op| ProfileOp {
                    name: unsafe { from_c(op.name) },
                    permille: op.permille,
                    launch_nanoseconds: op.launch_nanoseconds,
                    nanoseconds: op.nanoseconds,
                })
                .collect(),
        ))
    }

    fn from_figures(figures: abi::stw_profile_info, ops: Vec<ProfileOp>) -> Profile {
        let text = |text| unsafe { from_c(text) };
        Profile {
            name: text(figures.name),
            title: text(figures.title),
            source: text(figures.source),
            figures,
            ops,
        }
    }
}

/// The devices that can be planned for.
pub fn profiles() -> Vec<Profile> {
    every(|index, out| unsafe { abi::stw_profile_at(index, out) })
        .into_iter()
        .map(|figures| Profile::from_figures(figures, Vec::new()))
        .collect()
}
