//! Batches that a program makes itself.
use std::ffi::CStr;
use std::os::raw::c_char;

use crate::abi::{self, DLManagedTensorVersioned};
use crate::dlpack::{Borrowed, Number};
use crate::error::{Error, Result, Status};

/// A tensor of a batch: rows of one length, one after the other, or a number for each sample.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    values: &'a [T],
    length: Option<usize>,
}

impl<'a, T: Number> Rows<'a, T> {
    /// (samples, tokens): every row has `length` tokens.
    pub fn new(values: &'a [T], length: usize) -> Rows<'a, T> {
        Rows { values, length: Some(length) }
    }

    /// (samples): one number for each sample.
    pub fn one_each(values: &'a [T]) -> Rows<'a, T> {
        Rows { values, length: None }
    }

    /// The number of numbers in all rows.
    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    fn tensor(&self, name: &str) -> Result<Borrowed<'a>> {
        match self.length {
            None => Borrowed::new(self.values, &[self.values.len() as i64]),
            Some(length) if length > 0 && self.values.len() % length == 0 => {
                Borrowed::new(self.values, &[(self.values.len() / length) as i64, length as i64])
            }
            Some(length) => Err(Error::new(
                Status::BAD_ARGUMENT,
                format!("\"{name}\": {} numbers cannot form rows of {length}", self.values.len()),
            )),
        }
    }
}

/// `stw_batch`: tokens, and either `targets` or `labels`. −100 means no loss.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    pub tokens: Rows<'a, i32>,
    /// The token that follows each token.
    pub targets: Option<Rows<'a, i32>>,
    /// Each in the place of its token; the library shifts a language model's labels. For a classifier: one
    /// label for each sample.
    pub labels: Option<Rows<'a, i32>>,
    /// How many tokens of each sample count.
    pub lengths: Option<&'a [i32]>,
    /// The position of each token in its document.
    pub positions: Option<Rows<'a, i32>>,
    /// Each token's type, for models with token types.
    pub token_types: Option<Rows<'a, i32>>,
    /// Factors of the losses.
    pub weights: Option<Rows<'a, f32>>,
    /// Log-probabilities of the targets or labels, for preferences with a reference.
    pub reference: Option<Rows<'a, f32>>,
    /// Instead of labels, for the tasks `Labels`, `Number` and `Spans`: (samples, labels).
    pub values: Option<Rows<'a, f32>>,
}

impl<'a> Batch<'a> {
    /// For a language model: every token is predicted from the tokens before it in its row of `length`.
    pub fn of_tokens(tokens: &'a [i32], length: usize) -> Batch<'a> {
        let tokens = Rows::new(tokens, length);
        Batch {
            tokens,
            targets: None,
            labels: Some(tokens),
            lengths: None,
            positions: None,
            token_types: None,
            weights: None,
            reference: None,
            values: None,
        }
    }

    /// With targets for each token.
    pub fn with_targets(tokens: Rows<'a, i32>, targets: Rows<'a, i32>) -> Batch<'a> {
        Batch {
            tokens,
            targets: Some(targets),
            labels: None,
            lengths: None,
            positions: None,
            token_types: None,
            weights: None,
            reference: None,
            values: None,
        }
    }

    /// With labels: one for each token, or for a classifier one for each sample.
    pub fn with_labels(tokens: Rows<'a, i32>, labels: Rows<'a, i32>) -> Batch<'a> {
        Batch {
            tokens,
            targets: None,
            labels: Some(labels),
            lengths: None,
            positions: None,
            token_types: None,
            weights: None,
            reference: None,
            values: None,
        }
    }

    /// For the tasks `Labels`, `Number` and `Spans`: each sample has as many numbers as the model has labels.
    pub fn with_values(tokens: Rows<'a, i32>, values: Rows<'a, f32>) -> Batch<'a> {
        Batch {
            tokens,
            targets: None,
            labels: None,
            lengths: None,
            positions: None,
            token_types: None,
            weights: None,
            reference: None,
            values: Some(values),
        }
    }

    /// Makes a call with this batch as a C struct.
    pub(crate) fn with<R>(
        &self,
        learning_rate: f64,
        call: impl FnOnce(&abi::stw_batch) -> Result<R>,
    ) -> Result<R> {
        let mut names: Vec<*const c_char> = Vec::new();
        let mut tensors: Vec<Borrowed<'a>> = Vec::new();
        let mut add = |name: &'static [u8], tensor: Option<Result<Borrowed<'a>>>| -> Result<()> {
            if let Some(tensor) = tensor.transpose()? {
                names.push(
                    CStr::from_bytes_with_nul(name)
                        .map_err(|error| Error::new(Status::INTERNAL, error.to_string()))?
                        .as_ptr(),
                );
                tensors.push(tensor);
            }
            Ok(())
        };
        add(b"tokens\0", Some(self.tokens.tensor("tokens")))?;
        add(b"targets\0", self.targets.map(|rows| rows.tensor("targets")))?;
        add(b"labels\0", self.labels.map(|rows| rows.tensor("labels")))?;
        add(b"lengths\0", self.lengths.map(|values| Rows::one_each(values).tensor("lengths")))?;
        add(b"positions\0", self.positions.map(|rows| rows.tensor("positions")))?;
        add(b"token_types\0", self.token_types.map(|rows| rows.tensor("token_types")))?;
        add(b"weights\0", self.weights.map(|rows| rows.tensor("weights")))?;
        add(b"reference\0", self.reference.map(|rows| rows.tensor("reference")))?;
        add(b"labels\0", self.values.map(|rows| rows.tensor("values")))?;
        let pointers: Vec<*const DLManagedTensorVersioned> =
            tensors.iter_mut().map(Borrowed::pointer).collect();
        call(&abi::stw_batch {
            count: names.len() as u32,
            names: names.as_ptr(),
            tensors: pointers.as_ptr(),
            learning_rate,
            ..Default::default()
        })
    }
}
