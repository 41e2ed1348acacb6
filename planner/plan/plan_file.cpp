#include "planner/plan/plan_file.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "planner/base/json.h"
#include "planner/device/profile_file.h"
#include "planner/graph/feed_forward.h"
#include "planner/graph/kept_rows.h"
#include "planner/graph/update.h"
#include "planner/plan/numerics_file.h"

namespace stw {

namespace {

constexpr const char* recompute_names[] = {"auto", "none", "full"};

std::string op_name(const Graph& graph, int op) { return graph.at(graph.ops[op].outputs[0]).name; }

uint32_t all_of(const Segment& segment) { return (1u << segment.saveable.size()) - 1; }

Json recompute_json(const Graph& graph, const Decisions& decisions) {
  Json list = Json::array();
  for (const RecomputedBlocks& run : recomputed_blocks(graph, decisions)) {
    Json names = Json::array();
    for (const std::string& name : run.tensors) names.push(name);
    list.push(Json::object().set("blocks", Json::Array{run.first, run.last}).set("tensors", names));
  }
  return list;
}

Json relaxation_json(const Relaxation& x) {
  Json json = Json::object()
                  .set("change", x.change)
                  .set("saves_bytes", x.saves_bytes)
                  .set("costs_fraction", x.costs_fraction)
                  .set("changes_numerics", x.changes_numerics)
                  .set("fits", x.fits)
                  .set("flags", x.flags)
                  .set("effect", x.effect)
                  .set("tokens_per_second", x.tokens_per_second)
                  .set("peak_bytes", x.peak_bytes)
                  .set("host_bytes", x.host_bytes);
  if (x.least_host_bytes > 0) json.set("least_host_bytes", x.least_host_bytes);
  return json;
}

Json tiles_json(const Graph& graph, const Decisions& decisions) {
  Json list = Json::array();
  for (const TiledBlocks& run : tiled_blocks(graph, decisions))
    list.push(Json::object().set("blocks", Json::Array{run.first, run.last}).set("rows", run.rows));
  return list;
}

Json offload_json(const Graph& graph, const Plan& plan) {
  Json list = Json::array();
  for (const OffloadedTensors& o : offloaded_tensors(graph, plan.decisions)) {
    Json entry = Json::object().set("tensors", offloaded_names[static_cast<int>(o.what)]);
    entry.set("blocks", o.last >= 0 ? Json::Array{0, o.last} : Json::Array{})
        .set("outside_blocks", o.others)
        .set("bytes", o.bytes);
    list.push(std::move(entry));
  }
  return list;
}

double seconds(uint64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

Json fingerprinted(Json body, Hash hash) {
  const std::string text = to_string(canonical(body), 0);
  Json out = Json::object();
  for (const auto& [key, value] : body.members()) {
    out.set(key, value);
    if (key == "version") out.set("fingerprint", hexadecimal(hash(text.data(), text.size())));
  }
  return out;
}

}  // namespace

std::string hexadecimal(uint64_t x) {
  std::string s(16, '0');
  for (size_t i = 16; i-- > 0; x >>= 4) s[i] = "0123456789abcdef"[x & 15];
  return s;
}

std::string describe(const Graph& graph) {
  std::string s = graph.architecture;
  auto add = [&](auto x) {  // the shortest exact text, in any locale
    char text[32];
    s += ' ';
    s.append(text, std::to_chars(text, text + sizeof text, x).ptr);
  };
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.role != Role::parameter) continue;
    s += '\n' + tensor.name;
    for (int i = 0; i < tensor.shape.rank; ++i) add(tensor.shape[i]);
    add(int{tensor.tied_to >= 0});
    add(int{tensor.trainable});
  }
  std::vector<bool> is_used(graph.tensors.size());
  const auto add_op = [&](const Op& op) {
    // This binding names every attribute. So a new attribute does not compile here until you decide whether
    // it changes the model.
    [[maybe_unused]] const auto& [epsilon, rms, transposed, activation, gate, value_loss, weight_offset,
                                  query_heads, kv_heads, head_dim, scale, causal, alibi, window,
                                  relative_keys, relative_queries, inverse, dropout, columns, stream] =
        op.attributes;
    s += std::string("\n") + op_row(op.kind).name;
    for (float x : {epsilon, scale, dropout}) add(x);
    for (int x : {query_heads, kv_heads, head_dim, int{rms}, int{transposed}, static_cast<int>(activation)})
      add(x);
    // Attributes that were added later appear only if they are used, so that the text of older models does
    // not change.
    if (window > 0) add(window);
    if (gate != Gate::silu) add(static_cast<int>(gate));
    if (weight_offset != 0) add(weight_offset);
    if (!causal) s += " bidirectional";
    if (alibi) s += " alibi";
    if (relative_keys) s += " relative-keys";
    if (relative_queries) s += " relative-queries";
    if (value_loss != ValueLoss::binary_cross_entropy) s += " squared";
    const bool in_block = op.segment >= 0 && graph.segments[op.segment].kind == SegmentKind::block;
    for (int t : op.inputs) {  // parameters that an earlier op uses too
      if (t < 0 || graph.at(t).role != Role::parameter) continue;
      if (in_block && is_used[t]) s += " again " + graph.at(t).name;
      is_used[t] = true;
    }
    // The residual is written as an op of its own, which it was in older versions.
    if (residual_of(op) >= 0) s += std::string("\n") + op_row(OpKind::add).name + " 0 0 0 0 0 0 0 0 0";
  };
  for (const Op& op : graph.ops) add_op(op);
  for (const Op& op : graph.table_ops) add_op(op);
  for (const int64_t setting : graph.relative.settings) add(setting);
  for (const RotaryTables& tables : graph.rotary) {
    for (float f : tables.inverse_frequencies) add(f);
    if (tables.scale != 1) add(tables.scale);
  }
  return s;
}

