package stowage

import "sync"

// handle is a pointer to an object of the library. The object is destroyed once: by close, or at the end of
// the last call that was in progress when close was called.
type handle[P comparable] struct {
	mutex   sync.Mutex
	pointer P
	end     func(P)
	uses    int
	closed  bool
}

// use must be followed by done if it did not fail.
func (h *handle[P]) use(what string) (P, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		var none P
		return none, failure(BadState, "this %s is closed", what)
	}
	h.uses++
	return h.pointer, nil
}

func (h *handle[P]) done() {
	h.mutex.Lock()
	h.uses--
	last := h.closed && h.uses == 0
	h.mutex.Unlock()
	if last {
		h.end(h.pointer)
	}
}

func (h *handle[P]) close() {
	h.mutex.Lock()
	now := !h.closed && h.uses == 0
	h.closed = true
	h.mutex.Unlock()
	if now {
		h.end(h.pointer)
	}
}
