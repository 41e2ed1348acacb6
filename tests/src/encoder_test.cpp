// Encoders as classifiers: texts that lie end to end in samples, their bits, their answers and their files. What transformers computes
// is in classifier_test.cpp.
#include "tests/src/golden.h"
#include "tests/src/small_models.h"

namespace stw::encoder_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 40;

// Texts of 1 to 20 tokens end to end in samples, with a label each; the rest of a sample is documents of one token.
struct Packed {
  GlobalBatch batch;
  struct Place { int64_t sample, begin, length; int32_t label; };
  std::vector<Place> texts;
};
Packed packed_batch(uint64_t seed, int64_t samples, bool with_types) {
  Packed packed;
  GlobalBatch& b = packed.batch = random_batch(seed, samples, sequence);
  b.targets.assign(b.tokens.size(), kernels::ignored_target);
  b.positions.assign(b.tokens.size(), 0);
  if (with_types) b.token_types.assign(b.tokens.size(), 0);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t begin = 0, length; begin + (length = 1 + static_cast<int64_t>(random() % 20)) <= sequence; begin += length) {
      const auto at = static_cast<size_t>(s * sequence + begin);
      // The label says what the last token is, which the first one has to look for.
      const int32_t label = b.tokens[at + static_cast<size_t>(length) - 1] % static_cast<int32_t>(small_labels);
      b.targets[at] = label;
      packed.texts.push_back({s, begin, length, label});
      for (int64_t i = 0; i < length; ++i) {
        b.positions[at + static_cast<size_t>(i)] = static_cast<int32_t>(i);
        if (with_types) b.token_types[at + static_cast<size_t>(i)] = i > length / 2;
      }
    }
  return packed;
}

bool has_types(const Model& model) { return model.config().token_types > 1; }

class Encoder : public testing::TestWithParam<NumericsCase> {};

