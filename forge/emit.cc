#include "forge/emit.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "forge/clock.h"
#include "forge/events.h"

namespace culprit::forge {
namespace {

constexpr Nanos kLeadIn = 1'350'000;   // from the start of the recording to the first step
constexpr Nanos kLeadOut = 2'210'000;  // from the last step to the end of the recording
constexpr std::int64_t kFirstCorrelation = 61'043;
constexpr std::int64_t kCorrelationStride = 5;  // calls that are not recorded take ids too

// Kineto rounds its base down to a whole number of 7,889,238 s.
constexpr std::string_view kBase = "1775078550000000000";

// When the recording began, in the terms of its era.
Nanos origin_of(Era era) {
  switch (era) {
    case Era::kAbsoluteMicros:
      return 1'694'128'201'426'556'000;
    case Era::kAbsoluteNanos:
      return 1'712'195'495'501'688'612;
    case Era::kRelative:
      return 4'909'733'314'358'856;
  }
  return 0;
}

// A step and its times, and how many of each thing came before it.
struct StepView {
  const StepPlan* plan = nullptr;
  const StepTimes* times = nullptr;
  int index = 0;
  std::int64_t ops_before = 0;
  std::int64_t frames_before = 0;
  std::int64_t launches_before = 0;
};

Values times_of(const StepView& view, const Span& span) {
  Values values;
  values.time = view.times->at(*view.plan, span.open);
  values.duration = view.times->at(*view.plan, span.close) - values.time;
  return values;
}

class Writer {
 public:
  Writer(const Run& run, const WriteOptions& options, const Plan& plan, Sink& sink);
  Result<Written> write();

 private:
  struct LaunchText {
    std::size_t device = 0;    // index into device_texts_
    std::size_t api = 0;       // index into api_texts_
    std::size_t flow_end = 0;  // index into other_texts_
  };

  void compile();
  Launch loaded(const Launch& launch) const;
  LaunchText launch_text(const Launch& launch, bool linked, bool graph);
  const StepPlan& plan_of(int step) const;
  template <class Visit>
  void for_each_step(Visit visit);
  void survey();
  std::string header() const;
  void open_document();
  void close_document();
  void write_ops();
  void write_frames();
  void write_activities();
  void write_launches(const StepView& view, const PlannedCall& call);
  void write_neighbour();
  void write_device_annotation(const StepView& view, std::size_t index);
  void write_device_annotations();
  void write_names();
  void write_one_off(std::string_view pretty, Nanos time, Nanos duration);
  Nanos on_own_clock(Nanos time) const;
  void stamp(const Stencil& stencil, const Values& values);
  Stencil stencil(std::string_view pretty) const { return {pretty, options_.layout}; }
  bool old_era() const { return options_.era == Era::kAbsoluteMicros; }

  const Run& run_;
  const WriteOptions& options_;
  const Plan& plan_;
  Place place_;
  Detail detail_;
  TextBuffer out_;
  Written written_;
  Nanos origin_ = 0;
  Nanos end_ = 0;                   // of the last step, from the start of the first
  std::map<Nanos, Nanos> overran_;  // turn of the other process: end of the kernel it waited for
  std::int64_t op_count_ = 0;

