// Classifiers through the C API: made from a language model, trained on samples and on documents, and used to
// classify texts.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

constexpr const char* names[] = {"yes", "no", "maybe"};

stw_model_options with_labels(const std::string& config, size_t count = 3,
                              const char* const* label_names = names) {
  auto o = sized<stw_model_options>();
  o.config_json = config.data();
  o.config_json_size = config.size();
  o.label_names = label_names;
  o.label_count = count;
  return o;
}

Handle<stw_model> classifier(const std::string& config = tiny_llama) {
  const auto o = with_labels(config);
  return make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
}

struct Classifier {
  Handle<stw_device> device = open_device();
  Handle<stw_model> model = classifier();
  Handle<stw_plan> plan;
  Handle<stw_trainer> trainer;
  explicit Classifier(uint32_t inputs = 0) {
    auto o = plan_options();
    o.inputs = inputs;
    plan = make_plan(model.get(), o);
    trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, device.get(), model.get(), plan.get(), nullptr, e);
    });
  }
};

TEST(Classifier, IsMadeOfALanguageModel) {
  const auto model = classifier();
  auto info = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(model.get(), &info), STW_OK);
  EXPECT_EQ(info.labels, 3u);
  EXPECT_EQ(info.vocabulary, 256u);
  EXPECT_EQ(info.padding_token, -1);
  EXPECT_EQ(info.generates, 1u);
  EXPECT_EQ(info.token_types, 0u);
  for (size_t i = 0; i < 3; ++i) EXPECT_STREQ(stw_model_label_at(model.get(), i), names[i]);
  EXPECT_EQ(stw_model_label_at(model.get(), 3), nullptr);
  EXPECT_EQ(stw_model_label_at(nullptr, 0), nullptr);
  size_t head = 0;
  ASSERT_EQ(stw_model_tensor_find(model.get(), "score.weight", &head), STW_OK);
  EXPECT_EQ(stw_model_tensor_find(model.get(), "lm_head.weight", &head), STW_BAD_ARGUMENT);
  const auto language = make_model(tiny_llama);
  ASSERT_EQ(stw_model_query(language.get(), &info), STW_OK);
  EXPECT_EQ(info.labels, 0u);
  EXPECT_EQ(stw_model_label_at(language.get(), 0), nullptr);
  const std::string json = stw_plan_json(make_plan(model.get(), plan_options()).get());
  EXPECT_NE(json.find("\"labels\": 3"), std::string::npos) << json.substr(0, 300);
}

TEST(Classifier, IsAnEncoder) {
  const auto model = make_model(tiny_bert);
  auto info = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(model.get(), &info), STW_OK);
  EXPECT_EQ(info.generates, 0u);
  EXPECT_EQ(info.token_types, 2u);
  EXPECT_EQ(info.labels, 3u);
  EXPECT_STREQ(info.architecture, "bert");
  EXPECT_STREQ(stw_model_label_at(model.get(), 2), "maybe");
}

TEST(Classifier, InvalidLabelsAreRefused) {
  const char *twice[] = {"a", "b", "a"}, *latin[] = {"a", "caf\xe9"}, *empty[] = {"a", ""},
             *null[] = {"a", nullptr};
  const struct {
    size_t count;
    const char* const* names;
    const char* why;
  } cases[] = {{0, names, "without a label_count"},
               {1, names, "label_count is 1"},
               {1 << 21, nullptr, "label_count is 2097152"},
               {3, twice, "\"a\" is there twice"},
               {2, latin, "label 1 is not UTF-8"},
               {2, empty, "label 1 has no name"},
               {2, null, "name 1 is NULL"}};
  for (const auto& c : cases) {
    const auto o = with_labels(tiny_gpt2, c.count, c.names);
    stw_error error = sized<stw_error>();
    stw_model* out = nullptr;
    EXPECT_EQ(stw_model_create(&out, &o, &error), STW_BAD_ARGUMENT) << c.why;
    EXPECT_NE(std::string(error.message).find(c.why), std::string::npos) << error.message;
    EXPECT_EQ(out, nullptr);
  }
}

