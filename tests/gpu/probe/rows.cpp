// Memory-bound kernels: cross-entropy, AdamW, norms. Compares with the CPU's bits if both kernels define the
// same bits, else with double precision.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/gpu/probe/expectations.h"
#include "tests/gpu/probe/parts.h"

namespace stw::probe {

namespace {

// Runs the tasks of the CPU's kernels in this thread.
void run_tasks(void*, int64_t tasks, void (*task)(void* context, int64_t index, int thread), void* context) {
  for (int64_t i = 0; i < tasks; ++i) task(context, i, 0);
}
template <class Args>
void run_on_cpu(void (*kernel)(const kernels::Launch&, const Args&), const Args& args, uint64_t workspace) {
  const kernels::Parallel parallel = {nullptr, 1, run_tasks};
  std::vector<std::byte> memory(workspace + 64);
  std::byte* const aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  kernel({&parallel, aligned, workspace, nullptr}, args);
}
const kernels::Table& cpu() { return *kernels::cpu_table(kernels::best_isa()); }

kernels::StepState state_of_step() {
  kernels::StepState state = {};
  state.learning_rate = 1e-3, state.beta1 = 0.9, state.beta2 = 0.95, state.epsilon = 1e-8;
  state.loss_scale = state.batch_factor = 1;
  state.step = 3, state.coefficient = 0.25;
  state.step_size = 1e-3 / (1 - std::pow(0.9, 4)), state.correction2 = std::sqrt(1 - std::pow(0.95, 4));
  return state;
}
Memory on_device(const kernels::StepState& state) { return Memory(std::as_bytes(std::span(&state, 1))); }

std::vector<float> floats_of(const Noise& noise, uint64_t first, uint64_t count, float factor) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = factor * float_of(*noise.host(first + i));
  return values;
}
std::vector<uint16_t> halves_of(const Noise& noise, uint64_t first, uint64_t count) {
  return {noise.host(first), noise.host(first + count)};
}

// ---- cross-entropy
void check_loss(Report& report, const Options& options, const Peaks& peaks, Calls& calls, const Noise& noise,
                int64_t vocabulary) {
  constexpr int64_t unit = 16;  // alignment of rows of logits
  const int64_t rows = options.small ? 6 : 8192, stride = (vocabulary + unit - 1) / unit * unit;
  const kernels::StepState state = state_of_step();
  const Memory state_on_device = on_device(state);
  std::vector<int32_t> targets(static_cast<size_t>(rows));
  uint64_t random = 5;
  for (int32_t& target : targets)
    target = static_cast<int32_t>(random_bits(random) % static_cast<uint64_t>(vocabulary));
  targets[1] = kernels::ignored_target;
  const Memory targets_on_device = Memory::of(targets);
  Memory logits(static_cast<uint64_t>(2 * rows * stride)), losses(static_cast<uint64_t>(4 * rows));
  kernels::CrossEntropyArgs a = {};
  a.rows = rows, a.vocabulary = vocabulary, a.stride = stride, a.gradient = true;
  a.targets = targets_on_device.as<int32_t>(), a.logits = {logits.data(), DType::bf16},
  a.token_loss = losses.as<float>(), a.state = state_on_device.as<kernels::StepState>();
  for (const bool fast : {false, true}) {
    a.fast = fast;
    logits.fill(noise.memory(), 0);
    losses.poison();
    const uint64_t workspace = kernels::cuda::cross_entropy_workspace(a);
    calls.run(calls.table.cross_entropy, a, workspace, "cross-entropy");
    const std::vector<float> loss = losses.values<float>(static_cast<uint64_t>(rows));
    std::string wrong;
    if (poisoned(loss) > 0 || !losses.is_guard_whole() || !logits.is_guard_whole())
      wrong += "; not all is written, or more than that";
    Error loss_error, gradient_error;
    bool same_bits = true;
    for (const int64_t row : {int64_t{0}, int64_t{1}, rows / 2, rows - 1}) {
      const auto of_row = static_cast<uint64_t>(stride), first = static_cast<uint64_t>(row) * of_row;
      std::vector<uint16_t> x(of_row);
      for (uint64_t i = 0; i < of_row; ++i) x[i] = *noise.host((first + i) % (noise.memory().bytes() / 2));
      const std::vector<uint16_t> gradient = logits.values<uint16_t>(of_row, first);
      const int32_t target = targets[row];
      double largest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < vocabulary; ++i)
        largest = std::max(largest, static_cast<double>(float_of(x[i])));
      for (int64_t i = 0; i < vocabulary; ++i) sum += std::exp(float_of(x[i]) - largest);
      const bool counts = target != kernels::ignored_target;
      loss_error.add(loss[row], counts ? std::log(sum) + largest - float_of(x[target]) : 0, 1e-4);
      for (int64_t i = 0; i < stride; ++i) {
        const double share = i < vocabulary && counts ? std::exp(float_of(x[i]) - largest) / sum : 0,
                     expected = counts && i == target ? share - 1 : share;
        gradient_error.add(float_of(gradient[i]), expected, std::fabs(expected) * 0x1p-7 + 1e-7);
      }
      if (!fast) {
        std::vector<uint16_t> mine = x;
        float my_loss = NAN;
        kernels::CrossEntropyArgs one = a;
        one.rows = 1, one.targets = &target, one.logits.data = mine.data(), one.token_loss = &my_loss,
        one.state = &state;
        run_on_cpu(cpu().cross_entropy, one, kernels::cross_entropy_workspace(one, 1));
        same_bits = same_bits && mine == gradient && std::memcmp(&my_loss, &loss[row], 4) == 0;
      }
    }
    if (!loss_error.within) wrong += "; THE LOSS IS WRONG";
    if (!gradient_error.within) wrong += "; THE GRADIENT IS WRONG";
    if (!same_bits) wrong += "; not the CPU's bits";
    const double seconds =
        calls.seconds(calls.table.cross_entropy, a, workspace, "cross-entropy", options.small);
    report.row(wrong.empty(),
               text_of("cross-entropy %lld x %lld, %s", static_cast<long long>(rows),
                       static_cast<long long>(vocabulary), fast ? "fast" : "the CPU's bits"),
               rate_of_bytes(4.0 * static_cast<double>(rows * vocabulary), seconds, peaks, bandwidth_share) +
                   text_of(", error %.0e and %.0e", loss_error.largest, gradient_error.largest) + wrong);
  }
}

