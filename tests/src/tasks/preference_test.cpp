// Preference losses on pairs of documents. Their gradients equal those of a plain step with token weights
// that follow from the definitions. All plans give the same bits. Also tested: references, datasets of pairs.
#include <bit>
#include <cmath>
#include <random>

#include "planner/search/pricing.h"
#include "src/data/reference_file.h"
#include "src/trainer/trainer.h"
#include "tests/src/small_models.h"

namespace stw::preference_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 40;
#ifdef STW_SANITIZED
constexpr int64_t micro_batches[] = {5};
#else
constexpr int64_t micro_batches[] = {1, 2, 5, 7};
#endif

Request pair_request(Preference preference, int64_t batch, int64_t micro_batch = 0) {
  Request r = request_for(batch, sequence, 2);
  r.micro_batch = micro_batch;
  r.inputs = {true, false, preference};
  return r;
}

// Pairs of documents: each document has a prompt without targets, which may be empty, and an answer with
// targets. A sample holds three to eight whole documents, and perhaps the beginning of another one.
GlobalBatch pair_batch(uint64_t seed, int64_t samples) {
  GlobalBatch batch = random_batch(seed, samples, sequence);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t s = 0; s < samples; ++s) {
    int64_t left = 0, prompt = 0;
    for (int64_t i = 0, position = 0; i < sequence; ++i, ++position) {
      if (left-- == 0)
        left = static_cast<int64_t>(4 + random() % 9), prompt = static_cast<int64_t>(random() % 4),
        position = 0;
      batch.positions.push_back(static_cast<int32_t>(position));
      if (left == 0 || position < prompt) batch.targets[s * sequence + i] = kernels::ignored_target;
    }
  }
  return batch;
}

std::vector<float> losses_of(Trainer& trainer, const GlobalBatch& batch) {
  std::vector<float> losses(batch.tokens.size());
  const Status status = trainer.log_probabilities(
      batch.source(), batch.samples(), [&](uint64_t sample, const float* of_sample) {
        std::copy_n(of_sample, sequence, losses.begin() + static_cast<std::ptrdiff_t>(sample * sequence));
        return ok();
      });
  EXPECT_TRUE(status) << status.error().message;
  return losses;
}

// A batch of pairs, with another model's log-probabilities as the reference.
GlobalBatch with_reference(GlobalBatch batch, const SmallModel& config) {
  const auto model = model_of(config, 99);
  Request r = request_for(static_cast<int64_t>(batch.samples()), sequence);
  r.inputs = {true};
  auto trainer = trainer_for(model, plan_for(*model, r));
  for (const float loss : losses_of(*trainer, batch)) batch.reference.push_back(-loss);
  return batch;
}

constexpr Preference all_preferences[] = {Preference::dpo, Preference::ipo, Preference::simpo,
                                          Preference::orpo};

TrainerOptions options_for(Preference preference) {
  TrainerOptions o;
  o.preference.beta = 0.7;
  o.preference.answer_share = 0.25;
  if (preference == Preference::simpo) o.preference.margin = 0.3;
  if (preference == Preference::simpo || preference == Preference::dpo) o.label_smoothing = 0.1;
  return o;
}

struct Expected {
  double loss = 0, pairs = 0, correct_pairs = 0;
  // A weight for each token. A plain step on all targets with these weights has the same gradient.
  std::vector<float> weights;
};

