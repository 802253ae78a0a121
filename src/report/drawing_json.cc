// The drawing as JSON: columns, not rows, and begins as differences: 50,000 events take 1 MB.
#include <algorithm>

#include "base/text.h"
#include "report/drawing.h"
#include "report/json_writer.h"
#include "report/views.h"

namespace culprit::report {
namespace {

constexpr auto kTight = JsonLayout::kTight;
constexpr int kDrawingVersion = 1;
// All names together take this much at most: each is cut to its share where they would take more.
constexpr std::size_t kNameBytes = 500'000, kShortestName = 24, kLongestName = 1'000;
constexpr std::string_view kHostKindNames[kHostKinds] = {"frame", "mark", "op", "call"};

template <class T>
void column(JsonWriter& w, std::string_view key, const std::vector<T>& values) {
  w.begin_array(key, kTight);
  for (const T value : values) w.integer({}, static_cast<std::int64_t>(value));
  w.end();
}

void differences(JsonWriter& w, std::string_view key, const std::vector<Nanos>& values) {
  w.begin_array(key, kTight);
  Nanos last = 0;
  for (const Nanos value : values) {
    w.integer({}, value - last);
    last = value;
  }
  w.end();
}

void write_names(JsonWriter& w, const Drawing& drawing) {
  w.begin_array("names", kTight);
  for (const store::StringId id : drawing.names) w.text({}, text_of(*drawing.run, id));
  w.end();
}

void write_steps(JsonWriter& w, const Answer& answer, const Drawing& drawing) {
  const std::vector<const run::Step*> steps = main_steps(*answer.run);
  const std::size_t shown = std::min(steps.size(), kMostSteps);
  w.begin_object("steps", kTight);
  w.integer("left_out", static_cast<std::int64_t>(steps.size() - shown));
  w.begin_array("ns", kTight);
  for (std::size_t i = 0; i < shown; ++i) w.integer({}, steps[i]->length());
  w.end();
  w.begin_array("excluded", kTight);
  for (std::size_t i = 0; i < shown; ++i) w.text_or_null({}, steps[i]->why_excluded);
  w.end();
  w.end();
  if (drawing.step < 0) return w.null("step");
  const run::Step& step = answer.run->steps[static_cast<std::size_t>(drawing.step)];
  w.begin_object("step", kTight);
  w.integer("index", drawing.main_index);
  w.integer("ns", step.length());
  w.text_or_null("mark", step.mark);
  w.integer("from_ns", drawing.from);
  w.integer("to_ns", drawing.to);
  w.end();
}

void write_streams(JsonWriter& w, const Drawing& drawing) {
  w.begin_array("streams", kTight);
  for (const StreamLane& lane : drawing.streams) {
    w.begin_object({}, kTight);
    w.text("name", lane.name);
    differences(w, "begin_ns", lane.begin);
    column(w, "ns", lane.length);
    column(w, "kernel", lane.kernel);
    column(w, "launch", lane.launch);
    w.end();
  }
  w.end();
}

void write_threads(JsonWriter& w, const Drawing& drawing) {
  w.begin_array("threads", kTight);
  for (const ThreadLane& lane : drawing.threads) {
    w.begin_object({}, kTight);
    w.text("name", lane.name);
    w.integer("launches", lane.launches);
    differences(w, "begin_ns", lane.begin);
    column(w, "ns", lane.length);
    column(w, "name_index", lane.text);
    column(w, "kind", lane.kind);
    w.end();
  }
  w.end();
}

void write_gaps(JsonWriter& w, const Drawing& drawing) {
  std::vector<Nanos> begin, length;
  for (const DrawnGap& gap : drawing.gaps) {
    begin.push_back(gap.begin);
    length.push_back(gap.length);
  }
  w.begin_object("gaps", kTight);
  differences(w, "begin_ns", begin);
  column(w, "ns", length);
  w.begin_array("owner", kTight);
  for (const DrawnGap& gap : drawing.gaps) w.text({}, known::owner_name(gap.owner));
  w.end();
  w.end();
}

void write_layers(JsonWriter& w, const Drawing& drawing) {
  std::vector<Nanos> begin, length;
  for (const store::Span& span : drawing.layers.spans) {
    begin.push_back(span.begin);
    length.push_back(span.length());
  }
  w.begin_object("layers", kTight);
  w.text_or_null("how", drawing.layers.how);
  w.text_or_null("by", drawing.run ? text_of(*drawing.run, drawing.layers.by) : std::string_view());
  differences(w, "begin_ns", begin);
  column(w, "ns", length);
  w.end();
}

// Which kernels, by their index in the answer, each suspect is about; for those about idle time, its
// owner.
void write_accused(JsonWriter& w, const Answer& answer, std::size_t kernels) {
  w.begin_array("accused", kTight);
  for (const verdict::Suspect& suspect : answer.verdict->suspects) {
    w.begin_object({}, kTight);
    w.begin_array("kernels", kTight);
    for (const std::size_t k : suspect.kernels)
      if (k < kernels) w.integer({}, static_cast<std::int64_t>(k));
    w.end();
    std::string owner;
    for (const evidence::BudgetRow& row : answer.evidence->budget)
      if (known::owner_name(row.owner) == "idle-" + suspect.id) owner = "idle-" + suspect.id;
    w.text_or_null("idle_owner", owner);
    w.end();
  }
  w.end();
}

void write_left_out(JsonWriter& w, const Answer& answer, const Drawing& drawing,
                    std::size_t kernels) {
  const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  const std::size_t all = answer.evidence->kernels.size();
  w.begin_object("left_out", kTight);
  w.integer("kernels", count(all - std::min(all, kernels)));
  w.integer("activities", count(drawing.activities_left_out));
  w.integer("gaps", count(drawing.gaps_left_out));
  for (std::size_t k = 0; k < kHostKinds; ++k)
    w.integer(std::string(kHostKindNames[k]) + "s", count(drawing.host_left_out[k]));
  w.end();
}

}  // namespace

std::string render_drawing(const Answer& answer, const Drawing& drawing, std::size_t kernels) {
  if (!answer.usable()) return "null\n";
  JsonWriter w(std::clamp(kNameBytes / std::max<std::size_t>(1, drawing.names.size()),
                          kShortestName, kLongestName));
  w.begin_object({}, kTight);
  w.integer("drawing_version", kDrawingVersion);
  write_steps(w, answer, drawing);
  w.begin_array("host_kinds", kTight);
  for (const std::string_view kind : kHostKindNames) w.text({}, kind);
  w.end();
  write_names(w, drawing);
  write_streams(w, drawing);
  write_threads(w, drawing);
  write_gaps(w, drawing);
  write_layers(w, drawing);
  write_accused(w, answer, kernels);
  write_left_out(w, answer, drawing, kernels);
  w.end();
  return w.take();
}

}  // namespace culprit::report