// ---- AdamW
struct Update {
  std::vector<uint16_t> parameter;
  std::vector<int16_t> remainder;
  std::vector<float> gradient, first, second, first_absmax, second_absmax;
  std::vector<uint8_t> first_code, second_code;
};
kernels::UpdateArgs args_of(uint64_t count, const kernels::StepState* state) {
  kernels::UpdateArgs a = {};
  a.count = static_cast<int64_t>(count), a.dtype = DType::bf16, a.gradient_dtype = DType::f32;
  a.rate = 1, a.decay = 0.1, a.state = state;
  return a;
}

void check_update(Report& report, const Options& options, const Peaks& peaks, Calls& calls,
                  const Noise& noise, bool eight_bits) {
  const kernels::StepState state = state_of_step();
  const Memory state_on_device = on_device(state);
  const auto kernel = eight_bits ? calls.table.adamw8 : calls.table.adamw;
  const uint64_t some = options.small ? 3000 : 1'000'000, blocks = (some + 255) / 256;
  Update u;
  u.parameter = halves_of(noise, 0, some), u.gradient = floats_of(noise, some, some, 1e-2f);
  const std::vector<uint16_t> bits = halves_of(noise, 2 * some, some);
  u.remainder.resize(some);
  std::memcpy(u.remainder.data(), bits.data(), 2 * some);
  u.first = floats_of(noise, 3 * some, some, 1e-3f), u.second = floats_of(noise, 4 * some, some, 1e-2f);
  for (float& x : u.second) x *= x;
  for (const uint16_t half : bits)
    u.first_code.push_back(static_cast<uint8_t>(half)),
        u.second_code.push_back(static_cast<uint8_t>(half >> 4));
  u.first_absmax = floats_of(noise, 5 * some, blocks, 1e-3f),
  u.second_absmax = floats_of(noise, 6 * some, blocks, 1e-2f);
  for (std::vector<float>* all : {&u.first_absmax, &u.second_absmax})
    for (float& x : *all) x = std::fabs(x);

  const Memory parameter = Memory::of(u.parameter), remainder = Memory::of(u.remainder),
               gradient = Memory::of(u.gradient), first = Memory::of(u.first), second = Memory::of(u.second);
  const Memory first_code = Memory::of(u.first_code), second_code = Memory::of(u.second_code),
               first_absmax = Memory::of(u.first_absmax), second_absmax = Memory::of(u.second_absmax);
  kernels::UpdateArgs a = args_of(some, state_on_device.as<kernels::StepState>()),
                      mine = args_of(some, &state);
  a.parameter = parameter.data(), a.remainder = remainder.as<int16_t>(), a.gradient[0] = gradient.data();
  mine.parameter = u.parameter.data(), mine.remainder = u.remainder.data(),
  mine.gradient[0] = u.gradient.data();
  if (eight_bits) {
    a.first_code = first_code.as<uint8_t>(), a.second_code = second_code.as<uint8_t>(),
    a.first_absmax = first_absmax.as<float>(), a.second_absmax = second_absmax.as<float>();
    mine.first_code = u.first_code.data(), mine.second_code = u.second_code.data(),
    mine.first_absmax = u.first_absmax.data(), mine.second_absmax = u.second_absmax.data();
  } else {
    a.first = first.as<float>(), a.second = second.as<float>();
    mine.first = u.first.data(), mine.second = u.second.data();
  }
  calls.run(kernel, kernels::List<kernels::UpdateArgs>{&a, 1}, 0, "AdamW");
  run_on_cpu(eight_bits ? cpu().adamw8 : cpu().adamw, kernels::List<kernels::UpdateArgs>{&mine, 1}, 0);
  const auto bits_of = [](const std::vector<float>& values) {
    std::vector<uint32_t> all(values.size());
    std::memcpy(all.data(), values.data(), 4 * values.size());
    return all;
  };
  const bool same = parameter.values<uint16_t>(some) == u.parameter &&
                    remainder.values<int16_t>(some) == u.remainder &&
                    first.values<uint32_t>(some) == bits_of(u.first) &&
                    second.values<uint32_t>(some) == bits_of(u.second) &&
                    first_code.values<uint8_t>(some) == u.first_code &&
                    second_code.values<uint8_t>(some) == u.second_code &&
                    first_absmax.values<uint32_t>(blocks) == bits_of(u.first_absmax) &&
                    second_absmax.values<uint32_t>(blocks) == bits_of(u.second_absmax);
  bool whole = true;
  for (const Memory* memory : {&parameter, &remainder, &gradient, &first, &second, &first_code, &second_code,
                               &first_absmax, &second_absmax})
    whole = whole && memory->is_guard_whole();

  // As many parameters as GPT-2 124M has.
  const uint64_t all = options.small ? 4096 : 124'475'904;
  Memory half(2 * all), low(2 * all), slope(4 * all), m(eight_bits ? all : 4 * all),
      v(eight_bits ? all : 4 * all), m_most(all / 64), v_most(all / 64);
  for (Memory* memory : {&half, &low, &slope, &m, &v, &m_most, &v_most}) memory->fill(noise.memory(), 0);
  kernels::UpdateArgs whole_model = args_of(all, state_on_device.as<kernels::StepState>());
  whole_model.parameter = half.data(), whole_model.remainder = low.as<int16_t>(),
  whole_model.gradient[0] = slope.data();
  if (eight_bits)
    whole_model.first_code = m.as<uint8_t>(), whole_model.second_code = v.as<uint8_t>(),
    whole_model.first_absmax = m_most.as<float>(), whole_model.second_absmax = v_most.as<float>();
  else whole_model.first = m.as<float>(), whole_model.second = v.as<float>();
  const double seconds =
      calls.seconds(kernel, kernels::List<kernels::UpdateArgs>{&whole_model, 1}, 0, "AdamW", options.small);
  const double bytes =
      static_cast<double>(all) * (2 * 4 + 4 + (eight_bits ? 2 * (2 + 2 * 4.0 / 256) : 2 * 8));
  report.row(same && whole, text_of("AdamW, %d-bit states", eight_bits ? 8 : 32),
             rate_of_bytes(bytes, seconds, peaks, update_share) +
                 text_of(", %.0f ms per 1e9 parameters", seconds * 1e12 / static_cast<double>(all)) +
                 (same ? ", the CPU's bits" : "; NOT THE CPU'S BITS") +
                 (whole ? "" : "; writes past its arrays"));
}