std::string plan_to_json(const Graph& graph, const Plan& plan, Hash hash) {
  const Request& r = plan.request;
  const DeviceProfile* device = find_device(r.device);
  const double step = seconds(plan.step_picoseconds),
               ceiling = plan.ceiling_picoseconds > 0 ? seconds(plan.ceiling_picoseconds) : step;
  const std::string model = describe(graph);
  Json body = Json::object();
  body.set("format", "stowage-plan").set("version", 1).set("fits", plan.fits);
  Json about = Json::object()
                   .set("architecture", plan.architecture)
                   .set("parameters", plan.parameters)
                   .set("trainable", plan.trainable)
                   .set("frozen_saves_bytes", frozen_savings(graph, plan.numerics))
                   .set("layers", plan.layers);
  if (graph.head.labels() > 0) about.set("labels", graph.head.labels());
  body.set("model", about.set("hash", hexadecimal(hash(model.data(), model.size()))));
  Json where = Json::object()
                   .set("name", r.device)
                   .set("title", device ? device->title : "")
                   .set("memory_bytes", r.device_memory)
                   .set("source", r.device_probed ? "probe" : "profile");
  if (r.calibrated)
    where.set(r.calibrated->is_calibrated() ? "calibration" : "figures", profile_json(*r.calibrated));
  body.set("device", where);
  body.set("request", Json::object()
                          .set("vram_bytes", r.memory_bytes)
                          .set("host_bytes", r.host_bytes)
                          .set("reserve_bytes", r.reserve_bytes ? Json(*r.reserve_bytes) : Json())
                          .set("global_batch", r.global_batch)
                          .set("sequence", r.sequence)
                          .set("threads", r.threads)
                          .set("micro_batch", r.micro_batch)
                          .set("recompute", recompute_names[static_cast<int>(r.recompute)])
                          .set("state_bits", r.state_bits));
  body.set("numerics", numerics_json(plan.numerics, plan.states_reason));
  body.set("micro_batch", plan.decisions.micro_batch).set("accumulation_steps", plan.accumulation_steps);
  body.set("last_micro_batch", plan.last_micro_batch).set("loss_chunks", plan.decisions.loss_chunks);
  body.set("recompute", recompute_json(graph, plan.decisions))
      .set("tiles", tiles_json(graph, plan.decisions));
  // Only if it is true: plans without kept rows are those of older versions.
  if (plan.decisions.keeps_rows) body.set("keeps_rows", true);
  body.set("offload", offload_json(graph, plan));
  Json bytes = Json::object();
  for (int c = 0; c < class_count; ++c) bytes.set(class_names[c], plan.bytes.of[c]);
  bytes.set("padding", plan.bytes.padding).set("arena", plan.bytes.arena).set("reserve", plan.bytes.reserve);
  bytes.set("peak", plan.bytes.peak).set("budget", plan.bytes.budget).set("host", plan.bytes.host);
  body.set("bytes", bytes);
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.sequence);
  body.set("predicted", Json::object()
                            .set("step_seconds", step)
                            .set("tokens_per_second", tokens / step)
                            .set("estimated", plan.ceiling_picoseconds > 0)
                            .set("tokens_per_second_at_ceiling", tokens / ceiling)
                            .set("recompute_fraction", seconds(plan.recompute_picoseconds) / step)
                            .set("copied_bytes", plan.copied_bytes));
  body.set("search", Json::object()
                         .set("bound_seconds", seconds(plan.bound_picoseconds))
                         .set("gap", step / seconds(plan.bound_picoseconds) - 1)
                         .set("proven", plan.fits && plan.step_picoseconds == plan.bound_picoseconds)
                         .set("unlimited_seconds", seconds(plan.unlimited_picoseconds))
                         .set("next_gib_seconds", seconds(plan.next_gib_picoseconds)));
  body.set(
      "layout",
      Json::object()
          .set("arena_bytes", plan.bytes.arena)
          .set("lower_bound_bytes", plan.layout_bound)
          .set("gap", static_cast<double>(plan.bytes.arena) / static_cast<double>(plan.layout_bound) - 1));
  body.set("minimum_vram_bytes", plan.minimum_bytes);
  if (!plan.fits) {
    Json list = Json::array();
    for (const Relaxation& x : plan.relaxations) list.push(relaxation_json(x));
    body.set("relaxations", list);
    if (!plan.shortage.empty()) body.set("shortage", plan.shortage);
  }
  return to_string(fingerprinted(std::move(body), hash), 1) + "\n";
}

