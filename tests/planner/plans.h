// Plans of whole models. Each is checked against the promises of every plan.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "src/trainer/planned.h"
#include "tests/src/small_trainer.h"

namespace stw::testing_tools {

inline std::shared_ptr<const Model> open(const std::string& preset_or_json, size_t labels = 0,
                                         const Adapters& adapters = {}) {
  ModelSource source;
  source.adapters = adapters;
  source.label_count = labels;
  (preset_or_json.starts_with("{") ? source.config_json : source.source) = preset_or_json;
  return open_model(source);
}

inline Request request(int64_t batch, int64_t sequence, uint64_t bytes = uint64_t{1} << 40) {
  Request r = request_for(batch, sequence, 2);
  r.memory_bytes = bytes;
  return r;
}

inline std::shared_ptr<const Planned> make(const Model& model, const Request& r) {
  auto planned = Planned::make(model, r);
  if (!planned) {
    throw std::runtime_error(planned.error().message);  // fails the test that asks
  }
  const Status status = (*planned)->verify();
  EXPECT_TRUE(status) << status.error().message;
  const Plan& p = (*planned)->plan;
  uint64_t sum = p.bytes.padding;
  for (uint64_t b : p.bytes.of) sum += b;
  EXPECT_EQ(sum, p.bytes.arena);
  EXPECT_EQ(p.bytes.peak, p.bytes.arena + p.bytes.reserve);
  EXPECT_EQ(p.fits, p.bytes.peak <= p.bytes.budget);
  EXPECT_GE(p.bytes.peak, p.minimum_bytes);
  EXPECT_GE(p.step_picoseconds, p.bound_picoseconds);
  EXPECT_GE(p.bytes.arena, p.layout_bound);
  EXPECT_EQ(p.accumulation_steps, (r.global_batch + p.decisions.micro_batch - 1) / p.decisions.micro_batch);
  EXPECT_EQ((p.accumulation_steps - 1) * p.decisions.micro_batch + p.last_micro_batch, r.global_batch);
  EXPECT_TRUE(p.last_micro_batch >= 1 && p.last_micro_batch <= p.decisions.micro_batch);
  return *planned;
}

}  // namespace stw::testing_tools
