// Pictures: every buffer appears once, even if buffers are drawn together. The text is well-formed, names in
// it cannot act as markup, and it is always the same.
#include "planner/picture/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "planner/base/json.h"
#include "planner/picture/axis.h"
#include "src/trainer/planned.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

std::shared_ptr<const Planned> plan_of(const std::string& preset_or_json, int64_t batch, int64_t sequence,
                                       uint64_t bytes = uint64_t{1} << 50, const char* device = "cpu") {
  ModelSource source;
  (preset_or_json.starts_with("{") ? source.config_json : source.source) = preset_or_json;
  auto model = Model::open(source);
  Request r;
  r.device = device;
  r.memory_bytes = bytes;
  r.global_batch = batch;
  r.sequence = sequence;
  r.threads = 2;
  auto planned = model ? Planned::make(**model, r) : Result<std::shared_ptr<const Planned>>(model.error());
  if (!planned) throw std::runtime_error(planned.error().message);
  return *planned;
}

std::string many_blocks(int blocks) {
  return R"({"model_type": "llama", "vocab_size": 61, "max_position_embeddings": 16, "hidden_size": 16, )"
         R"("intermediate_size": 32,
             "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": )" +
         std::to_string(blocks) + "}";
}

const std::vector<FrontierPoint> some_points = {{100 << 20, 900, "micro-batch 1, all recomputed", false},
                                                {140 << 20, 1400, "micro-batch 2", true},
                                                {300 << 20, 1500.5, "<b>micro-batch</b> 4 & more", true}};

