//! Models to train.
use std::ffi::CString;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::abi::{self, stw_model_info as ModelInfo};
use crate::choices::Task;
use crate::error::{check, query, Error, Result, Status};
use crate::text::{from_c, optional, optional_path, path_to_c, pointer, to_c};
use crate::watch::Watch;

/// `stw_model_options`; the rest is `..Default::default()`.
#[derive(Default, Clone, Debug)]
pub struct ModelOptions<'a> {
    /// A folder with config.json, a config.json, or the name of a preset such as `"nano"`.
    pub source: Option<&'a Path>,
    /// Instead of `source`: the text of a config.json.
    pub config_json: Option<&'a str>,
    /// A .safetensors file, or a folder of such files; none: the weights of the source folder, and if it has
    /// none, random values drawn from `seed`.
    pub weights: Option<&'a Path>,
    /// The seed; none: 1337.
    pub seed: Option<u64>,
    /// Replaces all dropout rates of the config.
    pub dropout: Option<f32>,
    /// A folder of adapters (LoRA) to continue.
    pub adapter: Option<&'a Path>,
    /// New adapters: rows of A and columns of B; 0: no new adapters.
    pub adapter_rank: u32,
    /// New adapters: the matrices that get one, such as `"q_proj,v_proj"`; none: all matrices of blocks.
    pub adapter_targets: Option<&'a str>,
    /// scale = alpha / rank; 0: alpha is twice the rank.
    pub adapter_alpha: f32,
    pub adapter_dropout: f32,
    /// scale = alpha / √rank.
    pub adapter_rank_stabilised: bool,
    /// Makes the model a classifier of texts with this many labels; 0: as the config says.
    pub label_count: usize,
    /// `label_count` names; empty: the names of the model, else `LABEL_0`, `LABEL_1`, …
    pub label_names: &'a [&'a str],
    pub task: Task,
    /// Draws a new head for the labels, whatever labels the config has.
    pub new_head: bool,
}

/// A tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo<'a> {
    /// The name in the weight files.
    pub name: &'a str,
    pub shape: Vec<i64>,
    pub elements: u64,
}

/// The description of a model. Weights are read when a trainer is created. A model may be dropped before the
/// objects made from it.
pub struct Model {
    pub(crate) pointer: NonNull<abi::stw_model>,
}

// Every entry except stw_model_destroy takes the model `const`.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl std::fmt::Debug for Model {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Model").field("pointer", &self.pointer).finish_non_exhaustive()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { abi::stw_model_destroy(self.pointer.as_ptr()) }
    }
}

impl Model {
    /// A folder, a config.json, or a preset by its name.
    pub fn open(source: impl AsRef<Path>) -> Result<Model> {
        Model::new(&ModelOptions { source: Some(source.as_ref()), ..Default::default() })
    }