namespace {

Error not_a_plan(const std::string& what) { return {Code::corrupt, "plan: " + what}; }

// Checks the text of a plan. Returns its value without the fingerprint.
Result<Json> checked(std::string_view text, Hash hash) {
  STW_ASSIGN(json, parse_json(text));
  const Json* format = json.find("format");
  if (!format || !format->as_string() || *format->as_string() != "stowage-plan")
    return not_a_plan("expected \"format\": \"stowage-plan\"");
  STW_ASSIGN(version, get_int(json, "version"));
  if (version != 1)
    return Error{Code::unsupported, "plan: expected version 1, found " + std::to_string(version)};
  STW_ASSIGN(fingerprint, get_string(json, "fingerprint"));
  Json::Object members;
  for (const auto& [key, value] : json.members())
    if (key != "fingerprint") members.emplace_back(key, value);
  Json body(std::move(members));
  const auto print_of = [&](const std::string& written) {
    return hexadecimal(hash(written.data(), written.size()));
  };
  const std::string actual = print_of(to_string(canonical(body), 0));
  // Version 0.1.0 computed the fingerprint of the text on one line.
  if (fingerprint != actual && fingerprint != print_of(to_string(body, 0)))
    return not_a_plan("it was edited: its fingerprint is " + fingerprint + ", its contents give " + actual);
  return body;
}

Result<Numerics> read_numerics(const Json& body) {
  STW_ASSIGN(object, get_object(body, "numerics"));
  return numerics_from(*object);
}

Status read_request(const Json& body, Request& r) {
  STW_ASSIGN(device, get_object(body, "device"));
  STW_ASSIGN(name, get_string(*device, "name"));
  STW_ASSIGN(memory, get_uint(*device, "memory_bytes"));
  STW_ASSIGN(origin, get_string(*device, "source"));
  STW_ASSIGN(request, get_object(body, "request"));
  STW_ASSIGN(vram, get_uint(*request, "vram_bytes"));
  STW_ASSIGN(host, get_uint(*request, "host_bytes"));
  STW_ASSIGN(batch, get_int(*request, "global_batch"));
  STW_ASSIGN(sequence, get_int(*request, "sequence"));
  STW_ASSIGN(threads, get_int(*request, "threads"));
  STW_ASSIGN(micro, get_int(*request, "micro_batch"));
  STW_ASSIGN(recompute, get_string(*request, "recompute"));
  STW_ASSIGN(bits, get_int(*request, "state_bits"));
  const DeviceProfile* embedded = find_device(name);
  const bool is_gpu = embedded && embedded->cuda;
  if (batch < 1 || batch > INT32_MAX || sequence < 1 || threads < (is_gpu ? 0 : 1) ||
      threads > (is_gpu ? 0 : 1024))
    return not_a_plan("its request has a batch, sequence or number of threads out of range");
  if (micro < 0 || (bits != 0 && bits != 8 && bits != 32))
    return not_a_plan("its request has a micro-batch or states out of range");
  r.device = name;
  const Json* calibration = device->find("calibration");
  if (const Json* own = calibration ? calibration : device->find("figures")) {
    STW_ASSIGN(profile, profile_from(*own));
    if (profile.name != name) return not_a_plan("its profile is for another device");
    r.calibrated = profile;
  }
  r.device_memory = memory;
  r.device_probed = origin == "probe";
  r.memory_bytes = vram;
  r.host_bytes = host;
  if (const Json* reserve = request->find("reserve_bytes"); reserve && !reserve->is_null()) {
    STW_ASSIGN(bytes, get_uint(*request, "reserve_bytes"));
    r.reserve_bytes = bytes;
  }
  r.global_batch = batch;
  r.sequence = sequence;
  r.threads = static_cast<int>(threads);
  r.micro_batch = micro;
  r.state_bits = static_cast<int>(bits);
  const auto policy = named<Recompute>(recompute_names, recompute);
  if (!policy) return not_a_plan("unknown recompute \"" + recompute + "\"");
  r.recompute = *policy;
  return ok();
}

// The segments of the blocks that an entry names: its "blocks" are the first and the last of them. `next`:
// the first block that the entry may name, which is the one after all blocks of earlier entries.
Result<std::vector<size_t>> blocks_of(const Graph& graph, const Json& entry, int64_t& next) {
  STW_ASSIGN(blocks, get_array(entry, "blocks"));
  if (blocks->elements().size() != 2 || !blocks->elements()[0].as_int() || !blocks->elements()[1].as_int())
    return not_a_plan("\"blocks\" must be two numbers");
  const int64_t first = *blocks->elements()[0].as_int(), last = *blocks->elements()[1].as_int();
  if (first < next || last < first || last >= graph.blocks())
    return not_a_plan("it names blocks that the model does not have, or names a block twice");
  next = last + 1;
  std::vector<size_t> list;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    if (segment.kind == SegmentKind::block && segment.block >= first && segment.block <= last)
      list.push_back(s);
  }
  return list;
}

