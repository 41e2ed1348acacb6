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
	Source     string // a folder with config.json, a config.json, or the name of a preset such as "nano"
	ConfigJSON string // instead of Source: the text of a config.json
	// a .safetensors file or a folder; "": those of the source folder, else random values drawn from Seed
	Weights string
	Seed    *uint64 // nil: 1337
	Dropout *float32

	Adapter     string // a folder of adapters (LoRA) to continue
	AdapterRank int    // rank of new adapters; 0: no new adapters
	// new adapters: the matrices that get one, such as "q_proj,v_proj"; "": all matrices of blocks
	AdapterTargets        string
	AdapterAlpha          float32
	AdapterDropout        float32
	AdapterRankStabilised bool

	LabelCount int      // makes the model a classifier of texts; 0: as the config says
	LabelNames []string // LabelCount names; none: the names of the model, else LABEL_0, LABEL_1, …
	Task       Task     // TaskAutomatic: as the config says, or with labels TaskLabel
	NewHead    bool     // draws a new head for the labels, whatever labels the config has
}

// ModelInfo describes a model.
type ModelInfo struct {
	Layers, Width         int
	Parameters, Trainable uint64
	Vocabulary, Positions uint64
	HasWeights, HasCodes  bool
	Architecture          string
	AdapterRank           int
	Labels                int   // of a classifier; 0: not a classifier
	PaddingToken          int64 // -1: none
	Generates             bool  // continues texts; false: an encoder, which reads a text as a whole
	Task                  Task
	// weights were read from files, but at least a part of the head was drawn from the seed
	HeadIsNew bool
	// layers in the weights' files, which may be more than Layers; 0: there are no files
	FileLayers int
	// token types that the model distinguishes, such as those of a first and of a second text; 0: none
	TokenTypes int
}

// TensorInfo is a tensor of a model.
type TensorInfo struct {
	Name     string
	Shape    []int64
	Elements uint64
}

// Model describes a model. Weights are read when a trainer is created.
type Model struct {
	handle[*C.stw_model]
}

// OpenModel describes the model of a folder, a config.json, or a preset by its name.
func OpenModel(source string) (*Model, error) { return NewModel(ModelOptions{Source: source}) }

// NewModel describes a model. Errors: IOError, Corrupt, Unsupported (architecture), UnsupportedField,
// BadArgument.
func NewModel(options ModelOptions) (*Model, error) {
	if err := noZero(append([]string{options.Source, options.ConfigJSON, options.Weights, options.Adapter,
		options.AdapterTargets}, options.LabelNames...)...); err != nil {
		return nil, err
	}
	if len(options.LabelNames) > 0 && options.LabelCount != 0 &&
		options.LabelCount != len(options.LabelNames) {
		return nil, failure(BadArgument, "LabelCount %d: there are %d LabelNames", options.LabelCount,
			len(options.LabelNames))
	}
	var checked fits
	rank, labels := checked.unsigned("AdapterRank", options.AdapterRank),
		checked.unsigned("LabelCount", options.LabelCount)
	if checked.err != nil {
		return nil, checked.err
	}
	var given texts
	defer func() { given.free() }()
	cOptions := C.stw_model_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_model_options{})),
		source: given.orNull(options.Source), config_json: given.orNull(options.ConfigJSON),
		config_json_size: C.size_t(len(options.ConfigJSON)), weights: given.orNull(options.Weights),
		adapter: given.orNull(options.Adapter), adapter_targets: given.orNull(options.AdapterTargets),
		adapter_rank: rank, adapter_alpha: C.float(options.AdapterAlpha),
		adapter_dropout: C.float(options.AdapterDropout), label_count: C.size_t(labels),
		label_names: given.array(options.LabelNames), task: C.uint32_t(options.Task)}
	if options.NewHead {
		cOptions.new_head = 1
	}
	if options.Seed != nil {
		cOptions.set_mask |= C.STW_SET_MODEL_SEED
		cOptions.seed = C.uint64_t(*options.Seed)
	}
	if options.Dropout != nil {
		cOptions.set_mask |= C.STW_SET_DROPOUT
		cOptions.dropout = C.float(*options.Dropout)
	}
	if options.AdapterRankStabilised {
		cOptions.adapter_flags = C.STW_ADAPTER_RANK_STABILISED
	}
	if len(options.LabelNames) > 0 {
		cOptions.label_count = C.size_t(len(options.LabelNames))
	}
	var pointer *C.stw_model
	cErr := newError()
	if err := check(C.stw_model_create(&pointer, &cOptions, &cErr), &cErr); err != nil {
		return nil, err
	}
	model := &Model{handle[*C.stw_model]{pointer: pointer,
		end: func(p *C.stw_model) { C.stw_model_destroy(p) }}}
	runtime.SetFinalizer(model, func(m *Model) { m.Close() })
	return model, nil
}

