#include "planner/graph/head.h"
#include "src/api/boundary.h"
#include "src/base/numbers.h"
#include "src/models/heads/labels.h"
#include "src/weights/merge.h"

using namespace stw;

static_assert(STW_TASK_LANGUAGE_MODEL == static_cast<uint32_t>(stw::Task::language_model) + 1 &&
              STW_TASK_TOKEN_LABEL == static_cast<uint32_t>(stw::Task::token_label) + 1 &&
              STW_TASK_SPANS == static_cast<uint32_t>(stw::Task::spans) + 1 &&
              STW_TASK_SPANS == stw::task_count);

namespace {

Result<Adapters> adapters_of(const stw_model_options& o) {
  Adapters a;
  if (o.adapter_flags & ~uint32_t{STW_ADAPTER_RANK_STABILISED})
    return Error{Code::bad_argument, "model options.adapter_flags has bits that this library does not know"};
  if (o.adapter_rank == 0) {
    if (o.adapter_targets || o.adapter_flags || o.adapter_alpha != 0 || o.adapter_dropout != 0)
      return Error{Code::bad_argument, "model: settings of new adapters, without an adapter_rank"};
    return a;
  }
  a.rank = o.adapter_rank;
  a.alpha = o.adapter_alpha != 0 ? as_written(o.adapter_alpha) : 2.0 * o.adapter_rank;
  a.dropout = as_written(o.adapter_dropout);
  a.rank_stabilised = o.adapter_flags & STW_ADAPTER_RANK_STABILISED;
  const std::string_view targets = o.adapter_targets ? o.adapter_targets : all_targets;
  for (size_t at = 0; at <= targets.size();) {
    const size_t end = std::min(targets.find(',', at), targets.size());
    if (end == at)
      return Error{Code::bad_argument,
                   "model: adapter_targets: expected names with a comma between each, found \"" +
                       std::string(targets) + "\""};
    a.targets.emplace_back(targets.substr(at, end - at));
    at = end + 1;
  }
  return a;
}

}  // namespace

extern "C" {

stw_status stw_model_create(stw_model** out, const stw_model_options* options,
                            stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!out) return api::fail(error, Code::bad_argument, "out is NULL");
    *out = nullptr;
    stw_model_options o;
    STW_API_TRY(api::read_options(options, o, "model options", false));
    STW_API_TRY(api::check_mask(o.set_mask, STW_SET_DROPOUT | STW_SET_MODEL_SEED, "model options"));
    STW_API_TRY(api::check_reserved(o.reserved, "model options"));
    if (o.new_head > 1)
      return api::fail(error, Error{Code::bad_argument, "model: new_head is " + std::to_string(o.new_head) +
                                                            ", expected 0 or 1"});
    if (o.new_head && o.label_count == 0 && o.task != STW_TASK_SPANS)
      return api::fail(error, Code::bad_argument, "model: new_head needs a label_count");
    ModelSource source;
    if (o.task > task_count)
      return api::fail(error, Error{Code::bad_argument, "model: task is " + std::to_string(o.task) +
                                                            ", expected 0 to " + std::to_string(task_count)});
    if (o.task != STW_TASK_AUTOMATIC) source.task = static_cast<Task>(o.task - 1);
    if ((o.source != nullptr) == (o.config_json != nullptr))
      return api::fail(error, Code::bad_argument, "model: give either source or config_json");
    if (o.source) source.source = o.source;
    if (o.config_json && o.config_json_size > largest_config)
      return api::fail(error, Error{Code::bad_argument,
                                    "model: config_json_size is " + std::to_string(o.config_json_size) +
                                        ", expected at most " + std::to_string(largest_config)});
    if (o.config_json) source.config_json.assign(o.config_json, o.config_json_size);
    if (o.source && source.source.empty())
      return api::fail(error, Code::bad_argument, "model: source is empty");
    if (o.weights) source.weights = o.weights;
    source.seed = api::seed_or_default(o.set_mask, STW_SET_MODEL_SEED, o.seed);
    if (const auto rate = api::value_if_set(o.set_mask, STW_SET_DROPOUT, o.dropout)) source.dropout = *rate;
    if (o.adapter) source.adapter = o.adapter;
    if (o.adapter && source.adapter.empty())
      return api::fail(error, Code::bad_argument, "model: adapter is empty");
    auto adapters = adapters_of(o);
    STW_API_TRY(adapters);
    source.adapters = *adapters;
    if (o.label_names && o.label_count == 0)
      return api::fail(error, Code::bad_argument, "model: label_names without a label_count");
    const size_t least = least_labels(source.task.value_or(Task::label));
    if (o.label_count > 0 && (o.label_count < least || o.label_count > largest_label_count))
      return api::fail(error,
                       Error{Code::bad_argument, "model: label_count is " + std::to_string(o.label_count) +
                                                     ", expected " + std::to_string(least) + " to " +
                                                     std::to_string(largest_label_count)});
    source.label_count = o.label_count;
    source.new_head = o.new_head != 0;
    for (size_t i = 0; o.label_names && i < o.label_count; ++i) {
      if (!o.label_names[i])
        return api::fail(
            error, Error{Code::bad_argument, "model: label_names: name " + std::to_string(i) + " is NULL"});
      source.labels.emplace_back(o.label_names[i]);
    }
    auto model = Model::open(source);
    STW_API_TRY(model);
    std::string config = config_text((*model)->config().json);
    *out = new stw_model{std::move(*model), std::move(config)};
    return STW_OK;
  });
}

