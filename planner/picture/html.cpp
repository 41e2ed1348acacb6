// The page: figures, charts, tables, and the data that its script shows.
#include <algorithm>

#include "planner/base/figures.h"
#include "planner/picture/charts.h"
#include "planner/picture/picture.h"
#include "planner/picture/style.h"
#include "planner/plan/plan_file.h"

namespace stw {

using namespace picture;

namespace {

constexpr int largest_column_count = 1000;

std::string element(const char* name, const std::string& content) {
  return "<" + std::string(name) + ">" + escaped(content) + "</" + name + ">";
}

std::string plural(int64_t n, const std::string& noun) {
  return grouped(static_cast<uint64_t>(n)) + " " + noun + (n == 1 ? "" : "s");
}

double seconds_of(uint64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

std::string colour(size_t c) { return "var(--c" + std::to_string(c) + ")"; }

std::string figures(const Plan& plan) {
  std::string out = "<dl class=\"figures\">\n";
  auto figure = [&](const char* name, const std::string& value, const std::string& more) {
    out += "<div>" + element("dt", name) + "<dd>" + escaped(value) + element("small", more) + "</dd></div>\n";
  };
  const double total = static_cast<double>(plan.step_picoseconds);
  figure("Peak memory", human_bytes(plan.bytes.peak),
         "of " + human_bytes(plan.bytes.budget) + (plan.fits ? "" : ", too small"));
  figure("Speed", whole(tokens_per_second(plan)) + " tokens/s",
         plan.ceiling_picoseconds == 0
             ? "predicted"
             : "estimated; at the ceiling " +
                   whole(tokens_per_second(plan) * total / static_cast<double>(plan.ceiling_picoseconds)));
  figure("Step time", human_duration(seconds_of(plan.step_picoseconds)),
         !plan.fits ? "of the smallest plan"
         : plan.step_picoseconds == plan.bound_picoseconds
             ? "proven: no plan within this budget is faster"
             : "no plan within this budget is more than " +
                   fixed_point(100 * (total / static_cast<double>(plan.bound_picoseconds) - 1), 2) +
                   " % faster");
  figure("Micro-batch",
         std::to_string(plan.decisions.micro_batch) + " × " + std::to_string(plan.accumulation_steps),
         plan.last_micro_batch == plan.decisions.micro_batch
             ? "samples × micro-steps"
             : "samples × micro-steps, the last one " + std::to_string(plan.last_micro_batch));
  figure("Recompute", fixed_point(100 * static_cast<double>(plan.recompute_picoseconds) / total, 1) + " %",
         "of the step time");
  return out + "</dl>\n";
}

std::string shortfall(const Plan& plan) {
  if (plan.fits) return "";
  std::string out = "<div class=\"short\"><p><strong>This does not fit.</strong> The budget is " +
                    human_bytes(plan.bytes.budget) + "; the smallest budget that works is " +
                    human_bytes(plan.minimum_bytes) + " (" + grouped(plan.minimum_bytes) +
                    " bytes), and its plan is shown here." +
                    (plan.relaxations.empty() ? "" : " These changes would save memory:") + "</p>\n";
  if (!plan.relaxations.empty()) out += "<ul>";
  for (const Relaxation& r : plan.relaxations) out += element("li", relaxation_text(r, plan.bytes.budget));
  return out + (plan.relaxations.empty() ? "" : "</ul>\n") + "</div>\n";
}

std::string legend(const Plan& plan, bool zooms) {
  std::string out = "<div class=\"legend\" role=\"group\" aria-label=\"Classes shown\">\n";
  for (size_t c : stack_order)
    if (plan.bytes.of[c] > 0)
      out += "<button type=\"button\" aria-pressed=\"true\" data-c=\"" + std::to_string(c) +
             "\"><i style=\"background:" + colour(c) + "\"></i>" + class_titles[c] + "</button>\n";
  if (zooms)
    out += "<button type=\"button\" aria-pressed=\"false\" id=\"zoom\">Zoom to transient memory</button>\n";
  return out + "</div>\n";
}

std::string table_of_bytes(const Plan& plan) {
  const double peak = static_cast<double>(std::max<uint64_t>(1, plan.bytes.peak));
  std::string out =
      "<table id=\"bytes\"><caption>Bytes by class at the moment of the peak</caption>\n"
      "<thead><tr><th scope=\"col\">class</th>"
      "<th scope=\"col\" class=\"n\">bytes</th><th scope=\"col\" class=\"n\">share</th>"
      "<th class=\"bars\" aria-hidden=\"true\"></th></tr></thead>\n<tbody>\n";
  auto row = [&](const std::string& name, uint64_t bytes, const std::string& paint) {
    const double share = static_cast<double>(bytes) / peak;
    out +=
        "<tr><th scope=\"row\">" + name + "</th><td class=\"n\" title=\"" + grouped(bytes) + " bytes\">" +
        human_bytes(bytes) + "</td><td class=\"n\">" + fixed_point(share * 100, 1) +
        " %</td><td class=\"bars\" aria-hidden=\"true\"><div class=\"bar\" style=\"width:" + percent(share) +
        ";background:" + paint + "\"></div></td></tr>\n";
  };
  for (size_t c = 0; c < class_count; ++c) row(class_titles[c], plan.bytes.of[c], colour(c));
  row("padding", plan.bytes.padding, "var(--axis)");
  if (plan.bytes.reserve > 0) row("reserve", plan.bytes.reserve, "var(--axis)");
  out += "</tbody>\n<tfoot><tr><th scope=\"row\">peak</th><td class=\"n\">" + human_bytes(plan.bytes.peak) +
         "</td><td class=\"n\">100.0 %</td><td></td></tr>\n";
  return out + "<tr><th scope=\"row\">budget</th><td class=\"n\">" + human_bytes(plan.bytes.budget) +
         "</td><td></td><td></td></tr></tfoot></table>\n";
}

// "block 3", "blocks 0 to 11"
std::string range_of_blocks(int first, int last) {
  return first == last ? "block " + std::to_string(first)
                       : "blocks " + std::to_string(first) + " to " + std::to_string(last);
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string decisions(const Graph& graph, const Plan& plan) {
  const Request& r = plan.request;
  std::string out = "<ul class=\"decisions\">\n";
  auto item = [&](const std::string& text) { out += element("li", text) + "\n"; };
  item("A step trains on " + plural(r.global_batch, "sample") + " of " + plural(r.sequence, "token") +
       ", cut into " + plural(plan.accumulation_steps, "micro-step") + " of " +
       plural(plan.decisions.micro_batch, "sample") +
       (plan.last_micro_batch == plan.decisions.micro_batch
            ? "."
            : "; the last one has " + std::to_string(plan.last_micro_batch) + "."));
  const std::vector<RecomputedBlocks> runs = recomputed_blocks(graph, plan.decisions);
  if (runs.empty()) item("Nothing is recomputed: every activation that the backward pass needs is kept.");
  for (const RecomputedBlocks& run : runs)
    item(capitalised(range_of_blocks(run.first, run.last)) + (run.first == run.last ? " does" : " do") +
         " not keep " + joined(run.tensors) + "; the backward pass recomputes them.");
  for (const TiledBlocks& run : tiled_blocks(graph, plan.decisions))
    item("The feed-forward part of " + range_of_blocks(run.first, run.last) + " runs in tiles of " +
         plural(run.rows, "token") + ", so that its inner tensors take the memory of one tile.");
  if (graph.kept.exist())
    item("The gradient of the token table is " +
         std::string(graph.kept.formed < 0 ? "summed after the last micro-step"
                                           : "formed in slices at the update") +
         ", from the gradients of all embedded tokens (" + human_bytes(graph.at(graph.kept.rows).bytes(1)) +
         ").");
  for (const OffloadedTensors& o : offloaded_tensors(graph, plan.decisions)) {
    std::string text = capitalised(offloaded_titles[static_cast<int>(o.what)]);
    if (o.last >= 0) text += " of " + range_of_blocks(0, o.last);
    if (o.others) text += o.last >= 0 ? " and of everything else" : " of everything except the blocks";
    item(text + " lie in host memory (" + human_bytes(o.bytes) + ") and are fetched where they are needed.");
  }
  item("The loss is computed in " + plural(plan.decisions.loss_chunks, "chunk") + ", so that logits take " +
       (plan.decisions.loss_chunks == 1
            ? std::string("their full size.")
            : "about 1/" + std::to_string(plan.decisions.loss_chunks) + " of their full size."));
  if (const Preference preference = plan.numerics.inputs.preference; preference != Preference::none)
    item(std::string("A preference is learned (") + name_of(preference) +
         "): the weights of tokens are known only after the losses of their pair" +
         (plan.decisions.loss_chunks == 1 ? "." : ", so that logits are computed twice."));
  if (plan.numerics.quantize != Quantize::none)
    item(std::string("The matrices of blocks below adapters are stored as ") +
         name_of(plan.numerics.quantize) + " and decoded before each matrix product.");
  if (plan.numerics.quantize_embeddings != Quantize::none)
    item(std::string("The embeddings of tokens and the head are stored as ") +
         name_of(plan.numerics.quantize_embeddings) + ".");
  item(std::string(name_of(plan.numerics.precision)) +
       (plan.numerics.precision == Precision::fp32
            ? ", "
            : std::string(" with master weights kept as ") + master_name(plan.numerics) + ", ") +
       name_of(plan.numerics.optimizer) + " with " + std::to_string(plan.numerics.state_bits) +
       "-bit states" + (plan.states_reason.empty() ? "." : " (" + plan.states_reason + ")."));
  item("The layout takes " + human_bytes(plan.bytes.arena) + "; no layout of these programs is below " +
       human_bytes(plan.layout_bound) + ".");
  return out + "</ul>\n";
}

std::string table_of_largest(const Marks& marks, const Timeline& timeline) {
  std::vector<const Mark*> list;
  for (const Mark& m : marks.all)
    if (m.count == 1) list.push_back(&m);
  std::stable_sort(list.begin(), list.end(),
                   [](const Mark* a, const Mark* b) { return a->bytes > b->bytes; });
  if (list.size() > 40) list.resize(40);
  std::string out = "<details><summary>The " + std::to_string(list.size()) +
                    " largest buffers</summary>\n"
                    "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Largest buffers\"><table>"
                    "<thead><tr><th scope=\"col\">buffer</th><th scope=\"col\">class</th>"
                    "<th scope=\"col\" class=\"n\">bytes</th><th scope=\"col\" class=\"n\">offset</th>"
                    "<th scope=\"col\">life</th><th scope=\"col\">why</th></tr></thead>\n<tbody>\n";
  for (const Mark* m : list) {
    const std::string& where = marks.strings.at(m->place);
    out += "<tr><td class=\"w\">" + escaped(marks.strings.at(m->name)) +
           (where.empty() ? "" : ", " + escaped(where)) + "</td><td>" +
           class_titles[static_cast<size_t>(m->owner)] + "</td><td class=\"n\">" + grouped(m->bytes) +
           "</td><td class=\"n\">" + grouped(m->offset) + "</td><td class=\"w\">" +
           escaped(life_of(*m, timeline)) + "</td><td class=\"w\">" + escaped(marks.strings.at(m->reason)) +
           "</td></tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

std::string section_of_frontier(const Frontier& f, const Plan& plan) {
  if (f.points.empty()) return "";
  std::string out =
      "<section><h2>Speed against memory</h2>\n"
      "<p class=\"soft\">Every point is a plan for this request that no other plan beats in both. "
      "Numbered points are knees: below them, saving memory costs much more time.</p>\n" +
      frontier_chart(f, plan);
  std::string rows;
  for (const PlacedPoint& p : f.points)
    if (p.knee > 0)
      rows += "<tr><td>" + std::to_string(p.knee) + "</td><td class=\"n\">" +
              human_bytes(p.point->peak_bytes) + "</td><td class=\"n\">" + whole(p.point->tokens_per_second) +
              "</td><td class=\"w\">" + escaped(p.point->label) + "</td></tr>\n";
  if (!rows.empty())
    out +=
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">knee</th>"
        "<th scope=\"col\" class=\"n\">peak</th><th scope=\"col\" class=\"n\">tokens/s</th>"
        "<th scope=\"col\">decisions</th></tr></thead>\n<tbody>\n" +
        rows + "</tbody></table></div>\n";
  return out + "</section>\n";
}

}  // namespace

std::string picture_html(const Graph& graph, const Plan& plan, const Programs& programs,
                         const std::vector<FrontierPoint>& frontier) {
  const Timeline timeline(graph, plan, programs);
  const Marks marks = make_marks(graph, programs, timeline);
  const std::vector<Column> columns = timeline.live(largest_column_count);
  const Frontier placed = place_frontier(frontier, plan);
  const DeviceProfile* device = find_device(plan.request.device);
  uint64_t base = programs.arena_bytes;
  for (const Section& section : timeline.sections()) base = std::min(base, section.program->base);
  const Range range{base, programs.arena_bytes};
  const bool zooms = base > programs.arena_bytes / 4;
  const std::string title = plan.architecture + " with " + human_count(plan.parameters) + " parameters";

  std::string s =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\"/>\n"
      "<link rel=\"icon\" href=\"data:,\"/>\n<title>" +
      escaped(title) + ": memory plan</title>\n<style>" + palette + page_style;
  for (size_t c = 0; c < class_count; ++c) {
    const std::string n = std::to_string(c);
    s += ".c" + n + " { fill: " + colour(c) + "; stroke: " + colour(c) + "; } .t" + n + " { color: var(--on" +
         n + "); }\n";
  }
  s += "</style>\n</head>\n<body>\n<main>\n<header>" + element("h1", title) + "\n" +
       element("p", plural(plan.layers, "layer") + ", planned for " +
                        (device ? device->title : plan.request.device.c_str()) + ": " +
                        plural(plan.request.global_batch, "sample") + " of " +
                        plural(plan.request.sequence, "token") + " a step, " +
                        name_of(plan.numerics.precision) + ".") +
       "\n" + shortfall(plan) + figures(plan) + "</header>\n";
  s +=
      "<section><h2>Where every buffer lies</h2>\n" +
      element(
          "p",
          "From left to right the instructions of " +
              (plan.accumulation_steps == 1 ? std::string("the micro-step")
                                            : "one of the " + plural(plan.accumulation_steps, "micro-step")) +
              (timeline.sections().size() > 2 ? ", then of the update and of " + timeline.sections()[2].title
                                              : ", then of the update") +
              "; from bottom to top the offsets in the arena. Point at a rectangle, tap it, or use the arrow "
              "keys to see what it is and why it is there. "
              "The dashed line is the moment of the peak: " +
              timeline.moment(timeline.peak()) + "." +
              (recomputed(timeline).empty() ? "" : " Bars under the axis mark recompute.")) +
      "\n" + legend(plan, zooms) + arena_chart(marks, timeline, range);
  const int drawn = static_cast<int>(marks.all.size());
  std::string note = plural(marks.buffers, "buffer") + " in " + plural(drawn, "rectangle") +
                     ". Parameters and states that are too thin to see are drawn with their neighbours.";
  if (marks.columns > 0)
    note +=
        " There are too many buffers for a rectangle each: "
        "those of one class that begin and end in the same cell of a grid of " +
        std::to_string(marks.columns) + " × " + std::to_string(marks.rows) +
        " are drawn together, with their bytes added up.";
  s += "<p class=\"soft\">" + escaped(note) + "</p></section>\n";
  s += "<section><h2>Live bytes</h2>\n" +
       element("p", "Live bytes at each instruction, by class. The arena has to hold the highest point.") +
       "\n" + live_chart(columns, timeline, range) + "</section>\n";
  s += section_of_frontier(placed, plan);
  s += "<div class=\"two\"><section><h2>Memory at the peak</h2>\n" + table_of_bytes(plan) +
       "</section>\n<section><h2>Decisions</h2>\n" + decisions(graph, plan) + "</section></div>\n" +
       table_of_largest(marks, timeline) +
       "<footer>Predicted before anything is allocated; the trainer runs exactly this "
       "plan.</footer>\n</main>\n"
       "<div class=\"tip\" id=\"tip\" role=\"status\" aria-live=\"polite\"></div>\n"
       "<script type=\"application/json\" id=\"data\">" +
       script_data(marks, timeline, columns, placed) + "</script>\n<script>" + page_script +
       "</script>\n</body>\n</html>\n";
  return s;
}

}  // namespace stw
