package stowage

/*
#include "glue.h"
*/
import "C"

import (
	"context"
	"errors"
	"math"
	"runtime"
	"unsafe"
)

// TrainerOptions are stw_trainer_options. nil: the optimizer's default.
type TrainerOptions struct {
	Seed         *uint64 // seed of dropout; nil: 1337
	Beta1, Beta2 *float32
	Epsilon      float32 // 0: 1e-8
	WeightDecay  *float32
	ClipNorm     *float32 // 0: no clipping
	Nesterov     bool
	Momentum     *float32
	// GradientHook may change the gradients before they are used. An error fails the step, which then updates
	// nothing.
	GradientHook   func(*Gradients) error
	LabelSmoothing float32
	ZLoss          float32
	OutlierLimit   float32 // 0: none
	LossScale      float64 // fp16: scale of the first step; 0: 65536
	GrowthInterval int     // fp16: number of updates after which the scale doubles; 0: 2000
	NonFinite      NonFinitePolicy
	Beta           float32  // for the preference of the plan; 0: 0.1, for SimPO 2
	Margin         *float32 // SimPO; nil: half of Beta
	// factor of the chosen document's mean token loss, which is added to a preference's loss
	AnswerShare float32
	// FirstSample is for a GradientHook that adds up several trainers: the number, in their joint batch, of
	// the first sample of this trainer's batches.
	FirstSample uint64
	// Arena is the host's memory for the arena, outside of Go's heap. It must stay valid until the trainer is
	// closed. It has ArenaBytes bytes, at least PlanInfo.Arena, at a multiple of 256. nil: the trainer
	// allocates it.
	Arena      unsafe.Pointer
	ArenaBytes uint64
	// Watch reports and cancels the creation and all calls of the trainer; nil: none.
	Watch *Watch
}

// RunOptions are stw_run_options.
type RunOptions struct {
	Until         uint64 // the run ends when this many batches have been consumed in all
	Total         uint64 // length of the schedule; 0: Until
	Warmup        uint64
	LearningRate  float64  // the full rate; 0: the optimizer's default
	MinRate       *float64 // nil: a tenth of the full rate
	Schedule      Schedule
	ProgressEvery int // steps between two calls of Progress; 0: 1
	// Progress is called between two steps, after every ProgressEvery steps. It may evaluate, generate and
	// save. A result of false stops the run.
	Progress   func(now Progress) bool
	DecaySteps uint64
	BaseBatch  uint64
}

// GenerateOptions are stw_generate_options.
type GenerateOptions struct {
	Count       int     // the most tokens to generate
	TopK        int     // 0: all
	TopP        float64 // 0: all
	Temperature float64
	Seed        *uint64 // nil: 1337
	Stop        []int32 // tokens that end the answer; the one that ended it is the last token
}

// Batch is stw_batch. Tokens has samples of one length, row by row. Targets (the token that follows each
// token) or Labels (each in the place of its token; a language model's labels are shifted by the library)
// have the same shape. For a classifier, Labels has one label for each sample. -100 means no loss.
type Batch struct {
	Samples    int
	Tokens     []int32
	Targets    []int32
	Labels     []int32
	Lengths    []int32 // how many tokens of each sample count
	Positions  []int32 // the position of each token in its document
	TokenTypes []int32 // each token's type, for models with token types
	Weights    []float32
	Reference  []float32 // log-probabilities of the targets or labels, for preferences with a reference
	// instead of Labels, for TaskLabels, TaskNumber and TaskSpans: one for each sample and label of the model
	Values []float32
}

// StepResult is the result of a step.
type StepResult struct {
	Skipped                            bool
	Step, Targets                      uint64
	Loss, GradNorm, Seconds, LossScale float64
	SkipReason                         SkipReason
	// with a preference: share of the pairs whose chosen document was ahead
	Accuracy float64
}

