package stowage

import "sync"

// handle is something of the library's, known by a pointer, that is given back once: by close, or at the end of the last call that was under way
// then.
type handle[P comparable] struct {
	mutex   sync.Mutex
	pointer P
	end     func(P)
	uses    int
	closed  bool
}

// use is followed by done, where it has not failed.
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
