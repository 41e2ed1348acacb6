// Logits of texts. A model that generates computes them after the last token, by prefill and decode. An
// encoder computes them for all tokens in one program, which reads several short texts at once.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "planner/base/check_in.h"
#include "src/base/numbers.h"
#include "src/trainer/texts.h"

namespace stw {

void TextRunner::reserve() {
  const auto classes = static_cast<size_t>(core_.graph().head.outputs);
  logits_.resize(classes);
  if (core_.graph().compute != Format::f32) short_logits_.resize(classes);
}

Result<const float*> TextRunner::read_logits(const Program& program, uint64_t row) {
  const Tensor& tensor = core_.graph().at(core_.graph().generate_ops.back().outputs[0]);
  std::byte* const logits = core_.execution.rows<std::byte>(program, program.logits) +
                            row * static_cast<uint64_t>(tensor.stride()) * element_bytes(tensor.format);
  if (core_.graph().compute == Format::f32) {
    if (const std::byte* there = core_.stream->on_host(logits)) return reinterpret_cast<const float*>(there);
    STW_TRY(core_.stream->download(logits_.data(), logits, logits_.size() * sizeof(float)));
    return logits_.data();
  }
  STW_TRY(core_.stream->download(short_logits_.data(), logits, short_logits_.size() * sizeof(uint16_t)));
  std::transform(short_logits_.begin(), short_logits_.end(), logits_.begin(),
                 core_.graph().compute == Format::bf16 ? from_bf16 : from_f16);
  return logits_.data();
}

Status TextRunner::take_logits(const Program& program, uint64_t first, uint64_t rows,
                               std::vector<std::byte>& raw, float* out) {
  const Tensor& tensor = core_.graph().at(core_.graph().generate_ops.back().outputs[0]);
  const uint64_t stride = static_cast<uint64_t>(tensor.stride()),
                 labels = static_cast<uint64_t>(core_.graph().head.labels()),
                 width = element_bytes(tensor.format);
  std::byte* const begin = core_.execution.rows<std::byte>(program, program.logits) + first * stride * width;
  const std::byte* from = core_.stream->on_host(begin);
  if (!from) {
    raw.resize(((rows - 1) * stride + labels) * width);
    STW_TRY(core_.stream->download(raw.data(), begin, raw.size()));
    from = raw.data();
  }
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t label = 0; label < labels; ++label) {
      const std::byte* const at = from + (row * stride + label) * width;
      uint16_t half;
      if (tensor.format == Format::f32) {
        std::memcpy(out, at, sizeof *out);
      } else {
        std::memcpy(&half, at, sizeof half);
        *out = tensor.format == Format::bf16 ? from_bf16(half) : from_f16(half);
      }
      ++out;
    }
  return ok();
}

Status TextRunner::check_tokens(const char* what, const int32_t* tokens, uint64_t count) const {
  for (uint64_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || tokens[i] >= core_.graph().vocabulary)
      return Error{Code::bad_argument, std::string(what) + ": token " + std::to_string(tokens[i]) +
                                           " is outside of the vocabulary of " +
                                           std::to_string(core_.graph().vocabulary)};
  return ok();
}

bool TextRunner::are_finite(const float* logits) const {
  return std::all_of(logits, logits + core_.graph().head.outputs, [](float x) { return std::isfinite(x); });
}

Status TextRunner::check_length(const std::string& what, uint64_t tokens) const {
  if (tokens >= 1 && tokens <= static_cast<uint64_t>(core_.sequence())) return ok();
  return Error{Code::unsupported_shape, what + ": expected 1 to " + std::to_string(core_.sequence()) +
                                            " tokens, found " + std::to_string(tokens)};
}

Status TextRunner::check_text(const std::string& what, const Text& text) const {
  STW_TRY(check_length(what, text.count));
  STW_TRY(check_tokens(what.c_str(), text.tokens, text.count));
  if (text.token_types && core_.graph().token_types == 0)
    return Error{Code::bad_argument, what + ": the model has no types of tokens"};
  for (uint64_t i = 0; text.token_types && i < text.count; ++i)
    if (const int32_t type = text.token_types[i]; type < 0 || type >= core_.graph().token_types)
      return Error{Code::bad_argument, what + ": token type " + std::to_string(type) +
                                           " is outside of the model's " +
                                           std::to_string(core_.graph().token_types)};
  return ok();
}

// Lays texts end to end in one sample and runs the program that computes all logits. Text k starts at row
// begins[k].
Status TextRunner::run_logits(std::span<const Text> texts, std::span<const uint64_t> begins) {
  check_in();
  const auto source = [&](uint64_t, const SampleRows& rows) -> Status {
    const auto tokens = rows.integers(Input::tokens), positions = rows.integers(Input::positions),
               token_types = rows.integers(Input::token_types);
    // Each row past the texts is a document of its own.
    std::fill(positions.begin(), positions.end(), 0);
    for (size_t k = 0; k < texts.size(); ++k) {
      std::copy_n(texts[k].tokens, texts[k].count, tokens.data() + begins[k]);
      if (!positions.empty())
        std::iota(positions.data() + begins[k], positions.data() + begins[k] + texts[k].count, 0);
      if (texts[k].token_types && !token_types.empty())
        std::copy_n(texts[k].token_types, texts[k].count, token_types.data() + begins[k]);
    }
    return ok();
  };
  const Program& program = core_.programs().decode;
  STW_TRY(core_.load(program, std::cref(source), 0, 1));
  return core_.stream->run(core_.execution, program);
}

