// A plan with the graph of its numerics and sequence length, and its programs.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "planner/plan/plan.h"
#include "src/weights/model.h"

namespace stw {

struct Planned {
  Plan plan;
  Graph graph;
  std::optional<Graph> with_table_gradient;  // the graph before keep_rows changed it, if it did (kept_rows.h)
  Programs programs;
  std::string json, report;

  // Errors: those of search(). A plan that does not fit its budget is no error.
  static Result<std::shared_ptr<const Planned>> make(const Model& model, const Request& request);
  static Result<std::shared_ptr<const Planned>> load(const Model& model, std::string_view json);
  // Runs the independent verifier on all programs.
  Status verify() const;

 private:
  static Result<std::shared_ptr<const Planned>> finish(const Model& model, Plan plan);
};

// Errors: unsupported_shape where the model has fewer positions.
Status check_sequence(const Model& model, int64_t sequence);

}  // namespace stw
