// A plan's figures are true and add up, survive its text form, and obey the budget.
#include <map>
#include <thread>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

const std::string small_llama =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":512,
  "max_position_embeddings":64,"hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,
  "intermediate_size":192,"hidden_act":"silu","rms_norm_eps":1e-5,"tie_word_embeddings":true})";

void check_sums(const stw_plan_info& i) {
  EXPECT_EQ(i.parameters + i.gradients + i.optimizer + i.saved_activations + i.transient + i.workspace +
                i.inputs + i.padding,
            i.arena);
  EXPECT_EQ(i.peak, i.arena + i.reserve);
  EXPECT_EQ(i.accumulation_steps, (i.global_batch + i.micro_batch - 1) / i.micro_batch);
  EXPECT_EQ(i.last_micro_batch, i.global_batch - (i.accumulation_steps - 1) * i.micro_batch);
  EXPECT_LE(i.minimum_bytes, i.fits ? i.peak : UINT64_MAX);
  EXPECT_EQ(i.fits != 0, i.peak <= i.budget);
  EXPECT_EQ(std::strlen(i.fingerprint), 16u);
  EXPECT_GT(i.step_seconds, 0);
  EXPECT_GT(i.tokens_per_second, 0);
}

#ifdef STW_SANITIZED
constexpr int budgets_tried = 5, budget_step = 15;
#else
constexpr int budgets_tried = 20, budget_step = 4;
#endif

TEST(Plan, ClassesAddUp) {
  for (const std::string& config : {tiny_gpt2, tiny_llama, small_llama, std::string("nano")}) {
    const auto model = make_model(config);
    for (const uint32_t recompute : {STW_RECOMPUTE_AUTO, STW_RECOMPUTE_NONE, STW_RECOMPUTE_FULL})
      for (const uint32_t bits : {STW_STATES_32, STW_STATES_8})
        for (const uint64_t micro_batch : {0, 1, 3, 5}) {
          auto o = plan_options(5);
          o.recompute = recompute;
          o.state_bits = bits;
          o.micro_batch = micro_batch;
          const auto plan = make_plan(model.get(), o);
          const stw_plan_info info = info_of(plan.get());
          check_sums(info);
          EXPECT_EQ(info.fits, 1u);
          EXPECT_EQ(info.state_bits, bits);
          EXPECT_TRUE(micro_batch == 0 || info.micro_batch == micro_batch);
          stw_error error = sized<stw_error>();
          EXPECT_EQ(stw_plan_verify(plan.get(), &error), STW_OK) << error.message;
        }
  }
}

TEST(Plan, NamesTheTiledBlocks) {
  std::string config = small_llama;
  config.replace(config.find("\"max_position_embeddings\":64"), 28, "\"max_position_embeddings\":1100");
  const auto model = make_model(config);
  auto o = plan_options(1);
  o.sequence = 1100;
  const stw_plan_info ample = info_of(make_plan(model.get(), o).get());
  EXPECT_EQ(ample.tiled_blocks, 0u);
  EXPECT_EQ(ample.tile_rows, 0u);
  o.memory_bytes = ample.minimum_bytes;
  const auto plan = make_plan(model.get(), o);
  const stw_plan_info info = info_of(plan.get());
  EXPECT_EQ(info.tiled_blocks, 4u);
  EXPECT_EQ(info.tile_rows, 256u);
  const std::string json = stw_plan_json(plan.get());
  EXPECT_NE(json.find("\"rows\": 256"), std::string::npos);
}

