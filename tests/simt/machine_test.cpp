// The machine must find errors that a real device hides or turns into wrong results.
#include "tests/simt/machine.h"

#include <gtest/gtest-spi.h>

#include <cmath>

#include "tests/kernels/harness.h"
#include "tests/simt/fragments.h"
#include "tests/simt/runtime.h"
#include "tests/simt/warpgroup.h"

namespace simt {
namespace {

void nothing_to_do(void*) {}

TEST(Machine, RefusesLaunchesThatADeviceRefuses) {
  EXPECT_DEATH(run(dim3(1, 0), dim3(32), 0, nothing_to_do, nullptr), "an empty grid");
  EXPECT_DEATH(run(dim3(1), dim3(32), 99 * 1024 + 1, nothing_to_do, nullptr),
               "more dynamic shared memory than every device has");
  EXPECT_DEATH(run(dim3(1), dim3(32), 227 * 1024 + 1, nothing_to_do, nullptr),
               "too much dynamic shared memory");
  run(dim3(1), dim3(32), 99 * 1024, nothing_to_do, nullptr);
  const auto with_a_variable = [](void*) {
    static char key;
    shared(&key, 16);
  };
  EXPECT_DEATH(run(dim3(1), dim3(32), 99 * 1024, with_a_variable, nullptr), "too much shared memory");
  run(dim3(1), dim3(32), 99 * 1024 - 16, with_a_variable, nullptr);
  EXPECT_DEATH(run(dim3(1), dim3(32), 48 * 1024, with_a_variable, nullptr), "that does not ask for it");
  run(dim3(1), dim3(32), 48 * 1024 - 16, with_a_variable, nullptr);
}

// From the start of a copy on, a read of its target does not find the old data; before the wait, it does not
// find the new data.
TEST(Machine, CopiesChangeTheirTargetFromTheirBeginningToTheWait) {
  struct Seen {
    float begun, under_way, done;
  } seen{};
  run(
      dim3(1), dim3(1), 16,
      [](void* context) {
        alignas(16) static const float from[4] = {1, 2, 3, 4};
        auto* const to = static_cast<float*>(dynamic_shared());
        auto* const s = static_cast<Seen*>(context);
        to[0] = 7;
        copy_later(to, from, sizeof from);
        s->begun = to[0];
        commit_copies();
        wait_for_copies(1);
        s->under_way = to[0];
        wait_for_copies(0);
        s->done = to[0];
      },
      &seen);
  EXPECT_TRUE(std::isnan(seen.begun));
  EXPECT_TRUE(std::isnan(seen.under_way));
  EXPECT_EQ(seen.done, 1);
}

// A warpgroup multiplies its registers by a matrix in shared memory, and breaks a rule.
enum class Broken { none, fence, commit, wait, registers, memory };
void multiply_and_break(void* context) {
  const Broken broken = *static_cast<const Broken*>(context);
  constexpr uint32_t at = 1024, columns = 64;
  char* const matrix = static_cast<char*>(dynamic_shared()) + (at - first_shared_byte);
  uint16_t* const own_line = reinterpret_cast<uint16_t*>(matrix + place.thread.x % columns * 128);
  const auto fill_line = [&](float x) {
    for (int k = 0; k < 64; ++k) own_line[k] = half_bits(x, true);
  };
  fill_line(1);
  barrier(0);
  uint32_t own_rows[4];
  for (uint32_t& word : own_rows) word = half_bits(1, true) * 0x10001u;
  float sums[columns / 2] = {};
  if (broken != Broken::fence) begin_products();
  multiply_async(
      {0, at >> 4 | uint64_t{64} << 32 | uint64_t{1} << 62, columns, false, false, true, true, true}, sums,
      own_rows);
  if (broken != Broken::commit) commit_products();
  if (broken == Broken::registers) own_rows[2] = 0;
  if (broken == Broken::memory && place.thread.x == 127) fill_line(0);
  wait_for_products(broken == Broken::wait);
  if (sums[0] != 16) die("sums that were not waited for");
}
TEST(Machine, ReportsErrorsOfProductsThatADeviceHides) {
  const auto multiply = [](Broken broken) { run(dim3(1), dim3(128), 9 * 1024, multiply_and_break, &broken); };
  multiply(Broken::none);
  EXPECT_DEATH(multiply(Broken::fence), "not begun with a fence");
  EXPECT_DEATH(multiply(Broken::commit), "not waited for");
  EXPECT_DEATH(multiply(Broken::wait), "not waited for");
  EXPECT_DEATH(multiply(Broken::registers), "changed under a product");
  EXPECT_DEATH(multiply(Broken::memory), "changed under a product");
}

}  // namespace
}  // namespace simt

namespace stw::kernels::test {
namespace {

void add_on_a_device_that_refuses() {
  float x[4] = {};
  simt::faults.fail_launch = 1;
  run<AddArgs>(cuda_table()->add, {4, {x, DType::f32}, {x, DType::f32}, {x, DType::f32}}, 1, 0);
}

TEST(Kernels, ReportOneThatDoesNotStart) {
  EXPECT_FATAL_FAILURE(add_on_a_device_that_refuses(), "a kernel did not start");
}

}  // namespace
}  // namespace stw::kernels::test
