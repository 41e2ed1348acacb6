//! Trains a model within a number of bytes: train TEXT [MODEL [STEPS [FOLDER]]]
//!
//! Plans how to train MODEL (a preset, a config.json or a folder; default "nano") on the bytes of the file
//! TEXT within one GiB, shows the plan, trains, evaluates, and writes a checkpoint and a model that
//! transformers can load into FOLDER.
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use stowage::{
    Dataset, DatasetOptions, Device, DeviceOptions, Model, Plan, PlanOptions, RunOptions, Trainer,
    TrainerOptions,
};

fn train(text: &str, source: &str, steps: u64, folder: &Path) -> stowage::Result<()> {
    let model = Model::open(source)?;
    let mut device = Device::open(DeviceOptions::default())?; // a GPU if there is one, else the CPU
    let about = device.info();
    let plan = Plan::new(
        &model,
        &PlanOptions { global_batch: 8, sequence: 64, memory_bytes: 1 << 30, ..Default::default() }
            .on(&about),
    )?;
    print!("{}", plan.report());
    let mut data = Dataset::open(
        text,
        &DatasetOptions { vocabulary: model.info().vocabulary, sequence: 64, ..Default::default() },
    )?;
    // allocates exactly the plan's arena; the run allocates nothing else
    let mut trainer = Trainer::new(&mut device, &model, &plan, TrainerOptions::default())?;
    trainer.run(
        &mut data,
        &RunOptions { until: steps, learning_rate: 1e-3, ..Default::default() },
        |_, now| {
            println!(
                "step {:3}  loss {:.4}  gradient norm {:.3}  {:.0} tokens/s",
                now.step, now.loss, now.grad_norm, now.tokens_per_second
            );
            ControlFlow::Continue(())
        },
    )?;
    println!("evaluation loss {:.4}", trainer.evaluate(&mut data, 4)?);
    trainer.save(folder.join("checkpoint.stw"))?;
    trainer.export_model(folder)
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| given.get(index).map_or(default, String::as_str);
    let (text, steps) = match (given.first(), argument(2, "100").parse()) {
        (Some(text), Ok(steps)) => (text, steps),
        _ => {
            eprintln!("usage: train TEXT [MODEL [STEPS [FOLDER]]]");
            return ExitCode::from(2);
        }
    };
    match train(text, argument(1, "nano"), steps, Path::new(argument(3, "."))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(plan) = error.plan() {
                eprint!("{}", plan.report()); // says why nothing fits, and what would
            }
            eprintln!("train: {error}");
            ExitCode::FAILURE
        }
    }
}
