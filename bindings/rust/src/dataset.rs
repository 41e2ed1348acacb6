//! Files of tokens.
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::abi::{self, stw_dataset_info as DatasetInfo};
use crate::choices::{Task, TokenType, Tokenizer};
use crate::error::{check, query, Error, Result, Status};
use crate::text::{optional_path, path_to_c, pointer};
use crate::watch::Watch;

/// `stw_dataset_options`; the rest is `..Default::default()`.
#[derive(Default, Clone, Debug)]
pub struct DatasetOptions<'a> {
    pub tokenizer: Tokenizer,
    /// The type of ids. [`TokenType::Auto`] refuses a file whose numbers look like another type.
    pub token_type: TokenType,
    /// Every id must be smaller.
    pub vocabulary: u64,
    /// Tokens of a sample.
    pub sequence: u64,
    /// Chooses the windows of tokens; none: 1337.
    pub seed: Option<u64>,
    /// The token that ends a document. It needs a plan with
    /// [`PlanOptions::positions`](crate::PlanOptions::positions).
    pub document_end: Option<u64>,
    /// A file with one byte for each token, the sum of these marks: 1, the model learns to predict the token;
    /// 2, a document begins with the token; 4, the token belongs to the second text of its document, and its
    /// token type is 1.
    pub marks: Option<&'a Path>,
    /// For classifiers: a file with one little-endian u32 for each document that `marks` begin. With
    /// [`Task::TokenLabel`]: one for each token. With `Labels`, `Number` and `Spans`: `label_count`
    /// little-endian f32 for each document.
    pub labels: Option<&'a Path>,
    pub label_count: u64,
    /// With labels: the task of the model; [`Task::Automatic`]: [`Task::Label`].
    pub task: Task,
    /// Share of the tokens, at the end of the file, that is held out; none: 0.1.
    pub held_out: Option<f64>,
    /// For plans with a preference: documents that `marks` begin are pairs, with chosen and rejected ones in
    /// turn.
    pub pairs: bool,
    /// With pairs: the file that [`Trainer::write_reference`](crate::Trainer::write_reference) wrote.
    pub reference: Option<&'a Path>,
    /// For masked language models: the share of tokens that are hidden; 0: none.
    pub mask_rate: f64,
    /// The token that hidden tokens become.
    pub mask_token: u64,
    /// One byte for each token of the vocabulary, the sum of these kinds: 1, the token is special and never
    /// hidden; 2, it continues the word of the token before it.
    pub token_kinds: Option<&'a [u8]>,
    /// With `token_kinds`: whole words are hidden.
    pub mask_whole_words: bool,
    /// Evaluations cover the whole held-out part, in consecutive windows. Excludes marks and `mask_rate`.
    pub sequential: bool,
    /// With marks: the largest number of documents in a sample, as `texts` of
    /// [`PlanInfo`](crate::PlanInfo) says; 0: as many as fit.
    pub texts: u64,
    /// Reports and cancels the opening.
    pub watch: Option<&'a Watch>,
}

/// An open file, read window by window.
pub struct Dataset {
    pub(crate) pointer: NonNull<abi::stw_dataset>,
}

// All methods that read the file take `&mut self`.
unsafe impl Send for Dataset {}
unsafe impl Sync for Dataset {}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Dataset").field("pointer", &self.pointer).finish_non_exhaustive()
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        unsafe { abi::stw_dataset_close(self.pointer.as_ptr()) }
    }
}

impl Dataset {
    /// Opens text, or little-endian ids of the type [`DatasetOptions::token_type`].
    ///
    /// # Errors
    /// [`Status::IO_ERROR`]; [`Status::CORRUPT`] for an id outside the vocabulary, marks that do not belong
    /// to the tokens, or too few tokens.
    pub fn open(path: impl AsRef<Path>, options: &DatasetOptions) -> Result<Dataset> {
        if let Some(kinds) = options.token_kinds {
            if kinds.len() as u64 != options.vocabulary {
                let what = format!(
                    "token_kinds: expected {} bytes, one for each token of the vocabulary, found {}",
                    options.vocabulary,
                    kinds.len()
                );
                return Err(Error::new(Status::BAD_ARGUMENT, what));
            }
        }
        let path = path_to_c(path.as_ref())?;
        let (marks, labels, reference) = (
            optional_path(options.marks)?,
            optional_path(options.labels)?,
            optional_path(options.reference)?,
        );
        let mut given = abi::stw_dataset_options {
            tokenizer: options.tokenizer as u32,
            path: path.as_ptr(),
            vocabulary: options.vocabulary,
            sequence: options.sequence,
            seed: options.seed.unwrap_or(0),
            marks: pointer(&marks),
            labels: pointer(&labels),
            label_count: options.label_count,
            task: options.task as u32,
            pairs: options.pairs as u32,
            reference: pointer(&reference),
            mask_rate: options.mask_rate,
            mask_token: options.mask_token,
            token_kinds: options.token_kinds.map_or(ptr::null(), <[u8]>::as_ptr),
            mask_whole_words: options.mask_whole_words as u32,
            sequential: options.sequential as u32,
            texts: options.texts,
            watch: Watch::pointer_of(options.watch),
            token_type: options.token_type as u32,
            ..Default::default()
        };
        if options.seed.is_some() {
            given.set_mask |= abi::STW_SET_DATASET_SEED;
        }
        if let Some(token) = options.document_end {
            given.document_end = token;
            given.set_mask |= abi::STW_SET_DOCUMENT_END;
        }
        if let Some(share) = options.held_out {
            given.held_out = share;
            given.set_mask |= abi::STW_SET_HELD_OUT;
        }
        let mut out = ptr::null_mut();
        let opened = check(|error| unsafe { abi::stw_dataset_open(&mut out, &given, error) });
        Watch::explain(options.watch);
        opened?;
        Ok(Dataset { pointer: NonNull::new(out).ok_or_else(|| Error::new(Status::INTERNAL, "no dataset"))? })
    }

    pub fn info(&self) -> DatasetInfo {
        query(|out| unsafe { abi::stw_dataset_query(self.pointer.as_ptr(), out) }).unwrap_or_default()
    }
}
