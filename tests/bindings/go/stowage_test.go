// Package stowage_test tests bindings/go with the library. tests/bindings/go_test.py runs it.
package stowage_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	. "stowage"
)

const gpt2 = `{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 64, ` +
	`"n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2,
 "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}`

// A classifier with three labels and two token types.
const bert = `{"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 64, ` +
	`"max_position_embeddings": 16, "hidden_size": 32,
 "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, ` +
	`"id2label": {"0": "a", "1": "b", "2": "c"}}`

func tokens() []int32 {
	tokens, seed := make([]int32, 64), uint32(1)
	for i := range tokens {
		seed = seed*1664525 + 1013904223
		tokens[i] = int32(seed >> 26)
	}
	return tokens
}

func batch() Batch { return Batch{Samples: 4, Tokens: tokens(), Labels: tokens()} }

func small() PlanOptions {
	return PlanOptions{GlobalBatch: 4, Sequence: 16, MemoryBytes: 64 << 20, StateBits: 32, Threads: 2}
}

type world struct {
	*testing.T
	device  *Device
	model   *Model
	trainer *Trainer
}

func must[V any](t *testing.T) func(V, error) V {
	return func(value V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func expect(t *testing.T, err error, status Status) {
	t.Helper()
	if !errors.Is(err, status) {
		t.Fatalf("expected %v, found %v", status, err)
	}
}

func equal(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("expected %v, found %v", expected, found)
	}
}

func worldOf(t *testing.T, model ModelOptions, plan PlanOptions, trainer TrainerOptions) *world {
	t.Helper()
	w := &world{T: t}
	w.device = must[*Device](t)(OpenDevice(DeviceOptions{Backend: CPU, Threads: 2}))
	w.model = must[*Model](t)(NewModel(model))
	chosen := must[*Plan](t)(NewPlan(w.model, plan))
	w.trainer = must[*Trainer](t)(NewTrainer(w.device, w.model, chosen, trainer))
	equal(t, chosen.Close(), nil)
	t.Cleanup(func() { w.trainer.Close(); w.model.Close(); w.device.Close() })
	return w
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOf(t, ModelOptions{ConfigJSON: gpt2}, small(), TrainerOptions{})
}

func (w *world) steps(count int) (last StepResult) {
	w.Helper()
	for i := 0; i < count; i++ {
		last = must[StepResult](w.T)(w.trainer.Step(batch(), 1e-3))
	}
	return last
}

func (w *world) weights() (all [][]float32) {
	w.Helper()
	for i := range w.model.Tensors() {
		all = append(all, must[*Tensor](w.T)(w.trainer.Tensor(i, Parameter)).Values)
	}
	return all
}

func data(t *testing.T) *Dataset {
	var bytes []byte
	for i := uint32(0); i < 4000; i++ {
		bytes = binary.LittleEndian.AppendUint16(bytes, uint16(i*i/7%64))
	}
	path := filepath.Join(t.TempDir(), "data.bin")
	equal(t, os.WriteFile(path, bytes, 0o600), nil)
	opened := must[*Dataset](t)(OpenDataset(path, DatasetOptions{Vocabulary: 64, Sequence: 16}))
	t.Cleanup(func() { opened.Close() })
	return opened
}

func TestNamesItsVersion(t *testing.T) {
	major, minor, patch := Version()
	equal(t, [3]int{major, minor, patch}, [3]int{0, 1, 0})
	if !strings.Contains(BuildInfo(), "stowage 0.1.0") {
		t.Fatal(BuildInfo())
	}
	equal(t, must[[]DeviceInfo](t)(Devices())[0].Backend, CPU)
	var found bool
	for _, profile := range Profiles() {
		found = found || profile.Name == "rtx4090" && profile.IsCUDA && profile.Memory > 23<<30
	}
	equal(t, found, true)
	equal(t, strings.Contains(strings.Join(Presets(), " "), "nano"), true)
}

func TestFailuresAreErrors(t *testing.T) {
	_, err := OpenModel("no/such/model")
	expect(t, err, IOError)
	if !strings.HasPrefix(err.Error(), "STW_IO_ERROR: ") ||
		!strings.Contains(err.Error(), "no such file or folder") {
		t.Fatal(err)
	}
	_, err = OpenModel("na\x00no")
	expect(t, err, BadArgument)
	_, err = NewModel(ModelOptions{Source: "nano", Dropout: Of(float32(7))})
	expect(t, err, BadArgument)
	_, err = NewModel(ModelOptions{ConfigJSON: gpt2, LabelCount: 3, LabelNames: []string{"a", "b"}})
	expect(t, err, BadArgument)
}

func TestModelsListTheirTensors(t *testing.T) {
	model := must[*Model](t)(NewModel(ModelOptions{ConfigJSON: gpt2, LabelNames: []string{"no", "yes"}}))
	equal(t, model.Labels(), []string{"no", "yes"})
	equal(t, strings.Contains(model.Config(), `"1": "yes"`), true)
	equal(t, []any{model.Info().Layers, model.Info().Architecture, model.Info().Labels,
		model.Info().Generates, model.Info().TokenTypes}, []any{2, "gpt2", 2, true, 0})
	equal(t, model.Tensors()[0].Shape, []int64{64, 32})
	index, ok := model.TensorIndex(model.Tensors()[1].Name)
	equal(t, []any{index, ok}, []any{1, true})
	_, ok = model.TensorIndex("no such tensor")
	equal(t, ok, false)
	equal(t, model.Close(), nil)
	equal(t, model.Close(), nil)
	equal(t, model.Info(), ModelInfo{})
	_, err := NewPlan(model, small())
	expect(t, err, BadState)
}

func TestOverBudgetIsAnAnswer(t *testing.T) {
	model := must[*Model](t)(OpenModel("nano"))
	options := PlanOptions{GlobalBatch: 4, Sequence: 64, MemoryBytes: 1 << 20}
	plan, err := NewPlan(model, options)
	expect(t, err, OverBudget)
	var failure *Error
	equal(t, errors.As(err, &failure), true)
	equal(t, []any{plan.Info().Fits, plan.Info().MinimumBytes, failure.Status.Category()},
		[]any{false, failure.BytesNeeded, OutOfMemory})
	equal(t, strings.Contains(plan.Report(), "does not fit"), true)
	equal(t, len(plan.Relaxations()) > 0 && plan.Relaxations()[0].Change != "", true)
	options.MemoryBytes = failure.BytesNeeded
	equal(t, must[*Plan](t)(NewPlan(model, options)).Info().Peak, failure.BytesNeeded)
}

func TestPlansHaveAllFields(t *testing.T) {
	model := must[*Model](t)(NewModel(ModelOptions{ConfigJSON: gpt2}))
	options := small()
	all := must[*Plan](t)(NewPlan(model, options))
	options.Groups = []ParameterGroup{{Pattern: "blocks.0", LearningRate: Of(0.5)},
		{Pattern: "embeddings", Frozen: Of(true)}}
	plan := must[*Plan](t)(NewPlan(model, options))
	equal(t, plan.Info().Gradients < all.Info().Gradients, true)
	equal(t, plan.Verify(), nil)
	equal(t, must[*Plan](t)(LoadPlan(model, plan.JSON())).Info(), plan.Info())
	_, err := LoadPlan(model, strings.Replace(plan.JSON(), "64", "65", 1))
	expect(t, err, Corrupt)
	equal(t, strings.HasSuffix(must[string](t)(plan.Picture(SVG)), "</svg>\n"), true)
	var persistent, passing bool
	for _, buffer := range plan.Buffers() {
		persistent, passing = persistent || buffer.Persistent, passing || !buffer.Persistent
		equal(t, buffer.Offset+buffer.Bytes <= plan.Info().Arena, true)
	}
	equal(t, persistent && passing, true)
	points := must[[]FrontierPoint](t)(plan.Frontier())
	for i := 1; i < len(points); i++ {
		equal(t, points[i-1].Peak < points[i].Peak && points[i-1].StepSeconds > points[i].StepSeconds, true)
	}
	equal(t, must[uint64](t)(LongestSequence(model, small())), uint64(16))
	_, err = NewPlan(model,
		PlanOptions{GlobalBatch: 4, Groups: []ParameterGroup{{Pattern: "no such", Frozen: Of(true)}}})
	expect(t, err, BadArgument)
	for _, wrong := range []PlanOptions{{GlobalBatch: 4, Threads: -1},
		{GlobalBatch: 4, Groups: []ParameterGroup{{Pattern: "blocks", StateBits: 1<<32 + 8}}}} {
		_, err = NewPlan(model, wrong)
		expect(t, err, BadArgument)
	}
	_, err = LoadPlan(model, "")
	expect(t, err, Corrupt)
	one := must[*Device](t)(OpenDevice(DeviceOptions{Backend: CPU, Threads: 1}))
	options = small()
	options.Threads = 1
	expected := must[*Plan](t)(NewPlan(model, options)).Info().Arena
	options.Threads = 0
	equal(t, must[*Plan](t)(NewPlan(model, options.For(one))).Info().Arena, expected)
}

func TestPack(t *testing.T) {
	lifetimes := []Lifetime{{0, 2, 10}, {1, 3, 5}, {2, 4, 10}}
	found := must[Packed](t)(Pack(lifetimes, 0, 0))
	equal(t, []any{found.Answer, found.Height, len(found.Offsets)}, []any{PackOptimal, uint64(15), 3})
	found, err := Pack(lifetimes, 14, 0)
	expect(t, err, OverBudget)
	equal(t, []any{found.Answer, found.Offsets == nil}, []any{PackImpossible, true})
	at := uint64(0)
	found = must[Packed](t)(PackConstrained([]Lifetime{{0, 10, 8}, {0, 10, 5}, {4, 6, 8}},
		[]Constraint{{Alignment: 64, Gaps: []Gap{{4, 6, 0, 0}}}, {Alignment: 64}, {Offset: &at}}, 0, 0))
	equal(t, found.Offsets, []uint64{0, 64, 0})
	_, err = Pack([]Lifetime{{2, 1, 3}}, 0, 0)
	expect(t, err, BadArgument)
	equal(t, must[Packed](t)(Pack(nil, 0, 0)).Height, uint64(0))
}

func TestEveryBudgetTrainsTheSameBits(t *testing.T) {
	all := newWorld(t)
	options := small()
	options.MemoryBytes = must[[]FrontierPoint](t)(must[*Plan](t)(NewPlan(all.model,
		options)).Frontier())[0].Peak
	least := worldOf(t, ModelOptions{ConfigJSON: gpt2}, options, TrainerOptions{})
	first := all.steps(1)
	equal(t, math.Abs(first.Loss-math.Log(64)) < 0.5, true)
	equal(t, first.Targets, uint64(60))
	equal(t, all.steps(9).Loss < first.Loss, true)
	least.steps(10)
	equal(t, all.weights(), least.weights())
	plan := must[*Plan](t)(all.trainer.Replan(options.MemoryBytes))
	equal(t, plan.Info().Peak, options.MemoryBytes)
	all.steps(2)
	least.steps(2)
	equal(t, all.weights(), least.weights())
	_, err := all.trainer.Replan(1)
	expect(t, err, OverBudget)
}

func TestBatches(t *testing.T) {
	one, other := newWorld(t), newWorld(t)
	one.steps(1)
	given := batch()
	targets := append(given.Tokens[1:len(given.Tokens):len(given.Tokens)], 0)
	for i := 15; i < len(targets); i += 16 {
		targets[i] = -100
	}
	given.Labels, given.Targets, given.Lengths = nil, targets, []int32{16, 16, 16, 16}
	must[StepResult](t)(other.trainer.Step(given, 1e-3))
	equal(t, one.weights(), other.weights())
	given.Weights = make([]float32, 64)
	_, err := other.trainer.Step(given, 1e-3)
	expect(t, err, Unsupported)
	_, err = other.trainer.Step(Batch{Samples: 4, Tokens: tokens()[1:]}, 1e-3)
	expect(t, err, BadArgument)
	_, err = other.trainer.Step(Batch{Samples: 4, Tokens: tokens(), Labels: tokens()[1:]}, 1e-3)
	expect(t, err, BadArgument)
	wrong := batch()
	wrong.Tokens[5] = 99
	_, err = other.trainer.Step(wrong, 1e-3)
	expect(t, err, BadArgument)
}

func TestPrefersTheChosenAnswers(t *testing.T) {
	options := small()
	options.Preference = DPO
	world := worldOf(t, ModelOptions{ConfigJSON: gpt2}, options, TrainerOptions{Beta: 0.5})
	pairs := Batch{Samples: 4, Tokens: tokens(), Targets: make([]int32, 64), Positions: make([]int32, 64)}
	for i := range pairs.Tokens { // two documents of 8 tokens in each sample
		pairs.Positions[i], pairs.Targets[i] = int32(i%8), -100
		if i%8 != 0 && i%8 != 7 {
			pairs.Targets[i] = pairs.Tokens[i+1]
		}
	}
	reference := must[[]float32](t)(world.trainer.LogProbabilities(pairs))
	equal(t, len(reference), 64)
	for i, value := range reference {
		equal(t, value < 0, pairs.Targets[i] >= 0)
	}
	one := Batch{Samples: 1, Tokens: pairs.Tokens[:16], Targets: pairs.Targets[:16],
		Positions: pairs.Positions[:16]}
	equal(t, must[[]float32](t)(world.trainer.LogProbabilities(one)), reference[:16])
	_, err := world.trainer.Step(pairs, 1e-2)
	expect(t, err, BadArgument) // the reference is missing
	pairs.Reference = reference
	_, err = world.trainer.LogProbabilities(pairs)
	expect(t, err, Unsupported)
	first := must[StepResult](t)(world.trainer.Step(pairs, 1e-2))
	equal(t, math.Abs(first.Loss-math.Ln2) < 1e-5, true)
	equal(t, []any{first.Accuracy, first.Targets}, []any{0.0, uint64(4)})
	var last StepResult
	for i := 0; i < 20; i++ {
		last = must[StepResult](t)(world.trainer.Step(pairs, 1e-2))
	}
	equal(t, last.Loss < 0.6, true)
	equal(t, []float64{last.Accuracy, world.trainer.Progress().Accuracy}, []float64{1, 1})
	pairs.Reference = reference[1:]
	_, err = world.trainer.Step(pairs, 1e-2)
	expect(t, err, BadArgument)
	_, err = NewTrainer(world.device, world.model, must[*Plan](t)(NewPlan(world.model, options)),
		TrainerOptions{Margin: Of(float32(0))})
	expect(t, err, BadArgument)
	options.Preference = SimPO
	worldOf(t, ModelOptions{ConfigJSON: gpt2}, options, TrainerOptions{Margin: Of(float32(0)),
		AnswerShare: 1})
}

func TestWritesReferences(t *testing.T) {
	var tokens, marks []byte
	for i := uint32(0); i < 640; i++ {
		tokens = binary.LittleEndian.AppendUint16(tokens, uint16(i*i/7%61))
		// documents, alternately chosen and rejected
		marks = append(marks, []byte{2, 0, 0, 0, 0, 1, 1, 1}[i%8])
	}
	folder := t.TempDir()
	path, marked, reference := filepath.Join(folder, "tokens.bin"), filepath.Join(folder, "marks"),
		filepath.Join(folder, "reference")
	equal(t, []error{os.WriteFile(path, tokens, 0o600), os.WriteFile(marked, marks, 0o600)},
		[]error{nil, nil})
	planOptions := small()
	planOptions.Preference = DPO
	world := worldOf(t, ModelOptions{ConfigJSON: gpt2}, planOptions, TrainerOptions{})
	options := DatasetOptions{Vocabulary: 64, Sequence: 16, Marks: marked, Pairs: true}
	bare := must[*Dataset](t)(OpenDataset(path, options))
	expect(t, world.trainer.Run(context.Background(), bare, RunOptions{Until: 1}), BadState)
	equal(t, world.trainer.WriteReference(bare, reference), nil)
	written := must[[]byte](t)(os.ReadFile(reference))
	equal(t, len(written), 640*4+32)
	for i := 0; i < 640; i++ {
		equal(t, math.Float32frombits(binary.LittleEndian.Uint32(written[4*i:])) < 0, i%8 > 4)
	}
	options.Reference = reference
	data := must[*Dataset](t)(OpenDataset(path, options))
	equal(t, math.Abs(must[float64](t)(world.trainer.Evaluate(data, 100))-math.Ln2) < 1e-5, true)
	equal(t, world.trainer.Run(context.Background(), data, RunOptions{Until: 3}), nil)
	equal(t, []error{bare.Close(), data.Close()}, []error{nil, nil})
	expect(t, world.trainer.WriteReference(bare, reference), BadState)
	options.Reference = "a\x00b"
	_, err := OpenDataset(path, options)
	expect(t, err, BadArgument)
}

func TestRunsOverDatasets(t *testing.T) {
	world, data := newWorld(t), data(t)
	equal(t, data.Info().TrainingTokens, uint64(3600))
	var seen []uint64
	options := RunOptions{Until: 5, LearningRate: 1e-2, ProgressEvery: 2, Progress: func(now Progress) bool {
		seen = append(seen, now.Step)
		equal(t, len(must[[]int32](t)(world.trainer.Generate([]int32{1, 2}, GenerateOptions{Count: 3}))), 3)
		return true
	}}
	equal(t, world.trainer.Run(context.Background(), data, options), nil)
	equal(t, seen, []uint64{2, 4, 5})
	loss := must[float64](t)(world.trainer.Evaluate(data, 2))
	equal(t, []any{world.trainer.Progress().EvaluationLoss, world.trainer.Progress().Phase},
		[]any{loss, Idle})
	expect(t, world.trainer.Run(context.Background(), data,
		RunOptions{Until: 20, Progress: func(Progress) bool { return false }}), Cancelled)
	equal(t, world.trainer.Progress().Step, uint64(6))
	ctx, cancel := context.WithCancel(context.Background())
	err := world.trainer.Run(ctx, data, RunOptions{Until: 1 << 40, ProgressEvery: 3,
		Progress: func(now Progress) bool { cancel(); return true }})
	equal(t, err, context.Canceled)
	equal(t, world.trainer.Run(ctx, data, RunOptions{Until: 1 << 40}), context.Canceled)
	func() {
		defer func() { equal(t, recover(), "of the host") }()
		_ = world.trainer.Run(context.Background(), data,
			RunOptions{Until: 20, Progress: func(Progress) bool { panic("of the host") }})
	}()
	equal(t, world.trainer.Run(context.Background(), data, RunOptions{Until: 12}), nil)
	_, err = world.trainer.Generate([]int32{1}, GenerateOptions{Count: 1 << 40})
	expect(t, err, UnsupportedShape)
	_, err = world.trainer.Generate([]int32{1}, GenerateOptions{Count: 16})
	expect(t, err, UnsupportedShape)
	equal(t, world.trainer.Close(), nil)
	expect(t, world.trainer.Run(context.Background(), data, RunOptions{Until: 20}), BadState)
}

func TestOtherThreadsMayStopIt(t *testing.T) {
	world, data := newWorld(t), data(t)
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		for world.trainer.Progress().Step < 3 {
		}
		world.trainer.Cancel()
	}()
	expect(t, world.trainer.Run(context.Background(), data, RunOptions{Until: 1 << 40}), Cancelled)
	group.Wait()
	equal(t, world.trainer.Progress().Step >= 3, true)
	world.steps(1)
	// Closed by a callback in the middle of a run, the trainer stays open until the run ends.
	expect(t, world.trainer.Run(context.Background(), data,
		RunOptions{Until: 1 << 40, Progress: func(now Progress) bool {
			return world.trainer.Close() == nil && now.Step == 0
		}}), Cancelled)
	_, err := world.trainer.Step(batch(), 1e-3)
	expect(t, err, BadState)
	var none *Trainer
	equal(t, none.Close(), nil)
}