// Plans of older versions have no tiles.
Status read_tiles(const Graph& graph, const Json& body, Decisions& decisions) {
  if (!body.find("tiles")) return ok();
  STW_ASSIGN(list, get_array(body, "tiles"));
  if (!list->elements().empty()) decisions.tile_rows.assign(graph.segments.size(), 0);
  int64_t next = 0;
  for (const Json& entry : list->elements()) {
    STW_ASSIGN(rows, get_int(entry, "rows"));
    const auto no_tiles = [&] {
      return not_a_plan("it cannot be cut into tiles of " + std::to_string(rows) + " rows");
    };
    if (rows < 1) return no_tiles();
    STW_ASSIGN(segments, blocks_of(graph, entry, next));
    for (size_t s : segments) {
      if (!may_tile(graph, graph.segments[s], decisions.saved[s]))
        return not_a_plan("a tiled block keeps tensors that lie inside of the tiles");
      const int64_t of_sample = rows_in_tiles(graph, graph.segments[s]);
      const auto all = static_cast<int64_t>(
          size_mul(static_cast<uint64_t>(decisions.micro_batch), static_cast<uint64_t>(of_sample)));
      if (tiling_of(all, of_sample, rows).tiles() > most_tiles ||
          rows % tile_unit(graph, graph.segments[s].feed_forward) != 0)
        return no_tiles();
      decisions.tile_rows[s] = rows;
    }
  }
  return ok();
}

