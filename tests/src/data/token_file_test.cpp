// Files of token ids of every type, raw and as NumPy arrays. Also files that look like another type, and
// files that do not hold ids.
#include "src/data/token_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "tests/src/temporary_directory.h"

namespace stw {
namespace {

class TokenFiles : public testing::Test {
 protected:
  std::string write(const std::string& bytes, const char* name = "ids.bin") {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  template <class Number>
  static std::string bytes_of(const std::vector<int64_t>& ids, bool is_big_endian = false) {
    std::string bytes;
    for (const int64_t id : ids) {
      const auto number = static_cast<Number>(id);
      std::string one(sizeof number, '\0');
      std::memcpy(one.data(), &number, sizeof number);
      bytes += is_big_endian ? std::string(one.rbegin(), one.rend()) : one;
    }
    return bytes;
  }

  // A file as numpy.save writes it.
  static std::string array(const std::string& descr, const std::string& shape, const std::string& data,
                           int version = 1) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize((header.size() + 12) / 64 * 64 + 64 - (version == 1 ? 10 : 12) - 1, ' ');
    header += '\n';
    const size_t n = header.size();
    std::string out = "\x93NUMPY";
    out += {static_cast<char>(version), '\0', static_cast<char>(n & 255), static_cast<char>(n >> 8)};
    if (version > 1) out += std::string(2, '\0');
    return out + header + data;
  }

  static std::vector<int64_t> read(const std::string& path, TokenFormat format, int64_t vocabulary) {
    Hash64 content;
    auto file = TokenFile::open(path, format, vocabulary, content);
    EXPECT_TRUE(file) << file.error().message;
    if (!file) return {};
    std::vector<int32_t> out(file->count());
    EXPECT_TRUE(file->read(0, file->count(), vocabulary, out.data()));
    return {out.begin(), out.end()};
  }

  static std::string refusal(const std::string& path, TokenFormat format, int64_t vocabulary) {
    Hash64 content;
    auto file = TokenFile::open(path, format, vocabulary, content);
    EXPECT_FALSE(file);
    return file ? "" : file.error().message;
  }

  static std::vector<int64_t> random_ids(size_t count, int64_t vocabulary) {
    std::mt19937_64 random(3);
    std::vector<int64_t> ids(count);
    // Small ids are more frequent, as in texts.
    for (int64_t& id : ids)
      id = static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary) * (random() % 1000) / 1000);
    return ids;
  }

  TemporaryDirectory folder_;
};

TEST_F(TokenFiles, EveryTypeIsRead) {
  for (const int64_t vocabulary : {300, 50257, 65536, 152000}) {
    const std::vector<int64_t> ids = random_ids(20000, vocabulary);
    if (vocabulary <= 65536) {
      EXPECT_EQ(read(write(bytes_of<uint16_t>(ids)), TokenFormat::uint16, vocabulary), ids);
    }
    EXPECT_EQ(read(write(bytes_of<uint32_t>(ids)), TokenFormat::uint32, vocabulary), ids);
    EXPECT_EQ(read(write(bytes_of<int32_t>(ids)), TokenFormat::int32, vocabulary), ids);
    EXPECT_EQ(read(write(bytes_of<int64_t>(ids)), TokenFormat::int64, vocabulary), ids);
    EXPECT_EQ(read(write(vocabulary <= 65536 ? bytes_of<uint16_t>(ids) : bytes_of<uint32_t>(ids)),
                   TokenFormat::automatic, vocabulary),
              ids);
  }
}

TEST_F(TokenFiles, AnotherTypeIsRefused) {
  const auto looks_like = [&](const std::string& bytes, const char* type, int64_t vocabulary) {
    const std::string message = refusal(write(bytes), TokenFormat::ids, vocabulary);
    EXPECT_NE(message.find(std::string("look like ") + type), std::string::npos)
        << vocabulary << ": " << message;
  };
  for (const int64_t vocabulary : {300, 50257, 65536}) {
    const std::vector<int64_t> ids = random_ids(20000, vocabulary);
    looks_like(bytes_of<uint32_t>(ids), "uint32", vocabulary);
    looks_like(bytes_of<int64_t>(ids), "int64", vocabulary);
    looks_like(bytes_of<uint16_t>(ids, true), "big-endian numbers of 16 bits", vocabulary);
    looks_like(bytes_of<uint32_t>(ids, true), "big-endian numbers of 32 bits", vocabulary);
    looks_like(bytes_of<int64_t>(ids, true), "big-endian numbers of 64 bits", vocabulary);
  }
  const std::vector<int64_t> ids = random_ids(20000, 152000), small = random_ids(20000, 60000),
                             letters = random_ids(200, 250);
  looks_like(bytes_of<int64_t>(ids), "int64", 152000);
  looks_like(bytes_of<uint16_t>(small), "uint16", 152000);
  looks_like(bytes_of<uint32_t>(ids, true), "big-endian numbers of 32 bits", 152000);
  looks_like(bytes_of<int64_t>(ids, true), "big-endian numbers of 64 bits", 152000);
  looks_like(bytes_of<uint16_t>(letters, true), "big-endian numbers of 16 bits", 65536);
  looks_like(bytes_of<uint32_t>(letters), "uint32", 50257);
  EXPECT_NE(refusal(write(bytes_of<int64_t>(small)), TokenFormat::ids, 60000)
                .find(": say so by token_type int64, or if uint16 is right, by token_type uint16"),
            std::string::npos);
  // A type that the caller gives is used without a check.
  EXPECT_EQ(read(write(bytes_of<uint32_t>(letters)), TokenFormat::uint16, 50257).size(), 400u);
  EXPECT_EQ(read(write(bytes_of<uint16_t>(letters, true)), TokenFormat::uint16, 65536).size(), 200u);
}