func TestWatchesReportAndCancel(t *testing.T) {
	var done []uint64
	goesOn, every := true, time.Duration(0)
	watch := must[*Watch](t)(NewWatch(WatchOptions{Interval: &every, Notify: func(now WatchState) bool {
		if now.Work == WorkStep {
			done = append(done, now.Done)
		}
		return goesOn
	}}))
	plan := small()
	plan.MicroBatch, plan.Watch = 2, watch
	world := worldOf(t, ModelOptions{ConfigJSON: gpt2}, plan, TrainerOptions{Watch: watch})
	world.steps(1)
	equal(t, []uint64{done[0], done[len(done)-1]}, []uint64{0, 2})
	equal(t, world.trainer.Progress().MicroStepsDone, uint64(2))
	equal(t, watch.State().Work, WorkNone)
	goesOn = false
	_, err := world.trainer.Step(batch(), 1e-3)
	expect(t, err, Cancelled)
	goesOn = true
	watch.Cancel()
	_, err = NewPlan(world.model, plan)
	expect(t, err, Cancelled)
	other := must[*Plan](t)(NewPlan(world.model, small()))
	watch.Cancel()
	_, err = other.FrontierWatched(watch)
	expect(t, err, Cancelled)
	watch.Cancel()
	_, err = other.PictureWatched(HTML, watch)
	expect(t, err, Cancelled)
	equal(t, must[string](t)(other.PictureWatched(HTML, watch)), must[string](t)(other.Picture(HTML)))
	goesOn = false
	expect(t, world.model.ExportWatched(t.TempDir(), watch), Cancelled)
	goesOn = true
	equal(t, world.model.ExportWatched(t.TempDir(), watch), nil)
	equal(t, watch.State().Done, watch.State().Total)
	watch.Close() // after its trainer ended
	world.steps(1)
	_, err = NewPlan(world.model, plan)
	expect(t, err, BadState)
	_, err = NewWatch(WatchOptions{Interval: Of(-time.Second)})
	expect(t, err, BadArgument)
}