Status read_decisions(const Graph& graph, const Json& body, Plan& plan) {
  STW_ASSIGN(micro, get_int(body, "micro_batch"));
  STW_ASSIGN(chunks, get_int(body, "loss_chunks"));
  if (micro < 1 || micro > plan.request.global_batch || chunks < 1 || chunks > largest_loss_chunks)
    return not_a_plan("its micro-batch or its number of loss chunks is impossible");
  if (plan.numerics.fused_update && micro != plan.request.global_batch)
    return not_a_plan("a fused update has one micro-step, its micro-batch is " + std::to_string(micro));
  plan.decisions.micro_batch = micro;
  plan.decisions.loss_chunks = chunks;
  plan.accumulation_steps = (plan.request.global_batch + micro - 1) / micro;
  plan.last_micro_batch = plan.request.global_batch - (plan.accumulation_steps - 1) * micro;
  for (const Segment& s : graph.segments)
    plan.decisions.saved.push_back(s.kind == SegmentKind::block ? all_of(s) : ~0u);
  STW_ASSIGN(list, get_array(body, "recompute"));
  int64_t next = 0;
  for (const Json& entry : list->elements()) {
    STW_ASSIGN(names, get_array(entry, "tensors"));
    STW_ASSIGN(segments, blocks_of(graph, entry, next));
    for (size_t s : segments) {
      const Segment& segment = graph.segments[s];
      for (const Json& name : names->elements()) {
        size_t bit = 0;
        while (bit < segment.saveable.size() && !(name == Json(op_name(graph, segment.saveable[bit])))) ++bit;
        if (bit == segment.saveable.size())
          return not_a_plan("its blocks have no tensor " + to_string(name, 0));
        plan.decisions.saved[s] &= ~(1u << bit);
      }
    }
  }
  if (body.find("keeps_rows")) {
    STW_ASSIGN(keeps_rows, get_bool(body, "keeps_rows"));
    if (keeps_rows && !may_keep_rows(graph, plan.request.global_batch))
      return not_a_plan("it keeps rows of the embedding's gradient, which the model does not allow");
    plan.decisions.keeps_rows = keeps_rows;
  }
  return read_tiles(graph, body, plan.decisions);
}

