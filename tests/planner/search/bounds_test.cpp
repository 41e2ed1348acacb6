// Tests the lower bounds of the search: for ranges of micro-batches, and for cells of offload choices.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "planner/search/micro_batch_order.h"
#include "planner/search/search_space.h"
#include "tests/planner/random_graphs.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

constexpr int64_t largest_batch = 24;

struct Drawn {
  Graph graph;
  Request request;
  const DeviceProfile* device;
};

Drawn draw(uint32_t seed) {
  Drawn model;
  Numerics numerics;
  numerics.precision = seed % 3 ? Precision::fp32 : Precision::bf16;
  model.graph = RandomModel(seed).graph(numerics);
  model.graph.tile_rows = {int64_t{2} << seed % 5, int64_t{8} << seed % 5};
  model.device = find_device(seed % 2 ? "cpu" : "rtx4090");
  model.request.global_batch = 1 + static_cast<int64_t>(seed * 7 % largest_batch);
  model.request.threads = model.device->cuda ? 0 : 2;
  model.request.host_bytes = size_limit;
  return model;
}

Offload some_offload(const Graph& g, std::mt19937& random, bool overlap) {
  Offload o;
  for (int& n : o.parts) n = static_cast<int>(random() % static_cast<uint32_t>(g.blocks() + 1));
  o.overlap = overlap && o.any();
  return o;
}

// Each micro-batch is searched, or its bound is no less than the best time.
TEST(MicroBatchOrder, FindsWhatAllMicroBatchesHave) {
  std::mt19937 random(3);
  int64_t visits = 0, all_visits = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> all(1 + random() % 200);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i) + 1;
    std::vector<uint64_t> ops, relaxed, time;
    const int64_t best_size = 1 + static_cast<int64_t>(random() % all.size());
    for (int64_t m : all) {
      ops.push_back(1000 + 5000 / static_cast<uint64_t>(m));
      relaxed.push_back(ops.back() + static_cast<uint64_t>(std::max<int64_t>(0, m - best_size)) * 7);
      time.push_back(relaxed.back() + random() % 40);
    }
    const size_t count = 1 + random() % all.size();
    const MicroBatchBounds bounds{[&](const MicroBatches& range) {
                                    EXPECT_LE(range.most, static_cast<int64_t>(count));
                                    return *std::min_element(relaxed.begin() + range.fewest - 1,
                                                             relaxed.begin() + range.most) -
                                           random() % 20;
                                  },
                                  [&](int64_t m) { return ops[static_cast<size_t>(m) - 1]; },
                                  [&](int64_t m) { return relaxed[static_cast<size_t>(m) - 1]; }};
    uint64_t best = UINT64_MAX, last = 0;
    visit_micro_batches(all, count, bounds, UINT64_MAX, [&](int64_t m, uint64_t least) {
      EXPECT_EQ(least, relaxed[static_cast<size_t>(m) - 1]);
      EXPECT_GE(least, last);
      last = least;
      best = std::min(best, time[static_cast<size_t>(m) - 1]);
      ++visits;
      return best;
    });
    all_visits += static_cast<int64_t>(count);
    EXPECT_EQ(best, *std::min_element(time.begin(), time.begin() + static_cast<std::ptrdiff_t>(count)));
    const uint64_t least =
        *std::min_element(relaxed.begin(), relaxed.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(least_bound(all, count, bounds), least);
    EXPECT_EQ(least_bound(all, count, bounds, least + 1), least);
    EXPECT_EQ(least_bound(all, count, bounds, least), UINT64_MAX);
  }
  EXPECT_LT(visits, all_visits / 4);
}

