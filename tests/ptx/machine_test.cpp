// Tests of the interpreter itself, with kernels written by hand: lanes that diverge and meet, collectives,
// and errors that end the process.
#include "tests/ptx/machine.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "tests/simt/fragments.h"

namespace ptx {
namespace {

// A kernel k(out) with the registers that it needs; %rd1 is the address of out + 4 · thread.
std::string kernel(const std::string& body, const std::string& outside = "", const char* target = "sm_80") {
  return std::string(".version 9.0\n.target ") + target + "\n.address_size 64\n" + outside + R"(
.visible .entry k(
.param .u64 k_param_0
)
.maxntid 128, 1, 1
{
.reg .pred %p<8>;
.reg .b16 %rs<8>;
.reg .b32 %r<32>;
.reg .f32 %f<16>;
.reg .b64 %rd<8>;
ld.param.u64 %rd2, [k_param_0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd1, %rd2, %rd3;
)" + body +
         "\nret;\n}\n";
}
std::vector<uint32_t> run_kernel(const std::string& text, uint32_t threads, std::vector<uint32_t> out = {},
                                 uint32_t shared_bytes = 0) {
  out.resize(std::max<size_t>(out.size(), threads));
  const auto module = read_module(text);
  Function& f = function_of(*module, "k");
  void* const address = out.data();
  std::memcpy(f.parameter_memory.data(), &address, sizeof address);
  run(f, {{1, 1, 1}, {threads, 1, 1}, shared_bytes});
  return out;
}

TEST(PtxMachine, LanesPartAndMeetAgain) {
  // Thread t loops t mod 5 times, then asks its neighbour.
  const auto out = run_kernel(kernel(R"(
rem.u32 %r2, %r1, 5;
mov.u32 %r3, 100;
setp.eq.s32 %p1, %r2, 0;
@%p1 bra $after;
$again:
add.s32 %r3, %r3, 1;
add.s32 %r2, %r2, -1;
setp.ne.s32 %p2, %r2, 0;
@%p2 bra $again;
$after:
shfl.sync.bfly.b32 %r4|%p3, %r3, 1, 31, -1;
st.global.u32 [%rd1], %r4;
)"),
                              64);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], 100 + (t ^ 1) % 5) << t;
}

TEST(PtxMachine, HalvesOfAWarpMayActAlone) {
  const auto out = run_kernel(kernel(R"(
setp.lt.u32 %p1, %r1, 8;
mov.u32 %r5, 0;
@!%p1 bra $rest;
shfl.sync.idx.b32 %r5, %r1, 3, 31, 255;
bra.uni $end;
$rest:
setp.gt.u32 %p2, %r1, 16;
vote.sync.ballot.b32 %r5, %p2, 0xffffff00;
$end:
st.global.u32 [%rd1], %r5;
)"),
                              32);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out[t], t < 8 ? 3u : 0xfffe0000u) << t;
}

TEST(PtxMachine, BarriersJoinTheWarpsOfABlock) {
  const auto out = run_kernel(kernel(R"(
.shared .align 4 .b8 there[400];
mov.u32 %r2, there;
shl.b32 %r3, %r1, 2;
add.s32 %r4, %r2, %r3;
st.shared.u32 [%r4], %r1;
bar.sync 0;
sub.s32 %r5, 99, %r1;
shl.b32 %r5, %r5, 2;
add.s32 %r5, %r2, %r5;
ld.shared.u32 %r6, [%r5];
and.b32 %r7, %r1, 1;
{
.reg .pred %p1;
setp.ne.u32 %p1, %r7, 0;
bar.red.popc.u32 %r8, 0, %p1;
}
mad.lo.s32 %r9, %r8, 1000, %r6;
st.global.u32 [%rd1], %r9;
)"),
                              100);
  for (uint32_t t = 0; t < 100; ++t) EXPECT_EQ(out[t], 50 * 1000 + 99 - t) << t;
}

TEST(PtxMachine, CopiesArriveOnceTheyAreWaitedFor) {
  const auto out = run_kernel(kernel(R"(
mov.u32 %r2, all;
cp.async.cg.shared.global [%r2], [%rd2], 16;
cp.async.commit_group;
add.s32 %r3, %r2, 16;
cp.async.cg.shared.global [%r3], [%rd2], 16, %r1;
cp.async.commit_group;
cp.async.wait_group 1;
ld.shared.u32 %r4, [%r2+4];
ld.shared.u32 %r5, [%r2+20];
cp.async.wait_group 0;
ld.shared.u32 %r6, [%r2+20];
st.global.v4.u32 [%rd2+16], {%r4, %r5, %r6, %r6};
)",
                                     ".extern .shared .align 16 .b8 all[];\n"),
                              1, {10, 11, 12, 13, 0, 0, 0, 0}, 32);
  EXPECT_EQ(out[4], 11u);
  EXPECT_EQ(out[5], 0xffffffffu);  // Not yet.
  EXPECT_EQ(out[6], 0u);           // The size is the thread's number, 0: zeros.
}

