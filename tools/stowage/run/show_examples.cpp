#include "run/show_examples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/messages.h"
#include "base/units.h"
#include "data/token_files.h"

namespace command {
namespace {

using Tokens = std::span<const int32_t>;

constexpr const char *context_role = "context", *learned_role = "learned", *cut_role = "cut off";

// A JSON string, with the short escapes \n and \t.
std::string quoted_text(const std::string& text) {
  std::string out = json_quoted(printable(text));
  for (const auto& [code, letter] : {std::pair<const char*, char>{"\\u000a", 'n'}, {"\\u0009", 't'}})
    for (size_t at = 0; (at = out.find(code, at)) != std::string::npos; at += 2)
      if (at == 0 || out[at - 1] != '\\') out.replace(at, 6, {'\\', letter});
  return out;
}

class ExamplePrinter {
 public:
  explicit ExamplePrinter(const Tokenization& tokenization) : tokenization_(tokenization) {}

  // Prints one piece for each run of tokens with the same role: the text as a JSON string, then the ids.
  void print(Tokens tokens, const std::vector<std::string>& roles) const {
    for (size_t begin = 0, end; begin < tokens.size(); begin = end) {
      end = begin + 1;
      while (end < tokens.size() && roles[end] == roles[begin]) ++end;
      const Tokens piece = tokens.subspan(begin, end - begin);
      const std::string ids = fmt::format("{} token{}: {}", grouped(piece.size()),
                                          piece.size() == 1 ? "" : "s", fmt::join(piece, " "));
      const bool has_text = tokenization_.kind() != Tokenization::Kind::ids;
      tell("  {:<14} {}\n", printable(roles[begin]),
           has_text ? quoted_text(text_of(piece, begin == 0)) : ids);
      if (has_text) tell("  {:<14} {}\n", "", ids);
    }
  }

 private:
  std::string text_of(Tokens piece, bool is_first) const {
    Decoding state;
    state.has_tokens = state.has_text = !is_first;
    std::string text;
    // special tokens have no text; they appear as the tokenizer writes them
    for (size_t begin = 0, end; begin < piece.size(); begin = end) {
      if (const std::string special = tokenization_.special_text(piece[begin]); !special.empty()) {
        text += special;
        end = begin + 1;
        continue;
      }
      for (end = begin + 1; end < piece.size() && tokenization_.special_text(piece[end]).empty();) ++end;
      text += tokenization_.text_of(piece.subspan(begin, end - begin), state);
      text += tokenization_.rest_of_text(state);
    }
    return text;
  }
  const Tokenization& tokenization_;
};

size_t count_of(const std::vector<std::string>& roles, std::string_view role) {
  return static_cast<size_t>(std::count(roles.begin(), roles.end(), role));
}

std::string counted(size_t tokens) {
  return fmt::format("{} token{}", grouped(tokens), tokens == 1 ? "" : "s");
}

// Where documents begin, and the end of the last one.
std::vector<size_t> bounds_of(const Examples& all) {
  std::vector<size_t> bounds;
  for (size_t i = 0; i < all.marks.size(); ++i)
    if (all.marks[i] & STW_MARK_BEGIN) bounds.push_back(i);
  bounds.push_back(all.marks.size());
  return bounds;
}

template <class Number>
Number number_at(const std::string& bytes, size_t index) {
  static_assert(std::endian::native == std::endian::little, "labels are stored little-endian");
  Number number;
  std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
  return number;
}

// The label or labels of a text, depending on the task.
std::string label_of(const Examples& all, size_t document, const std::vector<std::string>& labels,
                     uint32_t task) {
  if (task == STW_TASK_LABEL)
    return fmt::format("label {}", json_quoted(labels[number_at<uint32_t>(all.labels, document)]));
  std::vector<std::string> shown;
  if (task == STW_TASK_SPANS) {
    const float start = number_at<float>(all.labels, 2 * document),
                end = number_at<float>(all.labels, 2 * document + 1);
    return start == 0 && end == 0 ? std::string("no answer")
                                  : fmt::format("answer in tokens {} to {}", start, end);
  }
  if (task == STW_TASK_NUMBER)
    for (size_t i = 0; i < labels.size(); ++i)
      shown.push_back(fmt::format("{}", number_at<float>(all.labels, document * labels.size() + i)));
  else
    for (const uint32_t label : all.lists[document]) shown.push_back(json_quoted(labels[label]));
  return fmt::format("{} {}", task == STW_TASK_NUMBER ? "number" : "labels",
                     shown.empty() ? "none" : fmt::format("{}", fmt::join(shown, ", ")));
}

// The roles of a document's tokens.
std::vector<std::string> roles_of(const Examples& all, size_t begin, size_t end, const DataRequest& request,
                                  const Masks* masks) {
  const stw_model_info about = query(request.model);
  const std::vector<std::string> labels =
      about.task == STW_TASK_TOKEN_LABEL ? labels_of(request.model) : std::vector<std::string>();
  std::vector<std::string> roles;
  for (size_t i = begin; i < end; ++i) {
    if (masks) {
      roles.emplace_back(masks->kinds[static_cast<size_t>(all.tokens[i])] & STW_TOKEN_SPECIAL
                             ? "never hidden"
                             : "may be hidden");
    } else if (about.task == STW_TASK_TOKEN_LABEL) {
      const auto label = number_at<uint32_t>(all.labels, i);
      roles.emplace_back(label == UINT32_MAX ? "no label" : labels[label]);
    } else if (about.labels > 0) {
      roles.emplace_back("text");
    } else {
      roles.emplace_back(i - begin > request.sequence     ? cut_role
                         : all.marks[i] & STW_MARK_TARGET ? learned_role
                                                          : context_role);
    }
  }
  return roles;
}

void show_documents(uint64_t count, const Examples& all, const DataFlags& flags, const DataRequest& request,
                    const Masks* masks) {
  const stw_model_info about = query(request.model);
  const std::vector<std::string> labels = labels_of(request.model);
  const ExamplePrinter printer(request.tokenization);
  if (!all.reading.empty()) tell("words       {}\n", printable(all.reading));
  const std::vector<size_t> bounds = bounds_of(all);
  const size_t of_each = flags.has_pairs ? 2 : 1;
  std::vector<size_t> order((bounds.size() - 1) / of_each);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return all.origins[a * of_each].number < all.origins[b * of_each].number;
  });
  order.resize(std::min<uint64_t>(count, order.size()));
  const char* const noun = flags.has_pairs ? "pair" : about.labels > 0 || masks ? "text" : "example";
  for (size_t number = 0; number < order.size(); ++number) {
    const size_t first = order[number] * of_each;
    const std::string place = " of " + printable(all.origins[first].place);
    for (size_t document = first; document < first + of_each; ++document) {
      const Tokens tokens =
          Tokens(all.tokens).subspan(bounds[document], bounds[document + 1] - bounds[document]);
      const std::vector<std::string> roles =
          roles_of(all, bounds[document], bounds[document + 1], request, masks);
      const std::string what =
          masks ? fmt::format("{} of them may be hidden, each with a probability of {}",
                              grouped(count_of(roles, "may be hidden")), masks->rate)
          : about.task == STW_TASK_TOKEN_LABEL
              ? fmt::format("{} labels", grouped(roles.size() - count_of(roles, "no label")))
          : about.labels > 0 ? label_of(all, document, labels, about.task)
                             : fmt::format("{} learned", grouped(count_of(roles, learned_role)));
      tell("{} {}{}{}: {}, {}\n", noun, number + 1, place,
           flags.has_pairs ? document == first ? ", chosen" : ", rejected" : "", counted(tokens.size()),
           what);
      printer.print(tokens, roles);
    }
  }
}

