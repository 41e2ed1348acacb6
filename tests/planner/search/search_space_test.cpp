// Tests the search against programs that are really built: its predictions of memory, and all choices of
// small models.
#include "planner/search/search_space.h"

#include <algorithm>
#include <set>

#include "planner/program/inference.h"
#include "planner/search/segment_class.h"
#include "tests/planner/branching_graphs.h"
#include "tests/planner/random_graphs.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

Request request_of(int64_t batch, int threads = 2) {
  Request r;
  r.global_batch = batch;
  r.threads = threads;
  return r;
}

Offload random_offload(const Graph& g, std::mt19937& random, bool overlap) {
  Offload o;
  for (int& n : o.parts) n = static_cast<int>(random() % static_cast<uint32_t>(g.blocks() + 2));
  for (size_t k = 2; k < offloaded_count; ++k) o.parts[k] = std::min(o.parts[k], g.blocks());
  o.overlap = overlap && o.any();
  o.slice = 256 << random() % 4;
  return o;
}

// Live bytes, as the search adds them up, for any save-sets in any order.
uint64_t predicted(const Graph& g, const Decisions& d, int threads, uint64_t alignment, TraceCache& cache) {
  const Arena arena = make_arena(g, alignment, d.offload);
  const Pricing pricing(g, *find_device("cpu"), threads);
  const std::vector<SegmentLives> lives = segment_lives(g);
  const Arena of_traces = arena_of_traces(g, arena);
  int64_t kept = 0, peak = INT64_MIN;
  for (size_t s = 0; s + 1 < g.segments.size(); ++s) {
    const SegmentProfile profile(g, arena, of_traces, s, lives[s], threads, Recompute::choose, cache);
    const MicroSteps steps = MicroSteps::of(d.micro_batch, d.micro_batch);
    for (const Variant& v : profile.variants(profile.own_figures(steps, pricing), steps, pricing,
                                             neighbour_copies(g, arena, s))) {
      if (v.saved != d.saved[s] || v.tile_rows != d.tile_rows_of(s)) continue;
      peak = std::max(peak, kept + v.peak);
      kept += v.kept;
      break;
    }
  }
  peak =
      std::max(peak, kept + head_variant(g, arena, lives.back(), threads, d.micro_batch, d.loss_chunks).peak);
  uint64_t inputs = 0;
  for (int t : g.all_inputs()) inputs += round_up(g.at(t).bytes(d.micro_batch), alignment);
  return arena.gradients_end + inputs + static_cast<uint64_t>(peak);
}

TEST(SegmentProfile, PredictsTheMemoryOfWholePrograms) {
  std::mt19937 random(6);
  std::vector<Graph> graphs = small_graphs();
  for (Graph& g : frozen_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : packed_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : classifier_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : fused_graphs()) graphs.push_back(std::move(g));
  Numerics fused;
  fused.fused_update = true;
  for (uint32_t seed = 0; seed < 40; ++seed)
    graphs.push_back(RandomModel(seed).graph(seed % 4 ? Numerics{} : fused));
  for (const Branching branching : all_branchings) graphs.push_back(branching_graph(branching));
  for (uint32_t seed = 0; seed < 200; ++seed)
    graphs.push_back(RandomNetwork(seed).graph(seed % 4 ? Numerics{} : fused));
  add_small_tiles(graphs);
#ifdef STW_SANITIZED
  constexpr int rounds = 3;
#else
  constexpr int rounds = 12;
#endif
  TraceCache cache;  // of all graphs: segments of different graphs share traces only if that is right
  for (const Graph& g : graphs)
    for (int round = 0; round < rounds; ++round) {
      Decisions d = random_decisions(g, random, 9);
      if (round % 3 > 0 && !g.fuses_updates()) d.offload = random_offload(g, random, round % 3 > 1);
      const uint64_t alignment = round % 2 ? 64 : 256;
      const int threads = 1 + round % 3;
      const Program p = build_micro(g, make_arena(g, alignment, d.offload), d, d.micro_batch, threads, true);
      std::string parts;
      for (int n : d.offload.parts) parts += " " + std::to_string(n);
      ASSERT_EQ(predicted(g, d, threads, alignment, cache), live_bound(p, alignment))
          << g.architecture << parts << (d.offload.overlap ? " overlapped" : "");
    }
}

