// Package stowage trains neural networks on one device in exactly the memory you give it. It calls the C API
// of Stowage and has no other dependencies.
//
//	model, err := stowage.OpenModel("path/to/model")               // or a preset
//	device, err := stowage.OpenDevice(stowage.DeviceOptions{})     // a GPU if there is one, else the CPU
//	plan, err := stowage.NewPlan(model, stowage.PlanOptions{
//		GlobalBatch: 32, Sequence: 512, MemoryBytes: 4 << 30}.For(device))
//	// the only allocation of tensors
//	trainer, err := stowage.NewTrainer(device, model, plan, stowage.TrainerOptions{})
//	result, err := trainer.Step(stowage.Batch{Tokens: tokens, Labels: tokens, Samples: 32}, 3e-4)
//
// stowage.h is the contract. It says what every entry guarantees, and what the fields of options and results
// mean. The fields have the same names here. A zero value means the default; a field in which 0 is also a
// useful value is a pointer. Objects can be closed in any order. Closing an object again does nothing. A call
// in progress continues to its end. A later call returns BadState, or a zero value if it returns no error.
// The garbage collector closes forgotten objects at some time, except objects that their own callbacks refer
// to. Several goroutines may use models and plans at once. One at a time may use a dataset or a trainer, or
// create a trainer on a device. Any goroutine may call Trainer.Cancel, Trainer.Progress and Close. Callbacks
// run on goroutines of their own, while the call that they belong to waits. A panic in a callback, or
// runtime.Goexit, ends that call and then goes on in its caller.
//
// cgo finds the library with pkg-config; PKG_CONFIG_PATH names other folders for it. With the build tag
// stowage_without_pkg_config, the compiler and linker search their usual folders, and those of CGO_CFLAGS=-I…
// and CGO_LDFLAGS=-L….
package stowage

/*
#include <stdlib.h>
#include <string.h>
#include "glue.h"
*/
import "C"

import (
	"math"
	"runtime"
	"strings"
	"unsafe"
)

// Version returns the version of the loaded library: major, minor and patch.
func Version() (int, int, int) {
	number := int(C.stw_version())
	return number / 10000, number / 100 % 100, number % 100
}

// BuildInfo says how the library was built.
func BuildInfo() string {
	runtime.LockOSThread() // the text belongs to this thread
	defer runtime.UnlockOSThread()
	return C.GoString(C.stw_build_info())
}

// Of returns a pointer to a value, for fields in which 0 is also a useful value.
func Of[T any](value T) *T { return &value }

// texts are C strings that are freed together.
type texts []unsafe.Pointer

// orNull returns NULL for "".
func (t *texts) orNull(text string) *C.char {
	if text == "" {
		return nil
	}
	return t.always(text)
}

// always returns an address, even for "".
func (t *texts) always(text string) *C.char {
	cText := C.CString(text)
	*t = append(*t, unsafe.Pointer(cText))
	return cText
}

// array returns an array in C's memory; NULL if it would be empty.
func (t *texts) array(all []string) **C.char {
	if len(all) == 0 {
		return nil
	}
	memory := C.calloc(C.size_t(len(all)), C.size_t(unsafe.Sizeof((*C.char)(nil))))
	*t = append(*t, memory)
	list := unsafe.Slice((**C.char)(memory), len(all))
	for i, text := range all {
		list[i] = t.always(text)
	}
	return (**C.char)(memory)
}

func (t texts) free() {
	for _, memory := range t {
		C.free(memory)
	}
}

// noZero refuses text with a zero byte, which C would take for its end.
func noZero(all ...string) error {
	for _, text := range all {
		if strings.ContainsRune(text, 0) {
			return failure(BadArgument, "a zero byte in a text")
		}
	}
	return nil
}

// array returns the text of an array in a struct.
func array(text []C.char) string { return C.GoStringN(&text[0], C.int(length(text))) }

func length(text []C.char) int {
	for i, c := range text {
		if c == 0 {
			return i
		}
	}
	return len(text)
}

// sized returns a struct of the API: zero except for its size, which is its first field.
func sized[T any]() (zero T) {
	*(*C.uint32_t)(unsafe.Pointer(&zero)) = C.uint32_t(unsafe.Sizeof(zero))
	return zero
}

// every returns all results of an entry, from index 0 on.
func every[T, To any](at func(index C.size_t, out *T) C.stw_status, to func(*T) To) (found []To) {
	for {
		result := sized[T]()
		if at(C.size_t(len(found)), &result) != C.STW_OK {
			return found
		}
		found = append(found, to(&result))
	}
}

// copied returns a copy of a callback's argument, which begins with its size. An older library may know fewer
// fields: the rest is zero.
func copied[T any](argument *T) (copy T) {
	size := C.size_t(*(*C.uint32_t)(unsafe.Pointer(argument)))
	if size > C.size_t(unsafe.Sizeof(copy)) {
		size = C.size_t(unsafe.Sizeof(copy))
	}
	C.memcpy(unsafe.Pointer(&copy), unsafe.Pointer(argument), size)
	return copy
}

// fits remembers the first number that does not fit its C type.
type fits struct{ err error }

func (f *fits) unsigned(name string, value int) C.uint32_t {
	if f.err == nil && (value < 0 || int64(value) > math.MaxUint32) {
		f.err = failure(BadArgument, "%s: expected 0 to %d, found %d", name, uint32(math.MaxUint32), value)
	}
	return C.uint32_t(value)
}

func number(set bool) C.uint32_t {
	if set {
		return 1
	}
	return 0
}
