package stowage

/*
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// calls is the target of a callback's user pointer. The pointer leads to C memory that holds a handle to this
// struct.
type calls struct {
	log      func(level LogLevel, component, message string)
	memory   Memory
	executor Executor
	hook     func(*Gradients) error
	progress func(Progress) bool
	notify   func(WatchState) bool
	onHost   bool
	failed   error
	panicked any
	exited   bool
	user     unsafe.Pointer
}

func (c *calls) register() unsafe.Pointer {
	c.user = C.malloc(C.size_t(unsafe.Sizeof(cgo.Handle(0))))
	*(*cgo.Handle)(c.user) = cgo.NewHandle(c)
	return c.user
}

func (c *calls) release() {
	if c != nil && c.user != nil {
		(*(*cgo.Handle)(c.user)).Delete()
		C.free(c.user)
		c.user = nil
	}
}

func callsOf(user unsafe.Pointer) *calls { return (*(*cgo.Handle)(user)).Value().(*calls) }

// run calls host code on a goroutine of its own, so that neither a panic nor runtime.Goexit leaves through
// C's frames. It returns whether the call returned true.
func (c *calls) run(call func() bool) (is bool) {
	done, returned := make(chan struct{}), false
	go func() {
		defer close(done)
		defer func() {
			if !returned {
				c.panicked = recover()
				c.exited = c.panicked == nil
			}
		}()
		is = call()
		returned = true
	}()
	<-done
	return is && returned
}

func status(is bool) C.int32_t {
	if is {
		return 0
	}
	return 1
}

// explain runs at the end of a call. It resumes a panic that ended a callback, or adds the error of a hook.
func (c *calls) explain(err error) error {
	if c == nil {
		return err
	}
	failed, panicked, exited := c.failed, c.panicked, c.exited
	c.failed, c.panicked, c.exited = nil, nil, false
	if panicked != nil {
		panic(panicked)
	}
	if exited {
		runtime.Goexit()
	}
	if e, ok := err.(*Error); ok && failed != nil {
		e.cause = failed
	}
	return err
}

//export stowageGoLog
func stowageGoLog(user unsafe.Pointer, level C.int32_t, component, message *C.char) {
	log := callsOf(user).log
	new(calls).run(func() bool { // no caller could receive a panic
		log(LogLevel(level), C.GoString(component), C.GoString(message))
		return true
	})
}

//export stowageGoAllocate
func stowageGoAllocate(user unsafe.Pointer, bytes, alignment C.size_t,
	stream unsafe.Pointer) (given unsafe.Pointer) {
	memory := callsOf(user).memory
	new(calls).run(func() bool {
		given = memory.Allocate(int(bytes), int(alignment), stream)
		return true
	})
	return given
}

//export stowageGoRelease
func stowageGoRelease(user, given unsafe.Pointer, bytes C.size_t, stream unsafe.Pointer) {
	memory := callsOf(user).memory
	new(calls).run(func() bool {
		memory.Release(given, int(bytes), stream)
		return true
	})
}

//export stowageGoRun
func stowageGoRun(user unsafe.Pointer, tasks C.uint32_t, task C.stowage_go_task, context unsafe.Pointer) {
	executor, done, returned := callsOf(user).executor, make(chan struct{}), false
	go func() { // a panic must not unwind C's frames
		defer close(done)
		executor.Run(int(tasks), func(i int) { C.stowage_go_call(task, context, C.uint32_t(i)) })
		returned = true
	}()
	<-done
	if !returned {
		go panic("stowage: an Executor did not return")
		select {}
	}
}

//export stowageGoHook
func stowageGoHook(user unsafe.Pointer, argument *C.stw_gradients) C.int32_t {
	c, gradients := callsOf(user), copied(argument)
	given := &Gradients{gradients: &gradients, onHost: c.onHost, Scale: float64(gradients.scale),
		Count: uint64(gradients.count)}
	defer func() { given.gradients = nil }()
	return status(c.run(func() bool {
		c.failed = c.hook(given)
		return c.failed == nil
	}))
}

//export stowageGoProgress
func stowageGoProgress(user unsafe.Pointer, argument *C.stw_progress) C.int32_t {
	c, progress := callsOf(user), copied(argument)
	return status(c.run(func() bool { return c.progress(progressOf(&progress)) }))
}

// Gradients are the gradients that a hook may change while it is called, before the update. Adding them up
// over several trainers, with LossSum, TargetCount and CorrectPairs, makes one step of the joint batch.
type Gradients struct {
	Scale     float64 // scale that the gradients contain: 1 unless the precision is fp16
	Count     uint64  // number of gradients, including gaps
	gradients *C.stw_gradients
	onHost    bool
}

// Data are the gradients of all trainable parameters: sums over tokens. Ignore the gaps. Data is nil if the
// gradients are in a GPU's memory, and after the hook has returned.
func (g *Gradients) Data() []float32 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(g.gradients.data)), int(g.gradients.count))
}

// LossSum is the sum of the losses of all targets; nil if Data is nil.
func (g *Gradients) LossSum() *float64 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return (*float64)(unsafe.Pointer(g.gradients.loss_sum))
}

// TargetCount is the number of targets; nil if Data is nil.
func (g *Gradients) TargetCount() *uint64 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return (*uint64)(unsafe.Pointer(g.gradients.target_count))
}

// CorrectPairs is, with a preference, the number of pairs whose chosen document was ahead; nil if Data is
// nil, or if the library does not know it.
func (g *Gradients) CorrectPairs() *uint32 {
	if g.gradients == nil || !g.onHost {
		return nil
	}
	return (*uint32)(unsafe.Pointer(g.gradients.correct_pairs))
}

// Addresses are the addresses of data, loss sum and target count. On a GPU they are in its memory; use them
// in the order of the stream.
func (g *Gradients) Addresses() (data, lossSum, targetCount, stream unsafe.Pointer) {
	if g.gradients == nil {
		return nil, nil, nil, nil
	}
	return unsafe.Pointer(g.gradients.data), unsafe.Pointer(g.gradients.loss_sum),
		unsafe.Pointer(g.gradients.target_count), g.gradients.stream
}