// Progress is the state of a trainer.
type Progress struct {
	Phase                                      Phase
	Step, Batches, Skipped, Tokens             uint64
	Loss, GradNorm, LearningRate, Seconds      float64
	TokensPerSecond, EvaluationLoss, LossScale float64
	SkipReason                                 SkipReason
	EvaluationAccuracy                         float64 // for a classifier or a preference
	Accuracy                                   float64 // with a preference, of the last step
	// samples of the evaluation in progress, or of the last one: all, and those given to the device
	EvaluationSamples, EvaluatedSamples uint64
	EvaluationTargets                   uint64 // targets that EvaluationLoss is the mean over
	// micro-steps of the step in progress, or of the last one: all, and those given to the device
	MicroSteps, MicroStepsDone uint64
	// tokens without padding: of the last step's samples (0 if the host gave the batch), and of the last
	// Evaluate
	SampleTokens, EvaluationTokens uint64
}

// Tensor is a copy of a tensor of a trainer.
type Tensor struct {
	Shape  []int64
	DType  string    // "float32", "bfloat16" or "float16"
	Values []float32 // the numbers, for every type
	Bits   []uint16  // for 16-bit types: the bits as they are stored
}

// Trainer trains a model in an arena of the plan's bytes.
type Trainer struct {
	handle[*C.stw_trainer]
	calls    *calls
	watch    *Watch // nil: none
	labels   int    // number of a classifier's labels
	ofTokens bool   // whether tokens have the labels
	classes  int    // number of labels, or of tokens
	sequence int
	tensors  []TensorInfo
}

// NewTrainer allocates the plan's arena, once, and fills it with weights. Errors: OutOfMemory, BadState for a
// plan that does not fit or is for another model or device, and the errors of reading weights.
func NewTrainer(device *Device, model *Model, plan *Plan, options TrainerOptions) (*Trainer, error) {
	shared, err := device.use("Device")
	if err != nil {
		return nil, err
	}
	defer device.done()
	cModel, err := model.use("Model")
	if err != nil {
		return nil, err
	}
	defer model.done()
	cPlan, err := plan.use("Plan")
	if err != nil {
		return nil, err
	}
	defer plan.done()
	var checked fits
	interval := checked.unsigned("GrowthInterval", options.GrowthInterval)
	if checked.err != nil {
		return nil, checked.err
	}
	cOptions := C.stw_trainer_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_trainer_options{})),
		epsilon: C.float(options.Epsilon), nesterov: number(options.Nesterov),
		label_smoothing: C.float(options.LabelSmoothing), z_loss: C.float(options.ZLoss),
		outlier_limit: C.float(options.OutlierLimit), loss_scale: C.double(options.LossScale),
		growth_interval: interval, non_finite: C.uint32_t(options.NonFinite), beta: C.float(options.Beta),
		answer_share: C.float(options.AnswerShare), arena: options.Arena,
		arena_bytes: C.uint64_t(options.ArenaBytes), first_sample: C.uint64_t(options.FirstSample)}
	for _, one := range []struct {
		value *float32
		to    *C.float
		bit   C.uint32_t
	}{{options.Beta1, &cOptions.beta1, C.STW_SET_BETA1}, {options.Beta2, &cOptions.beta2, C.STW_SET_BETA2},
		{options.WeightDecay, &cOptions.weight_decay, C.STW_SET_WEIGHT_DECAY},
		{options.ClipNorm, &cOptions.clip_norm, C.STW_SET_CLIP_NORM},
		{options.Momentum, &cOptions.momentum, C.STW_SET_MOMENTUM},
		{options.Margin, &cOptions.margin, C.STW_SET_MARGIN}} {
		if one.value != nil {
			*one.to = C.float(*one.value)
			cOptions.set_mask |= one.bit
		}
	}
	if options.Seed != nil {
		cOptions.set_mask |= C.STW_SET_TRAINER_SEED
		cOptions.seed = C.uint64_t(*options.Seed)
	}
	info := model.Info()
	ofTokens := info.Task == TaskTokenLabel || info.Task == TaskSpans
	trainer := &Trainer{watch: options.Watch, labels: info.Labels, ofTokens: ofTokens,
		classes: int(info.Vocabulary), sequence: int(plan.Info().Sequence), tensors: model.Tensors()}
	if trainer.labels > 0 {
		trainer.classes = trainer.labels
	}
	if options.GradientHook != nil {
		trainer.calls = &calls{hook: options.GradientHook, onHost: device.Info().Backend == CPU}
		C.stowage_go_set_hook(&cOptions, trainer.calls.register())
	}
	watch, err := trainer.watch.begin() // held until the trainer ends
	if err != nil {
		trainer.calls.release()
		return nil, err
	}
	cOptions.watch = watch
	cErr := newError()
	if err := check(C.stw_trainer_create(&trainer.pointer, shared.pointer, cModel, cPlan, &cOptions, &cErr),
		&cErr); err != nil {
		trainer.calls.release()
		return nil, trainer.watch.finish(err)
	}
	shared.lend()
	// This function must not refer to `trainer`, because the trainer would then keep itself alive.
	called, watched := trainer.calls, trainer.watch
	trainer.end = func(p *C.stw_trainer) {
		C.stw_trainer_destroy(p)
		called.release()
		shared.release()
		if watched != nil {
			watched.done()
		}
	}
	runtime.SetFinalizer(trainer, func(t *Trainer) { t.Close() })
	return trainer, nil
}

