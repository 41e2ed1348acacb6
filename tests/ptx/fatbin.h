// PTX in the data that nvcc embeds into host objects.
#pragma once
#include <string>

namespace ptx {

// `wrapper`: the structure that the object registers (fatbinary_section.h). Ends the process if it has no PTX
// that can be read as text.
std::string text_of_fatbinary(const void* wrapper);

}  // namespace ptx
