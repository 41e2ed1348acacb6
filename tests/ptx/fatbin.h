// PTX in what nvcc embeds into host objects.
#pragma once
#include <string>

namespace ptx {

// `wrapper`: what the object registers (fatbinary_section.h). Dies where there is no PTX in it, or none that can be read as text.
std::string text_of_fatbinary(const void* wrapper);

}  // namespace ptx
