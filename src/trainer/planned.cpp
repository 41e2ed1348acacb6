#include "src/trainer/planned.h"

#include <utility>

#include "planner/graph/kept_rows.h"
#include "planner/plan/plan_file.h"
#include "planner/program/verify.h"
#include "src/base/hash.h"
#include "src/trainer/alternatives.h"

namespace stw {

Status check_sequence(const Model& model, int64_t sequence) {
  if (sequence >= 1 && sequence <= longest_text(model.config())) return ok();
  return Error{Code::unsupported_shape, "sequence " + std::to_string(sequence) + ": the model has " +
                                            std::to_string(longest_text(model.config())) + " positions"};
}

Result<std::shared_ptr<const Planned>> Planned::finish(const Model& model, Plan plan) {
  auto planned = std::make_shared<Planned>();
  planned->graph = build_model(model.config(), plan.request.sequence, plan.numerics);
  if (plan.decisions.keeps_rows) {
    planned->with_table_gradient = planned->graph;
    keep_rows(planned->graph, plan.request.global_batch);
  }
  STW_ASSIGN(programs, realize(planned->graph, plan));
  planned->programs = std::move(programs);
  planned->json = plan_to_json(planned->graph, plan, hash64);
  planned->report = plan_report(planned->graph, plan);
  planned->plan = std::move(plan);
  return std::shared_ptr<const Planned>(std::move(planned));
}

Result<std::shared_ptr<const Planned>> Planned::make(const Model& model, const Request& request) {
  STW_TRY(check_sequence(model, request.sequence));
  STW_TRY(check_numerics(model.config(), numerics_of(request, 32)));
  auto source = [&](const Numerics& numerics) {
    return build_model(model.config(), request.sequence, numerics);
  };
  STW_ASSIGN(plan, search(source, request, alternatives_of(model)));
  return finish(model, std::move(plan));
}

Result<std::shared_ptr<const Planned>> Planned::load(const Model& model, std::string_view json) {
  STW_ASSIGN(header, plan_header(json, hash64));
  STW_TRY(check_sequence(model, header.sequence));
  STW_TRY(check_numerics(model.config(), header.numerics));
  const Graph graph = build_model(model.config(), header.sequence, header.numerics);
  STW_ASSIGN(plan, plan_from_json(graph, json, hash64));
  return finish(model, std::move(plan));
}

Status Planned::verify() const {
  for (const Program* p : programs.all())
    STW_TRY(stw::verify(graph, programs.arena, *p, programs.arena_bytes));
  return ok();
}

}  // namespace stw
