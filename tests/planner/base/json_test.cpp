#include "planner/base/json.h"
#include "planner/base/python_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace stw {
namespace {

Json parsed(std::string_view text) {
  auto result = parse_json(text);
  EXPECT_TRUE(result) << text << ": " << (result ? "" : result.error().message);
  return result ? *result : Json();
}

std::string refusal_of(std::string_view text) {
  auto result = parse_json(text);
  EXPECT_FALSE(result) << "accepted: " << text;
  if (result) return {};
  EXPECT_EQ(result.error().code, Code::corrupt);
  return result.error().message;
}

TEST(Json, ParsesEveryKind) {
  const Json value = parsed(R"( {"a":null,"b":[true,false],"c":-12,"d":1.5,"e":"x","f":{},"g":[]} )");
  EXPECT_EQ(value.members().size(), 7u);
  EXPECT_TRUE(value.find("a")->is_null());
  EXPECT_TRUE(*value.find("b")->elements()[0].as_bool());
  EXPECT_EQ(*value.find("c")->as_int(), -12);
  EXPECT_EQ(*value.find("d")->as_double(), 1.5);
  EXPECT_EQ(*value.find("e")->as_string(), "x");
  EXPECT_EQ(value.find("h"), nullptr);
  EXPECT_EQ(to_string(value, 0), R"({"a":null,"b":[true,false],"c":-12,"d":1.5,"e":"x","f":{},"g":[]})");
}

TEST(Json, IntegersAreExact) {
  EXPECT_EQ(*parsed("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(*parsed("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(*parsed("9223372036854775808").as_large_uint(), uint64_t{1} << 63);
  EXPECT_EQ(*parsed("18446744073709551615").as_large_uint(), UINT64_MAX);
  EXPECT_EQ(*parsed("18446744073709551616").as_double(), 18446744073709551616.0);
  EXPECT_EQ(*parsed("-9223372036854775809").as_double(), -9223372036854775808.0);
  EXPECT_EQ(to_string(Json(UINT64_MAX), 0), "18446744073709551615");
  EXPECT_EQ(Json(uint64_t{7}), Json(7));
}

TEST(Json, DoublesAreShortestAndRoundTrip) {
  EXPECT_EQ(to_string(Json(1.0), 0), "1.0");
  EXPECT_EQ(to_string(Json(0.1), 0), "0.1");
  EXPECT_EQ(to_string(Json(-0.0), 0), "-0.0");
  EXPECT_EQ(to_string(Json(1e300), 0), "1e+300");
  EXPECT_EQ(to_string(Json(std::numeric_limits<double>::infinity()), 0), "null");
  EXPECT_EQ(to_string(Json(std::nan("")), 0), "null");
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    double value;
    const uint64_t bits = random();
    memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const Json read = parsed(to_string(Json(value), 0));
    ASSERT_EQ(read.kind(), Json::Kind::number);
    ASSERT_EQ(memcmp(read.as_double(), &value, sizeof(value)), 0);
  }
}

TEST(Json, StringsAndEscapes) {
  EXPECT_EQ(*parsed(R"("\"\\\/\b\f\n\r\t")").as_string(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(*parsed(R"("\u00e9\u20AC\ud83d\ude00")").as_string(), "é€😀");
  EXPECT_EQ(*parsed(R"("\u0000")").as_string(), std::string(1, '\0'));
  EXPECT_EQ(to_string(Json("a\x01\n\"\\é"), 0), "\"a\\u0001\\n\\\"\\\\é\"");
  EXPECT_EQ(to_string(Json("\xff"
                           "a\xc3"),
                      0),
            "\"\xEF\xBF\xBD"
            "a\xEF\xBF\xBD\"");
}

TEST(Json, RefusesWhatTheGrammarRefuses) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\" 1}",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "NaN",
                           "Infinity",
                           "tru",
                           "nulll",
                           "[1 2]",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\n\"",
                           "1e999",
                           "1 2",
                           "\xEF\xBB\xBF"
                           "1",
                           "'a'",
                           "//\n1",
                           "\"\\",
                           "\"\\u",
                           "0x10",
                           "]"})
    EXPECT_NE(refusal_of(text), "") << text;
  for (const char* bytes : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98"})
    EXPECT_NE(refusal_of('"' + std::string(bytes) + '"').find("UTF-8"), std::string::npos);
  EXPECT_NE(refusal_of(std::string("1\0", 2)), "");
}

TEST(Json, ErrorsNameTheirPlace) {
  EXPECT_EQ(refusal_of("{\n  \"a\": 1,\n  \"b\": x\n}"), "line 3, column 8: expected a value");
  EXPECT_EQ(refusal_of("{\"a\":1,\n \"a\":2}"), "line 2, column 2: the key \"a\" appears twice");
  EXPECT_EQ(refusal_of("[1"), "line 1, column 3: expected , or ]");
}

TEST(Json, ReadsWhatPythonWrites) {
  const std::string text =
      "\xEF\xBB\xBF{\"a\": 1, \"b\": [NaN, -Infinity], \"a\": {\"c\": 2, \"c\": 3}, \"d\": Infinity}";
  const auto json = parse_python_json(text);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->members().size(), 3u);
  EXPECT_EQ(*get_int(*json->find("a"), "c"), 3);
  const auto infinite = get_double(*json, "d");
  ASSERT_FALSE(infinite);
  EXPECT_EQ(infinite.error().message, "\"d\": expected a finite number, found a number (NaN or Infinity)");
  EXPECT_FALSE(get_int(*json, "d"));
  for (const char* odd : {"nan", "inf", "NaNN", "+Infinity", "-NaN", "{\"a\": 1,}", "[1 2]"})
    EXPECT_FALSE(parse_python_json(odd)) << odd;
  const auto wide = parse_python_json(std::string_view("\xFF\xFE{\0}\0", 6));
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message.find("UTF-16"), std::string::npos);
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(json_depth_limit)));
  EXPECT_NE(refusal_of(nested(json_depth_limit + 1)).find("nested deeper than 128"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(1000000, '[')), "");
  std::string objects;
  for (int depth = 0; depth < 1000; ++depth) objects += "{\"a\":";
  EXPECT_NE(refusal_of(objects), "");
}

