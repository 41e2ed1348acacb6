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

// DatasetOptions are stw_dataset_options.
type DatasetOptions struct {
	Tokenizer   Tokenizer
	TokenType   TokenType // how ids are stored; TokenTypeAuto refuses a file that looks like another type
	Vocabulary  uint64    // every id must be smaller
	Sequence    uint64    // tokens of a sample
	Seed        *uint64   // chooses the windows of tokens; nil: 1337
	DocumentEnd *uint64
	// a file with one byte for each token, the sum of these marks: 1, the token is learned; 2, a document
	// begins with the token; 4, the token belongs to the document's second text (token type 1)
	Marks string
	// for classifiers: a file with one little-endian uint32 for each document, with TaskTokenLabel for each
	// token; with TaskLabels, TaskNumber, TaskSpans: LabelCount float32 for each document
	Labels     string
	LabelCount uint64
	Task       Task     // with Labels: the task of the model; TaskAutomatic: TaskLabel
	HeldOut    *float64 // share of the tokens, at the end of the file, that is held out; nil: 0.1
	// for plans with a preference: documents that Marks begin are pairs, with chosen and rejected ones in
	// turn
	Pairs     bool
	Reference string // with pairs: the file that Trainer.WriteReference wrote
	// For masked language models. MaskRate is the share of tokens that are hidden; 0: none. MaskToken is the
	// token that they become. TokenKinds has one byte for each token of the vocabulary, the sum of these
	// kinds: 1, the token is special and never hidden; 2, it continues the word of the token before it. nil:
	// all are 0. MaskWholeWords hides whole words.
	MaskRate       float64
	MaskToken      uint64
	TokenKinds     []byte
	MaskWholeWords bool
	// evaluations cover the whole held-out part, in consecutive windows; excludes Marks and MaskRate
	Sequential bool
	Texts      uint64 // with Marks: the most documents of a sample, as PlanInfo.Texts says; 0: as many as fit
	Watch      *Watch // reports and cancels the opening; nil: none
}

// DatasetInfo has the numbers of tokens and samples of a dataset.
type DatasetInfo struct {
	Tokenizer                          Tokenizer
	TrainingTokens, EvaluationTokens   uint64
	TrainingSamples, EvaluationSamples uint64 // with marks; EvaluationSamples also with Sequential; else 0
	ContentHash                        uint64 // XXH3 of tokens, marks and labels
}

// Dataset is an open file of tokens, read window by window.
type Dataset struct {
	handle[*C.stw_dataset]
}

// OpenDataset opens text, or little-endian ids of options.TokenType (auto: the type in a .npy file, else
// uint16, or uint32 if the vocabulary exceeds 65,536). Errors: IOError, Corrupt.
func OpenDataset(path string, options DatasetOptions) (*Dataset, error) {
	if err := noZero(path, options.Marks, options.Labels, options.Reference); err != nil {
		return nil, err
	}
	var given texts
	defer func() { given.free() }()
	cOptions := C.stw_dataset_options{struct_size: C.uint32_t(unsafe.Sizeof(C.stw_dataset_options{})),
		tokenizer: C.uint32_t(options.Tokenizer), path: given.orNull(path),
		vocabulary: C.uint64_t(options.Vocabulary), sequence: C.uint64_t(options.Sequence),
		marks: given.orNull(options.Marks), labels: given.orNull(options.Labels),
		label_count: C.uint64_t(options.LabelCount), task: C.uint32_t(options.Task),
		pairs: number(options.Pairs), reference: given.orNull(options.Reference)}
	cOptions.mask_rate, cOptions.mask_token, cOptions.mask_whole_words = C.double(options.MaskRate),
		C.uint64_t(options.MaskToken), number(options.MaskWholeWords)
	cOptions.sequential = number(options.Sequential)
	cOptions.texts = C.uint64_t(options.Texts)
	cOptions.token_type = C.uint32_t(options.TokenType)
	if options.TokenKinds != nil {
		if uint64(len(options.TokenKinds)) != options.Vocabulary {
			return nil, failure(BadArgument,
				"TokenKinds: expected %d bytes, one for each token of the vocabulary, found %d",
				options.Vocabulary, len(options.TokenKinds))
		}
		kinds := C.CBytes(options.TokenKinds)
		defer C.free(kinds)
		cOptions.token_kinds = (*C.uint8_t)(kinds)
	}
	if options.Seed != nil {
		cOptions.set_mask |= C.STW_SET_DATASET_SEED
		cOptions.seed = C.uint64_t(*options.Seed)
	}
	if options.DocumentEnd != nil {
		cOptions.set_mask |= C.STW_SET_DOCUMENT_END
		cOptions.document_end = C.uint64_t(*options.DocumentEnd)
	}
	if options.HeldOut != nil {
		cOptions.set_mask |= C.STW_SET_HELD_OUT
		cOptions.held_out = C.double(*options.HeldOut)
	}
	watch, err := options.Watch.begin()
	if err != nil {
		return nil, err
	}
	cOptions.watch = watch
	var pointer *C.stw_dataset
	cErr := newError()
	if err := options.Watch.finish(check(C.stw_dataset_open(&pointer, &cOptions, &cErr), &cErr)); err != nil {
		return nil, err
	}
	dataset := &Dataset{handle[*C.stw_dataset]{pointer: pointer,
		end: func(p *C.stw_dataset) { C.stw_dataset_close(p) }}}
	runtime.SetFinalizer(dataset, func(d *Dataset) { d.Close() })
	return dataset, nil
}

// Close closes the file.
func (d *Dataset) Close() error {
	if d != nil {
		d.close()
	}
	return nil
}

// Info describes the dataset; zero after Close.
func (d *Dataset) Info() DatasetInfo {
	pointer, err := d.use("Dataset")
	if err != nil {
		return DatasetInfo{}
	}
	defer d.done()
	info := sized[C.stw_dataset_info]()
	C.stw_dataset_query(pointer, &info)
	return DatasetInfo{Tokenizer: Tokenizer(info.tokenizer), TrainingTokens: uint64(info.training_tokens),
		EvaluationTokens: uint64(info.evaluation_tokens), TrainingSamples: uint64(info.training_samples),
		EvaluationSamples: uint64(info.evaluation_samples), ContentHash: uint64(info.content_hash)}
}
