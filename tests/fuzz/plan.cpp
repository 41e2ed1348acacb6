// Fuzzes plan files. An input changes a plan that the search made (changes.h). The plan gets a matching
// fingerprint and the sizes of its programs. The verifier, which is independent of the planner, accepts every
// plan that loads, and writing and reading it gives the same plan.
#include "planner/plan/plan_file.h"

#include "changes.h"
#include "input.h"
#include "model.h"
#include "src/trainer/planned.h"
#include "tests/planner/plan/forged_plan.h"
#include "tests/small_configs.h"

namespace {

using namespace stw;

Json plan_of(const Model& model) {
  Request request;
  request.memory_bytes = uint64_t{1} << 30;
  request.global_batch = 5;
  request.sequence = 40;
  request.threads = 1;
  return *parse_json((*Planned::make(model, request))->json);
}

// Loads a plan. If it is refused for the sizes of its programs, takes the sizes from the error and loads it
// again.
Result<std::shared_ptr<const Planned>> load(const Model& model, Json plan) {
  for (int tries = 0;; ++tries) {
    auto loaded = Planned::load(model, testing_tools::with_fingerprint(plan));
    if (loaded || tries == 3) return loaded;
    const std::string& message = loaded.error().message;
    const bool arena = message.find("its arena has") != std::string::npos,
               host = message.find("in host memory, its programs") != std::string::npos;
    if (!arena && !host) return loaded;
    const size_t end = std::min(message.find(": it was made"), message.size());
    const auto bytes = static_cast<int64_t>(std::stoull(message.substr(message.find_last_of(' ', end) + 1)));
    plan = testing_tools::with_value(plan, {"bytes", arena ? "arena" : "host"}, bytes);
    if (arena) plan = testing_tools::with_value(plan, {"bytes", "peak"}, bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const Model> model = fuzz::model_of(testing_tools::small_llama());
  static const Json written = plan_of(*model);
  const auto changes = parse_json({reinterpret_cast<const char*>(data), size});
  if (!changes || !changes->is_object()) return 0;
  const auto planned = load(*model, fuzz::changed(written, *changes));
  if (!planned) return 0;
  fuzz::require(bool((*planned)->verify()), "the judge takes a plan that is taken");
  const auto again = Planned::load(*model, (*planned)->json);
  fuzz::require(bool(again), "a plan that is written is taken");
  fuzz::require((*again)->report == (*planned)->report, "a plan that is written is read alike");
  return 0;
}