void stw_model_destroy(stw_model* model) STW_NOEXCEPT {
  const api::Entry entry;
  delete model;
}

stw_status stw_model_query(const stw_model* model, stw_model_info* out) STW_NOEXCEPT {
  return api::guard(nullptr, [&]() -> stw_status {
    if (!model || !out) return STW_BAD_ARGUMENT;
    const Model& m = *model->model;
    stw_model_info info{};
    info.layers = static_cast<uint32_t>(m.config().layers);
    info.parameters = m.graph().parameter_count();
    info.trainable = m.graph().trainable_count();
    info.vocabulary = static_cast<uint64_t>(m.config().vocabulary);
    info.positions = static_cast<uint64_t>(longest_text(m.config()));
    info.has_weights = m.has_weights();
    info.width = static_cast<uint32_t>(m.config().width);
    api::copy_text(info.architecture, architecture_of(m.config()).model_type);
    info.adapter_rank = static_cast<uint32_t>(m.config().adapters.rank);
    info.has_codes = m.has_codes();
    info.labels = m.config().labels.size();
    info.padding_token = padding_token(m.config().json, m.config().vocabulary);
    info.generates = !architecture_of(m.config()).is_encoder;
    info.token_types = static_cast<uint32_t>(m.config().token_types);
    info.task = static_cast<uint32_t>(m.config().task) + 1;
    info.head_is_new = m.has_drawn_head();
    info.file_layers = static_cast<uint64_t>(m.layers_in_files());
    return api::write_info(info, out);
  });
}

const char* stw_model_label_at(const stw_model* model, size_t index) STW_NOEXCEPT {
  if (!model || index >= model->model->config().labels.size()) return nullptr;
  return model->model->config().labels[index].c_str();
}

const char* stw_model_config(const stw_model* model) STW_NOEXCEPT {
  return model ? model->config.c_str() : nullptr;
}

size_t stw_model_tensor_count(const stw_model* model) STW_NOEXCEPT {
  return model ? model->model->parameters().size() : 0;
}

stw_status stw_model_tensor_at(const stw_model* model, size_t index, stw_tensor_info* out) STW_NOEXCEPT {
  if (!model || !out || index >= model->model->parameters().size()) return STW_BAD_ARGUMENT;
  const Tensor& t = model->model->graph().at(model->model->parameters()[index]);
  stw_tensor_info info{};
  info.ndim = static_cast<uint32_t>(t.shape.rank);
  info.name = t.name.c_str();
  for (int i = 0; i < t.shape.rank; ++i) info.shape[i] = t.shape[i];
  info.elements = t.shape.elements();
  return api::write_info(info, out);
}

stw_status stw_model_tensor_find(const stw_model* model, const char* name, size_t* index) STW_NOEXCEPT {
  if (!model || !name || !index) return STW_BAD_ARGUMENT;
  for (size_t i = 0; i < model->model->parameters().size(); ++i) {
    if (model->model->graph().at(model->model->parameters()[i]).name != name) continue;
    *index = i;
    return STW_OK;
  }
  return STW_BAD_ARGUMENT;
}

stw_status stw_model_export(const stw_model* model, const char* folder, stw_error* error) STW_NOEXCEPT {
  return stw_model_export_watched(model, folder, nullptr, error);
}

stw_status stw_model_export_watched(const stw_model* model, const char* folder, stw_watch* watch,
                                    stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!model || !folder) return api::fail(error, Code::bad_argument, "model or folder is NULL");
    const LongCall call({Work::export_model, WorkUnit::bytes, 0, merged_bytes(*model->model), 0},
                        "model: its export was cancelled", api::watch_of(watch), nullptr,
                        EarlierCancel::waits);
    STW_API_TRY(write_merged(*model->model, folder));
    return STW_OK;
  });
}

const char* stw_model_preset_at(size_t index) STW_NOEXCEPT { return preset_name(index); }

}  // extern "C"
