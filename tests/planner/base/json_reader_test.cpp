#include "planner/base/json_reader.h"

#include <gtest/gtest.h>

#include "planner/base/json.h"
#include "planner/base/utf8.h"

namespace stw {
namespace {

// What text() reads, or the error and its byte.
std::string text_of(std::string_view json, JsonRules rules, bool with_bytes = false) {
  JsonReader reader(json, rules);
  std::string text;
  if (reader.text(text, with_bytes)) return text;
  return reader.error().message + " at " + std::to_string(reader.error().byte);
}

TEST(JsonReader, LooseStringsHoldAnyBytes) {
  const std::string bytes = "\"a\n\xff\"";
  EXPECT_EQ(text_of(bytes, JsonRules::loose), "a\n\xff");
  EXPECT_EQ(text_of(bytes, JsonRules::strict), "a control character in a string must be escaped at 2");
  EXPECT_EQ(text_of(R"("\udcffx")", JsonRules::loose, true), "\xffx");
}

TEST(JsonReader, PlacesOfErrorsInStrings) {
  EXPECT_EQ(text_of(R"("ab\x")", JsonRules::strict), "unknown escape at 3");
  EXPECT_EQ(text_of(R"("ab\x")", JsonRules::loose), "expected \\u and four hexadecimal digits at 6");
  EXPECT_EQ(text_of(R"("\ud83d\u12")", JsonRules::strict), "expected four hexadecimal digits at 9");
  EXPECT_EQ(text_of(R"("\udc80")", JsonRules::strict), "a low surrogate without a high one at 1");
  EXPECT_EQ(text_of(R"("\ud800\")", JsonRules::strict), "a high surrogate without a low one at 1");
  EXPECT_EQ(text_of(R"("a\")", JsonRules::strict), "the string does not end at 0");
  EXPECT_EQ(text_of(R"("a\")", JsonRules::loose), "expected the end of a string at 1");
  EXPECT_EQ(text_of("1", JsonRules::loose), "expected \" at 0");
}

TEST(JsonReader, KeepsTheFirstError) {
  JsonReader reader(" x ,");
  EXPECT_FALSE(reader.expect('['));
  EXPECT_FALSE(reader.expect('{'));
  EXPECT_EQ(reader.error().message, "expected [");
  EXPECT_EQ(reader.error().byte, 1u);
}

TEST(JsonReader, PlacesCountLinesAndBytes) {
  const JsonReader reader("a\n\nbc");
  EXPECT_EQ(reader.place(0).line, 1u);
  EXPECT_EQ(reader.place(0).column, 1u);
  EXPECT_EQ(reader.place(4).line, 3u);
  EXPECT_EQ(reader.place(4).column, 2u);
}

TEST(JsonReader, Numbers) {
  for (const char* odd : {"01", "1.", "+1", "1e", "-", "1-2"}) {
    JsonReader loose(odd, JsonRules::loose), strict(odd);
    EXPECT_EQ(loose.number(), odd);
    EXPECT_FALSE(loose.has_failed());
    strict.number();
    EXPECT_TRUE(strict.has_failed() || !strict.at_end()) << odd;
  }
  EXPECT_EQ(JsonReader(" 18446744073709551615 ").integer(), UINT64_MAX);
  for (const char* odd : {"18446744073709551616", "-1", "x", ""}) {
    JsonReader reader(odd);
    reader.integer();
    EXPECT_EQ(reader.error().message, "expected a whole number") << odd;
  }
  EXPECT_EQ(JsonReader("-Infinity", JsonRules::python).take_not_finite(), "-Infinity");
  EXPECT_EQ(JsonReader("NaN", JsonRules::strict).take_not_finite(), "");
}

TEST(JsonReader, SkipsAnyValue) {
  const std::string value = R"({"a": [1, {}, [], "]\"", {"b": null}], "c": -Infinity})";
  const std::string with_more = " " + value + " 1";
  JsonReader reader(with_more, JsonRules::loose);
  EXPECT_EQ(reader.skip(), value);
  EXPECT_EQ(reader.skip(), "1");
  EXPECT_TRUE(reader.at_end());
  for (const auto& [text, error] :
       {std::pair("[1", "expected ]"), std::pair("{\"a\" 1}", "expected :"), std::pair("{1}", "expected \""),
        std::pair("[tru]", "expected a value"), std::pair("", "expected a value")}) {
    JsonReader damaged(text, JsonRules::loose);
    EXPECT_EQ(damaged.skip(), "");
    EXPECT_EQ(damaged.error().message, error) << text;
  }
  const std::string deep(1000000, '[');
  EXPECT_TRUE(JsonReader(deep).skip().empty());
}

TEST(Json, WrittenNumbersStayAsTheyAre) {
  const Json number = Json::written_number("1.50");
  EXPECT_EQ(number.kind(), Json::Kind::written_number);
  EXPECT_EQ(to_string(Json(Json::Array{number}), 0), "[1.50]");
  EXPECT_EQ(Json(number), number);
  EXPECT_NE(number, Json::written_number("1.5"));
  EXPECT_NE(number, Json("1.50"));
  EXPECT_EQ(number.as_string(), nullptr);
  EXPECT_EQ(get_double(Json::object().set("a", number), "a").error().message,
            "\"a\": expected a number, found a number (1.50)");
}

TEST(Utf8, SequencesThatAreCutOff) {
  const auto sequence = [](std::string_view text) {
    const Utf8Sequence found = utf8_sequence(text);
    return std::pair(found.length, found.found);
  };
  EXPECT_EQ(sequence("\xf0\x9f\x98\x80x"), std::pair(size_t{4}, size_t{4}));
  EXPECT_EQ(sequence("\xf0\x9f\x98"), std::pair(size_t{4}, size_t{3}));
  EXPECT_EQ(sequence("\xf0\x9fx"), std::pair(size_t{4}, size_t{2}));
  EXPECT_EQ(sequence("\xed\xa0\x80"), std::pair(size_t{3}, size_t{1}));
  EXPECT_EQ(sequence("\xc1\x80"), std::pair(size_t{0}, size_t{0}));
  // every code point is written as the sequence that is read
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    ASSERT_EQ(utf8_length(text + "\x80"), text.size()) << code;
  }
}

}  // namespace
}  // namespace stw
