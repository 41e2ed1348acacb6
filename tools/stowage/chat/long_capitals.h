// Characters whose uppercase form has several characters: the unconditional rows of Unicode's
// SpecialCasing.txt. utf8proc lacks them.
#pragma once
#include <cstdint>

namespace command::chat {

struct LongCapitals {
  uint32_t code;
  const char *upper, *title;
};

// Sorted by code.
constexpr LongCapitals long_capitals[] = {
    {0xDF, "SS", "Ss"}, {0x149, "\u02bcN", "\u02bcN"}, {0x1F0, "J\u030c", "J\u030c"}, {0x390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x3B0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"}, {0x587, "\u0535\u0552", "\u0535\u0582"}, {0x1E96, "H\u0331", "H\u0331"},
    {0x1E97, "T\u0308", "T\u0308"}, {0x1E98, "W\u030a", "W\u030a"}, {0x1E99, "Y\u030a", "Y\u030a"}, {0x1E9A, "A\u02be", "A\u02be"},
    {0x1F50, "\u03a5\u0313", "\u03a5\u0313"}, {0x1F52, "\u03a5\u0313\u0300", "\u03a5\u0313\u0300"},
    {0x1F54, "\u03a5\u0313\u0301", "\u03a5\u0313\u0301"}, {0x1F56, "\u03a5\u0313\u0342", "\u03a5\u0313\u0342"}, {0x1F80, "\u1f08\u0399", "\u1f88"},
    {0x1F81, "\u1f09\u0399", "\u1f89"}, {0x1F82, "\u1f0a\u0399", "\u1f8a"}, {0x1F83, "\u1f0b\u0399", "\u1f8b"}, {0x1F84, "\u1f0c\u0399", "\u1f8c"},
    {0x1F85, "\u1f0d\u0399", "\u1f8d"}, {0x1F86, "\u1f0e\u0399", "\u1f8e"}, {0x1F87, "\u1f0f\u0399", "\u1f8f"}, {0x1F88, "\u1f08\u0399", "\u1f88"},
    {0x1F89, "\u1f09\u0399", "\u1f89"}, {0x1F8A, "\u1f0a\u0399", "\u1f8a"}, {0x1F8B, "\u1f0b\u0399", "\u1f8b"}, {0x1F8C, "\u1f0c\u0399", "\u1f8c"},
    {0x1F8D, "\u1f0d\u0399", "\u1f8d"}, {0x1F8E, "\u1f0e\u0399", "\u1f8e"}, {0x1F8F, "\u1f0f\u0399", "\u1f8f"}, {0x1F90, "\u1f28\u0399", "\u1f98"},
    {0x1F91, "\u1f29\u0399", "\u1f99"}, {0x1F92, "\u1f2a\u0399", "\u1f9a"}, {0x1F93, "\u1f2b\u0399", "\u1f9b"}, {0x1F94, "\u1f2c\u0399", "\u1f9c"},
    {0x1F95, "\u1f2d\u0399", "\u1f9d"}, {0x1F96, "\u1f2e\u0399", "\u1f9e"}, {0x1F97, "\u1f2f\u0399", "\u1f9f"}, {0x1F98, "\u1f28\u0399", "\u1f98"},
    {0x1F99, "\u1f29\u0399", "\u1f99"}, {0x1F9A, "\u1f2a\u0399", "\u1f9a"}, {0x1F9B, "\u1f2b\u0399", "\u1f9b"}, {0x1F9C, "\u1f2c\u0399", "\u1f9c"},
    {0x1F9D, "\u1f2d\u0399", "\u1f9d"}, {0x1F9E, "\u1f2e\u0399", "\u1f9e"}, {0x1F9F, "\u1f2f\u0399", "\u1f9f"}, {0x1FA0, "\u1f68\u0399", "\u1fa8"},
    {0x1FA1, "\u1f69\u0399", "\u1fa9"}, {0x1FA2, "\u1f6a\u0399", "\u1faa"}, {0x1FA3, "\u1f6b\u0399", "\u1fab"}, {0x1FA4, "\u1f6c\u0399", "\u1fac"},
    {0x1FA5, "\u1f6d\u0399", "\u1fad"}, {0x1FA6, "\u1f6e\u0399", "\u1fae"}, {0x1FA7, "\u1f6f\u0399", "\u1faf"}, {0x1FA8, "\u1f68\u0399", "\u1fa8"},
    {0x1FA9, "\u1f69\u0399", "\u1fa9"}, {0x1FAA, "\u1f6a\u0399", "\u1faa"}, {0x1FAB, "\u1f6b\u0399", "\u1fab"}, {0x1FAC, "\u1f6c\u0399", "\u1fac"},
    {0x1FAD, "\u1f6d\u0399", "\u1fad"}, {0x1FAE, "\u1f6e\u0399", "\u1fae"}, {0x1FAF, "\u1f6f\u0399", "\u1faf"},
    {0x1FB2, "\u1fba\u0399", "\u1fba\u0345"}, {0x1FB3, "\u0391\u0399", "\u1fbc"}, {0x1FB4, "\u0386\u0399", "\u0386\u0345"},
    {0x1FB6, "\u0391\u0342", "\u0391\u0342"}, {0x1FB7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"}, {0x1FBC, "\u0391\u0399", "\u1fbc"},
    {0x1FC2, "\u1fca\u0399", "\u1fca\u0345"}, {0x1FC3, "\u0397\u0399", "\u1fcc"}, {0x1FC4, "\u0389\u0399", "\u0389\u0345"},
    {0x1FC6, "\u0397\u0342", "\u0397\u0342"}, {0x1FC7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"}, {0x1FCC, "\u0397\u0399", "\u1fcc"},
    {0x1FD2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"}, {0x1FD3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1FD6, "\u0399\u0342", "\u0399\u0342"}, {0x1FD7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1FE2, "\u03a5\u0308\u0300", "\u03a5\u0308\u0300"}, {0x1FE3, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x1FE4, "\u03a1\u0313", "\u03a1\u0313"}, {0x1FE6, "\u03a5\u0342", "\u03a5\u0342"}, {0x1FE7, "\u03a5\u0308\u0342", "\u03a5\u0308\u0342"},
    {0x1FF2, "\u1ffa\u0399", "\u1ffa\u0345"}, {0x1FF3, "\u03a9\u0399", "\u1ffc"}, {0x1FF4, "\u038f\u0399", "\u038f\u0345"},
    {0x1FF6, "\u03a9\u0342", "\u03a9\u0342"}, {0x1FF7, "\u03a9\u0342\u0399", "\u03a9\u0342\u0345"}, {0x1FFC, "\u03a9\u0399", "\u1ffc"},
    {0xFB00, "FF", "Ff"}, {0xFB01, "FI", "Fi"}, {0xFB02, "FL", "Fl"}, {0xFB03, "FFI", "Ffi"}, {0xFB04, "FFL", "Ffl"}, {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"}, {0xFB13, "\u0544\u0546", "\u0544\u0576"}, {0xFB14, "\u0544\u0535", "\u0544\u0565"},
    {0xFB15, "\u0544\u053b", "\u0544\u056b"}, {0xFB16, "\u054e\u0546", "\u054e\u0576"}, {0xFB17, "\u0544\u053d", "\u0544\u056d"},
};

}  // namespace command::chat
