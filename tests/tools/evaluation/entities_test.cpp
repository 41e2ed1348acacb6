// Entities of sequences of tags and their scores, compared with seqeval's.
#include "evaluation/entities.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "tests/golden/entities.h"

namespace command {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(Entities, AgreeWithSeqeval) {
  for (const golden::TagsCase& one : golden::tags_cases) {
    std::string found;
    for (const Entity& e : entities_of(words_of(one.tags)))
      found +=
          (found.empty() ? "" : " ") + e.type + ":" + std::to_string(e.first) + ":" + std::to_string(e.end);
    EXPECT_EQ(found, one.entities) << one.tags;
  }
}

std::string found_in(const std::string& tags) {
  std::string found;
  for (const Entity& e : entities_of(words_of(tags)))
    found +=
        (found.empty() ? "" : " ") + e.type + ":" + std::to_string(e.first) + ":" + std::to_string(e.end);
  return found;
}

TEST(Entities, OfAllSchemesAgreeWithSeqeval) {
  std::map<std::string, std::vector<std::vector<std::string>>> texts;
  for (const golden::SchemeCase& one : golden::scheme_cases) {
    EXPECT_EQ(found_in(one.tags), one.entities) << one.tags;
    texts[one.scheme].push_back(words_of(one.tags));
  }
  EXPECT_EQ(texts.size(), 5u);
  for (const auto& [scheme, tags] : texts)
    if (!scheme.empty()) { EXPECT_EQ(scheme_of(tags), scheme); }
  EXPECT_EQ(scheme_of(std::vector<std::vector<std::string>>{words_of("I-PER O B-PER")}),
            "IOB, in which entities begin with B or with I");
  EXPECT_EQ(scheme_of(std::vector<std::vector<std::string>>{words_of("B-PER NN")}), "");
}

TEST(Entities, ZeroIsOutside) {
  EXPECT_EQ(found_in("B-PER 0 I-PER"), "PER:0:1 PER:2:3");
  EXPECT_TRUE(are_entity_tags(words_of("0 B-PER")));
  EXPECT_FALSE(are_entity_tags(words_of("0 O")));
  EXPECT_TRUE(are_entity_tags(words_of("O B-PER I-PER L-PER U-LOC")));
  EXPECT_FALSE(are_entity_tags(words_of("O E-PER U-PER")));  // of two schemes
}

TEST(Entities, ScoresAgreeWithSeqeval) {
  EntityScores scores;
  for (const golden::TagsCase& one : golden::tags_cases)
    scores.add(words_of(one.tags), words_of(one.answers));
  size_t types = 0;
  for (const golden::TypeCase& one : golden::type_cases) {
    const std::string type = one.type;
    ASSERT_TRUE(type.empty() || scores.by_type.count(type)) << type;
    const EntityCounts& counts = type.empty() ? scores.all : scores.by_type[type];
    EXPECT_NEAR(counts.precision(), one.precision, 1e-12) << type;
    EXPECT_NEAR(counts.recall(), one.recall, 1e-12) << type;
    EXPECT_NEAR(counts.f1(), one.f1, 1e-12) << type;
    EXPECT_EQ(counts.expected, one.wanted) << type;
    types += !type.empty();
  }
  EXPECT_EQ(scores.by_type.size(), types);
  EXPECT_GT(types, 3u);
}

TEST(Entities, RecognisesTagsOfEntities) {
  const auto are = [](const std::string& names) { return are_entity_tags(words_of(names)); };
  EXPECT_TRUE(are("O B-PER I-PER"));
  EXPECT_TRUE(are("B-PER I-PER"));
  EXPECT_TRUE(are("O B I S-A-B E-X"));
  EXPECT_FALSE(are("O"));
  EXPECT_FALSE(are(""));
  EXPECT_FALSE(are("O B-PER NNP"));
  EXPECT_FALSE(are("O B- I-"));
  EXPECT_FALSE(are("NN VB IN"));
  EXPECT_FALSE(are("PER O"));
}

TEST(Entities, ScoresWithoutAnEntityAreZero) {
  EntityScores scores;
  scores.add(words_of("O O"), words_of("O O"));
  EXPECT_EQ(scores.all.precision(), 0);
  EXPECT_EQ(scores.all.recall(), 0);
  EXPECT_EQ(scores.all.f1(), 0);
  scores.add(words_of("B-PER O"), words_of("O O"));
  EXPECT_EQ(scores.all.recall(), 0);
  EXPECT_EQ(scores.all.f1(), 0);
}

}  // namespace
}  // namespace command