// Computes the loss and the weights from the definitions in stowage.h.
Expected expected(const GlobalBatch& batch, const std::vector<float>& losses, Preference kind) {
  const double beta = 0.7, share = 0.25, smoothing = 0.1, margin = 0.3;
  Expected all;
  all.weights.resize(losses.size());
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (size_t first = 0; first < losses.size(); first += static_cast<size_t>(sequence)) {
    std::vector<size_t> begins;
    for (size_t i = first; i < first + static_cast<size_t>(sequence); ++i)
      if (batch.positions[i] == 0) begins.push_back(i);
    begins.push_back(first + static_cast<size_t>(sequence));
    for (size_t d = 0; d + 2 < begins.size(); d += 2) {
      double p[2] = {}, r[2] = {}, n[2] = {};
      for (size_t k = 0; k < 2; ++k)
        for (size_t i = begins[d + k]; i < begins[d + k + 1]; ++i)
          if (batch.targets[i] >= 0)
            p[k] -= static_cast<double>(losses[i]), r[k] += static_cast<double>(batch.reference[i]),
                n[k] += 1;
      if (n[0] == 0 || n[1] == 0) continue;
      double by[2] = {}, ahead = 0;
      const auto either_way = [&](double x, double by_x0, double by_x1) {
        all.loss -= (1 - smoothing) * std::log(sigmoid(x)) + smoothing * std::log(sigmoid(-x));
        const double slope = smoothing * sigmoid(x) - (1 - smoothing) * sigmoid(-x);
        by[0] = slope * by_x0, by[1] = slope * by_x1;
      };
      if (kind == Preference::dpo) {
        ahead = (p[0] - r[0]) - (p[1] - r[1]);
        either_way(beta * ahead, beta, -beta);
      } else if (kind == Preference::simpo) {
        ahead = p[0] / n[0] - p[1] / n[1];
        either_way(beta * ahead - margin, beta / n[0], -beta / n[1]);
      } else if (kind == Preference::ipo) {
        ahead = (p[0] - r[0]) / n[0] - (p[1] - r[1]) / n[1];
        const double miss = ahead - 1 / (2 * beta);
        all.loss += miss * miss;
        by[0] = 2 * miss / n[0], by[1] = -2 * miss / n[1];
      } else {
        ahead = p[0] / n[0] - p[1] / n[1];
        const double chosen = std::exp(p[0] / n[0]), rejected = std::exp(p[1] / n[1]);
        const double x = std::log(chosen / (1 - chosen)) - std::log(rejected / (1 - rejected));
        all.loss += -p[0] / n[0] - beta * std::log(sigmoid(x));
        by[0] = -1 / n[0] - beta * sigmoid(-x) / ((1 - chosen) * n[0]),
        by[1] = beta * sigmoid(-x) / ((1 - rejected) * n[1]);
      }
      all.loss -= share * p[0] / n[0];
      by[0] -= share / n[0];
      all.pairs += 1, all.correct_pairs += ahead > 0;
      for (size_t k = 0; k < 2; ++k)
        for (size_t i = begins[d + k]; i < begins[d + k + 1]; ++i)
          all.weights[i] = static_cast<float>(-by[k]);
    }
  }
  return all;
}

TEST(Preferences, HaveTheGradientOfTokensWeightedByTheDefinitions) {
  for (const SmallModel& config : {SmallModel{small_gpt2()}, SmallModel{small_llama(), adapters_of_all()}}) {
    const GlobalBatch batch = with_reference(pair_batch(3, 5), config);
    const auto model = model_of(config);
    for (const Preference preference : all_preferences) {
      GradientSums found, wanted;
      const auto planned = plan_for(*model, pair_request(preference, 5));
      TrainerOptions options = options_for(preference);
      options.gradient_hook = [&](const GradientView& view) {
        return found = gradients_in(*planned, view), true;
      };
      const auto trainer = trainer_for(model, planned, options);
      const Expected want = expected(batch, losses_of(*trainer, batch), preference);
      ASSERT_GT(want.pairs, 6);
      const auto result = trainer->step(batch.source(), 5, 1e-3);
      ASSERT_TRUE(result);
      EXPECT_NEAR(result->loss, want.loss / want.pairs, 1e-6 * (1 + want.loss / want.pairs))
          << name_of(preference);
      EXPECT_EQ(result->targets, static_cast<uint64_t>(want.pairs));
      EXPECT_EQ(result->accuracy, want.correct_pairs / want.pairs);
      EXPECT_EQ(trainer->progress().accuracy, result->accuracy);

      Request plain = request_for(5, sequence, 2);
      plain.inputs = {true, true};
      const auto planned_plain = plan_for(*model, plain);
      TrainerOptions plain_options;
      plain_options.gradient_hook = [&](const GradientView& view) {
        return wanted = gradients_in(*planned_plain, view), true;
      };
      GlobalBatch weighted = batch;
      weighted.weights = want.weights;
      ASSERT_TRUE(trainer_for(model, planned_plain, plain_options)->step(weighted.source(), 5, 1e-3));
      ASSERT_EQ(found.size(), wanted.size());
      double most = 0;  // over all tensors, as the gradients of some cancel out
      for (const auto& [name, values] : wanted)
        for (const double value : values) most = std::max(most, std::abs(value));
      EXPECT_GT(most, 1e-3);
      for (const auto& [name, values] : wanted)
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_NEAR(found[name][i], values[i], 3e-6 * most) << name_of(preference) << ": " << name;
    }
  }
}

