//! Offsets for any buffers that share memory.
use crate::abi::{self, stw_buffer_gap as Gap, stw_buffer_lifetime as Lifetime};
use crate::choices::PackAnswer;
use crate::error::{check, Error, Result, Status};

/// The result of a search for offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// One offset for each buffer; none if no placement within the capacity was found.
    pub offsets: Option<Vec<u64>>,
    pub answer: PackAnswer,
    /// Largest offset + size of the lowest placement found.
    pub height: u64,
    /// Proven: no placement is lower.
    pub bound: u64,
    /// Decisions that the search took.
    pub nodes: u64,
}

/// Gives buffers offsets so that buffers that are alive at the same time do not overlap. `capacity` 0: as low
/// as possible. `node_limit` 0: 1,000,000.
///
/// # Errors
/// [`Status::BAD_ARGUMENT`] if an upper is below its lower, or if 2^62 bytes or more are needed.
pub fn pack(lifetimes: &[Lifetime], capacity: u64, node_limit: u64) -> Result<Packed> {
    pack_constrained(lifetimes, &[], capacity, node_limit)
}

/// Constraints on the place of a buffer; the default: no constraint.
#[derive(Debug, Clone, Default)]
pub struct Constraint<'a> {
    /// The offset is a multiple of it; 0: 1.
    pub alignment: u64,
    /// A fixed offset.
    pub offset: Option<u64>,
    /// Gaps, which must not overlap.
    pub gaps: &'a [Gap],
}

/// [`pack`] for buffers with constraints: one for each buffer, or none at all.
///
/// # Errors
/// Those of [`pack`], and [`Status::BAD_ARGUMENT`] for constraints that contradict each other, or whose
/// number is not that of the buffers.
pub fn pack_constrained(
    lifetimes: &[Lifetime],
    constraints: &[Constraint],
    capacity: u64,
    node_limit: u64,
) -> Result<Packed> {
    if !constraints.is_empty() && constraints.len() != lifetimes.len() {
        return Err(Error::new(
            Status::BAD_ARGUMENT,
            format!(
                "constraints: expected {}, one for each buffer, found {}",
                lifetimes.len(),
                constraints.len()
            ),
        ));
    }
    let held: Vec<_> = constraints
        .iter()
        .map(|one| abi::stw_buffer_constraint {
            alignment: one.alignment,
            offset: one.offset.unwrap_or(0),
            gaps: one.gaps.as_ptr(),
            gap_count: one.gaps.len() as u32,
            set_mask: if one.offset.is_some() { abi::STW_SET_OFFSET } else { 0 },
        })
        .collect();
    let mut offsets = vec![0; lifetimes.len()];
    let mut result = abi::stw_pack_result::default();
    let options = abi::stw_pack_options {
        capacity,
        node_limit,
        constraints: if held.is_empty() { std::ptr::null() } else { held.as_ptr() },
        ..Default::default()
    };
    let called = check(|error| unsafe {
        abi::stw_pack(offsets.as_mut_ptr(), lifetimes.as_ptr(), lifetimes.len(), &options, &mut result, error)
    });
    let offsets = match called {
        Ok(()) => Some(offsets),
        Err(error) if error.status == Status::OVER_BUDGET => None,
        Err(error) => return Err(error),
    };
    let answer = PackAnswer::from_number(result.answer).unwrap_or(PackAnswer::Unknown);
    Ok(Packed { offsets, answer, height: result.height, bound: result.bound, nodes: result.nodes })
}
