// Masked language models: against transformers and PEFT, the choice of hidden tokens, and bits of runs. The
// dataset hides tokens.
#include <algorithm>
#include <set>

#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::masked_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 40;
constexpr int32_t cls = 1, separator = 2, mask = 3, first_ordinary = 4;  // ids in the small vocabulary

// ---- against transformers and PEFT -----------------------------------------------------------------------

class GoldenMasked : public testing::TestWithParam<const char*> {};

// Files from 2018 have the values of encoder_bert_mlm, and a next-sentence head that is ignored.
TEST_P(GoldenMasked, LossGradientsAndLogitsAgree) {
  const std::string name = GetParam();
  const bool is_old = name == "encoder_bert_old";
  ModelSource source;
  source.source = folder_of(name);
  if (is_old) source.task = Task::masked_language_model;
  const auto model = open_model(source);
  auto expected =
      SafetensorsReader::open(folder_of(is_old ? "encoder_bert_mlm" : name) + "/expected.safetensors");
  ASSERT_TRUE(model && expected);
  EXPECT_EQ(model->config().task, Task::masked_language_model);
  const auto lengths = read_tensor<int32_t>(*expected, "lengths");
  const auto expected_logits = read_tensor<float>(*expected, "logits");
  const auto samples = static_cast<int64_t>(lengths.size());
  GlobalBatch batch;
  batch.tokens = read_tensor<int32_t>(*expected, "tokens");
  batch.targets = read_tensor<int32_t>(*expected, "labels");
  batch.sequence = static_cast<int64_t>(batch.tokens.size()) / samples;
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t i = 0; i < batch.sequence; ++i)
      batch.positions.push_back(i < lengths[s] ? static_cast<int32_t>(i) : 0);
  if (expected->find("token_types")) batch.token_types = read_tensor<int32_t>(*expected, "token_types");
  for (const int64_t micro_batch : {1, 3, 4}) {
    Request request = request_for(samples, batch.sequence, 2);
    request.micro_batch = micro_batch;
    GoldenTrainer trainer(model, plan_for(*model, request));
    // Logits up to a constant for each row: log-probabilities of every token of the vocabulary.
    const int64_t vocabulary = model->config().vocabulary;
    GlobalBatch asked = batch;
    std::vector<double> ours, theirs;
    for (int64_t token = 0; micro_batch == 3 && token < vocabulary; ++token) {
      std::fill(asked.targets.begin(), asked.targets.end(), static_cast<int32_t>(token));
      const auto status = trainer->log_probabilities(
          asked.source(), static_cast<uint64_t>(samples),
          [&](uint64_t sample, const float* losses) -> Status {
            for (int64_t i = 0; i < lengths[sample]; ++i) {
              const float* const row =
                  expected_logits.data() + (static_cast<int64_t>(sample) * batch.sequence + i) * vocabulary;
              double sum = 0;
              for (int64_t k = 0; k < vocabulary; ++k) sum += std::exp(static_cast<double>(row[k]));
              ours.push_back(-static_cast<double>(losses[i]));
              theirs.push_back(static_cast<double>(row[token]) - std::log(sum));
            }
            return ok();
          });
      ASSERT_TRUE(status) << status.error().message;
    }
    if (micro_batch == 3) { EXPECT_LE(relative(ours.data(), theirs.data(), ours.size()), 1e-5); }
    trainer.expect_step(batch, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenMasked,
                         testing::Values("encoder_bert_mlm", "encoder_bert_mlm_untied", "encoder_bert_old",
                                         "encoder_roberta_mlm", "encoder_distilbert_mlm",
                                         "encoder_electra_mlm", "encoder_albert_mlm", "encoder_deberta_mlm",
                                         "encoder_deberta_mlm_untied", "encoder_modernbert_mlm",
                                         "encoder_modernbert_mlm_untied", "adapter_encoder_roberta_mlm",
                                         "adapter_encoder_distilbert_mlm", "adapter_encoder_modernbert_mlm",
                                         "adapter_encoder_bert_mlm", "adapter_encoder_albert_mlm"),
                         [](const auto& about) { return std::string(about.param); });

// ---- data ------------------------------------------------------------------------------------------------

// Documents of 3 to 20 tokens, [CLS] … [SEP]. The second half of the vocabulary continues words. Each
// ordinary token determines the next one.
struct Texts {
  TemporaryDirectory folder;
  std::vector<int32_t> tokens;
  std::string marks;

  explicit Texts(int documents = 200, bool has_types = false) {
    std::mt19937 random(5);
    for (int d = 0; d < documents; ++d) {
      const auto length = static_cast<int>(3 + random() % 18);
      int32_t token = first_ordinary + static_cast<int32_t>(random() % 50);
      for (int i = 0; i < length; ++i) {
        tokens.push_back(i == 0 ? cls : i + 1 == length ? separator : token);
        if (i > 0)
          token = first_ordinary + (token * 7 + 3) % static_cast<int32_t>(small_vocabulary - first_ordinary);
        marks += static_cast<char>(mark_target | (i == 0 ? mark_begin : 0) |
                                   (has_types && i > length / 2 ? mark_second : 0));
      }
    }
    std::string bytes;
    for (const int32_t t : tokens) bytes += {static_cast<char>(t), '\0'};
    put_file(folder / "texts.bin", bytes);
    put_file(folder / "marks", marks);
  }

  static bool continues(int32_t token) { return token >= small_vocabulary / 2; }
  DatasetOptions options(double rate = 0.15) const {
    DatasetOptions o;
    o.path = folder / "texts.bin", o.marks_path = folder / "marks";
    o.vocabulary = small_vocabulary, o.sequence = sequence, o.evaluation_fraction = 0.2;
    o.masking.rate = rate, o.masking.token = mask;
    o.masking.kinds.resize(small_vocabulary);
    for (int32_t t = 0; t < small_vocabulary; ++t)
      o.masking.kinds[t] = static_cast<uint8_t>((t < first_ordinary ? token_special : 0) |
                                                (continues(t) ? token_continues : 0));
    return o;
  }
  Dataset open(double rate = 0.15) const {
    auto dataset = Dataset::open(options(rate));
    EXPECT_TRUE(dataset) << dataset.error().message;
    return std::move(*dataset);
  }
};

// One sample as a trainer reads it.
struct Sample {
  std::vector<int32_t> tokens = std::vector<int32_t>(sequence), targets = tokens, positions = tokens;
  Sample(const Dataset& dataset, Dataset::Part part, uint64_t start, uint64_t key) {
    const Status read =
        dataset.read(part, start, rows_of(sequence, tokens.data(), targets.data(), positions.data()), key);
    EXPECT_TRUE(read) << read.error().message;
  }
  bool operator==(const Sample&) const = default;
};

TEST(Masking, HidesTheSharesThatItNamesAndNothingElse) {
  const Texts texts;
  for (const double rate : {0.15, 0.4}) {
    const Dataset dataset = texts.open(rate);
    double may_be = 0, hidden = 0, to_mask = 0, stays = 0;
    for (uint64_t batch = 0; batch < 400; ++batch) {
      const uint64_t start = dataset.training_start(1, batch, batch * 2, 1, sequence),
                     own = std::min<uint64_t>(sequence, dataset.window(Dataset::Part::training, 0).count);
      const Sample s(dataset, Dataset::Part::training, start, Dataset::training_mask(1, batch, 1));
      ASSERT_GT(own, 0u);
      bool is_own = true;
      for (size_t i = 0; i < sequence; ++i) {
        const int32_t was = texts.tokens[(start + i) % dataset.tokens(Dataset::Part::training)];
        is_own = is_own && (i == 0 || start + i < dataset.tokens(Dataset::Part::training));
        if (s.targets[i] == kernels::ignored_target) {
          ASSERT_EQ(s.tokens[i], was);
        } else {
          ASSERT_EQ(s.targets[i], was);
          ASSERT_GE(was, first_ordinary) << "a special token was hidden";
          ASSERT_TRUE(s.tokens[i] == mask || s.tokens[i] >= first_ordinary) << "a special token was put in";
        }
        hidden += s.targets[i] != kernels::ignored_target;
        to_mask += s.targets[i] != kernels::ignored_target && s.tokens[i] == mask;
        stays += s.targets[i] != kernels::ignored_target && s.tokens[i] == was;
      }
      // Tokens of whole documents in the window, up to the first document that does not fit.
      const auto& marks = texts.marks;
      size_t end = 0;
      for (size_t i = 0; i < sequence; ++i)
        if (s.targets[i] != kernels::ignored_target) end = i + 1;
      for (size_t i = start; i < start + sequence; ++i)
        if (const size_t next =
                marks.find_first_of({static_cast<char>(mark_target | mark_begin), '\0'}, i + 1);
            marks[i] & mark_begin && next != marks.npos) {
          if (next > start + sequence) {
            ASSERT_LE(end, i - start) << "a token of the next sample was hidden";
            break;
          }
          for (size_t k = i; k < next; ++k) may_be += texts.tokens[k] >= first_ordinary;
        }
    }
    EXPECT_NEAR(hidden / may_be, rate, 0.02);
    EXPECT_NEAR(to_mask / hidden, 0.8, 0.03);
    EXPECT_NEAR(stays / hidden, 0.1 + 0.1 / (small_vocabulary - first_ordinary), 0.03);
  }
}

TEST(Masking, IsAFunctionOfItsKey) {
  const Texts texts;
  const Dataset dataset = texts.open(), again = texts.open();
  const auto sample = [&](const Dataset& d, uint64_t seed, uint64_t batch, uint32_t number) {
    return Sample(d, Dataset::Part::training, 0, Dataset::training_mask(seed, batch, number));
  };
  const Sample first = sample(dataset, 1, 2, 3);
  EXPECT_EQ(first, sample(again, 1, 2, 3));
  for (const Sample& other : {sample(dataset, 2, 2, 3), sample(dataset, 1, 3, 3), sample(dataset, 1, 2, 4),
                              sample(dataset, 1, uint64_t{1} << 32 | 2, 3)})
    EXPECT_FALSE(first == other);
  EXPECT_NE(Dataset::evaluation_mask(0), Dataset::evaluation_mask(1));
}

TEST(Masking, HidesWholeWords) {
  const Texts texts;
  DatasetOptions options = texts.options(0.3);
  const auto alone = Dataset::open(options);
  options.masking.whole_words = true;
  const auto words = Dataset::open(options);
  ASSERT_TRUE(alone && words);
  double hidden = 0, may_be = 0;
  int split = 0;
  for (uint64_t batch = 0; batch < 300; ++batch) {
    for (const Dataset* dataset : {&*words, &*alone}) {
      const uint64_t start = dataset->training_start(1, batch, batch, 0, sequence);
      const Sample s(*dataset, Dataset::Part::training, start, Dataset::training_mask(1, batch, 0));
      for (size_t i = 1; i < 20; ++i) {  // every window has this many tokens of its own
        const int32_t was = texts.tokens[start + i], before = texts.tokens[start + i - 1];
        const bool is_hidden = s.targets[i] != kernels::ignored_target,
                   was_hidden = s.targets[i - 1] != kernels::ignored_target;
        if (was < first_ordinary) continue;
        const bool goes_on = Texts::continues(was) && before >= first_ordinary;
        const bool is_split = goes_on && is_hidden != was_hidden;
        if (dataset == &*alone) {
          split += is_split;
          continue;
        }
        ASSERT_FALSE(is_split) << "batch " << batch << ", token " << i;
        hidden += is_hidden, ++may_be;
      }
    }
  }
  EXPECT_GT(split, 100);
  EXPECT_NEAR(hidden / may_be, 0.3, 0.04);
}

TEST(Masking, WorksOnAStreamAndSkipsUnmarkedTokens) {
  Texts texts;
  DatasetOptions stream = texts.options(1);
  stream.marks_path.clear();
  auto dataset = Dataset::open(stream);
  ASSERT_TRUE(dataset) << dataset.error().message;
  const Sample all(*dataset, Dataset::Part::training, 7, 1);
  for (size_t i = 0; i < sequence; ++i)
    EXPECT_EQ(all.targets[i],
              texts.tokens[7 + i] < first_ordinary ? kernels::ignored_target : texts.tokens[7 + i]);
  for (size_t i = 0; i < texts.marks.size(); i += 2) texts.marks[i] &= static_cast<char>(~mark_target);
  put_file(texts.folder / "marks", texts.marks);
  dataset = Dataset::open(texts.options(1));
  ASSERT_TRUE(dataset) << dataset.error().message;
  const Sample half(*dataset, Dataset::Part::training, 0, 1);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(half.targets[i] != kernels::ignored_target, i % 2 == 1 && texts.tokens[i] >= first_ordinary)
        << i;
}

TEST(Masking, RefusesInvalidSettings) {
  const Texts texts;
  const auto refused = [&](const auto& change) {
    DatasetOptions options = texts.options();
    change(options);
    const auto opened = Dataset::open(options);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_EQ(refused([](DatasetOptions& o) { o.masking.rate = 1.5; }),
            "mask rate: expected [0, 1], found 1.500000");
  EXPECT_EQ(refused([](DatasetOptions& o) { o.masking.rate = std::nan(""); }),
            "mask rate: expected [0, 1], found nan");
  EXPECT_EQ(refused([](DatasetOptions& o) { o.masking.token = small_vocabulary; }),
            "mask token: expected a token below the vocabulary of 61, found 61");
  EXPECT_EQ(refused([](DatasetOptions& o) { o.masking.kinds.pop_back(); }),
            "token kinds: expected 61, one for each token of the vocabulary, found 60");
  EXPECT_EQ(refused([](DatasetOptions& o) { o.masking.kinds[7] = 4; }),
            "token kinds: that of token 7 is 4, expected at most 3");
  EXPECT_EQ(refused([](DatasetOptions& o) { o.masking.kinds.clear(), o.masking.whole_words = true; }),
            "whole words: expected token kinds, which say what continues a word");
  EXPECT_EQ(refused([](DatasetOptions& o) {
              std::fill(o.masking.kinds.begin(), o.masking.kinds.end(), token_special);
            }),
            "token kinds: all tokens are special, so that none may be hidden");
  EXPECT_EQ(refused([](DatasetOptions& o) { o.pairs = true; }),
            "a mask rate is for masked language models: their data has neither labels nor pairs");
}

// ---- runs ------------------------------------------------------------------------------------------------

constexpr Schedule constant_rate{ScheduleKind::constant, 1e-3, 0, 0, 1, 0};

class Masked : public testing::TestWithParam<NumericsCase> {};

TEST_P(Masked, TrainsTheSameBitsHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  const Texts texts(200, model->config().token_types > 1);
  const Dataset dataset = texts.open();
  Request r = GetParam().request(6, sequence, 2);
  const auto train = [&](const std::shared_ptr<const Planned>& planned, uint64_t until,
                         const std::string& restored = {}, const std::string& saved = {}) {
    OpenTrainer trainer(model, planned);
    if (!restored.empty()) { EXPECT_TRUE(trainer->restore(restored)); }
    Trained trained;
    const Status ran =
        trainer->run(dataset, 5, until, constant_rate, [&](const StepResult& result, const Progress&) {
          trained.figures.insert(trained.figures.end(),
                                 {result.loss, result.grad_norm, static_cast<double>(result.targets)});
          return true;
        });
    EXPECT_TRUE(ran) << ran.error().message;
    const auto loss = trainer->evaluate(dataset, 100);
    EXPECT_TRUE(loss);
    trained.figures.insert(trained.figures.end(), {*loss, trainer->progress().evaluation_accuracy});
    if (!saved.empty()) { EXPECT_TRUE(trainer->save(saved)); }
    trained.state = trainer.state();
    return trained;
  };
  r.micro_batch = 6;
  const auto whole_plan = plan_for(*model, r);
  const Trained whole = train(whole_plan, 3);
  EXPECT_GT(whole.figures[2], 6 * sequence * 0.05);
  Decisions away = whole_plan->plan.decisions;  // offload as much as possible
  const int blocks = whole_plan->graph.blocks();
  away.offload = {{blocks + 1, blocks + 1, blocks, blocks, blocks}};
  EXPECT_EQ(train(plan_with(*model, r, away), 3, "", texts.folder / "away.stw").figures, whole.figures);
  EXPECT_EQ(differences(train(whole_plan, 3, texts.folder / "away.stw").state, whole.state), "")
      << "offloaded";
  for (const int64_t micro_batch : {1, 4}) {
    r.micro_batch = micro_batch;
    r.recompute = micro_batch == 1 ? Recompute::full : Recompute::none;
    auto planned = plan_for(*model, r);
    if (micro_batch == 4) {  // also compute the loss in chunks
      Decisions chunked = planned->plan.decisions;
      chunked.loss_chunks = 4;
      planned = plan_with(*model, r, chunked);
    }
    expect_same(train(planned, 3), whole, "micro-batch " + std::to_string(micro_batch));
    train(planned, 2, "", texts.folder / "two.stw");
    EXPECT_EQ(differences(train(whole_plan, 3, texts.folder / "two.stw").state, whole.state), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Masked,
    testing::Values(NumericsCase{"bert", masked_of(small_bert("0.1")), Precision::fp32, 32},
                    NumericsCase{"roberta", masked_of(small_roberta("0.1")), Precision::bf16, 8},
                    NumericsCase{"distilbert", masked_of(small_distilbert("0.1")), Precision::fp16, 32},
                    NumericsCase{"electra", masked_of(small_electra("0.1")), Precision::fp32, 8},
                    NumericsCase{"albert", masked_of(small_albert("0.1")), Precision::fp32, 32},
                    NumericsCase{"deberta", masked_of(small_deberta("0.1")), Precision::fp32, 8},
                    NumericsCase{"modernbert", masked_of(small_modernbert("0.1")), Precision::bf16, 8},
                    NumericsCase{"roberta_adapters",
                                 {masked_of(small_roberta("0.1")), adapters_of_all(0.1)},
                                 Precision::bf16,
                                 8},
                    NumericsCase{"albert_int8",
                                 {masked_of(small_albert()), adapters_of_all()},
                                 Precision::fp32,
                                 32,
                                 Optimizer::adamw,
                                 {},
                                 Master::exact,
                                 Gradients::fp32,
                                 false,
                                 Quantize::int8,
                                 Quantize::int8},
                    NumericsCase{"modernbert_nf4",
                                 {masked_of(small_modernbert()), adapters_of_all()},
                                 Precision::fp32,
                                 8,
                                 Optimizer::adamw,
                                 {},
                                 Master::exact,
                                 Gradients::fp32,
                                 false,
                                 Quantize::nf4}),
    case_name);

// A sample in which no token is hidden has no target. A batch of such samples is skipped.
TEST(MaskedRuns, ABatchWithoutAHiddenTokenIsSkipped) {
  const auto model = model_of(masked_of(small_bert()));
  const Texts texts;
  const Dataset dataset = texts.open(1e-9);
  auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
  ASSERT_TRUE(trainer->run(dataset, 5, 2, constant_rate, {}));
  EXPECT_EQ(trainer->progress().skipped, 2u);
  const auto loss = trainer->evaluate(dataset, 1);
  ASSERT_TRUE(loss);
  EXPECT_TRUE(std::isnan(*loss));
}

TEST(MaskedRuns, LearnsAndItsFolderGoesOn) {
  const auto model = model_of(masked_of(small_bert()));
  const Texts texts(600, true);
  const Dataset dataset = texts.open();
  auto trainer = trainer_for(model, plan_for(*model, request_for(16, sequence, 2)));
  const double before = *trainer->evaluate(dataset, 100);
  Schedule schedule = constant_rate;
  schedule.rate = 3e-3;
  ASSERT_TRUE(trainer->run(dataset, 5, 400, schedule, {}));
  const double after = *trainer->evaluate(dataset, 100), accuracy = trainer->progress().evaluation_accuracy;
  EXPECT_EQ(*trainer->evaluate(dataset, 100), after);
  EXPECT_NEAR(before, std::log(static_cast<double>(small_vocabulary)), 0.3);
  EXPECT_LT(after, 0.6 * before);
  EXPECT_GT(accuracy, 0.4);
  ASSERT_TRUE(trainer->export_model(texts.folder / "out"));
  ModelSource source;
  source.source = texts.folder / "out";
  const auto again = open_model(source);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->config().task, Task::masked_language_model);
  // Another batch size has the same windows and masks.
  EXPECT_NEAR(*trainer_for(again, plan_for(*again, request_for(5, sequence)))->evaluate(dataset, 100), after,
              1e-6);
  source.task = Task::label;
  source.label_count = 3;
  const auto classifier = open_model(source);  // the body with another head
  ASSERT_TRUE(classifier);
  EXPECT_EQ(classifier->config().labels.size(), 3u);
  for (int t : classifier->parameters())
    EXPECT_FALSE(classifier->graph().at(t).name.starts_with("cls.")) << classifier->graph().at(t).name;
}

// transformers expects the bias of the logits under these names.
TEST(MaskedRuns, FoldersHaveTheBiasUnderAllItsNames) {
  struct Case {
    std::string config;
    std::vector<std::string> tied, untied;
  };
  const auto of_module = [](const std::string& module) {
    return std::vector{module + ".bias", module + ".decoder.bias"};
  };
  const Case cases[] = {
      {small_bert(), {"cls.predictions.bias"}, of_module("cls.predictions")},
      {small_deberta(), {"cls.predictions.bias"}, of_module("cls.predictions")},
      {small_roberta(), {"lm_head.bias"}, of_module("lm_head")},
      {small_albert(), {"predictions.bias"}, of_module("predictions")},
      {small_electra(), {"generator_lm_head.bias"}, {"generator_lm_head.bias"}},
      {small_distilbert(), {"vocab_projector.bias"}, {"vocab_projector.bias"}},
      {small_modernbert(), {"decoder.bias"}, {"decoder.bias"}},
  };
  const Texts texts(100);
  const Dataset dataset = texts.open();
  for (const auto& [config, tied, untied] : cases)
    for (const bool is_tied : {true, false}) {
      const std::string setting = std::string("{\"tie_word_embeddings\": ") + (is_tied ? "true" : "false"),
                        out = texts.folder / "out", merged = texts.folder / "merged";
      const auto model = model_of(masked_of(setting + ", " + config.substr(1)));
      auto trainer = trainer_for(model, plan_for(*model, request_for(4, sequence)));
      ASSERT_TRUE(trainer->run(dataset, 5, 1, constant_rate, {}));
      ASSERT_TRUE(trainer->export_model(out));
      ModelSource source;
      source.source = out;
      const auto again = open_model(source);
      ASSERT_TRUE(again && write_merged(*again, merged));
      for (const std::string& folder : {out, merged}) {
        auto files = SafetensorsReader::open(folder + "/model.safetensors");
        ASSERT_TRUE(files);
        std::vector<std::string> names;
        std::set<std::vector<std::byte>> values;
        for (const SafetensorsInfo& info : files->tensors()) {
          if (info.shape != std::vector<int64_t>{small_vocabulary}) continue;
          std::vector<std::byte> bytes(info.bytes);
          ASSERT_TRUE(files->read(info, 0, bytes));
          names.push_back(info.name), values.insert(bytes);
        }
        std::sort(names.begin(), names.end());
        EXPECT_EQ(names, is_tied ? tied : untied);
        EXPECT_EQ(values.size(), 1u);
      }
    }
}

// ---- adapters --------------------------------------------------------------------------------------------

std::shared_ptr<const Model> opened(const std::string& folder, const Adapters& adapters = {},
                                    std::optional<Task> task = {}) {
  ModelSource source;
  source.source = folder, source.adapters = adapters, source.task = task;
  return open_model(source);
}

double loss_of(const std::shared_ptr<const Model>& model, const Dataset& dataset) {
  return *trainer_for(model, plan_for(*model, request_for(4, sequence)))->evaluate(dataset, 100);
}

void train_into(const std::string& folder, const std::shared_ptr<const Model>& model, const Dataset& dataset,
                uint64_t steps) {
  auto trainer = trainer_for(model, plan_for(*model, request_for(4, sequence, 2)));
  ASSERT_TRUE(trainer->run(dataset, 5, steps, constant_rate, {}));
  ASSERT_TRUE(trainer->export_model(folder));
}

std::string list_of(const std::string& folder, const char* key) {
  return to_string(*parse_json(file_bytes(adapter_config(folder)))->find(key), 0);
}

TEST(MaskedAdapters, AreReadAndMergedAsTheyWereTrained) {
  for (const auto& [config, targets] :
       {std::pair{small_bert(), R"(["dense","key","query","value"])"},
        {small_distilbert(), R"(["k_lin","lin1","lin2","out_lin","q_lin","v_lin","vocab_transform"])"},
        {small_modernbert(), R"(["Wi","Wo","Wqkv","dense"])"},
        {"{\"tie_word_embeddings\": false, " + small_electra().substr(1),
         R"(["dense","embeddings_project","key","query","value"])"}}) {
    TemporaryDirectory folder;
    const std::string base = folder / "base", out = folder / "out", merged = folder / "merged";
    const auto plain = model_of(masked_of(config));
    const Texts texts(200, plain->config().token_types > 1);
    const Dataset dataset = texts.open();
    train_into(base, plain, dataset, 2);
    const auto adapted = opened(base, adapters_of_all());
    EXPECT_FALSE(adapted->has_drawn_head());
    for (const Tensor& t : adapted->graph().tensors)
      if (t.role == Role::parameter) { EXPECT_EQ(t.trainable, t.adapter_of >= 0) << t.name; }
    const double before = loss_of(adapted, dataset);
    EXPECT_EQ(before, loss_of(opened(base), dataset));  // B is 0
    train_into(out, adapted, dataset, 5);
    EXPECT_EQ(list_of(out, "target_modules"), targets);
    EXPECT_EQ(list_of(out, "modules_to_save"), "null");
    EXPECT_EQ(list_of(out, "task_type"), "null");
    EXPECT_FALSE(file_exists(adapter_labels(out)));
    const double after = loss_of(opened(out), dataset);
    EXPECT_NE(after, before);
    ASSERT_TRUE(write_merged(*opened(out), merged));
    EXPECT_NEAR(loss_of(opened(merged), dataset), after, 1e-5);
  }
}

// A head that no file has is trained together with the adapters. Its bias is not, as PEFT could not save it
// without the word table.
TEST(MaskedAdapters, AHeadThatNoFileHasIsTrained) {
  TemporaryDirectory folder;
  const std::string base = folder / "base", out = folder / "out", merged = folder / "merged";
  const auto classifier = model_of(classifier_of(small_bert()));
  ASSERT_TRUE(trainer_for(classifier, plan_for(*classifier, request_for(2, sequence)))->export_model(base));
  put_file(base + "/config.json", small_bert());  // the body's config
  const Texts texts(200, true);
  const Dataset dataset = texts.open();
  const auto model = opened(base, adapters_of_all(), Task::masked_language_model);
  EXPECT_TRUE(model->has_drawn_head());
  train_into(out, model, dataset, 40);
  EXPECT_EQ(list_of(out, "modules_to_save"),
            R"(["cls.predictions.transform.dense","cls.predictions.transform.LayerNorm"])");
  const auto again = opened(out);  // its tensors show that they belong to such a head
  EXPECT_EQ(again->config().task, Task::masked_language_model);
  EXPECT_FALSE(again->has_drawn_head());
  EXPECT_EQ(again->graph().trainable_count(), model->graph().trainable_count());
  const double loss = loss_of(again, dataset);
  EXPECT_LT(loss, loss_of(model, dataset));
  ASSERT_TRUE(write_merged(*again, merged));
  EXPECT_NEAR(loss_of(opened(merged), dataset), loss, 1e-5);
}

// PEFT copies the word table into another matrix where modules_to_save names the decoder.
TEST(MaskedAdapters, ASavedDecoderIsNoLongerTheTable) {
  for (const auto& [name, modules] :
       {std::pair{"adapter_encoder_bert_mlm",
                  R"(["cls.predictions.transform.dense","cls.predictions.transform.LayerNorm",)"
                  R"("cls.predictions.decoder"])"},
        {"adapter_encoder_albert_mlm", R"(["predictions.decoder"])"}}) {
    TemporaryDirectory folder;
    const auto model = opened(folder_of(name));
    ASSERT_TRUE(model);
    EXPECT_FALSE(model->config().tied);
    const Texts texts(100, true);
    DatasetOptions options = texts.options();
    options.vocabulary = model->config().vocabulary;
    options.masking.kinds.resize(static_cast<size_t>(options.vocabulary));
    auto dataset = Dataset::open(options);
    ASSERT_TRUE(dataset) << dataset.error().message;
    const double before = loss_of(model, *dataset);
    train_into(folder / "out", model, *dataset, 0);
    EXPECT_EQ(list_of(folder / "out", "modules_to_save"), modules);
    EXPECT_EQ(loss_of(opened(folder / "out"), *dataset), before);
    ASSERT_TRUE(write_merged(*model, folder / "merged"));
    const auto merged = opened(folder / "merged");
    ASSERT_TRUE(merged);
    EXPECT_FALSE(merged->config().tied);
    EXPECT_NEAR(loss_of(merged, *dataset), before, 1e-5);
  }
}

TEST(MaskedAdapters, MismatchedFilesAreRefused) {
  TemporaryDirectory folder;
  const std::string from = folder_of("adapter_encoder_modernbert_mlm"), out = folder / "out";
  std::filesystem::create_directory(out);
  put_file(adapter_weights(out), file_bytes(adapter_weights(from)));
  const auto refused = [&](const char* key, Json value) {
    auto json = parse_json(file_bytes(adapter_config(from)));
    json->set("base_model_name_or_path", folder_of("encoder_modernbert_mlm")).set(key, std::move(value));
    put_file(adapter_config(out), to_string(*json, 2));
    ModelSource source;
    source.source = out;
    const auto model = Model::open(source);
    return model ? "accepted" : model.error().message;
  };
  EXPECT_EQ(refused("task_type", "FEATURE_EXTRACTION"), "accepted");
  EXPECT_EQ(refused("task_type", "CAUSAL_LM"),
            adapter_config(out) + ": task_type \"CAUSAL_LM\" with a head is not supported");
  EXPECT_EQ(
      refused("task_type", "SEQ_CLS"),
      adapter_config(out) + ": task_type \"SEQ_CLS\" is not that of the model's task, masked-language-model");
  EXPECT_EQ(refused("modules_to_save", Json(Json::Array{"tok_embeddings"})),
            adapter_config(out) + ": modules_to_save \"tok_embeddings\" is not supported");
}

// ---- models ----------------------------------------------------------------------------------------------

TEST(MaskedModel, ABodyGetsAHeadFromTheSeed) {
  ModelSource source;
  source.source = folder_of("encoder_bert");  // a classifier
  source.task = Task::masked_language_model;
  EXPECT_NE(
      Model::open(source).error().message.find("the model's task is label; masked-language-model was given"),
      std::string::npos);
  TemporaryDirectory folder;
  const auto mlm = model_of(masked_of(small_bert()));
  auto trainer = trainer_for(mlm, plan_for(*mlm, request_for(1, sequence)));
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  // The config of a body, although the files have a head.
  put_file(folder / "out/config.json", small_bert());
  source.source = folder / "out";
  const auto with_head = open_model(source);
  put_file(folder / "body.json", small_bert());
  source.source = folder / "body.json";
  source.seed = 11;
  const auto drawn = open_model(source);
  ASSERT_TRUE(with_head && drawn);
  EXPECT_NE(to_string(drawn->config().json, 0).find("BertForMaskedLM"), std::string::npos);
  const auto values_of = [](const Model& model, const std::string& name) {
    std::vector<float> values;
    for (int t : model.parameters()) {
      const Tensor& p = model.graph().at(t);
      if (p.name != name) continue;
      values.resize(p.shape.elements());
      EXPECT_TRUE(model.read(p, 0, values.size(), values.data()));
    }
    EXPECT_FALSE(values.empty()) << name;
    return values;
  };
  for (const char* name :
       {"cls.predictions.transform.dense.weight", "bert.embeddings.word_embeddings.weight"}) {
    EXPECT_EQ(values_of(*with_head, name), values_of(*mlm, name)) << name;
    EXPECT_NE(values_of(*drawn, name), values_of(*mlm, name)) << name;
  }
  // A model whose config says that it has a head must have it in its files.
  std::string config = *read_text(folder_of("encoder_bert") + "/config.json", 1 << 20);
  const std::string class_name = "BertForSequenceClassification";
  config.replace(config.find(class_name), class_name.size(), "BertForMaskedLM");
  ModelSource lacking;
  lacking.config_json = config;
  lacking.weights = folder_of("encoder_bert");
  const auto refused = Model::open(lacking);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("tensor cls.predictions.transform.dense.weight is missing"),
            std::string::npos)
      << refused.error().message;
  lacking.task = Task::language_model;  // the body is complete
  EXPECT_TRUE(Model::open(lacking));
}

TEST(MaskedModel, RefusesUnsupportedConfigs) {
  const auto open_as = [](const std::string& config, Task task) {
    ModelSource source;
    source.config_json = config;
    source.task = task;
    return Model::open(source);
  };
  const std::string masked = masked_of(small_bert());
  EXPECT_EQ(open_as(small_gpt2(), Task::masked_language_model).error().message,
            "config: a model of type gpt2 has no head for masked tokens: the task masked-language-model is "
            "not supported");
  const auto sparse = [](const char* ignored) {
    return std::string("{\"sparse_prediction\": true, \"sparse_pred_ignore_index\": ") + ignored + ", " +
           small_modernbert().substr(1);
  };
  EXPECT_TRUE(open_as(sparse("-1"), Task::masked_language_model));
  EXPECT_TRUE(open_as(sparse("0"), Task::language_model));  // the body ignores this setting
  const std::string refusal =
      "config: sparse_pred_ignore_index 0 is not supported: expected a negative one, which no token has";
  EXPECT_EQ(open_as(sparse("0"), Task::masked_language_model).error().message, refusal);
  EXPECT_EQ(open_as(masked_of(sparse("0")), Task::masked_language_model).error().message, refusal);
  const auto body = open_as(masked, Task::language_model);
  ASSERT_TRUE(body);
  EXPECT_NE(Planned::make(**body, request_for(2, sequence))
                .error()
                .message.find("or the task masked-language-model (--task masked), and this one"),
            std::string::npos);
  const auto model = model_of(masked), classifier = model_of(classifier_of(small_bert())),
             language = model_of(small_gpt2());
  Request preferring = request_for(2, sequence);
  preferring.inputs.preference = Preference::dpo;
  EXPECT_NE(Planned::make(*model, preferring).error().message.find("this one is a masked language model"),
            std::string::npos);
  auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
  std::vector<int32_t> prompt{1, 2}, out(3);
  std::vector<float> logits(small_vocabulary);
  EXPECT_EQ(trainer->generate({prompt.data(), 2, out.data(), 3}).error().code, Code::unsupported);
  EXPECT_EQ(trainer->logits(prompt.data(), 2).error().code, Code::unsupported);
  const Text text{prompt.data(), 2, nullptr};
  EXPECT_EQ(trainer->classify({&text, 1}, logits.data()).error().code, Code::unsupported);
  const Texts texts;
  const Dataset hiding = texts.open();
  DatasetOptions options = texts.options();
  options.masking = {};
  const auto plain = Dataset::open(options);
  ASSERT_TRUE(plain);
  EXPECT_EQ(trainer->evaluate(*plain, 1).error().message,
            "trainer: the model is a masked language model, but the dataset hides no tokens (mask_rate)");
  Request with_positions = request_for(2, 33);
  with_positions.inputs.positions = true;
  EXPECT_EQ(trainer_for(language, plan_for(*language, with_positions))->evaluate(hiding, 1).error().message,
            "trainer: the dataset hides tokens (mask_rate), but the model is no masked language model");
}

}  // namespace
}  // namespace stw::masked_test
