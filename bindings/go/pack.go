package stowage

/*
#include <stdlib.h>

#include "glue.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Lifetime is a buffer that is alive in [Lower, Upper).
type Lifetime struct {
	Lower, Upper int64
	Size         uint64
}

// Gap is a part of a buffer's lifetime, [Lower, Upper), in which it needs only its bytes [First, End), or no
// bytes if both are equal.
type Gap struct {
	Lower, Upper int64
	First, End   uint64
}

// Constraint has constraints on the place of a buffer; the zero value: no constraint.
type Constraint struct {
	Alignment uint64  // the offset is a multiple of it; 0: 1
	Offset    *uint64 // a fixed offset
	Gaps      []Gap   // must not overlap
}

// Packed is the result of a search for offsets.
type Packed struct {
	Offsets []uint64 // nil if no placement within the capacity was found
	Answer  PackAnswer
	Height  uint64 // largest offset + size of the lowest placement found
	Bound   uint64 // proven: no placement is lower
	Nodes   uint64 // decisions that the search took
}

// Pack gives buffers offsets so that buffers that are alive at the same time do not overlap. Capacity 0: as
// low as possible. nodeLimit 0: 1,000,000. If no placement within the capacity is found, the error is
// OverBudget, and the result says what was found.
func Pack(lifetimes []Lifetime, capacity, nodeLimit uint64) (Packed, error) {
	return PackConstrained(lifetimes, nil, capacity, nodeLimit)
}

// PackConstrained is Pack for buffers with constraints, one for each buffer; nil: none.
func PackConstrained(lifetimes []Lifetime, constraints []Constraint,
	capacity, nodeLimit uint64) (Packed, error) {
	if constraints != nil && len(constraints) != len(lifetimes) {
		return Packed{}, failure(BadArgument, "constraints: expected %d, one for each buffer, found %d",
			len(lifetimes), len(constraints))
	}
	given := make([]C.stw_buffer_lifetime, len(lifetimes)+1) // never empty, so that it has an address
	for i, one := range lifetimes {
		given[i] = C.stw_buffer_lifetime{lower: C.int64_t(one.Lower), upper: C.int64_t(one.Upper),
			size: C.uint64_t(one.Size)}
	}
	offsets := make([]uint64, len(lifetimes)+1)
	options := C.stw_pack_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_pack_options{})),
		capacity: C.uint64_t(capacity), node_limit: C.uint64_t(nodeLimit)}
	if len(constraints) > 0 {
		held := (*C.stw_buffer_constraint)(C.calloc(C.size_t(len(constraints)),
			C.size_t(unsafe.Sizeof(C.stw_buffer_constraint{}))))
		defer C.free(unsafe.Pointer(held))
		for i, one := range constraints {
			to := &unsafe.Slice(held, len(constraints))[i]
			to.alignment = C.uint64_t(one.Alignment)
			if one.Offset != nil {
				to.offset, to.set_mask = C.uint64_t(*one.Offset), C.STW_SET_OFFSET
			}
			if len(one.Gaps) == 0 {
				continue
			}
			gaps := (*C.stw_buffer_gap)(C.calloc(C.size_t(len(one.Gaps)),
				C.size_t(unsafe.Sizeof(C.stw_buffer_gap{}))))
			defer C.free(unsafe.Pointer(gaps))
			for k, gap := range one.Gaps {
				unsafe.Slice(gaps, len(one.Gaps))[k] = C.stw_buffer_gap{lower: C.int64_t(gap.Lower),
					upper: C.int64_t(gap.Upper), first: C.uint64_t(gap.First), end: C.uint64_t(gap.End)}
			}
			to.gaps, to.gap_count = gaps, C.uint32_t(len(one.Gaps))
		}
		options.constraints = held
	}
	result, cErr := sized[C.stw_pack_result](), newError()
	err := check(C.stw_pack((*C.uint64_t)(unsafe.Pointer(&offsets[0])), &given[0], C.size_t(len(lifetimes)),
		&options, &result, &cErr), &cErr)
	if err != nil && !errors.Is(err, OverBudget) {
		return Packed{}, err
	}
	found := Packed{Answer: PackAnswer(result.answer), Height: uint64(result.height),
		Bound: uint64(result.bound), Nodes: uint64(result.nodes)}
	if err == nil {
		found.Offsets = offsets[:len(lifetimes)]
	}
	return found, err
}