// tiny_bert is a classifier with the labels yes, no and maybe.
TEST(Classifier, ANewHeadReplacesTheLabelsOfTheConfig) {
  const char* const other[] = {"cargo", "crew"};
  auto o = with_labels(tiny_bert, 2, other);
  stw_error error = sized<stw_error>();
  stw_model* out = nullptr;
  EXPECT_EQ(stw_model_create(&out, &o, &error), STW_BAD_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("(new_head replaces them)"), std::string::npos) << error.message;
  o.new_head = 1;
  const auto model =
      make<stw_model>([&](stw_model** made, stw_error* e) { return stw_model_create(made, &o, e); });
  auto info = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(model.get(), &info), STW_OK);
  EXPECT_EQ(info.labels, 2u);
  EXPECT_EQ(info.file_layers, 0u);
  EXPECT_STREQ(stw_model_label_at(model.get(), 1), "crew");
  const std::string config = stw_model_config(model.get());
  EXPECT_NE(config.find("\"1\": \"crew\""), std::string::npos) << config;
  EXPECT_EQ(config.find("maybe"), std::string::npos) << config;
  for (const auto& [value, count, why] :
       {std::tuple{2u, size_t{2}, "new_head is 2"}, {1u, size_t{0}, "new_head needs a label_count"}}) {
    o = with_labels(tiny_bert, count, count ? other : nullptr);
    o.new_head = value;
    EXPECT_EQ(stw_model_create(&out, &o, &error), STW_BAD_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(why), std::string::npos) << error.message;
  }
}

// Tokens and lengths of samples, and their labels.
struct Samples {
  int64_t shape[2] = {4, 16};
  std::vector<int32_t> tokens, targets, lengths = {16, 3, 9, 1}, labels = {0, 2, 1, -100};
  Samples() {
    uint32_t seed = 9;
    for (int i = 0; i < 64; ++i)
      tokens.push_back(static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 24));
    targets.assign(64, -100);
    for (size_t s = 0; s < 4; ++s) targets[16 * s + static_cast<size_t>(lengths[s]) - 1] = labels[s];
  }
  DLManagedTensorVersioned tensor(std::vector<int32_t>& data, int dimensions) {
    DLManagedTensorVersioned t{};
    t.version = {1, 0};
    t.dl_tensor.data = data.data();
    t.dl_tensor.device = {kDLCPU, 0};
    t.dl_tensor.ndim = dimensions;
    t.dl_tensor.dtype = {0, 32, 1};
    t.dl_tensor.shape = shape;
    return t;
  }
  // Passes "labels" of samples, or "targets" of tokens.
  stw_status step(stw_trainer* trainer, bool by_sample, stw_step_result* result, stw_error* error) {
    DLManagedTensorVersioned of_tokens = tensor(tokens, 2), of_lengths = tensor(lengths, 1),
                             of_labels = by_sample ? tensor(labels, 1) : tensor(targets, 2);
    const char* const list[] = {"tokens", "lengths", by_sample ? "labels" : "targets"};
    const DLManagedTensorVersioned* const tensors[] = {&of_tokens, &of_lengths, &of_labels};
    auto batch = sized<stw_batch>();
    batch.count = 3, batch.names = list, batch.tensors = tensors, batch.learning_rate = 1e-2;
    const stw_status status = stw_trainer_step(trainer, &batch, error);
    if (status == STW_OK) must(stw_trainer_wait(trainer, result, error), *error);
    return status;
  }
};

