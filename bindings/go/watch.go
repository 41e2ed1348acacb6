package stowage

/*
#include "glue.h"
*/
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

// Work is the kind of call in progress.
type Work uint32

const (
	WorkNone          Work = C.STW_WORK_NONE
	WorkPlan          Work = C.STW_WORK_PLAN
	WorkOpenDataset   Work = C.STW_WORK_OPEN_DATASET
	WorkCreateTrainer Work = C.STW_WORK_CREATE_TRAINER
	WorkStep          Work = C.STW_WORK_STEP
	WorkEvaluate      Work = C.STW_WORK_EVALUATE
	WorkGenerate      Work = C.STW_WORK_GENERATE
	WorkCalibrate     Work = C.STW_WORK_CALIBRATE
	WorkSave          Work = C.STW_WORK_SAVE
	WorkRestore       Work = C.STW_WORK_RESTORE
	WorkExport        Work = C.STW_WORK_EXPORT
)

// Unit is the unit of WatchState.Done and Total.
type Unit uint32

const (
	UnitNone       Unit = C.STW_UNIT_NONE
	UnitBytes      Unit = C.STW_UNIT_BYTES
	UnitMicroSteps Unit = C.STW_UNIT_MICRO_STEPS
	UnitSamples    Unit = C.STW_UNIT_SAMPLES
)

// WatchState is the progress of a long call.
type WatchState struct {
	Work        Work
	Unit        Unit
	Done, Total uint64  // a Total of 0 is unknown
	Share       float64 // share of the work that is done, 0 to 1
}

// WatchOptions are stw_watch_options.
type WatchOptions struct {
	// Notify is called in the middle of a long call. A result of false cancels the call.
	Notify func(now WatchState) bool
	// Interval is the shortest time between two calls of Notify; nil: 100 ms; 0: Notify is called after every
	// piece of work.
	Interval *time.Duration
}

// Watch cancels long calls and reports their progress, one call at a time. Put it into PlanOptions,
// DatasetOptions and TrainerOptions, or pass it to the methods whose names end in Watched.
type Watch struct {
	handle[*C.stw_watch]
	calls *calls
}

// NewWatch creates a watch. Its error is BadArgument for an interval of less than 0 or more than 2^32 - 1
// milliseconds.
func NewWatch(options WatchOptions) (*Watch, error) {
	cOptions := C.stw_watch_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_watch_options{}))}
	if options.Interval != nil {
		var checked fits
		cOptions.set_mask, cOptions.interval_milliseconds = C.STW_SET_INTERVAL,
			checked.unsigned("Interval", int(options.Interval.Milliseconds()))
		if checked.err != nil {
			return nil, checked.err
		}
	}
	watch := &Watch{}
	if options.Notify != nil {
		watch.calls = &calls{notify: options.Notify}
		C.stowage_go_set_notify(&cOptions, watch.calls.register())
	}
	cErr := newError()
	if err := check(C.stw_watch_create(&watch.pointer, &cOptions, &cErr), &cErr); err != nil {
		watch.calls.release()
		return nil, err
	}
	called := watch.calls
	watch.end = func(p *C.stw_watch) {
		C.stw_watch_destroy(p)
		called.release()
	}
	runtime.SetFinalizer(watch, func(w *Watch) { w.Close() })
	return watch, nil
}

// Close destroys the watch, after the last call and the last trainer that use it.
func (w *Watch) Close() error {
	if w != nil {
		w.close()
	}
	return nil
}

// Cancel ends the call in progress that uses the watch, or else the next one. Any goroutine may call it.
func (w *Watch) Cancel() {
	if pointer, err := w.use("Watch"); err == nil {
		defer w.done()
		C.stw_watch_cancel(pointer)
	}
}

// State returns the progress of the call in progress; zero after Close. Any goroutine may call it.
func (w *Watch) State() WatchState {
	pointer, err := w.use("Watch")
	if err != nil {
		return WatchState{}
	}
	defer w.done()
	info := sized[C.stw_watch_info]()
	C.stw_watch_query(pointer, &info)
	return watchStateOf(&info)
}

func watchStateOf(info *C.stw_watch_info) WatchState {
	return WatchState{Work: Work(info.work), Unit: Unit(info.unit), Done: uint64(info.done),
		Total: uint64(info.total), Share: float64(info.share)}
}

// begin must be followed by done if it did not fail and there is a watch.
func (w *Watch) begin() (*C.stw_watch, error) {
	if w == nil {
		return nil, nil
	}
	return w.use("Watch")
}

// finish ends a call that began with begin, and returns its error.
func (w *Watch) finish(err error) error {
	if w == nil {
		return err
	}
	defer w.done()
	return w.calls.explain(err)
}

//export stowageGoNotify
func stowageGoNotify(user unsafe.Pointer, argument *C.stw_watch_info) C.int32_t {
	c, info := callsOf(user), copied(argument)
	return status(c.run(func() bool { return c.notify(watchStateOf(&info)) }))
}
