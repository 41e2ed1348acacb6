#include "planner/device/profile_file.h"

#include <gtest/gtest.h>

#include "tests/planner/device/calibrated_profiles.h"

namespace stw {
namespace {

using namespace testing_tools;

void expect_equal(const DeviceProfile& a, const DeviceProfile& b) {
  EXPECT_STREQ(a.name, b.name);
  EXPECT_STREQ(a.title, b.title);
  EXPECT_EQ(a.cuda, b.cuda);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
  EXPECT_EQ(a.reserve_bytes, b.reserve_bytes);
  EXPECT_EQ(a.gflops_fp32, b.gflops_fp32);
  EXPECT_EQ(a.gflops_bf16, b.gflops_bf16);
  EXPECT_EQ(a.gbytes_per_second, b.gbytes_per_second);
  EXPECT_EQ(a.product_permille, b.product_permille);
  EXPECT_EQ(a.stream_permille, b.stream_permille);
  EXPECT_EQ(a.attention_permille, b.attention_permille);
  EXPECT_EQ(a.wide_attention_permille, b.wide_attention_permille);
  EXPECT_EQ(a.fp32_permille, b.fp32_permille);
  EXPECT_EQ(a.mma_permille, b.mma_permille);
  EXPECT_EQ(a.wgmma_permille, b.wgmma_permille);
  EXPECT_EQ(a.watts, b.watts);
  EXPECT_EQ(a.gflops_per_watt, b.gflops_per_watt);
  EXPECT_EQ(a.launch_nanoseconds, b.launch_nanoseconds);
  EXPECT_EQ(a.alignment, b.alignment);
  EXPECT_EQ(a.calibration.threads, b.calibration.threads);
  EXPECT_EQ(a.calibration.precision, b.calibration.precision);
  EXPECT_EQ(a.calibration.kernels, b.calibration.kernels);
  EXPECT_EQ(a.calibration.step_nanoseconds, b.calibration.step_nanoseconds);
  for (size_t k = 0; k < op_kind_count; ++k) {
    EXPECT_EQ(a.calibration.ops[k].permille, b.calibration.ops[k].permille) << k;
    EXPECT_EQ(a.calibration.ops[k].launch_nanoseconds, b.calibration.ops[k].launch_nanoseconds) << k;
    EXPECT_EQ(a.calibration.ops[k].nanoseconds, b.calibration.ops[k].nanoseconds) << k;
  }
}

TEST(ProfileFile, SurvivesItsText) {
  for (const DeviceProfile& device : device_profiles())
    for (uint32_t seed = 0; seed < 5; ++seed) {
      const DeviceProfile p = random_profile(device.name, seed);
      const std::string text = profile_to_json(p);
      const auto read = profile_from_json(text);
      ASSERT_TRUE(read) << read.error().message;
      expect_equal(p, *read);
      EXPECT_EQ(profile_to_json(*read), text);
      EXPECT_STRNE(read->source, device.source);
      EXPECT_EQ(std::string(read->source).find("the reserve too") != std::string::npos,
                p.reserve_bytes != device.reserve_bytes);
    }
}

// Files that were written before these shares existed keep their prices: attention had the share of products,
// wgmma the whole peak, and mma.sync what its instructions reach.
TEST(ProfileFile, WithoutSharesIsPricedAsBefore) {
  const std::pair<const char*, double> devices[] = {
      {"h100", 0.629}, {"h200", 0.629}, {"b200", 0.5}, {"rtx4090", 1}, {"a100-80gb", 1}};
  for (const auto& [name, mma] : devices) {
    const auto read = profile_from_json(
        std::string(R"({"format": "stowage-profile", "version": 1, "device": ")") + name +
        R"(", "threads": 1, "precision": "bf16", "launch_nanoseconds": 3000, "product_permille": 700, )" +
        R"("stream_permille": 850, "step_nanoseconds": 1, "ops": {}})");
    ASSERT_TRUE(read) << read.error().message;
    Cost cost{1000000000000, 0};
    cost.head = 128;
    const auto rate = [&](OpKind kind, Peak peak) {
      return 1e15 / static_cast<double>(op_picoseconds(*read, kind, peak, 1, cost) - 3000000);
    };
    const auto peak = static_cast<double>(read->gflops_bf16), fp32 = static_cast<double>(read->gflops_fp32);
    for (const OpKind kind : {OpKind::linear, OpKind::attention, OpKind::attention_gradient}) {
      EXPECT_NEAR(rate(kind, Peak::library) / (0.7 * peak), 1, 1e-6) << name;
      EXPECT_NEAR(rate(kind, Peak::wgmma) / (0.7 * peak), 1, 1e-6) << name;
      EXPECT_NEAR(rate(kind, Peak::mma) / (0.7 * mma * peak), 1, 1e-6) << name;
      EXPECT_NEAR(rate(kind, Peak::fp32) / (0.7 * fp32), 1, 1e-6) << name;
    }
  }
}

// `from` must occur once in the text.
std::string with(std::string text, const std::string& from, const std::string& to) {
  EXPECT_EQ(text.find(from), text.rfind(from)) << from;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

const std::string good =
    R"({"format": "stowage-profile", "version": 1, "device": "h100", "threads": 2, "precision": "fp32", )"
    R"("reserve_bytes": 1234567,
 "launch_nanoseconds": 5000, "product_permille": 700, "stream_permille": 800, "step_nanoseconds": 123456,
 "ops": {"linear": {"permille": 650, "launch_nanoseconds": 4000, "nanoseconds": 1000},
  "add": {"permille": 1900, "launch_nanoseconds": 1, "nanoseconds": 10}}})";