  std::vector<Stencil> frame_texts_;
  std::vector<Stencil> op_texts_;
  std::vector<Stencil> annotation_texts_;
  std::vector<Stencil> device_annotation_texts_;
  std::vector<Stencil> device_texts_;
  std::vector<Stencil> api_texts_;
  std::vector<Stencil> other_texts_;  // graph launch, flow start, flow end, of the second stream
  std::unordered_map<const Launch*, std::array<LaunchText, 3>>
      launch_texts_;  // free, linked, in a graph
};

constexpr std::size_t kGraphLaunch = 0;
constexpr std::size_t kFlowStart = 1;
constexpr std::size_t kFlowEnd = 2;
constexpr std::size_t kSecondFlowEnd = 3;
constexpr int kSecondStream = 21;

Writer::Writer(const Run& run, const WriteOptions& options, const Plan& plan, Sink& sink)
    : run_(run),
      options_(options),
      plan_(plan),
      out_(sink),
      origin_(origin_of(options.era) + kLeadIn) {
  place_.pid = 31'742 + options.rank * 131;
  place_.tid = place_.pid;
  place_.device = options.rank;
  detail_.shapes = options.shapes;
  detail_.call_from = options.call_from;
  detail_.record_function = !old_era();
  detail_.rank = options.rank;
  detail_.world = run.world;
}

const StepPlan& Writer::plan_of(int step) const {
  const auto kind =
      static_cast<std::size_t>(run_.pattern[static_cast<std::size_t>(step) % run_.pattern.size()]);
  if (options_.partial_ends && step == 0) return plan_.first[kind];
  if (options_.partial_ends && step + 1 == options_.steps) return plan_.last[kind];
  return plan_.steps[kind];
}

template <class Visit>
void Writer::for_each_step(Visit visit) {
  Clock clock(run_, run_.world, options_.rank, options_.seed);
  StepView view;
  view.frames_before = options_.stacks ? static_cast<std::int64_t>(run_.root.size()) : 0;
  for (int i = 0; i < options_.steps; ++i) {
    view.plan = &plan_of(i);
    view.times = &clock.step(*view.plan);
    view.index = i;
    visit(view);
    view.ops_before += static_cast<std::int64_t>(view.plan->ops.size());
    view.frames_before += static_cast<std::int64_t>(view.plan->frames.size());
    view.launches_before += static_cast<std::int64_t>(view.plan->launches.size());
  }
  end_ = clock.now();
}

void Writer::survey() {
  for_each_step(
      [&](const StepView& view) { op_count_ += static_cast<std::int64_t>(view.plan->ops.size()); });
}

void Writer::compile() {
  for (const Frame& frame : plan_.frames)
    frame_texts_.push_back(stencil(frame_event(frame, place_, detail_)));
  for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
    op_texts_.push_back(stencil(op_event(plan_.ops[i], plan_.collectives[i], place_, detail_)));
  }
  for (const std::string& name : plan_.annotations) {
    annotation_texts_.push_back(stencil(annotation_event(name, place_, detail_)));
    device_annotation_texts_.push_back(stencil(device_annotation_event(name, place_)));
  }
  other_texts_.push_back(stencil(graph_launch_event(place_)));
  other_texts_.push_back(stencil(flow_start_event(place_)));
  other_texts_.push_back(stencil(flow_end_event(place_)));
  Place second = place_;
  second.stream = kSecondStream;
  other_texts_.push_back(stencil(flow_end_event(second)));
}

// The launch as this rank makes it: a late one may have more requests.
Launch Writer::loaded(const Launch& launch) const {
  Launch its = launch;
  if (launch.by_load && options_.rank == run_.late.rank)
    its.grid[0] = its.grid[0] * run_.late.load / 1000;
  return its;
}

Writer::LaunchText Writer::launch_text(const Launch& launch, bool linked, bool graph) {
  const auto at = launch_texts_.find(&launch);
  if (at != launch_texts_.end()) return at->second[graph ? 2 : linked ? 1 : 0];
  Place place = place_;
  if (launch.aside) place.stream = kSecondStream;
  std::array<LaunchText, 3> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].device = device_texts_.size();
    device_texts_.push_back(
        stencil(device_event(loaded(launch), i == 1, i == 2, run_.device, place, detail_)));
    texts[i].api = api_texts_.size();
    api_texts_.push_back(stencil(api_event(launch.api, i == 1, place_)));
    texts[i].flow_end = launch.aside ? kSecondFlowEnd : kFlowEnd;
  }
  launch_texts_.emplace(&launch, texts);
  return texts[graph ? 2 : linked ? 1 : 0];
}