func TestZeroIsASeed(t *testing.T) {
	weights := func(seed *uint64) [][]float32 {
		return worldOf(t, ModelOptions{ConfigJSON: gpt2, Seed: seed}, small(), TrainerOptions{}).weights()
	}
	zero, usual := uint64(0), uint64(1337)
	equal(t, weights(nil), weights(&usual))
	equal(t, reflect.DeepEqual(weights(&zero), weights(&usual)), false)
}

// A test that fails in a callback ends its goroutine. C's stack frames must survive that.
func TestCallbacksMayExit(t *testing.T) {
	world, data := newWorld(t), data(t)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_ = world.trainer.Run(context.Background(), data,
			RunOptions{Until: 20, Progress: func(Progress) bool { runtime.Goexit(); return true }})
		ended <- true // unreachable
	}()
	_, came := <-ended
	equal(t, came, false)
	equal(t, world.trainer.Progress().Phase, Idle)
	world.steps(1)
}

func TestCheckpointsContinueWithTheSameBits(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "checkpoint.stw")
	whole := newWorld(t)
	whole.steps(2)
	equal(t, whole.trainer.Save(path), nil)
	equal(t, VerifyCheckpoint(path), nil)
	whole.steps(2)
	options := small()
	options.MicroBatch = 1
	other := worldOf(t, ModelOptions{ConfigJSON: gpt2}, options, TrainerOptions{})
	equal(t, other.trainer.Restore(path), nil)
	other.steps(2)
	equal(t, whole.weights(), other.weights())
	equal(t, whole.trainer.ExportModel(folder), nil)
	again := worldOf(t, ModelOptions{Source: folder}, small(), TrainerOptions{})
	equal(t, again.model.Info().HasWeights, true)
	equal(t, again.weights(), whole.weights())
	bytes := must[[]byte](t)(os.ReadFile(path))
	bytes[len(bytes)-40] ^= 1
	equal(t, os.WriteFile(path, bytes, 0o600), nil)
	expect(t, VerifyCheckpoint(path), Corrupt)
	expect(t, other.trainer.Restore(path), Corrupt)
}

