// The library's objects as values that release themselves, and its info structs as plain return values.
#pragma once
#include <memory>

#include "base/failure.h"
#include "stowage.h"

namespace command {

template <auto release>
struct Release {
  template <class Object>
  void operator()(Object* object) const {
    release(object);
  }
};

using Device = std::unique_ptr<stw_device, Release<stw_device_close>>;
using Model = std::unique_ptr<stw_model, Release<stw_model_destroy>>;
using Plan = std::unique_ptr<stw_plan, Release<stw_plan_destroy>>;
using Dataset = std::unique_ptr<stw_dataset, Release<stw_dataset_close>>;
using Trainer = std::unique_ptr<stw_trainer, Release<stw_trainer_destroy>>;

template <class Info>
Info sized() {
  Info info{};
  info.struct_size = sizeof info;
  return info;
}

// `entry` is a query function of the library: (const Object*, Info*) -> status.
template <class Info, class Object>
Info query(stw_status (*entry)(const Object*, Info*), const Object* object) {
  Info info = sized<Info>();
  call([&](stw_error*) { return entry(object, &info); });
  return info;
}

inline stw_model_info query(const Model& model) {
  return query<stw_model_info>(stw_model_query, model.get());
}
inline stw_plan_info query(const Plan& plan) { return query<stw_plan_info>(stw_plan_query, plan.get()); }
inline stw_dataset_info query(const Dataset& data) {
  return query<stw_dataset_info>(stw_dataset_query, data.get());
}
inline stw_progress query(const Trainer& trainer) {
  return query<stw_progress>(stw_trainer_progress, trainer.get());
}

}  // namespace command
