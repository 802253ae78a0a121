#include "profile/kineto.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <tuple>

#include "profile/json_text.h"

namespace culprit::profile::detail {
namespace {

// Kineto's: times stay below 2^53 ns, and traces of one quarter share their base.
constexpr Nanos kBaseStep = Nanos{7'889'238} * 1'000'000'000;

std::string process_name() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "engine" : name;
}

struct Place {
  std::int64_t process = 0, thread = 0;
};

class Events {
 public:
  Events(const Options& options, const Window& window, const Calibration& calibration,
         TraceFile& file)
      : options_(options),
        window_(window),
        calibration_(calibration),
        base_(calibration.epoch_ns(window.steps.front().begin) / kBaseStep * kBaseStep),
        host_(getpid()),
        text_(file) {}

  void head();
  void names(const Logs& logs);
  void records(const Log& log);
  void device_marks();
  void foot();
  std::int64_t count() const { return count_; }

 private:
  // Begin and end of a step's work on one stream.
  using StreamOfStep = std::tuple<std::uint32_t, std::int32_t, std::int32_t>;
  struct Extent {
    Nanos begin = 0, end = 0;
  };

  Nanos time(Ticks ticks) const { return calibration_.epoch_ns(ticks) - base_; }
  void property(std::string_view key, std::int64_t value, std::string_view behind = ", ");
  void device(const Device& device);
  void name(std::string_view what, Place place, std::string_view key, std::string_view value);
  void open(std::string_view category, std::string_view name, Place place, Nanos begin, Nanos end);
  void open(std::string_view category, std::string_view name, Place place, const Record& record);
  JsonText& arg(std::string_view key);
  void close();

  void op(const Record& record, Place place);
  void inputs(const Record& record);
  void frames(const Record& record, Place place);
  void call(const Record& record, Place place);
  void work(const Record& record);
  void grid(std::string_view key, const std::array<std::uint32_t, 3>& extents);
  void message(const Message& message);

