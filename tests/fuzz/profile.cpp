// Fuzzes device profiles. An input changes a calibrated profile (changes.h). An accepted profile is written
// and read with the same result, and the verifier accepts the plans that are made with it.
#include "planner/device/profile_file.h"

#include "changes.h"
#include "input.h"
#include "model.h"
#include "src/trainer/planned.h"
#include "tests/planner/device/calibrated_profiles.h"
#include "tests/small_configs.h"

using namespace stw;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const Model> model = fuzz::model_of(testing_tools::small_gpt2());
  static const Json written = profile_json(testing_tools::random_profile("cpu", 1));
  const auto changes = parse_json({reinterpret_cast<const char*>(data), size});
  if (!changes || !changes->is_object()) return 0;
  const auto profile = profile_from(fuzz::changed(written, *changes));
  if (!profile) return 0;
  const std::string text = profile_to_json(*profile);
  const auto again = profile_from_json(text);
  fuzz::require(again && profile_to_json(*again) == text, "a profile that is written is read alike");
  Request request;
  request.device = profile->name;
  request.calibrated = *profile;
  request.memory_bytes = uint64_t{1} << 33;
  request.global_batch = 2;
  request.sequence = 40;
  request.threads = profile->cuda ? 0 : 1;
  const auto planned = Planned::make(*model, request);
  if (!planned) return 0;
  if ((*planned)->plan.fits) {
    fuzz::require(bool((*planned)->verify()), "the judge takes a plan that was made");
    fuzz::require(bool(Planned::load(*model, (*planned)->json)), "a plan that is written is taken");
  }
  return 0;
}