// What this rank's clock shows when `time` of the run have passed.
Nanos Writer::on_own_clock(Nanos time) const {
  constexpr Nanos kParts = 1'000'000'000;
  const Nanos seconds =
      time / kParts;  // in two parts: the product would not fit after three minutes
  const Nanos drift =
      seconds * options_.clock_drift + time % kParts * options_.clock_drift / kParts;
  return time + options_.clock_offset + drift;
}

void Writer::stamp(const Stencil& text, const Values& values) {
  Values shifted = values;
  shifted.time = on_own_clock(values.time) + origin_;
  shifted.duration = on_own_clock(values.time + values.duration) + origin_ - shifted.time;
  text.stamp(out_, shifted, options_.era);
  ++written_.events;
}

void Writer::write_one_off(std::string_view pretty, Nanos time, Nanos duration) {
  Values values;
  values.time = time;
  values.duration = duration;
  stamp(stencil(pretty), values);
}

void Writer::write_ops() {
  const auto write = [&](const StepView& view) {
    for (std::size_t i = 0; i < view.plan->ops.size(); ++i) {
      const Span& span = view.plan->ops[i];
      Values values = times_of(view, span);
      values.event = view.ops_before + static_cast<std::int64_t>(i);
      values.external = values.event + 1;
      values.number = span.annotation ? run_.first_step + view.index : span.layer;
      stamp(span.annotation ? annotation_texts_[span.text] : op_texts_[span.text], values);
    }
  };
  for_each_step(write);
}

void Writer::write_frames() {
  if (!options_.stacks) return;
  for (std::size_t i = 0; i < run_.root.size(); ++i) {
    Values values;
    values.time = -kLeadIn / 2;
    values.duration = end_ + kLeadIn / 2 + kLeadOut / 2;
    values.python = static_cast<std::int64_t>(i) + 1;
    values.parent = i == 0 ? -1 : values.python - 1;
    values.event = op_count_ + static_cast<std::int64_t>(i);
    stamp(stencil(frame_event(run_.root[i], place_, detail_)), values);
  }
  const auto innermost_root = run_.root.empty() ? -1 : static_cast<std::int64_t>(run_.root.size());
  const auto write = [&](const StepView& view) {
    for (std::size_t i = 0; i < view.plan->frames.size(); ++i) {
      const Span& span = view.plan->frames[i];
      Values values = times_of(view, span);
      values.python = view.frames_before + static_cast<std::int64_t>(i) + 1;
      values.parent = span.parent < 0 ? innermost_root : view.frames_before + span.parent + 1;
      values.event = op_count_ + values.python - 1;
      values.number = span.layer;
      stamp(frame_texts_[span.text], values);
    }
  };
  for_each_step(write);
}

// Each launch as Kineto's buffers give it: the device event, then the API call, each with its flow.
void Writer::write_launches(const StepView& view, const PlannedCall& call) {
  Values values;
  values.external = view.ops_before + call.op + 1;
  for (std::uint32_t i = 0; i < call.launches; ++i) {
    const std::uint32_t index = call.first_launch + i;
    const Launch& launch = *view.plan->launches[index];
    const LaunchTimes& times = view.times->launches[index];
    const LaunchText text = launch_text(launch, call.op >= 0, call.graph);
    const std::int64_t serial = view.launches_before + (call.graph ? call.first_launch : index);
    values.correlation = kFirstCorrelation + serial * kCorrelationStride;
    if (times.device_end != 0) {
      values.time = times.device_begin;
      values.duration = times.device_end - times.device_begin;
      values.bytes = launch.bytes;
      values.number = 1 + i;
      stamp(device_texts_[text.device], values);
      stamp(other_texts_[text.flow_end], values);
      if (run_.away_every != 0) {
        const Nanos turn = times.device_end / run_.away_every;
        if (times.device_begin < turn * run_.away_every) overran_[turn] = times.device_end;
      }
      ++written_.launches;
    }
    if (call.graph && i + 1 < call.launches) continue;
    values.time = times.api_begin;
    values.duration = times.api_end - times.api_begin;
    stamp(call.graph ? other_texts_[kGraphLaunch] : api_texts_[text.api], values);
    stamp(other_texts_[kFlowStart], values);
  }
}

