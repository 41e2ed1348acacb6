// The model of a tokenizer, which splits a piece of text into tokens. Tokens of short pieces are cached.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/description.h"

namespace command {

template <class Value>
struct TextMap {
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Type = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;
};
template <class Value>
using ByText = typename TextMap<Value>::Type;

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // Appends the tokens of a UTF-8 piece. Thread: one at a time.
  void encode(std::string_view piece, std::vector<int32_t>& out);

 private:
  // `out` is empty.
  virtual void encode_new(std::string_view piece, std::vector<int32_t>& out) const = 0;

  ByText<std::vector<int32_t>> known_;  // the cache
};

// Throws a Failure that names `path` if parts of the description contradict each other.
std::unique_ptr<Model> make_model(const TokenizerDescription& description, const std::string& path);

}  // namespace command