// No variant at a micro-batch beats all variants of a range that contains it.
TEST(SegmentProfile, FiguresOfARangeAreLowerBounds) {
  std::mt19937 random(5);
  TraceCache cache;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Drawn model = draw(seed);
    const Graph& g = model.graph;
    const Pricing pricing(g, *model.device, model.request.threads);
    const Arena arena = make_arena(g, model.device->alignment,
                                   seed % 3 ? some_offload(g, random, model.device->cuda) : Offload{});
    const int64_t batch = model.request.global_batch;
    MicroBatches range{1 + static_cast<int64_t>(random() % static_cast<uint64_t>(batch)), 0};
    range.most =
        range.fewest + static_cast<int64_t>(random() % static_cast<uint64_t>(batch - range.fewest + 1));
    const std::vector<SegmentLives> lives = segment_lives(g);
    const Arena of_traces = arena_of_traces(g, arena);
    for (size_t s = 0; s + 1 < g.segments.size(); ++s) {
      const Segment& segment = g.segments[s];
      const SegmentProfile profile(g, arena, of_traces, s, lives[s], model.request.threads, Recompute::choose,
                                   cache);
      const NeighbourCopies copies = neighbour_copies(g, arena, s);
      const std::vector<Variant> least =
          profile.least_variants(profile.least_figures(profile.least_bytes(range.fewest), range, pricing),
                                 range, batch, pricing, copies);
      for (int64_t m = range.fewest; m <= range.most; ++m) {
        const MicroSteps steps = MicroSteps::of(batch, m);
        const uint64_t ops = Pricing::over_micro_steps(batch, m, [&](int64_t samples) {
          return pricing.ops(segment.first_op, segment.op_count, samples) +
                 pricing.ops(static_cast<int>(g.ops.size()) + segment.first_gradient_op,
                             segment.gradient_op_count, samples);
        });
        for (const Variant& v : profile.variants(profile.own_figures(steps, pricing), steps, pricing, copies))
          ASSERT_TRUE(std::any_of(least.begin(), least.end(),
                                  [&](const Variant& l) {
                                    return l.kept <= v.kept && l.peak <= v.peak &&
                                           l.picoseconds <= v.picoseconds + ops;
                                  }))
              << seed << ", segment " << s << ", micro-batch " << m << ", save-set " << v.saved;
      }
    }
  }
}

// With any copies of neighbours, the choices that stay give the same variants as all choices.
TEST(SegmentProfile, DroppedChoicesAreBeaten) {
  std::mt19937 random(8);
  TraceCache cache;
  int64_t before = 0, after = 0;
  for (uint32_t seed = 0; seed < 60; seed += 2) {
    const Drawn model = draw(seed);
    const Graph& g = model.graph;
    const Pricing pricing(g, *model.device, model.request.threads);
    const MicroSteps steps = MicroSteps::of(model.request.global_batch, 1 + model.request.global_batch / 3);
    const Arena arena = make_arena(g, model.device->alignment, some_offload(g, random, true));
    const std::vector<SegmentLives> lives = segment_lives(g);
    const Arena of_traces = arena_of_traces(g, arena);
    for (size_t s = 0; s + 1 < g.segments.size(); ++s) {
      const SegmentProfile profile(g, arena, of_traces, s, lives[s], model.request.threads, Recompute::choose,
                                   cache);
      const std::vector<OwnFigures> all = profile.own_figures(steps, pricing);
      std::vector<OwnFigures> best = all;
      drop_dominated(best);
      before += static_cast<int64_t>(all.size());
      after += static_cast<int64_t>(best.size());
      for (const NeighbourCopies& copies : {NeighbourCopies{}, neighbour_copies(g, arena, s)}) {
        SegmentRun of_all{1, profile.variants(all, steps, pricing, copies)},
            of_best{1, profile.variants(best, steps, pricing, copies)};
        normalise(of_all);
        normalise(of_best);
        ASSERT_EQ(of_all.variants.size(), of_best.variants.size()) << seed;
        for (size_t v = 0; v < of_all.variants.size(); ++v) {
          const Variant &x = of_all.variants[v], &y = of_best.variants[v];
          EXPECT_EQ(std::tie(x.saved, x.kept, x.peak, x.picoseconds, x.tile_rows),
                    std::tie(y.saved, y.kept, y.peak, y.picoseconds, y.tile_rows));
        }
      }
    }
  }
  EXPECT_LT(after, before);
}

// What bounds of a model's offload choices need. The model must live as long.
struct Bounded {
  Bounded(const Drawn& model, int64_t most_samples)
      : pricing(model.graph, *model.device, model.request.threads),
        segments(model.graph, model.request, pricing, cache),
        micro_batches(up_to(most_samples)),
        context{model.graph, model.request, *model.device, pricing, segments, micro_batches},
        plain(context, {}),
        bound(context, plain) {}
  Bounded(const Bounded&) = delete;
  static std::vector<int64_t> up_to(int64_t most) {
    std::vector<int64_t> list(static_cast<size_t>(most));
    std::iota(list.begin(), list.end(), 1);
    return list;
  }