// Close frees the arena, after the call in progress.
func (t *Trainer) Close() error {
	if t != nil {
		t.close()
	}
	return nil
}

// call makes a call that may run the gradient hook.
func (t *Trainer) call(call func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status) error {
	pointer, err := t.use("Trainer")
	if err != nil {
		return err
	}
	defer t.done()
	cErr := newError()
	err = check(call(pointer, &cErr), &cErr)
	if t.watch != nil {
		err = t.watch.calls.explain(err)
	}
	return t.calls.explain(err)
}

func (b *Batch) check(labels int) error {
	if b.Samples <= 0 || len(b.Tokens) == 0 || len(b.Tokens)%b.Samples != 0 {
		return failure(BadArgument, "Tokens: %d numbers cannot form %d rows of one length", len(b.Tokens),
			b.Samples)
	}
	for _, one := range []struct {
		name     string
		count    int
		perToken bool
	}{{"Targets", len(b.Targets), true}, {"Labels", len(b.Labels), labels == 0},
		{"Lengths", len(b.Lengths), false}, {"Positions", len(b.Positions), true},
		{"TokenTypes", len(b.TokenTypes), true}, {"Weights", len(b.Weights), true},
		{"Reference", len(b.Reference), true}} {
		expected := b.Samples
		if one.perToken {
			expected = len(b.Tokens)
		}
		if one.count != 0 && one.count != expected {
			return failure(BadArgument, "%s: expected %d numbers, found %d", one.name, expected, one.count)
		}
	}
	if len(b.Values) != 0 && len(b.Values) != b.Samples*labels {
		return failure(BadArgument, "Values: expected %d numbers, found %d", b.Samples*labels, len(b.Values))
	}
	return nil
}

func integers(values []int32) *C.int32_t {
	if len(values) == 0 {
		return nil
	}
	return (*C.int32_t)(unsafe.Pointer(&values[0]))
}

func floats(values []float32) *C.float {
	if len(values) == 0 {
		return nil
	}
	return (*C.float)(unsafe.Pointer(&values[0]))
}

// batch makes the C struct that describes a batch.
func (t *Trainer) batch(b *Batch, learningRate float64) (C.stowage_go_batch, error) {
	labels := t.labels // labels of a sample
	if t.ofTokens {
		labels = 0
	}
	if err := b.check(labels); err != nil {
		return C.stowage_go_batch{}, err
	}
	shape := C.stowage_go_batch{samples: C.int64_t(b.Samples), tokens: C.int64_t(len(b.Tokens) / b.Samples),
		labels: C.int64_t(labels), labels_ndim: 2, learning_rate: C.double(learningRate)}
	if labels > 0 {
		shape.labels_ndim = 1
	}
	return shape, nil
}

