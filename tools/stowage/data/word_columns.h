// Finds the columns of words and tags in a file of words: CoNLL-2003, CoNLL-U, GermEval 2014, and others, if
// their values leave no doubt.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/labelled.h"

namespace command {

struct WordText {
  std::vector<std::string> words, tags;  // one tag for each word, or no tags
  uint64_t line = 0;                     // of the first word
};

struct WordFile {
  std::vector<WordText> texts;
  std::string reading;  // "words in column 2, tags in column 3 of 4 between tabs: GermEval 2014; …"
  std::string columns;  // the same for all files of a kind
};

// `fields` name columns by number (1 is the first one, -1 the last one), or by their names in CoNLL-U;
// KEY:NAME is the entry NAME of the column KEY. Throws a Failure that shows the first lines and names the
// flags to use if a column is not certain.
WordFile read_words(std::string_view content, const std::string& path, const LabelFields& fields,
                    bool with_tags);

}  // namespace command