void Writer::write_activities() {
  const auto write = [&](const StepView& view) {
    for (const PlannedCall& call : view.plan->calls) write_launches(view, call);
  };
  for_each_step(write);
}

// The other process of the machine, in a recording that holds both: one kernel in each of its turns.
void Writer::write_neighbour() {
  if (run_.away_every == 0) return;
  constexpr std::int64_t kItsCorrelations = 9'000'001;
  constexpr Nanos kLead = 40'000;
  Place its = place_;
  its.pid = its.tid = place_.pid + 977;
  its.stream = 13;
  Launch launch;
  launch.name = "void train_step_kernel<__nv_bfloat16>(__nv_bfloat16 const*, __nv_bfloat16*, long)";
  launch.grid = {run_.device.sms * 8, 1, 1};
  launch.block = {256, 1, 1};
  const Stencil device = stencil(device_event(launch, false, false, run_.device, its, detail_));
  const Stencil api = stencil(api_event(launch.api, false, its));
  const Clock clock(run_, run_.world, options_.rank, options_.seed);
  for (Nanos turn = 1; turn * run_.away_every < end_; ++turn) {
    const Clock::Turn away = clock.away(turn);
    const auto held = overran_.find(turn);
    Values values;
    values.correlation = kItsCorrelations + turn;
    values.time = std::max(away.begin, held == overran_.end() ? 0 : held->second) + 1'500;
    values.duration = away.end - values.time - 1'500;
    if (values.duration <= 0) continue;
    stamp(device, values);
    values.time -= kLead;
    values.duration = 2'400;
    stamp(api, values);
  }
}

// An annotation's twin on the device spans what was launched under it.
void Writer::write_device_annotation(const StepView& view, std::size_t index) {
  const Span& span = view.plan->ops[index];
  const PlannedCall& last = view.plan->calls[span.close.call];
  Nanos begin = 0;
  Nanos end = 0;
  for (std::uint32_t i = view.plan->calls[span.open.call].first_launch;
       i < last.first_launch + last.launches; ++i) {
    const LaunchTimes& times = view.times->launches[i];
    if (times.device_end == 0) continue;
    if (begin == 0) begin = times.device_begin;
    end = std::max(end, times.device_end);
  }
  if (end == 0) return;
  Values values;
  values.time = begin - 1;  // Kineto widens it so that it encloses its kernels
  values.duration = end - begin + 2;
  values.external = view.ops_before + static_cast<std::int64_t>(index) + 1;
  values.number = run_.first_step + view.index;
  stamp(device_annotation_texts_[span.text], values);
}

void Writer::write_device_annotations() {
  const auto write = [&](const StepView& view) {
    for (std::size_t i = 0; i < view.plan->ops.size(); ++i) {
      if (view.plan->ops[i].annotation) write_device_annotation(view, i);
    }
  };
  for_each_step(write);
}

void Writer::write_names() {
  for (const std::string& event : process_events(run_.process, place_, old_era())) {
    write_one_off(event, -kLeadIn * 3 / 4, 0);
  }
  for (const std::string& event : closing_events())
    write_one_off(event, -kLeadIn, end_ + kLeadIn + kLeadOut);
  std::string window_end =
      "  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n";
  window_end +=
      "    \"pid\": \"\", \"tid\": \"\", \"ts\": " + std::string(hole_text("\x01")) + "\n  }\n";
  write_one_off(window_end, end_ + 2 * kLeadOut, 0);
}

std::string Writer::header() const {
  Header header{"", options_.shapes, options_.stacks, options_.rank, run_.world};
  if (options_.era == Era::kRelative) header.base = kBase;
  return header_members(header, run_.device);
}

void Writer::open_document() {
  if (options_.layout == Layout::kArray) return out_.text("[\n");
  const std::string start =
      "\n  {\n" + (options_.header_last ? "" : header()) + "  \"traceEvents\": [";
  out_.text(options_.layout == Layout::kPretty ? start : one_line(start));
  out_.text("\n");
}