// Checks that tags come in pairs, that attributes are quoted and unique, that entities exist in XML, and that
// '<' only begins a tag. Returns the error, or an empty text. Skips the insides of script and style.
std::string markup_error(std::string_view text) {
  std::vector<std::string> open;
  if (text.starts_with("<!DOCTYPE html>")) text.remove_prefix(15);
  size_t at = 0;
  auto near = [&] { return std::string(text.substr(at, 80)); };
  auto entities_are_good = [](std::string_view part) {
    for (size_t i = part.find('&'); i != part.npos; i = part.find('&', i + 1)) {
      const std::string_view name = part.substr(i + 1, part.find(';', i) - i - 1);
      if (name != "lt" && name != "gt" && name != "amp" && name != "quot" && !name.starts_with('#'))
        return false;
    }
    return true;
  };
  while (at < text.size()) {
    if (text[at] != '<') {
      const size_t end = std::min(text.find('<', at), text.size());
      const std::string_view part = text.substr(at, end - at);
      if (part.find('>') != part.npos || !entities_are_good(part)) return "bad text: " + near();
      for (const char c : part)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return "control character: " + near();
      at = end;
      continue;
    }
    if (text.substr(at, 2) == "</") {
      const size_t end = text.find('>', at);
      if (end == text.npos || open.empty() || open.back() != text.substr(at + 2, end - at - 2))
        return "not open: " + near();
      open.pop_back();
      at = end + 1;
      continue;
    }
    size_t i = at + 1;
    while (i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '-')) ++i;
    const std::string name(text.substr(at + 1, i - at - 1));
    if (name.empty()) return "no tag: " + near();
    std::vector<std::string_view> attributes;
    while (i < text.size() && text[i] == ' ') {
      const size_t equals = text.find('=', i), end = text.find('"', equals + 2);
      if (end == text.npos || text[equals + 1] != '"') return "no attribute: " + near();
      const std::string_view key = text.substr(i + 1, equals - i - 1),
                             value = text.substr(equals + 2, end - equals - 2);
      if (key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
          key.npos)
        return "bad key: " + near();
      if (std::count(attributes.begin(), attributes.end(), key)) return "twice: " + near();
      if (value.find('<') != value.npos || !entities_are_good(value)) return "bad value: " + near();
      attributes.push_back(key);
      i = end + 1;
    }
    const bool closed = text.substr(i, 2) == "/>";
    if (!closed && (i >= text.size() || text[i] != '>')) return "unfinished: " + near();
    at = i + (closed ? 2 : 1);
    if (closed) continue;
    open.push_back(name);
    if (name != "script" && name != "style") continue;
    at = text.find("</" + name + ">", at);
    if (at == text.npos) return "endless " + name;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(MarkupError, IsFound) {
  EXPECT_EQ(markup_error("<a b=\"1\" c=\"&lt;\">x &amp; y<d/></a>\n"), "");
  for (const char* bad : {"<a>", "</a>", "<a></b>", "<a b=1></a>", "<a b=\"1\" b=\"2\"/>", "<a b=\"<\"/>",
                          "a & b", "a > b", "< a", "<a b/>", "a\x01"})
    EXPECT_NE(markup_error(bad), "") << bad;
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  auto json = parse_json(std::string_view(page).substr(at, page.find("</script>", at) - at));
  EXPECT_TRUE(json) << json.error().message;
  return json ? *json : Json();
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

using Sums = std::map<int64_t, std::pair<uint64_t, int64_t>>;  // class -> bytes and number of buffers

// The buffers that the pictures must show: the persistent ones, and those of the programs on the time axis.
Sums sums_of(const Planned& p) {
  const picture::Timeline timeline(p.graph, p.plan, p.programs);
  Sums sums;
  auto add = [&](const Buffer& b) {
    auto& [bytes, count] = sums[static_cast<int64_t>(b.owner)];
    bytes += b.bytes;
    ++count;
  };
  for (const Buffer& b : p.programs.arena.persistent) add(b);
  for (const picture::Section& s : timeline.sections())
    for (const Buffer& b : s.program->buffers) add(b);
  return sums;
}

void check(const Planned& p) {
  const std::string html = picture_html(p.graph, p.plan, p.programs, some_points),
                    svg = picture_svg(p.graph, p.plan, p.programs);
  EXPECT_EQ(markup_error(html), "");
  EXPECT_EQ(markup_error(svg), "");
  const Json data = data_of(html);
  const Json::Array& marks = data.find("marks")->elements();
  ASSERT_EQ(marks.size() % 9, 0u);
  const size_t strings = data.find("labels")->elements().size();
  const auto instructions = static_cast<int64_t>(data.find("instructions")->elements().size()) / 4;
  Sums sums;
  for (size_t i = 0; i < marks.size(); i += 9) {
    auto& [bytes, count] = sums[*marks[i + 3].as_int()];
    bytes += static_cast<uint64_t>(*marks[i + 4].as_int());
    count += *marks[i + 7].as_int();
    for (size_t k : {0, 1, 2}) ASSERT_LT(static_cast<size_t>(*marks[i + k].as_int()), strings);
    ASSERT_LE(*marks[i + 5].as_int(), *marks[i + 6].as_int());
    ASSERT_LT(*marks[i + 6].as_int(), instructions);
  }
  EXPECT_EQ(sums, sums_of(p));
  for (const std::string& text : {html, svg}) {
    const size_t begin = text.find("<g class=\"marks\">"), end = text.find("</g>", begin);
    EXPECT_EQ(count_of(text.substr(begin, end - begin), "<rect "), marks.size() / 9);
  }
  // The highest column is the plan's peak.
  uint64_t most = 0, live = 0;
  const Json::Array& columns = data.find("columns")->elements();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i % 10 < 3) live = 0;
    else most = std::max(most, live += static_cast<uint64_t>(*columns[i].as_int()));
  }
  EXPECT_EQ(most, p.plan.bytes.arena - p.plan.bytes.padding);
  EXPECT_EQ(html, picture_html(p.graph, p.plan, p.programs, some_points));
  EXPECT_EQ(svg, picture_svg(p.graph, p.plan, p.programs));
}

