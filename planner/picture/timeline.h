// The horizontal axis of the pictures: the programs of a training step one after the other, instruction by
// instruction.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace stw::picture {

// A program of the step. Each section has its own scale, because the update has many instructions and little
// to show.
struct Section {
  const Program* program;
  std::string title;
  int first;          // index of its first instruction; indices run through all sections
  double begin, end;  // as shares of the width, 0 to 1
  int instructions() const { return static_cast<int>(program->instructions.size()); }
};

// Consecutive instructions of one segment in one direction.
struct Run {
  enum class Group : uint8_t { forward, head, backward, update, inference };
  Group group;
  int segment;     // of the graph; -1: none
  int first, end;  // instructions, half-open
};

// Live bytes by class, for one or a few consecutive instructions: those of the instruction with the most live
// bytes.
struct Column {
  int first, end, instruction;
  std::array<uint64_t, class_count> live;
  uint64_t total() const;
};

// Keeps references to its arguments.
class Timeline {
 public:
  Timeline(const Graph& graph, const Plan& plan, const Programs& programs);

  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Run>& runs() const { return runs_; }
  int instructions() const { return sections_.back().first + sections_.back().instructions(); }
  const Section& section_of(int instruction) const;
  const Instruction& at(int instruction) const;
  double x(int instruction) const;      // its left side, as a share of the width
  double right(int instruction) const;  // its right side
  // The busiest instruction of the program that reaches the top of the arena.
  int peak() const { return peak_; }
  bool holds_gradients(const Section& section) const { return section.program->base >= arena_.gradients_end; }
  // The first instruction after the life of the gradients. Programs that run between two steps reuse their
  // memory.
  int gradients_end() const;

  // "norm → ", "attn_norm"
  struct Words {
    std::string op, tensor;
  };
  Words words(int instruction) const;
  std::string label(int instruction) const;   // both words
  std::string place(int instruction) const;   // "block 3"
  std::string moment(int instruction) const;  // "norm → attn_norm (block 3, forward)"
  static const char* phase_name(Phase phase);
  int block(int segment) const;  // its index; -1: not a block

  std::vector<Column> live(int at_most) const;

 private:
  void add(const Program& program, std::string title, double width);
  const Graph& graph_;
  const Arena& arena_;
  std::vector<Section> sections_;
  std::vector<Run> runs_;
  int peak_ = 0;
};

const char* group_name(Run::Group group);

}  // namespace stw::picture
