//! Offsets for any buffers that share memory.
use crate::abi::{self, stw_buffer_lifetime as Lifetime};
use crate::choices::PackAnswer;
use crate::error::{check, Result, Status};

/// What was found, and how good it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// One for each buffer; none where no placement within the capacity was found.
    pub offsets: Option<Vec<u64>>,
    pub answer: PackAnswer,
    /// Largest offset + size of the lowest placement found.
    pub height: u64,
    /// Proven: no placement is lower.
    pub bound: u64,
    /// Decisions taken.
    pub nodes: u64,
}

/// Gives buffers offsets so that those alive at the same time do not overlap. `capacity` 0: as low as possible; `node_limit` 0: 1,000,000.
///
/// # Errors
/// [`Status::BAD_ARGUMENT`] for an upper below its lower, and where 2^62 bytes or more are needed.
pub fn pack(lifetimes: &[Lifetime], capacity: u64, node_limit: u64) -> Result<Packed> {
    let mut offsets = vec![0; lifetimes.len()];
    let mut result = abi::stw_pack_result::default();
    let options = abi::stw_pack_options { capacity, node_limit, ..Default::default() };
    let called = check(|error| unsafe { abi::stw_pack(offsets.as_mut_ptr(), lifetimes.as_ptr(), lifetimes.len(), &options, &mut result, error) });
    let offsets = match called {
        Ok(()) => Some(offsets),
        Err(error) if error.status == Status::OVER_BUDGET => None,
        Err(error) => return Err(error),
    };
    let answer = PackAnswer::from_number(result.answer).unwrap_or(PackAnswer::Unknown);
    Ok(Packed { offsets, answer, height: result.height, bound: result.bound, nodes: result.nodes })
}
