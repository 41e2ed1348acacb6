// Reads texts as words with tags, to train models that label each token: a .conll file with a word and its
// tag on each line and a blank line after each text (word_columns.h), or JSON objects, {"tokens": […],
// "tags": […]}.
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
  std::vector<std::string> words, tags;  // one tag for each word, or no tags
  std::string place;                     // for messages
  bool has_numbers = false;              // the tags are numbers
  bool is_marked = false;                // its author took it out of the loss
};

// Whether the data is words with tags: a .conll file, or JSON objects of which the first has a list of words.
bool holds_tags(const DataSource& data, const LabelFields& fields);

// Throws a Failure that names the line if a text has no words, a word or tag is not valid, or their counts
// differ. A name given in `fields` is the only one tried; else words are "tokens" or "words", and tags are
// "tags", "ner_tags" or "labels". With tags, texts that are marked out of the loss are left out, and
// `*marked` is their number. Among tags of entities 0 becomes O. `reading` gets what was understood, for
// people: the columns, and the scheme of the tags.
std::vector<TaggedText> read_tagged(const DataSource& data, const LabelFields& fields, bool with_tags,
                                    uint64_t* marked = nullptr, std::string* reading = nullptr);

// All different tags, in the order of their bytes. Throws a Failure if tags are numbers.
std::vector<std::string> tags_of(std::span<const TaggedText> texts);

// Says why evaluations count words, for labels that are not tags of entities.
std::string words_are_counted(std::span<const std::string> names);

// The index of each tag in `labels`. Throws a Failure that names the line of an unknown tag.
std::vector<std::vector<uint32_t>> tag_numbers(std::span<const TaggedText> texts,
                                               std::span<const std::string> labels);

// Begins and ends of the words of a text in bytes. Half-open. Splits like BERT: at white space, and each
// punctuation character is a word.
std::vector<std::pair<size_t, size_t>> word_places(std::string_view text, const std::string& name);

// The tokens of words, with the special tokens that the tokenizer adds, cut to at most `most`. The label of a
// word is the label of its first token. If a byte-level tokenizer does not put a space before words, each
// word gets one, like add_prefix_space in transformers.
struct EncodedWords {
  EncodedText text;
  std::vector<int64_t> first;  // index of the first token of each word; -1: it is cut off, or has no tokens
};
EncodedWords tokens_of_words(std::span<const std::string> words, const std::string& place,
                             const Tokenization& tokenization, const stw_model_info& model, uint64_t most);

// The logits of each text's words that have tokens, `labels` numbers for each word. Other words are skipped.
std::vector<std::vector<float>> word_logits(stw_trainer* trainer, std::span<const EncodedWords> texts,
                                            size_t labels);

// Makes one document of each text, in this order, with a label for each token.
Examples tagged_examples(std::span<const TaggedText> texts, std::span<const std::string> labels,
                         const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                         Order order);

}  // namespace command