// Blocks whose matrices take more bytes than a few tokens' activations.
constexpr const char* wide_gpt2 =
    R"({"model_type": "gpt2", "vocab_size": 257, "n_positions": 64, "n_embd": 64, "n_layer": 3, "n_head": 4,
                                      "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})";

// If everything is saved, a backward pass fetches biases and norms that it does not read.
TEST(SegmentProfile, FetchesThatNoOpReadsEndBeforeNeighboursCopies) {
  const Graph g = build_model(config_of(wide_gpt2), 32, {});
  Decisions d;
  d.micro_batch = d.loss_chunks = 1;
  for (const Segment& s : g.segments)
    d.saved.push_back(s.kind == SegmentKind::block ? (1u << s.saveable.size()) - 1 : ~0u);
  d.offload.parts.fill(g.blocks());
  d.offload.overlap = true;
  constexpr int gpu = 0;  // threads: with 0, scratch memory is small
  const Program p = build_micro(g, make_arena(g, 256, d.offload), d, 1, gpu, true);
  TraceCache cache;
  EXPECT_EQ(predicted(g, d, gpu, 256, cache), live_bound(p, 256));
}

TEST(SegmentClass, BlocksThatAreAlikeAreOneClass) {
  for (const Graph& g : small_graphs()) {
    const std::vector<int> classes = segment_classes(g);
    std::set<int> blocks;
    for (size_t s = 0; s < classes.size(); ++s) {
      if (g.segments[s].kind == SegmentKind::block) blocks.insert(classes[s]);
      else EXPECT_EQ(std::count(classes.begin(), classes.end(), classes[s]), 1);
    }
    // Nothing is trained below the first adapters. SmolLM3 has blocks of three kinds, Gemma of two.
    EXPECT_EQ(blocks.size(), g.architecture == "smollm3"                           ? 3u
                             : g.has_adapters() || g.architecture == "gemma3_text" ? 2u
                                                                                   : 1u);
  }
  Graph g = graph_of(small_llama());
  size_t second = 0;
  while (g.segments[second].block != 1) ++second;
  g.ops[g.segments[second].first_op].attributes.epsilon *= 2;
  EXPECT_NE(segment_classes(g)[second - 1], segment_classes(g)[second]);
}

// ---- against all choices --------------------------------------------------------------------------------

// The next tiles that a segment may have with its save-set. After the last ones, no tiles again.
bool next_tiles(const Graph& g, size_t s, Decisions& d) {
  d.tile_rows.resize(g.segments.size());
  const auto all = g.tile_rows.begin(), end = g.tile_rows.end();
  auto next = d.tile_rows[s] == 0 ? all : std::find(all, end, d.tile_rows[s]) + 1;
  d.tile_rows[s] = 0;
  if (!may_tile(g, g.segments[s], d.saved[s])) return false;
  while (next != end && tiling_of(d.micro_batch * g.sequence, g.sequence, *next).tiles() == 1) ++next;
  if (next == end) return false;
  d.tile_rows[s] = *next;
  return true;
}

struct Point {
  uint64_t picoseconds, live_bytes;
};

