// Text inside XML and JavaScript. Every name is escaped, so that it cannot end its element or string.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stw::picture {

// Text for XML content and quoted attributes. Bytes that XML cannot represent become U+FFFD.
std::string escaped(std::string_view text);
// A JSON string, with quotes, that may stand inside a script element.
std::string quoted(std::string_view text);
// With at most `decimals` decimals, and no zeros at the end.
std::string number(double value, int decimals = 3);
// Rounded to an integer, with digits in groups. "0" for a value that is negative, too large or not a number.
std::string whole(double value);
// A share of 1 as a percentage.
inline std::string percent(double share) { return number(share * 100) + "%"; }

// Stores each text once, and gives it an index.
class Strings {
 public:
  int id(const std::string& text) {
    const auto [at, added] = ids_.emplace(text, static_cast<int>(all_.size()));
    if (added) all_.push_back(text);
    return at->second;
  }
  const std::string& at(int id) const { return all_[id]; }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, int> ids_;
  std::vector<std::string> all_;
};

}  // namespace stw::picture