// Step makes one optimizer step with a whole global batch. Errors: BadArgument (shapes, a token outside the
// vocabulary, the rate), Unsupported (an input that the plan does not include), Cancelled, and
// CallbackFailed, which wraps the hook's error.
func (t *Trainer) Step(batch Batch, learningRate float64) (StepResult, error) {
	shape, err := t.batch(&batch, learningRate)
	if err != nil {
		return StepResult{}, err
	}
	result := sized[C.stw_step_result]()
	err = t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stowage_go_step(pointer, &shape, integers(batch.Tokens), integers(batch.Targets),
			integers(batch.Labels), integers(batch.Lengths), integers(batch.Positions),
			integers(batch.TokenTypes), floats(batch.Weights), floats(batch.Reference), floats(batch.Values),
			&result, cErr)
	})
	if err != nil {
		return StepResult{}, err
	}
	return StepResult{Skipped: result.skipped != 0, Step: uint64(result.step),
		Targets: uint64(result.targets), Loss: float64(result.loss), GradNorm: float64(result.grad_norm),
		Seconds: float64(result.seconds), LossScale: float64(result.loss_scale),
		SkipReason: SkipReason(result.skip_reason), Accuracy: float64(result.accuracy)}, nil
}

// Run makes steps over a dataset. If Progress or Cancel stopped it, the error is Cancelled. If the context
// stopped it, which happens after a step, the error is the context's. Only Cancel stops in the middle of a
// step, and only Cancel stops Step, Evaluate, Generate and Calibrate.
func (t *Trainer) Run(ctx context.Context, dataset *Dataset, options RunOptions) error {
	from, err := dataset.use("Dataset")
	if err != nil {
		return err
	}
	defer dataset.done()
	if err := ctx.Err(); err != nil {
		return err
	}
	var checked fits
	checked.unsigned("ProgressEvery", options.ProgressEvery)
	if checked.err != nil {
		return checked.err
	}
	progress := options.Progress
	if progress == nil {
		progress = func(Progress) bool { return true }
	}
	every := uint64(options.ProgressEvery)
	if every == 0 {
		every = 1
	}
	// A cancel that comes after the end of the run would stop the next call. So the context is checked after
	// every step.
	called := &calls{progress: func(now Progress) bool {
		return ctx.Err() == nil && (now.Batches%every != 0 && now.Batches < options.Until || progress(now))
	}}
	cOptions := C.stw_run_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_run_options{})),
		until: C.uint64_t(options.Until), total: C.uint64_t(options.Total),
		warmup: C.uint64_t(options.Warmup), learning_rate: C.double(options.LearningRate),
		schedule: C.uint32_t(options.Schedule), progress_every: 1,
		decay_steps: C.uint64_t(options.DecaySteps), base_batch: C.uint64_t(options.BaseBatch)}
	if options.MinRate != nil {
		cOptions.set_mask, cOptions.min_rate = C.STW_SET_MIN_RATE, C.double(*options.MinRate)
	}
	C.stowage_go_set_progress(&cOptions, called.register())
	defer called.release()
	err = t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_run(pointer, from, &cOptions, cErr)
	})
	err = called.explain(err)
	if errors.Is(err, Cancelled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Evaluate returns the mean loss per target over batches global batches of the held-out part. Afterwards
// Progress has the accuracy of a classifier or a preference.
func (t *Trainer) Evaluate(dataset *Dataset, batches uint64) (float64, error) {
	from, err := dataset.use("Dataset")
	if err != nil {
		return 0, err
	}
	defer dataset.done()
	var loss C.double
	err = t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_evaluate(pointer, from, C.uint64_t(batches), &loss, cErr)
	})
	return float64(loss), err
}