// All save-sets of every block in every order with all tiles, all micro-batches, all numbers of loss chunks.
// Programs are built.
std::vector<Point> all_points(const Graph& g, const Request& request, const DeviceProfile& device,
                              const Offload& offload) {
  const Arena arena = make_arena(g, device.alignment, offload);
  const Pricing pricing(g, device, request.threads);
  std::vector<Point> points;
  const Program update = build_update(g, arena, request.threads);
  uint64_t floor = live_bound(update, device.alignment);
  const auto [prefill, decode] = build_generate(g, arena, request.threads);
  for (const Program* p : {&prefill, &decode})
    if (!p->instructions.empty()) floor = std::max(floor, live_bound(*p, device.alignment));
  for (int64_t m = request.fused_update ? request.global_batch : 1; m <= request.global_batch; ++m)
    for (int64_t chunks = 1; chunks <= 64; chunks *= 2) {
      if (chunks > 1 && chunk_rows(m * g.sequence, chunks, chunk_unit(g)) ==
                            chunk_rows(m * g.sequence, chunks / 2, chunk_unit(g)))
        break;
      Decisions d = uniform_decisions(g, 0, m, chunks);
      d.offload = offload;
      const int64_t rest = request.global_batch % m;
      auto price = [&](int64_t samples, bool accumulate) {
        return pricing.program(build_micro(g, arena, d, samples, request.threads, accumulate),
                               offload.overlap);
      };
      const uint64_t next_steps = static_cast<uint64_t>(request.global_batch / m - 1);
      for (;;) {
        const Program p = build_micro(g, arena, d, m, request.threads, true);
        uint64_t time = pricing.step(d, request.global_batch);
        if (offload.any() || points.size() % 16 == 0) {
          const uint64_t closed = time, next = pricing.program(p, offload.overlap);
          time = pricing.program(update, offload.overlap) + next * next_steps;
          time += offload[Offloaded::gradients] > 0 ? price(m, false) : next;
          if (rest > 0) time += price(rest, true);
          if (!offload.any()) { EXPECT_EQ(time, closed); }
        }
        points.push_back({time, std::max(floor, live_bound(p, device.alignment))});
        size_t s = 0;  // counts through the tiles of the save-sets, and through the save-sets
        for (; s < g.segments.size(); ++s) {
          if (g.segments[s].kind != SegmentKind::block) continue;
          if (next_tiles(g, s, d)) break;
          if (++d.saved[s] < (1u << g.segments[s].saveable.size())) break;
          d.saved[s] = 0;
        }
        if (s == g.segments.size()) break;
      }
    }
  return points;
}

#ifdef STW_SANITIZED
constexpr uint32_t models = 12, networks = 40;
#else
constexpr uint32_t models = 240, networks = 600;
#endif

// The tensors of all blocks that may be kept or not.
size_t saveable(const Graph& g) {
  size_t count = 0;
  for (const Segment& s : g.segments) count += s.kind == SegmentKind::block ? s.saveable.size() : 0;
  return count;
}

// Two of three models have tensors in host memory. Some have an update inside the backward pass. `Model`:
// RandomModel or RandomNetwork.
template <class Model>
void expect_all_choices(uint32_t count, size_t most_saveable) {
  std::mt19937 random(7);
  int pareto_points = 0, higher = 0;
  for (uint32_t seed = 0; seed < count; ++seed) {
    const DeviceProfile& device = *find_device(seed % 2 ? "cpu" : "rtx4090");
    Numerics numerics;
    numerics.precision = seed % 3 ? Precision::fp32 : Precision::bf16;
    numerics.fused_update = seed % 12 == 1;
    Graph g = Model(seed).graph(numerics);
    if (saveable(g) > most_saveable) continue;
    g.tile_rows = {int64_t{2} << seed % 5};
    Request request = request_of(1 + static_cast<int64_t>(random() % (g.blocks() > 2 ? 2 : 4)));
    request.host_bytes = size_limit;
    request.fused_update = numerics.fused_update;
    const Offload offload = seed % 6 < 2 ? Offload{} : random_offload(g, random, device.cuda);
    const std::vector<Point> points = all_points(g, request, device, offload);
    uint64_t least = UINT64_MAX, most = 0;
    for (const Point& p : points) {
      least = std::min(least, p.live_bytes);
      most = std::max(most, p.live_bytes);
    }
    const Pricing pricing(g, device, request.threads);
    std::vector<int64_t> micro_batches;
    for (int64_t m = request.fused_update ? request.global_batch : 1; m <= request.global_batch; ++m)
      micro_batches.push_back(m);
    TraceCache cache;
    SegmentChoices segments(g, request, pricing, cache);
    OffloadSearch search({g, request, device, pricing, segments, micro_batches}, offload);
    const Candidate smallest = *search.smallest();
    // Happens only if a gap of the layout makes the arena of the plan with the fewest live bytes larger.
    if (smallest.live_bytes != least) {
      EXPECT_GE(search.arena(search.fastest_with_live_bytes(least)->decisions),
                search.arena(smallest.decisions))
          << seed;
    }
    for (int step = -1; step <= 4; ++step) {
      const uint64_t limit = step < 0 ? least - 1 : least + (most - least) / 4 * static_cast<uint64_t>(step);
      uint64_t best = UINT64_MAX, peak = UINT64_MAX;
      for (const Point& p : points)
        if (p.live_bytes <= limit) best = std::min(best, p.picoseconds);
      for (const Point& p : points)
        if (p.live_bytes <= limit && p.picoseconds == best) peak = std::min(peak, p.live_bytes);
      const auto point = search.fastest_with_live_bytes(limit);
      ASSERT_EQ(point.has_value(), best != UINT64_MAX) << seed;
      if (!point) {
        EXPECT_FALSE(search.fastest(limit));
        continue;
      }
      EXPECT_EQ(point->picoseconds, best) << seed << ", limit " << limit;
      EXPECT_EQ(point->live_bytes, peak) << seed << ", limit " << limit;
      EXPECT_EQ(point->bound_picoseconds, best);
      ++pareto_points;
      higher += search.arena(point->decisions) > point->live_bytes;
      if (const auto found = search.fastest(limit)) {
        EXPECT_LE(search.arena(found->decisions), limit);
        EXPECT_EQ(found->bound_picoseconds, best);
        EXPECT_GE(found->picoseconds, best);
        if (search.arena(point->decisions) <= limit) { EXPECT_EQ(found->picoseconds, best); }
      }
    }
  }
  std::printf("%d of %d Pareto points are laid out without a gap\n", pareto_points - higher, pareto_points);
  EXPECT_LT(higher, pareto_points / 4);
}

