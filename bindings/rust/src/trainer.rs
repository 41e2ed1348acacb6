//! Training: steps with a dataset or with a program's own batches, and the answers of a trained model.
use std::any::Any;
use std::ops::ControlFlow;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use crate::abi::{self, stw_progress as Progress, stw_step_result as StepResult};
use crate::batch::Batch;
use crate::choices::{Backend, NonFinite, Phase, Schedule, SkipReason, TensorKind};
use crate::dataset::Dataset;
use crate::device::{Device, Open};
use crate::dlpack::{Borrowed, View};
use crate::error::{check, copied, query, Error, Result, Status};
use crate::hook::{call_hook, GradientHook, Hook};
use crate::model::Model;
use crate::plan::Plan;
use crate::text::path_to_c;
use crate::watch::Watch;

/// `stw_trainer_options`. None: the optimizer's default. The rest is `..Default::default()`.
#[derive(Default)]
pub struct TrainerOptions {
    /// Seed of dropout; none: 1337.
    pub seed: Option<u64>,
    pub beta1: Option<f32>,
    pub beta2: Option<f32>,
    /// 0: 1e-8.
    pub epsilon: f32,
    pub weight_decay: Option<f32>,
    /// Some(0.0): no clipping.
    pub clip_norm: Option<f32>,
    pub nesterov: bool,
    pub momentum: Option<f32>,
    pub gradient_hook: Option<GradientHook>,
    pub label_smoothing: f32,
    pub z_loss: f32,
    /// How many standard deviations a loss or gradient norm may lie above its running mean; 0: no limit.
    pub outlier_limit: f32,
    /// fp16: scale of the first step; 0: 65536.
    pub loss_scale: f64,
    /// fp16: number of updates after which the scale doubles; 0: 2000.
    pub growth_interval: u32,
    pub non_finite: NonFinite,
    /// For the preference of the plan; 0: 0.1, for SimPO 2.
    pub beta: f32,
    /// SimPO; none: half of beta.
    pub margin: Option<f32>,
    /// Factor with which the chosen document's mean token loss is added to a preference's loss.
    pub answer_share: f32,
    /// For a gradient hook that adds up several trainers: the number, in their joint batch, of the first
    /// sample of this trainer's batches.
    pub first_sample: u64,
    /// Reports and cancels the creation and all calls of the trainer.
    pub watch: Option<Watch>,
}

/// `stw_run_options`; the rest is `..Default::default()`.
#[derive(Default, Clone, Debug)]
pub struct RunOptions {
    /// The run ends when this many batches have been consumed in all.
    pub until: u64,
    /// Length of the schedule; 0: `until`.
    pub total: u64,
    pub warmup: u64,
    /// The full rate; 0: the optimizer's default.
    pub learning_rate: f64,
    /// None: a tenth of the full rate; inverse root: 0.
    pub min_rate: Option<f64>,
    pub schedule: Schedule,
    /// Steps between two calls of `progress`; 0: 1.
    pub progress_every: u32,
    pub decay_steps: u64,
    pub base_batch: u64,
}

/// `stw_generate_options`; the rest is `..Default::default()`.
#[derive(Default, Clone, Debug)]
pub struct GenerateOptions<'a> {
    /// 0: all.
    pub top_k: u32,
    /// 0: all.
    pub top_p: f64,
    /// 0: the most probable token.
    pub temperature: f64,
    /// The seed; none: 1337.
    pub seed: Option<u64>,
    /// Tokens that end the answer. The one that ended it is the last token.
    pub stop: &'a [i32],
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All batches were consumed.
    Finished,
    /// The callback or [`Remote::cancel`] stopped it, perhaps after the last batch.
    Stopped,
}

/// None after the trainer has ended.
struct Alive(Mutex<Option<NonNull<abi::stw_trainer>>>);

// All entries that are called through it may be called from any thread.
unsafe impl Send for Alive {}
unsafe impl Sync for Alive {}

/// A handle for other threads while a trainer computes. It may outlive the trainer.
#[derive(Clone)]
pub struct Remote(Arc<Alive>);

