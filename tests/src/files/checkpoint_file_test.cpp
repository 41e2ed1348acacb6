#include "src/files/checkpoint_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/src/temporary_directory.h"

namespace stw::checkpoint_file_test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Json example_fields(int64_t step) { return Json::object().set("step", step).set("model", "nano"); }

Status write_example(const std::string& path, int64_t step) {
  STW_ASSIGN(writer,
             CheckpointWriter::create(path, example_fields(step),
                                      {{"empty", 0}, {"weights", 300}, {"moments", 40}, {"none", 0}}));
  STW_TRY(writer.write(bytes_of(std::string(100, 'w'))));
  STW_TRY(writer.write(bytes_of(std::string(200, 'x'))));
  STW_TRY(writer.write(bytes_of(std::string(40, 'm'))));
  return writer.finish();
}

// Everything that a trainer does before it changes its state.
Status read_all(const std::string& path) {
  STW_ASSIGN(reader, CheckpointReader::open(path));
  STW_TRY(reader.verify_all());
  return ok();
}

TEST(CheckpointFile, ReadsBackWhatItWrote) {
  TemporaryDirectory folder;
  const std::string path = folder / "state";
  ASSERT_TRUE(write_example(path, 7));
  EXPECT_EQ(folder.entries(), 1u);
  auto reader = CheckpointReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->fields(), example_fields(7));
  EXPECT_EQ(reader->sections().size(), 4u);
  EXPECT_TRUE(reader->verify_all());
  auto section = reader->section("weights", 300);
  ASSERT_TRUE(section);
  std::string out(300, '\0');
  const auto span = std::as_writable_bytes(std::span(out));
  ASSERT_TRUE(section->read(span.first(150)));
  EXPECT_EQ(section->remaining(), 150u);
  ASSERT_TRUE(section->read(span.subspan(150)));
  EXPECT_EQ(out, std::string(100, 'w') + std::string(200, 'x'));
  EXPECT_EQ(section->read(span.first(1)).error().code, Code::bad_argument);
  EXPECT_TRUE(reader->section("empty", 0));
  EXPECT_EQ(reader->find("none")->bytes, 0u);
  EXPECT_EQ(reader->find("other"), nullptr);
  EXPECT_EQ(reader->section("other", 1).error().message, path + ": section \"other\" is missing");
  EXPECT_EQ(reader->section("moments", 41).error().message,
            path + ": section \"moments\": expected 41 bytes, found 40");
}

TEST(CheckpointFile, WriterRefusesMisuse) {
  TemporaryDirectory folder;
  const std::string path = folder / "state";
  EXPECT_EQ(CheckpointWriter::create(path, Json::object(), {{"a", 1}, {"a", 1}}).error().code,
            Code::bad_argument);
  EXPECT_EQ(CheckpointWriter::create(path, Json::object(), {{"a", UINT64_MAX}}).error().code,
            Code::bad_argument);
  {
    auto writer = CheckpointWriter::create(path, Json::object(), {{"a", 2}, {"b", 2}});
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->write(bytes_of("abc")).error().code, Code::bad_argument);
    ASSERT_TRUE(writer->write(bytes_of("ab")));
    EXPECT_EQ(writer->finish().error().code, Code::bad_state);
    ASSERT_TRUE(writer->write(bytes_of("cd")));
    EXPECT_EQ(writer->write(bytes_of("e")).error().code, Code::bad_argument);
  }
  EXPECT_EQ(folder.entries(), 0u);
  auto nothing = CheckpointWriter::create(path, Json::object(), {});
  ASSERT_TRUE(nothing);
  ASSERT_TRUE(nothing->finish());
  EXPECT_TRUE(read_all(path));
}

TEST(CheckpointFile, AFlippedBitInAnyByteIsFound) {
  TemporaryDirectory folder;
  const std::string path = folder / "state";
  ASSERT_TRUE(write_example(path, 7));
  const std::string whole = file_bytes(path);
  for (size_t place = 0; place < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ (1 << place % 8));
    put_file(path, damaged);
    Status read = read_all(path);
    ASSERT_FALSE(read) << "byte " << place;
    EXPECT_TRUE(read.error().message.starts_with(path + ": ")) << read.error().message;
  }
  std::string damaged = whole;
  damaged[whole.size() - 8 * 5 - 1] = 'M';  // the last byte of "moments"
  put_file(path, damaged);
  auto reader = CheckpointReader::open(path);
  ASSERT_TRUE(reader);
  std::string out(40, '\0');
  auto section = reader->section("moments", 40);
  Status read = section->read(std::as_writable_bytes(std::span(out)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::corrupt);
  EXPECT_EQ(read.error().message,
            path + ": section \"moments\": its checksum does not match, the file is damaged");
}

TEST(CheckpointFile, EveryTruncationAndExtensionIsFound) {
  TemporaryDirectory folder;
  const std::string path = folder / "state";
  ASSERT_TRUE(write_example(path, 7));
  const std::string whole = file_bytes(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    put_file(path, whole.substr(0, length));
    auto reader = CheckpointReader::open(path);
    ASSERT_FALSE(reader) << length;
    EXPECT_NE(reader.error().message.find("found " + std::to_string(length) + " (the file is truncated)"),
              std::string::npos)
        << reader.error().message;
  }
  put_file(path, whole + "x");
  EXPECT_NE(CheckpointReader::open(path).error().message.find("too long"), std::string::npos);
  put_file(path, "{\"this\": \"is not a checkpoint at all\"}");
  EXPECT_NE(CheckpointReader::open(path).error().message.find("not a Stowage checkpoint"), std::string::npos);
  std::string later = whole;
  later[8] = 3;
  put_file(path, later);
  EXPECT_EQ(CheckpointReader::open(path).error().message, path + ": version: expected 2, found 3");
}

TEST(CheckpointFile, StaleTemporaryFilesDoNotMatter) {
  TemporaryDirectory folder;
  const std::string path = folder / "state";
  for (const int attempt : {0, 1})
    put_file(path + ".tmp." + std::to_string(getpid()) + "." + std::to_string(attempt), "stale");
  ASSERT_TRUE(write_example(path, 8));
  EXPECT_TRUE(read_all(path));
  EXPECT_EQ(folder.entries(), 3u);
}

TEST(CheckpointFile, AKillLeavesACompleteFile) {
  TemporaryDirectory folder;
  const std::string path = folder / "state";
  ASSERT_TRUE(write_example(path, 0));
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      for (int64_t step = 1;; ++step)
        if (!write_example(path, step)) _exit(1);
    usleep(static_cast<useconds_t>(1000 + 700 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    Status read = read_all(path);
    ASSERT_TRUE(read) << read.error().message;
  }
}

}  // namespace
}  // namespace stw::checkpoint_file_test