    /// # Errors
    /// [`Status::IO_ERROR`], [`Status::CORRUPT`], [`Status::UNSUPPORTED`] (architecture),
    /// [`Status::UNSUPPORTED_FIELD`] and [`Status::BAD_ARGUMENT`].
    pub fn new(options: &ModelOptions) -> Result<Model> {
        let (source, weights, adapter) = (
            optional_path(options.source)?,
            optional_path(options.weights)?,
            optional_path(options.adapter)?,
        );
        let targets = optional(options.adapter_targets)?;
        let labels = options.label_names.iter().map(|name| to_c(name)).collect::<Result<Vec<CString>>>()?;
        let names: Vec<*const c_char> = labels.iter().map(|name| name.as_ptr()).collect();
        if !names.is_empty() && options.label_count != 0 && options.label_count != names.len() {
            return Err(Error::new(
                Status::BAD_ARGUMENT,
                format!("label_count {}: there are {} label_names", options.label_count, names.len()),
            ));
        }
        let given = abi::stw_model_options {
            set_mask: options.dropout.map_or(0, |_| abi::STW_SET_DROPOUT)
                | options.seed.map_or(0, |_| abi::STW_SET_MODEL_SEED),
            source: pointer(&source),
            config_json: options.config_json.map_or(ptr::null(), |text| text.as_ptr() as *const c_char),
            config_json_size: options.config_json.map_or(0, str::len),
            weights: pointer(&weights),
            seed: options.seed.unwrap_or(0),
            dropout: options.dropout.unwrap_or(0.0),
            adapter: pointer(&adapter),
            adapter_targets: pointer(&targets),
            adapter_rank: options.adapter_rank,
            adapter_flags: if options.adapter_rank_stabilised { abi::STW_ADAPTER_RANK_STABILISED } else { 0 },
            adapter_alpha: options.adapter_alpha,
            adapter_dropout: options.adapter_dropout,
            label_names: if names.is_empty() { ptr::null() } else { names.as_ptr() },
            label_count: if names.is_empty() { options.label_count } else { names.len() },
            task: options.task as u32,
            new_head: options.new_head as u32,
            ..Default::default()
        };
        let mut out = ptr::null_mut();
        check(|error| unsafe { abi::stw_model_create(&mut out, &given, error) })?;
        Ok(Model { pointer: NonNull::new(out).ok_or_else(|| Error::new(Status::INTERNAL, "no model"))? })
    }

    fn pointer(&self) -> *const abi::stw_model {
        self.pointer.as_ptr()
    }

    pub fn info(&self) -> ModelInfo {
        query(|out| unsafe { abi::stw_model_query(self.pointer(), out) }).unwrap_or_default()
    }

    /// All tensors, by index.
    pub fn tensors(&self) -> Vec<TensorInfo<'_>> {
        let count = unsafe { abi::stw_model_tensor_count(self.pointer()) };
        let info_at = |index| {
            query(|out: &mut abi::stw_tensor_info| unsafe {
                abi::stw_model_tensor_at(self.pointer(), index, out)
            })
        };
        (0..count)
            .filter_map(info_at)
            .map(|found| TensorInfo {
                name: unsafe { from_c(found.name) },
                shape: found.shape[..(found.ndim as usize).min(4)].to_vec(),
                elements: found.elements,
            })
            .collect()
    }

    /// The index of the tensor with that name.
    pub fn tensor_index(&self, name: &str) -> Option<usize> {
        let (name, mut index) = (to_c(name).ok()?, 0);
        (unsafe { abi::stw_model_tensor_find(self.pointer(), name.as_ptr(), &mut index) } == abi::STW_OK)
            .then_some(index)
    }

    /// The labels of a classifier; empty for other models.
    pub fn labels(&self) -> Vec<&str> {
        (0..)
            .map(|index| unsafe { abi::stw_model_label_at(self.pointer(), index) })
            .take_while(|name| !name.is_null())
            .map(|name| unsafe { from_c(name) })
            .collect()
    }

    /// The text of its config.json, with its task and labels.
    pub fn config(&self) -> &str {
        unsafe { from_c(abi::stw_model_config(self.pointer())) }
    }

    /// Writes config.json and model.safetensors, with the adapters merged into their matrices.
    pub fn export(&self, folder: impl AsRef<Path>) -> Result<()> {
        self.export_watched(folder, None)
    }

    /// [`export`](Model::export) with a watch.
    pub fn export_watched(&self, folder: impl AsRef<Path>, watch: Option<&Watch>) -> Result<()> {
        let folder = path_to_c(folder.as_ref())?;
        let done = check(|error| unsafe {
            abi::stw_model_export_watched(self.pointer(), folder.as_ptr(), Watch::pointer_of(watch), error)
        });
        Watch::explain(watch);
        done
    }
}

/// Models that need no file.
pub fn presets() -> Vec<&'static str> {
    (0..)
        .map(|index| unsafe { abi::stw_model_preset_at(index) })
        .take_while(|name| !name.is_null())
        .map(|name| unsafe { from_c(name) })
        .collect()
}
