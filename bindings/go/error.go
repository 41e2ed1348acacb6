package stowage

/*
#include "glue.h"
*/
import "C"

import "fmt"

// Status is a status code of the library, for errors.Is(err, stowage.OverBudget).
type Status int32

const (
	BadArgument      Status = C.STW_BAD_ARGUMENT
	BadStructSize    Status = C.STW_BAD_STRUCT_SIZE
	BadState         Status = C.STW_BAD_STATE
	Unsupported      Status = C.STW_UNSUPPORTED
	UnsupportedField Status = C.STW_UNSUPPORTED_FIELD
	UnsupportedShape Status = C.STW_UNSUPPORTED_SHAPE
	OutOfMemory      Status = C.STW_OUT_OF_MEMORY
	OverBudget       Status = C.STW_OVER_BUDGET
	HostOutOfMemory  Status = C.STW_HOST_OUT_OF_MEMORY
	DeviceError      Status = C.STW_DEVICE_ERROR
	DeviceLost       Status = C.STW_DEVICE_LOST
	IOError          Status = C.STW_IO_ERROR
	Corrupt          Status = C.STW_CORRUPT
	Cancelled        Status = C.STW_CANCELLED
	CallbackFailed   Status = C.STW_CALLBACK_FAILED
	Numeric          Status = C.STW_NUMERIC
	NonFinite        Status = C.STW_NON_FINITE
	Internal         Status = C.STW_INTERNAL
)

// Error is the code's name, such as "STW_OVER_BUDGET".
func (s Status) Error() string { return C.GoString(C.stw_status_name(C.stw_status(s))) }

// Category returns the category of the code, such as OutOfMemory for OverBudget.
func (s Status) Category() Status { return s / 1000 * 1000 }

// Error is a failure of the library.
type Error struct {
	Status                      Status
	Message                     string // one line
	NativeCode                  int    // errno or cudaError_t, else 0
	BytesNeeded, BytesAvailable uint64 // bytes, if there was too little memory
	cause                       error
}

func (e *Error) Error() string {
	text := e.Status.Error()
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Is compares with a Status.
func (e *Error) Is(target error) bool { return e.Status == target }

// Unwrap returns the error of a gradient hook.
func (e *Error) Unwrap() error { return e.cause }

func failure(status Status, format string, values ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, values...)}
}

func newError() C.stw_error {
	return sized[C.stw_error]()
}

// check makes an error from the status that an entry returned and the error that it wrote.
func check(status C.stw_status, cErr *C.stw_error) error {
	if status == C.STW_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: array(cErr.message[:]), NativeCode: int(cErr.native_code),
		BytesNeeded: uint64(cErr.bytes_needed), BytesAvailable: uint64(cErr.bytes_available)}
}
