// The embedding and its gradients compared with fp64 sums, and the cut of a batch between samples.
#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::embedding_test {
namespace {

struct Problem {
  int64_t samples, rows_per_sample, features, vocabulary, position_rows;
  DType dtype;
  std::vector<int32_t> tokens;
  Buffer table, positions, dy;
  int64_t rows() const { return samples * rows_per_sample; }
  EmbeddingArgs args() {
    return {.rows = rows(),
            .rows_per_sample = rows_per_sample,
            .features = features,
            .vocabulary = vocabulary,
            .accumulate = false,
            .weight_dtype = dtype,
            .tokens = tokens.data(),
            .table = table.data(),
            .positions = positions.data(),
            .state = nullptr,
            .position_ids = nullptr,
            .y = dy.matrix(),
            .table_gradient = nullptr,
            .position_gradient = nullptr,
            .position_rows = position_rows};
  }
};

// Long samples have several chains of rows.
Problem random_problem(Random& random, DType dtype, int64_t vocabulary, bool is_long = false) {
  const int64_t most_features = vocabulary > 1000 ? 20 : is_long ? 40 : 150;
  Problem p{random.between(1, 5),
            is_long ? random.between(chain_terms - 1, 3 * chain_terms) : random.between(1, 90),
            random.between(1, most_features),
            vocabulary,
            0,
            dtype,
            {},
            {},
            {},
            {}};
  p.position_rows = p.rows_per_sample + random.between(4, 8);
  for (int64_t i = 0; i < p.rows(); ++i)  // The first token is frequent, as in a text.
    p.tokens.push_back(
        static_cast<int32_t>(random.between(0, 2) == 0 ? 0 : random.between(0, vocabulary - 1)));
  p.table = Buffer::normal(dtype, random, vocabulary * p.features);
  p.positions = Buffer::normal(dtype, random, p.position_rows * p.features);
  p.dy = Buffer::normal(dtype, random, p.rows() * p.features);
  return p;
}

TEST(Embedding, AddsTokenAndPosition) {
  Random random(1);
  for (int round = 0; round < 16; ++round) {
    Problem p = random_problem(random, dtype_of(round / 3), random.between(1, 300));
    const bool learned = round % 4 < 2;
    StepState state{};
    state.position = round % 3 == 0 ? 4 : 0;
    std::vector<int32_t> position_ids;  // Given in some rounds. They replace the state's position.
    for (int64_t row = 0; row < p.rows() && round % 8 % 5 == 0; ++row)
      position_ids.push_back(static_cast<int32_t>(random.between(0, p.position_rows - 1)));
    const Buffer y = everywhere([&](const Table& table, int threads) {
      Buffer out(p.dtype, p.rows() * p.features);
      EmbeddingArgs args = p.args();
      args.y = out.matrix();
      args.state = round % 3 == 2 ? nullptr : &state;
      if (!learned) args.positions = nullptr;
      if (!position_ids.empty()) args.position_ids = position_ids.data();
      run(table.embedding, args, threads, 0);
      return std::vector<Buffer>{out};
    })[0];
    std::vector<double> expected;
    for (int64_t row = 0; row < p.rows(); ++row)
      for (int64_t i = 0; i < p.features; ++i) {
        const int64_t place = position_ids.empty()
                                  ? static_cast<int64_t>(state.position) + row % p.rows_per_sample
                                  : position_ids[row];
        expected.push_back(static_cast<double>(p.table.get(p.tokens[row] * p.features + i)) +
                           (learned ? p.positions.get(place * p.features + i) : 0.0f));
      }
    EXPECT_LE(relative_error(y.floats(), expected), tolerance(p.dtype));
  }
}

// A table of codes gives the same results as the table of their values.
TEST(Embedding, OfCodesHasTheBitsOfTheirValues) {
  Random random(6);
  for (const int64_t features : {1, 15, 16, 32, 40, 63, 64, 96, 130, 576})
    for (const DType dtype : all_dtypes)
      for (const bool learned : {false, true}) {
        Problem p = random_problem(random, dtype, 61);
        p.features = features;
        const int64_t count = p.vocabulary * features;
        p.positions = Buffer::normal(dtype, random, p.position_rows * features);
        const std::vector<float> values = normals(random, count, 0.02);
        std::vector<unsigned char> codes(weight_codes_bytes(WeightCodes::int8, count));
        std::vector<float> scales(static_cast<size_t>((count + weight_block - 1) / weight_block));
        quantize_weights(WeightCodes::int8, values.data(), count, codes.data(), scales.data());
        p.table = Buffer(dtype, count);
        for (int64_t i = 0; i < count; ++i)
          p.table.set(i, static_cast<float>(static_cast<int8_t>(codes[i])) * scales[i / weight_block]);
        const std::vector<Buffer> y = everywhere([&](const Table& table, int threads) {
          Buffer of_values(dtype, p.rows() * features), of_codes(dtype, p.rows() * features);
          EmbeddingArgs args = p.args();
          if (!learned) args.positions = nullptr;
          args.y = of_values.matrix();
          run(table.embedding, args, threads, 0);
          args.y = of_codes.matrix(), args.table = codes.data(), args.table_scales = scales.data();
          run(table.embedding, args, threads, 0);
          return std::vector<Buffer>{of_values, of_codes};
        });
        EXPECT_TRUE(same_bits(y[0], y[1])) << features << " " << name_of(dtype) << learned;
      }
}

// Adds the rows of dy to the rows of their tokens in `start`, in the documented order: within each
// chain_terms rows of a sample, the rows of a token are summed in row order, and the sum is added to `start`.
std::vector<float> sums_of_chains(const Problem& p, const std::vector<int32_t>& tokens,
                                  std::vector<float> start) {
  for (int64_t sample = 0; sample < p.rows(); sample += p.rows_per_sample)
    for (int64_t begin = sample, sample_end = sample + p.rows_per_sample; begin < sample_end;
         begin += chain_terms) {
      const int64_t end = std::min(begin + chain_terms, sample_end);
      for (int64_t first = begin; first < end; ++first) {
        const auto token = [&](int64_t row) { return tokens[row]; };
        bool is_first = true;
        for (int64_t row = begin; row < first; ++row) is_first &= token(row) != token(first);
        for (int64_t i = 0; is_first && i < p.features; ++i) {
          float chain = 0;
          for (int64_t row = first; row < end; ++row)
            if (token(row) == token(first)) chain += p.dy.get(row * p.features + i);
          start[token(first) * p.features + i] += chain;
        }
      }
    }
  return start;
}

TEST(EmbeddingGradient, SumsTheRowsOfEveryToken) {
  Random random(2);
  int round = 0;
  for (int64_t vocabulary : {1, 2, 37, 256, 257, 5000, 65537, 1, 3, 40}) {
    Problem p = random_problem(random, dtype_of(round), vocabulary, round > 6);
    ++round;
    for (bool accumulate : {false, true}) {
      const Buffer start = Buffer::normal(DType::f32, random, vocabulary * p.features);
      const Buffer gradient = everywhere([&](const Table& table, int threads) {
        Buffer out = start;
        EmbeddingArgs args = p.args();
        args.accumulate = accumulate;
        args.table_gradient = floats_of(out);
        run(table.embedding_gradient, args, threads, embedding_gradient_workspace(args, threads));
        return std::vector<Buffer>{out};
      })[0];
      std::vector<double> expected = doubles(start);
      if (!accumulate) expected.assign(expected.size(), 0);
      std::vector<float> chain = start.floats();
      if (!accumulate) chain.assign(chain.size(), 0);
      chain = sums_of_chains(p, p.tokens, chain);
      for (int64_t row = 0; row < p.rows(); ++row)
        for (int64_t i = 0; i < p.features; ++i) {
          const auto at = static_cast<size_t>(p.tokens[row] * p.features + i);
          expected[at] += p.dy.get(row * p.features + i);
        }
      EXPECT_LE(relative_error(gradient.floats(), expected), 1e-5);
      EXPECT_TRUE(same_bits(gradient.floats(), chain));
    }
  }
}

// So many rows that a warp of the GPU's sort has more than it places at once.
TEST(EmbeddingGradient, SumsTheRowsOfManyTokens) {
  Random random(8);
  Problem p = random_problem(random, DType::bf16, 300);
  p.samples = 3, p.rows_per_sample = 11300, p.features = 1;
  p.tokens.clear();
  for (int64_t i = 0; i < p.rows(); ++i)
    p.tokens.push_back(
        static_cast<int32_t>(random.between(0, 3) == 0 ? 257 : random.between(0, p.vocabulary - 1)));
  p.dy = Buffer::normal(p.dtype, random, p.rows());
  const Buffer gradient = everywhere([&](const Table& table, int threads) {
    Buffer out(DType::f32, p.vocabulary);
    EmbeddingArgs args = p.args();
    args.table_gradient = floats_of(out);
    run(table.embedding_gradient, args, threads, embedding_gradient_workspace(args, threads));
    return std::vector<Buffer>{out};
  })[0];
  EXPECT_TRUE(same_bits(gradient.floats(),
                        sums_of_chains(p, p.tokens, std::vector<float>(static_cast<size_t>(p.vocabulary)))));
}

// The sums of kept rows are added to the buffer at their end. Other elements get +0 added.
TEST(KeptRowsGradient, AddsTheSumsOfEveryToken) {
  Random random(9);
  int round = 0;
  for (int64_t vocabulary : {1, 3, 37, 257, 5000, 2, 40}) {
    const Problem p = random_problem(random, dtype_of(round), vocabulary, round > 4);
    ++round;
    Buffer start = Buffer::normal(DType::f32, random, vocabulary * p.features);
    for (int64_t i = 0; i < vocabulary * p.features; i += 3) floats_of(start)[i] = -0.0f;
    const Buffer gradient = everywhere([&](const Table& table, int threads) {
      Buffer out = start;
      Problem kept = p;
      EmbeddingArgs args = kept.args();
      args.accumulate = true;
      args.table_gradient = floats_of(out);
      run(table.kept_rows_gradient, args, threads, kept_rows_gradient_workspace(args, threads));
      return std::vector<Buffer>{out};
    })[0];
    std::vector<float> expected =
        sums_of_chains(p, p.tokens, std::vector<float>(static_cast<size_t>(vocabulary * p.features)));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += start.floats()[i];
    EXPECT_TRUE(same_bits(gradient.floats(), expected));
  }
}

// Slices of the table have the bits of the table's whole gradient. A slice may have no token, or all of them.
TEST(KeptRowsGradient, FormsSlices) {
  Random random(11);
  int round = 0;
  for (int64_t vocabulary : {1, 37, 257, 5000, 40}) {
    Problem p = random_problem(random, dtype_of(round), vocabulary, round > 3);
    const std::vector<float> expected =
        sums_of_chains(p, p.tokens, std::vector<float>(static_cast<size_t>(vocabulary * p.features)));
    for (const int64_t length : {int64_t{1} + vocabulary / 5, (vocabulary + 1) / 2, vocabulary}) {
      const Buffer gradient = everywhere([&](const Table& table, int threads) {
        Buffer out = Buffer::normal(DType::f32, random, vocabulary * p.features);
        for (int64_t first = 0; first < vocabulary; first += length) {
          EmbeddingArgs args = p.args();
          args.first_token = first, args.slice_tokens = std::min(length, vocabulary - first);
          args.table_gradient = floats_of(out) + first * p.features;
          run(table.kept_rows_gradient, args, threads, kept_rows_gradient_workspace(args, threads));
        }
        return std::vector<Buffer>{out};
      })[0];
      EXPECT_TRUE(same_bits(gradient.floats(), expected));
    }
    ++round;
  }
}

// The micro-batches of a global batch, in any order.
TEST(KeepRows, PutsRowsInTheirPlaces) {
  Random random(10);
  for (int round = 0; round < 12; ++round) {
    Problem p = random_problem(random, dtype_of(round / 3), random.between(1, 300));
    if (round % 4 == 3) p = random_problem(random, dtype_of(round / 3), 2000, true);
    const auto base = static_cast<uint64_t>(round % 2 * 1000);
    const int64_t cut = random.between(0, p.samples);
    const std::vector<Buffer> kept = everywhere([&](const Table& table, int threads) {
      Buffer rows(p.dtype, p.rows() * p.features), ids(DType::f32, p.rows());
      for (const auto& [first, end] : {std::pair{cut, p.samples}, {int64_t{0}, cut}}) {
        if (first == end) continue;
        StepState state{};
        state.first_sample = base + static_cast<uint64_t>(first);
        const int64_t row = first * p.rows_per_sample;
        Buffer part(p.dtype, (end - first) * p.rows_per_sample * p.features);
        std::memcpy(
            part.data(),
            static_cast<const char*>(p.dy.data()) + row * p.features * (p.dtype == DType::f32 ? 4 : 2),
            static_cast<size_t>((end - first) * p.rows_per_sample * p.features *
                                (p.dtype == DType::f32 ? 4 : 2)));
        const KeepRowsArgs args{(end - first) * p.rows_per_sample,
                                p.rows_per_sample,
                                p.features,
                                base,
                                p.tokens.data() + row,
                                {part.data(), p.dtype},
                                static_cast<int32_t*>(ids.data()),
                                rows.data(),
                                &state};
        run(table.keep_rows, args, threads, 0);
      }
      return std::vector<Buffer>{rows, ids};
    });
    EXPECT_TRUE(same_bits(kept[0].floats(), p.dy.floats()));
    EXPECT_EQ(std::memcmp(kept[1].data(), p.tokens.data(), p.tokens.size() * sizeof(int32_t)), 0);
  }
}

TEST(PositionGradient, SumsTheSamples) {
  Random random(3);
  for (int round = 0; round < 8; ++round) {
    Problem p = random_problem(random, dtype_of(round / 3), 10);
    const bool accumulate = round % 4 < 2;
    StepState state{};
    state.position = static_cast<uint64_t>(round % 3);
    const Buffer start = Buffer::normal(DType::f32, random, p.position_rows * p.features);
    const Buffer gradient = everywhere([&](const Table& table, int threads) {
      Buffer out = start;
      EmbeddingArgs args = p.args();
      args.accumulate = accumulate;
      args.state = &state;
      args.position_gradient = floats_of(out);
      run(table.position_gradient, args, threads, 0);
      return std::vector<Buffer>{out};
    })[0];
    std::vector<float> chain = start.floats();
    if (!accumulate) chain.assign(chain.size(), 0);
    for (int64_t row = 0; row < p.rows(); ++row)
      for (int64_t i = 0; i < p.features; ++i) {
        const int64_t place = static_cast<int64_t>(state.position) + row % p.rows_per_sample;
        chain[place * p.features + i] += p.dy.get(row * p.features + i);
      }
    EXPECT_TRUE(same_bits(gradient.floats(), chain));
  }
}

// The kernel treats position ids as tokens. Those of whole samples, in which no position occurs twice, give
// the bits of position_gradient; those of documents restart within a sample.
TEST(EmbeddingGradient, SumsTheRowsOfEveryPosition) {
  Random random(5);
  for (int round = 0; round < 6; ++round) {
    Problem p = random_problem(random, dtype_of(round), 10, round == 5);
    for (bool accumulate : {false, true})
      for (bool packed : {false, true}) {
        std::vector<int32_t> position_ids;
        for (int64_t row = 0; row < p.rows(); ++row) {
          const bool starts = row % p.rows_per_sample == 0 || (packed && random.between(0, 9) == 0);
          position_ids.push_back(starts ? 0 : position_ids.back() + 1);
        }
        const Buffer start = Buffer::normal(DType::f32, random, p.position_rows * p.features);
        const std::vector<Buffer> gradients = everywhere([&](const Table& table, int threads) {
          Buffer by_id = start, by_row = start;
          EmbeddingArgs args = p.args();
          args.accumulate = accumulate;
          args.tokens = position_ids.data(), args.vocabulary = p.position_rows,
          args.table_gradient = floats_of(by_id);
          run(table.embedding_gradient, args, threads, embedding_gradient_workspace(args, threads));
          args.position_gradient = floats_of(by_row);
          run(table.position_gradient, args, threads, 0);
          return std::vector<Buffer>{by_id, by_row};
        });
        std::vector<float> chain = start.floats();
        if (!accumulate) chain.assign(chain.size(), 0);
        chain = sums_of_chains(p, position_ids, chain);
        EXPECT_TRUE(same_bits(gradients[0].floats(), chain));
        if (!packed) { EXPECT_TRUE(same_bits(gradients[0], gradients[1])); }
      }
  }
}

TEST(EmbeddingGradient, CutBetweenSamplesChangesNothing) {
  Random random(4);
  Problem p = random_problem(random, DType::f32, 50);
  p.samples = 6, p.rows_per_sample = 31;
  p.tokens.clear();
  for (int64_t i = 0; i < p.rows(); ++i) p.tokens.push_back(static_cast<int32_t>(random.between(0, 49)));
  p.position_rows = 40;
  p.dy = Buffer::normal(DType::f32, random, p.rows() * p.features);
  auto gradients = [&](const Table& table, int threads, std::vector<int64_t> ends) {
    Buffer tokens(DType::f32, p.vocabulary * p.features), places(DType::f32, p.position_rows * p.features);
    int64_t begin = 0;
    for (int64_t end : ends) {
      EmbeddingArgs args = p.args();
      args.rows = (end - begin) * p.rows_per_sample;
      args.accumulate = begin > 0;
      args.tokens += begin * p.rows_per_sample;
      args.y.data = floats_of(p.dy) + begin * p.rows_per_sample * p.features;
      args.table_gradient = floats_of(tokens);
      args.position_gradient = floats_of(places);
      args.with_positions = ends.size() == 1;
      run(table.embedding_gradient, args, threads, embedding_gradient_workspace(args, threads));
      if (!args.with_positions) run(table.position_gradient, args, threads, 0);
      begin = end;
    }
    return std::vector<Buffer>{tokens, places};
  };
  const std::vector<Buffer> whole =
      everywhere([&](const Table& t, int threads) { return gradients(t, threads, {6}); });
  for (const std::vector<int64_t>& ends : {std::vector<int64_t>{1, 6}, {3, 6}, {1, 2, 3, 4, 5, 6}}) {
    const std::vector<Buffer> parts = gradients(*tables().back().table, 2, ends);
    EXPECT_TRUE(same_bits(whole[0], parts[0]));
    EXPECT_TRUE(same_bits(whole[1], parts[1]));
  }
}

}  // namespace
}  // namespace stw::kernels::test::embedding_test