TEST(Preferences, NoSplitChangesABit) {
  std::mt19937 random(5);
  for (const Preference preference : all_preferences)
    for (const SmallModel& config :
         {SmallModel{small_gpt2("0.1")}, SmallModel{small_qwen3(), adapters_of_all(0.1)}}) {
      const auto model = model_of(config);
      const GlobalBatch batch = with_reference(pair_batch(7, 8), config);
      Request r = pair_request(preference, 8, 8);
      r.precision = preference == Preference::ipo   ? Precision::fp16
                    : preference == Preference::dpo ? Precision::bf16
                                                    : Precision::fp32;
      const auto plain = plan_for(*model, r);
      TrainerOptions options = options_for(preference);
      options.loss_scale = 1024;
      OpenTrainer straight(model, plain, options);
      Trained expected;
      for (int step = 0; step < 2; ++step) take_step(*straight, batch, 8, expected.figures);
      expected.state = straight.state();
      for (const int64_t micro_batch : micro_batches) {
        Decisions d = plain->plan.decisions;
        d.micro_batch = micro_batch;
        d.loss_chunks = int64_t{1} << random() % 4;
        for (uint32_t& saved : d.saved) saved = static_cast<uint32_t>(random());
        OpenTrainer trainer(model, plan_with(*model, r, d), options);
        Trained trained;
        for (int step = 0; step < 2; ++step) take_step(*trainer, batch, 8, trained.figures);
        trained.state = trainer.state();
        expect_same(trained, expected,
                    std::string(name_of(preference)) + ", micro-batch " + std::to_string(micro_batch) + ", " +
                        std::to_string(d.loss_chunks) + " chunks");
      }
    }
}

TEST(Preferences, UpdatesInsideTheBackwardPassHaveTheSameBits) {
  const auto model = model_of(small_llama());
  const GlobalBatch batch = with_reference(pair_batch(13, 4), small_llama());
  Request r = pair_request(Preference::dpo, 4, 4);
  TrainerOptions options = options_for(Preference::dpo);
  options.clip_norm = 0;
  Trained plain, fused;
  OpenTrainer apart(model, plan_for(*model, r), options);
  for (int step = 0; step < 3; ++step) take_step(*apart, batch, 4, plain.figures);
  r.fused_update = true;
  OpenTrainer inside(model, plan_for(*model, r), options);
  for (int step = 0; step < 3; ++step) take_step(*inside, batch, 4, fused.figures);
  plain.state = apart.state(), fused.state = inside.state();
  expect_same(fused, plain);
}

TEST(Preferences, AreCalibratedOnPairs) {
  const auto model = model_of(small_llama());
  const auto trainer =
      trainer_for(model, plan_for(*model, pair_request(Preference::dpo, 2)), options_for(Preference::dpo));
  const auto profile = trainer->calibrate();
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_GT(profile->calibration.step_nanoseconds, 0u);
}

