// The labels of texts of which each has any number: for each text the numbers of its labels. They take the
// memory of the labels that the texts have, not texts · labels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace command {

class LabelLists {
 public:
  // Appends a text. Its labels ascend.
  void add(std::span<const uint32_t> labels);
  std::span<const uint32_t> operator[](size_t text) const;
  size_t size() const { return ends_.size(); }  // number of texts
  bool empty() const { return ends_.empty(); }

 private:
  std::vector<uint32_t> labels_;  // of all texts, one after the other
  std::vector<size_t> ends_;      // of each text, in labels_
};

// Writes stw_dataset_options.labels for the task LABELS to an empty file: for each text `width` float32, 1
// for each label that it has, else 0. Blocks of zeros are holes, which take no room on most file systems.
// Returns false, and sets errno, if the file cannot be written.
bool write_targets(const LabelLists& lists, size_t width, int file);

}  // namespace command