std::string refusal(const std::string& text) {
  const auto read = profile_from_json(text);
  EXPECT_FALSE(read) << text;
  if (read) return "";
  EXPECT_EQ(read.error().code, Code::corrupt) << read.error().message;
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos) << read.error().message;
  return read.error().message;
}

TEST(ProfileFile, BadFiguresAreRefusedByName) {
  ASSERT_TRUE(profile_from_json(good));
  const std::pair<const char*, const char*> figures[] = {
      {"\"threads\": 2", "threads"},
      {"\"reserve_bytes\": 1234567", "reserve_bytes"},
      {"\"launch_nanoseconds\": 5000", "launch_nanoseconds"},
      {"\"product_permille\": 700", "product_permille"},
      {"\"stream_permille\": 800", "stream_permille"},
      {"\"step_nanoseconds\": 123456", "step_nanoseconds"},
      {"\"permille\": 650", "permille"},
      {"\"launch_nanoseconds\": 4000", "launch_nanoseconds"},
      {"\"nanoseconds\": 1000", "nanoseconds"}};
  for (const auto& [text, name] : figures) {
    const std::string key = std::string("\"") + name + "\": ";
    for (const char* bad : {"0", "-1", "1e30", "99999999999999999999", "9223372036854775807", "0.5", "2.0",
                            "\"many\"", "null", "true", "[1]", "{}", "NaN", "Infinity", "1e999"}) {
      const std::string message = refusal(with(good, text, key + bad));
      // Text that is not JSON gets a line and a column instead.
      EXPECT_TRUE(message.find(name) != std::string::npos || message.find("line") != std::string::npos)
          << message;
    }
    const std::string misspelled = refusal(with(good, text, key.substr(0, key.size() - 3) + "_\": 1"));
    EXPECT_NE(misspelled.find(name), std::string::npos) << misspelled;
  }
  // Without reserve_bytes in the file, the reserve was not measured, and the device's own figure is used.
  EXPECT_EQ(profile_from_json(with(good, "\"reserve_bytes\": 1234567,", ""))->reserve_bytes,
            find_device("h100")->reserve_bytes);
  EXPECT_NE(refusal(with(good, "\"permille\": 650", "\"permille\": 100001")).find("\"linear\""),
            std::string::npos);
  EXPECT_TRUE(profile_from_json(with(good, "\"permille\": 650", "\"permille\": 100000")));
}

