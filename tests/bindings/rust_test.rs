//! Tests bindings/rust with the library. rust_test.py runs it.
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use stowage::*;

const GPT2: &str = concat!(
    r#"{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "#,
    r#""n_embd": 32, "n_layer": 2, "n_head": 2,
                      "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}"#
);
/// A classifier with three labels and two token types.
const BERT: &str = concat!(
    r#"{"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 64, "#,
    r#""max_position_embeddings": 16, "hidden_size": 32,
                      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "#,
    r#""id2label": {"0": "a", "1": "b", "2": "c"}}"#
);
const LENGTH: usize = 16;

fn tokens() -> Vec<i32> {
    let mut seed = 1u32;
    (0..4 * LENGTH)
        .map(|_| {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            (seed >> 26) as i32
        })
        .collect()
}

struct World {
    trainer: Trainer, // dropped before or after its device; both orders are correct
    model: Model,
    device: Device,
}

fn small() -> PlanOptions<'static> {
    PlanOptions {
        global_batch: 4,
        sequence: LENGTH as u64,
        memory_bytes: 64 << 20,
        states: States::Bits32,
        threads: 2,
        ..Default::default()
    }
}

fn world_of(
    model: Model,
    plan: PlanOptions,
    options: TrainerOptions,
    device: DeviceOptions,
) -> Result<World> {
    let mut device = Device::open(DeviceOptions { backend: Backend::Cpu, threads: 2, ..device })?;
    let plan = Plan::new(&model, &plan)?;
    let trainer = Trainer::new(&mut device, &model, &plan, options)?;
    Ok(World { trainer, model, device })
}

fn world(plan: PlanOptions, options: TrainerOptions) -> World {
    world_of(gpt2(), plan, options, DeviceOptions::default()).unwrap()
}

fn gpt2() -> Model {
    Model::new(&ModelOptions { config_json: Some(GPT2), ..Default::default() }).unwrap()
}

impl World {
    fn steps(&mut self, count: usize) -> StepResult {
        let tokens = tokens();
        (0..count)
            .map(|_| self.trainer.step(&Batch::of_tokens(&tokens, LENGTH), 1e-3).unwrap())
            .last()
            .unwrap()
    }