  Pricing pricing;
  TraceCache cache;
  SegmentChoices segments;
  std::vector<int64_t> micro_batches;  // from one sample up
  SearchContext context;
  OffloadSearch plain;  // offloads nothing
  OffloadBound bound;
};

// The fastest plan of every offload choice takes at least as long as each bound says.
TEST(OffloadBound, NoPlanIsFaster) {
  std::mt19937 random(9);
  int plans = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Drawn model = draw(seed);
    Bounded bounded(model, model.request.global_batch);
    const SearchContext& context = bounded.context;
    OffloadSearch& plain = bounded.plain;
    OffloadBound& bound = bounded.bound;
    const uint64_t most = plain.arena(plain.fastest(size_limit)->decisions);
    for (int round = 0; round < 6; ++round) {
      OffloadBound::Corner corner{}, lower{}, upper{};
      for (size_t d = 0; d < corner.size(); ++d) {
        const int parts = bound.most_parts(d);
        corner[d] = static_cast<int>(random() % static_cast<uint32_t>(parts + 1));
        lower[d] = static_cast<int>(random() % static_cast<uint32_t>(corner[d] + 1));
        upper[d] = corner[d] + static_cast<int>(random() % static_cast<uint32_t>(parts - corner[d] + 1));
      }
      OffloadSearch search(context, bound.offload(corner));
      const uint64_t fewest = search.fewest_live_bytes();
      const uint64_t bytes = fewest + (std::max(most, fewest) - fewest) / 8 * (random() % 9);
      const auto found = search.fastest(bytes);
      if (!found) continue;
      ++plans;
      const auto figures = [&](const OffloadBound::Corner& c) { return bound.measure(bound.offload(c)); };
      EXPECT_LE(bound.of_cell(figures(corner), figures(corner), bytes), found->picoseconds) << seed;
      EXPECT_LE(bound.of_cell(figures(lower), figures(upper), bytes), found->picoseconds) << seed;
      EXPECT_LE(bound.of_cell_by_search(corner, corner, bytes), found->picoseconds) << seed;
      EXPECT_LE(bound.of_cell_by_search(lower, upper, bytes), found->picoseconds) << seed;
      EXPECT_LE(bound.of_all(bytes, 2 * found->picoseconds), found->picoseconds) << seed;
      EXPECT_LE(bound.of_all(bytes, found->picoseconds), found->picoseconds) << seed;
    }
  }
  EXPECT_GT(plans, 150);
}

// Figures that are sums over kinds of tensors equal those that are measured at once. A choice that keeps all
// inputs on the device needs at least as many bytes for a step as the choice that offloads nothing.
TEST(OffloadBound, FiguresAreSumsOverKinds) {
  std::mt19937 random(4);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Drawn model = draw(seed);
    const Graph& g = model.graph;
    Bounded bounded(model, 1);
    const SearchContext& context = bounded.context;
    OffloadSearch& plain = bounded.plain;
    OffloadBound& bound = bounded.bound;
    for (int round = 0; round < 8; ++round) {
      Offload offload = some_offload(g, random, model.device->cuda && round % 2);
      if (round % 4 == 0) offload[Offloaded::inputs] = 0;
      offload.slice = Offload{}.slice;
      const OffloadFigures sum = bound.measure(offload), whole = bound.measure_whole(offload);
      const auto numbers = [](const OffloadFigures& f) {
        return std::tuple(f.resident_bytes, f.host_bytes, f.update_bytes, f.gradient_bytes, f.first_fetches,
                          f.next_fetches, f.stores, f.inputs);
      };
      EXPECT_EQ(sum.offload, whole.offload);
      EXPECT_EQ(numbers(sum), numbers(whole)) << seed;
      if (offload[Offloaded::inputs] > 0) continue;
      EXPECT_GE(OffloadSearch(context, offload).fewest_step_bytes(), plain.fewest_step_bytes()) << seed;
    }
  }
}

