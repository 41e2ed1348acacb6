package stowage

/*
#include "glue.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// ModelOptions are stw_model_options.
type ModelOptions struct {
	Source     string  // a folder with config.json, a config.json, or the name of a preset such as "nano"
	ConfigJSON string  // instead of Source: the text of a config.json
	Weights    string  // a .safetensors file or a folder; "": those of the source folder if it has any, else random values drawn from Seed
	Seed       *uint64 // nil: 1337
	Dropout    *float32

	Adapter               string // a folder of adapters (LoRA) to go on with
	AdapterRank           int    // new ones; 0: no new ones
	AdapterTargets        string // such as "q_proj,v_proj"; "": all matrices of blocks
	AdapterAlpha          float32
	AdapterDropout        float32
	AdapterRankStabilised bool

	LabelCount int      // a classifier of whole texts; 0: as the config says
	LabelNames []string // LabelCount of them; none: the model's own, else LABEL_0, LABEL_1, …
	Task       Task     // TaskAutomatic: as the config says, or with labels TaskLabel
}

// ModelInfo is what is known of a model.
type ModelInfo struct {
	Layers, Width         int
	Parameters, Trainable uint64
	Vocabulary, Positions uint64
	HasWeights, HasCodes  bool
	Architecture          string
	AdapterRank           int
	Labels                int   // of a classifier; 0: a language model
	PaddingToken          int64 // -1: none
	Generates             bool  // continues texts; false: an encoder, which reads a text as a whole
	Task                  Task
	HeadIsNew             bool // weights were read from files, and of the head some were drawn from the seed
	TokenTypes            int  // how many types of tokens it tells apart, such as a first and a second text; 0: none
}

// TensorInfo is a tensor of a model.
type TensorInfo struct {
	Name     string
	Shape    []int64
	Elements uint64
}

// Model describes what is trained; weights are read when a trainer is made of it.
type Model struct {
	handle[*C.stw_model]
}

// OpenModel takes a folder, a config.json, or a preset by its name.
func OpenModel(source string) (*Model, error) { return NewModel(ModelOptions{Source: source}) }

// NewModel answers IOError, Corrupt, Unsupported (architecture), UnsupportedField or BadArgument.
func NewModel(options ModelOptions) (*Model, error) {
	if err := noZero(append([]string{options.Source, options.ConfigJSON, options.Weights, options.Adapter, options.AdapterTargets}, options.LabelNames...)...); err != nil {
		return nil, err
	}
	if len(options.LabelNames) > 0 && options.LabelCount != 0 && options.LabelCount != len(options.LabelNames) {
		return nil, failure(BadArgument, "LabelCount %d: there are %d LabelNames", options.LabelCount, len(options.LabelNames))
	}
	var checked fits
	rank, labels := checked.unsigned("AdapterRank", options.AdapterRank), checked.unsigned("LabelCount", options.LabelCount)
	if checked.err != nil {
		return nil, checked.err
	}
	var given texts
	defer func() { given.free() }()
	asked := C.stw_model_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_model_options{})), source: given.of(options.Source),
		config_json: given.of(options.ConfigJSON), config_json_size: C.size_t(len(options.ConfigJSON)), weights: given.of(options.Weights),
		adapter: given.of(options.Adapter), adapter_targets: given.of(options.AdapterTargets),
		adapter_rank: rank, adapter_alpha: C.float(options.AdapterAlpha), adapter_dropout: C.float(options.AdapterDropout),
		label_count: C.size_t(labels), label_names: given.array(options.LabelNames), task: C.uint32_t(options.Task)}
	if options.Seed != nil {
		asked.set_mask |= C.STW_SET_MODEL_SEED
		asked.seed = C.uint64_t(*options.Seed)
	}
	if options.Dropout != nil {
		asked.set_mask |= C.STW_SET_DROPOUT
		asked.dropout = C.float(*options.Dropout)
	}
	if options.AdapterRankStabilised {
		asked.adapter_flags = C.STW_ADAPTER_RANK_STABILISED
	}
	if len(options.LabelNames) > 0 {
		asked.label_count = C.size_t(len(options.LabelNames))
	}
	var pointer *C.stw_model
	told := newError()
	if err := check(C.stw_model_create(&pointer, &asked, &told), &told); err != nil {
		return nil, err
	}
	model := &Model{handle[*C.stw_model]{pointer: pointer, end: func(p *C.stw_model) { C.stw_model_destroy(p) }}}
	runtime.SetFinalizer(model, func(m *Model) { m.Close() })
	return model, nil
}

// Close may come before the end of what was made from the model.
func (m *Model) Close() error {
	if m != nil {
		m.close()
	}
	return nil
}

// Info is zero for a model that is closed.
func (m *Model) Info() ModelInfo {
	pointer, err := m.use("Model")
	if err != nil {
		return ModelInfo{}
	}
	defer m.done()
	told := sized[C.stw_model_info]()
	C.stw_model_query(pointer, &told)
	return ModelInfo{Layers: int(told.layers), Width: int(told.width), Parameters: uint64(told.parameters), Trainable: uint64(told.trainable),
		Vocabulary: uint64(told.vocabulary), Positions: uint64(told.positions), HasWeights: told.has_weights != 0, HasCodes: told.has_codes != 0,
		Architecture: array(told.architecture[:]), AdapterRank: int(told.adapter_rank), Labels: int(told.labels), PaddingToken: int64(told.padding_token),
		Generates: told.generates != 0, TokenTypes: int(told.token_types), Task: Task(told.task), HeadIsNew: told.head_is_new != 0}
}

// Tensors are all of them, by index.
func (m *Model) Tensors() []TensorInfo {
	pointer, err := m.use("Model")
	if err != nil {
		return nil
	}
	defer m.done()
	found := make([]TensorInfo, int(C.stw_model_tensor_count(pointer)))
	for i := range found {
		told := sized[C.stw_tensor_info]()
		C.stw_model_tensor_at(pointer, C.size_t(i), &told)
		found[i] = TensorInfo{Name: C.GoString(told.name), Elements: uint64(told.elements)}
		for _, size := range told.shape[:int(told.ndim)] {
			found[i].Shape = append(found[i].Shape, int64(size))
		}
	}
	return found
}

// TensorIndex is of the tensor with that name; false: there is none.
func (m *Model) TensorIndex(name string) (int, bool) {
	pointer, err := m.use("Model")
	if err != nil || noZero(name) != nil {
		return 0, false
	}
	defer m.done()
	var given texts
	defer func() { given.free() }()
	var index C.size_t
	if C.stw_model_tensor_find(pointer, given.of(name), &index) != C.STW_OK {
		return 0, false
	}
	return int(index), true
}

// Labels are a classifier's.
func (m *Model) Labels() []string {
	pointer, err := m.use("Model")
	if err != nil {
		return nil
	}
	defer m.done()
	return names(func(index int) *C.char { return C.stw_model_label_at(pointer, C.size_t(index)) })
}

// Export writes config.json and model.safetensors, adapters added to the matrices they are for.
func (m *Model) Export(folder string) error { return m.ExportWatched(folder, nil) }

// ExportWatched is Export with a watch; nil: none.
func (m *Model) ExportWatched(folder string, watch *Watch) error {
	pointer, err := m.use("Model")
	if err != nil {
		return err
	}
	defer m.done()
	watching, err := watch.begin()
	if err != nil {
		return err
	}
	return watch.finish(withPath(folder, func(path *C.char, told *C.stw_error) C.stw_status {
		return C.stw_model_export_watched(pointer, path, watching, told)
	}))
}

// Presets are models that need no file.
func Presets() []string {
	return names(func(index int) *C.char { return C.stw_model_preset_at(C.size_t(index)) })
}

// names are all from index 0 on.
func names(at func(index int) *C.char) []string {
	var found []string
	for name := at(0); name != nil; name = at(len(found)) {
		found = append(found, C.GoString(name))
	}
	return found
}

// withPath calls with a path as C has it.
func withPath(path string, call func(path *C.char, told *C.stw_error) C.stw_status) error {
	if err := noZero(path); err != nil {
		return err
	}
	var given texts
	defer func() { given.free() }()
	told := newError()
	return check(call(given.of(path), &told), &told)
}
