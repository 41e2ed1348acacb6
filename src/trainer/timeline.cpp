// The timeline of a step: the measured and the predicted time of each op, as a file for trace viewers
// (chrome://tracing, Perfetto). The format is Google's Trace Event Format: complete events, times in
// microseconds.
#include <vector>

#include "planner/base/json.h"
#include "src/files/file.h"
#include "src/trainer/calibrate.h"
#include "src/trainer/timed_step.h"

namespace stw {

namespace {

constexpr const char* phase_names[] = {"forward", "recompute", "backward", "update", "generate"};
enum Row { row_measured = 1, row_predicted = 2 };

Json row_name(Row row, const char* name) {
  return Json::object()
      .set("name", "thread_name")
      .set("ph", "M")
      .set("pid", 1)
      .set("tid", int{row})
      .set("args", Json::object().set("name", name));
}

}  // namespace

Status write_timeline(TrainerCore& core, const std::string& path) {
  std::vector<TimedProgram> timed = programs_of_step(core);
  STW_ASSIGN(rounds, time_programs(core, timed, "timeline"));
  const DeviceProfile& device = profile_of(core.plan().request);
  Json events = Json::array();
  events.push(row_name(row_measured, "measured"));
  events.push(row_name(row_predicted, "predicted"));
  double measured_at = 0, predicted_at = 0;  // microseconds
  for (const TimedProgram& t : timed) {
    for (size_t n = 0; n < t.program->instructions.size(); ++n) {
      const Instruction& i = t.program->instructions[n];
      const Op& op = core.graph().op(i.op);
      const Cost cost = cost_of(core.graph(), i, t.program->threads);
      const double measured = t.median_of(n, rounds) * 1e6;
      const double predicted = static_cast<double>(op_picoseconds(device, i.kind, core.graph().peak_of(op),
                                                                  t.program->threads, cost)) *
                               1e-6;
      const Json about = Json::object()
                             .set("program", t.program->name)
                             .set("runs", t.count)
                             .set("place", core.graph().segment_name(op.segment))
                             .set("ops", i.ops)
                             .set("flops", cost.flops)
                             .set("bytes", cost.bytes)
                             .set("measured_us", measured)
                             .set("predicted_us", predicted);
      const auto event = [&](Row row, double at, double duration) {
        return Json::object()
            .set("name", op_row(i.kind).name)
            .set("cat", phase_names[static_cast<size_t>(i.phase)])
            .set("ph", "X")
            .set("ts", at)
            .set("dur", duration)
            .set("pid", 1)
            .set("tid", int{row})
            .set("args", about);
      };
      events.push(event(row_measured, measured_at, measured));
      events.push(event(row_predicted, predicted_at, predicted));
      measured_at += measured;
      predicted_at += predicted;
    }
  }
  const Json trace = Json::object().set("traceEvents", std::move(events)).set("displayTimeUnit", "ms");
  return write_text(path, to_string(trace, 0) + "\n");
}

}  // namespace stw