impl Remote {
    fn with<T>(&self, call: impl FnOnce(NonNull<abi::stw_trainer>) -> T) -> Option<T> {
        let alive = self.0 .0.lock().unwrap_or_else(PoisonError::into_inner);
        alive.map(call)
    }

    /// Stops the call in progress, within a step too, or else the next one.
    pub fn cancel(&self) {
        self.with(|trainer| unsafe { abi::stw_trainer_cancel(trainer.as_ptr()) });
    }

    /// The state of the trainer; none after the trainer has ended.
    pub fn progress(&self) -> Option<Progress> {
        self.with(|trainer| query(|out| unsafe { abi::stw_trainer_progress(trainer.as_ptr(), out) }))
            .flatten()
    }
}

/// A trainer: a model in an arena of the plan's bytes.
pub struct Trainer {
    pointer: NonNull<abi::stw_trainer>,
    hook: Option<NonNull<Hook>>,
    watch: Option<Watch>,
    alive: Arc<Alive>,
    labels: usize,
    labels_tokens: bool,
    classes: usize,
    sequence: u64,
    shapes: Vec<Vec<i64>>,
    _device: Arc<Open>, // closed after the last of its trainers
}

// One thread at a time computes with it (`&mut`), and hooks are Send.
unsafe impl Send for Trainer {}
unsafe impl Sync for Trainer {}

impl std::fmt::Debug for Trainer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Trainer").field("pointer", &self.pointer).finish_non_exhaustive()
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        *self.alive.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        unsafe {
            abi::stw_trainer_destroy(self.pointer.as_ptr());
            if let Some(hook) = self.hook {
                drop(Box::from_raw(hook.as_ptr()));
            }
        }
    }
}

impl Trainer {
    /// Allocates the plan's arena, once, and fills it with weights. The model and the plan may be dropped
    /// afterwards.
    ///
    /// # Errors
    /// [`Status::OUT_OF_MEMORY`]; [`Status::BAD_STATE`] for a plan that does not fit, or is for another model
    /// or device; the errors of reading weights.
    pub fn new(device: &mut Device, model: &Model, plan: &Plan, options: TrainerOptions) -> Result<Trainer> {
        let on_host = device.info().backend() == Backend::Cpu;
        let hook = options.gradient_hook.map(|hook| Box::new(Hook::new(hook, on_host)));
        let mut given = abi::stw_trainer_options {
            seed: options.seed.unwrap_or(0),
            watch: Watch::pointer_of(options.watch.as_ref()),
            epsilon: options.epsilon,
            nesterov: options.nesterov as u32,
            label_smoothing: options.label_smoothing,
            z_loss: options.z_loss,
            outlier_limit: options.outlier_limit,
            loss_scale: options.loss_scale,
            growth_interval: options.growth_interval,
            non_finite: options.non_finite as u32,
            beta: options.beta,
            answer_share: options.answer_share,
            first_sample: options.first_sample,
            ..Default::default()
        };
        if options.seed.is_some() {
            given.set_mask |= abi::STW_SET_TRAINER_SEED;
        }
        let mut set = |value: Option<f32>, field: fn(&mut abi::stw_trainer_options) -> &mut f32, bit: u32| {
            if let Some(value) = value {
                *field(&mut given) = value;
                given.set_mask |= bit;
            }
        };
        set(options.beta1, |o| &mut o.beta1, abi::STW_SET_BETA1);
        set(options.beta2, |o| &mut o.beta2, abi::STW_SET_BETA2);
        set(options.weight_decay, |o| &mut o.weight_decay, abi::STW_SET_WEIGHT_DECAY);
        set(options.clip_norm, |o| &mut o.clip_norm, abi::STW_SET_CLIP_NORM);
        set(options.momentum, |o| &mut o.momentum, abi::STW_SET_MOMENTUM);
        set(options.margin, |o| &mut o.margin, abi::STW_SET_MARGIN);
        let hook = hook.map(|hook| unsafe { NonNull::new_unchecked(Box::into_raw(hook)) });
        if let Some(hook) = hook {
            given.gradient_hook = Some(call_hook);
            given.gradient_user = hook.as_ptr() as *mut c_void;
        }
        let mut out = ptr::null_mut();
        let created = check(|error| unsafe {
            abi::stw_trainer_create(
                &mut out,
                device.open.pointer.as_ptr(),
                model.pointer.as_ptr(),
                plan.pointer.as_ptr(),
                &given,
                error,
            )
        });
        let pointer = match (created, NonNull::new(out)) {
            (Ok(()), Some(pointer)) => pointer,
            (created, _) => {
                if let Some(hook) = hook {
                    drop(unsafe { Box::from_raw(hook.as_ptr()) });
                }
                Watch::explain(options.watch.as_ref());
                return Err(created.err().unwrap_or_else(|| Error::new(Status::INTERNAL, "no trainer")));
            }
        };
        let about = model.info();
        Ok(Trainer {
            pointer,
            hook,
            watch: options.watch,
            alive: Arc::new(Alive(Mutex::new(Some(pointer)))),
            labels: about.labels as usize,
            labels_tokens: [abi::STW_TASK_TOKEN_LABEL, abi::STW_TASK_SPANS].contains(&about.task),
            classes: if about.labels > 0 { about.labels } else { about.vocabulary } as usize,
            sequence: plan.info().sequence,
            shapes: model.tensors().into_iter().map(|tensor| tensor.shape).collect(),
            _device: Arc::clone(&device.open),
        })
    }

