// The losses of the document pairs of a micro-batch, and the weights of their tokens' gradients. A block for
// each sample finds where the documents begin. Then one thread for each pair goes over the pair's rows in
// order, with loads ahead of the sums. In the end, one block adds up the samples. 16 bytes a token are read
// and written, compared with thousands for its logits. A pair of a thousand tokens is a chain of a thousand
// additions.
//
// Workspace: for each sample its loss sum, number of pairs and number of pairs in order (64 bits each); the
// loss of each pair (double); where documents begin (int).
#include "kernels/common/preference_pair.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

struct PreferenceScratch {
  double* sums;
  uint64_t *pairs, *hits;
  double* losses;   // (samples, most_pairs).
  int32_t* begins;  // (samples, rows + 2).
  int64_t most_pairs;
};

// begins[d] = the first row of document d. The two entries after the last document hold `rows`. Returns the
// number of documents.
STW_DEVICE int find_documents(const int32_t* positions, int rows, int32_t* begins) {
  STW_SHARED(int, of_warps, block_threads / 32);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  int documents = 0;
  for (int base = 0; base < rows; base += block_threads) {
    const int row = base + static_cast<int>(threadIdx.x);
    const bool is_begin = row < rows && (row == 0 || positions[row] == 0);
    const unsigned begin = __ballot_sync(all_lanes, is_begin);
    if (lane == 0) of_warps[warp] = __popc(begin);
    __syncthreads();
    int before = documents + __popc(begin & ((1u << lane) - 1u));
    for (int w = 0; w < block_threads / 32; ++w) {
      before += w < warp ? of_warps[w] : 0;
      documents += of_warps[w];
    }
    if (is_begin) begins[before] = row;
    __syncthreads();  // All threads have read.
  }
  if (threadIdx.x < 2) begins[documents + static_cast<int>(threadIdx.x)] = rows;
  __syncthreads();
  return documents;
}

static __global__ void __launch_bounds__(block_threads)
    pairs_kernel(PreferenceArgs args, PreferenceScratch scratch) {
  struct Row {
    int32_t target;
    float loss, reference;
  };
  const int rows = static_cast<int>(args.rows_per_sample);
  for (int64_t sample = blockIdx.x; sample < args.samples; sample += gridDim.x) {
    const int64_t first = sample * args.rows_per_sample;
    int32_t* const begins = scratch.begins + sample * (args.rows_per_sample + 2);
    double* const losses = scratch.losses + sample * scratch.most_pairs;
    const int pairs = (find_documents(args.positions + first, rows, begins) + 1) / 2;
    uint64_t count = 0, hits = 0;
    for (int base = 0; base < pairs; base += block_threads) {
      const int number = base + static_cast<int>(threadIdx.x);
      PairSums pair = {};
      PairEnd last = {};
      if (number < pairs) {
        STW_UNROLL
        for (int d = 0; d < 2; ++d) {
          const int64_t begin = first + begins[2 * number + d];
          for_each_ahead<8>(
              begins[2 * number + d + 1] - begins[2 * number + d],
              [&](int i) {
                return Row{args.targets[begin + i], args.token_loss[begin + i],
                           args.reference == nullptr ? 0.0f : args.reference[begin + i]};
              },
              [&](const Row& row) {
                if (row.target == ignored_target) return;
                pair.policy[d] = pair.policy[d] - static_cast<double>(row.loss);
                pair.reference[d] = pair.reference[d] + static_cast<double>(row.reference);
                ++pair.count[d];
              });
        }
      }
      const bool counts = pair.count[0] > 0 && pair.count[1] > 0;
      if (counts) last = pair_end(args.terms, pair);
      if (number < pairs) losses[number] = last.loss;
      if (number < pairs && args.token_weights != nullptr) {
        STW_UNROLL
        for (int d = 0; d < 2; ++d)
          for (int row = begins[2 * number + d]; row < begins[2 * number + d + 1]; ++row)
            args.token_weights[first + row] = last.weight[d];
      }
      count += static_cast<uint64_t>(__syncthreads_count(counts));
      hits += static_cast<uint64_t>(__syncthreads_count(counts && last.chosen_is_ahead));
    }
    const double sum = serial_sum(0.0, losses, pairs);
    if (threadIdx.x != 0) continue;
    scratch.sums[sample] = sum;
    scratch.pairs[sample] = count;
    scratch.hits[sample] = hits;
  }
}

static __global__ void __launch_bounds__(block_threads)
    add_pairs_kernel(PreferenceArgs args, PreferenceScratch scratch) {
  const double sum = serial_sum(args.state->loss_sum, scratch.sums, args.samples);
  const uint64_t pairs = serial_sum(args.state->target_count, scratch.pairs, args.samples);
  const uint64_t hits = serial_sum(static_cast<uint64_t>(args.state->hits), scratch.hits, args.samples);
  if (threadIdx.x != 0) return;
  args.state->loss_sum = sum;
  args.state->target_count = pairs;
  args.state->hits = static_cast<uint32_t>(hits);
}

void preference(const Launch& l, const PreferenceArgs& args) {
  STW_ASSERT_WORKSPACE(preference);
  PreferenceScratch scratch;
  scratch.most_pairs = (args.rows_per_sample + 1) / 2;
  scratch.sums = static_cast<double*>(l.workspace);
  scratch.pairs = reinterpret_cast<uint64_t*>(scratch.sums + args.samples);
  scratch.hits = scratch.pairs + args.samples;
  scratch.losses = reinterpret_cast<double*>(scratch.hits + args.samples);
  scratch.begins = reinterpret_cast<int32_t*>(scratch.losses + args.samples * scratch.most_pairs);
  STW_ASSERT_FITS(scratch.begins + args.samples * (args.rows_per_sample + 2));
  launch(l, pairs_kernel, blocks_for(args.samples, 1), block_threads, 0, args, scratch);
  launch(l, add_pairs_kernel, 1, block_threads, 0, args, scratch);
}

}  // namespace stw::kernels::cuda