func TestTensors(t *testing.T) {
	world := newWorld(t)
	world.steps(1)
	index := 0
	for len(world.model.Tensors()[index].Shape) != 1 {
		index++
	}
	values := make([]float32, world.model.Tensors()[index].Elements)
	for i := range values {
		values[i] = 0.5
	}
	equal(t, world.trainer.SetTensor(index, values), nil)
	equal(t, must[*Tensor](t)(world.trainer.Tensor(index, Parameter)).Values, values)
	expect(t, world.trainer.SetTensor(index, values[1:]), BadArgument)
	_, err := world.trainer.Tensor(1000, Parameter)
	expect(t, err, BadArgument)
	for dtype, precision := range map[string]Precision{"bfloat16": BF16, "float16": FP16} {
		options := small()
		options.Precision = precision
		half := must[*Tensor](t)(worldOf(t, ModelOptions{ConfigJSON: gpt2}, options,
			TrainerOptions{}).trainer.Tensor(0, Parameter))
		whole := must[*Tensor](t)(newWorld(t).trainer.Tensor(0, Parameter))
		equal(t, []any{half.DType, len(half.Bits), whole.Bits == nil}, []any{dtype, 2048, true})
		for i, value := range half.Values {
			if math.Abs(float64(value-whole.Values[i])) > math.Abs(float64(whole.Values[i]))/200+1e-7 {
				t.Fatal(dtype, value, whole.Values[i])
			}
		}
	}
}

