package stowage

/*
#include "glue.h"
*/
import "C"

import (
	"math"
	"runtime"
	"sync"
	"unsafe"
)

// Memory is the host's for arenas, none of Go's own: C's, mapped, or a GPU's. A panic of Allocate counts as nil, one of Release is dropped.
type Memory interface {
	// Allocate returns at least so many bytes at a multiple of the alignment, or nil. On a CUDA device that is its memory, in the order of
	// DeviceOptions.Stream, or nil there.
	Allocate(bytes, alignment int, stream unsafe.Pointer) unsafe.Pointer
	// Release takes back what Allocate returned.
	Release(memory unsafe.Pointer, bytes int, stream unsafe.Pointer)
}

// Executor is the host's goroutines.
type Executor interface {
	// Run calls task(i) once for every i in [0, tasks), on any goroutines, in any order, at most DeviceOptions.Threads of them at once, and returns
	// when all have returned. A panic of it, or runtime.Goexit, ends the process: nobody would know which tasks still run.
	Run(tasks int, task func(i int))
}

// DeviceOptions say where to compute.
type DeviceOptions struct {
	Backend  Backend // auto: CUDA where there is one, else the CPU
	Ordinal  int     // of several CUDA devices
	Threads  int     // CPU: threads that compute; 0: one for each processor
	ISA      ISA
	LogLevel LogLevel // 0: LogWarning
	// Log is told what happens, on a goroutine of its own while the caller waits, perhaps the runtime's; what it panics with is dropped.
	Log      func(level LogLevel, component, message string)
	CublasLt string // CUDA: the path of a libcublasLt.so.13; "": what the system finds
	Cudnn    string // CUDA: the path of a libcudnn.so.9
	Memory   Memory
	Executor Executor       // nil: a pool of the library's that sleeps when idle
	Stream   unsafe.Pointer // CUDA: the host's stream, of the device's primary context, until the device is closed; nil: one of the library's
}

// DeviceInfo is what is known of a device.
type DeviceInfo struct {
	Backend                 Backend
	MemoryTotal, MemoryFree uint64
	MemoryReserved          uint64 // CUDA: what the context has taken already of what a plan's reserve counts
	ComputeMajor            int    // CUDA
	ComputeMinor            int
	Threads                 int // CPU
	ISA                     ISA
	Name                    string
	Profile                 string // what PlanOptions.Device takes
}

// MemoryHolder is a process that holds memory of a CUDA device.
type MemoryHolder struct {
	Process, Bytes uint64
	Name           string
}

// LogMessage is what DeviceOptions.Log is told.
type LogMessage struct {
	Level           LogLevel
	Number          uint64
	Component, Text string
}

// opened is a device that is closed after its last user.
type opened struct {
	pointer *C.stw_device
	calls   *calls
	mutex   sync.Mutex
	users   int
}

func (o *opened) lend() {
	o.mutex.Lock()
	o.users++
	o.mutex.Unlock()
}

func (o *opened) release() {
	o.mutex.Lock()
	o.users--
	last := o.users == 0
	o.mutex.Unlock()
	if last {
		C.stw_device_close(o.pointer)
		o.calls.release()
	}
}

// Device is an open device.
type Device struct {
	handle[*opened]
}