// Generate returns tokens that continue the prompt.
func (t *Trainer) Generate(prompt []int32, options GenerateOptions) ([]int32, error) {
	if options.Count > t.sequence {
		return nil, failure(UnsupportedShape, "Count: expected at most %d tokens with the prompt, found %d",
			t.sequence, options.Count)
	}
	var checked fits
	checked.unsigned("Count", options.Count)
	top := checked.unsigned("TopK", options.TopK)
	if checked.err != nil {
		return nil, checked.err
	}
	out := make([]int32, options.Count)
	cOptions := C.stw_generate_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_generate_options{})),
		top_k: top, temperature: C.double(options.Temperature), top_p: C.double(options.TopP)}
	if options.Seed != nil {
		cOptions.set_mask, cOptions.seed = C.STW_SET_GENERATE_SEED, C.uint64_t(*options.Seed)
	}
	var count C.uint64_t
	err := t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stowage_go_generate(pointer, &cOptions, integers(prompt), C.uint64_t(len(prompt)),
			integers(options.Stop), C.uint64_t(len(options.Stop)), integers(out), C.uint64_t(len(out)),
			&count, cErr)
	})
	if err != nil {
		return nil, err
	}
	return out[:int(count)], nil
}

// Logits returns the logits after these tokens: of the tokens that may follow, or of a classifier's labels.
func (t *Trainer) Logits(tokens []int32) ([]float32, error) {
	if len(tokens) == 0 {
		return nil, failure(UnsupportedShape, "logits: expected at least one token")
	}
	out := make([]float32, t.classes)
	err := t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_logits(pointer, integers(tokens), C.uint64_t(len(tokens)), floats(out),
			C.uint64_t(len(out)), cErr)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Classify returns the logits of a classifier's labels, one row for each text. If tokens have labels: one row
// for each token of each text in turn. tokenTypes has a type for each token; nil: all are 0. Errors:
// Unsupported (not a classifier), BadArgument (an unknown token or type, or not one type for each token),
// UnsupportedShape (no token, or too many), Cancelled, NonFinite.
func (t *Trainer) Classify(texts, tokenTypes [][]int32) ([][]float32, error) {
	if tokenTypes != nil && len(tokenTypes) != len(texts) {
		return nil, failure(BadArgument, "tokenTypes: expected %d lists, found %d", len(texts),
			len(tokenTypes))
	}
	var tokens, types []int32
	lengths := make([]uint64, len(texts)+1) // never empty, so that it has an address
	for i, text := range texts {
		tokens, lengths[i] = append(tokens, text...), uint64(len(text))
		if tokenTypes == nil {
			continue
		}
		if len(tokenTypes[i]) != len(text) {
			return nil, failure(BadArgument, "tokenTypes: text %d: expected %d numbers, found %d", i,
				len(text), len(tokenTypes[i]))
		}
		types = append(types, tokenTypes[i]...)
	}
	count := len(texts)
	if t.ofTokens {
		count = len(tokens)
	}
	out := make([]float32, count*t.labels)
	err := t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_classify(pointer, integers(tokens), integers(types),
			(*C.uint64_t)(unsafe.Pointer(&lengths[0])), C.uint64_t(len(texts)), floats(out),
			C.uint64_t(len(out)), cErr)
	})
	if err != nil {
		return nil, err
	}
	rows := make([][]float32, count)
	for i := range rows {
		rows[i] = out[i*t.labels : (i+1)*t.labels : (i+1)*t.labels]
	}
	return rows, nil
}

// LogProbabilities returns the log-probability that the model, without dropout, gives every target of one or
// more samples. Each value has the place of its target or label; places without a target hold 0. The result
// can be the Batch.Reference of later steps. Errors: those of Step, and Unsupported for a batch with weights
// or a reference.
func (t *Trainer) LogProbabilities(batch Batch) ([]float32, error) {
	shape, err := t.batch(&batch, 0)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(batch.Tokens))
	err = t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stowage_go_log_probabilities(pointer, &shape, integers(batch.Tokens),
			integers(batch.Targets), integers(batch.Labels), integers(batch.Lengths),
			integers(batch.Positions), integers(batch.TokenTypes), floats(batch.Weights),
			floats(batch.Reference), floats(batch.Values), floats(out), C.uint64_t(len(out)), cErr)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// WriteReference goes over a dataset of pairs once and writes the log-probabilities of its targets into a