func TestHooks(t *testing.T) {
	count, gone := 0, errors.New("the network is gone")
	hook := func(gradients *Gradients) error {
		count++
		switch count {
		case 1:
			return gone
		case 2:
			panic("of the hook")
		}
		for i := range gradients.Data() { // twice the gradient over twice the targets gives the same step
			gradients.Data()[i] *= 2
		}
		*gradients.LossSum() *= 2
		*gradients.TargetCount() *= 2
		equal(t, *gradients.CorrectPairs(), uint32(0)) // only preferences set it
		return nil
	}
	one := worldOf(t, ModelOptions{ConfigJSON: gpt2}, small(), TrainerOptions{GradientHook: hook})
	before := one.weights()
	_, err := one.trainer.Step(batch(), 1e-3)
	expect(t, err, CallbackFailed)
	equal(t, errors.Is(err, gone) && strings.HasSuffix(err.Error(), ": the network is gone"), true)
	func() {
		defer func() { equal(t, recover(), "of the hook") }()
		_, _ = one.trainer.Step(batch(), 1e-3)
	}()
	equal(t, one.weights(), before)
	other := newWorld(t)
	equal(t, one.steps(1).Targets, 2*other.steps(1).Targets)
	equal(t, one.weights(), other.weights())
}

func TestLabelsOfTokens(t *testing.T) {
	world := worldOf(t, ModelOptions{ConfigJSON: gpt2, LabelCount: 3, Task: TaskTokenLabel}, small(),
		TrainerOptions{})
	classes := make([]int32, len(tokens()))
	for i, token := range tokens() {
		classes[i] = token % 3
	}
	equal(t, must[StepResult](t)(world.trainer.Step(Batch{Samples: 4, Tokens: tokens(), Labels: classes},
		1e-3)).Targets, uint64(len(classes)))
	texts := [][]int32{{1, 2, 3}, {4}}
	rows := must[[][]float32](t)(world.trainer.Classify(texts, nil))
	equal(t, []int{len(rows), len(rows[0])}, []int{4, 3})
	equal(t, rows[3:], must[[][]float32](t)(world.trainer.Classify(texts[1:], nil)))
}