TEST(Picture, ShowsEveryBufferOfSmallModels) {
  for (const std::string& config : {small_gpt2("0.1"), small_llama(), small_qwen2(), small_qwen3()}) {
    check(*plan_of(config, 7, 33));
    check(*plan_of(config, 6, 33, 1));  // the smallest plan, which does not fit
  }
}

TEST(Picture, OfPresetsIsSmall) {
  struct Case {
    const char* name;
    int64_t batch, sequence;
    const char* device;
    size_t limit;
  };
  for (const Case& c : {Case{"nano", 12, 64, "cpu", 200 << 10},
                        {"gpt2", 8, 256, "cpu", 500 << 10},
                        {"llama-8b", 32, 2048, "b200", 2 << 20}}) {
    const auto p = plan_of(c.name, c.batch, c.sequence, uint64_t{1} << 50, c.device);
    check(*p);
    EXPECT_LT(picture_html(p->graph, p->plan, p->programs, {}).size(), c.limit) << c.name;
    EXPECT_LT(picture_svg(p->graph, p->plan, p->programs).size(), c.limit) << c.name;
  }
}

// A plan without a search: everything kept, or everything recomputed.
std::shared_ptr<const Planned> unsearched(const std::string& config, uint32_t saved) {
  auto p = std::make_shared<Planned>();
  p->graph = graph_of(config, 16);
  p->plan.decisions = uniform_decisions(p->graph, saved);
  p->programs = make_programs(p->graph, p->plan.decisions, 4, 1, 64);
  p->plan.architecture = p->graph.architecture;
  p->plan.request.global_batch = 4;
  p->plan.request.sequence = 16;
  p->plan.accumulation_steps = p->plan.last_micro_batch = 2;
  p->plan.bytes = account(p->programs);
  p->plan.bytes.peak = p->plan.bytes.budget = p->plan.bytes.arena;
  p->plan.step_picoseconds = p->plan.bound_picoseconds = 1000000000;
  p->plan.fits = true;
  return p;
}

TEST(Picture, OfAThousandBlocksIsDrawnTogether) {
  const auto p = unsearched(many_blocks(1000), 0);
  check(*p);
  const std::string html = picture_html(p->graph, p->plan, p->programs, {});
  EXPECT_LT(html.size(), 8u << 20);
  EXPECT_LT(picture_svg(p->graph, p->plan, p->programs).size(), 8u << 20);
  EXPECT_NE(html.find("are drawn together"), html.npos) << "the page says so";
  EXPECT_LE(data_of(html).find("marks")->elements().size() / 9, picture::largest_mark_count + 3000u);
}

// Buffers that are drawn together lie inside their mark, and the mark is off by less than a cell.
TEST(Picture, MarksCoverTheirBuffers) {
  const auto p = unsearched(many_blocks(300), ~0u);
  const picture::Timeline timeline(p->graph, p->plan, p->programs);
  const picture::Marks marks = picture::make_marks(p->graph, p->programs, timeline);
  ASSERT_GT(marks.columns, 0);
  for (const picture::Section& s : timeline.sections())
    for (const Buffer& b : s.program->buffers) {
      const auto inside = std::find_if(marks.all.begin(), marks.all.end(), [&](const picture::Mark& m) {
        return m.owner == b.owner && !m.persistent && m.first <= s.first + b.first &&
               m.last >= s.first + b.last && m.offset <= b.offset && m.end >= b.offset + b.bytes;
      });
      ASSERT_NE(inside, marks.all.end());
    }
  const uint64_t row = p->programs.arena_bytes / static_cast<uint64_t>(marks.rows) + 1;
  for (const picture::Mark& m : marks.all) {
    if (m.persistent || m.count == 1) continue;
    EXPECT_LE(m.end - m.offset, m.bytes + row);
  }
}

