package stowage

import "sync"

// handle is something of the library's that is given back once, and not in the middle of what is done with it.
type handle[T any] struct {
	mutex   sync.Mutex
	pointer *T
	uses    int
}

// use is followed by done, where it has not failed.
func (h *handle[T]) use(what string) (*T, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.pointer == nil {
		return nil, closed(what)
	}
	h.uses++
	return h.pointer, nil
}

func (h *handle[T]) done() {
	h.mutex.Lock()
	h.uses--
	h.mutex.Unlock()
}

// close tells the pointer to the caller who has to give it back, and nil to all others.
func (h *handle[T]) close(what string) (*T, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.uses > 0 {
		return nil, failure(BadState, "this %s is in use", what)
	}
	pointer := h.pointer
	h.pointer = nil
	return pointer, nil
}
