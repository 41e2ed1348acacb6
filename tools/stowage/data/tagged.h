// Texts of words, each with a tag, to train models on that give every token a label: a .conll file of lines
// with a word and its tag, and a blank line after each text, or objects of JSON, {"tokens": […], "tags":
// […]}.
#pragma once
#include <stowage.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/data_source.h"
#include "data/examples.h"
#include "data/labelled.h"
#include "data/tokenization.h"

namespace command {

struct TaggedText {
  std::vector<std::string> words, tags;  // tags: as many as words, or none
  std::string place;                     // for messages
  bool has_numbers = false;              // tags are numbers
};

// Whether it is such data: a .conll file, or objects of which the first one has a list of words.
bool holds_tags(const DataSource& data, const LabelFields& fields);

// Throws a Failure that names the line: one without words, with words or tags that are none, or with more of
// one than of the other. `fields`: where a name was given it holds; else words are "tokens" or "words", and
// tags "tags", "ner_tags" or "labels".
std::vector<TaggedText> read_tagged(const DataSource& data, const LabelFields& fields, bool with_tags);

// Each once, in the order of their bytes. Throws a Failure where tags are numbers.
std::vector<std::string> tags_of(std::span<const TaggedText> texts);

// The number of each tag among `labels`. Throws a Failure that names the line of one that is not there.
std::vector<std::vector<uint32_t>> tag_numbers(std::span<const TaggedText> texts,
                                               std::span<const std::string> labels);

// Where the words of a text begin and end, as BERT splits it: at white space, and every punctuation character
// is a word.
std::vector<std::pair<size_t, size_t>> word_places(std::string_view text, const std::string& name);

// The tokens of words, with those that the tokenizer puts around a text, cut to at most `most`. A word's
// label is that of its first token. Where a tokenizer of bytes puts no space before words, each word gets
// one, as transformers' add_prefix_space does.
struct SeenWords {
  SeenText text;
  std::vector<int64_t> first;  // token of each word; -1: it was cut off, or has none
};
SeenWords tokens_of_words(std::span<const std::string> words, const std::string& place,
                          const Tokenization& tokenization, const stw_model_info& model, uint64_t most);

// The logits of every word that has tokens, `labels` numbers each; of the others nothing.
std::vector<std::vector<float>> word_logits(stw_trainer* trainer, std::span<const SeenWords> texts,
                                            size_t labels);

// As documents, in this order, with a label of each token.
Examples tagged_examples(std::span<const TaggedText> texts, std::span<const std::string> labels,
                         const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                         Order order);

}  // namespace command
