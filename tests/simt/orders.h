// Orders in which threads and blocks may run.
#pragma once
#include "tests/simt/machine.h"

namespace simt {

// All except the first, `forward`.
inline constexpr Options other_orders[] = {{Order::reverse, 1}, {Order::random, 1}, {Order::random, 2}};

class InOrder {
 public:
  explicit InOrder(const Options& order) : before_(options) { options = order; }
  ~InOrder() { options = before_; }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

 private:
  Options before_;
};

}  // namespace simt
