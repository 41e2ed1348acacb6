// A model of a configuration, with random weights.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "src/weights/model.h"

namespace fuzz {

inline std::shared_ptr<const stw::Model> model_of(std::string config) {
  stw::ModelSource source;
  source.config_json = std::move(config);
  return *stw::Model::open(source);
}

}  // namespace fuzz
