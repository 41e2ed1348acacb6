// What a checkpoint says about itself, read without restoring it. Only to show and to suggest: whether the file is
// whole is checked by stw_trainer_restore.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace command {

// The JSON at the head of the file; nothing where it is no checkpoint.
std::optional<std::string> checkpoint_header(const std::string& path);
// What lies at a byte of the file: the name of a tensor, or "the header".
std::string checkpoint_section(const std::string& path, uint64_t byte);

}  // namespace command