TEST(Plan, BuffersLieInTheArenaAndThePersistentOnesApart) {
  const auto model = make_model(small_llama);
  const auto plan = make_plan(model.get(), plan_options());
  const stw_plan_info info = info_of(plan.get());
  std::map<uint64_t, uint64_t> persistent;
  const size_t count = stw_plan_buffer_count(plan.get());
  ASSERT_GT(count, stw_model_tensor_count(model.get()));
  uint64_t parameters = 0;
  for (size_t i = 0; i < count; ++i) {
    auto b = sized<stw_buffer_info>();
    ASSERT_EQ(stw_plan_buffer_at(plan.get(), i, &b), STW_OK);
    EXPECT_NE(b.name[0], 0);
    EXPECT_LE(b.offset + b.bytes, info.arena) << b.name;
    EXPECT_LE(b.first, b.last);
    if (b.persistent) {
      EXPECT_EQ(b.last, 0u);
      EXPECT_TRUE(b.bytes == 0 || persistent.emplace(b.offset, b.offset + b.bytes).second) << b.name;
    }
    if (std::string(b.owner) == "parameters") parameters += b.bytes;
  }
  EXPECT_EQ(parameters, info.parameters);
  uint64_t end = 0;
  for (const auto& [first, last] : persistent) {
    EXPECT_GE(first, end);
    end = last;
  }
  auto b = sized<stw_buffer_info>();
  EXPECT_EQ(stw_plan_buffer_at(plan.get(), count, &b), STW_BAD_ARGUMENT);
}

TEST(Plan, IsDeterministicAndSurvivesItsText) {
  const auto model = make_model(small_llama), other = make_model(tiny_llama);
  auto o = plan_options(6, 16);
  o.micro_batch = 4;
  const auto plan = make_plan(model.get(), o);
  const std::string json = stw_plan_json(plan.get());
  EXPECT_EQ(json, stw_plan_json(make_plan(model.get(), o).get()));
  EXPECT_NE(std::string(stw_plan_report(plan.get())).find("peak"), std::string::npos);
  EXPECT_NE(json.find(info_of(plan.get()).fingerprint), std::string::npos);

  const auto load = [](const stw_model* m, const std::string& text) {
    stw_error error = sized<stw_error>();
    stw_plan* out = reinterpret_cast<stw_plan*>(16);
    const stw_status status = stw_plan_load(&out, m, text.data(), text.size(), &error);
    Handle<stw_plan> loaded(out);
    EXPECT_EQ(loaded != nullptr, status == STW_OK) << error.message;
    EXPECT_EQ(error.status, status);
    return std::pair{status, std::move(loaded)};
  };
  const auto [status, loaded] = load(model.get(), json);
  ASSERT_EQ(status, STW_OK);
  EXPECT_EQ(json, stw_plan_json(loaded.get()));
  EXPECT_EQ(std::string(stw_plan_report(plan.get())), stw_plan_report(loaded.get()));
  const stw_plan_info a = info_of(plan.get()), b = info_of(loaded.get());
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0);
  EXPECT_EQ(stw_plan_verify(loaded.get(), nullptr), STW_OK);

  EXPECT_EQ(load(other.get(), json).first, STW_BAD_STATE);
  std::string later = json;
  later.replace(later.find("\"version\": 1"), 12, "\"version\": 2");
  EXPECT_EQ(load(model.get(), later).first, STW_UNSUPPORTED);
  // Every edited digit is found, wherever it is.
  size_t edits = 0;
  for (size_t i = 0; i < json.size(); i += 1 + json.size() / 400) {
    const size_t digit = json.find_first_of("0123456789", i);
    if (digit == std::string::npos) break;
    std::string edited = json;
    edited[digit] = edited[digit] == '9' ? '8' : static_cast<char>(edited[digit] + 1);
    const auto [refused, same] = load(model.get(), edited);
    // A change of a double's 18th digit may leave its value, and so the plan, as it was.
    if (same) {
      EXPECT_EQ(json, stw_plan_json(same.get())) << " at " << digit << ": " << json.substr(digit, 40);
    } else {
      const bool is_version = digit == json.find("\"version\": ") + 11;
      EXPECT_EQ(refused, is_version ? STW_UNSUPPORTED : STW_CORRUPT)
          << " at " << digit << ": " << json.substr(digit, 40);
    }
    ++edits;
  }
  EXPECT_GT(edits, 50u);
  for (size_t size = 0; size <= json.rfind('}'); size += 97)
    EXPECT_NE(load(model.get(), json.substr(0, size)).first, STW_OK);
  EXPECT_NE(load(model.get(), "{}").first, STW_OK);
}