TEST(Json, WriterIndents) {
  Json value;
  value.set("shape", Json(Json::Array{2, 3}))
      .set("items", Json(Json::Array{Json::object()}))
      .set("empty", Json::array());
  EXPECT_EQ(to_string(value, 2), "{\n  \"shape\": [2, 3],\n  \"items\": [\n    {}\n  ],\n  \"empty\": []\n}");
  value.set("shape", nullptr);
  EXPECT_EQ(to_string(value, 0), "{\"shape\":null,\"items\":[{}],\"empty\":[]}");
}

TEST(Json, TypedMembers) {
  const Json object =
      parsed(R"({"i":3,"n":-3,"d":2.5,"s":"x","b":true,"z":null,"l":18446744073709551615,"a":[1],"o":{}})");
  EXPECT_EQ(*get_int(object, "i"), 3);
  EXPECT_EQ(*get_int(object, "missing", 9), 9);
  EXPECT_EQ(*get_int(object, "z", 9), 9);
  EXPECT_EQ(get_int(object, "z").error().message, "\"z\" is missing");
  EXPECT_EQ(get_int(object, "s").error().message,
            "\"s\": expected an integer of 64 bits, found a string (\"x\")");
  EXPECT_FALSE(get_int(object, "s", 9));
  EXPECT_FALSE(get_int(object, "d"));
  EXPECT_FALSE(get_int(object, "l"));
  EXPECT_EQ(*get_uint(object, "l"), UINT64_MAX);
  EXPECT_FALSE(get_uint(object, "n"));
  EXPECT_EQ(*get_double(object, "i"), 3.0);
  EXPECT_EQ(*get_double(object, "d", 1.0), 2.5);
  EXPECT_EQ(*get_string(object, "s"), "x");
  EXPECT_EQ(*get_string(object, "q", "y"), "y");
  EXPECT_TRUE(*get_bool(object, "b"));
  EXPECT_FALSE(*get_bool(object, "q", false));
  EXPECT_EQ((*get_array(object, "a"))->elements().size(), 1u);
  EXPECT_TRUE((*get_object(object, "o"))->is_object());
  EXPECT_EQ(get_object(object, "a").error().message, "\"a\": expected an object, found an array");
  EXPECT_EQ(get_int(Json(1), "k", 4).error().message, "expected an object with \"k\", found an integer");
}