void Writer::close_document() {
  if (options_.layout == Layout::kArray) return out_.text("]\n");
  std::string end = "  ],\n" + (options_.header_last ? header() : "");
  end += "  \"traceName\": \"/tmp/" + run_.name + "-TP-" + std::to_string(options_.rank) +
         ".trace.json\"\n}";
  out_.text(options_.layout == Layout::kPretty ? end : one_line(end));
}

Result<Written> Writer::write() {
  compile();
  survey();
  open_document();
  write_ops();
  write_frames();
  write_activities();
  write_neighbour();
  write_device_annotations();
  write_names();
  close_document();
  if (!out_.flush())
    return Error{Error::Code::kCannotRead, "the trace could not be written", run_.name,
                 "is the disk full?"};
  written_.bytes = out_.bytes();
  written_.steps = options_.steps;
  written_.span = end_ + kLeadIn + 2 * kLeadOut;
  return written_;
}

Result<Written> write_with_filler(const Run& run, WriteOptions options, Sink& sink,
                                  std::uint64_t filler, int steps) {
  options.filler = filler;
  options.steps = steps;
  return write_trace(run, options, sink);
}

}  // namespace

Result<Written> write_trace(const Run& run, const WriteOptions& options, Sink& sink) {
  if (options.rank < 0 || options.rank >= run.world || options.steps < 1 || run.pattern.empty()) {
    return Error{Error::Code::kUsage, "no such rank, or no step to write", run.name, ""};
  }
  const Plan plan = make_plan(run, {options.marks, options.graph, options.stacks, options.filler});
  return Writer(run, options, plan, sink).write();
}

Status fit(const Run& run, const Wanted& wanted, WriteOptions& options) {
  // Size grows by the step and by the filler: three short runs give the slopes, the rest is a line.
  constexpr std::uint64_t kProbe = 20'000;
  CountingSink nowhere;
  const int period = static_cast<int>(run.pattern.size());
  TRY(const Written one, write_with_filler(run, options, nowhere, 0, period));
  TRY(const Written two, write_with_filler(run, options, nowhere, 0, 2 * period));
  TRY(const Written more, write_with_filler(run, options, nowhere, kProbe, period));
  const auto periods = static_cast<std::uint64_t>(period);
  const auto at_steps = [&](std::uint64_t of_one, std::uint64_t of_two) {
    const std::uint64_t fixed = 2 * of_one - of_two;
    return fixed + (of_two - of_one) * static_cast<std::uint64_t>(options.steps) / periods;
  };
  const auto larger_than = [&](std::uint64_t bytes) {
    return wanted.bytes != 0 && at_steps(one.bytes, two.bytes) > bytes;
  };
  while (!wanted.keep_steps && options.steps > period && larger_than(wanted.bytes)) --options.steps;
  if (larger_than(wanted.bytes + wanted.bytes / 10)) {
    const std::uint64_t megabytes = at_steps(one.bytes, two.bytes) / 1'000'000;
    return Error{Error::Code::kUsage,
                 "the run needs " + std::to_string(megabytes) + " MB, more than the size asked for",
                 "", "pass fewer --steps, --no-stacks or --no-shapes"};
  }
  const auto steps = static_cast<std::uint64_t>(options.steps);
  const std::uint64_t base_bytes = at_steps(one.bytes, two.bytes);
  const std::uint64_t base_events = at_steps(one.events, two.events);
  options.filler = 0;
  if (wanted.events > base_events)
    options.filler = (wanted.events - base_events + steps - 1) / steps + 1;
  if (wanted.bytes > base_bytes) {
    const std::uint64_t per_filler = (more.bytes - one.bytes) * 1024 / (kProbe * periods);
    options.filler =
        std::max(options.filler, (wanted.bytes - base_bytes) * 1024 / per_filler / steps);
  }
  return Ok{};
}

}  // namespace culprit::forge