// ---- norms
struct NormCase {
  const char* name;
  bool rms;
  int64_t rows, features;
};

void check_norm(Report& report, const Options& options, const Peaks& peaks, Calls& calls, const NormCase& c,
                int64_t rows_per_sample) {
  const auto count = static_cast<uint64_t>(c.rows * c.features), features = static_cast<uint64_t>(c.features);
  const Noise noise(2 * count + 2 * features);
  Memory y(2 * count), dx(2 * count), dw(4 * features), db(4 * features);
  kernels::NormArgs a = {};
  a.rows = c.rows, a.features = c.features, a.rows_per_sample = rows_per_sample, a.epsilon = 1e-5f,
  a.rms = c.rms, a.weight_dtype = DType::bf16;
  a.weight = noise.device(2 * count, features),
  a.bias = c.rms ? nullptr : noise.device(2 * count + features, features);
  a.x = {const_cast<uint16_t*>(noise.device(0, count)), DType::bf16};
  const auto backward = [&](kernels::NormArgs args) {
    args.y = {const_cast<uint16_t*>(noise.device(count, count)), DType::bf16};
    args.dx = {dx.data(), DType::bf16}, args.weight_gradient = dw.as<float>(),
    args.bias_gradient = c.rms ? nullptr : db.as<float>();
    return args;
  };
  kernels::NormArgs forward = a, gradient = backward(a);
  forward.y = {y.data(), DType::bf16};

  // Compares the first samples with the CPU. Their rows do not depend on the others.
  const int64_t some = std::min(c.rows, 2 * rows_per_sample);
  const auto some_count = static_cast<uint64_t>(some * c.features);
  for (Memory* memory : {&y, &dx, &dw, &db}) memory->poison();
  kernels::NormArgs first = forward, first_gradient = gradient;
  first.rows = first_gradient.rows = some;
  calls.run(calls.table.norm, first, 0, "the norm");
  calls.run(calls.table.norm_gradient, first_gradient, kernels::cuda::norm_gradient_workspace(first_gradient),
            "the norm's gradient");
  std::vector<uint16_t> my_y(some_count), my_dx(some_count),
      x = halves_of(noise, 0, some_count), dy = halves_of(noise, count, some_count),
      weight = halves_of(noise, 2 * count, 2 * features);
  std::vector<float> my_dw(features), my_db(features);
  kernels::NormArgs mine = first;
  mine.weight = weight.data(), mine.bias = c.rms ? nullptr : weight.data() + features, mine.x.data = x.data(),
  mine.y.data = my_y.data();
  run_on_cpu(cpu().norm, mine, 0);
  mine.y.data = dy.data(), mine.dx = {my_dx.data(), DType::bf16}, mine.weight_gradient = my_dw.data(),
  mine.bias_gradient = c.rms ? nullptr : my_db.data();
  run_on_cpu(cpu().norm_gradient, mine, kernels::norm_gradient_workspace(mine, 1));
  const auto same_floats = [&](const Memory& memory, const std::vector<float>& values) {
    const auto got = memory.values<float>(features);
    return std::memcmp(got.data(), values.data(), 4 * features) == 0;
  };
  const bool same_forward = y.values<uint16_t>(some_count) == my_y;
  const bool same_gradient =
      dx.values<uint16_t>(some_count) == my_dx && same_floats(dw, my_dw) && (c.rms || same_floats(db, my_db));

  for (Memory* memory : {&y, &dx, &dw, &db}) memory->poison();
  calls.run(calls.table.norm, forward, 0, "the norm");
  const uint64_t workspace = kernels::cuda::norm_gradient_workspace(gradient);
  calls.run(calls.table.norm_gradient, gradient, workspace, "the norm's gradient");
  bool whole = poisoned(y.values<uint16_t>(count)) == 0 && poisoned(dx.values<uint16_t>(count)) == 0 &&
               poisoned(dw.values<float>(features)) == 0;
  for (const Memory* memory : {&y, &dx, &dw, &db}) whole = whole && memory->is_guard_whole();
  const double ahead = calls.seconds(calls.table.norm, forward, 0, "the norm", options.small);
  const double back =
      calls.seconds(calls.table.norm_gradient, gradient, workspace, "the norm's gradient", options.small);
  report.row(
      same_forward && same_gradient && whole,
      text_of("%s %lld x %lld", c.name, static_cast<long long>(c.rows), static_cast<long long>(c.features)),
      "forward " + rate_of_bytes(4 * static_cast<double>(count), ahead, peaks, bandwidth_share) +
          "; backward " + rate_of_bytes(6 * static_cast<double>(count), back, peaks, bandwidth_share) +
          (same_forward ? "" : "; FORWARD NOT THE CPU'S BITS") +
          (same_gradient ? "" : "; BACKWARD NOT THE CPU'S BITS") +
          (whole ? "" : "; not all is written, or more than that"));
}

}  // namespace

void check_losses(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Noise noise(options.small ? 1 << 19 : 1 << 26);
  for (const int64_t vocabulary : {50257, 50304})
    check_loss(report, options, peaks, calls, noise, vocabulary);
}
void check_updates(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const Noise noise(1 << 24);
  for (const bool eight_bits : {false, true}) check_update(report, options, peaks, calls, noise, eight_bits);
}
void check_norms(Report& report, const Options& options, Peaks& peaks) {
  Calls calls;
  const int64_t rows_per_sample = options.small ? 24 : 1024, samples = options.small ? 3 : 32;
  for (const NormCase& c : {NormCase{"LayerNorm", false, samples * rows_per_sample, 768},
                            NormCase{"RMSNorm", true, samples * rows_per_sample, 2048}})
    check_norm(report, options, peaks, calls, c, rows_per_sample);
}

}  // namespace stw::probe