    fn weights(&mut self) -> Vec<Vec<u32>> {
        let count = self.model.tensors().len();
        (0..count)
            .map(|index| {
                self.trainer
                    .tensor(index, TensorKind::Parameter)
                    .unwrap()
                    .as_f32()
                    .unwrap()
                    .iter()
                    .map(|x| x.to_bits())
                    .collect()
            })
            .collect()
    }
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("stowage-rust-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn data(folder: &Path) -> Dataset {
    let bytes: Vec<u8> = (0..4000u32).flat_map(|i| ((i * i / 7 % 64) as u16).to_le_bytes()).collect();
    let path = folder.join("data.bin");
    std::fs::write(&path, bytes).unwrap();
    Dataset::open(&path, &DatasetOptions { vocabulary: 64, sequence: LENGTH as u64, ..Default::default() })
        .unwrap()
}

/// Checks the layout that abi_test.c asserts for C.
#[test]
fn layout_agrees_with_c() {
    let asserted =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/api/abi_test.c"))
            .unwrap();
    let here = stowage::abi::layout();
    let mut compared = 0;
    for (macro_name, with_field) in [("SIZE(", false), ("AT(", true)] {
        for found in asserted.split(macro_name).skip(1) {
            let words: Vec<&str> = found.split(')').next().unwrap().split(',').map(str::trim).collect();
            if words.len() != 2 + with_field as usize || !words[0].starts_with("stw_") {
                continue;
            }
            let (field, number) = if with_field { (words[1], words[2]) } else { ("", words[1]) };
            if let Ok(number) = number.parse::<usize>() {
                let mine = here
                    .iter()
                    .find(|(kind, name, _)| *kind == words[0] && *name == field)
                    .unwrap_or_else(|| panic!("no {words:?}"));
                assert_eq!(mine.2, number, "{words:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn names_its_version() {
    assert_eq!(version(), (0, 1, 0));
    assert!(build_info().contains("stowage 0.1.0"));
    assert!(presets().contains(&"nano"));
    assert!(profiles().iter().any(|profile| profile.name == "rtx4090" && profile.figures.memory > 23 << 30));
    assert_eq!(devices().unwrap()[0].backend(), Backend::Cpu);
    let device = Device::open(DeviceOptions { threads: 1, ..Default::default() }).unwrap();
    assert!(!device.info().name.is_empty());
    assert_eq!(device.info().profile, "cpu");
}

#[test]
fn failures_are_errors() {
    let error = Model::open("no/such/model").unwrap_err();
    assert_eq!((error.status, error.status.name()), (Status::IO_ERROR, "STW_IO_ERROR"));
    assert!(error.to_string().contains("no such file or folder"), "{error}");
    assert!(error.plan().is_none());
    assert_eq!(Model::open("na\0no").unwrap_err().status, Status::BAD_ARGUMENT);
    let rate = ModelOptions { source: Some(Path::new("nano")), dropout: Some(7.0), ..Default::default() };
    assert_eq!(Model::new(&rate).unwrap_err().status, Status::BAD_ARGUMENT);
    let free: Box<dyn std::error::Error + Send + Sync> = Box::new(error); // as hosts pass errors on
    assert!(free.source().is_none());
}

#[test]
fn models_list_their_tensors() {
    let model = gpt2();
    assert_eq!((model.info().layers, model.info().architecture.as_str()), (2, "gpt2"));
    let tensors = model.tensors();
    let index =
        model.tensor_index("transformer.wte.weight").or_else(|| model.tensor_index("wte.weight")).unwrap();
    assert_eq!((tensors[index].shape.as_slice(), tensors[index].elements), (&[64, 32][..], 2048));
    assert_eq!(model.tensor_index("no such tensor"), None);
    assert!(model.config().contains("\"model_type\": \"gpt2\""));
    assert!(model.labels().is_empty());
    let labels = ModelOptions { config_json: Some(GPT2), label_names: &["no", "yes"], ..Default::default() };
    assert_eq!(Model::new(&labels).unwrap().labels(), ["no", "yes"]);
    assert_eq!(
        Model::new(&ModelOptions { label_count: 3, ..labels }).unwrap_err().status,
        Status::BAD_ARGUMENT
    );
}

#[test]
fn over_budget_is_an_answer() {
    let model = Model::open("nano").unwrap();
    let options = PlanOptions { global_batch: 4, sequence: 64, memory_bytes: 1 << 20, ..Default::default() };
    let error = Plan::new(&model, &options).unwrap_err();
    assert_eq!(error.status, Status::OVER_BUDGET);
    let plan = error.plan().unwrap();
    assert_eq!(plan.info().fits, 0);
    assert_eq!(plan.info().minimum_bytes, error.bytes_needed);
    assert!(plan.report().contains("does not fit"));
    assert!(plan.relaxations().iter().any(|one| !one.change.is_empty() && one.saves_bytes > 0));
    let fits = Plan::new(&model, &PlanOptions { memory_bytes: error.bytes_needed, ..options }).unwrap();
    assert_eq!(fits.info().peak, error.bytes_needed);
}

#[test]
fn plans_have_all_fields() {
    let model = gpt2();
    let groups = [ParameterGroup { pattern: "embeddings", frozen: Some(true), ..Default::default() }];
    let plan = Plan::new(&model, &PlanOptions { groups: &groups, ..small() }).unwrap();
    let all = Plan::new(&model, &small()).unwrap();
    assert!(plan.info().gradients < all.info().gradients);
    plan.verify().unwrap();
    assert_eq!(
        Plan::load(&model, plan.json()).unwrap().info().fingerprint.as_str(),
        plan.info().fingerprint.as_str()
    );
    assert_eq!(Plan::load(&model, &plan.json().replace("64", "65")).unwrap_err().status, Status::CORRUPT);
    assert!(plan.picture(Picture::Svg).unwrap().ends_with("</svg>\n"));
    let buffers = plan.buffers();
    assert!(buffers.iter().any(|buffer| buffer.lifetime.is_none() && buffer.owner == "parameters"));
    assert!(buffers.iter().any(|buffer| buffer.lifetime.is_some()));
    assert!(buffers.iter().all(|buffer| buffer.offset + buffer.bytes <= plan.info().arena));
    let device = Device::open(DeviceOptions { backend: Backend::Cpu, threads: 1, ..Default::default() })
        .unwrap()
        .info();
    let on_one = Plan::new(&model, &PlanOptions { threads: 0, ..small() }.on(&device)).unwrap();
    assert_eq!(
        on_one.info().arena,
        Plan::new(&model, &PlanOptions { threads: 1, ..small() }).unwrap().info().arena
    );
    let points = plan.frontier().unwrap();
    assert!(points
        .windows(2)
        .all(|two| two[0].peak < two[1].peak && two[0].step_seconds > two[1].step_seconds));
    assert_eq!(Plan::longest_sequence(&model, &small()).unwrap(), 16);
    let offloaded = PlanOptions { host_bytes: 1 << 30, memory_bytes: points[0].peak / 2, ..small() };
    if let Ok(plan) = Plan::new(&model, &offloaded) {
        assert!(plan.offloads().iter().any(|one| one.bytes > 0 && !one.tensors.is_empty()));
    }
}

#[test]
fn packs() {
    let lifetimes =
        [(0, 2, 10), (1, 3, 5), (2, 4, 10)].map(|(lower, upper, size)| Lifetime { lower, upper, size });
    let found = pack(&lifetimes, 0, 0).unwrap();
    assert_eq!((found.answer, found.height, found.offsets.unwrap().len()), (PackAnswer::Optimal, 15, 3));
    let found = pack(&lifetimes, 14, 0).unwrap();
    assert_eq!((found.answer, found.offsets), (PackAnswer::Impossible, None));
    let wrong = [Lifetime { lower: 2, upper: 1, size: 3 }];
    let held = [
        Constraint {
            alignment: 64,
            gaps: &[Gap { lower: 4, upper: 6, first: 0, end: 0 }],
            ..Default::default()
        },
        Constraint { alignment: 64, ..Default::default() },
        Constraint { offset: Some(0), ..Default::default() },
    ];
    let buffers = [
        Lifetime { lower: 0, upper: 10, size: 8 },
        Lifetime { lower: 0, upper: 10, size: 5 },
        Lifetime { lower: 4, upper: 6, size: 8 },
    ];
    assert_eq!(pack_constrained(&buffers, &held, 0, 0).unwrap().offsets, Some(vec![0, 64, 0]));
    assert_eq!(pack_constrained(&buffers, &held[..1], 0, 0).unwrap_err().status, Status::BAD_ARGUMENT);
    assert_eq!(pack(&wrong, 0, 0).unwrap_err().status, Status::BAD_ARGUMENT);
    assert_eq!(pack(&[], 0, 0).unwrap().height, 0);
}

#[test]
fn every_budget_trains_the_same_bits() {
    let mut all = world(small(), TrainerOptions::default());
    let smallest = Plan::new(&all.model, &small()).unwrap().frontier().unwrap()[0].peak;
    let mut least = world(PlanOptions { memory_bytes: smallest, ..small() }, TrainerOptions::default());
    let first = all.steps(1);
    assert!((first.loss - 64f64.ln()).abs() < 0.5, "{}", first.loss);
    assert_eq!(first.targets, 60);
    assert!(all.steps(9).loss < first.loss);
    least.steps(10);
    assert!(all.weights() == least.weights());
    let plan = all.trainer.replan(smallest).unwrap();
    assert_eq!(plan.info().peak, smallest);
    all.steps(2);
    least.steps(2);
    assert!(all.weights() == least.weights());
    assert_eq!(all.trainer.replan(1).unwrap_err().status, Status::OVER_BUDGET);
}

#[test]
fn targets_are_labels_one_further() {
    let tokens = tokens();
    let mut targets: Vec<i32> = tokens.iter().skip(1).copied().chain([0]).collect();
    targets.iter_mut().skip(LENGTH - 1).step_by(LENGTH).for_each(|last| *last = -100);
    let (mut one, mut other) =
        (world(small(), TrainerOptions::default()), world(small(), TrainerOptions::default()));
    one.steps(1);
    let lengths = [LENGTH as i32; 4];
    let batch = Batch {
        lengths: Some(&lengths),
        ..Batch::with_targets(Rows::new(&tokens, LENGTH), Rows::new(&targets, LENGTH))
    };
    other.trainer.step(&batch, 1e-3).unwrap();
    assert!(one.weights() == other.weights());
    let weights = vec![1.0; 64];
    let refused = Batch { weights: Some(Rows::new(&weights, LENGTH)), ..batch };
    assert_eq!(other.trainer.step(&refused, 1e-3).unwrap_err().status, Status::UNSUPPORTED);
    let ragged = other.trainer.step(&Batch::of_tokens(&tokens[1..], LENGTH), 1e-3).unwrap_err();
    assert_eq!(
        (ragged.status, ragged.message.as_str()),
        (Status::BAD_ARGUMENT, "\"tokens\": 63 numbers cannot form rows of 16")
    );
    assert_eq!(
        other.trainer.step(&Batch::of_tokens(&[99; 64], LENGTH), 1e-3).unwrap_err().status,
        Status::BAD_ARGUMENT
    );
}

#[test]
fn runs_over_datasets() {
    let folder = folder("run");
    let (mut world, mut data) = (world(small(), TrainerOptions::default()), data(&folder));
    assert_eq!(data.info().training_tokens, 3600);
    let mut seen = Vec::new();
    let options = RunOptions { until: 6, learning_rate: 1e-2, progress_every: 2, ..Default::default() };
    let ended = world
        .trainer
        .run(&mut data, &options, |between, now| {
            seen.push((
                now.step,
                now.loss,
                between.generate(&[1, 2], 3, &GenerateOptions::default()).unwrap().len(),
            ));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((ended, seen.iter().map(|one| one.0).collect::<Vec<_>>()), (Ended::Finished, vec![2, 4, 6]));
    assert!(seen.iter().all(|one| one.1 > 0.0 && one.2 == 3));
    let loss = world.trainer.evaluate(&mut data, 2).unwrap();
    assert!(loss.is_finite() && world.trainer.progress().evaluation_loss == loss);
    assert_eq!(world.trainer.progress().phase(), Some(Phase::Idle));
    let stopped = world
        .trainer
        .run(&mut data, &RunOptions { until: 20, ..options.clone() }, |_, _| ControlFlow::Break(()))
        .unwrap();
    assert_eq!((stopped, world.trainer.progress().step), (Ended::Stopped, 8));
    let mut losses = Vec::new();
    world
        .trainer
        .run(&mut data, &options_until(10), |between, _| {
            losses.push(between.evaluate(2).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(losses.len() == 2 && losses[1] != losses[0]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        world.trainer.run(&mut data, &options_until(20), |_, _| panic!("of the host"))
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"of the host"));
    assert_eq!(
        world.trainer.run(&mut data, &options_until(12), |_, _| ControlFlow::Continue(())).unwrap(),
        Ended::Finished
    );
    assert_eq!(
        world.trainer.generate(&[1], usize::MAX, &GenerateOptions::default()).unwrap_err().status,
        Status::UNSUPPORTED_SHAPE
    );
    assert_eq!(
        world.trainer.generate(&[1], 16, &GenerateOptions::default()).unwrap_err().status,
        Status::UNSUPPORTED_SHAPE
    );
    std::fs::remove_dir_all(folder).unwrap();
}

fn options_until(until: u64) -> RunOptions {
    RunOptions { until, ..Default::default() }
}

#[test]
fn checkpoints_continue_with_the_same_bits() {
    let folder = folder("checkpoint");
    let path = folder.join("checkpoint.stw");
    let mut whole = world(small(), TrainerOptions::default());
    whole.steps(2);
    whole.trainer.save(&path).unwrap();
    verify_checkpoint(&path).unwrap();
    whole.steps(2);
    let mut other = world(PlanOptions { micro_batch: 1, ..small() }, TrainerOptions::default());
    other.trainer.restore(&path).unwrap();
    other.steps(2);
    assert!(whole.weights() == other.weights());
    whole.trainer.export_model(&folder).unwrap();
    let read = Model::open(&folder).unwrap();
    assert_eq!(read.info().has_weights, 1);
    let mut again = world_of(read, small(), TrainerOptions::default(), DeviceOptions::default()).unwrap();
    assert!(again.weights() == whole.weights());
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(verify_checkpoint(&path).unwrap_err().status, Status::CORRUPT);
    assert_eq!(other.trainer.restore(&path).unwrap_err().status, Status::CORRUPT);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tensors_are_views_and_can_be_set() {
    let mut world = world(small(), TrainerOptions::default());
    world.steps(1);
    let index = world.model.tensors().iter().position(|tensor| tensor.shape.len() == 1).unwrap();
    let count = world.model.tensors()[index].elements as usize;
    world.trainer.set_tensor(index, &vec![0.5; count]).unwrap();
    let view = world.trainer.tensor(index, TensorKind::Parameter).unwrap();
    assert_eq!((view.shape(), view.dtype(), view.as_bits16()), (&[count as i64][..], DType::F32, None));
    assert!(view.as_f32().unwrap().iter().all(|&x| x == 0.5));
    drop(view);
    assert!(world
        .trainer
        .tensor(index, TensorKind::FirstMoment)
        .unwrap()
        .as_f32()
        .unwrap()
        .iter()
        .any(|&x| x != 0.0));
    assert_eq!(world.trainer.set_tensor(index, &[1.0]).unwrap_err().status, Status::BAD_ARGUMENT);
    assert_eq!(world.trainer.set_tensor(1000, &[1.0]).unwrap_err().status, Status::BAD_ARGUMENT);
    let mut half = world_of(
        gpt2(),
        PlanOptions { precision: Precision::Bf16, ..small() },
        TrainerOptions::default(),
        DeviceOptions::default(),
    )
    .unwrap();
    let view = half.trainer.tensor(0, TensorKind::Parameter).unwrap();
    assert_eq!((view.dtype(), view.as_bits16().unwrap().len(), view.as_f32()), (DType::Bf16, 64 * 32, None));
}

/// Samples of two documents of 8 tokens. The last six tokens of a document have targets.
struct Pairs {
    tokens: Vec<i32>,
    targets: Vec<i32>,
    positions: Vec<i32>,
}

impl Pairs {
    fn new() -> Pairs {
        let tokens = tokens();
        let targets =
            (0..tokens.len()).map(|i| if matches!(i % 8, 0 | 7) { -100 } else { tokens[i + 1] }).collect();
        Pairs { positions: (0..tokens.len() as i32).map(|i| i % 8).collect(), tokens, targets }
    }

    fn batch(&self) -> Batch<'_> {
        let rows = |values| Rows::new(values, LENGTH);
        Batch {
            positions: Some(rows(&self.positions)),
            ..Batch::with_targets(rows(&self.tokens), rows(&self.targets))
        }
    }
}

#[test]
fn prefers_the_chosen_answers() {
    let dpo = PlanOptions { preference: Preference::Dpo, ..small() };
    let mut world = world(dpo.clone(), TrainerOptions { beta: 0.5, ..Default::default() });
    let pairs = Pairs::new();
    let reference = world.trainer.log_probabilities(&pairs.batch()).unwrap();
    assert_eq!(reference.len(), pairs.targets.len());
    assert!(reference.iter().zip(&pairs.targets).all(|(&value, &target)| (value < 0.0) == (target >= 0)));
    let first = Pairs {
        tokens: pairs.tokens[..LENGTH].to_vec(),
        targets: pairs.targets[..LENGTH].to_vec(),
        positions: pairs.positions[..LENGTH].to_vec(),
    };
    assert_eq!(world.trainer.log_probabilities(&first.batch()).unwrap(), reference[..LENGTH]);
    let batch = Batch { reference: Some(Rows::new(&reference, LENGTH)), ..pairs.batch() };
    let done = world.trainer.step(&batch, 1e-2).unwrap();
    assert!((done.loss - 2f64.ln()).abs() < 1e-5, "{}", done.loss);
    assert_eq!((done.accuracy, done.targets), (0.0, 4));
    let last = (0..20).map(|_| world.trainer.step(&batch, 1e-2).unwrap()).last().unwrap();
    assert!(last.loss < 0.6, "{}", last.loss);
    assert_eq!((last.accuracy, world.trainer.progress().accuracy), (1.0, 1.0));
    assert_eq!(world.trainer.step(&pairs.batch(), 1e-2).unwrap_err().status, Status::BAD_ARGUMENT);
    assert_eq!(world.trainer.log_probabilities(&batch).unwrap_err().status, Status::UNSUPPORTED);
    let train_with = |preference, options| {
        world_of(gpt2(), PlanOptions { preference, ..small() }, options, DeviceOptions::default()).map(|_| ())
    };
    let margin = || TrainerOptions { margin: Some(0.0), ..Default::default() };
    assert_eq!(train_with(Preference::Dpo, margin()).unwrap_err().status, Status::BAD_ARGUMENT);
    assert!(train_with(Preference::Simpo, TrainerOptions { answer_share: 1.0, ..margin() }).is_ok());
}

#[test]
fn writes_references() {
    let folder = folder("reference");
    let (tokens, marks, reference) =
        (folder.join("tokens.bin"), folder.join("marks"), folder.join("reference"));
    std::fs::write(
        &tokens,
        (0..640u32).flat_map(|i| ((i * i / 7 % 61) as u16).to_le_bytes()).collect::<Vec<u8>>(),
    )
    .unwrap();
    // documents, alternately chosen and rejected
    std::fs::write(&marks, [2u8, 0, 0, 0, 0, 1, 1, 1].repeat(80)).unwrap();
    let mut world = world(PlanOptions { preference: Preference::Dpo, ..small() }, TrainerOptions::default());
    let options = DatasetOptions {
        vocabulary: 64,
        sequence: LENGTH as u64,
        marks: Some(&marks),
        pairs: true,
        ..Default::default()
    };
    let mut bare = Dataset::open(&tokens, &options).unwrap();
    let refused =
        world.trainer.run(&mut bare, &options_until(1), |_, _| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(refused.status, Status::BAD_STATE);
    world.trainer.write_reference(&mut bare, &reference).unwrap();
    let written = std::fs::read(&reference).unwrap();
    assert_eq!(written.len(), 640 * 4 + 32);
    assert!(written[..640 * 4]
        .chunks_exact(4)
        .enumerate()
        .all(
            |(i, bytes)| (f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) < 0.0) == (i % 8 > 4)
        ));
    let mut data =
        Dataset::open(&tokens, &DatasetOptions { reference: Some(&reference), ..options }).unwrap();
    let loss = world.trainer.evaluate(&mut data, 100).unwrap();
    assert!((loss - 2f64.ln()).abs() < 1e-5, "{loss}");
    let again = folder.join("again");
    world
        .trainer
        .run(&mut data, &options_until(1), |between, now| {
            assert!((now.loss - 2f64.ln()).abs() < 1e-5, "{}", now.loss);
            between.write_reference(&again).unwrap();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(std::fs::read(&again).unwrap() != written); // after a further step of the model
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn hooks_change_gradients() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    // Twice the gradient over twice the targets gives the same step.
    let hook: GradientHook = Box::new(move |gradients| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(gradients.scale(), 1.0);
        let all = gradients.on_host().ok_or("on a GPU")?;
        all.data.iter_mut().for_each(|x| *x *= 2.0);
        *all.loss_sum *= 2.0;
        *all.target_count *= 2;
        Ok(())
    });
    let (mut one, mut other) = (
        world(small(), TrainerOptions { gradient_hook: Some(hook), ..Default::default() }),
        world(small(), TrainerOptions::default()),
    );
    assert_eq!(one.steps(3).targets, 2 * other.steps(3).targets);
    assert!(one.weights() == other.weights());
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn hooks_may_fail_and_panic() {
    let call = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&call);
    let hook: GradientHook = Box::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the network is gone".into()),
        1 => panic!("of the hook"),
        _ => Ok(()),
    });
    let mut world = world(small(), TrainerOptions { gradient_hook: Some(hook), ..Default::default() });
    let (before, tokens) = (world.weights(), tokens());
    let batch = Batch::of_tokens(&tokens, LENGTH);
    let error = world.trainer.step(&batch, 1e-3).unwrap_err();
    assert_eq!(error.status, Status::CALLBACK_FAILED);
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the network is gone");
    let panicked = catch_unwind(AssertUnwindSafe(|| world.trainer.step(&batch, 1e-3).map(|_| ())));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"of the hook"));
    assert!(before == world.weights());
    assert_eq!(world.trainer.step(&batch, 1e-3).unwrap().step, 1);
}

#[test]
fn other_threads_may_stop_it() {
    let folder = folder("cancel");
    let (mut one, mut data) = (world(small(), TrainerOptions::default()), data(&folder));
    let remote = one.trainer.remote();
    let ended = std::thread::scope(|scope| {
        let canceller = scope.spawn(|| {
            while remote.progress().unwrap().step < 3 {
                std::thread::yield_now();
            }
            remote.cancel();
        });
        let ended = one
            .trainer
            .run(&mut data, &options_until(1_000_000_000), |_, _| ControlFlow::Continue(()))
            .unwrap();
        canceller.join().unwrap();
        ended
    });
    assert_eq!(ended, Ended::Stopped);
    // a trainer can move to another thread
    let mut moved = std::thread::spawn(move || {
        one.steps(1);
        one
    })
    .join()
    .unwrap();
    let step = moved.trainer.progress().step;
    assert!(step >= 4, "{step}");
    moved.steps(1);
    drop(moved);
    remote.cancel(); // its trainer is gone
    assert!(remote.progress().is_none());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn watches_report_and_cancel() {
    // goes_on: 0: cancels; 2: panics
    let (done, goes_on) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(1)));
    let (seen, answer) = (Arc::clone(&done), Arc::clone(&goes_on));
    let watch = Watch::new(WatchOptions {
        interval_milliseconds: Some(0),
        notify: Some(Box::new(move |now| {
            if Work::from_number(now.work) == Some(Work::Step) {
                assert_eq!(Unit::from_number(now.unit), Some(Unit::MicroSteps));
                seen.lock().unwrap().push(now.done);
            }
            match answer.load(Ordering::Relaxed) {
                0 => ControlFlow::Break(()),
                1 => ControlFlow::Continue(()),
                _ => panic!("of the watch"),
            }
        })),
    })
    .unwrap();
    let plan = PlanOptions { micro_batch: 2, watch: Some(&watch), ..small() };
    let mut world = world(plan.clone(), TrainerOptions { watch: Some(watch.clone()), ..Default::default() });
    world.steps(1);
    let counted = done.lock().unwrap().clone();
    assert_eq!((counted.first(), counted.last()), (Some(&0), Some(&2)));
    assert_eq!(world.trainer.progress().micro_steps_done, 2);
    assert_eq!(watch.state().work, abi::STW_WORK_NONE);
    let tokens = tokens();
    let batch = Batch::of_tokens(&tokens, LENGTH);
    goes_on.store(0, Ordering::Relaxed);
    assert_eq!(world.trainer.step(&batch, 1e-3).unwrap_err().status, Status::CANCELLED);
    goes_on.store(2, Ordering::Relaxed);
    let panicked = catch_unwind(AssertUnwindSafe(|| world.trainer.step(&batch, 1e-3).map(|_| ())));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"of the watch"));
    goes_on.store(1, Ordering::Relaxed);
    watch.cancel();
    assert_eq!(Plan::new(&world.model, &plan).unwrap_err().status, Status::CANCELLED);
    let plan = Plan::new(&world.model, &small()).unwrap();
    watch.cancel();
    assert_eq!(plan.frontier_watched(Some(&watch)).unwrap_err().status, Status::CANCELLED);
    watch.cancel();
    assert_eq!(plan.picture_watched(Picture::Html, Some(&watch)).unwrap_err().status, Status::CANCELLED);
    assert_eq!(
        plan.picture_watched(Picture::Html, Some(&watch)).unwrap(),
        plan.picture(Picture::Html).unwrap()
    );
    let folder = folder("watched");
    world.model.export_watched(&folder, Some(&watch)).unwrap();
    assert_eq!(watch.state().total, 4 * world.model.info().parameters);
    goes_on.store(0, Ordering::Relaxed);
    assert_eq!(world.model.export_watched(&folder, Some(&watch)).unwrap_err().status, Status::CANCELLED);
    goes_on.store(1, Ordering::Relaxed);
    drop(watch); // its trainer keeps it
    world.steps(1);
}

#[test]
fn zero_is_a_seed() {
    let weights = |seed| {
        world_of(
            Model::new(&ModelOptions { config_json: Some(GPT2), seed, ..Default::default() }).unwrap(),
            small(),
            TrainerOptions::default(),
            DeviceOptions::default(),
        )
        .unwrap()
        .weights()
    };
    assert!(weights(None) == weights(Some(1337)));
    assert!(weights(Some(0)) != weights(Some(1337)));
}

struct Counted {
    held: Arc<AtomicU64>,
    most: Arc<AtomicU64>,
}

unsafe impl Memory for Counted {
    fn allocate(&self, bytes: usize, alignment: usize, _: *mut c_void) -> *mut c_void {
        let held = self.held.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.most.fetch_max(held, Ordering::Relaxed);
        unsafe {
            std::alloc::alloc(std::alloc::Layout::from_size_align(bytes, alignment.max(256)).unwrap())
                as *mut c_void
        }
    }
    unsafe fn release(&self, memory: *mut c_void, bytes: usize, _: *mut c_void) {
        self.held.fetch_sub(bytes as u64, Ordering::Relaxed);
        std::alloc::dealloc(memory as *mut u8, std::alloc::Layout::from_size_align(bytes, 256).unwrap());
    }
}

struct Backwards(Arc<Mutex<HashSet<std::thread::ThreadId>>>);

unsafe impl Executor for Backwards {
    fn run(&self, tasks: u32, task: &(dyn Fn(u32) + Sync)) {
        std::thread::scope(|scope| {
            for first in [0, 1] {
                scope.spawn(move || {
                    self.0.lock().unwrap().insert(std::thread::current().id());
                    (0..tasks).rev().filter(|index| index % 2 == first).for_each(task);
                });
            }
        });
    }
}

#[test]
fn the_host_provides_memory_threads_and_log() {
    let (held, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (threads, heard) = (Arc::new(Mutex::new(HashSet::new())), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&heard);
    let device = DeviceOptions {
        memory: Some(Box::new(Counted { held: Arc::clone(&held), most: Arc::clone(&most) })),
        executor: Some(Box::new(Backwards(Arc::clone(&threads)))),
        log_level: LogLevel::Info,
        log: Some(Box::new(move |level, component, message| {
            sink.lock().unwrap().push(format!("{level:?} {component} {message}"))
        })),
        ..Default::default()
    };
    let mut hosted = world_of(gpt2(), small(), TrainerOptions::default(), device).unwrap();
    let arena = Plan::new(&hosted.model, &small()).unwrap().info().arena;
    assert_eq!(most.load(Ordering::Relaxed), arena);
    let mut own = world(small(), TrainerOptions::default());
    hosted.steps(3);
    own.steps(3);
    assert!(hosted.weights() == own.weights());
    assert!(threads.lock().unwrap().len() > 1);
    let World { trainer, device, .. } = hosted;
    let first = device.next_log(0);
    drop(device); // it stays open until its trainer is gone
    assert_eq!(held.load(Ordering::Relaxed), arena);
    drop(trainer);
    assert_eq!(held.load(Ordering::Relaxed), 0);
    assert_eq!(first.is_some(), !heard.lock().unwrap().is_empty());
}

#[test]
fn labels_of_tokens() {
    let labels = ModelOptions {
        config_json: Some(GPT2),
        label_count: 3,
        task: Task::TokenLabel,
        ..Default::default()
    };
    let mut world =
        world_of(Model::new(&labels).unwrap(), small(), TrainerOptions::default(), DeviceOptions::default())
            .unwrap();
    let tokens = tokens();
    let classes: Vec<i32> = tokens.iter().map(|token| token % 3).collect();
    let batch = Batch::with_labels(Rows::new(&tokens, LENGTH), Rows::new(&classes, LENGTH));
    assert_eq!(world.trainer.step(&batch, 1e-3).unwrap().targets, tokens.len() as u64);
    let texts: [&[i32]; 2] = [&[1, 2, 3], &[4]];
    let rows = world.trainer.classify(&texts, None).unwrap();
    assert_eq!((rows.len(), rows[0].len()), (4, 3));
    assert_eq!(rows[3..], world.trainer.classify(&texts[1..], None).unwrap()[..]);
}

#[test]
fn classifiers() {
    let labels =
        ModelOptions { config_json: Some(GPT2), label_names: &["a", "b", "c"], ..Default::default() };
    let mut world =
        world_of(Model::new(&labels).unwrap(), small(), TrainerOptions::default(), DeviceOptions::default())
            .unwrap();
    let (tokens, classes) = (tokens(), [0, 1, 2, 1]);
    let batch = Batch::with_labels(Rows::new(&tokens, LENGTH), Rows::one_each(&classes));
    assert_eq!(world.trainer.step(&batch, 1e-3).unwrap().targets, 4);
    assert_eq!(world.trainer.logits(&tokens[..5]).unwrap().len(), 3);
    assert_eq!(
        world.trainer.generate(&tokens[..5], 1, &GenerateOptions::default()).unwrap_err().status,
        Status::UNSUPPORTED
    );
    let texts: [&[i32]; 2] = [&[1, 2, 3], &[4]];
    let expected = texts.map(|text| world.trainer.logits(text).unwrap());
    assert_eq!(world.trainer.classify(&texts, None).unwrap(), expected);
    assert!(world.trainer.classify(&[], None).unwrap().is_empty());
    // the model has no token types
    assert_eq!(world.trainer.classify(&texts, Some(&texts)).unwrap_err().status, Status::BAD_ARGUMENT);
    assert_eq!(world.trainer.classify(&[&[]], None).unwrap_err().status, Status::UNSUPPORTED_SHAPE);
    assert_eq!(
        self::world(small(), TrainerOptions::default()).trainer.classify(&texts, None).unwrap_err().status,
        Status::UNSUPPORTED
    );
}

#[test]
fn hidden_tokens() {
    let folder = folder("hidden");
    let tokens = folder.join("tokens.bin");
    std::fs::write(
        &tokens,
        (0..640u32).flat_map(|i| ((i * i / 7 % 61) as u16).to_le_bytes()).collect::<Vec<u8>>(),
    )
    .unwrap();
    let body = BERT.replace("BertForSequenceClassification", "BertModel");
    let model = Model::new(&ModelOptions {
        config_json: Some(&body),
        task: Task::MaskedLanguageModel,
        ..Default::default()
    })
    .unwrap();
    assert_eq!((model.info().task, model.info().head_is_new), (Task::MaskedLanguageModel as u32, 0));
    let mut world = world_of(model, small(), TrainerOptions::default(), DeviceOptions::default()).unwrap();
    let mut kinds = [0u8; 64];
    kinds[63] = 1;
    let options = DatasetOptions {
        vocabulary: 64,
        sequence: LENGTH as u64,
        mask_rate: 0.3,
        mask_token: 63,
        token_kinds: Some(&kinds),
        mask_whole_words: true,
        ..Default::default()
    };
    let mut data = Dataset::open(&tokens, &options).unwrap();
    let before = world.trainer.evaluate(&mut data, 3).unwrap();
    world.trainer.run(&mut data, &options_until(3), |_, _| ControlFlow::Continue(())).unwrap();
    assert_ne!(world.trainer.evaluate(&mut data, 3).unwrap(), before);
    for wrong in [&kinds[1..], &[4u8; 64]] {
        assert_eq!(
            Dataset::open(&tokens, &DatasetOptions { token_kinds: Some(wrong), ..options.clone() })
                .unwrap_err()
                .status,
            Status::BAD_ARGUMENT
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn several_labels_and_numbers() {
    for task in [Task::Labels, Task::Number] {
        let options = ModelOptions { config_json: Some(GPT2), label_count: 2, task, ..Default::default() };
        let mut world = world_of(
            Model::new(&options).unwrap(),
            small(),
            TrainerOptions::default(),
            DeviceOptions::default(),
        )
        .unwrap();
        let (tokens, values) = (tokens(), [0.0, 1.0, 1.0, 1.0, 0.5, 0.0, 1.0, 0.0]);
        assert_eq!(
            world
                .trainer
                .step(&Batch::with_values(Rows::new(&tokens, LENGTH), Rows::new(&values, 2)), 1e-3)
                .unwrap()
                .targets,
            4
        );
        assert_eq!(world.trainer.classify(&[&[1, 2, 3]], None).unwrap()[0].len(), 2);
        let wrong = Batch::with_values(Rows::new(&tokens, LENGTH), Rows::new(&values, 4));
        assert_eq!(world.trainer.step(&wrong, 1e-3).unwrap_err().status, Status::BAD_ARGUMENT);
    }
}

#[test]
fn encoders() {
    let model = Model::new(&ModelOptions { config_json: Some(BERT), ..Default::default() }).unwrap();
    assert_eq!((model.info().generates, model.info().token_types), (0, 2));
    let mut world = world_of(model, small(), TrainerOptions::default(), DeviceOptions::default()).unwrap();
    let texts: [&[i32]; 2] = [&[1, 2, 3], &[4, 5]];
    let (without, with) = (
        world.trainer.classify(&texts, None).unwrap(),
        world.trainer.classify(&texts, Some(&[&[0, 1, 1], &[0, 0]])).unwrap(),
    );
    assert_ne!(with[0], without[0]);
    assert_eq!((&with[1], with[1].len()), (&without[1], 3));
    for wrong in [&[&[0, 1, 1] as &[i32]] as &[&[i32]], &[&[0, 1], &[0, 0]], &[&[0, 1, 2], &[0, 0]]] {
        assert_eq!(
            world.trainer.classify(&texts, Some(wrong)).unwrap_err().status,
            Status::BAD_ARGUMENT,
            "{wrong:?}"
        );
    }
    let (tokens, classes, types) = (tokens(), [0, 1, 2, 1], [1; 4 * LENGTH]);
    let plain = Batch::with_labels(Rows::new(&tokens, LENGTH), Rows::one_each(&classes));
    let typed = Batch { token_types: Some(Rows::new(&types, LENGTH)), ..plain };
    assert_ne!(
        world.trainer.log_probabilities(&typed).unwrap(),
        world.trainer.log_probabilities(&plain).unwrap()
    );
    assert_eq!(world.trainer.step(&typed, 1e-3).unwrap().targets, 4);
    let refused = Batch { labels: Some(Rows::new(&tokens, LENGTH)), ..typed };
    assert_eq!(
        self::world(small(), TrainerOptions::default()).trainer.step(&refused, 1e-3).unwrap_err().status,
        Status::UNSUPPORTED
    );
}

#[test]
fn adapters() {
    let (base, tuned, merged) = (folder("base"), folder("tuned"), folder("merged"));
    world(small(), TrainerOptions::default()).trainer.export_model(&base).unwrap();
    let options = ModelOptions {
        source: Some(&base),
        adapter_rank: 4,
        adapter_targets: Some("c_attn"),
        ..Default::default()
    };
    let plan = PlanOptions { quantize: Quantize::Nf4, ..small() };
    let mut world = world_of(
        Model::new(&options).unwrap(),
        plan.clone(),
        TrainerOptions::default(),
        DeviceOptions::default(),
    )
    .unwrap();
    assert_eq!((world.model.info().adapter_rank, world.model.info().trainable), (4, 2 * 4 * (32 + 96)));
    let before = world.trainer.logits(&tokens()[..8]).unwrap();
    world.steps(3);
    let after = world.trainer.logits(&tokens()[..8]).unwrap();
    assert!(before != after);
    world.trainer.export_model(&tuned).unwrap();
    let read = Model::open(&tuned).unwrap(); // its adapter_config.json names the base model
    read.export(&merged).unwrap();
    assert_eq!(Model::open(&merged).unwrap().info().adapter_rank, 0);
    let mut again = world_of(read, plan, TrainerOptions::default(), DeviceOptions::default()).unwrap();
    assert!(again.trainer.logits(&tokens()[..8]).unwrap() == after);
    for folder in [base, tuned, merged] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn calibrates() {
    let mut world = world(small(), TrainerOptions::default());
    let profile = world.trainer.calibrate().unwrap();
    let plan = Plan::new(&world.model, &PlanOptions { profile: Some(&profile), ..small() }).unwrap();
    assert!(plan.info().step_seconds > 0.0);
    assert!(plan.json().contains("\"profile\""), "a plan holds its figures");
    let read = Profile::read(&profile).unwrap();
    assert!(
        read.name == "cpu"
            && read.figures.threads == 2
            && read.ops.iter().any(|op| op.name == "linear" && op.nanoseconds > 0),
        "{read:?}"
    );
    assert_eq!(Profile::read("{}").unwrap_err().status, Status::CORRUPT);
    let folder = folder("timeline");
    world.trainer.timeline(folder.join("step.json")).unwrap();
    assert!(std::fs::read_to_string(folder.join("step.json")).unwrap().contains("traceEvents"));
    std::fs::remove_dir_all(folder).unwrap();
    world.steps(1);
    assert_eq!(world.trainer.calibrate().unwrap_err().status, Status::BAD_STATE);
}
