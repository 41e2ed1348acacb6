package stowage

/*
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// ParameterGroup has settings for all parameters that match a pattern: "embeddings", "blocks.0-1", "norms",
// …, or a tensor's name with * and ?. A setting that is nil changes nothing.
type ParameterGroup struct {
	Pattern      string
	Frozen       *bool
	LearningRate *float64 // factor of the run's learning rate
	WeightDecay  *float64
	StateBits    int // 32 or 8; 0: unchanged
}

// PlanOptions are stw_plan_options.
type PlanOptions struct {
	MemoryBytes        uint64 // largest peak, in bytes; 0: all memory of the device
	GlobalBatch        uint64 // samples of one optimizer step; required
	Sequence           uint64 // tokens of a sample; 0: the model's positions, at most 1024
	Device             string // "cpu", a profile's name such as "rtx4090", or DeviceInfo.Profile; "": "cpu"
	DeviceMemory       uint64 // bytes that are free on the device now; 0: unknown, see MemoryBytes
	ReserveBytes       *uint64
	Threads            int // CPU: threads that will compute; 0: one for each processor
	Precision          Precision
	Optimizer          Optimizer
	StateBits          int // 32 or 8; 0: the planner chooses
	MicroBatch         int // 0: the planner chooses
	Recompute          Recompute
	Mode               Mode
	Positions          bool   // batches may have positions: several documents in a sample
	Weights            bool   // batches may have weights of tokens
	HostBytes          uint64 // bytes of host memory for offloaded tensors; 0: nothing is offloaded
	Profile            string // a profile that Trainer.Calibrate returned
	Groups             []ParameterGroup
	Master             Master
	Kernels            Kernels
	Gradients          GradientPrecision
	FusedUpdate        bool
	Attention          Attention
	Quantize           Quantize
	QuantizeEmbeddings Quantize
	Preference         Preference // for pairs of documents; batches have positions even without Positions
	Keep               Keep       // settings that Relaxations must not change
	GradientHook       bool       // the trainer will have a gradient hook: all gradients are in the arena
	Texts              uint64     // for encoders that label texts: the most texts of a sample; 0: any number
	Watch              *Watch     // reports and cancels the planning; nil: none
}

// PlanInfo has the decisions of a plan and their figures. Bytes are those at the moment of the peak;
// Parameters to Padding add up to Arena.
type PlanInfo struct {
	Fits                                                    bool
	MicroBatch, AccumulationSteps, LastMicroBatch           uint64
	LossChunks, GlobalBatch, Sequence                       uint64
	Parameters, Gradients, Optimizer                        uint64
	SavedActivations, Transient, Workspace, Inputs, Padding uint64
	Arena, Reserve, Peak, Budget, Host, MinimumBytes        uint64
	StateBits                                               int
	Precision                                               Precision
	StepSeconds, TokensPerSecond, RecomputeFraction         float64 // predicted
	Fingerprint                                             string
	Proven                                                  bool
	BoundSeconds, UnlimitedSeconds, NextGiBSeconds          float64
	CopiedBytes, TiledBlocks, TileRows, Texts               uint64
}

// Buffer is a buffer of a plan.
type Buffer struct {
	Name, Owner   string
	Offset, Bytes uint64 // place in the arena
	Persistent    bool   // it is always alive
	First, Last   int    // instructions of the micro-step's program
}

// Relaxation is a change of settings with which a plan would fit.
type Relaxation struct {
	Change          string
	SavesBytes      uint64
	CostsFraction   float64 // change in the time of a token; negative: faster
	ChangesNumerics bool
	Fits            bool   // this change is enough
	Flags           string // the change as flags of the command
	Effect          string // what is different in the result; empty: nothing
	TokensPerSecond float64
	Peak            uint64 // if Fits is false: the smallest budget that works
	Host            uint64 // bytes of host memory that the plan takes
	LeastHost       uint64 // the least host memory with which a plan fits; 0: the change needs none
}

// Offload describes tensors that a plan keeps in host memory.
type Offload struct {
	Tensors       string
	Blocks        int // number of blocks, from the first one on
	OutsideBlocks bool
	Bytes         uint64
}

// FrontierPoint is a plan that another budget would get.
type FrontierPoint struct {
	Peak, MicroBatch, LossChunks uint64
	StepSeconds, TokensPerSecond float64
	IsKnee                       bool
}

// Profile has the figures that the cost model has for a device, whether present or not.
type Profile struct {
	Name, Title, Source             string
	IsCUDA                          bool
	Memory, Reserve                 uint64 // bytes; 0: those of the machine
	GFLOPSFP32, GFLOPSBF16          uint64 // peak; CPU: of one thread
	GBytesPerSecond                 uint64
	HostGBytesPerSecond             uint64
	ProductPermille, StreamPermille int // shares of the peaks that are reached
	LaunchNanoseconds               uint64
	Watts, GFLOPSPerWatt            uint64 // GPUs: power of the board, and of 16-bit products; 0: unknown
	// GPUs: shares of the speed of libraries that the kernels tensor and wgmma reach, shares of the peak that
	// attention reaches with heads of up to 64 numbers and with larger ones, and of the fp32 peak
	MmaPermille, WgmmaPermille, AttentionPermille, WideAttentionPermille, FP32Permille int
	// Calibrated profiles: the conditions and results of the measurement.
	Threads         int
	Precision       Precision
	Kernels         Kernels
	StepNanoseconds uint64
	Ops             []ProfileOp
}

// ProfileOp is a kind of op of a calibrated profile.
type ProfileOp struct {
	Name              string
	Permille          int // share of the peak that limits the op; above 1000 if data is in caches
	LaunchNanoseconds uint64
	Nanoseconds       uint64 // measured time of all ops of this kind in the timed step
}

// Plan is a plan, which can be trained, printed or kept as JSON.
type Plan struct {
	handle[*C.stw_plan]
}

// For returns the same options for a device: its profile, its number of threads, and on a GPU its free
// memory, if the options leave them unset.
func (o PlanOptions) For(device *Device) PlanOptions {
	info := device.Info()
	if o.Device == "" && o.Profile == "" {
		o.Device = info.Profile
	}
	if o.Threads == 0 && info.Backend == CPU {
		o.Threads = info.Threads
	}
	if o.DeviceMemory == 0 && info.Backend == CUDA {
		o.DeviceMemory = info.MemoryFree + info.MemoryReserved
	}
	return o
}

// with makes a call with the options as a C struct.
func (o *PlanOptions) with(call func(*C.stw_plan_options, *C.stw_error) C.stw_status) error {
	all := []string{o.Device, o.Profile}
	for _, group := range o.Groups {
		all = append(all, group.Pattern)
	}
	if err := noZero(all...); err != nil {
		return err
	}
	var checked fits
	threads, bits, micro := checked.unsigned("Threads", o.Threads),
		checked.unsigned("StateBits", o.StateBits), checked.unsigned("MicroBatch", o.MicroBatch)
	for i := range o.Groups {
		checked.unsigned("StateBits of a group", o.Groups[i].StateBits)
	}
	if checked.err != nil {
		return checked.err
	}
	var given texts
	defer func() { given.free() }()
	cOptions := C.stw_plan_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_plan_options{})),
		memory_bytes: C.uint64_t(o.MemoryBytes), global_batch: C.uint64_t(o.GlobalBatch),
		sequence: C.uint64_t(o.Sequence), device: given.orNull(o.Device),
		device_memory: C.uint64_t(o.DeviceMemory), threads: threads, precision: C.uint32_t(o.Precision),
		optimizer: C.uint32_t(o.Optimizer), state_bits: bits, micro_batch: micro,
		recompute: C.uint32_t(o.Recompute), mode: C.uint32_t(o.Mode), host_bytes: C.uint64_t(o.HostBytes),
		profile: given.orNull(o.Profile), profile_size: C.size_t(len(o.Profile)),
		group_count: C.size_t(len(o.Groups)), master: C.uint32_t(o.Master), kernels: C.uint32_t(o.Kernels),
		gradients: C.uint32_t(o.Gradients), fused_update: number(o.FusedUpdate),
		attention: C.uint32_t(o.Attention), quantize: C.uint32_t(o.Quantize),
		quantize_embeddings: C.uint32_t(o.QuantizeEmbeddings), preference: C.uint32_t(o.Preference),
		keep: C.uint32_t(o.Keep), gradient_hook: number(o.GradientHook), texts: C.uint64_t(o.Texts)}
	if o.ReserveBytes != nil {
		cOptions.set_mask, cOptions.reserve_bytes = C.STW_SET_RESERVE, C.uint64_t(*o.ReserveBytes)
	}
	cOptions.inputs = number(o.Positions)*C.STW_INPUT_POSITIONS | number(o.Weights)*C.STW_INPUT_WEIGHTS
	if len(o.Groups) > 0 {
		memory := C.calloc(C.size_t(len(o.Groups)), C.size_t(unsafe.Sizeof(C.stw_parameter_group{})))
		given = append(given, memory)
		cOptions.groups = (*C.stw_parameter_group)(memory)
		groups := unsafe.Slice(cOptions.groups, len(o.Groups))
		for i := range groups {
			groups[i] = o.Groups[i].native(&given)
		}
	}
	watch, err := o.Watch.begin()
	if err != nil {
		return err
	}
	cOptions.watch = watch
	cErr := newError()
	return o.Watch.finish(check(call(&cOptions, &cErr), &cErr))
}

func (g *ParameterGroup) native(given *texts) C.stw_parameter_group {
	group := C.stw_parameter_group{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_parameter_group{})),
		pattern: given.orNull(g.Pattern)}
	if g.Frozen != nil {
		group.set_mask |= C.STW_SET_GROUP_FROZEN
		group.frozen = number(*g.Frozen)
	}
	if g.LearningRate != nil {
		group.set_mask |= C.STW_SET_GROUP_RATE
		group.learning_rate = C.double(*g.LearningRate)
	}
	if g.WeightDecay != nil {
		group.set_mask |= C.STW_SET_GROUP_DECAY
		group.weight_decay = C.double(*g.WeightDecay)
	}
	if g.StateBits != 0 {
		group.set_mask |= C.STW_SET_GROUP_STATES
		group.state_bits = C.uint32_t(g.StateBits)
	}
	return group
}

func planAround(pointer *C.stw_plan) *Plan {
	if pointer == nil {
		return nil
	}
	plan := &Plan{handle[*C.stw_plan]{pointer: pointer, end: func(p *C.stw_plan) { C.stw_plan_destroy(p) }}}
	runtime.SetFinalizer(plan, func(p *Plan) { p.Close() })
	return plan
}

// NewPlan chooses the fastest way to train that fits. If nothing fits, it returns the error OverBudget and
// also a plan. That plan cannot be trained, but it has a Report, the smallest budget, and the settings that
// would help.
func NewPlan(model *Model, options PlanOptions) (*Plan, error) {
	cModel, err := model.use("Model")
	if err != nil {
		return nil, err
	}
	defer model.done()
	var pointer *C.stw_plan
	err = options.with(func(cOptions *C.stw_plan_options, cErr *C.stw_error) C.stw_status {
		return C.stw_plan_create(&pointer, cModel, cOptions, cErr)
	})
	return planAround(pointer), err
}

// LoadPlan reads text that Plan.JSON returned. Its error is Corrupt if the text was edited, BadState if
// it belongs to another model, Unsupported if it has another version.
func LoadPlan(model *Model, json string) (*Plan, error) {
	cModel, err := model.use("Model")
	if err != nil {
		return nil, err
	}
	defer model.done()
	var given texts
	defer func() { given.free() }()
	if err := noZero(json); err != nil {
		return nil, err
	}
	var pointer *C.stw_plan
	cErr := newError()
	err = check(C.stw_plan_load(&pointer, cModel, given.always(json), C.size_t(len(json)), &cErr), &cErr)
	return planAround(pointer), err
}

// LongestSequence returns the longest sequence, in tokens, that fits with these options.
func LongestSequence(model *Model, options PlanOptions) (uint64, error) {
	cModel, err := model.use("Model")
	if err != nil {
		return 0, err
	}
	defer model.done()
	var longest C.uint64_t
	err = options.with(func(cOptions *C.stw_plan_options, cErr *C.stw_error) C.stw_status {
		return C.stw_plan_longest_sequence(cModel, cOptions, &longest, cErr)
	})
	return uint64(longest), err
}

// Close destroys the plan; trainers of it can still be used.
func (p *Plan) Close() error {
	if p != nil {
		p.close()
	}
	return nil
}

// Info describes the plan; zero after Close.
func (p *Plan) Info() PlanInfo {
	pointer, err := p.use("Plan")
	if err != nil {
		return PlanInfo{}
	}
	defer p.done()
	t := sized[C.stw_plan_info]()
	C.stw_plan_query(pointer, &t)
	return PlanInfo{Fits: t.fits != 0, MicroBatch: uint64(t.micro_batch),
		AccumulationSteps: uint64(t.accumulation_steps), LastMicroBatch: uint64(t.last_micro_batch),
		LossChunks: uint64(t.loss_chunks), GlobalBatch: uint64(t.global_batch), Sequence: uint64(t.sequence),
		Parameters: uint64(t.parameters), Gradients: uint64(t.gradients), Optimizer: uint64(t.optimizer),
		SavedActivations: uint64(t.saved_activations), Transient: uint64(t.transient),
		Workspace: uint64(t.workspace), Inputs: uint64(t.inputs), Padding: uint64(t.padding),
		Arena: uint64(t.arena), Reserve: uint64(t.reserve), Peak: uint64(t.peak), Budget: uint64(t.budget),
		Host: uint64(t.host), MinimumBytes: uint64(t.minimum_bytes), StateBits: int(t.state_bits),
		Precision: Precision(t.precision), StepSeconds: float64(t.step_seconds),
		TokensPerSecond: float64(t.tokens_per_second), RecomputeFraction: float64(t.recompute_fraction),
		Fingerprint: array(t.fingerprint[:]), Proven: t.proven != 0, BoundSeconds: float64(t.bound_seconds),
		UnlimitedSeconds: float64(t.unlimited_seconds), NextGiBSeconds: float64(t.next_gib_seconds),
		CopiedBytes: uint64(t.copied_bytes), TiledBlocks: uint64(t.tiled_blocks),
		TileRows: uint64(t.tile_rows), Texts: uint64(t.texts)}
}

func (p *Plan) text(read func(*C.stw_plan) *C.char) string {
	pointer, err := p.use("Plan")
	if err != nil {
		return ""
	}
	defer p.done()
	return C.GoString(read(pointer))
}

// JSON returns the plan as text, which LoadPlan reads.
func (p *Plan) JSON() string {
	return p.text(func(pointer *C.stw_plan) *C.char { return C.stw_plan_json(pointer) })
}

// Report returns the plan as a table for people.
func (p *Plan) Report() string {
	return p.text(func(pointer *C.stw_plan) *C.char { return C.stw_plan_report(pointer) })
}

// Verify checks every program of the plan with an independent verifier.
func (p *Plan) Verify() error {
	pointer, err := p.use("Plan")
	if err != nil {
		return err
	}
	defer p.done()
	cErr := newError()
	return check(C.stw_plan_verify(pointer, &cErr), &cErr)
}

// Relaxations are the settings that would help, if the plan does not fit. Those that are closest to the
// request come first.
func (p *Plan) Relaxations() []Relaxation {
	pointer, err := p.use("Plan")
	if err != nil {
		return nil
	}
	defer p.done()
	return every(func(index C.size_t, out *C.stw_relaxation_info) C.stw_status {
		return C.stw_plan_relaxation_at(pointer, index, out)
	},
		func(relaxation *C.stw_relaxation_info) Relaxation {
			return Relaxation{Change: array(relaxation.change[:]), SavesBytes: uint64(relaxation.saves_bytes),
				CostsFraction:   float64(relaxation.costs_fraction),
				ChangesNumerics: relaxation.changes_numerics != 0, Fits: relaxation.fits != 0,
				Flags: array(relaxation.flags[:]), Effect: array(relaxation.effect[:]),
				TokensPerSecond: float64(relaxation.tokens_per_second), Peak: uint64(relaxation.peak),
				Host: uint64(relaxation.host), LeastHost: uint64(relaxation.least_host)}
		})
}

// Offloads are the tensors that the plan keeps in host memory.
func (p *Plan) Offloads() []Offload {
	pointer, err := p.use("Plan")
	if err != nil {
		return nil
	}
	defer p.done()
	return every(func(index C.size_t, out *C.stw_offload_info) C.stw_status {
		return C.stw_plan_offload_at(pointer, index, out)
	},
		func(offload *C.stw_offload_info) Offload {
			return Offload{Tensors: C.GoString(offload.tensors), Blocks: int(offload.blocks),
				OutsideBlocks: offload.outside_blocks != 0, Bytes: uint64(offload.bytes)}
		})
}

// Frontier returns the plans that other budgets would get (the Pareto frontier of memory and speed), by
// growing peak.
func (p *Plan) Frontier() ([]FrontierPoint, error) { return p.FrontierWatched(nil) }

// FrontierWatched is Frontier with a watch; nil: none.
func (p *Plan) FrontierWatched(watch *Watch) ([]FrontierPoint, error) {
	pointer, err := p.use("Plan")
	if err != nil {
		return nil, err
	}
	defer p.done()
	// If there are more points than fit, the library leaves some out. It gives at most 1000.
	for capacity := 1024; ; capacity *= 2 {
		points := make([]C.stw_frontier_point, capacity)
		points[0].struct_size = C.uint32_t(unsafe.Sizeof(points[0]))
		var count C.size_t
		watching, err := watch.begin()
		if err != nil {
			return nil, err
		}
		cErr := newError()
		if err := watch.finish(check(C.stw_plan_frontier_watched(pointer, &points[0], C.size_t(capacity),
			&count, watching, &cErr), &cErr)); err != nil {
			return nil, err
		}
		if int(count) == capacity {
			continue
		}
		found := make([]FrontierPoint, int(count))
		for i := range found {
			t := &points[i]
			found[i] = FrontierPoint{Peak: uint64(t.peak), MicroBatch: uint64(t.micro_batch),
				LossChunks: uint64(t.loss_chunks), StepSeconds: float64(t.step_seconds),
				TokensPerSecond: float64(t.tokens_per_second), IsKnee: t.is_knee != 0}
		}
		return found, nil
	}
}

// Picture returns the arena as a picture, or its buffers as a table.
func (p *Plan) Picture(kind Picture) (string, error) { return p.PictureWatched(kind, nil) }

// PictureWatched is Picture with a watch; nil: none.
func (p *Plan) PictureWatched(kind Picture, watch *Watch) (string, error) {
	pointer, err := p.use("Plan")
	if err != nil {
		return "", err
	}
	defer p.done()
	picture := func(to *C.char, capacity C.size_t, size *C.size_t) error {
		watching, err := watch.begin()
		if err != nil {
			return err
		}
		cErr := newError()
		return watch.finish(check(C.stw_plan_picture_watched(pointer, C.uint32_t(kind), to, capacity, size,
			watching, &cErr), &cErr))
	}
	var size C.size_t
	if err := picture(nil, 0, &size); err != nil {
		return "", err
	}
	text := make([]byte, int(size))
	if err := picture((*C.char)(unsafe.Pointer(&text[0])), size, nil); err != nil {
		return "", err
	}
	return string(text[:len(text)-1]), nil
}

// Buffers are all buffers of a micro-step.
func (p *Plan) Buffers() []Buffer {
	pointer, err := p.use("Plan")
	if err != nil {
		return nil
	}
	defer p.done()
	found := make([]Buffer, int(C.stw_plan_buffer_count(pointer)))
	for i := range found {
		info := sized[C.stw_buffer_info]()
		C.stw_plan_buffer_at(pointer, C.size_t(i), &info)
		found[i] = Buffer{Name: C.GoString(info.name), Owner: C.GoString(info.owner),
			Offset: uint64(info.offset), Bytes: uint64(info.bytes), Persistent: info.persistent != 0,
			First: int(info.first), Last: int(info.last)}
	}
	return found
}

// ReadProfile reads a profile that Trainer.Calibrate returned. Its error is Corrupt and names the wrong
// figure, op, device or version.
func ReadProfile(profile string) (Profile, error) {
	if err := noZero(profile); err != nil {
		return Profile{}, err
	}
	var given texts
	defer func() { given.free() }()
	text, size := given.always(profile), C.size_t(len(profile))
	figures, cErr := sized[C.stw_profile_info](), newError()
	if err := check(C.stw_profile_read(text, size, &figures, &cErr), &cErr); err != nil {
		return Profile{}, err
	}
	found := profileOf(&figures)
	found.Ops = every(func(index C.size_t, out *C.stw_profile_op_info) C.stw_status {
		return C.stw_profile_op_at(text, size, index, out)
	},
		func(op *C.stw_profile_op_info) ProfileOp {
			return ProfileOp{Name: C.GoString(op.name), Permille: int(op.permille),
				LaunchNanoseconds: uint64(op.launch_nanoseconds), Nanoseconds: uint64(op.nanoseconds)}
		})
	return found, nil
}

func profileOf(t *C.stw_profile_info) Profile {
	return Profile{Name: C.GoString(t.name), Title: C.GoString(t.title), Source: C.GoString(t.source),
		IsCUDA: t.is_cuda != 0, Memory: uint64(t.memory), Reserve: uint64(t.reserve),
		GFLOPSFP32: uint64(t.gflops_fp32), GFLOPSBF16: uint64(t.gflops_bf16),
		GBytesPerSecond: uint64(t.gbytes_per_second), HostGBytesPerSecond: uint64(t.host_gbytes_per_second),
		ProductPermille: int(t.product_permille), StreamPermille: int(t.stream_permille),
		LaunchNanoseconds: uint64(t.launch_nanoseconds), Watts: uint64(t.watts),
		GFLOPSPerWatt: uint64(t.gflops_per_watt), MmaPermille: int(t.mma_permille),
		WgmmaPermille: int(t.wgmma_permille), AttentionPermille: int(t.attention_permille),
		WideAttentionPermille: int(t.wide_attention_permille), FP32Permille: int(t.fp32_permille),
		Threads:   int(t.threads),
		Precision: Precision(t.precision), Kernels: Kernels(t.kernels),
		StepNanoseconds: uint64(t.step_nanoseconds)}
}

// Profiles are the devices that can be planned for.
func Profiles() []Profile {
	return every(func(index C.size_t, out *C.stw_profile_info) C.stw_status {
		return C.stw_profile_at(index, out)
	}, profileOf)
}