// A plan for less memory has more chunks and computes logits twice. It reports that cost.
TEST(Preferences, LessMemoryComputesLogitsTwice) {
  const auto model = model_of(
      R"({"model_type": "llama", "vocab_size": 3001, "max_position_embeddings": 512, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1})");
  Request r = pair_request(Preference::simpo, 8);
  r.sequence = 300;  // long enough for two chunks of the loss
  const auto wide = plan_for(*model, r);
  ASSERT_EQ(wide->plan.decisions.loss_chunks, 1);
  const auto logits_of = [&](const Planned& planned) {
    const Program& p = planned.programs.micro_first;
    const int logits = planned.graph.segments.back().first_op;
    return std::count_if(p.instructions.begin(), p.instructions.end(),
                         [&](const Instruction& i) { return i.op == logits; });
  };
  EXPECT_EQ(logits_of(*wide), 1);
  r.memory_bytes = wide->plan.minimum_bytes;
  const auto narrow = plan_for(*model, r);
  ASSERT_GT(narrow->plan.decisions.loss_chunks, 1);
  const auto chunks = loss_chunks(narrow->programs.micro_first.samples * r.sequence, r.sequence,
                                  narrow->plan.decisions.loss_chunks, chunk_unit(narrow->graph));
  EXPECT_EQ(logits_of(*narrow), static_cast<std::ptrdiff_t>(2 * chunks.size()));
  EXPECT_LT(narrow->plan.bytes.peak, wide->plan.bytes.peak);
  EXPECT_EQ(wide->plan.recompute_picoseconds, 0u);
  uint64_t again = 0;  // the plan's figure must agree with its programs
  const Pricing pricing(narrow->graph, profile_of(narrow->plan.request), narrow->plan.request.threads);
  for (const auto& [program, times] : {std::pair{&narrow->programs.micro_first, int64_t{1}},
                                       {&narrow->programs.micro_next, narrow->plan.accumulation_steps - 1}})
    for (const Instruction& i : program->instructions)
      if (i.phase == Phase::recompute) again += pricing.instruction(i) * static_cast<uint64_t>(times);
  ASSERT_EQ(8 % narrow->plan.decisions.micro_batch, 0);
  EXPECT_EQ(narrow->plan.recompute_picoseconds, again);
  EXPECT_GT(narrow->plan.step_picoseconds, wide->plan.step_picoseconds);
}

TEST(Preferences, APairWithoutTargetsOnBothSidesDoesNotCount) {
  const auto model = model_of(small_llama());
  GlobalBatch batch = pair_batch(11, 3), fewer = batch;
  for (int64_t s : {0, 2}) {  // no targets in the first sample, nor in chosen documents of the last
    bool is_chosen = false;
    for (int64_t i = 0; i < sequence; ++i) {
      const auto at = static_cast<size_t>(s * sequence + i);
      if (batch.positions[at] == 0) is_chosen = !is_chosen;
      if (s == 0 || is_chosen) fewer.targets[at] = kernels::ignored_target;
    }
  }
  Trained a, b;
  OpenTrainer some(model, plan_for(*model, pair_request(Preference::simpo, 3))),
      alone(model, plan_for(*model, pair_request(Preference::simpo, 3)));
  take_step(*some, fewer, 3, a.figures);
  for (int64_t s : {0, 2}) ignore_sample(batch, s);
  take_step(*alone, batch, 3, b.figures);
  a.state = some.state(), b.state = alone.state();
  expect_same(a, b);
  ignore_sample(batch, 1);
  const auto nothing = alone->step(batch.source(), 3, 1e-3);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->skip, kernels::skip_no_target);
}