Status read_offload(const Graph& graph, const Json& body, Plan& plan) {
  const DeviceProfile* device = find_device(plan.request.device);
  if (!device) return not_a_plan("it is for an unknown device \"" + plan.request.device + "\"");
  Offload& offload = plan.decisions.offload;
  STW_ASSIGN(list, get_array(body, "offload"));
  for (const Json& entry : list->elements()) {
    STW_ASSIGN(name, get_string(entry, "tensors"));
    STW_ASSIGN(blocks, get_array(entry, "blocks"));
    STW_ASSIGN(others, get_bool(entry, "outside_blocks"));
    int kind = 0;
    while (kind < offloaded_count && name != offloaded_names[kind]) ++kind;
    if (kind == offloaded_count) return not_a_plan("it offloads \"" + name + "\", which cannot be offloaded");
    int64_t parts = 0;
    if (!blocks->elements().empty()) {
      const Json& last = blocks->elements().back();
      if (blocks->elements().size() != 2 || !(blocks->elements()[0] == Json(0)) || !last.as_int() ||
          *last.as_int() < 0 || *last.as_int() >= graph.blocks())
        return not_a_plan(
            "the blocks that it offloads must be a range from the first block to a block of the model");
      parts = *last.as_int() + 1;
    }
    if (others && parts < graph.blocks())
      return not_a_plan("it offloads tensors outside of blocks, but not those of all blocks");
    offload.parts[kind] = static_cast<int>(parts) + others;
  }
  if (plan.numerics.fused_update && offload.any())
    return not_a_plan("it offloads tensors, which a fused update does not allow");
  offload.overlap = device->cuda && offload.any();
  return ok();
}

// Plans of older versions have no range.
Status read_ceiling(const Json& predicted, double step, Plan& plan) {
  if (!predicted.find("estimated")) return ok();
  STW_ASSIGN(estimated, get_bool(predicted, "estimated"));
  STW_ASSIGN(low, get_double(predicted, "tokens_per_second"));
  STW_ASSIGN(high, get_double(predicted, "tokens_per_second_at_ceiling"));
  if (!(low > 0) || !(high >= low)) return not_a_plan("its range of tokens per second is impossible");
  if (estimated) plan.ceiling_picoseconds = static_cast<uint64_t>(step * low / high * 1e12 + 0.5);
  return ok();
}

Status read_figures(const Json& body, Plan& plan) {
  STW_ASSIGN(bytes, get_object(body, "bytes"));
  for (int c = 0; c < class_count; ++c) {
    STW_ASSIGN(n, get_uint(*bytes, class_names[c]));
    plan.bytes.of[c] = n;
  }
  const std::pair<const char*, uint64_t*> fields[] = {
      {"padding", &plan.bytes.padding}, {"arena", &plan.bytes.arena},   {"reserve", &plan.bytes.reserve},
      {"peak", &plan.bytes.peak},       {"budget", &plan.bytes.budget}, {"host", &plan.bytes.host}};
  for (const auto& [name, field] : fields) {
    STW_ASSIGN(n, get_uint(*bytes, name));
    *field = n;
  }
  STW_ASSIGN(predicted, get_object(body, "predicted"));
  STW_ASSIGN(step, get_double(*predicted, "step_seconds"));
  STW_ASSIGN(fraction, get_double(*predicted, "recompute_fraction"));
  STW_ASSIGN(copied, get_uint(*predicted, "copied_bytes", 0));
  STW_TRY(read_ceiling(*predicted, step, plan));
  plan.copied_bytes = copied;
  STW_ASSIGN(search, get_object(body, "search"));
  STW_ASSIGN(bound, get_double(*search, "bound_seconds"));
  STW_ASSIGN(unlimited, get_double(*search, "unlimited_seconds"));
  STW_ASSIGN(next_gib, get_double(*search, "next_gib_seconds"));
  STW_ASSIGN(layout, get_object(body, "layout"));
  STW_ASSIGN(lower, get_uint(*layout, "lower_bound_bytes"));
  for (double x : {step, bound, unlimited, next_gib, step * fraction})
    if (!(x >= 0) || x * 1e12 >= static_cast<double>(size_limit))
      return not_a_plan("its predicted times are impossible");
  if (plan.bytes.peak != size_add(plan.bytes.arena, plan.bytes.reserve))
    return not_a_plan("its peak is not the sum of arena and reserve");
  uint64_t parts = plan.bytes.padding;
  for (const uint64_t part : plan.bytes.of) parts = size_add(parts, part);
  if (parts != plan.bytes.arena) return not_a_plan("the bytes of its classes do not add up to its arena");
  plan.step_picoseconds = static_cast<uint64_t>(step * 1e12 + 0.5);
  plan.recompute_picoseconds = static_cast<uint64_t>(step * fraction * 1e12 + 0.5);
  plan.bound_picoseconds = static_cast<uint64_t>(bound * 1e12 + 0.5);
  plan.unlimited_picoseconds = static_cast<uint64_t>(unlimited * 1e12 + 0.5);
  plan.next_gib_picoseconds = static_cast<uint64_t>(next_gib * 1e12 + 0.5);
  plan.layout_bound = lower;
  if (plan.step_picoseconds == 0 || plan.bound_picoseconds == 0 || lower == 0)
    return not_a_plan("its predicted times or bounds are 0");
  return ok();
}

}  // namespace