TEST(Plan, OverBudgetIsAnAnswer) {
  for (const std::string& config : {std::string("nano"), small_llama}) {
    const auto model = make_model(config);
    auto o = plan_options(6, 32);
    o.state_bits = STW_STATES_32;
    const uint64_t minimum = info_of(make_plan(model.get(), o).get()).minimum_bytes;
    o.memory_bytes = minimum - (1 << 20);
    stw_error error = sized<stw_error>();
    stw_plan* out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, &error), STW_OVER_BUDGET);
    const Handle<stw_plan> plan(out);
    ASSERT_NE(plan, nullptr) << "the one output that comes with a failure";
    const stw_plan_info info = info_of(plan.get());
    EXPECT_EQ(info.fits, 0u);
    EXPECT_EQ(info.minimum_bytes, minimum);
    EXPECT_EQ(error.bytes_needed, minimum);
    EXPECT_EQ(error.bytes_available, o.memory_bytes);
    EXPECT_NE(std::string(error.message).find(std::to_string(minimum)), std::string::npos);
    EXPECT_NE(std::string(stw_plan_json(plan.get())).find("\"fits\": false"), std::string::npos);
    EXPECT_NE(stw_plan_report(plan.get())[0], 0);
    const auto device = open_device();
    stw_trainer* trainer = nullptr;
    EXPECT_EQ(stw_trainer_create(&trainer, device.get(), model.get(), plan.get(), nullptr, nullptr),
              STW_BAD_STATE);
    o.memory_bytes = minimum - 1;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    stw_plan_destroy(out);
    o.memory_bytes = 1;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    stw_plan_destroy(out);
    o.memory_bytes = minimum;
    const auto tight = make_plan(model.get(), o);
    EXPECT_EQ(info_of(tight.get()).peak, minimum);
    TemporaryDirectory folder;
    const auto dataset = open_text(folder, text_of(2000), 32);
    const auto t = make<stw_trainer>([&](stw_trainer** to, stw_error* e) {
      return stw_trainer_create(to, device.get(), model.get(), tight.get(), nullptr, e);
    });
    run(t.get(), dataset.get(), 1);
  }
}

std::string picture_of(const stw_plan* plan, uint32_t kind) {
  size_t size = 0;
  EXPECT_EQ(stw_plan_picture(plan, kind, nullptr, 0, &size, nullptr), STW_OK);
  std::string text(size, '!');
  EXPECT_EQ(stw_plan_picture(plan, kind, text.data(), size, nullptr, nullptr), STW_OK);
  EXPECT_EQ(text.find('\0'), size - 1) << "a zero byte at the end, and only there";
  text.pop_back();
  return text;
}

