#include <string_view>

#include "src/api/boundary.h"

#include "kernels/contract/sizes.h"
#include "src/files/file.h"

using namespace stw;

namespace {

bool has_ids(const stw_dataset_options& o) {
  const std::string_view path = o.path;
  return o.tokenizer == STW_TOKENIZER_IDS ||
         (o.tokenizer == STW_TOKENIZER_AUTO && (path.ends_with(".bin") || path.ends_with(".npy")));
}

Status bad(std::string message) { return Error{Code::bad_argument, "dataset: " + std::move(message)}; }

Status check_paths_and_sizes(const stw_dataset_options& o) {
  if (!o.path) return bad("path is NULL");
  if (o.vocabulary == 0 || o.vocabulary > INT32_MAX) return bad("vocabulary must be 1 to 2147483647");
  if (o.sequence == 0 || o.sequence > INT32_MAX) return bad("sequence must be 1 to 2147483647");
  if (o.tokenizer > STW_TOKENIZER_IDS) return bad("unknown tokenizer");
  STW_TRY(api::check_mask(o.set_mask, STW_SET_DOCUMENT_END | STW_SET_HELD_OUT | STW_SET_DATASET_SEED,
                          "dataset options"));
  if (o.pairs > 1) return bad("pairs must be 0 or 1");
  if (o.reference && !*o.reference) return bad("reference is empty");
  if (o.marks && !*o.marks) return bad("marks is empty");
  return ok();
}

Status check_labels(const stw_dataset_options& o) {
  if (o.labels && !*o.labels) return bad("labels is empty");
  if (!o.labels && o.label_count != 0) return bad("a label_count without labels");
  if (o.task > task_count)
    return bad("task is " + std::to_string(o.task) + ", expected 0 to " + std::to_string(task_count));
  if (o.task != STW_TASK_AUTOMATIC && !o.labels) return bad("a task without labels");
  if (o.task != STW_TASK_AUTOMATIC && !task_row(static_cast<Task>(o.task - 1)).has_labels())
    return bad(std::string("the task ") + task_row(static_cast<Task>(o.task - 1)).name + " has no labels");
  return ok();
}

Status check_masking_and_order(const stw_dataset_options& o) {
  if (o.mask_whole_words > 1) return bad("mask_whole_words must be 0 or 1");
  if (o.mask_rate == 0 && (o.mask_token != 0 || o.token_kinds || o.mask_whole_words != 0))
    return bad("mask_token, token_kinds and mask_whole_words are for a mask_rate");
  if (o.sequential > 1) return bad("sequential must be 0 or 1");
  if (o.token_type > STW_TOKEN_TYPE_INT64)
    return bad("token_type is " + std::to_string(o.token_type) + ", expected 0 to 4");
  if (!has_ids(o) && o.token_type != STW_TOKEN_TYPE_AUTO)
    return bad("token_type is for files of ids, but the file is text");
  return ok();
}

// The library's options for checked options of the C API.
DatasetOptions options_of(const stw_dataset_options& o) {
  DatasetOptions d;
  d.path = o.path;
  if (o.marks) d.marks_path = o.marks;
  if (o.labels) d.labels_path = o.labels;
  if (o.reference) d.reference_path = o.reference;
  d.vocabulary = static_cast<int64_t>(o.vocabulary);
  d.sequence = static_cast<int64_t>(o.sequence);
  constexpr TokenFormat formats[] = {TokenFormat::ids, TokenFormat::uint16, TokenFormat::uint32,
                                     TokenFormat::int32, TokenFormat::int64};
  d.format = has_ids(o) ? formats[o.token_type] : TokenFormat::bytes;
  if (const auto end = api::value_if_set(o.set_mask, STW_SET_DOCUMENT_END, o.document_end))
    d.document_end = static_cast<int64_t>(std::min<uint64_t>(*end, INT32_MAX));
  if (o.task != STW_TASK_AUTOMATIC) d.task = static_cast<Task>(o.task - 1);
  d.label_count = static_cast<int64_t>(std::min<uint64_t>(o.label_count, uint64_t{INT32_MAX} + 1));
  d.pairs = o.pairs != 0;
  d.documents = o.texts;
  d.masking.rate = o.mask_rate;
  d.masking.token = static_cast<int64_t>(std::min<uint64_t>(o.mask_token, INT32_MAX));
  if (o.token_kinds) d.masking.kinds.assign(o.token_kinds, o.token_kinds + o.vocabulary);
  d.masking.whole_words = o.mask_whole_words != 0;
  if (const auto share = api::value_if_set(o.set_mask, STW_SET_HELD_OUT, o.held_out))
    d.evaluation_fraction = *share;
  d.sequential = o.sequential != 0;
  return d;
}

Result<Dataset> open_watched(const DatasetOptions& d, stw_watch* watch) {
  uint64_t bytes = 0;  // Bytes to read. Dataset::open() refuses missing files.
  for (const std::string* file : {&d.path, &d.marks_path, &d.labels_path, &d.reference_path})
    if (auto found = file->empty() ? Result<File>(Error{}) : File::open(*file))
      bytes = size_add(bytes, found->size());
  const LongCall call({Work::open_dataset, WorkUnit::bytes, 0, bytes, 0},
                      "dataset: its opening was cancelled", api::watch_of(watch));
  return Dataset::open(d);
}

}  // namespace

extern "C" {

stw_status stw_dataset_open(stw_dataset** out, const stw_dataset_options* options,
                            stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!out) return api::fail(error, Code::bad_argument, "out is NULL");
    *out = nullptr;
    stw_dataset_options o;
    STW_API_TRY(api::read_options(options, o, "dataset options", false));
    STW_API_TRY(check_paths_and_sizes(o));
    STW_API_TRY(check_labels(o));
    STW_API_TRY(check_masking_and_order(o));
    const DatasetOptions d = options_of(o);
    auto dataset = open_watched(d, o.watch);
    STW_API_TRY(dataset);
    STW_API_TRY(dataset->check_windows(
        d.evaluation_fraction == 1 ? Dataset::Part::evaluation : Dataset::Part::training, d.sequence));
    *out = new stw_dataset{std::move(*dataset),
                           api::seed_or_default(o.set_mask, STW_SET_DATASET_SEED, o.seed), d.sequence,
                           static_cast<uint32_t>(has_ids(o) ? STW_TOKENIZER_IDS : STW_TOKENIZER_BYTE)};
    return STW_OK;
  });
}

void stw_dataset_close(stw_dataset* dataset) STW_NOEXCEPT {
  const api::Entry entry;
  delete dataset;
}

stw_status stw_dataset_query(const stw_dataset* dataset, stw_dataset_info* out) STW_NOEXCEPT {
  if (!dataset || !out) return STW_BAD_ARGUMENT;
  stw_dataset_info info{};
  info.tokenizer = dataset->tokenizer;
  info.training_tokens = dataset->dataset.tokens(Dataset::Part::training);
  info.evaluation_tokens = dataset->dataset.tokens(Dataset::Part::evaluation);
  info.training_samples = dataset->dataset.training_windows();
  info.evaluation_samples = dataset->dataset.evaluation_windows();
  info.content_hash = dataset->dataset.content_hash();
  return api::write_info(info, out);
}

}  // extern "C"