    /// Adds the hook's error to the error of a call.
    fn explain(&mut self, error: Error) -> Error {
        match self.hook {
            Some(mut hook) => unsafe { hook.as_mut() }.explain(error),
            None => error,
        }
    }

    /// Makes a call that may run the gradient hook.
    fn call(
        &mut self,
        call: impl FnOnce(*mut abi::stw_trainer, *mut abi::stw_error) -> abi::stw_status,
    ) -> Result<()> {
        let done = check(|error| call(self.pointer.as_ptr(), error));
        Watch::explain(self.watch.as_ref());
        done.map_err(|error| self.explain(error))
    }

    /// Makes one optimizer step with a whole global batch.
    ///
    /// # Errors
    /// [`Status::BAD_ARGUMENT`] (shapes, a token outside the vocabulary, the rate), [`Status::UNSUPPORTED`]
    /// (an input that the plan does not include), [`Status::CANCELLED`], [`Status::CALLBACK_FAILED`], whose
    /// source is the hook's error.
    pub fn step(&mut self, batch: &Batch, learning_rate: f64) -> Result<StepResult> {
        let mut result = StepResult::default();
        batch.with(learning_rate, |given| {
            self.call(|trainer, error| unsafe { abi::stw_trainer_step(trainer, given, error) })?;
            self.call(|trainer, error| unsafe { abi::stw_trainer_wait(trainer, &mut result, error) })
        })?;
        Ok(result)
    }

