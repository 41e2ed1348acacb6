// How element-wise work is cut into tasks. Elements and rows are independent here, so the cut changes no bit,
// unlike the tiles of a reduction. It only has to keep a task larger than the cost of waking a thread.
#pragma once
#include "kernels/lanes/simd.h"

namespace stw::kernels::STW_ISA {

inline constexpr int64_t serial_elements = 4096;  // A smaller amount is not worth a thread.
// Elements of a task: a multiple of 256, the block of 8-bit states.
inline constexpr int64_t task_elements = 4096;

// Calls body(begin, end) for ranges that cover [0, count). Every `begin` is a multiple of task_elements.
template <class Body>
STW_INLINE void for_elements(const Launch& launch, int64_t count, const Body& body) {
  if (count <= serial_elements) {
    if (count > 0) body((int64_t)0, count);
    return;
  }
  parallel_for(launch, ceil_div(count, task_elements), [&](int64_t task, int) {
    body(task * task_elements, min(count, (task + 1) * task_elements));
  });
}

// Calls body(args, begin, end, task) for ranges that cover [0, count) of every entry of the list, as in
// for_elements. `task` numbers the ranges of the whole list. All ranges run in parallel.
template <class Args, class Body>
STW_INLINE void for_elements_of(const Launch& launch, const List<Args>& list, const Body& body) {
  int64_t tasks = 0, elements = 0;
  for (int i = 0; i < list.count; ++i)
    tasks += ceil_div(list.first[i].count, task_elements), elements += list.first[i].count;
  const auto run_task = [&](int64_t task, int) {
    const Args* args = list.first;
    int64_t range = task;
    for (; range >= ceil_div(args->count, task_elements); ++args)
      range -= ceil_div(args->count, task_elements);
    body(*args, range * task_elements, min(args->count, (range + 1) * task_elements), task);
  };
  if (elements > serial_elements) return parallel_for(launch, tasks, run_task);
  for (int64_t task = 0; task < tasks; ++task) run_task(task, 0);
}

// The same for rows; each row is `elements` elements of work.
template <class Body>
STW_INLINE void for_rows(const Launch& launch, int64_t rows, int64_t elements, const Body& body) {
  if (rows * elements <= serial_elements) {
    if (rows > 0) body((int64_t)0, rows);
    return;
  }
  int64_t step = max(1, task_elements / max(1, elements));
  parallel_for(launch, ceil_div(rows, step),
               [&](int64_t task, int) { body(task * step, min(rows, (task + 1) * step)); });
}

// A group has 16 elements; the last one of a range may have n < 16. Lanes from n on are 0 on load, unwritten
// on store.
STW_INLINE F16 load_group(const void* p, DType t, int64_t at, int64_t n) {
  return n == 16 ? load16(p, t, at) : load16_some(p, t, at, n);
}
STW_INLINE void store_group(void* p, DType t, int64_t at, F16 x, int64_t n) {
  if (n == 16) store16(p, t, at, x);
  else store16_some(p, t, at, x, n);
}
// Calls body(at, n) for the groups of [begin, end).
template <class Body>
STW_INLINE void for_groups(int64_t begin, int64_t end, const Body& body) {
  int64_t at = begin;
  for (; at + 16 <= end; at += 16) body(at, (int64_t)16);
  if (at < end) body(at, end - at);
}
// Copies elements [begin, end) of x to the same places of y.
template <class From>
STW_INLINE void copy_elements(const From& x, const Matrix& y, int64_t begin, int64_t end) {
  for_groups(begin, end, [&](int64_t at, int64_t n) {
    store_group(y.data, y.dtype, at, load_group(x.data, x.dtype, at, n), n);
  });
}

}  // namespace stw::kernels::STW_ISA
