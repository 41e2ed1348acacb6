#include "src/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "src/hash.h"
#include "src/random.h"
#include "tests/src/temporary_directory.h"

namespace stw {
namespace {

TEST(File, ReadsExactlyOrSaysWhatIsMissing) {
  TemporaryDirectory folder;
  put_file(folder / "a", "0123456789");
  auto file = File::open(folder / "a");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 10u);
  char data[4] = {};
  ASSERT_TRUE(file->read(6, data, 4));
  EXPECT_EQ(std::string(data, 4), "6789");
  auto early = file->read(8, data, 4);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().message, (folder / "a") + ": ends early: expected 4 bytes at 8, found 2");
  EXPECT_TRUE(file->read(10, data, 0));
}

TEST(File, RefusesWhatIsNoFile) {
  TemporaryDirectory folder;
  auto missing = File::open(folder / "none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::io_error);
  EXPECT_EQ(missing.error().native, ENOENT);
  EXPECT_NE(missing.error().message.find("none: cannot open: No such file"), std::string::npos);
  EXPECT_FALSE(File::open(folder.path()));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(File::open(folder / "pipe"));
}

TEST(FileWriter, ReplacesOnlyWhenFinished) {
  TemporaryDirectory folder;
  put_file(folder / "a", "old");
  {
    auto writer = FileWriter::create(folder / "a");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write("new", 3));
    EXPECT_EQ(file_bytes(folder / "a"), "old");
    EXPECT_EQ(folder.entries(), 2u);
  }
  EXPECT_EQ(file_bytes(folder / "a"), "old");
  EXPECT_EQ(folder.entries(), 1u);
  auto writer = FileWriter::create(folder / "a");
  auto second = FileWriter::create(folder / "a");
  ASSERT_TRUE(writer && second);
  std::string expected;
  for (int piece = 0; piece < 300; ++piece) {
    const std::string bytes(static_cast<size_t>(piece * 97), static_cast<char>('a' + piece % 26));
    ASSERT_TRUE(writer->write(bytes.data(), bytes.size()));
    expected += bytes;
  }
  const std::string large(3 << 20, 'L');
  ASSERT_TRUE(writer->write(large.data(), large.size()));
  ASSERT_TRUE(writer->write("end", 3));
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(file_bytes(folder / "a") == expected + large + "end");
  EXPECT_FALSE(writer->write("x", 1));
  EXPECT_FALSE(writer->finish());
  EXPECT_EQ(folder.entries(), 2u);  // the file and the temporary one of `second`
}

TEST(FileWriter, AFullDiskLeavesTheOldFile) {
  TemporaryDirectory folder;
  put_file(folder / "a", "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status written = write_text(folder / "a", std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().native, EFBIG);
  EXPECT_NE(written.error().message.find(folder / "a"), std::string::npos);
  EXPECT_EQ(file_bytes(folder / "a"), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(FileWriter, AMissingFolderIsAnError) {
  TemporaryDirectory folder;
  EXPECT_FALSE(FileWriter::create(folder / "none/a"));
  ASSERT_TRUE(make_directories(folder / "none/deeper"));
  ASSERT_TRUE(make_directories(folder / "none/deeper"));
  EXPECT_TRUE(write_text(folder / "none/deeper/a", "text"));
  EXPECT_TRUE(is_directory(folder / "none"));
  EXPECT_FALSE(file_exists(folder / "none"));
  EXPECT_TRUE(file_exists(folder / "none/deeper/a"));
  EXPECT_FALSE(make_directories(folder / "none/deeper/a"));
  EXPECT_FALSE(make_directories(folder / "none/deeper/a/b"));
  EXPECT_EQ(*read_text(folder / "none/deeper/a", 4), "text");
  EXPECT_EQ(read_text(folder / "none/deeper/a", 3).error().code, Code::corrupt);
}

TEST(Hash64, DoesNotDependOnTheCuts) {
  EXPECT_EQ(hash64("", 0), 0x2D06800538D394C2u);  // XXH3's published value for no bytes
  std::string bytes(5000, '\0');
  for (size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<char>(index * 131);
  for (size_t step : {1, 7, 64, 256, 4999}) {
    Hash64 hash;
    for (size_t start = 0; start < bytes.size(); start += step)
      hash.update(bytes.data() + start, std::min(step, bytes.size() - start));
    EXPECT_EQ(hash.digest(), hash64(bytes.data(), bytes.size()));
  }
}

// Known answers of the authors' Random123 distribution.
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(UINT64_MAX, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, RangesAreScaledLikeAWideProduct) {
  for (uint32_t round = 0; round < 1000; ++round) {
    const auto words = philox(1, {round, 0, 0, 0});
    const uint64_t bits = words[0] | static_cast<uint64_t>(words[1]) << 32;
    const uint64_t range = (words[2] | static_cast<uint64_t>(words[3]) << 32) >> round % 64 | 1;
    EXPECT_EQ(scale_to_range(bits, range), static_cast<uint64_t>(static_cast<__uint128_t>(bits) * range >> 64));
  }
  EXPECT_EQ(scale_to_range(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
}

}  // namespace
}  // namespace stw