// The tokens of data that is a text or a file of tokens.
std::vector<int32_t> tokens_of(const DataFlags& flags, const DataRequest& request) {
  const uint64_t vocabulary = query(request.model).vocabulary;
  const bool has_ids = request.tokenization.kind() == Tokenization::Kind::ids;
  const std::string bytes =
      tokens_of_files(flags.source, request.tokenization, request.document_end, vocabulary, flags.token_type);
  if (has_ids && bytes.starts_with("\x93NUMPY"))
    throw Failure(exit_failed, fmt::format("{}: --show-examples reads no NumPy array; write its ids by "
                                           "tofile(\"ids.bin\"), and name their --token-type",
                                           flags.source.name()));
  const size_t width =
      has_ids ? bytes_of_type(flags.token_type, vocabulary) : static_cast<size_t>(token_bytes(vocabulary));
  std::vector<int32_t> tokens;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    uint64_t token = 0;
    for (size_t i = width; i-- > 0;) token = token << 8 | static_cast<unsigned char>(bytes[at + i]);
    if (token >= vocabulary)
      throw Failure(exit_failed, fmt::format("{}: token {} is {}, expected less than the vocabulary of {}",
                                             flags.source.name(), at / width, token, grouped(vocabulary)));
    tokens.push_back(static_cast<int32_t>(token));
  }
  return tokens;
}

void show_samples(uint64_t count, const std::vector<int32_t>& all, const DataRequest& request) {
  const ExamplePrinter printer(request.tokenization);
  for (uint64_t number = 0; number < count && number * request.sequence + 1 < all.size(); ++number) {
    // includes the previous sample's last token, whose target is this sample's first
    const size_t begin = number * request.sequence;
    const Tokens tokens =
        Tokens(all).subspan(begin, std::min<size_t>(request.sequence + 1, all.size() - begin));
    std::vector<std::string> roles;
    for (size_t i = 0; i < tokens.size(); ++i)
      roles.emplace_back(
          i == 0 || (request.document_end && tokens[i - 1] == static_cast<int32_t>(*request.document_end))
              ? context_role
              : learned_role);
    tell("sample {} of tokens {} to {}: {}, {} learned\n", number + 1, begin, begin + tokens.size() - 1,
         counted(tokens.size()), grouped(count_of(roles, learned_role)));
    printer.print(tokens, roles);
  }
}

}  // namespace

void show_examples(uint64_t count, const DataFlags& flags, const DataRequest& request) {
  std::optional<Masks> masks;
  if (const std::optional<Examples> all = examples_of(flags, flags.source, request, masks))
    show_documents(count, *all, flags, request, masks ? &*masks : nullptr);
  else show_samples(count, tokens_of(flags, request), request);
}

}  // namespace command
