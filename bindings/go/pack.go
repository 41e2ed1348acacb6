package stowage

/*
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

// Packed is what was found, and how good it is.
type Packed struct {
	Offsets []uint64 // nil where no placement within the capacity was found
	Answer  PackAnswer
	Height  uint64 // largest offset + size of the lowest placement found
	Bound   uint64 // proven: no placement is lower
	Nodes   uint64 // decisions taken
}

// Pack gives buffers offsets so that those alive at the same time do not overlap. Capacity 0: as low as possible; nodeLimit 0: 1,000,000. Where
// none fits it answers OverBudget, with what was found.
func Pack(lifetimes []Lifetime, capacity, nodeLimit uint64) (Packed, error) {
	given := make([]C.stw_buffer_lifetime, len(lifetimes)+1) // an address for none, too
	for i, one := range lifetimes {
		given[i] = C.stw_buffer_lifetime{lower: C.int64_t(one.Lower), upper: C.int64_t(one.Upper), size: C.uint64_t(one.Size)}
	}
	offsets := make([]uint64, len(lifetimes)+1)
	options := C.stw_pack_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_pack_options{})), capacity: C.uint64_t(capacity), node_limit: C.uint64_t(nodeLimit)}
	result, told := sized[C.stw_pack_result](), newError()
	err := check(C.stw_pack((*C.uint64_t)(unsafe.Pointer(&offsets[0])), &given[0], C.size_t(len(lifetimes)), &options, &result, &told), &told)
	if err != nil && !errors.Is(err, OverBudget) {
		return Packed{}, err
	}
	found := Packed{Answer: PackAnswer(result.answer), Height: uint64(result.height), Bound: uint64(result.bound), Nodes: uint64(result.nodes)}
	if err == nil {
		found.Offsets = offsets[:len(lifetimes)]
	}
	return found, err
}