TEST(OffloadSearch, EqualsAllChoicesOfRandomModels) { expect_all_choices<RandomModel>(models, 20); }
TEST(OffloadSearch, EqualsAllChoicesOfRandomNetworks) { expect_all_choices<RandomNetwork>(networks, 12); }

// Most offload choices give neither a smaller arena nor a faster plan. Their bytes and copies show this
// without a search.
TEST(SearchSpace, RunsOnlySearchesThatMayMatter) {
  std::string deep(wide_gpt2);
  deep.replace(deep.find("\"n_layer\": 3"), 12, "\"n_layer\": 16");
  const auto source = [&](const Numerics& n) { return build_model(config_of(deep), 32, n); };
  Request request = request_of(3, 0);
  request.host_bytes = size_limit;
  SearchSpace space(source, {}, request, *find_device("h100"));
  space.smallest();
  const int64_t searches = space.searches_made();
  EXPECT_LE(searches, 8);
  const auto found = space.fastest(uint64_t{1} << 40);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->decisions.offload.any());
  EXPECT_LE(space.searches_made(), searches + 2);
}

// The smallest budget works, and no smaller one does. Nor is a plan with more memory slower.
void expect_the_smallest_works(SearchSpace& space, uint64_t steps) {
  const uint64_t least = space.arena(space.smallest().decisions);
  const auto found = space.fastest(least);
  ASSERT_TRUE(found);
  EXPECT_EQ(space.arena(found->decisions), least);
  EXPECT_FALSE(space.fastest(least - 1));
  uint64_t time = found->picoseconds;
  for (uint64_t more = 1; more <= steps; ++more) {
    const auto next = space.fastest(least + least / 200 * more);
    ASSERT_TRUE(next);
    EXPECT_LE(next->picoseconds, time) << more;
    EXPECT_LE(next->bound_picoseconds, next->picoseconds);
    time = next->picoseconds;
  }
}

TEST(SearchSpace, TheSmallestBudgetWorks) {
  for (const std::string& config : {std::string(wide_gpt2), small_llama()})
    for (const char* device : {"cpu", "h100"})
      for (int64_t batch : {1, 3})
        for (Recompute recompute : {Recompute::choose, Recompute::none, Recompute::full}) {
          const auto source = [&](const Numerics& n) { return build_model(config_of(config), 32, n); };
          Request request = request_of(batch, find_device(device)->cuda ? 0 : 2);
          request.host_bytes = size_limit;
          request.recompute = recompute;
          SearchSpace space(source, {}, request, *find_device(device));
          SCOPED_TRACE(config + device + std::to_string(batch) + std::to_string(static_cast<int>(recompute)));
          expect_the_smallest_works(space, 20);
        }
}

