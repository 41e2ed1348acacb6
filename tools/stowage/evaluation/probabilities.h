// The probabilities of a classifier's labels, the most probable labels, and how they are written for people.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace command {

struct ProbableLabel {
  double share;  // its probability
  uint32_t label;
};

class Probabilities {
 public:
  // Takes the logits of a text. `softmax`: it has one label, so that the probabilities add up to 1; else each
  // label is there or not.
  void take(std::span<const float> logits, bool softmax);
  // The `count` most probable labels, the most probable one first; equal ones by number.
  std::vector<ProbableLabel> most_probable(size_t count) const;
  ProbableLabel best() const;
  // The labels with a probability above the threshold, in the same order.
  std::vector<ProbableLabel> above(double threshold) const;

 private:
  std::vector<double> terms_;  // a label's probability is its term, divided by sum_
  double sum_ = 1, largest_ = 1;
};

// Appends a probability with four decimals, as fmt's {:.4f} writes it.
void append_share(std::string& line, double share);

}  // namespace command