TEST(Classifier, LabelsOfSamplesAreTargetsOfTheirLastTokens) {
  Classifier by_sample, by_token;
  Samples samples;
  stw_error error = sized<stw_error>();
  auto one = sized<stw_step_result>(), other = sized<stw_step_result>();
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(samples.step(by_sample.trainer.get(), true, &one, &error), STW_OK) << error.message;
    ASSERT_EQ(samples.step(by_token.trainer.get(), false, &other, &error), STW_OK) << error.message;
    EXPECT_EQ(one.targets, 3u);
    EXPECT_EQ(one.loss, other.loss);
    EXPECT_EQ(one.grad_norm, other.grad_norm);
  }
  EXPECT_LT(one.loss, 1.0);
  samples.labels[1] = 3;
  EXPECT_EQ(samples.step(by_sample.trainer.get(), true, &one, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: labels: sample 1: id 3 is outside of the 3 labels");
  samples.targets[15] = 3;
  EXPECT_EQ(samples.step(by_sample.trainer.get(), false, &one, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: targets: sample 0, token 15: id 3 is outside of the 3 labels");
  samples.labels = {0, 1};
  samples.shape[0] = 2;
  samples.tokens.resize(32);
  EXPECT_EQ(samples.step(by_sample.trainer.get(), true, &one, &error), STW_OK) << error.message;
}

TEST(Classifier, LogitsDistinguishTheLabels) {
  Classifier c;
  Samples samples;
  stw_error error = sized<stw_error>();
  auto result = sized<stw_step_result>();
  for (int step = 0; step < 12; ++step)
    ASSERT_EQ(samples.step(c.trainer.get(), true, &result, &error), STW_OK);
  for (size_t s = 0; s < 3; ++s) {
    float logits[4] = {-1, -1, -1, -1};
    must(stw_trainer_logits(c.trainer.get(), samples.tokens.data() + 16 * s,
                            static_cast<uint64_t>(samples.lengths[s]), logits, 4, &error),
         error);
    EXPECT_EQ(std::max_element(logits, logits + 3) - logits, samples.labels[s]);
    EXPECT_EQ(logits[3], -1);
  }
  float logits[3];
  int32_t token = 256;
  EXPECT_EQ(stw_trainer_logits(c.trainer.get(), &token, 1, logits, 3, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_logits(c.trainer.get(), samples.tokens.data(), 1, logits, 2, &error),
            STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "logits: expected a capacity of 3, found 2");
  EXPECT_EQ(stw_trainer_logits(c.trainer.get(), samples.tokens.data(), 17, logits, 3, &error),
            STW_UNSUPPORTED_SHAPE);
  EXPECT_EQ(stw_trainer_logits(c.trainer.get(), samples.tokens.data(), 0, logits, 3, &error),
            STW_UNSUPPORTED_SHAPE);
  EXPECT_EQ(stw_trainer_logits(c.trainer.get(), nullptr, 1, logits, 3, &error), STW_BAD_ARGUMENT);
  auto generate = sized<stw_generate_options>();
  int32_t out[2];
  uint64_t count = 0;
  generate.prompt = samples.tokens.data(), generate.prompt_count = 1, generate.out = out,
  generate.out_capacity = 2;
  EXPECT_EQ(stw_trainer_generate(c.trainer.get(), &generate, &count, &error), STW_UNSUPPORTED);
  // For a language model, stw_trainer_logits gives the logits from which generation takes the next token.
  const World world(tiny_llama, plan_options());
  std::vector<float> all(256);
  must(stw_trainer_logits(world.trainer.get(), samples.tokens.data(), 5, all.data(), 256, &error), error);
  generate.prompt_count = 5;
  must(stw_trainer_generate(world.trainer.get(), &generate, &count, &error), error);
  EXPECT_EQ(std::max_element(all.begin(), all.end()) - all.begin(), out[0]);
}

// Texts of several lengths, end to end.
struct Texts {
  std::vector<uint64_t> lengths = {16, 3, 9, 1, 4, 2, 16, 1};
  std::vector<int32_t> tokens, types;  // types: the second half of each text, if it has one, has type 1
  Texts() {
    uint32_t seed = 7;
    for (const uint64_t length : lengths)
      for (uint64_t i = 0; i < length; ++i) {
        tokens.push_back(static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 24));
        types.push_back(2 * i > length);
      }
  }
  std::vector<float> classify(stw_trainer* trainer, const std::vector<int32_t>& token_types = {}) const {
    std::vector<float> out(3 * lengths.size());
    stw_error error = sized<stw_error>();
    must(stw_trainer_classify(trainer, tokens.data(), token_types.empty() ? nullptr : token_types.data(),
                              lengths.data(), lengths.size(), out.data(), out.size(), &error),
         error);
    return out;
  }
};

void expect_same_as_logits(stw_trainer* trainer) {
  const Texts texts;
  const std::vector<float> all = texts.classify(trainer);
  stw_error error = sized<stw_error>();
  const int32_t* tokens = texts.tokens.data();
  for (size_t k = 0; k < texts.lengths.size(); tokens += texts.lengths[k++]) {
    float one[3];
    must(stw_trainer_logits(trainer, tokens, texts.lengths[k], one, 3, &error), error);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(all[3 * k + i], one[i]) << "text " << k;
  }
  EXPECT_EQ(progress_of(trainer).phase, uint32_t{STW_PHASE_IDLE});
}

TEST(Classifier, AnswersForManyTextsEqualThoseOfEach) {
  const Classifier decoder;
  expect_same_as_logits(decoder.trainer.get());
  const World encoder(tiny_bert, plan_options());
  expect_same_as_logits(encoder.trainer.get());
}

TEST(Classifier, TypesOfTokensChangeAnswers) {
  const World w(tiny_bert, plan_options());
  const Texts texts;
  const std::vector<float> without = texts.classify(w.trainer.get()),
                           with = texts.classify(w.trainer.get(), texts.types);
  EXPECT_EQ(texts.classify(w.trainer.get(), std::vector<int32_t>(texts.tokens.size())), without);
  size_t begin = 0;
  for (size_t k = 0; k < texts.lengths.size(); begin += texts.lengths[k++]) {
    // In a text of at most two tokens, all types are 0.
    EXPECT_EQ(std::equal(with.begin() + 3 * k, with.begin() + 3 * k + 3, without.begin() + 3 * k),
              texts.lengths[k] <= 2)
        << "text " << k;
    float one[3];
    stw_error error = sized<stw_error>();
    must(stw_trainer_classify(w.trainer.get(), texts.tokens.data() + begin, texts.types.data() + begin,
                              &texts.lengths[k], 1, one, 3, &error),
         error);
    EXPECT_TRUE(std::equal(one, one + 3, with.begin() + 3 * k)) << "text " << k;
  }
}

TEST(Classifier, InvalidTextsAreRefused) {
  const World encoder(tiny_bert, plan_options()), language(tiny_llama, plan_options());
  const Classifier decoder;
  stw_trainer* const t = encoder.trainer.get();
  const std::vector<float> untouched(7, -1);
  std::vector<float> out = untouched;
  std::vector<int32_t> tokens(20, 5), types(20, 1);
  std::vector<uint64_t> lengths = {2, 3};
  stw_error error = sized<stw_error>();
  const auto refused = [&](stw_trainer* trainer, const int32_t* token_types, uint64_t capacity,
                           stw_status status, const char* why) {
    EXPECT_EQ(stw_trainer_classify(trainer, tokens.data(), token_types, lengths.data(), lengths.size(),
                                   out.data(), capacity, &error),
              status)
        << why;
    EXPECT_STREQ(error.message, why);
    EXPECT_EQ(out, untouched);
  };
  refused(t, nullptr, 5, STW_BAD_ARGUMENT, "classify: expected a capacity of 6, found 5");
  refused(language.trainer.get(), nullptr, 6, STW_UNSUPPORTED, "classify: the model is no classifier");
  refused(decoder.trainer.get(), types.data(), 6, STW_BAD_ARGUMENT,
          "classify: text 0: the model has no types of tokens");
  for (stw_trainer* const trainer : {t, decoder.trainer.get()}) {
    lengths[1] = 0;
    refused(trainer, nullptr, 6, STW_UNSUPPORTED_SHAPE, "classify: text 1: expected 1 to 16 tokens, found 0");
    lengths[1] = 17;
    refused(trainer, nullptr, 6, STW_UNSUPPORTED_SHAPE,
            "classify: text 1: expected 1 to 16 tokens, found 17");
    lengths[1] = UINT64_MAX;
    refused(trainer, nullptr, 6, STW_UNSUPPORTED_SHAPE,
            "classify: text 1: expected 1 to 16 tokens, found 18446744073709551615");
    lengths[1] = 3;
    for (const int32_t token : {256, -1}) {
      tokens[3] = token;
      refused(trainer, nullptr, 6, STW_BAD_ARGUMENT,
              ("classify: text 1: token " + std::to_string(token) + " is outside of the vocabulary of 256")
                  .c_str());
    }
    tokens[3] = 5;
  }
  for (const int32_t type : {2, -1}) {
    types[4] = type;
    refused(
        t, types.data(), 6, STW_BAD_ARGUMENT,
        ("classify: text 1: token type " + std::to_string(type) + " is outside of the model's 2").c_str());
  }
  types[4] = 1;
  EXPECT_EQ(stw_trainer_classify(nullptr, tokens.data(), nullptr, lengths.data(), 2, out.data(), 6, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_classify(t, nullptr, nullptr, lengths.data(), 2, out.data(), 6, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_classify(t, tokens.data(), nullptr, nullptr, 2, out.data(), 6, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_classify(t, tokens.data(), nullptr, lengths.data(), 2, nullptr, 6, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_classify(language.trainer.get(), tokens.data(), nullptr, lengths.data(), 2, nullptr,
                                 0, &error),
            STW_UNSUPPORTED);
  EXPECT_EQ(out, untouched);
  // With no texts, no logits are written. The rest of a larger output stays unchanged.
  EXPECT_EQ(stw_trainer_classify(t, nullptr, nullptr, nullptr, 0, nullptr, 0, &error), STW_OK)
      << error.message;
  EXPECT_EQ(stw_trainer_classify(t, tokens.data(), types.data(), lengths.data(), 2, out.data(), 7, &error),
            STW_OK)
      << error.message;
  EXPECT_EQ(std::count(out.begin(), out.end(), -1.0f), 1);
  EXPECT_EQ(out[6], -1);
}

// A cancel stops only the next call.
TEST(Classifier, QuestionsAreCancelled) {
  const Classifier decoder;
  const World encoder(tiny_bert, plan_options());
  const Texts texts;
  for (stw_trainer* const t : {decoder.trainer.get(), encoder.trainer.get()}) {
    const std::vector<float> expected = texts.classify(t);
    std::vector<float> out(expected.size());
    const auto classify = [&] {
      return stw_trainer_classify(t, texts.tokens.data(), nullptr, texts.lengths.data(), texts.lengths.size(),
                                  out.data(), out.size(), nullptr);
    };
    const auto logits = [&] {
      return stw_trainer_logits(t, texts.tokens.data(), 16, out.data(), 3, nullptr);
    };
    stw_trainer_cancel(t);
    EXPECT_EQ(classify(), STW_CANCELLED);
    EXPECT_EQ(progress_of(t).phase, uint32_t{STW_PHASE_IDLE});
    EXPECT_EQ(classify(), STW_OK);
    EXPECT_EQ(out, expected);
    stw_trainer_cancel(t);
    EXPECT_EQ(logits(), STW_CANCELLED);
    EXPECT_EQ(logits(), STW_OK);
  }
}

// Samples of one text each. The target of a text's first token is its label.
TokenBatch labelled_texts(std::vector<int32_t> token_types = {}) {
  TokenBatch batch(4, 16);
  batch.targets.assign(64, -100);
  for (size_t s = 0; s < 4; ++s) batch.targets[16 * s] = static_cast<int32_t>(s % 3);
  batch.token_types = std::move(token_types);
  return batch;
}

std::vector<int32_t> types_of_halves() {
  std::vector<int32_t> types(64);
  for (size_t i = 0; i < 64; ++i) types[i] = i % 16 > 7;
  return types;
}

TEST(Classifier, TypesOfTokensOfABatchAreLearnedFrom) {
  const World without(tiny_bert, plan_options()), zero(tiny_bert, plan_options()),
      halves(tiny_bert, plan_options());
  TokenBatch plain = labelled_texts(), of_zero = labelled_texts(std::vector<int32_t>(64)),
             of_halves = labelled_texts(types_of_halves());
  std::vector<float> one(64), other(64);
  stw_error error = sized<stw_error>();
  must(stw_trainer_log_probabilities(without.trainer.get(), plain.batch(), one.data(), 64, &error), error);
  must(stw_trainer_log_probabilities(without.trainer.get(), of_halves.batch(), other.data(), 64, &error),
       error);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(one[i] == other[i], plain.targets[i] < 0) << i;
  for (int s = 0; s < 2; ++s) {
    EXPECT_EQ(step(without.trainer.get(), plain.batch()).targets, 4u);
    step(zero.trainer.get(), of_zero.batch());
    step(halves.trainer.get(), of_halves.batch());
  }
  EXPECT_EQ(state_of(zero), state_of(without));
  EXPECT_FALSE(state_of(halves) == state_of(without));
}

TEST(Classifier, InvalidTypesOfTokensAreRefused) {
  const World encoder(tiny_bert, plan_options());
  const Classifier decoder;
  stw_error error = sized<stw_error>();
  const auto refused = [&](stw_trainer* trainer, const stw_batch* batch, stw_status status, const char* why) {
    EXPECT_EQ(stw_trainer_step(trainer, batch, &error), status) << why;
    EXPECT_STREQ(error.message, why);
  };
  TokenBatch batch = labelled_texts(types_of_halves());
  refused(decoder.trainer.get(), batch.batch(), STW_UNSUPPORTED,
          "batch: token_types: the model has no types of tokens");
  stw_trainer* const t = encoder.trainer.get();
  const stw_batch* given = batch.batch();
  int64_t shorter[] = {4, 15};
  batch.managed(2).dl_tensor.shape = shorter;
  refused(t, given, STW_BAD_ARGUMENT, "batch: tokens and token_types have different shapes");
  batch.managed(2).dl_tensor.ndim = 1;
  refused(t, given, STW_BAD_ARGUMENT,
          "batch: token_types: expected two dimensions (samples, tokens), found 1");
  given = batch.batch();
  batch.managed(2).dl_tensor.dtype.code = 2;
  refused(t, given, STW_BAD_ARGUMENT, "batch: token_types: expected int32");
  batch.token_types[16 + 3] = 2;
  refused(t, batch.batch(), STW_BAD_ARGUMENT,
          "batch: token_types: sample 1, token 3: id 2 is outside of the 2 types of tokens");
  batch.token_types[16 + 3] = -1;
  refused(t, batch.batch(), STW_BAD_ARGUMENT,
          "batch: token_types: sample 1, token 3: id -1 is outside of the 2 types of tokens");
  EXPECT_EQ(progress_of(t).step, 0u);
  batch.lengths = {16, 3, 16, 16};  // tokens past the length are not checked
  EXPECT_EQ(stw_trainer_step(t, batch.batch(), &error), STW_OK) << error.message;
}

// Pairs of texts of 4 bytes; the second text begins with the third byte.
TEST(Classifier, MarksDistinguishSecondTexts) {
  TemporaryDirectory folder;
  const std::string tokens = folder / "tokens.txt", labels = folder / "labels", without = folder / "without",
                    with = folder / "with";
  std::string ids, begins, seconds;
  for (int d = 0; d < 100; ++d) {
    ids += {static_cast<char>(d % 3), 0, 0, 0};
    begins += {STW_MARK_BEGIN, 0, 0, 0};
    seconds += {STW_MARK_BEGIN, 0, STW_MARK_SECOND, STW_MARK_SECOND};
  }
  put_file(tokens, text_of(400).substr(0, 400)), put_file(labels, ids), put_file(without, begins),
      put_file(with, seconds);
  const auto open = [&](const std::string& marks) {
    auto o = sized<stw_dataset_options>();
    o.path = tokens.c_str(), o.marks = marks.c_str(), o.labels = labels.c_str();
    o.label_count = 3, o.vocabulary = 256, o.sequence = 16;
    return open_dataset(o);
  };
  const auto plain = open(without), of_pairs = open(with);
  const World one(tiny_bert, plan_options()), other(tiny_bert, plan_options());
  run(one.trainer.get(), plain.get(), 2);
  run(other.trainer.get(), of_pairs.get(), 2);
  EXPECT_FALSE(state_of(one) == state_of(other));
  Classifier decoder(STW_INPUT_POSITIONS);
  run(decoder.trainer.get(), plain.get(), 1);
  const auto o = run_options(2);
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_run(decoder.trainer.get(), of_pairs.get(), &o, &error), STW_BAD_STATE);
  EXPECT_STREQ(error.message,
               "trainer: the dataset marks tokens of second texts, and the model has no token types");
}

// A BERT is trained in full, saved and loaded. Then it is trained with adapters, also over codes of its
// weights, and continues from a checkpoint.
TEST(Classifier, AnEncoderIsTunedSavedAndLoaded) {
  const TemporaryDirectory folder;
  const std::string base = folder / "base", adapters = folder / "adapters", merged = folder / "merged",
                    checkpoint = folder / "checkpoint.stw";
  stw_error error = sized<stw_error>();
  auto result = sized<stw_step_result>();
  Samples samples;
  const auto open = [&](const std::string& source, uint32_t rank) {
    auto o = sized<stw_model_options>();
    o.source = source.c_str(), o.adapter_rank = rank;
    return make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
  };
  const auto trainer_of = [&](const World& world, const stw_model* model, uint32_t quantize = 0) {
    auto p = plan_options();
    p.quantize = quantize;
    const auto plan = make_plan(model, p);
    return make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, world.device.get(), model, plan.get(), nullptr, e);
    });
  };
  const auto answer = [&](stw_trainer* trainer) {
    std::vector<float> logits(9);
    std::vector<uint64_t> lengths = {16, 3, 9};
    std::vector<int32_t> tokens;
    for (size_t s = 0; s < 3; ++s)
      tokens.insert(tokens.end(), samples.tokens.begin() + static_cast<std::ptrdiff_t>(16 * s),
                    samples.tokens.begin() + static_cast<std::ptrdiff_t>(16 * s + lengths[s]));
    must(stw_trainer_classify(trainer, tokens.data(), nullptr, lengths.data(), 3, logits.data(),
                              logits.size(), &error),
         error);
    return logits;
  };
  const World world(tiny_bert, plan_options());
  for (int step = 0; step < 60; ++step)
    ASSERT_EQ(samples.step(world.trainer.get(), true, &result, &error), STW_OK) << error.message;
  EXPECT_LT(result.loss, 0.2);
  const std::vector<float> whole = answer(world.trainer.get());
  for (size_t s = 0; s < 3; ++s)
    EXPECT_EQ(std::max_element(whole.begin() + 3 * s, whole.begin() + 3 * s + 3) - whole.begin(),
              3 * static_cast<std::ptrdiff_t>(s) + samples.labels[s]);
  must(stw_trainer_export_model(world.trainer.get(), base.c_str(), &error), error);
  const auto plain = open(base, 0);
  EXPECT_EQ(answer(trainer_of(world, plain.get()).get()), whole);

  // Other labels for the same texts.
  std::rotate(samples.labels.begin(), samples.labels.begin() + 1, samples.labels.begin() + 3);
  const auto fresh = open(base, 4);
  const auto adapted = trainer_of(world, fresh.get(), STW_QUANTIZE_NF4),
             again = trainer_of(world, fresh.get(), STW_QUANTIZE_NF4);
  for (int step = 0; step < 10; ++step) {
    ASSERT_EQ(samples.step(adapted.get(), true, &result, &error), STW_OK) << error.message;
    if (step == 4) must(stw_trainer_save(adapted.get(), checkpoint.c_str(), &error), error);
  }
  must(stw_trainer_restore(again.get(), checkpoint.c_str(), &error), error);
  for (int step = 5; step < 10; ++step)
    ASSERT_EQ(samples.step(again.get(), true, &result, &error), STW_OK) << error.message;
  EXPECT_EQ(answer(again.get()), answer(adapted.get()));
  EXPECT_NE(answer(adapted.get()), whole);
  must(stw_trainer_export_model(adapted.get(), adapters.c_str(), &error), error);
  const auto by_itself = open(adapters, 0);
  EXPECT_EQ(answer(trainer_of(world, by_itself.get(), STW_QUANTIZE_NF4).get()), answer(adapted.get()));
  must(stw_model_export(by_itself.get(), merged.c_str(), &error), error);
  const auto of_merged = open(merged, 0);
  const std::vector<float> numbers = answer(trainer_of(world, by_itself.get()).get()),
                           sums = answer(trainer_of(world, of_merged.get()).get());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], numbers[i], 1e-4);
}

// Documents of 5 bytes. Their last byte determines their label.
TEST(Classifier, DocumentsOfAFileAreTrainedAndEvaluated) {
  TemporaryDirectory folder;
  const std::string tokens = folder / "tokens.txt", marks = folder / "marks", labels = folder / "labels";
  std::string text, begins, ids;
  for (int d = 0; d < 200; ++d) {
    text += {'a', static_cast<char>('a' + d % 7), 'x', 'y', static_cast<char>('0' + d * d % 3)};
    begins += {STW_MARK_BEGIN, 0, 0, 0, 0};
    ids += {static_cast<char>(d * d % 3), 0, 0, 0};
  }
  put_file(tokens, text), put_file(marks, begins), put_file(labels, ids);
  auto o = sized<stw_dataset_options>();
  o.path = tokens.c_str(), o.marks = marks.c_str(), o.labels = labels.c_str();
  o.label_count = 3, o.vocabulary = 256, o.sequence = 16;
  const auto open = [&] {
    return make<stw_dataset>([&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &o, e); });
  };
  const auto training = open();
  o.set_mask = STW_SET_HELD_OUT;
  o.held_out = 1;
  const auto all = open();
  auto info = sized<stw_dataset_info>();
  ASSERT_EQ(stw_dataset_query(all.get(), &info), STW_OK);
  EXPECT_EQ(info.training_tokens, 0u);
  EXPECT_EQ(info.evaluation_tokens, 1000u);
  EXPECT_EQ(info.evaluation_samples, 67u);  // three documents each
  Classifier c(STW_INPUT_POSITIONS);
  stw_error error = sized<stw_error>();
  double before = 0, after = 0;
  must(stw_trainer_evaluate(c.trainer.get(), all.get(), 100, &before, &error), error);
  const double untrained = progress_of(c.trainer.get()).evaluation_accuracy;
  run(c.trainer.get(), training.get(), 60);
  must(stw_trainer_evaluate(c.trainer.get(), all.get(), 100, &after, &error), error);
  EXPECT_NEAR(before, std::log(3.0), 0.1);
  EXPECT_LT(after, 0.1);
  EXPECT_LT(untrained, 0.8);
  EXPECT_EQ(progress_of(c.trainer.get()).evaluation_accuracy, 1);
  const std::string out = folder / "out";
  must(stw_trainer_export_model(c.trainer.get(), out.c_str(), &error), error);
  auto source = sized<stw_model_options>();
  source.source = out.c_str();
  const auto again =
      make<stw_model>([&](stw_model** m, stw_error* e) { return stw_model_create(m, &source, e); });
  EXPECT_STREQ(stw_model_label_at(again.get(), 2), "maybe");
  // A share outside of [0, 1], a labels file that does not exist, and a dataset without documents.
  stw_dataset* none = nullptr;
  o.held_out = 1.5;
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_BAD_ARGUMENT);
  o.held_out = 0;
  o.labels = "";
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_BAD_ARGUMENT);
  o.labels = nullptr;
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_BAD_ARGUMENT);
  o.labels = labels.c_str(), o.marks = nullptr;
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