  const Options& options_;
  const Window& window_;
  const Calibration& calibration_;
  const Nanos base_;
  const std::int64_t host_;
  JsonText text_;
  std::map<StreamOfStep, Extent> extents_;
  std::int64_t count_ = 0;
  bool first_arg_ = true;
};

void Events::property(std::string_view key, std::int64_t value, std::string_view behind) {
  text_.quoted(key).raw(": ").number(value).raw(behind);
}

void Events::device(const Device& device) {
  text_.raw("{");
  property("id", device.id);
  text_.raw("\"name\": ").quoted(device.name).raw(", ");
  property("totalGlobalMem", device.memory);
  if (std::isfinite(device.bytes_per_s) && device.bytes_per_s > 0 && device.bytes_per_s < 1e18)
    property("memoryBandwidth", std::llround(device.bytes_per_s));
  property("computeMajor", 0);
  property("computeMinor", 0);
  property("numSms", device.cores, "}");
}

void Events::head() {
  text_.raw("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
  for (const Device& one : options_.devices) {
    if (&one != &options_.devices.front()) text_.raw(", ");
    device(one);
  }
  text_.raw("],\n");
  if (options_.ranks > 1) {
    text_.raw("\"distributedInfo\": {\"backend\": ").quoted(options_.backend).raw(", ");
    property("rank", options_.rank);
    property("world_size", options_.ranks, "},\n");
  }
  text_.raw("\"record_shapes\": 1,\n\"with_stack\": 1,\n\"culprit_profile\": {");
  property("warmup", options_.warmup);
  property("steps_asked", options_.steps);
  property("steps", static_cast<std::int64_t>(window_.steps.size()));
  property("lost_events", window_.lost);
  text_.raw("\"clock\": ").quoted(counts_cycles ? "tsc" : "monotonic").raw("},\n");
  text_.raw("\"displayTimeUnit\": \"ms\",\n");
  property("baseTimeNanoseconds", base_, ",\n");
  text_.raw("\"traceEvents\": [\n");
}

// Metadata: what a process or thread is called.
void Events::name(std::string_view what, Place place, std::string_view key,
                  std::string_view value) {
  text_.raw("{\"ph\": \"M\", \"name\": ").quoted(what).raw(", ");
  property("pid", place.process);
  property("tid", place.thread);
  text_.raw("\"ts\": ").micros(time(window_.steps.front().begin));
  text_.raw(", \"args\": {").quoted(key).raw(": ").quoted(value).raw("}},\n");
  ++count_;
}

void Events::names(const Logs& logs) {
  const std::string process = process_name();
  name("process_name", {host_, 0}, "name", process);
  name("process_labels", {host_, 0}, "labels", "CPU");
  for (const auto& log : logs) {
    const std::string number = "thread " + std::to_string(log->thread);
    name("thread_name", {host_, log->thread}, "name",
         log->name.empty() ? number : number + " (" + log->name + ")");
  }
  std::map<std::pair<std::int32_t, std::int32_t>, bool> streams;
  for (const auto& log : logs)
    for_each_record(*log, [&](const Record& record) {
      if (is_work(record.kind) && window_.keeps(record))
        streams[{work_of(record).device, work_of(record).stream}] = true;
    });
  std::int32_t last = -1;
  for (const auto& [stream, used] : streams) {
    const Place place{stream.first, stream.second};
    if (stream.first != last) {
      name("process_name", {stream.first, 0}, "name", process);
      name("process_labels", {stream.first, 0}, "labels", "GPU " + std::to_string(stream.first));
    }
    last = stream.first;
    name("thread_name", place, "name", "stream " + std::to_string(stream.second));
  }
}

void Events::open(std::string_view category, std::string_view name, Place place, Nanos begin,
                  Nanos end) {
  text_.raw("{\"ph\": \"X\", \"cat\": ").quoted(category).raw(", \"name\": ").quoted(name);
  text_.raw(", \"pid\": ").number(place.process).raw(", \"tid\": ").number(place.thread);
  text_.raw(", \"ts\": ").micros(begin).raw(", \"dur\": ").micros(std::max<Nanos>(end - begin, 0));
  text_.raw(", \"args\": {");
  first_arg_ = true;
  ++count_;
}

void Events::open(std::string_view category, std::string_view name, Place place,
                  const Record& record) {
  open(category, name, place, time(record.begin), time(window_.end_of(record)));
}

JsonText& Events::arg(std::string_view key) {
  if (!first_arg_) text_.raw(", ");
  first_arg_ = false;
  return text_.quoted(key).raw(": ");
}

void Events::close() { text_.raw("}},\n"); }

void Events::records(const Log& log) {
  const Place place{host_, log.thread};
  for_each_record(log, [&](const Record& record) {
    if (!window_.keeps(record)) return;
    switch (record.kind) {
      case Kind::kStep:
      case Kind::kMark:
        open("user_annotation", mark_text(record), place, record);
        close();
        break;
      case Kind::kOp:
        op(record, place);
        break;
      case Kind::kLaunch:
      case Kind::kWait:
        call(record, place);
        break;
      case Kind::kKernel:
      case Kind::kCopy:
      case Kind::kCollective:
        work(record);
        break;
    }
  });
}

void Events::op(const Record& record, Place place) {
  frames(record, place);
  open("cpu_op", record.name.view(), place, record);
  arg("External id").number(static_cast<std::int64_t>(record.id));
  inputs(record);
  if (record.end.load(std::memory_order_acquire) == 0) arg("finished").raw("false");
  close();
}

void Events::inputs(const Record& record) {
  if (record.count == 0) return;
  const auto each = [&](auto&& write) {
    std::size_t at = sizeof(OpTail);
    for (std::uint32_t i = 0; i < record.count; ++i) {
      const Input& input = *tail<Input>(&record, at);
      if (i > 0) text_.raw(", ");
      write(input, at + sizeof(Input));
      at += sizeof(Input) + input.rank * sizeof(std::int64_t);
    }
  };
  arg("Input Dims").raw("[");
  each([&](const Input& input, std::size_t at) {
    text_.raw("[");
    for (std::size_t d = 0; d < input.rank; ++d) {
      if (d > 0) text_.raw(", ");
      text_.number(tail<std::int64_t>(&record, at)[d]);
    }
    text_.raw("]");
  });
  text_.raw("]");
  arg("Input type").raw("[");
  each([&](const Input& input, std::size_t) { text_.quoted(input.type.view()); });
  text_.raw("]");
}

void Events::frames(const Record& record, Place place) {
  const Location& where = *tail<OpTail>(&record);
  const std::string file(where.file);
  if (file.empty()) return;
  const std::string line = std::to_string(where.line);
  const auto id = static_cast<std::int64_t>(record.id),
             around = static_cast<std::int64_t>(record.parent);
  open("python_function", file + "(" + line + "): " + where.function, place, record);
  arg("Python id").number(2 * id);
  arg("Python parent id");
  around != 0 ? text_.number(2 * around + 1) : text_.raw("null");
  close();
  open("python_function", "<built-in function " + std::string(record.name.view()) + ">", place,
       record);
  arg("Python id").number(2 * id + 1);
  arg("Python parent id").number(2 * id);
  arg("CallFrom").quoted(file + ":" + line);
  close();
}

void Events::call(const Record& record, Place place) {
  open("cuda_runtime", record.name.view(), place, record);
  if (record.parent != 0) arg("External id").number(static_cast<std::int64_t>(record.parent));
  arg("correlation").number(static_cast<std::int64_t>(record.id));
  close();
}

void Events::grid(std::string_view key, const std::array<std::uint32_t, 3>& extents) {
  if (extents[0] == 0) return;
  arg(key)
      .raw("[")
      .number(extents[0])
      .raw(", ")
      .number(extents[1])
      .raw(", ")
      .number(extents[2])
      .raw("]");
}

void Events::message(const Message& message) {
  arg("Collective name").quoted(message.collective.view());
  arg("In msg nelems").number(message.in_elements);
  arg("Out msg nelems").number(message.out_elements);
  arg("Group size").number(message.ranks);
  arg("dtype").quoted(message.dtype.view());
  arg("Process Group Name").quoted(message.group.view());
  arg("Process Group Ranks").quoted(message.members.view());
}

void Events::work(const Record& record) {
  const Work& its = work_of(record);
  const LaunchRow& launch = *window_.launch(record.id);
  const Nanos begin = time(record.begin), end = time(window_.end_of(record));
  const bool copies = record.kind == Kind::kCopy;
  const bool fills = copies && record.name.view().starts_with("Memset");
  open(fills    ? "gpu_memset"
       : copies ? "gpu_memcpy"
                : "kernel",
       record.name.view(), {its.device, its.stream}, begin, end);
  if (launch.op != 0) arg("External id").number(static_cast<std::int64_t>(launch.op));
  arg("device").number(its.device);
  arg("stream").number(its.stream);
  arg("correlation").number(static_cast<std::int64_t>(record.id));
  grid("grid", its.grid);
  grid("block", its.block);
  if (its.bytes > 0) arg("bytes").number(its.bytes);
  if (record.kind == Kind::kCollective) message(tail<CollectiveTail>(&record)->message);
  close();
  if (launch.step == LaunchRow::kNoStep) return;
  const auto [at, fresh] =
      extents_.try_emplace({launch.step, its.device, its.stream}, Extent{begin, end});
  if (fresh) return;
  at->second.begin = std::min(at->second.begin, begin);
  at->second.end = std::max(at->second.end, end);
}

void Events::device_marks() {
  for (const auto& [where, extent] : extents_) {
    const auto& [step, device, stream] = where;
    open("gpu_user_annotation", mark_text(*window_.steps[step].record), {device, stream},
         extent.begin, extent.end);
    close();
  }
}

void Events::foot() {
  text_.raw(
      "{\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": "
      "\"\", \"ts\": ");
  text_.micros(time(window_.end)).raw("}\n]\n}\n");
  ++count_;
}

}  // namespace

std::string mark_text(const Record& record) {
  if (!record.name.view().empty()) return std::string(record.name.view());
  const Mark& mark = *tail<StepTail>(&record);
  std::string text = "step[" + std::string(mark.kind.view());
  if (mark.batch > 0) text += " bs=" + std::to_string(mark.batch);
  if (mark.tokens > 0) text += " toks=" + std::to_string(mark.tokens);
  return text + "]";
}

std::int64_t write_kineto(const Options& options, const Logs& logs, const Window& window,
                          const Calibration& calibration, TraceFile& file) {
  Events events(options, window, calibration, file);
  events.head();
  events.names(logs);
  for (const auto& log : logs) events.records(*log);
  events.device_marks();
  events.foot();
  return events.count();
}

}  // namespace culprit::profile::detail
