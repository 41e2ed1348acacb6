//go:build stowage_without_pkg_config

package stowage

// #cgo LDFLAGS: -lstowage
import "C"