func TestClassifiers(t *testing.T) {
	world := worldOf(t, ModelOptions{ConfigJSON: gpt2, LabelCount: 3}, small(), TrainerOptions{})
	equal(t, must[StepResult](t)(world.trainer.Step(Batch{Samples: 4, Tokens: tokens(),
		Labels: []int32{0, 1, 2, 1}}, 1e-3)).Targets, uint64(4))
	equal(t, len(must[[]float32](t)(world.trainer.Logits(tokens()[:5]))), 3)
	_, err := world.trainer.Generate(tokens()[:5], GenerateOptions{Count: 1})
	expect(t, err, Unsupported)
	texts := [][]int32{{1, 2, 3}, {4}}
	equal(t, must[[][]float32](t)(world.trainer.Classify(texts, nil)),
		[][]float32{must[[]float32](t)(world.trainer.Logits(texts[0])),
			must[[]float32](t)(world.trainer.Logits(texts[1]))})
	equal(t, len(must[[][]float32](t)(world.trainer.Classify(nil, nil))), 0)
	_, err = world.trainer.Classify(texts, texts) // the model has no token types
	expect(t, err, BadArgument)
	_, err = world.trainer.Classify([][]int32{{}}, nil)
	expect(t, err, UnsupportedShape)
	_, err = newWorld(t).trainer.Classify(texts, nil)
	expect(t, err, Unsupported)
}

func TestHiddenTokens(t *testing.T) {
	masked := strings.Replace(bert, "BertForSequenceClassification", "BertModel", 1)
	world := worldOf(t, ModelOptions{ConfigJSON: masked, Task: TaskMaskedLanguageModel}, small(),
		TrainerOptions{})
	equal(t, []any{world.model.Info().Task, world.model.Info().HeadIsNew},
		[]any{TaskMaskedLanguageModel, false})
	var tokens []byte
	for i := uint32(0); i < 640; i++ {
		tokens = binary.LittleEndian.AppendUint16(tokens, uint16(i*i/7%61))
	}
	path := filepath.Join(t.TempDir(), "tokens.bin")
	equal(t, os.WriteFile(path, tokens, 0o600), nil)
	options := DatasetOptions{Vocabulary: 64, Sequence: 16, MaskRate: 0.3, MaskToken: 63,
		TokenKinds: append(make([]byte, 63), 1), MaskWholeWords: true}
	data := must[*Dataset](t)(OpenDataset(path, options))
	before := must[float64](t)(world.trainer.Evaluate(data, 3))
	equal(t, world.trainer.Run(context.Background(), data, RunOptions{Until: 3}), nil)
	equal(t, must[float64](t)(world.trainer.Evaluate(data, 3)) != before, true)
	equal(t, data.Close(), nil)
	for _, wrong := range [][]byte{make([]byte, 63), append(make([]byte, 63), 4)} {
		options.TokenKinds = wrong
		_, err := OpenDataset(path, options)
		expect(t, err, BadArgument)
	}
}

func TestSeveralLabelsAndNumbers(t *testing.T) {
	for _, task := range []Task{TaskLabels, TaskNumber} {
		world := worldOf(t, ModelOptions{ConfigJSON: gpt2, LabelCount: 2, Task: task}, small(),
			TrainerOptions{})
		values := []float32{0, 1, 1, 1, 0.5, 0, 1, 0}
		equal(t, must[StepResult](t)(world.trainer.Step(Batch{Samples: 4, Tokens: tokens(), Values: values},
			1e-3)).Targets, uint64(4))
		equal(t, len(must[[][]float32](t)(world.trainer.Classify([][]int32{{1, 2, 3}}, nil))[0]), 2)
		_, err := world.trainer.Step(Batch{Samples: 4, Tokens: tokens(), Values: values[1:]}, 1e-3)
		expect(t, err, BadArgument)
		_, err = world.trainer.Step(Batch{Samples: 4, Tokens: tokens(), Labels: []int32{0, 1, 1, 0}}, 1e-3)
		expect(t, err, BadArgument)
	}
}

func TestEncoders(t *testing.T) {
	world := worldOf(t, ModelOptions{ConfigJSON: bert}, small(), TrainerOptions{})
	equal(t, []any{world.model.Info().Generates, world.model.Info().TokenTypes}, []any{false, 2})
	texts := [][]int32{{1, 2, 3}, {4, 5}}
	without, with := must[[][]float32](t)(world.trainer.Classify(texts, nil)),
		must[[][]float32](t)(world.trainer.Classify(texts, [][]int32{{0, 1, 1}, {0, 0}}))
	equal(t, []bool{reflect.DeepEqual(with[0], without[0]), reflect.DeepEqual(with[1], without[1])},
		[]bool{false, true})
	equal(t, len(with[1]), 3)
	for _, wrong := range [][][]int32{{{0, 1, 1}}, {{0, 1}, {0, 0}}, {{0, 1, 2}, {0, 0}}} {
		_, err := world.trainer.Classify(texts, wrong)
		expect(t, err, BadArgument)
	}
	plain := Batch{Samples: 4, Tokens: tokens(), Labels: []int32{0, 1, 2, 1}}
	typed := plain
	typed.TokenTypes = make([]int32, len(plain.Tokens))
	for i := range typed.TokenTypes {
		typed.TokenTypes[i] = 1
	}
	equal(t, reflect.DeepEqual(must[[]float32](t)(world.trainer.LogProbabilities(typed)),
		must[[]float32](t)(world.trainer.LogProbabilities(plain))), false)
	equal(t, must[StepResult](t)(world.trainer.Step(typed, 1e-3)).Targets, uint64(4))
	other := batch()
	other.TokenTypes = typed.TokenTypes
	_, err := newWorld(t).trainer.Step(other, 1e-3)
	expect(t, err, Unsupported)
	other.TokenTypes = typed.TokenTypes[1:]
	_, err = newWorld(t).trainer.Step(other, 1e-3)
	expect(t, err, BadArgument)
}

