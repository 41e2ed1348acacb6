#include "src/weights/absent_weights.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "src/files/file.h"

namespace stw {
namespace {

struct Sign {
  std::string_view beginning, ending;
  bool is_incomplete;
};

constexpr Sign signs[] = {
    {"", ".incomplete", true},
    {"", ".part", true},
    {"", ".crdownload", true},
    {"", ".aria2", true},
    {"pytorch_model", ".bin", false},
    {"pytorch_model", ".bin.index.json", false},
    {"model", ".bin", false},
    {"consolidated", ".bin", false},
    {"", ".gguf", false},
    {"", ".ggml", false},
    {"", ".pth", false},
    {"", ".pt", false},
    {"", ".ckpt", false},
    {"", ".h5", false},
    {"", ".msgpack", false},
    {"", ".onnx", false},
    {"", ".pdparams", false},
    {"", ".ot", false},
};
// Files that a trainer leaves next to a model's weights and that hold no weights.
constexpr std::string_view others[] = {"rng_state", "optimizer", "scheduler", "scaler", "training_args"};

const Sign* sign_of(std::string_view name) {
  if (std::any_of(std::begin(others), std::end(others),
                  [&](std::string_view other) { return name.starts_with(other); }))
    return nullptr;
  const auto* const found = std::find_if(std::begin(signs), std::end(signs), [&](const Sign& sign) {
    return name.starts_with(sign.beginning) && name.ends_with(sign.ending);
  });
  return found == std::end(signs) ? nullptr : found;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Status check_absent_weights(const std::string& folder) {
  const std::string way_out = ", or give the config.json alone (--from-scratch) to begin with random ones";
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    const Sign* const sign = sign_of(name);
    if (!sign || is_directory(folder + "/" + name)) continue;
    if (sign->is_incomplete)
      return corrupt(
          folder + "/" + name,
          "an incomplete download, and the folder has no other weights; download them again" + way_out);
    return Error{
        Code::unsupported,
        folder + "/" + name + ": weights of this format are not read; save them as safetensors" + way_out};
  }
  // Without a config, this is no model's folder, and opening it says so.
  if (std::find(names.begin(), names.end(), "config.json") == names.end()) return ok();
  for (const std::string& name : names) {
    const std::string inner = folder + "/" + name;
    if (!is_directory(inner) || name.starts_with("replaced-run")) continue;
    for (const std::string& weights : names_in(inner))
      if (weights.ends_with(".safetensors") ? weights != "adapter_model.safetensors"
                                            : sign_of(weights) != nullptr)
        return Error{Code::corrupt, folder + ": has no weights of its own, and " + inner + "/" + weights +
                                        " may be the weights; give them by --weights" + way_out};
  }
  return ok();
}

Status check_weights_file(const std::string& path) {
  const Sign* const sign = sign_of(std::filesystem::path(path).filename().string());
  if (!sign || is_directory(path)) return ok();
  if (sign->is_incomplete) return corrupt(path, "an incomplete download; download it again");
  return Error{Code::unsupported, path + ": weights of this format are not read; save them as safetensors"};
}

Status check_config_file(const std::string& path) {
  STW_TRY(check_weights_file(path));
  if (!path.ends_with(".safetensors") && !path.ends_with(".safetensors.index.json")) return ok();
  const std::string parent = std::filesystem::path(path).parent_path().string(),
                    folder = parent.empty() ? "." : parent;
  return Error{Code::bad_argument,
               path + ": holds weights, expected a model's folder or config.json; " +
                   (file_exists(folder + "/config.json")
                        ? "give the folder, " + folder
                        : std::string("give its config.json, and this file by --weights"))};
}

}  // namespace stw
