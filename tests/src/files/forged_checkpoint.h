// Checkpoints that no trainer has written, with valid hashes.
#pragma once
#include <string>
#include <vector>

#include "src/files/checkpoint_file.h"

namespace stw::testing_tools {

// Copies a checkpoint with other fields.
inline Status write_with_fields(const CheckpointReader& from, const Json& fields, const std::string& path) {
  STW_ASSIGN(writer, CheckpointWriter::create(path, fields, from.sections()));
  for (const CheckpointSection& section : from.sections()) {
    STW_ASSIGN(in, from.section(section.name, section.bytes));
    std::vector<std::byte> bytes(section.bytes);
    STW_TRY(in.read(bytes));
    STW_TRY(writer.write(bytes));
  }
  return writer.finish();
}

}  // namespace stw::testing_tools