TEST(PtxMachine, CopiesOfFourBytesLeaveTheirNeighbours) {
  const auto out = run_kernel(kernel(R"(
mov.u32 %r2, all;
mov.u32 %r3, 4;
cp.async.ca.shared.global [%r2+4], [%rd2+4], 4, %r3;
cp.async.ca.shared.global [%r2+8], [%rd2+8], 4, %r1;
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
st.global.v4.u32 [%rd2+16], {%r4, %r5, %r6, %r7};
)",
                                     ".extern .shared .align 16 .b8 all[];\n"),
                              1, {10, 11, 12, 13, 0, 0, 0, 0}, 32);
  EXPECT_EQ(out[4], 0xffffffffu);
  EXPECT_EQ(out[5], 11u);
  EXPECT_EQ(out[6], 0u);  // The size is the thread's number, 0: zeros.
  EXPECT_EQ(out[7], 0xffffffffu);
}

// Bits from definitions in the manual.
TEST(PtxMachine, ArithmeticAtItsEdges) {
  struct Case {
    const char* code;
    uint32_t expected;
  };
  const Case cases[] = {
      {"shl.b32 %r2, 1, 32;", 0},
      {"shr.s32 %r2, -8, 40;", 0xffffffffu},
      // b: the sign of byte 3 of the first word.
      {"prmt.b32 %r2, 0x03020100, 0x87868584, 0xb456;", 0x00848586},
      {"prmt.b32 %r2, 0x83020100, 0, 0xb210;", 0xff020100},
      {"bfi.b32 %r2, 0xff, 0, 4, 8;", 0xff0},
      {"mul.hi.s32 %r2, -2, 0x40000000;", 0xffffffffu},
      {"max.f32 %f1, 0f7FC00000, 0f3F800000; mov.b32 %r2, %f1;", 0x3f800000},
      {"min.f32 %f1, 0f00000000, 0f80000000; mov.b32 %r2, %f1;", 0x80000000u},
      {"cvt.rzi.s32.f32 %r2, 0f4F800000;", 0x7fffffff},                    // 2^32.
      {"cvt.rni.f32.f32 %f1, 0f40200000; mov.b32 %r2, %f1;", 0x40000000},  // 2.5.
      {"cvt.rn.bf16x2.f32 %r2, 0f3F810000, 0f3F808000;", 0x3f813f80},      // The second is a tie, to even.
      {"mov.u16 %rs1, 0x80; cvt.s16.s8 %rs2, %rs1; cvt.u32.u16 %r2, %rs2;", 0xff80},
      {"mov.b64 %rd4, {7, 9}; mov.b64 {%r3, %r4}, %rd4; shl.b32 %r4, %r4, 8; add.s32 %r2, %r3, %r4;",
       9 * 256 + 7},
      {"mov.b32 {%rs1, %rs2}, 0x00050003; cvt.u32.u16 %r2, %rs2;", 5},
      {"setp.neu.f32 %p1, 0f7FC00000, 0f7FC00000; selp.u32 %r2, 7, 9, %p1;", 7},
      {"setp.ne.f32 %p1, 0f7FC00000, 0f7FC00000; selp.u32 %r2, 7, 9, %p1;", 9},
      {"mul.rn.f32 %f1, 0f00800000, 0f3F000000; mov.b32 %r2, %f1;", 0x00400000},  // Subnormal numbers stay.
  };
  for (const Case& c : cases)
    EXPECT_EQ(run_kernel(kernel(std::string(c.code) + "\nst.global.u32 [%rd1], %r2;"), 1)[0], c.expected)
        << c.code;
}