// OpenDevice answers Unsupported where this library or machine has no such backend or instruction set.
func OpenDevice(options DeviceOptions) (*Device, error) {
	if err := noZero(options.CublasLt, options.Cudnn); err != nil {
		return nil, err
	}
	var given texts
	defer func() { given.free() }()
	var checked fits
	threads := checked.unsigned("Threads", options.Threads)
	if options.Ordinal < 0 || options.Ordinal > math.MaxInt32 {
		checked.err = failure(BadArgument, "Ordinal: expected 0 to %d, found %d", math.MaxInt32, options.Ordinal)
	}
	if checked.err != nil {
		return nil, checked.err
	}
	asked := C.stw_device_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_device_options{})), backend: C.uint32_t(options.Backend),
		ordinal: C.int32_t(options.Ordinal), threads: threads, isa: C.uint32_t(options.ISA), log_level: C.int32_t(options.LogLevel),
		cublaslt: given.of(options.CublasLt), cudnn: given.of(options.Cudnn), stream: options.Stream}
	made := &opened{users: 1, calls: &calls{log: options.Log, memory: options.Memory, executor: options.Executor}}
	user := made.calls.register()
	if options.Log != nil {
		C.stowage_go_set_log(&asked, user)
	}
	if options.Memory != nil {
		C.stowage_go_set_memory(&asked, user)
	}
	if options.Executor != nil {
		C.stowage_go_set_executor(&asked, user)
	}
	told := newError()
	if err := check(C.stw_device_open(&made.pointer, &asked, &told), &told); err != nil {
		made.calls.release()
		return nil, err
	}
	device := &Device{handle[*opened]{pointer: made, end: (*opened).release}}
	runtime.SetFinalizer(device, func(d *Device) { d.Close() })
	return device, nil
}

// Close lets the device go; trainers on it go on.
func (d *Device) Close() error {
	if d != nil {
		d.close()
	}
	return nil
}

// Info is zero for a device that is closed.
func (d *Device) Info() DeviceInfo {
	pointer, err := d.use("Device")
	if err != nil {
		return DeviceInfo{}
	}
	defer d.done()
	told := sized[C.stw_device_info]()
	C.stw_device_query(pointer.pointer, &told)
	return deviceInfoOf(&told)
}

func deviceInfoOf(told *C.stw_device_info) DeviceInfo {
	return DeviceInfo{Backend: Backend(told.backend), MemoryTotal: uint64(told.memory_total), MemoryFree: uint64(told.memory_free), MemoryReserved: uint64(told.memory_reserved),
		ComputeMajor: int(told.compute_major), ComputeMinor: int(told.compute_minor), Threads: int(told.threads), ISA: ISA(told.isa),
		Name: array(told.name[:]), Profile: array(told.profile[:])}
}

// Users are the device itself, until it is closed, and the trainers on it.
func (d *Device) Users() int {
	opened, err := d.use("Device")
	if err != nil {
		return 0
	}
	defer d.done()
	opened.mutex.Lock()
	defer opened.mutex.Unlock()
	return opened.users
}

// Holders are the processes that hold memory of a CUDA device, the largest first, as far as the driver tells.
func (d *Device) Holders() []MemoryHolder {
	pointer, err := d.use("Device")
	if err != nil {
		return nil
	}
	defer d.done()
	return every(func(index C.size_t, out *C.stw_memory_holder) C.stw_status {
		return C.stw_device_holder_at(pointer.pointer, index, out)
	},
		func(told *C.stw_memory_holder) MemoryHolder {
			return MemoryHolder{Process: uint64(told.process), Bytes: uint64(told.bytes), Name: array(told.name[:])}
		})
}

// NextLog is the oldest message kept whose number is larger than after; false: there is none.
func (d *Device) NextLog(after uint64) (LogMessage, bool) {
	pointer, err := d.use("Device")
	if err != nil {
		return LogMessage{}, false
	}
	defer d.done()
	told := sized[C.stw_log_message]()
	if C.stw_device_next_log(pointer.pointer, C.uint64_t(after), &told) != C.STW_OK || told.number == 0 {
		return LogMessage{}, false
	}
	return LogMessage{Level: LogLevel(told.level), Number: uint64(told.number), Component: array(told.component[:]), Text: array(told.text[:])}, true
}

// Devices are what can train here, the CPU first.
func Devices() ([]DeviceInfo, error) {
	var found []DeviceInfo
	for {
		info, told := sized[C.stw_device_info](), newError()
		status := C.stw_device_at(C.size_t(len(found)), &info, &told)
		if status == C.STW_BAD_ARGUMENT {
			return found, nil
		}
		if err := check(status, &told); err != nil {
			return nil, err
		}
		found = append(found, deviceInfoOf(&info))
	}
}
