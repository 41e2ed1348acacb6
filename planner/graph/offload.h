// What lies in host memory and comes to the device only while an op needs it.
//
// Optimizer states and masters are needed once a step, by the update, which fetches and stores them slice by slice.
// Gradients, weights and block inputs are needed in every micro-step, a block at a time. None of this changes a bit.
// What several blocks use is of no block: its gradients and weights stay, and so do the gradients of a parameter with more than two uses.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "planner/graph/graph.h"

namespace stw {

// Inputs: what a block keeps of its input for its backward pass.
enum class Offloaded : uint8_t { optimizer, masters, gradients, weights, inputs };
inline constexpr int offloaded_count = 5;
inline constexpr const char* offloaded_names[offloaded_count] = {"optimizer", "masters", "gradients", "weights", "inputs"};

struct Offload {
  // How many parts of each kind lie in host memory, from the first part on. Each block is a part; of optimizer states and
  // masters, all that belong to parameters outside of blocks are one more part, the last.
  std::array<int, offloaded_count> parts{};
  // Copies run beside the ops: programs are cut into stages, whose copies serve the stage before and the one after.
  bool overlap = false;
  int64_t slice = int64_t{1} << 22;   // elements of a parameter that the update handles at once; a multiple of 256

  int operator[](Offloaded what) const { return parts[static_cast<size_t>(what)]; }
  int& operator[](Offloaded what) { return parts[static_cast<size_t>(what)]; }
  bool any() const { return parts != std::array<int, offloaded_count>{}; }
  bool operator==(const Offload&) const = default;
};

// The same kinds, in words for people.
inline constexpr const char* offloaded_titles[offloaded_count] = {"optimizer states", "master weights", "gradients", "weights", "inputs"};

// Whether what a segment keeps of its input lies in host memory: only blocks with a backward pass keep something.
bool keeps_input_on_host(const Segment& segment, const Offload& offload);
// For every tensor whether it lies in host memory.
std::vector<bool> on_host(const Graph& graph, const Offload& offload);

// Adds transfer_ops to a graph that is otherwise complete.
void add_transfers(Graph& graph);

}  // namespace stw