// A share is at most 1000 permille. Only ops that find their data in caches reach more than the peak.
TEST(ProfileFile, SharesAboveOneAndZeroWattsAreRefusedByName) {
  const std::string shares = with(good, "\"stream_permille\": 800", R"("stream_permille": 800,
 "attention_permille": 300, "wide_attention_permille": 400, "fp32_permille": 500, "mma_permille": 900,
 "wgmma_permille": 950, "watts": 700)");
  ASSERT_TRUE(profile_from_json(shares));
  for (const auto& [key, value] : {std::pair{"product_permille", 700},
                                   {"stream_permille", 800},
                                   {"attention_permille", 300},
                                   {"fp32_permille", 500},
                                   {"mma_permille", 900},
                                   {"wgmma_permille", 950}}) {
    const std::string from = " \"" + std::string(key) + "\": ";
    EXPECT_TRUE(profile_from_json(with(shares, from + std::to_string(value), from + "1000"))) << key;
    for (const char* bad : {"1001", "0"})
      EXPECT_NE(refusal(with(shares, from + std::to_string(value), from + bad)).find(key), std::string::npos);
  }
  EXPECT_NE(refusal(with(shares, "\"watts\": 700", "\"watts\": 0")).find("watts"), std::string::npos);
}

// Figures of a card that was not calibrated.
TEST(ProfileFile, FiguresAreReadWhole) {
  for (const DeviceProfile& p : device_profiles()) {
    if (!p.cuda) continue;
    const std::string text = profile_to_json(p);
    EXPECT_NE(text.find("\"version\": 2"), std::string::npos);
    const auto read = profile_from_json(text);
    ASSERT_TRUE(read) << read.error().message;
    expect_equal(p, *read);
    EXPECT_FALSE(read->is_calibrated());
    const Json json = *parse_json(text);
    for (const auto& [key, value] : json.members()) {
      if (key == "format" || key == "version") continue;
      std::vector<Json> wrong{Json("many"), Json(-1)};
      if (key != "device") wrong.push_back(Json(0));
      if (key.ends_with("permille")) wrong.push_back(Json(1001));
      Json without = Json::object();
      for (const auto& [other, kept] : json.members())
        if (other != key) without.set(other, kept);
      EXPECT_NE(refusal(to_string(without, 0)).find(key), std::string::npos) << key;
      for (const Json& bad : wrong) {
        Json changed = without;
        changed.set(key, bad);
        EXPECT_NE(refusal(to_string(changed, 0)).find(key), std::string::npos) << key;
      }
    }
  }
  EXPECT_NE(refusal(with(profile_to_json(*find_device("h100")), "\"h100\"", "\"cpu\"")).find("GPU"),
            std::string::npos);
}

TEST(ProfileFile, PowerSetsTheCeilingOfFigures) {
  const std::string h100 = profile_to_json(*find_device("h100"));
  const auto limited = profile_from_json(with(h100, "\"watts\": 700", "\"watts\": 350"));
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->product_permille, 350u * 960 / 989);
  EXPECT_LT(limited->attention_permille, find_device("h100")->attention_permille);
}

TEST(ProfileFile, OtherFilesAreRefused) {
  EXPECT_NE(refusal(with(good, "stowage-profile", "stowage-plan")).find("stowage-profile"),
            std::string::npos);
  EXPECT_NE(refusal(with(good, "\"version\": 1", "\"version\": 3")).find("version 1 or 2, found 3"),
            std::string::npos);
  EXPECT_NE(refusal(with(good, "\"h100\"", "\"abacus\"")).find("abacus"), std::string::npos);
  EXPECT_NE(refusal(with(good, "\"add\"", "\"attention_is_all\"")).find("attention_is_all"),
            std::string::npos);
  EXPECT_NE(refusal(with(good, "\"fp32\"", "\"fp8\"")).find("fp8"), std::string::npos);
  EXPECT_NE(refusal(with(good, "{\"permille\": 650, \"launch_nanoseconds\": 4000, \"nanoseconds\": 1000}",
                         "[[[[{}]]]]"))
                .find("linear"),
            std::string::npos);
  refusal(with(good, "\"add\"", "\"linear\""));  // twice
  for (const char* text : {"", "{}", "[]", "null", "7", "\"stowage-profile\"", "profile",
                           "{\"format\": {\"format\": \"stowage-profile\"}}"})
    refusal(text);
  refusal(with(good, good.substr(good.find("{\"linear\"")), "[]}"));
  refusal(good + good);
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += "{\"ops\":";
  refusal(nested);
  for (size_t size = 0; size < good.size(); ++size) refusal(good.substr(0, size));
}

}  // namespace
}  // namespace stw
