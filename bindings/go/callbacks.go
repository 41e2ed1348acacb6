package stowage

/*
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// calls are what a callback's user pointer leads to: C's memory with a handle of it.
type calls struct {
	log      func(level LogLevel, component, message string)
	hook     func(*Gradients) error
	progress func(Progress) bool
	onHost   bool
	failed   error
	panicked any
	memory   unsafe.Pointer
}

func (c *calls) register() unsafe.Pointer {
	c.memory = C.malloc(C.size_t(unsafe.Sizeof(cgo.Handle(0))))
	*(*cgo.Handle)(c.memory) = cgo.NewHandle(c)
	return c.memory
}

func (c *calls) release() {
	if c != nil && c.memory != nil {
		(*(*cgo.Handle)(c.memory)).Delete()
		C.free(c.memory)
		c.memory = nil
	}
}

func callsOf(user unsafe.Pointer) *calls { return (*(*cgo.Handle)(user)).Value().(*calls) }

// explain goes on with a panic of a callback in the call that is over, or adds the error of a hook.
func (c *calls) explain(err error) error {
	if c == nil {
		return err
	}
	failed, panicked := c.failed, c.panicked
	c.failed, c.panicked = nil, nil
	if panicked != nil {
		panic(panicked)
	}
	if told, ok := err.(*Error); ok && failed != nil {
		told.cause = failed
	}
	return err
}

// guard keeps a panic from C's frames.
func (c *calls) guard() {
	if panicked := recover(); panicked != nil {
		c.panicked = panicked
	}
}

//export goLog
func goLog(user unsafe.Pointer, level C.int32_t, component, message *C.char) {
	defer func() { _ = recover() }() // there is nobody to tell
	callsOf(user).log(LogLevel(level), C.GoString(component), C.GoString(message))
}

//export goHook
func goHook(user unsafe.Pointer, gradients *C.stw_gradients) (status C.int32_t) {
	c := callsOf(user)
	status = 1
	defer c.guard()
	told := copied(gradients)
	given := &Gradients{gradients: &told, onHost: c.onHost, Scale: float64(told.scale), Count: uint64(told.count)}
	defer func() { given.gradients = nil }()
	if c.failed = c.hook(given); c.failed == nil {
		status = 0
	}
	return status
}

//export goProgress
func goProgress(user unsafe.Pointer, now *C.stw_progress) (status C.int32_t) {
	c := callsOf(user)
	status = 1
	defer c.guard()
	told := copied(now)
	if c.progress(progressOf(&told)) {
		status = 0
	}
	return status
}

// Gradients are what a hook may change before the update, while it is called: adding them up over several trainers, with LossSum and
// TargetCount, makes one step of the joint batch.
type Gradients struct {
	Scale     float64 // that they carry: 1 unless the precision is fp16
	Count     uint64  // numbers
	gradients *C.stw_gradients
	onHost    bool
}

// Data are sums over tokens, of all trainable parameters; nil where they lie in a GPU's memory, and after the hook has returned. Holes are to
// be ignored.
func (g *Gradients) Data() []float32 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(g.gradients.data)), int(g.gradients.count))
}

// LossSum is nil where Data is.
func (g *Gradients) LossSum() *float64 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return (*float64)(unsafe.Pointer(g.gradients.loss_sum))
}

// TargetCount is nil where Data is.
func (g *Gradients) TargetCount() *uint64 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return (*uint64)(unsafe.Pointer(g.gradients.target_count))
}

// Addresses are where data, loss sum and target count lie, of a GPU in its memory, in the order of the stream.
func (g *Gradients) Addresses() (data, lossSum, targetCount, stream unsafe.Pointer) {
	if g.gradients == nil {
		return nil, nil, nil, nil
	}
	return unsafe.Pointer(g.gradients.data), unsafe.Pointer(g.gradients.loss_sum), unsafe.Pointer(g.gradients.target_count), g.gradients.stream
}