// A plan with its bound is no slower than before, and fits.
TEST(SearchSpace, BoundsShowWhereFasterPlansAre) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Drawn model = draw(seed);
    const auto source = [&](const Numerics&) { return draw(seed).graph; };
    SearchSpace space(source, {}, model.request, *model.device);
    const uint64_t least = space.arena(space.smallest().decisions),
                   most = std::max(least, space.arena(space.fastest(size_limit)->decisions));
    for (int step = 0; step < 4; ++step) {
      const uint64_t bytes = least + (most - least) / 4 * static_cast<uint64_t>(step);
      const auto found = space.fastest(bytes);
      ASSERT_TRUE(found);
      const Candidate better = space.with_bound(space.refined(*found, bytes), bytes);
      EXPECT_LE(better.picoseconds, found->picoseconds) << seed;
      EXPECT_LE(better.bound_picoseconds, better.picoseconds) << seed;
      EXPECT_GT(better.bound_picoseconds, 0u) << seed;
      EXPECT_LE(space.arena(better.decisions), bytes) << seed;
      // A looser budget gets no slower plan.
      EXPECT_LE(space.fastest(bytes + bytes / 50)->picoseconds, better.picoseconds) << seed;
    }
  }
}

// A space whose host memory was limited gives the same plans as a new one.
TEST(SearchSpace, HostMemoryCanBeLimited) {
  int limited = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    Drawn model = draw(seed);
    const auto source = [&](const Numerics&) { return draw(seed).graph; };
    model.request.host_bytes = size_limit;
    SearchSpace space(source, {}, model.request, *model.device);
    const uint64_t least = space.arena(space.smallest().decisions), bytes = least + least / 8;
    const auto first = space.fastest(bytes);
    ASSERT_TRUE(first);
    const Decisions& d = first->decisions;
    const uint64_t host =
        make_arena(space.of(d).graph(), model.device->alignment, d.offload, d.micro_batch).host_bytes;
    if (host == 0) continue;
    ++limited;
    for (const uint64_t most : {host, host / 2}) {
      space.limit_host_bytes(most);
      model.request.host_bytes = most;
      SearchSpace alone(source, {}, model.request, *model.device);
      EXPECT_EQ(space.arena(space.smallest().decisions), alone.arena(alone.smallest().decisions)) << seed;
      for (const uint64_t budget : {bytes, 2 * bytes}) {
        const auto x = space.fastest(budget), y = alone.fastest(budget);
        ASSERT_EQ(x.has_value(), y.has_value()) << seed;
        if (!x) continue;
        EXPECT_EQ(x->decisions, y->decisions) << seed;
        EXPECT_EQ(x->picoseconds, y->picoseconds) << seed;
      }
    }
  }
  EXPECT_GT(limited, 15);
}

// The format of optimizer states changes no micro-step. A space that shares what another one knows gives the
// same plans, whatever its graph.
TEST(SegmentChoices, ServeGraphsWithTheSameMicroSteps) {
  for (const std::string& config : {small_gpt2("0.1"), small_llama()}) {
    const auto source = [&](const Numerics& n) { return build_model(config_of(config), 33, n); };
    Numerics wide, narrow, half;
    narrow.state_bits = 8;
    half.gradients = Gradients::bf16;
    EXPECT_TRUE(have_same_micro_steps(source(wide), source(narrow)));
    EXPECT_FALSE(have_same_micro_steps(source(wide), source(half)));
    EXPECT_FALSE(have_same_micro_steps(source(wide), build_model(config_of(config), 32, wide)));
    Request request;
    request.global_batch = 6;
    request.host_bytes = size_limit;
    const DeviceProfile& device = *find_device("rtx4090");
    SearchSpace first(source, wide, request, device);
    first.smallest();
    for (const Numerics& numerics : {narrow, wide, half}) {
      SearchSpace alone(source, numerics, request, device),
          shared(source, numerics, request, device, Effort::full, &first);
      EXPECT_EQ(shared.shares_segments(first), numerics != half);
      const uint64_t least = alone.arena(alone.smallest().decisions);
      EXPECT_FALSE(shared.smallest_fits(least - 1));
      EXPECT_TRUE(shared.smallest_fits(least));
      EXPECT_GE(shared.arena_with_fewest_live_bytes(), least);
      EXPECT_EQ(shared.arena(shared.smallest().decisions), least);
      for (const uint64_t bytes : {least, least + least / 10, 2 * least}) {
        const auto x = alone.fastest(bytes), y = shared.fastest(bytes);
        ASSERT_TRUE(x && y);
        EXPECT_EQ(x->decisions, y->decisions);
        EXPECT_EQ(x->picoseconds, y->picoseconds);
      }
    }
  }
}

}  // namespace
}  // namespace stw