TEST_F(TokenFiles, IdsAreNotSuspectedWithoutReason) {
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>(1000, 0), std::vector<int64_t>{5, 0, 7, 0, 3, 0}, std::vector<int64_t>(1000, 7)})
    EXPECT_EQ(read(write(bytes_of<uint16_t>(ids)), TokenFormat::ids, 300), ids);
  std::vector<int64_t> pauses(1000, 0);
  for (size_t i = 0; i < pauses.size(); i += 2) pauses[i] = 1 + static_cast<int64_t>(i) % 200;
  pauses[501] = 4;
  EXPECT_EQ(read(write(bytes_of<uint16_t>(pauses)), TokenFormat::ids, 300), pauses);
  std::mt19937_64 random(4);
  std::vector<int64_t> even(20000), large(20000);
  for (int64_t& id : even) id = static_cast<int64_t>(random() % 65536);
  for (int64_t& id : large) id = 40000 + static_cast<int64_t>(random() % 25000);
  EXPECT_EQ(read(write(bytes_of<uint16_t>(even)), TokenFormat::ids, 65536), even);
  EXPECT_EQ(read(write(bytes_of<uint16_t>(large)), TokenFormat::ids, 65536), large);
}

TEST_F(TokenFiles, AnIdOutsideOfTheVocabularyIsNamed) {
  std::vector<int64_t> ids = random_ids(20000, 152000);
  ids[12345] = 152000;
  EXPECT_NE(refusal(write(bytes_of<uint32_t>(ids)), TokenFormat::uint32, 152000)
                .find("token 12345 is 152000, expected less than the vocabulary of 152000"),
            std::string::npos);
  ids[12345] = -100;
  EXPECT_NE(refusal(write(bytes_of<int64_t>(ids)), TokenFormat::int64, 152000).find("token 12345 is -100,"),
            std::string::npos);
  EXPECT_NE(refusal(write(bytes_of<int32_t>(ids)), TokenFormat::int32, 152000).find("token 12345 is -100,"),
            std::string::npos);
  ids[12345] = int64_t{1} << 40;
  EXPECT_NE(refusal(write(bytes_of<int64_t>(ids)), TokenFormat::int64, 152000)
                .find("token 12345 is 1099511627776,"),
            std::string::npos);
}

TEST_F(TokenFiles, NumPyArrays) {
  const std::vector<int64_t> ids = random_ids(5000, 50257), bytes = random_ids(500, 256);
  for (const char* name : {"ids.npy", "ids.bin"}) {
    EXPECT_EQ(
        read(write(array("<u2", "(5000,)", bytes_of<uint16_t>(ids)), name), TokenFormat::automatic, 50257),
        ids);
    EXPECT_EQ(
        read(write(array("<u4", "(5000,)", bytes_of<uint32_t>(ids), 2), name), TokenFormat::automatic, 50257),
        ids);
    EXPECT_EQ(read(write(array("<i4", "(5000,)", bytes_of<int32_t>(ids)), name), TokenFormat::ids, 152000),
              ids);
    EXPECT_EQ(read(write(array("<i8", "(5000,)", bytes_of<int64_t>(ids)), name), TokenFormat::int64, 50257),
              ids);
    EXPECT_EQ(read(write(array("|u1", "(500,)", bytes_of<uint8_t>(bytes)), name), TokenFormat::ids, 256),
              bytes);
  }
  const auto refused = [&](const std::string& data, const char* says, TokenFormat format = TokenFormat::ids) {
    const std::string message = refusal(write(data), format, 50257);
    EXPECT_NE(message.find(says), std::string::npos) << message;
  };
  const std::string data = bytes_of<uint16_t>(ids);
  refused(array(">u2", "(5000,)", data), "\">u2\", which is big-endian");
  refused(array("<f4", "(2500,)", data), "\"<f4\"");
  refused(array("<u2", "(50, 100)", data), "(50, 100)");
  refused(array("<u2", "(50, 100,)", data), "(50, 100,)");
  refused(array("<u2", "()", data), "()");
  refused(array("<u2", "(5001,)", data), "5001 ids of 16 bits, and 10000 bytes");
  refused(array("<u2", "(0,)", ""), "an empty array");
  refused(array("<u2", "(5000,)", data), "its header says that its ids are uint16, and token_type uint32",
          TokenFormat::uint32);
  refused(array("<u2", "(5000,)", data, 9), "version 9");
  refused(std::string("\x93NUMPY\1\0\xff\xff{'descr'", 18), "outside of the file");
}

TEST_F(TokenFiles, DownloadsThatFailed) {
  EXPECT_NE(refusal(write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
                    TokenFormat::ids, 50257)
                .find("a pointer of Git LFS"),
            std::string::npos);
  EXPECT_NE(refusal(write("<!DOCTYPE html><html>"), TokenFormat::ids, 50257).find("a web page"),
            std::string::npos);
  EXPECT_NE(refusal(write("{\"error\": \"Repository not found\"}"), TokenFormat::ids, 50257)
                .find("an error message"),
            std::string::npos);
}

}  // namespace
}  // namespace stw
