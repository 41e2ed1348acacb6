#include "src/weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/src/temporary_directory.h"

namespace stw::safetensors_test {
namespace {

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t bytes = header.size();
  std::string file(8, '\0');
  memcpy(file.data(), &bytes, 8);
  return file + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                  int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string contents(const SafetensorsReader& reader, std::string_view name) {
  const SafetensorsInfo* info = reader.find(name);
  if (!info) return "(missing)";
  std::string out(info->bytes, '\0');
  EXPECT_TRUE(reader.read(*info, 0, std::as_writable_bytes(std::span(out))));
  return out;
}

void write_example(const std::string& path) {
  auto writer = SafetensorsWriter::create(path,
                                          {{"b", TensorDType::f32, {2, 1}},
                                           {"a", TensorDType::bf16, {3}},
                                           {"scalar", TensorDType::i64, {}},
                                           {"none", TensorDType::u8, {4, 0}}},
                                          {{"format", "pt"}});
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(writer->write(bytes_of("01234567ab")));
  EXPECT_EQ(writer->finish().error().code, Code::bad_state);
  ASSERT_TRUE(writer->write(bytes_of("cdefABCDEFGH")));
  EXPECT_EQ(writer->write(bytes_of("x")).error().code, Code::bad_argument);
  ASSERT_TRUE(writer->finish());
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  TemporaryDirectory folder;
  write_example(folder / "model.safetensors");
  EXPECT_EQ(folder.entries(), 1u);
  for (const std::string& path : {folder.path(), folder / "model.safetensors"}) {
    auto reader = SafetensorsReader::open(path);
    ASSERT_TRUE(reader) << reader.error().message;
    ASSERT_EQ(reader->tensors().size(), 4u);
    EXPECT_EQ(reader->tensors()[0].name, "b");
    EXPECT_EQ(reader->tensors()[0].shape, (std::vector<int64_t>{2, 1}));
    EXPECT_EQ(reader->tensors()[1].dtype, TensorDType::bf16);
    EXPECT_EQ(reader->tensors()[0].offset % 8, 0u);
    EXPECT_EQ(contents(*reader, "b"), "01234567");
    EXPECT_EQ(contents(*reader, "a"), "abcdef");
    EXPECT_EQ(contents(*reader, "scalar"), "ABCDEFGH");
    EXPECT_EQ(contents(*reader, "none"), "");
    EXPECT_EQ(reader->find("c"), nullptr);
    EXPECT_EQ(reader->metadata(), (SafetensorsMetadata{{"format", "pt"}}));
    std::array<std::byte, 2> piece;
    EXPECT_TRUE(reader->read(*reader->find("a"), 4, piece));
    EXPECT_EQ(memcmp(piece.data(), "ef", 2), 0);
    EXPECT_EQ(reader->read(*reader->find("a"), 5, piece).error().code, Code::bad_argument);
    EXPECT_EQ(reader->read(*reader->find("a"), UINT64_MAX, piece).error().code, Code::bad_argument);
  }
}

TEST(Safetensors, WriterRefusesBadEntries) {
  TemporaryDirectory folder;
  const std::string path = folder / "a";
  using Entries = std::vector<SafetensorsEntry>;
  for (const Entries& entries :
       {Entries{{"a", TensorDType::u8, {1}}, {"a", TensorDType::u8, {1}}},
        Entries{{"__metadata__", TensorDType::u8, {1}}}, Entries{{"a", TensorDType::f32, {-1}}},
        Entries{{"a", TensorDType::f32, {INT64_MAX}}},
        Entries{{"a", TensorDType::u8, {INT64_MAX}}, {"b", TensorDType::u8, {1}}}})
    EXPECT_EQ(SafetensorsWriter::create(path, entries, {}).error().code, Code::bad_argument);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(Safetensors, HeadersThatTheFormatForbids) {
  TemporaryDirectory folder;
  const std::string path = folder / "a.safetensors";
  const auto message = [&](const std::string& header, const std::string& data) {
    put_file(path, with_header(header, data));
    auto reader = SafetensorsReader::open(path);
    EXPECT_FALSE(reader) << header;
    if (reader) return std::string();
    EXPECT_TRUE(reader.error().message.starts_with(path + ": ")) << reader.error().message;
    return reader.error().message.substr(path.size() + 2);
  };
  EXPECT_EQ(message("{" + entry("a", "F32", "[2]", 0, 8) + "}", "0123"),
            "expected 70 bytes, found 66 (the file is truncated: download it again)");
  EXPECT_EQ(message("{" + entry("a", "F32", "[1]", 0, 4) + "}", "01234"),
            "expected 66 bytes, found 67 (data without a tensor)");
  EXPECT_EQ(message("{" + entry("a", "F32", "[2]", 0, 4) + "}", "0123"),
            "tensor \"a\": expected 8 bytes for dtype F32 and shape [2], found 4");
  EXPECT_EQ(message("{" + entry("a", "U8", "[2]", 0, 2) + "," + entry("b", "U8", "[2]", 1, 3) + "}", "012"),
            "tensor \"b\": expected its data at offset 2, found 1 (tensors overlap)");
  EXPECT_EQ(message("{" + entry("a", "U8", "[1]", 0, 1) + "," + entry("b", "U8", "[1]", 2, 3) + "}", "012"),
            "tensor \"b\": expected its data at offset 1, found 2 (a hole in the data)");
  EXPECT_NE(message("{" + entry("a", "U8", "[1]", 1, 2) + "}", "01").find("hole"), std::string::npos);
  EXPECT_NE(message("{" + entry("a", "U8", "[4294967296,4294967296]", 0, 0) + "}", "").find("64 bits"),
            std::string::npos);
  EXPECT_NE(message("{" + entry("a", "U8", "[-1]", 0, 0) + "}", "").find("\"shape\""), std::string::npos);
  EXPECT_NE(message("{" + entry("a", "U8", "[1.0]", 0, 1) + "}", "0").find("\"shape\""), std::string::npos);
  EXPECT_NE(message("{" + entry("a", "U8", "[1]", 1, 0) + "}", "0").find("data_offsets"), std::string::npos);
  EXPECT_NE(message("{" + entry("a", "U8", "[0]", 0, 0) + "," + entry("a", "U8", "[0]", 0, 0) + "}", "")
                .find("twice"),
            std::string::npos);
  EXPECT_NE(message("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", "0").find("\"dtype\" is missing"),
            std::string::npos);
  EXPECT_NE(message("{\"a\":1}", "").find("expected an object"), std::string::npos);
  EXPECT_NE(message("{\"__metadata__\":{\"a\":1}}", "").find("expected a string"), std::string::npos);
  EXPECT_NE(message("[]", "").find("starts with {"), std::string::npos);
  EXPECT_NE(message("", "").find("starts with {"), std::string::npos);
  EXPECT_NE(message("{\"a\":", "").find("header: line 1, column 6"), std::string::npos);
  put_file(path, "1234567");
  EXPECT_NE(SafetensorsReader::open(path).error().message.find("at least 8 bytes, found 7"),
            std::string::npos);
  put_file(path, std::string(8, '\xff') + "{}");
  EXPECT_NE(SafetensorsReader::open(path).error().message.find("at most 100000000 bytes"), std::string::npos);
  put_file(path, with_header("{}      ", ""));
  EXPECT_TRUE(SafetensorsReader::open(path));
}

// The size of a tensor of an unknown type is unknown; its offsets are checked as for all others.
TEST(Safetensors, UnknownTypesAreReadAsBytes) {
  TemporaryDirectory folder;
  const std::string path = folder / "a.safetensors", known = entry("k", "U8", "[2]", 0, 2) + ",";
  put_file(path, with_header("{" + known + entry("a", "F8_E4M3", "[2,3]", 2, 8) + "," +
                                 entry("n", "F4", "[0,7]", 8, 8) + "}",
                             "kk012345"));
  auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_EQ(reader->tensors().size(), 3u);
  const SafetensorsInfo& unknown = *reader->find("a");
  EXPECT_EQ(unknown.format, "F8_E4M3");
  EXPECT_FALSE(unknown.dtype);
  EXPECT_EQ(unknown.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(contents(*reader, "a"), "012345");
  EXPECT_EQ(contents(*reader, "k"), "kk");
  EXPECT_EQ(reader->find("k")->format, "U8");
  const struct {
    const char* shape;
    int begin, end;
    const char* part;
  } cases[] = {{"[2]", 1, 4, "tensor \"a\": expected its data at offset 2, found 1 (tensors overlap)"},
               {"[2]", 3, 4, "(a hole in the data)"},
               {"[2]", 2, 9, "(the file is truncated: download it again)"},
               {"[2]", 2, 2, "tensor \"a\": expected more bytes for dtype F8_E4M3 and shape [2], found 0"},
               {"[0,7]", 2, 4, "tensor \"a\": expected 0 bytes for dtype F8_E4M3 and shape [0,7], found 2"},
               {"[4294967296,4294967296]", 2, 4, "does not fit 64 bits"},
               {"[-1]", 2, 4, "\"shape\""}};
  for (const auto& [shape, begin, end, part] : cases) {
    put_file(path, with_header("{" + known + entry("a", "F8_E4M3", shape, begin, end) + "}", "kk01"));
    auto refused = SafetensorsReader::open(path);
    ASSERT_FALSE(refused) << shape;
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
}

TEST(Safetensors, Shards) {
  TemporaryDirectory folder;
  EXPECT_EQ(SafetensorsReader::open(folder.path()).error().code, Code::io_error);
  put_file(folder / "one.safetensors", with_header("{" + entry("a", "U8", "[2]", 0, 2) + "}", "AA"));
  put_file(
      folder / "two.safetensors",
      with_header("{" + entry("b", "U8", "[1]", 0, 1) + "," + entry("extra", "U8", "[1]", 1, 2) + "}", "BX"));
  const std::string index = folder / "model.safetensors.index.json";
  put_file(index, R"({"metadata":{},"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})");
  auto reader = SafetensorsReader::open(folder.path());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->tensors().size(), 2u);
  EXPECT_EQ(contents(*reader, "a"), "AA");
  EXPECT_EQ(contents(*reader, "b"), "B");
  EXPECT_EQ(reader->path_of(*reader->find("b")), folder / "two.safetensors");
  EXPECT_TRUE(SafetensorsReader::open(index));
  for (const char* map : {R"({"a":"two.safetensors"})", R"({"a":"none.safetensors"})",
                          R"({"a":"../one.safetensors"})", R"({"a":1})", R"({"a":""})"}) {
    put_file(index, std::string("{\"weight_map\":") + map + "}");
    EXPECT_FALSE(SafetensorsReader::open(folder.path())) << map;
  }
  put_file(index, "{}");
  EXPECT_EQ(SafetensorsReader::open(folder.path()).error().message, index + ": \"weight_map\" is missing");
}

TEST(SafetensorsFuzz, EveryTruncationIsFound) {
  TemporaryDirectory folder;
  const std::string path = folder / "a.safetensors";
  write_example(path);
  const std::string whole = file_bytes(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    put_file(path, whole.substr(0, length));
    auto reader = SafetensorsReader::open(path);
    ASSERT_FALSE(reader) << length;
    EXPECT_NE(reader.error().message.find(length == 0 ? "empty" : "found " + std::to_string(length)),
              std::string::npos)
        << reader.error().message;
  }
}

TEST(SafetensorsFuzz, MutatedFilesAreRefusedOrSafeToRead) {
  TemporaryDirectory folder;
  const std::string path = folder / "a.safetensors";
  write_example(path);
  const std::string whole = file_bytes(path);
  uint64_t header_bytes;
  memcpy(&header_bytes, whole.data(), 8);
  std::mt19937_64 random(4);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string mutated = whole;
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      const size_t place = random() % (8 + header_bytes);
      const std::string symbols = "0123456789[]{},:\"-eFIU ";
      mutated[place] = random() % 2 ? symbols[random() % symbols.size()] : static_cast<char>(random());
    }
    put_file(path, mutated);
    auto reader = SafetensorsReader::open(path);
    if (!reader) continue;
    ++accepted;
    for (const SafetensorsInfo& info : reader->tensors()) {
      ASSERT_LE(info.offset + info.bytes, whole.size());
      EXPECT_EQ(contents(*reader, info.name).size(), info.bytes);
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace stw::safetensors_test