// file, for DatasetOptions.Reference. Errors: BadState (a plan without a preference, a dataset without
// pairs), IOError, NonFinite, Cancelled. After an error no file has been replaced.
func (t *Trainer) WriteReference(dataset *Dataset, path string) error {
	from, err := dataset.use("Dataset")
	if err != nil {
		return err
	}
	defer dataset.done()
	return t.withPath(path, func(pointer *C.stw_trainer, path *C.char, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_write_reference(pointer, from, path, cErr)
	})
}

// Replan changes the budget from the next step on, with the same bits, and returns the new plan. Errors:
// OverBudget, OutOfMemory, BadState; the trainer is then unchanged.
func (t *Trainer) Replan(memoryBytes uint64) (*Plan, error) {
	var pointer *C.stw_plan
	err := t.call(func(trainer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_replan(trainer, C.uint64_t(memoryBytes), &pointer, cErr)
	})
	return planAround(pointer), err
}

// Calibrate measures the device and returns a profile for planning, PlanOptions.Profile. Only for a trainer
// that has made no step.
func (t *Trainer) Calibrate() (string, error) {
	out := make([]byte, C.STW_PROFILE_BYTES)
	var size C.size_t
	err := t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_calibrate(pointer, (*C.char)(unsafe.Pointer(&out[0])), C.size_t(len(out)),
			&size, cErr)
	})
	return string(out[:int(size)]), err
}

// Timeline measures a step in the same way and writes a trace, which Perfetto shows.
func (t *Trainer) Timeline(path string) error {
	return t.withPath(path, func(pointer *C.stw_trainer, path *C.char, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_timeline(pointer, path, cErr)
	})
}

// Cancel stops the call in progress, within a step too, or else the next one. Any goroutine may call it.
func (t *Trainer) Cancel() {
	if pointer, err := t.use("Trainer"); err == nil {
		defer t.done()
		C.stw_trainer_cancel(pointer)
	}
}

// Progress returns the state of the trainer; zero after Close. Any goroutine may call it.
func (t *Trainer) Progress() Progress {
	pointer, err := t.use("Trainer")
	if err != nil {
		return Progress{}
	}
	defer t.done()
	progress := sized[C.stw_progress]()
	C.stw_trainer_progress(pointer, &progress)
	return progressOf(&progress)
}

func progressOf(t *C.stw_progress) Progress {
	return Progress{Phase: Phase(t.phase), Step: uint64(t.step), Batches: uint64(t.batches),
		Skipped: uint64(t.skipped), Tokens: uint64(t.tokens), Loss: float64(t.loss),
		GradNorm: float64(t.grad_norm), LearningRate: float64(t.learning_rate), Seconds: float64(t.seconds),
		TokensPerSecond: float64(t.tokens_per_second), EvaluationLoss: float64(t.evaluation_loss),
		LossScale: float64(t.loss_scale), SkipReason: SkipReason(t.skip_reason),
		EvaluationAccuracy: float64(t.evaluation_accuracy), Accuracy: float64(t.accuracy),
		EvaluationSamples: uint64(t.evaluation_samples), EvaluatedSamples: uint64(t.evaluated_samples),
		EvaluationTargets: uint64(t.evaluation_targets), MicroSteps: uint64(t.micro_steps),
		MicroStepsDone: uint64(t.micro_steps_done), SampleTokens: uint64(t.sample_tokens),
		EvaluationTokens: uint64(t.evaluation_tokens)}
}