TEST(Plan, PicturesAreCopiedWholeOrNotAtAll) {
  const auto model = make_model(small_llama);
  const auto plan = make_plan(model.get(), plan_options()), again = make_plan(model.get(), plan_options());
  const std::pair<uint32_t, const char*> kinds[] = {
      {STW_PICTURE_SVG, "<svg "},
      {STW_PICTURE_HTML, "<!DOCTYPE html>"},
      {STW_PICTURE_CSV, "id,lower,upper,size,offset,name,class\n"}};
  for (const auto& [kind, begin] : kinds) {
    const std::string text = picture_of(plan.get(), kind);
    EXPECT_TRUE(text.starts_with(begin)) << text.substr(0, 80);
    EXPECT_EQ(text, picture_of(again.get(), kind));
    for (const size_t capacity :
         {size_t{1}, text.size() / 2, text.size(), text.size() + 1, text.size() + 100}) {
      std::string out(text.size() + 100, '!');
      size_t needed = 0;
      stw_error error = sized<stw_error>();
      const stw_status status = stw_plan_picture(plan.get(), kind, out.data(), capacity, &needed, &error);
      EXPECT_EQ(needed, text.size() + 1);
      const bool fits = capacity >= needed;
      EXPECT_EQ(status, fits ? STW_OK : STW_BAD_ARGUMENT);
      EXPECT_EQ(std::string(error.message).find(std::to_string(needed)) != std::string::npos, !fits)
          << error.message;
      EXPECT_EQ(out.substr(0, text.size()) == text, fits);
      EXPECT_EQ(out.find_first_not_of('!', fits ? needed : 0), std::string::npos)
          << "nothing is written past the end";
    }
  }
  EXPECT_EQ(stw_plan_picture(nullptr, STW_PICTURE_SVG, nullptr, 0, nullptr, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_plan_picture(plan.get(), STW_PICTURE_SVG, nullptr, 0, nullptr, nullptr), STW_OK);
  EXPECT_EQ(stw_plan_picture(plan.get(), STW_PICTURE_SVG, nullptr, 100, nullptr, nullptr), STW_BAD_ARGUMENT);
  size_t needed = 77;
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_plan_picture(plan.get(), STW_PICTURE_CSV + 1, nullptr, 0, &needed, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(needed, 77u);
  EXPECT_NE(std::string(error.message).find("kind"), std::string::npos);
}

TEST(Plan, PicturesOfOnePlanFromSeveralThreads) {
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_options());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&] { text = picture_of(plan.get(), STW_PICTURE_HTML); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

// Budgets are monotone: a tighter one never raises the peak, a looser one never slows the plan, and the plans
// of all budgets report the same minimum. With automatic state bits, 32-bit states are chosen as soon as they
// cost less than a tenth of the speed.
TEST(Plan, BudgetsAreMonotone) {
  for (const std::string& config : {std::string("nano"), small_llama})
    for (const uint32_t bits : {STW_STATES_32, STW_STATES_8, STW_STATES_AUTO}) {
      const auto model = make_model(config);
      auto o = plan_options(8, 64);
      o.state_bits = bits;
      const stw_plan_info loose = info_of(make_plan(model.get(), o).get());
      const uint64_t at_least = loose.minimum_bytes;
      uint64_t peak = 0;
      double seconds = 1e300;
      const int budgets = budgets_tried;
      const uint64_t begin = loose.minimum_bytes / 2, end = loose.peak + loose.peak / 8;
      for (int k = 0; k <= budgets; ++k) {
        SCOPED_TRACE(testing::Message() << config.substr(0, 60) << " states " << bits << " budget " << k);
        o.memory_bytes = begin + (end - begin) * static_cast<uint64_t>(k) / budgets;
        stw_plan* out = nullptr;
        const stw_status status = stw_plan_create(&out, model.get(), &o, nullptr);
        const Handle<stw_plan> plan(out);
        ASSERT_TRUE(status == STW_OK || status == STW_OVER_BUDGET);
        const stw_plan_info info = info_of(plan.get());
        check_sums(info);
        EXPECT_EQ(info.minimum_bytes, at_least);
        EXPECT_EQ(info.fits != 0, o.memory_bytes >= at_least);
        if (!info.fits) continue;
        EXPECT_LE(info.peak, o.memory_bytes);
        EXPECT_GE(info.peak, peak);
        EXPECT_LE(info.step_seconds, bits == STW_STATES_AUTO ? seconds / 0.9 : seconds);
        peak = info.peak;
        seconds = info.step_seconds;
      }
      EXPECT_EQ(peak, loose.peak);
    }
}

TEST(Plan, FrontierAgreesWithBudgets) {
  const auto model = make_model("nano");
  auto o = plan_options(12, 64);
  o.state_bits = STW_STATES_32;
  const auto plan = make_plan(model.get(), o);
  // Longer structs than the library knows get zeros after the known fields.
  struct Longer {
    stw_frontier_point point;
    uint64_t more;
  };
  std::vector<Longer> points(16, Longer{{}, 7});
  points[0].point.struct_size = sizeof(Longer);
  size_t count = 0;
  stw_error error = sized<stw_error>();
  must(stw_plan_frontier(plan.get(), &points[0].point, points.size(), &count, &error), error);
  ASSERT_GT(count, 4u);
  EXPECT_EQ(points[0].point.peak, info_of(plan.get()).minimum_bytes);
  EXPECT_EQ(points[count - 1].point.step_seconds, info_of(plan.get()).unlimited_seconds);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(points[i].more, 0u);
    o.memory_bytes = points[i].point.peak;
    const stw_plan_info info = info_of(make_plan(model.get(), o).get());
    EXPECT_EQ(info.peak, points[i].point.peak);
    EXPECT_EQ(info.step_seconds, points[i].point.step_seconds);
    EXPECT_EQ(info.micro_batch, points[i].point.micro_batch);
    EXPECT_EQ(info.proven, 1u);
    EXPECT_EQ(info.bound_seconds, info.step_seconds);
    EXPECT_LE(info.next_gib_seconds, info.step_seconds);
    EXPECT_LE(info.unlimited_seconds, info.next_gib_seconds);
  }
  EXPECT_EQ(stw_plan_frontier(nullptr, &points[0].point, 1, &count, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_plan_frontier(plan.get(), nullptr, 1, &count, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_plan_frontier(plan.get(), &points[0].point, 1, nullptr, nullptr), STW_BAD_ARGUMENT);
  points[0].point.struct_size = 0;
  size_t untouched = 7;
  EXPECT_EQ(stw_plan_frontier(plan.get(), &points[0].point, 1, &untouched, nullptr), STW_BAD_STRUCT_SIZE);
  EXPECT_EQ(untouched, 7u);
  EXPECT_EQ(stw_plan_frontier(plan.get(), nullptr, 0, &untouched, nullptr), STW_OK);
  EXPECT_EQ(untouched, 0u);
}

// Changes the options of a plan, and the rank of new adapters, as the flags of a relaxation say.
void follow(std::string flags, stw_plan_options& o, uint32_t& rank) {
  flags += " ";
  while (!flags.empty()) {
    const size_t end = std::min(flags.find(" --"), flags.size() - 1);
    const std::string part = flags.substr(0, end);
    flags.erase(0, end + 1);
    if (part == "--recompute auto") o.recompute = STW_RECOMPUTE_AUTO;
    else if (part == "--states 8") o.state_bits = STW_STATES_8;
    else if (part == "--states auto") o.state_bits = STW_STATES_AUTO;
    else if (part == "--precision bf16") o.precision = STW_PRECISION_BF16;
    else if (part == "--master split8") o.master = STW_MASTER_SPLIT8;
    else if (part == "--master stochastic") o.master = STW_MASTER_STOCHASTIC;
    else if (part == "--optimizer adafactor") o.optimizer = STW_OPTIMIZER_ADAFACTOR;
    else if (part == "--gradients bf16") o.gradients = STW_GRADIENTS_BF16;
    else if (part == "--fused-update") o.fused_update = 1;
    else if (part == "--quantize int8") o.quantize = STW_QUANTIZE_INT8;
    else if (part == "--quantize nf4") o.quantize = STW_QUANTIZE_NF4;
    else if (part == "--quantize-embeddings int8") o.quantize_embeddings = STW_QUANTIZE_INT8;
    else if (part == "--lora 16") rank = 16;
    else if (part.starts_with("--seq ")) o.sequence = std::stoull(part.substr(6));
    else if (part.starts_with("--host-memory ")) o.host_bytes = std::stoull(part.substr(14)) << 20;
    else ADD_FAILURE() << part;
  }
}

Handle<stw_model> nano_with_adapters(uint32_t rank) {
  auto o = sized<stw_model_options>();
  o.source = "nano";
  o.adapter_rank = rank;
  return make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
}

TEST(Plan, RelaxationsWork) {
  const auto model = make_model("nano");
  auto o = plan_options(12, 64);
  o.state_bits = STW_STATES_32;
  o.recompute = STW_RECOMPUTE_NONE;
  size_t fitting = 0, missing = 0;
  for (const uint64_t budget : {12ull << 20, 8ull << 20, 1ull << 20, 64ull << 10}) {
    o.memory_bytes = budget;
    stw_plan* out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    const Handle<stw_plan> plan(out);
    auto now = sized<stw_relaxation_info>();
    bool changes_numerics = false;
    size_t count = 0;
    for (; stw_plan_relaxation_at(plan.get(), count, &now) == STW_OK; ++count) {
      const std::string change = now.flags;
      EXPECT_TRUE(!now.fits || now.changes_numerics || !changes_numerics) << "the same bits come first";
      changes_numerics = now.changes_numerics;
      EXPECT_EQ(now.changes_numerics, now.effect[0] != 0) << change;
      EXPECT_EQ(change.substr(2, 4), std::string(now.change).substr(0, 4));
      auto changed = o;
      uint32_t rank = 0;
      follow(change, changed, rank);
      const auto adapted = nano_with_adapters(rank);
      stw_plan* followed = nullptr;
      EXPECT_EQ(stw_plan_create(&followed, adapted.get(), &changed, nullptr),
                now.fits ? STW_OK : STW_OVER_BUDGET);
      const Handle<stw_plan> given(followed);
      const stw_plan_info info = info_of(given.get());
      EXPECT_EQ(now.fits ? info.peak : info.minimum_bytes, now.peak) << change;
      EXPECT_EQ(info.host, now.host) << change;
      EXPECT_NEAR(info.tokens_per_second / now.tokens_per_second, 1, 0.02) << change;
      EXPECT_LE(now.least_host, now.host) << change;
      (now.fits ? fitting : missing) += 1;
    }
    EXPECT_LE(count, 8u);
    EXPECT_GE(count, 1u);
    EXPECT_EQ(stw_plan_relaxation_at(plan.get(), 0, nullptr), STW_BAD_ARGUMENT);
  }
  EXPECT_GE(fitting, 5u);
  EXPECT_GE(missing, 1u);
}

TEST(Plan, RelaxationsKeepWhatTheyAreTold) {
  const auto model = make_model("nano");
  auto o = plan_options(2, 16);
  o.memory_bytes = 8 << 20;
  const auto changes = [&](uint32_t keep) {
    o.keep = keep;
    stw_plan* out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    const Handle<stw_plan> plan(out);
    auto info = sized<stw_relaxation_info>();
    std::string text;
    for (size_t i = 0; stw_plan_relaxation_at(plan.get(), i, &info) == STW_OK; ++i)
      text += std::string(info.change) + "; ";
    return text;
  };
  const std::string all = changes(0);
  for (const auto& [bit, word] : {std::pair{STW_KEEP_ADAPTERS, "lora"},
                                  {STW_KEEP_OPTIMIZER, "adafactor"},
                                  {STW_KEEP_CLIPPING, "fused_update"},
                                  {STW_KEEP_DIVISION, "host_memory"},
                                  {STW_KEEP_PRECISION, "precision bf16"}}) {
    EXPECT_NE(all.find(word), all.npos) << all;
    EXPECT_EQ(changes(static_cast<uint32_t>(bit)).find(word), all.npos);
  }
  EXPECT_TRUE(changes(STW_KEEP_NUMERICS).starts_with("host_memory "));
  EXPECT_EQ(changes(STW_KEEP_NUMERICS).find("; "), changes(STW_KEEP_NUMERICS).size() - 2) << "one line";
  EXPECT_EQ(changes(STW_KEEP_ALL), "");
  o.keep = 256;
  stw_plan* out = nullptr;
  EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_BAD_ARGUMENT);
}

TEST(Plan, OffloadsIfHostMemoryIsGiven) {
  const auto model = make_model("nano");
  auto o = plan_options(12, 64);
  o.state_bits = STW_STATES_32;
  o.memory_bytes = 1 << 30;
  const stw_plan_info ample = info_of(make_plan(model.get(), o).get());
  EXPECT_EQ(ample.host, 0u);
  EXPECT_EQ(ample.copied_bytes, 0u);
  double before = 1e9;
  for (const uint64_t host : {uint64_t{0}, uint64_t{2} << 20, uint64_t{8} << 20, uint64_t{1} << 40}) {
    o.host_bytes = host;
    o.memory_bytes = 1 << 20;
    stw_plan* out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    const Handle<stw_plan> none(out);
    o.memory_bytes = info_of(none.get()).minimum_bytes;
    EXPECT_LT(static_cast<double>(o.memory_bytes), before) << host;
    before = static_cast<double>(o.memory_bytes);
    const auto plan = make_plan(model.get(), o);
    const stw_plan_info info = info_of(plan.get());
    EXPECT_LE(info.host, host);
    EXPECT_LE(info.peak, o.memory_bytes);
    EXPECT_EQ(stw_plan_verify(plan.get(), nullptr), STW_OK);
    EXPECT_EQ(info.copied_bytes > 0, host > 0);
    uint64_t sum = 0;
    auto entry = sized<stw_offload_info>();
    for (size_t i = 0; stw_plan_offload_at(plan.get(), i, &entry) == STW_OK; ++i) {
      EXPECT_TRUE(entry.blocks > 0 || entry.outside_blocks);
      sum += entry.bytes;
    }
    EXPECT_LE(sum, info.host);  // host includes alignment
    EXPECT_EQ(sum > 0, host > 0);
    // The text alone is the whole plan.
    stw_plan* read = nullptr;
    const char* json = stw_plan_json(plan.get());
    ASSERT_EQ(stw_plan_load(&read, model.get(), json, std::strlen(json), nullptr), STW_OK);
    const Handle<stw_plan> again(read);
    EXPECT_STREQ(stw_plan_json(again.get()), json);
    EXPECT_EQ(info_of(again.get()).host, info.host);
    o.memory_bytes -= 1;
    out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    stw_plan_destroy(out);
  }
  EXPECT_EQ(stw_plan_offload_at(nullptr, 0, nullptr), STW_BAD_ARGUMENT);
}

// A tighter budget never raises the peak, a looser one never slows the plan, and the bound holds.
TEST(Plan, OffloadKeepsTheOrderOfBudgets) {
  const auto model = make_model(small_llama);
  for (const char* device : {"cpu", "rtx4060"}) {
    auto o = plan_options(8, 40);
    o.device = device;
    o.set_mask = STW_SET_RESERVE;
    o.host_bytes = uint64_t{1} << 40;
    o.state_bits = STW_STATES_32;
    o.memory_bytes = 1;
    stw_plan* out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, nullptr), STW_OVER_BUDGET);
    const uint64_t least = info_of(out).minimum_bytes;
    stw_plan_destroy(out);
    double time = 1e9;
    uint64_t peak = 0;
    for (int step = 0; step <= 30; step += budget_step) {
      o.memory_bytes = least + least / 10 * static_cast<uint64_t>(step);
      const stw_plan_info info = info_of(make_plan(model.get(), o).get());
      EXPECT_LE(info.step_seconds, time) << device << ", " << step;
      EXPECT_GE(info.peak, peak) << device << ", " << step;
      EXPECT_LE(info.bound_seconds, info.step_seconds);
      EXPECT_GE(info.bound_seconds, info.unlimited_seconds * 0.999999);
      time = info.step_seconds;
      peak = info.peak;
    }
    o.memory_bytes = uint64_t{1} << 34;
    const stw_plan_info ample = info_of(make_plan(model.get(), o).get());
    EXPECT_EQ(ample.step_seconds, ample.unlimited_seconds) << device;
    EXPECT_EQ(ample.host, 0u) << device;
  }
}