TEST_P(Encoder, TrainsTheSameBitsHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  TemporaryDirectory folder;
  Request r = GetParam().request(6, sequence, 2);
  const auto train = [&](const std::shared_ptr<const Planned>& planned, int steps, const std::string& restored = {}, const std::string& saved = {}) {
    OpenTrainer trainer(model, planned);
    if (!restored.empty()) {
      EXPECT_TRUE(trainer->restore(restored));
    }
    Trained trained;
    for (int step = 0; step < steps; ++step)
      if (!take_step(*trainer, packed_batch(10 + trainer->progress().step, 6, has_types(*model)).batch, 6, trained.figures)) break;
    if (!saved.empty()) {
      EXPECT_TRUE(trainer->save(saved));
    }
    trained.state = trainer.state();
    return trained;
  };
  r.micro_batch = 6;
  const auto whole_plan = plan_for(*model, r);
  const Trained whole = train(whole_plan, 3);
  for (const int64_t micro_batch : {1, 4}) {
    r.micro_batch = micro_batch;
    r.recompute = micro_batch == 1 ? Recompute::full : Recompute::none;
    const auto planned = plan_for(*model, r);
    expect_same(train(planned, 3), whole, "micro-batch " + std::to_string(micro_batch));
    train(planned, 2, "", folder / "two.stw");
    EXPECT_EQ(differences(train(whole_plan, 1, folder / "two.stw").state, whole.state), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Encoder,
                         testing::Values(NumericsCase{"bert", classifier_of(small_bert("0.1")), Precision::fp32, 32}, NumericsCase{"roberta", classifier_of(small_roberta("0.1")), Precision::bf16, 8},
                                         NumericsCase{"distilbert", classifier_of(small_distilbert("0.1")), Precision::fp16, 32}, NumericsCase{"electra", classifier_of(small_electra()), Precision::fp32, 8},
                                         NumericsCase{"albert", classifier_of(small_albert("0.1")), Precision::bf16, 8}),
                         case_name);

// A text's answer and its part of the gradients do not depend on what lies beside it, or where.
TEST(Encoder, ATextIsAlone) {
  for (const std::string& config : small_encoders()) {
    const auto model = model_of(config);
    const Packed packed = packed_batch(3, 4, has_types(*model));
    const size_t count = packed.texts.size();
    Request r = request_for(4, sequence, 2);
    GradientSums together, alone;
    GradientSums* sums = &together;
    std::shared_ptr<const Planned> planned = plan_for(*model, r);
    TrainerOptions options;
    options.gradient_hook = [&](const GradientView& view) {
      *sums = gradients_in(*planned, view);
      return true;
    };
    auto trainer = trainer_for(model, planned, options);
    std::vector<Text> texts;
    for (const auto& [sample, begin, length, label] : packed.texts) {
      const auto at = static_cast<size_t>(sample * sequence + begin);
      texts.push_back({packed.batch.tokens.data() + at, static_cast<uint64_t>(length), has_types(*model) ? packed.batch.token_types.data() + at : nullptr});
    }
    std::vector<float> all(count * small_labels), one(small_labels);
    ASSERT_TRUE(trainer->classify(texts, all.data()));
    for (size_t k = 0; k < count; ++k) {
      ASSERT_TRUE(trainer->classify({&texts[k], 1}, one.data()));
      for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(all[k * one.size() + i], one[i]) << "text " << k;
    }
    ASSERT_TRUE(trainer->step(packed.batch.source(), 4, 1e-3));
    // Each text in a sample of its own.
    GlobalBatch apart;
    apart.sequence = sequence;
    for (size_t k = 0; k < count; ++k) {
      const auto& [sample, begin, length, label] = packed.texts[k];
      const auto at = packed.batch.tokens.begin() + (sample * sequence + begin);
      apart.tokens.insert(apart.tokens.end(), at, at + length);
      apart.tokens.resize((k + 1) * sequence, 1);
      apart.targets.resize(k * sequence, kernels::ignored_target);
      apart.targets.push_back(label);
      for (int64_t i = 0; i < sequence; ++i) apart.positions.push_back(i < length ? static_cast<int32_t>(i) : 0);
      if (!has_types(*model)) continue;
      const auto types = packed.batch.token_types.begin() + (sample * sequence + begin);
      apart.token_types.insert(apart.token_types.end(), types, types + length);
      apart.token_types.resize((k + 1) * sequence, 0);
    }
    apart.targets.resize(count * sequence, kernels::ignored_target);
    r.global_batch = static_cast<int64_t>(count);
    planned = plan_for(*model, r);
    sums = &alone;
    trainer = trainer_for(model, planned, options);
    ASSERT_TRUE(trainer->step(apart.source(), count, 1e-3));
    ASSERT_EQ(together.size(), alone.size());
    for (const auto& [name, values] : together) {
      const std::vector<double>& others = alone[name];
      ASSERT_EQ(values.size(), others.size());
      const std::string of_queries = bias_of_queries(name);   // a bias of keys has no gradient but rounding
      double most = 0, off = 0;
      for (const double x : of_queries.empty() ? values : together[of_queries]) most = std::max(most, std::fabs(x));
      for (size_t i = 0; i < values.size(); ++i) off = std::max(off, std::fabs(values[i] - others[i]));
      EXPECT_LE(off, 2e-6 * most) << name;
    }
  }
}

TEST(Encoder, LearnsAndItsFolderAnswersAlike) {
  TemporaryDirectory folder;
  const auto model = model_of(classifier_of(small_bert()));
  Request request = request_for(16, sequence, 2);
  request.inputs.positions = true;   // as asked for with documents; the model has them in any case
  auto trainer = trainer_for(model, plan_for(*model, request));
  double last = 0;
  for (uint64_t step = 0; step < 300; ++step) {
    const auto result = trainer->step(packed_batch(step, 16, true).batch.source(), 16, 2e-3);
    ASSERT_TRUE(result) << result.error().message;
    last = result->loss;
  }
  EXPECT_LT(last, 0.7);
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  ModelSource source;
  source.source = folder / "out";
  const auto again = open_model(source);
  ASSERT_TRUE(again);
  auto opened = trainer_for(again, plan_for(*again, request_for(1, sequence)));
  const Packed unseen = packed_batch(1000, 8, true);
  int hits = 0;
  for (const auto& [sample, begin, length, label] : unseen.texts) {
    const auto at = static_cast<size_t>(sample * sequence + begin);
    const Text text{unseen.batch.tokens.data() + at, static_cast<uint64_t>(length), unseen.batch.token_types.data() + at};
    std::vector<float> logits(small_labels), theirs(small_labels);
    ASSERT_TRUE(trainer->classify({&text, 1}, logits.data()));
    ASSERT_TRUE(opened->classify({&text, 1}, theirs.data()));
    EXPECT_EQ(logits, theirs);
    hits += std::max_element(logits.begin(), logits.end()) - logits.begin() == label;
  }
  EXPECT_GE(hits, static_cast<int>(unseen.texts.size() * 8 / 10));
}

// What blocks share is stored once, under transformers' names, and has one state; a gradient for each use.
TEST(Encoder, SharedParametersAreOne) {
  TemporaryDirectory folder;
  ModelSource source;
  source.source = folder_of("encoder_albert");
  const auto model = open_model(source);
  ASSERT_TRUE(model);
  const auto planned = plan_for(*model, request_for(2, sequence));
  const auto trainer = trainer_for(model, planned);
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  auto theirs = SafetensorsReader::open(folder_of("encoder_albert") + "/model.safetensors"), ours = SafetensorsReader::open(folder / "out/model.safetensors");
  ASSERT_TRUE(theirs && ours);
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  EXPECT_EQ(model->parameters().size(), theirs->tensors().size());
  for (const SafetensorsInfo& t : theirs->tensors()) EXPECT_EQ(read_tensor<float>(*ours, t.name), read_tensor<float>(*theirs, t.name)) << t.name;
  uint64_t states = 0, gradients = 0;
  for (const Buffer& b : planned->programs.arena.persistent) states += b.owner == Class::optimizer, gradients += b.owner == Class::gradients;
  EXPECT_EQ(states, 2 * model->parameters().size());
  constexpr uint64_t of_block = 16, layers = 3;
  EXPECT_EQ(gradients, model->parameters().size() + of_block * (layers - 1));
}

// Source: transformers 5, configuration_bert.py, _roberta, _xlm_roberta, _distilbert, _electra and _albert.
TEST(Encoder, AnEmptyConfigHasTheSizesOfItsFamily) {
  struct Expected { const char* type; int64_t vocabulary, width, layers, heads, intermediate, positions, types, first, embeddings; float head; };
  for (const Expected& e : {Expected{"bert", 30522, 768, 12, 12, 3072, 512, 2, 0, 768, 0.1f}, {"roberta", 50265, 768, 12, 12, 3072, 510, 2, 2, 768, 0.1f},
                            {"xlm-roberta", 30522, 768, 12, 12, 3072, 510, 2, 2, 768, 0.1f}, {"distilbert", 30522, 768, 6, 12, 3072, 512, 0, 0, 768, 0.2f},
                            {"electra", 30522, 256, 12, 4, 1024, 512, 2, 0, 128, 0.1f},
                            {"albert", 30000, 4096, 12, 64, 16384, 512, 2, 0, 128, 0.1f}}) {
    const auto c = parse_model(std::string("{\"model_type\": \"") + e.type + "\"}", "config");
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ((std::vector<int64_t>{c->vocabulary, c->width, c->layers, c->heads, c->intermediate, c->positions, c->token_types, c->first_position, c->embedding_width}),
              (std::vector<int64_t>{e.vocabulary, e.width, e.layers, e.heads, e.intermediate, e.positions, e.types, e.first, e.embeddings}))
        << e.type;
    EXPECT_EQ(c->head_dropout, e.head) << e.type;
    const bool is_albert = e.type == std::string("albert");
    EXPECT_EQ(c->gelu, is_albert ? Activation::gelu_tanh : Activation::gelu_erf);
    for (const float rate : {c->embedding_dropout, c->attention_dropout, c->residual_dropout}) EXPECT_EQ(rate, is_albert ? 0.0f : 0.1f);
  }
}

TEST(Encoder, RefusesWhatItCannotDo) {
  const auto body = model_of(small_bert()), model = model_of(classifier_of(small_bert()));
  EXPECT_NE(Planned::make(*body, request_for(2, sequence)).error().message.find("it needs labels"), std::string::npos);
  auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
  std::vector<int32_t> prompt{1, 2}, out(3), types{0, 2};
  EXPECT_EQ(trainer->generate({prompt.data(), 2, out.data(), 3}).error().code, Code::unsupported);
  std::vector<float> logits(small_labels);
  const Text text{prompt.data(), 2, types.data()}, longer{prompt.data(), sequence + 1, nullptr};
  EXPECT_EQ(trainer->classify({&text, 1}, logits.data()).error().message, "classify: text 0: token type 2 is outside of the model's 2");
  EXPECT_EQ(trainer->classify({&longer, 1}, logits.data()).error().code, Code::unsupported_shape);
  ModelSource adapted;
  adapted.config_json = classifier_of(small_bert());
  adapted.adapters = adapters_of_all();
  EXPECT_NE(Model::open(adapted).error().message.find("low-rank adapters of a model of type bert are not supported"), std::string::npos);
  EXPECT_NE(Planned::make(*model, request_for(2, sequence + 1)).error().message.find("the model has 40 positions"), std::string::npos);
  EXPECT_NE(Planned::make(*model_of(classifier_of(small_roberta())), request_for(2, sequence + 1)).error().message.find("the model has 40 positions"), std::string::npos);
  for (const auto& [change, message] : {std::pair{R"("position_embedding_type": "relative_key", )", "position_embedding_type \"relative_key\" is not supported"},
                                        {R"("is_decoder": true, )", "is_decoder is not supported"},
                                        {R"("hidden_act": "mish", )", "hidden_act \"mish\" is not supported"},
                                        {R"("type_vocab_size": -1, )", "type_vocab_size is -1"}}) {
    const auto refused = parse_model("{" + std::string(change) + small_bert().substr(1), "config");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(message), std::string::npos) << refused.error().message;
  }
  for (const char* key : {"num_hidden_groups", "inner_group_num"}) {
    const auto refused = parse_model("{\"" + std::string(key) + "\": 2, " + small_albert().substr(1), "config");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(std::string(key) + " 2 is not supported"), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace stw::encoder_test