func TestAdapters(t *testing.T) {
	base, tuned, merged := t.TempDir(), t.TempDir(), t.TempDir()
	equal(t, newWorld(t).trainer.ExportModel(base), nil)
	options := small()
	options.Quantize = NF4
	world := worldOf(t, ModelOptions{Source: base, AdapterRank: 4, AdapterTargets: "c_attn"}, options,
		TrainerOptions{})
	equal(t, world.model.Info().Trainable, uint64(2*4*(32+96)))
	world.steps(3)
	after := must[[]float32](t)(world.trainer.Logits(tokens()[:8]))
	equal(t, world.trainer.ExportModel(tuned), nil)
	again := worldOf(t, ModelOptions{Source: tuned}, options, TrainerOptions{})
	equal(t, must[[]float32](t)(again.trainer.Logits(tokens()[:8])), after)
	equal(t, again.model.Export(merged), nil)
	equal(t, must[*Model](t)(OpenModel(merged)).Info().AdapterRank, 0)
}

// mapped allocates from the system and counts the allocations.
type mapped struct {
	held   map[unsafe.Pointer][]byte
	taken  int
	refuse bool
}

func (m *mapped) Allocate(bytes, alignment int, stream unsafe.Pointer) unsafe.Pointer {
	if m.refuse {
		panic("refused")
	}
	memory, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	m.taken++
	m.held[unsafe.Pointer(&memory[0])] = memory
	return unsafe.Pointer(&memory[0])
}

func (m *mapped) Release(memory unsafe.Pointer, bytes int, stream unsafe.Pointer) {
	if len(m.held[memory]) != bytes {
		panic("another size")
	}
	syscall.Munmap(m.held[memory])
	delete(m.held, memory)
}

// goroutines runs each task on a goroutine of its own.
type goroutines struct{ runs atomic.Int64 }

func (g *goroutines) Run(tasks int, task func(i int)) {
	g.runs.Add(1)
	var all sync.WaitGroup
	for i := 0; i < tasks; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			task(i)
		}(i)
	}
	all.Wait()
}

func TestMemoryAndThreadsOfTheHost(t *testing.T) {
	trained := func(host DeviceOptions, options TrainerOptions) (*world, [][]float32) {
		host.Backend, host.Threads = CPU, 2
		device := must[*Device](t)(OpenDevice(host))
		model := must[*Model](t)(NewModel(ModelOptions{ConfigJSON: gpt2}))
		plan := must[*Plan](t)(NewPlan(model, small().For(device)))
		if options.Arena != nil && options.ArenaBytes < plan.Info().Arena {
			t.Fatalf("the arena takes %d bytes", plan.Info().Arena)
		}
		w := &world{T: t, device: device, model: model,
			trainer: must[*Trainer](t)(NewTrainer(device, model, plan, options))}
		w.steps(2)
		return w, w.weights()
	}
	_, alone := trained(DeviceOptions{}, TrainerOptions{})
	memory, threads := &mapped{held: map[unsafe.Pointer][]byte{}}, &goroutines{}
	w, with := trained(DeviceOptions{Memory: memory, Executor: threads}, TrainerOptions{})
	equal(t, with, alone)
	if memory.taken != 1 || len(memory.held) != 1 || threads.runs.Load() < 10 {
		t.Fatalf("%d of memory, %d held, %d runs", memory.taken, len(memory.held), threads.runs.Load())
	}
	w.trainer.Close()
	equal(t, len(memory.held), 0)

	memory.refuse = true
	plan := must[*Plan](t)(NewPlan(w.model, small().For(w.device)))
	_, err := NewTrainer(w.device, w.model, plan, TrainerOptions{})
	expect(t, err, OutOfMemory)
	w.device.Close()

	memory.refuse = false
	arena := memory.Allocate(64<<20, 256, nil)
	w, with = trained(DeviceOptions{}, TrainerOptions{Arena: arena, ArenaBytes: 64 << 20})
	equal(t, with, alone)
	w.trainer.Close()
	_, err = NewTrainer(w.device, w.model, plan, TrainerOptions{Arena: arena, ArenaBytes: 4096})
	expect(t, err, OutOfMemory)
	memory.Release(arena, 64<<20, nil)
}