TEST(Plan, LongestSequenceIsTheLongest) {
  const auto model = make_model(small_llama);
  auto o = plan_options(4, 0);
  o.memory_bytes = info_of(make_plan(model.get(), plan_options(4, 40)).get()).minimum_bytes;
  uint64_t most = 0;
  ASSERT_EQ(stw_plan_longest_sequence(model.get(), &o, &most, nullptr), STW_OK);
  EXPECT_GE(most, 40u);
  o.sequence = most;
  make_plan(model.get(), o);
  o.sequence = most + 1;
  stw_plan* out = nullptr;
  EXPECT_NE(stw_plan_create(&out, model.get(), &o, nullptr), STW_OK);
  stw_plan_destroy(out);
  o.memory_bytes = 1;
  uint64_t untouched = 7;
  EXPECT_EQ(stw_plan_longest_sequence(model.get(), &o, &untouched, nullptr), STW_OVER_BUDGET);
  o.device = "abacus";
  EXPECT_EQ(stw_plan_longest_sequence(model.get(), &o, &untouched, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(untouched, 7u);
}

TEST(Plan, ProfilesNameTheirSources) {
  auto info = sized<stw_profile_info>();
  size_t count = 0;
  for (; stw_profile_at(count, &info) == STW_OK; ++count) {
    EXPECT_GT(std::string(info.source).size(), 20u) << info.name;
    EXPECT_GT(info.gbytes_per_second, 0u);
    EXPECT_EQ(info.is_cuda != 0, info.memory > 0) << info.name;
  }
  EXPECT_GE(count, 14u);
  EXPECT_EQ(stw_profile_at(0, nullptr), STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
