// Colours and styles, as text for the pictures.
#pragma once

namespace stw::picture {

// Custom properties for light and dark: --c0 to --c6, one for each class; --on0 to --on6 for text on them;
// and those of page and axes. Every class has a contrast of at least 3:1 with the page. Any two classes can
// be told apart under protanopia, deuteranopia and tritanopia.
extern const char* const palette;
extern const char* const page_style;
extern const char* const page_script;

}  // namespace stw::picture
