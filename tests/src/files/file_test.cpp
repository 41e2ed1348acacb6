#include "src/files/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/hash.h"
#include "src/base/random.h"
#include "tests/src/temporary_directory.h"

namespace stw::file_test {
namespace {

TEST(File, ReadsExactlyOrNamesTheMissingBytes) {
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

TEST(File, RefusesMissingFilesFoldersAndPipes) {
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

// A limit of the file size takes the place of a full disk. Its signal, SIGXFSZ, would end the process if it
// were not blocked.
TEST(FileWriter, AFullDiskLeavesTheOldFile) {
  TemporaryDirectory folder;
  put_file(folder / "a", "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status written = write_text(folder / "a", std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().native, EFBIG);
  EXPECT_NE(written.error().message.find(folder / "a"), std::string::npos);
  EXPECT_EQ(file_bytes(folder / "a"), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(FileWriter, TheNewFileHasTheModeOfTheOld) {
  const TemporaryDirectory folder;
  const std::string path = folder / "a";
  const auto mode_after_writing = [&] {
    EXPECT_TRUE(write_text(path, "new"));
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  };
  const mode_t before = ::umask(022);
  EXPECT_EQ(mode_after_writing(), 0644u);
  for (const mode_t mode : {0600u, 0660u, 0444u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(mode_after_writing(), mode);
  }
  ::umask(before);
}

// A link stays a link. Its target is replaced in place, or created.
TEST(FileWriter, WritesThroughLinks) {
  TemporaryDirectory folder, other;
  put_file(other / "file", "old");
  ASSERT_TRUE(make_directories(folder / "links"));
  const auto link = [&](const std::string& to, const std::string& name) {
    return symlink(to.c_str(), (folder / name).c_str()) == 0;
  };
  ASSERT_TRUE(link(other / "file", "absolute") && link("absolute", "second") &&
              link("../second", "links/third"));
  ASSERT_TRUE(link(other / "new", "dangling") && link("loop", "loop"));
  for (const char* name : {"absolute", "second", "links/third"}) {
    struct stat status;
    ASSERT_TRUE(write_text(folder / name, std::string("through ") + name));
    EXPECT_EQ(file_bytes(other / "file"), std::string("through ") + name);
    ASSERT_EQ(lstat((folder / name).c_str(), &status), 0);
    EXPECT_TRUE(S_ISLNK(status.st_mode)) << name;
  }
  {
    auto writer = FileWriter::create(folder / "second");
    ASSERT_TRUE(writer);
    EXPECT_EQ(folder.entries(), 5u);
    EXPECT_EQ(other.entries(), 2u) << "the file and the temporary one next to it";
  }
  ASSERT_TRUE(write_text(folder / "dangling", "made"));
  EXPECT_EQ(file_bytes(other / "new"), "made");
  EXPECT_FALSE(write_text(folder / "loop", "text"));
  EXPECT_EQ(folder.entries(), 5u);
  EXPECT_EQ(other.entries(), 2u);
}

// A special file is written directly and is not replaced, also through a link. If the reader has closed a
// pipe, the write is an error.
TEST(FileWriter, WritesToPipesAsTheyAre) {
  TemporaryDirectory folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(symlink("pipe", (folder / "link").c_str()), 0);
  const std::string text(10000, 'x');  // fits into a pipe
  for (const char* name : {"pipe", "link"}) {
    const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
    const Status written = write_text(folder / name, text);
    ASSERT_TRUE(written) << written.error().message;
    std::string got(2 * text.size(), 0);
    const ssize_t count = ::read(reader.get(), got.data(), got.size());
    ASSERT_EQ(count, static_cast<ssize_t>(text.size()));
    got.resize(text.size());
    EXPECT_EQ(got, text);
  }
  Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  auto writer = FileWriter::create(pipe);
  ASSERT_TRUE(writer);
  EXPECT_EQ(reader.close(), 0);
  EXPECT_TRUE(writer->write(text.data(), text.size()));
  const Status finished = writer->finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().native, EPIPE);
  EXPECT_EQ(finished.error().message, pipe + ": cannot write: Broken pipe");
  struct stat status;
  ASSERT_EQ(lstat(pipe.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  EXPECT_EQ(folder.entries(), 2u);
  EXPECT_EQ(write_text(folder.path(), text).error().native, EISDIR);
}

// A folder that may not be read cannot be opened to be synced. That is no error: the rename is done by then.
TEST(FileWriter, WritesIntoFoldersThatMayNotBeRead) {
  TemporaryDirectory folder;
  const std::string closed = folder / "closed", file = closed + "/a";
  ASSERT_TRUE(make_directories(closed));
  ASSERT_EQ(chmod(folder.path().c_str(), 0711), 0);
  ASSERT_EQ(chmod(closed.c_str(), 0333), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0)
      _exit(2);  // an unprivileged user, because root may read everything
    _exit(write_text(file, "text") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_EQ(chmod(closed.c_str(), 0755), 0);
  EXPECT_EQ(file_bytes(file), "text");
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
  EXPECT_EQ(hash64("", 0), 0x2D06800538D394C2u);  // XXH3's published value for an empty input
  std::string bytes(5000, '\0');
  for (size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<char>(index * 131);
  for (size_t step : {1, 7, 64, 256, 4999}) {
    Hash64 hash;
    for (size_t start = 0; start < bytes.size(); start += step)
      hash.update(bytes.data() + start, std::min(step, bytes.size() - start));
    EXPECT_EQ(hash.digest(), hash64(bytes.data(), bytes.size()));
  }
}

// Known answers from the authors' Random123 distribution.
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
    EXPECT_EQ(scale_to_range(bits, range),
              static_cast<uint64_t>(static_cast<__uint128_t>(bits) * range >> 64));
  }
  EXPECT_EQ(scale_to_range(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
}

}  // namespace
}  // namespace stw::file_test