// The whole warp multiplies A (16 × 16), loaded by ldmatrix, by B, whose columns ldmatrix.trans loads.
TEST(PtxMachine, FragmentsAgreeWithTheManual) {
  std::vector<uint32_t> memory(128 + 128 + 128);
  const auto put = [&](int matrix, int row, int column, float x) {
    const size_t index = static_cast<size_t>(matrix * 256 + row * 16 + column);
    memory[index / 2] |= static_cast<uint32_t>(simt::half_bits(x, true)) << 16 * (index % 2);
  };
  const auto a = [](int row, int k) { return static_cast<float>((row * 7 + k * 3) % 11 - 5); };
  const auto b = [](int k, int column) { return static_cast<float>((k * 5 + column * 2) % 13 - 6); };
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k) put(0, row, k, a(row, k));
  for (int k = 0; k < 16; ++k)
    for (int column = 0; column < 8; ++column) put(1, k, column, b(k, column));
  // Lane l gives the address of half l / 16 of row l mod 16, in A and in B. The product uses two of B's four
  // matrices, one for each half of k.
  const auto out = run_kernel(kernel(R"(
.shared .align 16 .b8 tile[1024];
mov.u32 %r2, tile;
shl.b32 %r3, %r1, 5;
add.s32 %r3, %r2, %r3;
mul.wide.u32 %rd4, %r1, 32;
add.s64 %rd4, %rd2, %rd4;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4];
st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4+16];
st.shared.v4.u32 [%r3+16], {%r4, %r5, %r6, %r7};
bar.warp.sync -1;
and.b32 %r8, %r1, 15;
shl.b32 %r8, %r8, 5;
and.b32 %r9, %r1, 16;
add.s32 %r8, %r8, %r9;
add.s32 %r8, %r2, %r8;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r8];
ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r14,%r15,%r16,%r17}, [%r8+512];
mov.f32 %f1, 0f3F800000;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, {%r14,%r15}, )"
                                     R"({%f1,%f1,%f1,%f1};
mul.wide.u32 %rd5, %r1, 16;
add.s64 %rd5, %rd2, %rd5;
st.global.v4.f32 [%rd5+1024], {%f1, %f2, %f3, %f4};
)"),
                              32, memory);
  for (int l = 0; l < 32; ++l)
    for (int r = 0; r < 4; ++r) {
      const int row = l / 4 + r / 2 * 8, column = l % 4 * 2 + r % 2;
      float expected = 1, got;
      for (int k = 0; k < 16; ++k) expected += a(row, k) * b(k, column);
      std::memcpy(&got, &out[256 + 4 * l + r], 4);
      EXPECT_EQ(got, expected) << row << ' ' << column;
    }
}

// a (64, 16) is contiguous along k, b (16, 128) along its columns, in groups of 64. Element (o, k) of a is o
// - 8·k; b is 1 where k = 5. Sums are 1 before. a is in shared memory, then in registers.
constexpr char shared_a[] = "%rd5, %rd6, %p2, 1, 1, 0, 1",
               own_a[] = "{%r20, %r21, %r22, %r23}, %rd6, %p2, 1, 1, 1";
std::string products(const std::string& between, const std::string& before_end = "",
                     const char* operands = shared_a) {
  std::string sums;
  for (int i = 0; i < 64; ++i) sums += (i ? ",%s" : "%s") + std::to_string(i);
  std::string text = R"(
.reg .f32 %s<64>;
.shared .align 1024 .b8 memory[16384];
mov.u32 %r2, memory;
)";
  // Thread t writes row t mod 64 of a, and line t mod 16 of b.
  text +=
      "and.b32 %r3, %r1, 63; shl.b32 %r4, %r3, 7; add.s32 %r4, %r4, %r2; and.b32 %r5, %r1, 7; shl.b32 %r5, "
      "%r5, 4;\n";
  for (int k = 0; k < 16; ++k)
    text += "cvt.rn.f32.s32 %f1, %r3; add.rn.f32 %f1, %f1, 0f" +
            [&] {
              char bits[9];
              const float x = -8.0f * static_cast<float>(k);
              uint32_t word;
              std::memcpy(&word, &x, 4);
              std::snprintf(bits, sizeof bits, "%08X", word);
              return std::string(bits);
            }() +
            "; cvt.rn.bf16x2.f32 %r6, %f1, %f1; cvt.u16.u32 %rs1, %r6; xor.b32 %r7, %r5, " +
            std::to_string(k / 8 * 16) + "; add.s32 %r7, %r7, %r4; st.shared.u16 [%r7+" +
            std::to_string(k % 8 * 2) + "], %rs1;\n";
  text +=
      "and.b32 %r3, %r1, 15; shl.b32 %r4, %r3, 7; add.s32 %r4, %r4, %r2; setp.eq.u32 %p1, %r3, 5; selp.b32 "
      "%r6, 0x3f803f80, 0, %p1;\n";
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 32; ++i)
      text += "st.shared.u32 [%r4+" + std::to_string(8192 + 2048 * half + 4 * i) + "], %r6;\n";
  for (int i = 0; i < 64; ++i) text += "mov.f32 %s" + std::to_string(i) + ", 0f3F800000;\n";
  // A thread's sums in a row and in the row eight below it: two columns, and the two columns eight to the
  // right.
  text +=
      "shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 4; and.b32 %r10, %r1, 31; shr.u32 %r11, %r10, 2; add.s32 %r9, "
      "%r9, %r11;\n"
      "and.b32 %r10, %r10, 3; shl.b32 %r10, %r10, 4; sub.s32 %r9, %r9, %r10;\n";
  for (int r = 0; r < 4; ++r)
    text += "add.s32 %r10, %r9, " + std::to_string(8 * (r % 2)) + "; sub.s32 %r10, %r10, " +
            std::to_string(64 * (r / 2)) +
            "; cvt.rn.f32.s32 %f1, %r10; add.rn.f32 %f2, %f1, 0fC1000000; cvt.rn.bf16x2.f32 %r" +
            std::to_string(20 + r) + ", %f2, %f1;\n";
  text += R"(
