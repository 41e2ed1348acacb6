// Tensors that lie in host memory and come to the device only while an op needs them.
//
// Optimizer states and masters are needed once a step; the update fetches and stores them slice by slice.
// Gradients, weights and block inputs are needed in every micro-step; they come one block at a time.
// Offloading changes no bit. Tensors that several blocks use belong to no block: the gradients and weights of
// such parameters stay on the device. The gradients of a parameter with more than two uses stay there, too.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "planner/graph/graph.h"

namespace stw {

// inputs: the inputs of blocks, which are kept for the backward pass.
enum class Offloaded : uint8_t { optimizer, masters, gradients, weights, inputs };
inline constexpr int offloaded_count = 5;
inline constexpr const char* offloaded_names[offloaded_count] = {"optimizer", "masters", "gradients",
                                                                 "weights", "inputs"};

struct Offload {
  // How many parts of each kind lie in host memory, counted from the first part. Each block is a part.
  // Optimizer states and masters have one more part, the last: those of all parameters outside of blocks.
  std::array<int, offloaded_count> parts{};
  // Copies run while ops compute. A program is cut into stages. The copies of a stage fetch tensors for the
  // next stage, and store tensors of the previous one.
  bool overlap = false;
  // Elements of a parameter that the update handles at once; a multiple of 256.
  int64_t slice = int64_t{1} << 22;

  int operator[](Offloaded what) const { return parts[static_cast<size_t>(what)]; }
  int& operator[](Offloaded what) { return parts[static_cast<size_t>(what)]; }
  bool any() const {  // many ops ask, so it calls nothing
    int all = 0;
    for (const int n : parts) all |= n;
    return all != 0;
  }
  bool operator==(const Offload&) const = default;
};

// Names of the kinds for users.
inline constexpr const char* offloaded_titles[offloaded_count] = {"optimizer states", "master weights",
                                                                  "gradients", "weights", "inputs"};

// The input of a segment that lies in host memory until its backward pass, or -1. Only a block with a
// backward pass has one, and only its input that no other segment reads (inputs_for_host).
int input_on_host(const Graph& graph, const Segment& segment, const Offload& offload);
// For every tensor: whether it lies in host memory.
std::vector<bool> on_host(const Graph& graph, const Offload& offload);

// Adds transfer_ops to a graph that is otherwise complete.
void add_transfers(Graph& graph);

}  // namespace stw
