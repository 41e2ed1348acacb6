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

// Memory is the host's allocator for arenas. It returns memory of C, mapped memory or memory of a GPU, and
// never memory of Go's heap. A panic of Allocate counts as nil; a panic of Release is dropped.
type Memory interface {
	// Allocate returns at least `bytes` bytes at a multiple of the alignment, or nil. On a CUDA device it is
	// memory of the device, in the order of stream, which is DeviceOptions.Stream.
	Allocate(bytes, alignment int, stream unsafe.Pointer) unsafe.Pointer
	// Release frees memory that Allocate returned.
	Release(memory unsafe.Pointer, bytes int, stream unsafe.Pointer)
}

// Executor runs tasks on the host's goroutines.
type Executor interface {
	// Run calls task(i) once for every i in [0, tasks), on any goroutines and in any order, at most
	// DeviceOptions.Threads at the same time. It returns when all have returned. A panic of Run, or
	// runtime.Goexit, ends the process, because tasks may still be running.
	Run(tasks int, task func(i int))
}

// DeviceOptions are stw_device_options.
type DeviceOptions struct {
	Backend  Backend // auto: CUDA if there is a CUDA device, else the CPU
	Ordinal  int     // number of the CUDA device, if there are several
	Threads  int     // CPU: threads that compute; 0: one for each processor
	ISA      ISA
	LogLevel LogLevel // 0: LogWarning
	// Log receives messages, on a goroutine of its own, while the caller waits. The caller may be Go's
	// runtime. Panics of Log are dropped.
	Log      func(level LogLevel, component, message string)
	CublasLt string // CUDA: the path of a libcublasLt.so.13; "": the one that the system finds
	Cudnn    string // CUDA: the path of a libcudnn.so.9
	Memory   Memory
	Executor Executor // nil: the library's own threads, which sleep when they are idle
	// CUDA: the host's stream, of the device's primary context, until the device is closed; nil: the library
	// makes one
	Stream unsafe.Pointer
}

// DeviceInfo describes a device.
type DeviceInfo struct {
	Backend                 Backend
	MemoryTotal, MemoryFree uint64
	MemoryReserved          uint64 // CUDA: bytes of a plan's reserve that the context already holds
	ComputeMajor            int    // CUDA
	ComputeMinor            int
	Threads                 int // CPU
	ISA                     ISA
	Name                    string
	Profile                 string // the name for PlanOptions.Device
}

// MemoryHolder is a process that holds memory of a CUDA device.
type MemoryHolder struct {
	Process, Bytes uint64
	Name           string
}

// LogMessage is a message for DeviceOptions.Log.
type LogMessage struct {
	Level           LogLevel
	Number          uint64
	Component, Text string
}

// opened is a device that is closed after its last user has ended.
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

// OpenDevice opens a device. Its error is Unsupported if this library or machine has no such backend or
// instruction set.
func OpenDevice(options DeviceOptions) (*Device, error) {
	if err := noZero(options.CublasLt, options.Cudnn); err != nil {
		return nil, err
	}
	var given texts
	defer func() { given.free() }()
	var checked fits
	threads := checked.unsigned("Threads", options.Threads)
	if options.Ordinal < 0 || options.Ordinal > math.MaxInt32 {
		checked.err = failure(BadArgument, "Ordinal: expected 0 to %d, found %d", math.MaxInt32,
			options.Ordinal)
	}
	if checked.err != nil {
		return nil, checked.err
	}
	cOptions := C.stw_device_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_device_options{})),
		backend: C.uint32_t(options.Backend), ordinal: C.int32_t(options.Ordinal), threads: threads,
		isa: C.uint32_t(options.ISA), log_level: C.int32_t(options.LogLevel),
		cublaslt: given.orNull(options.CublasLt), cudnn: given.orNull(options.Cudnn), stream: options.Stream}
	shared := &opened{users: 1, calls: &calls{log: options.Log, memory: options.Memory,
		executor: options.Executor}}
	user := shared.calls.register()
	if options.Log != nil {
		C.stowage_go_set_log(&cOptions, user)
	}
	if options.Memory != nil {
		C.stowage_go_set_memory(&cOptions, user)
	}
	if options.Executor != nil {
		C.stowage_go_set_executor(&cOptions, user)
	}
	cErr := newError()
	if err := check(C.stw_device_open(&shared.pointer, &cOptions, &cErr), &cErr); err != nil {
		shared.calls.release()
		return nil, err
	}
	device := &Device{handle[*opened]{pointer: shared, end: (*opened).release}}
	runtime.SetFinalizer(device, func(d *Device) { d.Close() })
	return device, nil
}

// Close closes the device; trainers on it can still be used.
func (d *Device) Close() error {
	if d != nil {
		d.close()
	}
	return nil
}

// Info describes the device; zero after Close.
func (d *Device) Info() DeviceInfo {
	pointer, err := d.use("Device")
	if err != nil {
		return DeviceInfo{}
	}
	defer d.done()
	info := sized[C.stw_device_info]()
	C.stw_device_query(pointer.pointer, &info)
	return deviceInfoOf(&info)
}

func deviceInfoOf(info *C.stw_device_info) DeviceInfo {
	return DeviceInfo{Backend: Backend(info.backend), MemoryTotal: uint64(info.memory_total),
		MemoryFree: uint64(info.memory_free), MemoryReserved: uint64(info.memory_reserved),
		ComputeMajor: int(info.compute_major), ComputeMinor: int(info.compute_minor),
		Threads: int(info.threads), ISA: ISA(info.isa), Name: array(info.name[:]),
		Profile: array(info.profile[:])}
}

// Users returns the number of users: the device itself, until it is closed, and the trainers on it.
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

// Holders are the processes that hold memory of a CUDA device, the largest first, as far as the driver
// reports them.
func (d *Device) Holders() []MemoryHolder {
	pointer, err := d.use("Device")
	if err != nil {
		return nil
	}
	defer d.done()
	return every(func(index C.size_t, out *C.stw_memory_holder) C.stw_status {
		return C.stw_device_holder_at(pointer.pointer, index, out)
	},
		func(holder *C.stw_memory_holder) MemoryHolder {
			return MemoryHolder{Process: uint64(holder.process), Bytes: uint64(holder.bytes),
				Name: array(holder.name[:])}
		})
}

// NextLog returns the oldest kept message whose number is larger than after, or false if there is none.
func (d *Device) NextLog(after uint64) (LogMessage, bool) {
	pointer, err := d.use("Device")
	if err != nil {
		return LogMessage{}, false
	}
	defer d.done()
	message := sized[C.stw_log_message]()
	if C.stw_device_next_log(pointer.pointer, C.uint64_t(after), &message) != C.STW_OK ||
		message.number == 0 {
		return LogMessage{}, false
	}
	return LogMessage{Level: LogLevel(message.level), Number: uint64(message.number),
		Component: array(message.component[:]), Text: array(message.text[:])}, true
}

// Devices are the devices that can train on this machine, the CPU first.
func Devices() ([]DeviceInfo, error) {
	var found []DeviceInfo
	for {
		info, cErr := sized[C.stw_device_info](), newError()
		status := C.stw_device_at(C.size_t(len(found)), &info, &cErr)
		if status == C.STW_BAD_ARGUMENT {
			return found, nil
		}
		if err := check(status, &cErr); err != nil {
			return nil, err
		}
		found = append(found, deviceInfoOf(&info))
	}
}