TEST(Picture, OmitsAFrontierThatThePlanLacks) {
  const auto p = plan_of(small_llama(), 6, 33);
  const std::string without = picture_html(p->graph, p->plan, p->programs, {}),
                    with = picture_html(p->graph, p->plan, p->programs, some_points);
  EXPECT_EQ(without.find("Speed against memory"), without.npos);
  EXPECT_EQ(without.find("id=\"frontier\""), without.npos);
  EXPECT_NE(with.find("id=\"frontier\""), with.npos);
  EXPECT_NE(with.find("&lt;b&gt;micro-batch&lt;/b&gt; 4 &amp; more"), with.npos);
  EXPECT_EQ(with.find("<b>micro-batch"), with.npos);
  EXPECT_EQ(data_of(with).find("frontier")->elements().size(), some_points.size());
  const std::vector<FrontierPoint> odd = {
      {0, 0, "", true}, {uint64_t{1} << 61, 1e300, "", true}, {1, -1, "", false}};
  EXPECT_EQ(markup_error(picture_html(p->graph, p->plan, p->programs, odd)), "");
}

TEST(Picture, NamesCannotInjectHtml) {
  const auto p = plan_of(small_llama(), 6, 33);
  Graph graph = p->graph;
  const std::string evil = "</script><script>alert(1)</script><!--\"'>&\x01\xff\xEF\xBF\xBF\t\r\n]]>";
  for (Tensor& t : graph.tensors) t.name = evil + t.name;
  Plan plan = p->plan;
  plan.architecture = plan.request.device = plan.states_reason = evil;
  plan.fits = false;
  plan.relaxations = {{evil, 1, 0.5, true}};
  const std::vector<FrontierPoint> points = {{1 << 20, 10, evil, true}};
  const std::string html = picture_html(graph, plan, p->programs, points),
                    svg = picture_svg(graph, plan, p->programs);
  for (const std::string& text : {html, svg}) {
    EXPECT_EQ(markup_error(text), "");
    EXPECT_EQ(text.find("<script>alert"), text.npos);
    EXPECT_EQ(text.find("]]>"), text.npos);
    EXPECT_EQ(text.find('\x01'), text.npos);
    EXPECT_EQ(text.find('\xff'), text.npos);
    EXPECT_NE(text.find("&lt;script&gt;alert(1)"), text.npos) << "it is shown as it is";
  }
  EXPECT_EQ(count_of(html, "</script"), 2u) << "the two of the page";
  data_of(html);
}

TEST(Picture, CsvIsThePackingProblem) {
  for (const char* name : {"nano", "gpt2"}) {
    const auto p = plan_of(name, 8, 64);
    const std::string csv = picture_csv(p->graph, p->programs);
    EXPECT_EQ(csv, picture_csv(p->graph, p->programs));
    std::vector<std::vector<std::string>> rows;
    for (size_t at = 0; at < csv.size();) {
      const std::string line = csv.substr(at, csv.find('\n', at) - at);
      at += line.size() + 1;
      rows.emplace_back();
      for (size_t from = 0; from <= line.size();) {
        const size_t comma = std::min(line.find(',', from), line.size());
        rows.back().push_back(line.substr(from, comma - from));
        from = comma + 1;
      }
    }
    EXPECT_EQ(rows[0], (std::vector<std::string>{"id", "lower", "upper", "size", "offset", "name", "class"}));
    const Program& top = *peak_moment(p->programs).program;
    ASSERT_EQ(rows.size(), 1 + p->programs.arena.persistent.size() + top.buffers.size());
    uint64_t height = 0;
    std::map<std::string, uint64_t> live;  // at the moment of the peak
    for (size_t i = 1; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), 7u);
      EXPECT_EQ(rows[i][0], std::to_string(i - 1));
      const uint64_t lower = std::stoull(rows[i][1]), upper = std::stoull(rows[i][2]),
                     size = std::stoull(rows[i][3]), offset = std::stoull(rows[i][4]);
      EXPECT_LT(lower, upper);
      EXPECT_LE(upper, top.instructions.size());
      EXPECT_EQ(size % p->programs.arena.alignment, 0u);
      height = std::max(height, offset + size);
      const auto moment = static_cast<uint64_t>(peak_moment(p->programs).instruction);
      if (lower <= moment && moment < upper) live[rows[i][6]] += size;
    }
    EXPECT_EQ(height, p->plan.bytes.arena);
    for (size_t c = 0; c < class_count; ++c) {
      const uint64_t bytes = p->plan.bytes.of[c];
      EXPECT_TRUE(live[class_names[c]] >= bytes && live[class_names[c]] <= bytes + p->plan.bytes.padding)
          << class_names[c];
    }
  }
  auto p = plan_of(small_llama(), 2, 16);
  Graph graph = p->graph;
  graph.tensors[p->programs.arena.persistent[0].tensor].name = "a,\"b\"";
  EXPECT_NE(picture_csv(graph, p->programs).find(",\"a,\"\"b\"\"\","), std::string::npos);
}