shr.u32 %r8, %r2, 4;
cvt.u64.u32 %rd4, %r8;
or.b64 %rd5, %rd4, 0x4000004000000000;
add.s64 %rd6, %rd4, 512;
or.b64 %rd6, %rd6, 0x4000004000800000;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.eq.u32 %p2, 0, 0;
)";
  return text + between + "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" + sums + "}, " +
         operands + ";\n" + before_end +
         "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nadd.rn.f32 %s0, %s0, "
         "%s63;\nst.global.f32 [%rd1], %s0;\n";
}
TEST(PtxMachine, MatricesAreStoredAsTheyAreLoaded) {
  // Four matrices of a warp through shared memory. A lane's numbers come back, also if transposed twice;
  // transposed once, another lane gets them.
  const auto kernel_of = [](const char* stored, const char* loaded) {
    return kernel(
        std::string(
            ".shared .align 16 .b8 there[512];\nshl.b32 %r2, %r1, 4;\nmov.u32 %r3, there;\nadd.s32 %r2, %r2, "
            "%r3;\n"
            // 2 l, and 2 l + 1.
            "shl.b32 %r4, %r1, 17; add.s32 %r4, %r4, 65536; shl.b32 %r5, %r1, 1; or.b32 %r4, %r4, %r5;\n"
            "stmatrix.sync.aligned.m8n8.x4.") +
        stored +
        "shared.b16 [%r2], {%r4, %r4, %r4, %r4};\nbar.warp.sync -1;\n"
        "ldmatrix.sync.aligned.m8n8.x4." +
        loaded + "shared.b16 {%r5, %r6, %r7, %r8}, [%r2];\nst.global.u32 [%rd1], %r8;\n");
  };
  for (const char* transposed : {"", "trans."}) {
    const auto same = run_kernel(kernel_of(transposed, transposed), 32),
               other = run_kernel(kernel_of(transposed, *transposed ? "" : "trans."), 32);
    for (uint32_t l = 0; l < 32; ++l) {
      EXPECT_EQ(same[l], (2 * l + 1) << 16 | 2 * l);
      const uint32_t row = 2 * (l % 4), column = l / 4;  // Elements are numbered by rows of eight.
      EXPECT_EQ(other[l], ((row + 1) * 8 + column) << 16 | (row * 8 + column)) << l;
    }
  }
}

TEST(PtxMachine, ExtractsBits) {
  const auto extracted = [](const char* type, const char* operands) {
    return run_kernel(kernel(std::string(".loc 1 20 15\nmov.u32 %r2, 0xf0f0a005;\nbfe.") + type +
                             " %r3, %r2, " + operands + ";\nst.global.u32 [%rd1], %r3;\n"),
                      1)[0];
  };
  EXPECT_EQ(extracted("u32", "12, 8"), 0x0au);
  EXPECT_EQ(extracted("s32", "12, 4"), 0xfffffffau);
  EXPECT_EQ(extracted("u32", "28, 8"), 0x0fu);        // After the end: zeros,
  EXPECT_EQ(extracted("s32", "28, 8"), 0xffffffffu);  // or the sign.
  EXPECT_EQ(extracted("s32", "3, 0"), 0u);
}

TEST(PtxMachine, WarpgroupsMultiplyMatrices) {
  for (const char* operands : {shared_a, own_a})
    for (const bool added : {true, false}) {
      const std::string between =
          std::string(added ? "" : "setp.ne.u32 %p2, 0, 0;\n") + "wgmma.fence.sync.aligned;\n";
      const auto out = run_kernel(kernel(products(between, "", operands), "", "sm_90a"), 128);
      for (int t = 0; t < 128; ++t) {  // The sum of two elements of column 5 of a, eight rows apart.
        float got;
        std::memcpy(&got, &out[t], 4);
        const int row = t / 32 * 16 + t % 32 / 4;
        EXPECT_EQ(got, 2.0f * ((added ? 1.0f : 0.0f) + static_cast<float>(row) - 40.0f) + 8.0f) << t;
      }
    }
}