Result<const float*> TextRunner::logits(const int32_t* tokens, uint64_t count) {
  STW_TRY(core_.check_ready());
  if (!core_.graph().head.row().returns_logits)
    return Error{Code::unsupported,
                 "logits: a masked language model does not give its logits; "
                 "it gives the log-probabilities of targets"};
  const Text text{tokens, count, nullptr};
  STW_TRY(check_text("logits", text));
  if (core_.graph().head.row().has_outputs_of_tokens())
    return Error{Code::unsupported,
                 core_.graph().head.row().has_labels_of_tokens()
                     ? "logits: the model labels each token; classify gives the logits of all tokens"
                     : "logits: the model looks for answers; classify gives the logits of all tokens"};
  return core_.watched(Work::generate, WorkUnit::none, 0, [&] { return make_logits(text); });
}

Result<const float*> TextRunner::make_logits(const Text& text) {
  const Computing computing(core_);
  const InPhase phase(core_.progress, TrainerPhase::generate);
  core_.begin_state();
  STW_TRY(core_.compute_tables(true));
  const float* logits = nullptr;
  if (core_.graph().head.generates) {
    STW_ASSIGN(fed, feed(text.tokens, text.count));
    logits = fed;
  } else {
    const uint64_t begin = 0;
    STW_TRY(run_logits({&text, 1}, {&begin, 1}));
    STW_ASSIGN(read, read_logits(core_.programs().decode, 0));
    logits = read;
  }
  if (!are_finite(logits)) return Error{Code::non_finite, "logits: a logit is not finite"};
  return logits;
}

Status TextRunner::classify(std::span<const Text> texts, float* out) {
  STW_TRY(core_.check_ready());
  if (core_.graph().head.labels() == 0)
    return Error{Code::unsupported, "classify: the model is no classifier"};
  for (size_t text = 0; text < texts.size(); ++text)
    STW_TRY(check_text("classify: text " + std::to_string(text), texts[text]));
  return core_.watched(Work::generate, WorkUnit::samples, texts.size(),
                       [&] { return classify_all(texts, out); });
}

Status TextRunner::classify_all(std::span<const Text> texts, float* out) {
  const Computing computing(core_);
  const InPhase phase(core_.progress, TrainerPhase::generate);
  STW_TRY(core_.compute_tables(true));
  const auto take = [&](const float* logits, size_t text) -> Status {
    if (!are_finite(logits))
      return Error{Code::non_finite,
                   "classify: the logits of text " + std::to_string(text) + " are not finite"};
    std::copy_n(logits, core_.graph().head.labels(),
                out + text * static_cast<size_t>(core_.graph().head.labels()));
    return ok();
  };
  const bool is_of_tokens = core_.graph().head.row().has_outputs_of_tokens(),
             keeps_texts_apart = core_.graph().inputs[Input::positions] >= 0;
  const uint64_t room = static_cast<uint64_t>(core_.sequence());
  const auto most = static_cast<uint64_t>(core_.graph().texts);  // texts of a sample; 0: any number
  std::vector<uint64_t> begins;
  std::vector<std::byte> raw;
  uint64_t done = 0;  // rows of `out` written so far, where each token has one
  for (size_t first = 0, end; first < texts.size(); first = end) {
    core_.begin_state();
    if (core_.graph().head.generates) {
      end = first + 1;
      STW_ASSIGN(logits, feed(texts[first].tokens, texts[first].count));
      STW_TRY(take(logits, first));
      check_in(1);
      continue;
    }
    uint64_t used = 0;
    begins.clear();
    for (end = first; end < texts.size() && used + texts[end].count <= room &&
                      (end == first || keeps_texts_apart) && (most == 0 || end - first < most);
         used += texts[end++].count)
      begins.push_back(used);
    STW_TRY(run_logits(texts.subspan(first, end - first), begins));
    if (is_of_tokens) {
      float* const begin = out + done * static_cast<uint64_t>(core_.graph().head.labels());
      STW_TRY(take_logits(core_.programs().decode, 0, used, raw, begin));
      if (!std::all_of(begin, begin + used * static_cast<uint64_t>(core_.graph().head.labels()),
                       [](float x) { return std::isfinite(x); }))
        return Error{Code::non_finite, "classify: the logits of text " + std::to_string(first) +
                                           " or of a text that was computed with it are not finite"};
      done += used;
      check_in(end - first);
      continue;
    }
    for (size_t text = first; text < end; ++text) {
      STW_ASSIGN(logits,
                 read_logits(core_.programs().decode, most > 0 ? text - first : begins[text - first]));
      STW_TRY(take(logits, text));
    }
    check_in(end - first);
  }
  return ok();
}

}  // namespace stw