// The search also considers plans that keep everything, or nothing. A request may ask for either by name. In
// models with adapters, other plans keep the adapters' narrow tensors and draw their dropout again.
TEST(SearchSpace, KeepingAllIsNoFasterAndKeepingNothingNeedsNoFewerBytes) {
  for (const double dropout : {0.0, 0.1})
    for (const std::string& config : {small_gpt2(), small_llama()})
      for (const char* device : {"cpu", "h100"}) {
        const SmallModel model{config, adapters_of_all(dropout)};
        const auto source = [&](const Numerics& n) { return build_model(config_of(model), 33, n); };
        SCOPED_TRACE(config + device + std::to_string(dropout));
        for (const uint64_t host_bytes : {uint64_t{0}, size_limit}) {
          // The search space keeps a reference.
          Request request = request_of(2, find_device(device)->cuda ? 0 : 2);
          request.host_bytes = host_bytes;
          Request all = request, nothing = request;
          all.recompute = Recompute::none;
          nothing.recompute = Recompute::full;
          SearchSpace chosen(source, {}, request, *find_device(device)),
              keeping_all(source, {}, all, *find_device(device)),
              keeping_nothing(source, {}, nothing, *find_device(device));
          const auto least = [](SearchSpace& space) { return space.arena(space.smallest().decisions); };
          EXPECT_LE(least(chosen), least(keeping_nothing));
          for (SearchSpace* other : {&keeping_all, &keeping_nothing})
            for (const uint64_t bytes : {least(*other), 2 * least(*other)}) {
              const auto found = chosen.fastest(bytes);
              EXPECT_LE(found->picoseconds, other->fastest(bytes)->picoseconds);
              EXPECT_LE(found->bound_picoseconds, found->picoseconds);
            }
          SCOPED_TRACE(host_bytes);
          expect_the_smallest_works(chosen, 20);
        }
      }
}

// Blocks with adapters have many variants. If copies run while blocks compute, the search mixes only the best
// variants.
TEST(SearchSpace, OfManyChoicesTheSmallestBudgetWorksToo) {
  const SmallModel model{small_llama(), adapters_of_all()};
  const auto source = [&](const Numerics& n) { return build_model(config_of(model), 33, n); };
  for (const char* device : {"cpu", "h100"}) {
    Request request = request_of(3, find_device(device)->cuda ? 0 : 2);
    request.host_bytes = size_limit;
    const Graph graph = source({});
    const Pricing pricing(graph, *find_device(device), request.threads);
    TraceCache cache;
    SegmentChoices choices(graph, request, pricing, cache);
    Offload offload;
    offload.parts.fill(graph.blocks());
    offload.overlap = find_device(device)->cuda;
    const auto arena =
        std::make_shared<const Arena>(make_arena(graph, find_device(device)->alignment, offload));
    const size_t kind = choices.kind(arena, 2),
                 plain = choices.kind(
                     std::make_shared<const Arena>(make_arena(graph, find_device(device)->alignment)), 2);
    EXPECT_GT(choices.of_kind(kind, 1).variants.size(), 32u);
    EXPECT_LT(choices.best_of_kind(kind, 1).variants.size(), choices.of_kind(kind, 1).variants.size());
    EXPECT_EQ(&choices.best_of_kind(plain, 1), &choices.of_kind(plain, 1));

    SearchSpace space(source, {}, request, *find_device(device));
    SCOPED_TRACE(device);
    expect_the_smallest_works(space, 40);
  }
}

TEST(SearchSpace, LooserBudgetsAreFasterAndTighterOnesSmaller) {
  for (const std::string& config : {small_gpt2("0.1"), small_llama()}) {
    const auto source = [&](const Numerics& n) { return build_model(config_of(config), 33, n); };
    const Request request = request_of(12);
    SearchSpace space(source, {}, request, *find_device("cpu"));
    const uint64_t least = space.arena(space.smallest().decisions),
                   most = space.arena(space.fastest(uint64_t{1} << 40)->decisions);
    EXPECT_FALSE(space.fastest(least - 1));
    uint64_t time = UINT64_MAX, peak = 0;
    for (uint64_t step = 0; step <= 60; ++step) {
      const auto c = space.fastest(least + (most - least) / 60 * step);
      ASSERT_TRUE(c);
      const uint64_t bytes = space.arena(c->decisions);
      EXPECT_LE(c->picoseconds, time);
      EXPECT_GE(bytes, peak);
      time = c->picoseconds;
      peak = bytes;
    }
  }
}

}  // namespace
}  // namespace stw