TEST(PtxMachineDeathTest, ReportsErrorsOfWarpgroupsThatADeviceHides) {
  const auto died = [](const std::string& code) { run_kernel(kernel(code, "", "sm_90a"), 128); };
  EXPECT_DEATH(died(products("")), "not begun with a fence");
  EXPECT_DEATH(died(products("wgmma.fence.sync.aligned;\n", "st.shared.u32 [%r2], %r1;\n")),
               "changed under a product");
  EXPECT_DEATH(died(products("wgmma.fence.sync.aligned;\nadd.s64 %rd6, %rd6, 1;\n")),
               "does not begin with its atom");
  EXPECT_DEATH(died(products("wgmma.fence.sync.aligned;\nadd.s64 %rd6, %rd6, 448;\n")),
               "outside of shared memory");
  EXPECT_DEATH(died(products("wgmma.fence.sync.aligned;\n", "", "%rd5, %rd6, %p2, -1, 1, 0, 1")),
               "another sign");
  EXPECT_DEATH(
      died(products("wgmma.fence.sync.aligned;\n", "", "{%r20, %r21, %r22, %r23}, %r8, %p2, 1, 1, 1")),
      "operands");
  const std::string copy =
      "shl.b32 %r3, %r1, 4; add.s32 %r3, %r3, %r2;\ncp.async.cg.shared.global [%r3+8192], [%rd2], 16;\n"
      "cp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n";
  EXPECT_DEATH(died(products(copy)), "no fence has made visible");
  const std::string store = "shl.b32 %r3, %r1, 4; add.s32 %r3, %r3, %r2;\nst.shared.u32 [%r3+8192], %r1;\n",
                    begin = "wgmma.fence.sync.aligned;\n", fence = "fence.proxy.async.shared::cta;\n",
                    meet = "bar.sync 0;\n";
  EXPECT_DEATH(died(products(store + meet + begin)), "no fence has made visible");
  EXPECT_DEATH(died(products(fence + store + meet + begin)), "no fence has made visible");
  // Written by warps whose fences were not followed by a barrier.
  EXPECT_DEATH(died(products(store + fence + begin)), "no fence has made visible");
  died(products(store + fence + meet + begin));
  died(products(store + meet + fence + begin));  // Written by the warp that starts the product.
  died(products("st.shared.u32 [%r2+12288], %r1;\n" + begin));  // A place that no product reads.
  EXPECT_DEATH(run_kernel(kernel(products(begin)), 128), "9.0 alone");
  EXPECT_DEATH(run_kernel(kernel("", "", "sm_90a"), 32, {}, 228 * 1024), "shared memory");
  run_kernel(kernel("", "", "sm_90a"), 32, {}, 227 * 1024);
}

TEST(PtxMachineDeathTest, ReportsErrorsThatADeviceHides) {
  const std::string shared = ".shared .align 4 .b8 few[8];\nmov.u32 %r2, few;\n";
  const struct {
    const char* code;
    const char* says;
  } cases[] = {
      {"add.s32 %r2, %r1, %rd1;", "8 bytes where 4"},
      {"lg2.approx.f32 %f1, %f1;", "does not know: lg2"},
      {"ld.global.u32 %r2, [%rd1+2];", "misaligned"},
      {"ld.shared.u32 %r3, [%r2+16];", "shared memory"},
      {"setp.lt.u32 %p1, %r1, 8; @%p1 bra $out; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; $out:", "never come"},
      {"setp.lt.u32 %p1, %r1, 8; @%p1 bar.sync 0;", "some lanes"},
      {"shfl.sync.idx.b32 %r3, %r1, 9, 31, 255;", "takes no part"},
      {"bra $nowhere;", "no label"},
  };
  for (const auto& c : cases) EXPECT_DEATH(run_kernel(kernel(shared + c.code), 32), c.says) << c.code;
  EXPECT_DEATH(run_kernel(kernel(""), 129), "compiled for 128");
  EXPECT_DEATH(run_kernel(kernel(""), 32, {}, 100 * 1024), "shared memory");
  static uint32_t variable;
  char code[64];
  std::snprintf(code, sizeof code, "mov.u64 %%rd4, %llu;\n",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(&variable)));
  EXPECT_DEATH(run_kernel(kernel(code + std::string("ld.global.u32 %r2, [%rd4];\n")), 32),
               "which no device reaches");
}

}  // namespace
}  // namespace ptx