func TestDevicesOutliveTheirName(t *testing.T) {
	var messages []string
	device := must[*Device](t)(OpenDevice(DeviceOptions{Backend: CPU, Threads: 1, LogLevel: LogInfo,
		Log: func(_ LogLevel, component, message string) {
			messages = append(messages, component+": "+message)
		}}))
	model := must[*Model](t)(NewModel(ModelOptions{ConfigJSON: gpt2}))
	plan := must[*Plan](t)(NewPlan(model, small()))
	trainer := must[*Trainer](t)(NewTrainer(device, model, plan, TrainerOptions{}))
	message, ok := device.NextLog(0)
	equal(t, ok, len(messages) > 0)
	equal(t, !ok || strings.HasSuffix(messages[0], message.Text), true)
	equal(t, []error{device.Close(), model.Close(), plan.Close()}, []error{nil, nil, nil})
	must[StepResult](t)(trainer.Step(batch(), 1e-3))
	_, err := NewTrainer(device, model, plan, TrainerOptions{})
	expect(t, err, BadState)
	equal(t, trainer.Close(), nil)
}

func TestClosedObjectsRefuseCalls(t *testing.T) {
	world := newWorld(t)
	plan, tokens := must[*Plan](t)(NewPlan(world.model, small())), data(t)
	tensor := must[*Tensor](t)(world.trainer.Tensor(0, Parameter)) // a copy, which stays valid
	for _, close := range []func() error{world.trainer.Close, world.model.Close, plan.Close, tokens.Close,
		world.device.Close} {
		equal(t, []error{close(), close()}, []error{nil, nil})
	}
	path := filepath.Join(t.TempDir(), "none")
	trainer := world.trainer
	uses := map[string]func() error{
		"Step": func() error { _, err := trainer.Step(batch(), 1e-3); return err },
		"Run": func() error {
			return trainer.Run(context.Background(), tokens, RunOptions{Until: 1})
		},
		"Evaluate": func() error { _, err := trainer.Evaluate(tokens, 1); return err },
		"Generate": func() error {
			_, err := trainer.Generate([]int32{1}, GenerateOptions{Count: 1})
			return err
		},
		"Logits":           func() error { _, err := trainer.Logits([]int32{1}); return err },
		"LogProbabilities": func() error { _, err := trainer.LogProbabilities(batch()); return err },
		"Replan":           func() error { _, err := trainer.Replan(64 << 20); return err },
		"Calibrate":        func() error { _, err := trainer.Calibrate(); return err },
		"Timeline":         func() error { return trainer.Timeline(path) },
		"Tensor":           func() error { _, err := trainer.Tensor(0, Parameter); return err },
		"SetTensor":        func() error { return trainer.SetTensor(0, tensor.Values) },
		"Save":             func() error { return trainer.Save(path) },
		"Restore":          func() error { return trainer.Restore(path) },
		"ExportModel":      func() error { return trainer.ExportModel(path) },
		"Export":           func() error { return world.model.Export(path) },
		"NewPlan":          func() error { _, err := NewPlan(world.model, small()); return err },
		"NewTrainer": func() error {
			_, err := NewTrainer(world.device, world.model, plan, TrainerOptions{})
			return err
		},
		"Verify":   plan.Verify,
		"Frontier": func() error { _, err := plan.Frontier(); return err },
		"Picture":  func() error { _, err := plan.Picture(SVG); return err },
	}
	for name, use := range uses {
		err := use()
		if !errors.Is(err, BadState) || !strings.Contains(err.Error(), "is closed") {
			t.Errorf("%s of a closed object: found %v", name, err)
		}
	}
	trainer.Cancel()
	equal(t, []any{trainer.Progress(), trainer.Stream(), world.model.Info(), plan.Info(), tokens.Info(),
		world.device.Info(), plan.JSON(), len(world.model.Tensors())},
		[]any{Progress{}, unsafe.Pointer(nil), ModelInfo{}, PlanInfo{}, DatasetInfo{}, DeviceInfo{}, "", 0})
	equal(t, len(tensor.Values) > 0 && !math.IsNaN(float64(tensor.Values[0])), true)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("something was written")
	}
}

func TestUnreachableObjectsAreClosed(t *testing.T) {
	device := must[*Device](t)(OpenDevice(DeviceOptions{Backend: CPU, Threads: 1}))
	users := func() int { // the device itself and its trainers
		runtime.GC()
		return device.Users()
	}
	func() {
		model := must[*Model](t)(NewModel(ModelOptions{ConfigJSON: gpt2}))
		for i := 0; i < 3; i++ {
			must[*Trainer](t)(NewTrainer(device, model, must[*Plan](t)(NewPlan(model, small())),
				TrainerOptions{GradientHook: func(*Gradients) error { return nil }}))
		}
	}()
	for i := 0; i < 200 && users() > 1; i++ {
		time.Sleep(time.Millisecond)
	}
	equal(t, users(), 1)
}

func TestCalibrates(t *testing.T) {
	world := newWorld(t)
	options := small()
	options.Profile = must[string](t)(world.trainer.Calibrate())
	equal(t, strings.Contains(must[*Plan](t)(NewPlan(world.model, options)).JSON(), `"profile"`), true)
	profile := must[Profile](t)(ReadProfile(options.Profile))
	equal(t, []any{profile.Name, profile.Threads, len(profile.Ops) > 3 && profile.Ops[0].Nanoseconds > 0},
		[]any{"cpu", 2, true})
	_, err := ReadProfile("{}")
	expect(t, err, Corrupt)
	path := filepath.Join(t.TempDir(), "step.json")
	equal(t, world.trainer.Timeline(path), nil)
	equal(t, strings.Contains(string(must[[]byte](t)(os.ReadFile(path))), "traceEvents"), true)
	world.steps(1)
	_, err = world.trainer.Calibrate()
	expect(t, err, BadState)
}