std::string plan_fingerprint(const std::string& json) {
  auto parsed = parse_json(json);
  const Json* f = parsed ? parsed->find("fingerprint") : nullptr;
  return f && f->as_string() ? *f->as_string() : std::string();
}

namespace {

Result<PlanHeader> read_header(const Json& body) {
  STW_ASSIGN(numerics, read_numerics(body));
  STW_ASSIGN(request, get_object(body, "request"));
  STW_ASSIGN(sequence, get_int(*request, "sequence"));
  return PlanHeader{sequence, numerics};
}

Result<Plan> read_plan(const Graph& graph, const Json& body, Hash hash) {
  Plan plan;
  STW_ASSIGN(numerics, read_numerics(body));
  plan.numerics = numerics;
  STW_TRY(read_request(body, plan.request));
  STW_ASSIGN(model, get_object(body, "model"));
  STW_ASSIGN(model_hash, get_string(*model, "hash"));
  const std::string text = describe(graph);
  if (const std::string mine = hexadecimal(hash(text.data(), text.size())); mine != model_hash)
    return not_a_plan("it is for another model: expected model hash " + mine + ", found " + model_hash);
  plan.architecture = graph.architecture;
  plan.parameters = graph.parameter_count();
  plan.trainable = graph.trainable_count();
  plan.layers = graph.blocks();
  static_cast<RequestedNumerics&>(plan.request) = numerics;
  plan.request.kernels = numerics.kernels;
  plan.request.fast = !numerics.exact;
  // The request of a plan must be valid, too.
  if (const Status status = check(plan.request); !status) return not_a_plan(status.error().message);
  STW_ASSIGN(fits, get_bool(body, "fits"));
  plan.fits = fits;
  STW_ASSIGN(minimum, get_uint(body, "minimum_vram_bytes", 0));
  plan.minimum_bytes = minimum;
  STW_ASSIGN(numerics_object, get_object(body, "numerics"));
  STW_ASSIGN(reason, get_string(*numerics_object, "states_reason", ""));
  plan.states_reason = reason;
  STW_TRY(read_decisions(graph, body, plan));
  STW_TRY(read_offload(graph, body, plan));
  STW_TRY(read_figures(body, plan));
  if (plan.fits && plan.bytes.peak > plan.bytes.budget) return not_a_plan("its peak exceeds its budget");
  return plan;
}

// The text is as a planner wrote it, so what cannot be used belongs to another model or version.
template <class T>
Result<T> of_this_model(Result<T> read) {
  if (read || read.error().code != Code::corrupt) return read;
  Error error = read.error();
  error.code = Code::bad_state;
  return error;
}

}  // namespace

Result<PlanHeader> plan_header(std::string_view json, Hash hash) {
  STW_ASSIGN(body, checked(json, hash));
  return of_this_model(read_header(body));
}

Result<Plan> plan_from_json(const Graph& graph, std::string_view json, Hash hash) {
  STW_ASSIGN(body, checked(json, hash));
  return of_this_model(read_plan(graph, body, hash));
}

}  // namespace stw