TEST(Axis, TicksAreBinary) {
  using picture::byte_ticks;
  const auto texts = [](uint64_t low, uint64_t top, int count) {
    std::string all;
    for (const picture::Tick& t : byte_ticks(low, top, count)) all += t.text + "|";
    return all;
  };
  EXPECT_EQ(texts(0, uint64_t{5} << 29, 6), "0|0.5 GiB|1 GiB|1.5 GiB|2 GiB|2.5 GiB|");
  EXPECT_EQ(texts(0, 40 << 20, 8), "0|8 MiB|16 MiB|24 MiB|32 MiB|40 MiB|");
  EXPECT_EQ(texts(uint64_t{2} << 30, (uint64_t{2} << 30) + (100 << 20), 4),
            "2,048 MiB|2,080 MiB|2,112 MiB|2,144 MiB|");
  EXPECT_EQ(texts(0, 3, 8), "0|1 B|2 B|3 B|");
  EXPECT_FALSE(byte_ticks(0, size_limit, 8).empty());
  std::string all;
  for (const picture::Tick& t : picture::decimal_ticks(47000, 5)) all += t.text + "|";
  EXPECT_EQ(all, "0|10,000|20,000|30,000|40,000|");
  all.clear();
  for (const picture::Tick& t : picture::decimal_ticks(0.9, 5)) all += t.text + "|";
  EXPECT_EQ(all, "0.0|0.2|0.4|0.6|0.8|");
}

// Copies between the ops of a block do not cut the block into pieces. The page says which tensors lie in host
// memory, and why.
TEST(Picture, ShowsOffloadedTensors) {
  auto planned = plan_of("nano", 12, 64);
  auto plain = std::make_shared<Planned>(*planned);
  auto offloaded = std::make_shared<Planned>(*planned);
  Decisions d = planned->plan.decisions;
  d.offload.parts = {5, 0, 2, 2, 2};
  offloaded->plan.decisions = d;
  offloaded->programs = make_programs(offloaded->graph, d, 12, 2, 64);
  offloaded->plan.bytes = account(offloaded->programs);
  auto blocks = [](const Planned& p) {
    std::vector<int> list;
    const picture::Timeline timeline(p.graph, p.plan, p.programs);
    for (const picture::Run& run : timeline.runs())
      if (timeline.block(run.segment) >= 0) list.push_back(timeline.block(run.segment));
    return list;
  };
  EXPECT_EQ(blocks(*offloaded), blocks(*plain));
  const std::string page = picture_html(offloaded->graph, offloaded->plan, offloaded->programs, {});
  EXPECT_EQ(markup_error(page), "");
  for (const char* text :
       {"Optimizer states of blocks 0 to 3 and of everything else lie in host memory",
        "Inputs of blocks 0 to 1 lie in host memory", "fetched for backward from host memory",
        "which lies in host memory", "on its way to host memory"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace stw