Json random_value(std::mt19937_64& random, int depth) {
  const uint64_t choice = random() % (depth > 4 ? 6 : 8);
  if (choice == 0) return nullptr;
  if (choice == 1) return random() % 2 == 0;
  if (choice == 2) return static_cast<int64_t>(random()) >> random() % 64;
  if (choice == 3) return random() >> random() % 64;
  if (choice == 4)
    return std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                      static_cast<int>(random() % 1800) - 900);
  if (choice == 5) {
    std::string text;
    const std::string pieces[] = {"a", "\"", "\\", "\n", "é", "😀", std::string(1, '\0'), "\x1f", "/", "\x7f"};
    for (uint64_t count = random() % 6; count > 0; --count) text += pieces[random() % 10];
    return text;
  }
  Json result = choice == 6 ? Json::array() : Json::object();
  for (uint64_t count = random() % 5; count > 0; --count) {
    if (choice == 6) result.push(random_value(random, depth + 1));
    else result.set('k' + std::to_string(random() % 100), random_value(random, depth + 1));
  }
  return result;
}

TEST(Json, CanonicalIsOneForAllTexts) {
  for (const char* text :
       {R"({"b": [1.0, {"y": -0.0, "x": 0.5}], "a": 1e3})", R"({"a": 1000, "b": [1, {"x": 0.5, "y": 0}]})"})
    EXPECT_EQ(to_string(canonical(*parse_json(text)), 0), R"({"a":1000,"b":[1,{"x":0.5,"y":0}]})");
  // Beyond 2^53 a double stays a double.
  EXPECT_EQ(to_string(canonical(*parse_json("[2, 1, 1e300, 9007199254740994.0]")), 0),
            "[2,1,1e+300,9007199254740994.0]");
}

TEST(JsonFuzz, WhatWasWrittenReadsBackEqual) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 3000; ++round) {
    const Json value = random_value(random, 0);
    for (const int indent : {0, 2}) {
      auto read = parse_json(to_string(value, indent));
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_TRUE(*read == value) << to_string(value, indent);
    }
  }
}

TEST(JsonFuzz, MutatedTextIsReadOrRefused) {
  std::mt19937_64 random(3);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = to_string(random_value(random, 0), round % 3);
    for (uint64_t count = 1 + random() % 3; count > 0 && !text.empty(); --count) {
      const size_t place = random() % text.size();
      const char symbols[] = "{}[]\",:\\u0123456789eE+-.tfn \n";
      switch (random() % 4) {
        case 0: text[place] = static_cast<char>(random()); break;
        case 1: text[place] = symbols[random() % (sizeof(symbols) - 1)]; break;
        case 2: text.erase(place, 1 + random() % 4); break;
        default: text.insert(place, text.substr(random() % text.size(), random() % 8)); break;
      }
    }
    auto read = parse_json(text);
    ++(read ? accepted : refused);
    if (!read) continue;
    auto again = parse_json(to_string(*read, 0));
    ASSERT_TRUE(again) << text;
    ASSERT_TRUE(*again == *read) << text;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace stw