TEST(Preferences, UnsupportedSettingsAreRefused) {
  const auto model = model_of(small_llama());
  const auto refusal = [&](Request r, const TrainerOptions& o = {}) {
    auto planned = Planned::make(*model, r);
    if (!planned) return planned.error().message;
    auto trainer = Trainer::create(best_device(), model, *planned, o);
    return trainer ? std::string() : trainer.error().message;
  };
  const auto with = [](auto set) {
    TrainerOptions o;
    set(o);
    return o;
  };
  Request r = pair_request(Preference::dpo, 2), plain = request_for(2, sequence);
  EXPECT_EQ(refusal(r), "");
  EXPECT_NE(refusal(r, with([](auto& o) { o.z_loss = 1e-4; })).find("z_loss"), std::string::npos);
  EXPECT_NE(refusal(r, with([](auto& o) { o.preference.margin = 1; }))
                .find("margin is for the preference simpo, not for dpo"),
            std::string::npos);
  EXPECT_NE(refusal(r, with([](auto& o) { o.label_smoothing = 0.5; })).find("[0, 0.5)"), std::string::npos);
  EXPECT_NE(refusal(r, with([](auto& o) { o.preference.beta = -1; })).find("beta must be above 0"),
            std::string::npos);
  for (const double outside : {-1e-9, 1e6 + 1, std::nan("")}) {
    EXPECT_NE(refusal(r, with([&](auto& o) { o.preference.answer_share = outside; })).find("[0, 1e6]"),
              std::string::npos)
        << outside;
    EXPECT_NE(
        refusal(pair_request(Preference::simpo, 2), with([&](auto& o) { o.preference.margin = outside; }))
            .find("[0, 1e6]"),
        std::string::npos)
        << outside;
  }
  EXPECT_NE(refusal(pair_request(Preference::orpo, 2), with([](auto& o) { o.label_smoothing = 0.1; }))
                .find("not for orpo"),
            std::string::npos);
  EXPECT_NE(
      refusal(plain, with([](auto& o) { o.preference.beta = 1; })).find("the plan was made without one"),
      std::string::npos);
  r.inputs.weights = true;
  EXPECT_NE(refusal(r).find("leave out the input weights"), std::string::npos);
  r.inputs = {false, false, Preference::dpo};
  EXPECT_NE(refusal(r).find("it needs the input positions"), std::string::npos);
  const auto classifier = model_of(classifier_of(small_qwen3()));
  const auto refused = Planned::make(*classifier, pair_request(Preference::dpo, 2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("preference dpo is for language models"), std::string::npos);
}

// Files of tokens and marks: documents of 3 to 9 tokens, of which all but the first two are targets.
struct PairFiles {
  TemporaryDirectory folder;
  uint64_t tokens = 0, documents = 0;
  DatasetOptions options(double held_out = 0.2) const {
    DatasetOptions o;
    o.path = folder / "pairs.bin", o.marks_path = folder / "marks";
    o.vocabulary = small_vocabulary, o.sequence = sequence, o.evaluation_fraction = held_out, o.pairs = true;
    return o;
  }
  explicit PairFiles(uint64_t wanted, int64_t longest = 9) : documents(wanted) {
    std::mt19937 random(8);
    std::string ids, marks;
    for (uint64_t d = 0; d < wanted; ++d) {
      const auto length = static_cast<int64_t>(3 + random() % static_cast<uint32_t>(longest - 2));
      for (int64_t i = 0; i < length; ++i, ++tokens) {
        ids += {static_cast<char>(random() % small_vocabulary), '\0'};
        marks += static_cast<char>((i == 0 ? mark_begin : 0) | (i > 1 ? mark_target : 0));
      }
    }
    put_file(folder / "pairs.bin", ids), put_file(folder / "marks", marks);
  }
};

TEST(PairDatasets, HoldWholePairs) {
  const PairFiles files(60);
  auto dataset = Dataset::open(files.options());
  ASSERT_TRUE(dataset) << dataset.error().message;
  uint64_t tokens = 0;
  for (const Dataset::Part part : {Dataset::Part::training, Dataset::Part::evaluation}) {
    const uint64_t windows =
        part == Dataset::Part::training ? dataset->training_windows() : dataset->evaluation_windows();
    ASSERT_GT(windows, 1u);
    for (uint64_t w = 0; w < windows; ++w) {
      std::vector<int32_t> t(sequence), targets(sequence), positions(sequence);
      const Dataset::Extent own = dataset->window(part, w);
      ASSERT_TRUE(
          dataset->read(part, own.first, rows_of(sequence, t.data(), targets.data(), positions.data())));
      EXPECT_LE(own.count, static_cast<uint64_t>(sequence + 1));
      tokens += own.count;
      // An even number of documents has targets. A document's targets come after its second token.
      uint64_t with_targets = 0;
      for (size_t i = 0; i < t.size(); ++i) {
        with_targets += targets[i] >= 0 && positions[i] == 1;
        if (positions[i] == 0 || i >= own.count) { EXPECT_LT(targets[i], 0); }
      }
      EXPECT_EQ(with_targets % 2, 0u);
      EXPECT_GE(with_targets, 2u);
    }
  }
  EXPECT_EQ(tokens, files.tokens);
}

TEST(PairDatasets, WithoutWholePairsAreRefused) {
  const auto refusal = [](const DatasetOptions& o) {
    auto dataset = Dataset::open(o);
    return dataset ? std::string() : dataset.error().message;
  };
  EXPECT_NE(refusal(PairFiles(7).options()).find("expected pairs, found 7 documents"), std::string::npos);
  EXPECT_NE(refusal(PairFiles(20, 60).options()).find("expected at most 41, which fit a sample"),
            std::string::npos);
  const PairFiles files(20);
  DatasetOptions o = files.options();
  o.marks_path.clear();
  EXPECT_NE(refusal(o).find("give marks"), std::string::npos);
  o = files.options();
  o.pairs = false, o.reference_path = files.folder / "reference";
  EXPECT_NE(refusal(o).find("a reference needs a dataset of pairs"), std::string::npos);
  o.pairs = true;
  put_file(files.folder / "reference", std::string(640, 'x'));
  EXPECT_NE(refusal(o).find("as stw_trainer_write_reference writes them"), std::string::npos);
  // A reference of these pairs, then with one byte changed, then of other pairs.
  const auto model = model_of(small_llama());
  const auto trainer = trainer_for(model, plan_for(*model, pair_request(Preference::simpo, 4)));
  auto bare = Dataset::open(files.options());
  ASSERT_TRUE(bare);
  ASSERT_TRUE(trainer->write_reference(*bare, o.reference_path));
  EXPECT_EQ(refusal(o), "");
  std::string bytes = file_bytes(o.reference_path);
  EXPECT_EQ(bytes.size(), files.tokens * sizeof(float) + 32);
  for (const auto& [value, part] :
       {std::pair{0.5f, "is 0.5"}, {-HUGE_VALF, "expected a finite number"}, {-0.125f, "are damaged"}}) {
    std::string changed = bytes;
    std::memcpy(changed.data() + 40, &value, sizeof value);
    put_file(o.reference_path, changed);
    EXPECT_NE(refusal(o).find(part), std::string::npos) << refusal(o);
  }
  put_file(o.reference_path, bytes);
  std::string marks = file_bytes(o.marks_path);
  marks[2] ^= mark_target;
  put_file(o.marks_path, marks);
  EXPECT_NE(refusal(o).find("it is of other tokens or marks"), std::string::npos) << refusal(o);
}

TEST(References, HoldTheModelsLogProbabilityOfEveryTarget) {
  const PairFiles files(50);
  const auto model = model_of(small_llama());
  const auto planned = plan_for(*model, pair_request(Preference::dpo, 4, 2));
  const auto trainer = trainer_for(model, planned);
  DatasetOptions o = files.options();
  auto bare = Dataset::open(o);
  ASSERT_TRUE(bare);
  const auto no_step = trainer->run(*bare, 1, 1, {}, {});
  ASSERT_FALSE(no_step);
  EXPECT_NE(no_step.error().message.find("is against a reference"), std::string::npos);
  o.reference_path = files.folder / "reference";
  const Status written = trainer->write_reference(*bare, o.reference_path);
  ASSERT_TRUE(written) << written.error().message;
  auto dataset = Dataset::open(o);
  ASSERT_TRUE(dataset) << dataset.error().message;
  // Every target's value is where the trainer reads it.
  GlobalBatch batch;
  batch.sequence = sequence;
  for (uint64_t w = 0; w < 3; ++w) {
    std::vector<int32_t> tokens(sequence), targets(sequence), positions(sequence);
    std::vector<float> reference(sequence);
    ASSERT_TRUE(
        dataset->read(Dataset::Part::training, dataset->window(Dataset::Part::training, w).first,
                      rows_of(sequence, tokens.data(), targets.data(), positions.data(), reference.data())));
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
    batch.positions.insert(batch.positions.end(), positions.begin(), positions.end());
    batch.reference.insert(batch.reference.end(), reference.begin(), reference.end());
  }
  const std::vector<float> losses = losses_of(*trainer, batch);
  for (size_t i = 0; i < losses.size(); ++i)
    if (batch.targets[i] >= 0) { ASSERT_EQ(batch.reference[i], -losses[i]) << i; }
  // A model against itself: the loss is log 2, and no pair is in order. Training then puts pairs in order.
  const auto before = trainer->evaluate(*dataset, 100);
  ASSERT_TRUE(before);
  EXPECT_NEAR(*before, std::log(2.0), 1e-7);
  EXPECT_EQ(trainer->progress().evaluation_accuracy, 0);
  Schedule schedule;
  schedule.kind = ScheduleKind::constant, schedule.rate = 1e-2, schedule.total = 40;
  ASSERT_TRUE(trainer->run(*dataset, 1, 40, schedule, {}));
  EXPECT_LT(trainer->progress().loss, 0.3);
  EXPECT_EQ(trainer->progress().accuracy, 1);
}

// A part without pairs needs no reference.
TEST(References, AreWrittenWhereNothingOrAllIsHeldOut) {
  const PairFiles files(12);
  const auto model = model_of(small_llama());
  const auto trainer = trainer_for(model, plan_for(*model, pair_request(Preference::simpo, 4)));
  for (const double held_out : {0.0, 1.0}) {
    DatasetOptions o = files.options(held_out);
    auto bare = Dataset::open(o);
    ASSERT_TRUE(bare);
    o.reference_path = files.folder / "reference";
    const Status written = trainer->write_reference(*bare, o.reference_path);
    ASSERT_TRUE(written) << written.error().message;
    auto dataset = Dataset::open(o);
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_EQ(dataset->tokens(held_out == 0 ? Dataset::Part::evaluation : Dataset::Part::training), 0u);
  }
}

// References are checked in chunks; all but the smallest datasets have several.
TEST(References, OfManyPiecesAreChecked) {
  const PairFiles files(1000);
  ASSERT_GT(files.tokens, 5000u);
  DatasetOptions o = files.options(0);
  const auto bare = Dataset::open(o);
  ASSERT_TRUE(bare);
  o.reference_path = files.folder / "reference";
  auto writer = ReferenceWriter::create(o.reference_path, bare->content_hash());
  ASSERT_TRUE(writer);
  for (uint64_t i = 0; i < files.tokens; ++i) ASSERT_TRUE(writer->write(-static_cast<float>(i)));
  ASSERT_TRUE(writer->finish());
  const auto dataset = Dataset::open(o);
  ASSERT_TRUE(dataset) << dataset.error().message;
  const uint64_t last = dataset->training_windows() - 1;
  const Dataset::Extent own = dataset->window(Dataset::Part::training, last);
  std::vector<int32_t> tokens(sequence), targets(sequence), positions(sequence);
  std::vector<float> reference(sequence);
  ASSERT_TRUE(
      dataset->read(Dataset::Part::training, own.first,
                    rows_of(sequence, tokens.data(), targets.data(), positions.data(), reference.data())));
  EXPECT_EQ(reference[0], -static_cast<float>(own.first + 1)) << "of the first target, the second token";
  const std::string good = file_bytes(o.reference_path);
  for (const auto& [value, part] :
       {std::pair{0.5f, "log-probability 5000 is 0.5"}, {-0.125f, "are damaged"}}) {
    std::string changed = good;
    std::memcpy(changed.data() + 5000 * sizeof value, &value, sizeof value);
    put_file(o.reference_path, changed);
    const auto refused = Dataset::open(o);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
}

TEST(References, OtherTrainersAndDatasetsAreRefused) {
  const PairFiles files(50);
  const auto model = model_of(small_llama());
  auto pairs = Dataset::open(files.options());
  DatasetOptions o = files.options();
  o.pairs = false;
  auto documents = Dataset::open(o);
  ASSERT_TRUE(pairs && documents);
  Request r = request_for(4, sequence);
  r.inputs = {true};
  const auto plain = trainer_for(model, plan_for(*model, r)),
             of_pairs = trainer_for(model, plan_for(*model, pair_request(Preference::simpo, 4)));
  const auto message = [](const Status& s) { return s ? std::string() : s.error().message; };
  EXPECT_NE(
      message(plain->run(*pairs, 1, 1, {}, {})).find("the dataset has pairs, but the plan has no preference"),
      std::string::npos);
  EXPECT_NE(message(of_pairs->run(*documents, 1, 1, {}, {}))
                .find("the plan is for a preference (simpo), and the dataset has no pairs"),
            std::string::npos);
  EXPECT_NE(message(plain->write_reference(*pairs, files.folder / "r")).find("no preference"),
            std::string::npos);
  EXPECT_FALSE(std::ifstream(files.folder / "r").good());
  EXPECT_EQ(message(of_pairs->run(*pairs, 1, 1, {}, {})), "");  // this needs no reference
}

}  // namespace
}  // namespace stw::preference_test
