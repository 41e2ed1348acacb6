//go:build !stowage_without_pkg_config

package stowage

// #cgo pkg-config: stowage
import "C"