// Tensor copies a parameter, by its index in Model.Tensors, or its gradient or states. Its error is
// Unsupported if the tensor is not stored as one array of fp32, bf16 or fp16, or is in a GPU's memory.
func (t *Trainer) Tensor(index int, kind TensorKind) (*Tensor, error) {
	if index < 0 || index >= len(t.tensors) {
		return nil, failure(BadArgument, "tensor %d: there are %d", index, len(t.tensors))
	}
	var dtype C.DLDataType
	var device C.int32_t
	get := func(out unsafe.Pointer, bytes uint64) error {
		return t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
			return C.stowage_go_tensor(pointer, C.size_t(index), C.uint32_t(kind), &dtype, &device, out,
				C.uint64_t(bytes), cErr)
		})
	}
	if err := get(nil, 0); err != nil {
		return nil, err
	}
	if device != 1 {
		return nil, failure(Unsupported, "tensor %d lies in a GPU's memory", index)
	}
	tensor := &Tensor{Shape: append([]int64(nil), t.tensors[index].Shape...), DType: "float32",
		Values: make([]float32, t.tensors[index].Elements)}
	if dtype.bits == 32 {
		return tensor, get(unsafe.Pointer(floats(tensor.Values)), 4*t.tensors[index].Elements)
	}
	tensor.Bits = make([]uint16, len(tensor.Values))
	if err := get(unsafe.Pointer(&tensor.Bits[0]), 2*t.tensors[index].Elements); err != nil {
		return nil, err
	}
	value := fromFP16
	tensor.DType = "float16"
	if dtype.code == 4 {
		value, tensor.DType = fromBF16, "bfloat16"
	}
	for i, bits := range tensor.Bits {
		tensor.Values[i] = value(bits)
	}
	return tensor, nil
}

func fromBF16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// IEEE 754 binary16: a sign, five bits of exponent, ten of the fraction.
func fromFP16(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10&31), uint32(bits&1023)
	switch {
	case exponent == 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	case exponent == 0:
		value := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(value))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// SetTensor overwrites a parameter. The number of values must be the same.
func (t *Trainer) SetTensor(index int, values []float32) error {
	if index < 0 || index >= len(t.tensors) || uint64(len(values)) != t.tensors[index].Elements {
		return failure(BadArgument, "tensor %d: there is no tensor of %d values with that index", index,
			len(values))
	}
	shape := t.tensors[index].Shape
	return t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return C.stowage_go_set_tensor(pointer, C.size_t(index), floats(values),
			(*C.int64_t)(unsafe.Pointer(&shape[0])), C.int32_t(len(shape)), cErr)
	})
}

func (t *Trainer) withPath(path string,
	call func(pointer *C.stw_trainer, path *C.char, cErr *C.stw_error) C.stw_status) error {
	if err := noZero(path); err != nil {
		return err
	}
	var given texts
	defer func() { given.free() }()
	return t.call(func(pointer *C.stw_trainer, cErr *C.stw_error) C.stw_status {
		return call(pointer, given.orNull(path), cErr)
	})
}

// Save writes a checkpoint, which can be restored with any budget.
func (t *Trainer) Save(path string) error {
	return t.withPath(path, func(pointer *C.stw_trainer, path *C.char, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_save(pointer, path, cErr)
	})
}

// Restore reads a checkpoint. Errors: Corrupt, and BadState, which names the field that does not match. After
// an error the trainer is unchanged.
func (t *Trainer) Restore(path string) error {
	return t.withPath(path, func(pointer *C.stw_trainer, path *C.char, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_restore(pointer, path, cErr)
	})
}

// ExportModel writes the model for transformers. For a model with adapters, it writes only the adapters, for
// PEFT.
func (t *Trainer) ExportModel(folder string) error {
	return t.withPath(folder, func(pointer *C.stw_trainer, path *C.char, cErr *C.stw_error) C.stw_status {
		return C.stw_trainer_export_model(pointer, path, cErr)
	})
}

// Stream is the stream of a CUDA device, else nil.
func (t *Trainer) Stream() unsafe.Pointer {
	pointer, err := t.use("Trainer")
	if err != nil {
		return nil
	}
	defer t.done()
	return C.stw_trainer_stream(pointer)
}

// VerifyCheckpoint reads a checkpoint once and compares every checksum.
func VerifyCheckpoint(path string) error {
	return withPath(path,
		func(path *C.char, cErr *C.stw_error) C.stw_status { return C.stw_checkpoint_verify(path, cErr) })
}
