// Package stowage trains neural networks on one device in exactly the memory you give it, over Stowage's C API and nothing else.
//
//	model, err := stowage.OpenModel("path/to/model")               // or a preset
//	device, err := stowage.OpenDevice(stowage.DeviceOptions{})     // a GPU where there is one, else the CPU
//	plan, err := stowage.NewPlan(model, stowage.PlanOptions{GlobalBatch: 32, Sequence: 512, MemoryBytes: 4 << 30}.For(device))
//	trainer, err := stowage.NewTrainer(device, model, plan, stowage.TrainerOptions{})   // the only allocation of tensors
//	result, err := trainer.Step(stowage.Batch{Tokens: tokens, Labels: tokens, Samples: 32}, 3e-4)
//
// stowage.h is the contract: what every entry guarantees, and what the fields of options and results mean, which have their names here. A zero
// value means the default; what may be zero itself is a pointer. What is made here is closed by Close, in any order; nothing happens when it is
// closed again, what is under way goes on to its end, and whatever is done with it afterwards answers BadState or, where there is no error to
// answer with, nothing. What is forgotten is closed by the runtime some time, but not what a callback of its own refers to. Models and plans may
// be used by several goroutines at once, datasets, trainers and what makes a trainer on a device by one at a time; Trainer.Cancel,
// Trainer.Progress and Close may be called from any. Callbacks run on goroutines of their own, while the call that they belong to waits; a panic
// of theirs, or runtime.Goexit, ends that call and goes on from it.
//
// cgo finds the library by pkg-config, which finds what is installed elsewhere by PKG_CONFIG_PATH. With the build tag stowage_without_pkg_config the
// library is where the compiler looks, or where CGO_CFLAGS=-I… and CGO_LDFLAGS=-L… say.
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

// Version is major, minor and patch of the library that is loaded.
func Version() (int, int, int) {
	number := int(C.stw_version())
	return number / 10000, number / 100 % 100, number % 100
}

// BuildInfo says what the library was built with.
func BuildInfo() string {
	runtime.LockOSThread() // whose text it is
	defer runtime.UnlockOSThread()
	return C.GoString(C.stw_build_info())
}

// Of returns a pointer to a value, for fields whose zero would be one.
func Of[T any](value T) *T { return &value }

// texts are strings as C has them, freed together.
type texts []unsafe.Pointer

// of returns NULL for "".
func (t *texts) of(text string) *C.char {
	if text == "" {
		return nil
	}
	return t.always(text)
}

// always returns an address of "", too.
func (t *texts) always(text string) *C.char {
	made := C.CString(text)
	*t = append(*t, unsafe.Pointer(made))
	return made
}

// array returns an array in C's memory, NULL where it would be empty.
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

// noZero refuses what C would take for the end.
func noZero(all ...string) error {
	for _, text := range all {
		if strings.ContainsRune(text, 0) {
			return failure(BadArgument, "a zero byte in a text")
		}
	}
	return nil
}

// array is text in a struct.
func array(text []C.char) string { return C.GoStringN(&text[0], C.int(length(text))) }

func length(text []C.char) int {
	for i, c := range text {
		if c == 0 {
			return i
		}
	}
	return len(text)
}

// sized is a struct of the API, zero but for its size, which is its first field.
func sized[T any]() (zero T) {
	*(*C.uint32_t)(unsafe.Pointer(&zero)) = C.uint32_t(unsafe.Sizeof(zero))
	return zero
}

// every is all that there is, from index 0 on.
func every[T, To any](at func(index C.size_t, out *T) C.stw_status, to func(*T) To) (found []To) {
	for {
		told := sized[T]()
		if at(C.size_t(len(found)), &told) != C.STW_OK {
			return found
		}
		found = append(found, to(&told))
	}
}

// copied is what a callback was told by a library that may be older than this and know less: the rest is zero. It begins with its size.
func copied[T any](told *T) (copy T) {
	size := C.size_t(*(*C.uint32_t)(unsafe.Pointer(told)))
	if size > C.size_t(unsafe.Sizeof(copy)) {
		size = C.size_t(unsafe.Sizeof(copy))
	}
	C.memcpy(unsafe.Pointer(&copy), unsafe.Pointer(told), size)
	return copy
}

// fits remembers the first number that C has no room for.
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
