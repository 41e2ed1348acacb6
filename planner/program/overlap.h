// The time of a program on a device that copies to and from host memory while ops compute. Each stage takes
// as long as the longest of its ops, its fetches and its stores. Fetches and stores run at the same time, in
// opposite directions.
#pragma once
#include <functional>

#include "planner/program/program.h"

namespace stw {

uint64_t overlapped_picoseconds(const Program& program,
                                const std::function<uint64_t(const Instruction&)>& price);

}  // namespace stw