    /// Makes steps over a dataset. `progress` is called after every `progress_every` steps; it may stop the
    /// run.
    pub fn run<F>(&mut self, dataset: &mut Dataset, options: &RunOptions, progress: F) -> Result<Ended>
    where
        F: FnMut(&mut Between, &Progress) -> ControlFlow<()>,
    {
        struct Call<F> {
            trainer: *mut Trainer,
            dataset: *mut Dataset,
            progress: F,
            panic: Option<Box<dyn Any + Send>>,
        }
        unsafe extern "C" fn show<F: FnMut(&mut Between, &Progress) -> ControlFlow<()>>(
            user: *mut c_void,
            now: *const Progress,
        ) -> i32 {
            let call = &mut *(user as *mut Call<F>);
            let (mut between, progress) =
                (Between { trainer: &mut *call.trainer, dataset: &mut *call.dataset }, &mut call.progress);
            match catch_unwind(AssertUnwindSafe(|| progress(&mut between, &copied(now)))) {
                Ok(ControlFlow::Continue(())) => 0,
                Ok(ControlFlow::Break(())) => 1,
                Err(panic) => {
                    call.panic = Some(panic);
                    1
                }
            }
        }
        let trainer: *mut Trainer = self;
        let from = dataset.pointer.as_ptr();
        let mut call = Call { trainer, dataset, progress, panic: None };
        let call_pointer: *mut Call<F> = &mut call;
        let given = abi::stw_run_options {
            set_mask: if options.min_rate.is_some() { abi::STW_SET_MIN_RATE } else { 0 },
            until: options.until,
            total: options.total,
            warmup: options.warmup,
            learning_rate: options.learning_rate,
            min_rate: options.min_rate.unwrap_or(0.0),
            schedule: options.schedule as u32,
            progress_every: options.progress_every,
            progress: Some(show::<F>),
            progress_user: call_pointer as *mut c_void,
            decay_steps: options.decay_steps,
            base_batch: options.base_batch,
            ..Default::default()
        };
        // No other code of this function uses the trainer while `progress` may use it.
        let handle = unsafe { (*trainer).pointer.as_ptr() };
        let done = check(|error| unsafe { abi::stw_trainer_run(handle, from, &given, error) });
        if let Some(panic) = unsafe { (*call_pointer).panic.take() } {
            resume_unwind(panic);
        }
        Watch::explain(unsafe { (*trainer).watch.as_ref() });
        match done {
            Ok(()) => Ok(Ended::Finished),
            Err(error) if error.status == Status::CANCELLED => Ok(Ended::Stopped),
            Err(error) => Err(unsafe { (*trainer).explain(error) }),
        }
    }

