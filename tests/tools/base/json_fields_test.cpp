// Fields of JSON are found where they are, not where their names are mentioned.
#include "base/json_fields.h"

#include <gtest/gtest.h>

namespace command {
namespace {

TEST(JsonFields, AreMembersAtTheTopOrElseTheFirstOnes) {
  const std::string text =
      R"({"note": "the \"step\": 7", "key": "step", "list": [{"step": 1.5}, {"step": 2}],)"
      R"( "of": {"step": 3, "deep": {"only": true}}, "other": {"last": "a\nb"}, "step": 4})";
  EXPECT_EQ(json_number(text, "", "step"), 4);
  EXPECT_EQ(json_number(text, "list", "step"), 1.5);
  EXPECT_EQ(json_bool(text, "", "only"), true);
  EXPECT_EQ(json_number(text, "of", "step"), 3);
  EXPECT_EQ(json_bool(text, "of", "only"), true);
  EXPECT_EQ(json_bool(text, "deep", "only"), true);
  EXPECT_EQ(json_string(text, "other", "last"), "a\nb");
  EXPECT_EQ(json_string(text, "of", "last"), std::nullopt) << "another object has it";
  EXPECT_EQ(json_string(text, "note", "step"), std::nullopt);
  EXPECT_EQ(json_number(text, "", "missing"), std::nullopt);
  EXPECT_EQ(json_number(text, "missing", "step"), std::nullopt);
}

TEST(JsonFields, HaveTheKindThatIsAskedFor) {
  const std::string text =
      R"({"seed": 18446744073709551615, "half": 0.5, "yes": true, "text": "9", "none": null,)"
      R"( "nan": NaN, "list": [1, "a, b", [2, 3], {"c": 4}], "empty": []})";
  EXPECT_EQ(json_integer(text, "", "seed"), UINT64_MAX);
  EXPECT_EQ(json_number(text, "", "half"), 0.5);
  EXPECT_EQ(json_number(text, "", "nan"), std::nullopt);
  EXPECT_EQ(json_bool(text, "", "yes"), true);
  for (const char* key : {"seed", "half", "text", "none"}) EXPECT_EQ(json_bool(text, "", key), std::nullopt);
  for (const char* key : {"yes", "text", "none"}) EXPECT_EQ(json_number(text, "", key), std::nullopt) << key;
  for (const char* key : {"seed", "yes", "none", "list"})
    EXPECT_EQ(json_string(text, "", key), std::nullopt) << key;
  using List = std::vector<std::string>;
  EXPECT_EQ(json_list(text, "", "list"), (List{"1", R"("a, b")", "[2, 3]", R"({"c": 4})"}));
  EXPECT_EQ(json_list(text, "", "empty"), List{});
  EXPECT_EQ(json_list(text, "", "text"), std::nullopt);
}

// A line of metrics that a full disk cut off has the fields before the cut.
TEST(JsonFields, OfTextThatEndsEarly) {
  const std::string text = R"({"step": 12, "loss": 0.25, "name": "x", "open": {"a": 1)";
  EXPECT_EQ(json_number(text, "", "loss"), 0.25);
  EXPECT_EQ(json_string(text, "", "name"), "x");
  EXPECT_EQ(json_number(text.substr(0, text.find(", \"name")), "", "step"), 12);
  EXPECT_EQ(json_number(text, "open", "a"), std::nullopt);
  EXPECT_EQ(json_number("no JSON \"step\": 3", "", "step"), std::nullopt);
  EXPECT_EQ(json_number("", "", "step"), std::nullopt);
  // Too deep to be ours; the stack does not grow with it.
  const std::string deep = std::string(1000000, '[') + R"({"step": 1})";
  EXPECT_EQ(json_number(deep, "", "step"), std::nullopt);
}

TEST(JsonFields, StringsAreWrittenAsUtf8) {
  EXPECT_EQ(json_quoted("a\"b\\c\n\x01é"), "\"a\\\"b\\\\c\\n\\u0001é\"");
  EXPECT_EQ(json_quoted("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_bytes("a\xFFz"), "\"a\\udcffz\"");
}

}  // namespace
}  // namespace command