// Close destroys the model; objects made from it can still be used.
func (m *Model) Close() error {
	if m != nil {
		m.close()
	}
	return nil
}

// Info describes the model; zero after Close.
func (m *Model) Info() ModelInfo {
	pointer, err := m.use("Model")
	if err != nil {
		return ModelInfo{}
	}
	defer m.done()
	info := sized[C.stw_model_info]()
	C.stw_model_query(pointer, &info)
	return ModelInfo{Layers: int(info.layers), Width: int(info.width), Parameters: uint64(info.parameters),
		Trainable: uint64(info.trainable), Vocabulary: uint64(info.vocabulary),
		Positions: uint64(info.positions), HasWeights: info.has_weights != 0, HasCodes: info.has_codes != 0,
		Architecture: array(info.architecture[:]), AdapterRank: int(info.adapter_rank),
		Labels: int(info.labels), PaddingToken: int64(info.padding_token), Generates: info.generates != 0,
		TokenTypes: int(info.token_types), Task: Task(info.task), HeadIsNew: info.head_is_new != 0,
		FileLayers: int(info.file_layers)}
}

// Tensors are all tensors, by index.
func (m *Model) Tensors() []TensorInfo {
	pointer, err := m.use("Model")
	if err != nil {
		return nil
	}
	defer m.done()
	found := make([]TensorInfo, int(C.stw_model_tensor_count(pointer)))
	for i := range found {
		info := sized[C.stw_tensor_info]()
		C.stw_model_tensor_at(pointer, C.size_t(i), &info)
		found[i] = TensorInfo{Name: C.GoString(info.name), Elements: uint64(info.elements)}
		for _, size := range info.shape[:int(info.ndim)] {
			found[i].Shape = append(found[i].Shape, int64(size))
		}
	}
	return found
}

// TensorIndex returns the index of the tensor with that name, or false if there is none.
func (m *Model) TensorIndex(name string) (int, bool) {
	pointer, err := m.use("Model")
	if err != nil || noZero(name) != nil {
		return 0, false
	}
	defer m.done()
	var given texts
	defer func() { given.free() }()
	var index C.size_t
	if C.stw_model_tensor_find(pointer, given.orNull(name), &index) != C.STW_OK {
		return 0, false
	}
	return int(index), true
}

// Labels are the labels of a classifier.
func (m *Model) Labels() []string {
	pointer, err := m.use("Model")
	if err != nil {
		return nil
	}
	defer m.done()
	return names(func(index int) *C.char { return C.stw_model_label_at(pointer, C.size_t(index)) })
}

// Config is the text of its config.json, with its task and labels.
func (m *Model) Config() string {
	pointer, err := m.use("Model")
	if err != nil {
		return ""
	}
	defer m.done()
	return C.GoString(C.stw_model_config(pointer))
}

// Export writes config.json and model.safetensors, with the adapters merged into their matrices.
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
	return watch.finish(withPath(folder, func(path *C.char, cErr *C.stw_error) C.stw_status {
		return C.stw_model_export_watched(pointer, path, watching, cErr)
	}))
}

// Presets are models that need no file.
func Presets() []string {
	return names(func(index int) *C.char { return C.stw_model_preset_at(C.size_t(index)) })
}

// names returns all names that an entry gives, from index 0 on.
func names(at func(index int) *C.char) []string {
	var found []string
	for name := at(0); name != nil; name = at(len(found)) {
		found = append(found, C.GoString(name))
	}
	return found
}

// withPath makes a call with a path as a C string.
func withPath(path string, call func(path *C.char, cErr *C.stw_error) C.stw_status) error {
	if err := noZero(path); err != nil {
		return err
	}
	var given texts
	defer func() { given.free() }()
	cErr := newError()
	return check(call(given.orNull(path), &cErr), &cErr)
}