    /// The mean loss per target over `batches` global batches of the held-out part. Afterwards [`Progress`]
    /// has the accuracy of a classifier or a preference.
    pub fn evaluate(&mut self, dataset: &mut Dataset, batches: u64) -> Result<f64> {
        let mut loss = 0.0;
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_evaluate(trainer, dataset.pointer.as_ptr(), batches, &mut loss, error)
        })?;
        Ok(loss)
    }

    /// At most `count` tokens that continue the prompt.
    ///
    /// # Errors
    /// [`Status::UNSUPPORTED_SHAPE`] if prompt and new tokens together are longer than the plan's sequence;
    /// [`Status::UNSUPPORTED`] for a classifier or an encoder; [`Status::CANCELLED`]; [`Status::NON_FINITE`].
    pub fn generate(&mut self, prompt: &[i32], count: usize, options: &GenerateOptions) -> Result<Vec<i32>> {
        if count as u64 > self.sequence {
            return Err(Error::new(
                Status::UNSUPPORTED_SHAPE,
                format!("generate: expected at most {} tokens with the prompt, found {count}", self.sequence),
            ));
        }
        let (mut out, mut received) = (vec![0; count], 0);
        let given = abi::stw_generate_options {
            top_k: options.top_k,
            top_p: options.top_p,
            prompt: prompt.as_ptr(),
            prompt_count: prompt.len() as u64,
            out: out.as_mut_ptr(),
            out_capacity: out.len() as u64,
            temperature: options.temperature,
            seed: options.seed.unwrap_or(0),
            set_mask: if options.seed.is_some() { abi::STW_SET_GENERATE_SEED } else { 0 },
            stop: options.stop.as_ptr(),
            stop_count: options.stop.len() as u64,
            ..Default::default()
        };
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_generate(trainer, &given, &mut received, error)
        })?;
        out.truncate(received as usize);
        Ok(out)
    }

    /// The logits after these tokens: of the tokens that may follow, or of a classifier's labels.
    pub fn logits(&mut self, tokens: &[i32]) -> Result<Vec<f32>> {
        let mut out = vec![0.0; self.classes];
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_logits(
                trainer,
                tokens.as_ptr(),
                tokens.len() as u64,
                out.as_mut_ptr(),
                out.len() as u64,
                error,
            )
        })?;
        Ok(out)
    }

    /// The logits of a classifier's labels, one row for each text. If tokens have labels: one row for each
    /// token of each text in turn. `token_types` has a type for each token; none: all are 0.
    ///
    /// # Errors
    /// [`Status::UNSUPPORTED`] for a model that is not a classifier; [`Status::BAD_ARGUMENT`] (an unknown
    /// token or type, or not one type for each token); [`Status::UNSUPPORTED_SHAPE`] (no token, or too many);
    /// [`Status::CANCELLED`]; [`Status::NON_FINITE`].
    pub fn classify(&mut self, texts: &[&[i32]], token_types: Option<&[&[i32]]>) -> Result<Vec<Vec<f32>>> {
        if let Some(types) = token_types {
            if types.len() != texts.len() {
                return Err(Error::new(
                    Status::BAD_ARGUMENT,
                    format!("token_types: expected {} lists, found {}", texts.len(), types.len()),
                ));
            }
            if let Some(text) = (0..texts.len()).find(|&text| types[text].len() != texts[text].len()) {
                let (expected, found) = (texts[text].len(), types[text].len());
                return Err(Error::new(
                    Status::BAD_ARGUMENT,
                    format!("token_types: text {text}: expected {expected} numbers, found {found}"),
                ));
            }
        }
        let (tokens, types) = (texts.concat(), token_types.map(|types| types.concat()));
        let types = types.as_ref().map_or(ptr::null(), |types| types.as_ptr());
        let lengths: Vec<u64> = texts.iter().map(|text| text.len() as u64).collect();
        let rows = if self.labels_tokens { tokens.len() } else { texts.len() };
        let mut out = vec![0.0; rows * self.labels];
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_classify(
                trainer,
                tokens.as_ptr(),
                types,
                lengths.as_ptr(),
                lengths.len() as u64,
                out.as_mut_ptr(),
                out.len() as u64,
                error,
            )
        })?;
        Ok((0..rows).map(|row| out[row * self.labels..(row + 1) * self.labels].to_vec()).collect())
    }

    /// The log-probability that the model, without dropout, gives every target of one or more samples. Each
    /// value has the place of its target or label; places without a target hold 0. The result can be the
    /// [`Batch::reference`] of later steps.
    ///
    /// # Errors
    /// Those of [`step`](Trainer::step); [`Status::UNSUPPORTED`] for a batch with weights or a reference.
    pub fn log_probabilities(&mut self, batch: &Batch) -> Result<Vec<f32>> {
        let mut out = vec![0.0; batch.tokens.count()];
        batch.with(0.0, |given| {
            self.call(|trainer, error| unsafe {
                abi::stw_trainer_log_probabilities(trainer, given, out.as_mut_ptr(), out.len() as u64, error)
            })
        })?;
        Ok(out)
    }

    /// Goes once over a dataset of pairs and writes the log-probabilities of its targets into a file, for
    /// [`DatasetOptions::reference`](crate::DatasetOptions::reference).
    ///
    /// # Errors
    /// [`Status::BAD_STATE`] (a plan without a preference, a dataset without pairs), [`Status::IO_ERROR`],
    /// [`Status::NON_FINITE`], [`Status::CANCELLED`]. After an error no file has been replaced.
    pub fn write_reference(&mut self, dataset: &mut Dataset, path: impl AsRef<Path>) -> Result<()> {
        let path = path_to_c(path.as_ref())?;
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_write_reference(trainer, dataset.pointer.as_ptr(), path.as_ptr(), error)
        })
    }

    /// Changes the budget from the next step on, with the same bits.
    ///
    /// # Errors
    /// [`Status::OVER_BUDGET`], [`Status::OUT_OF_MEMORY`], [`Status::BAD_STATE`]. After an error the trainer
    /// is unchanged.
    pub fn replan(&mut self, memory_bytes: u64) -> Result<Plan> {
        let mut out = ptr::null_mut();
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_replan(trainer, memory_bytes, &mut out, error)
        })?;
        Plan::around(out).ok_or_else(|| Error::new(Status::INTERNAL, "no plan"))
    }

    /// Measures the device and returns a profile for planning,
    /// [`PlanOptions::profile`](crate::PlanOptions::profile). Only for a trainer that has made no step.
    pub fn calibrate(&mut self) -> Result<String> {
        let (mut out, mut size) = (vec![0u8; abi::STW_PROFILE_BYTES as usize], 0);
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_calibrate(trainer, out.as_mut_ptr() as *mut c_char, out.len(), &mut size, error)
        })?;
        out.truncate(size);
        String::from_utf8(out).map_err(|error| Error::new(Status::INTERNAL, error.to_string()))
    }

    /// Measures a step in the same way and writes a trace, which Perfetto shows.
    pub fn timeline(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path_to_c(path.as_ref())?;
        self.call(|trainer, error| unsafe { abi::stw_trainer_timeline(trainer, path.as_ptr(), error) })
    }

    pub fn progress(&self) -> Progress {
        query(|out| unsafe { abi::stw_trainer_progress(self.pointer.as_ptr(), out) }).unwrap_or_default()
    }

    /// A handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote(Arc::clone(&self.alive))
    }

    /// The stream of a CUDA device; else null.
    pub fn stream(&self) -> *mut c_void {
        unsafe { abi::stw_trainer_stream(self.pointer.as_ptr()) }
    }

    /// A view of a tensor in the arena, without a copy, by its index in [`Model::tensors`]. It borrows the
    /// trainer.
    ///
    /// ```no_run
    /// # use stowage::{TensorKind, Trainer};
    /// fn look(mut trainer: Trainer) -> stowage::Result<()> {
    ///     let view = trainer.tensor(0, TensorKind::Parameter)?;
    ///     println!("{:?}", view.shape());
    ///     drop(view);
    ///     drop(trainer);
    ///     Ok(())
    /// }
    /// ```
    /// A view cannot outlive its trainer, and the trainer cannot be planned again while there is a view:
    /// ```compile_fail,E0505
    /// # use stowage::{TensorKind, Trainer};
    /// fn look(mut trainer: Trainer) -> stowage::Result<()> {
    ///     let view = trainer.tensor(0, TensorKind::Parameter)?;
    ///     drop(trainer);
    ///     println!("{:?}", view.shape());
    ///     Ok(())
    /// }
    /// ```
    /// ```compile_fail,E0499
    /// # use stowage::{TensorKind, Trainer};
    /// fn look(mut trainer: Trainer) -> stowage::Result<()> {
    ///     let view = trainer.tensor(0, TensorKind::Parameter)?;
    ///     trainer.replan(1 << 30)?;
    ///     println!("{:?}", view.shape());
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Status::UNSUPPORTED`] if the tensor is not stored as one array of fp32, bf16 or fp16.
    pub fn tensor(&mut self, index: usize, kind: TensorKind) -> Result<View<'_>> {
        let mut out = ptr::null_mut();
        self.call(|trainer, error| unsafe {
            abi::stw_trainer_export_tensor(trainer, index, kind as u32, &mut out, error)
        })?;
        unsafe { View::new(out) }
    }

    /// Overwrites a parameter with fp32 values. Their number must be the same.
    pub fn set_tensor(&mut self, index: usize, values: &[f32]) -> Result<()> {
        let shape = self.shapes.get(index).ok_or_else(|| {
            Error::new(Status::BAD_ARGUMENT, format!("tensor {index}: there are {}", self.shapes.len()))
        })?;
        let mut given = Borrowed::new(values, shape)?;
        let given = given.pointer();
        self.call(|trainer, error| unsafe { abi::stw_trainer_import_tensor(trainer, index, given, error) })
    }

    /// Writes a checkpoint, which can be restored with any budget.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path_to_c(path.as_ref())?;
        self.call(|trainer, error| unsafe { abi::stw_trainer_save(trainer, path.as_ptr(), error) })
    }

    /// # Errors
    /// [`Status::CORRUPT`]; [`Status::BAD_STATE`], which names the field that does not match. After an error
    /// the trainer is unchanged.
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path_to_c(path.as_ref())?;
        self.call(|trainer, error| unsafe { abi::stw_trainer_restore(trainer, path.as_ptr(), error) })
    }

    /// Writes the model for transformers. For a model with adapters, writes only the adapters, for PEFT.
    pub fn export_model(&mut self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = path_to_c(folder.as_ref())?;
        self.call(|trainer, error| unsafe { abi::stw_trainer_export_model(trainer, folder.as_ptr(), error) })
    }
}

/// A trainer in the middle of a run, between two steps, with the calls that are allowed there.
pub struct Between<'a> {
    trainer: &'a mut Trainer,
    dataset: &'a mut Dataset,
}

impl Between<'_> {
    /// See [`Trainer::step`].
    pub fn step(&mut self, batch: &Batch, learning_rate: f64) -> Result<StepResult> {
        self.trainer.step(batch, learning_rate)
    }

    /// Evaluates on the held-out part of the run's dataset. See [`Trainer::evaluate`].
    pub fn evaluate(&mut self, batches: u64) -> Result<f64> {
        self.trainer.evaluate(self.dataset, batches)
    }

    /// Evaluates on another dataset.
    pub fn evaluate_other(&mut self, dataset: &mut Dataset, batches: u64) -> Result<f64> {
        self.trainer.evaluate(dataset, batches)
    }

    /// See [`Trainer::generate`].
    pub fn generate(&mut self, prompt: &[i32], count: usize, options: &GenerateOptions) -> Result<Vec<i32>> {
        self.trainer.generate(prompt, count, options)
    }

    /// See [`Trainer::logits`].
    pub fn logits(&mut self, tokens: &[i32]) -> Result<Vec<f32>> {
        self.trainer.logits(tokens)
    }

    /// See [`Trainer::classify`].
    pub fn classify(&mut self, texts: &[&[i32]], token_types: Option<&[&[i32]]>) -> Result<Vec<Vec<f32>>> {
        self.trainer.classify(texts, token_types)
    }

    /// See [`Trainer::log_probabilities`].
    pub fn log_probabilities(&mut self, batch: &Batch) -> Result<Vec<f32>> {
        self.trainer.log_probabilities(batch)
    }

    /// Writes a reference for the run's dataset. See [`Trainer::write_reference`].
    pub fn write_reference(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.trainer.write_reference(self.dataset, path)
    }

    /// Writes a reference for another dataset.
    pub fn write_reference_of_other(&mut self, dataset: &mut Dataset, path: impl AsRef<Path>) -> Result<()> {
        self.trainer.write_reference(dataset, path)
    }

    /// See [`Trainer::tensor`].
    pub fn tensor(&mut self, index: usize, kind: TensorKind) -> Result<View<'_>> {
        self.trainer.tensor(index, kind)
    }

    /// See [`Trainer::set_tensor`].
    pub fn set_tensor(&mut self, index: usize, values: &[f32]) -> Result<()> {
        self.trainer.set_tensor(index, values)
    }

    /// See [`Trainer::restore`].
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.trainer.restore(path)
    }

    /// See [`Trainer::save`].
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.trainer.save(path)
    }

    /// See [`Trainer::export_model`].
    pub fn export_model(&mut self, folder: impl AsRef<Path>) -> Result<()> {
        self.trainer.export_model(folder)
    }
}

impl Progress {
    /// The activity of the trainer.
    pub fn phase(&self) -> Option<Phase> {
        Phase::from_number(self.phase)
    }

    /// The reason why the last step updated nothing.
    pub fn skip_reason(&self) -> Option<SkipReason> {
        SkipReason::from_number(self.skip_reason)
    }
}

impl StepResult {
    /// The reason why the step updated nothing.
    pub fn skip_reason(&self) -> Option<SkipReason> {
        SkipReason::from_number(self.skip_reason)
    }
}

/// Reads a checkpoint once and compares every checksum.
pub fn verify_checkpoint(path: impl AsRef<Path>) -> Result<()> {
    let path = path_to_c(path.as_ref())?;
    check(|error| unsafe { abi::stw_checkpoint_verify(path.as_ptr(), error) })
}
