// Trains a model within a number of bytes: train TEXT [MODEL [STEPS [FOLDER]]]
//
// Plans how to train MODEL (a preset, a config.json or a folder; default "nano") on the bytes of the file
// TEXT within one GiB, shows the plan, trains until Ctrl-C or its steps are done, evaluates, and writes a
// checkpoint and a model that transformers can load into FOLDER.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"stowage"
)

func train(ctx context.Context, stop func(), text, source string, steps uint64, folder string) error {
	model, err := stowage.OpenModel(source)
	if err != nil {
		return err
	}
	defer model.Close()
	device, err := stowage.OpenDevice(stowage.DeviceOptions{}) // a GPU if there is one, else the CPU
	if err != nil {
		return err
	}
	defer device.Close()
	plan, err := stowage.NewPlan(model, stowage.PlanOptions{GlobalBatch: 8, Sequence: 64,
		MemoryBytes: 1 << 30}.For(device))
	if plan != nil {
		defer plan.Close()
		fmt.Print(plan.Report()) // if the plan does not fit, the report says why, and what would
	}
	if err != nil {
		return err
	}
	data, err := stowage.OpenDataset(text, stowage.DatasetOptions{Vocabulary: model.Info().Vocabulary,
		Sequence: 64})
	if err != nil {
		return err
	}
	defer data.Close()
	// allocates exactly the plan's arena; the run allocates nothing else
	trainer, err := stowage.NewTrainer(device, model, plan, stowage.TrainerOptions{})
	if err != nil {
		return err
	}
	defer trainer.Close()
	err = trainer.Run(ctx, data, stowage.RunOptions{Until: steps, LearningRate: 1e-3,
		Progress: func(now stowage.Progress) bool {
			fmt.Printf("step %3d  loss %.4f  gradient norm %.3f  %.0f tokens/s\n", now.Step, now.Loss,
				now.GradNorm, now.TokensPerSecond)
			return true
		}})
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	stop() // Ctrl-C once more ends it at once
	loss, err := trainer.Evaluate(data, 4)
	if err != nil {
		return err
	}
	fmt.Printf("evaluation loss %.4f\n", loss)
	if err := trainer.Save(filepath.Join(folder, "checkpoint.stw")); err != nil {
		return err
	}
	return trainer.ExportModel(folder)
}

func main() {
	given := [4]string{"", "nano", "100", "."}
	copied := copy(given[:], os.Args[1:])
	steps, err := strconv.ParseUint(given[2], 10, 64)
	if copied == 0 || err != nil {
		fmt.Fprintln(os.Stderr, "usage: train TEXT [MODEL [STEPS [FOLDER]]]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := train(ctx, stop, given[0], given[1], steps, given[3]); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}
