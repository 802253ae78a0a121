// TraceMaker: hand-made traces for the tests of src/run. Times are given in microseconds unless a
// name says ns. Host rows go to thread 4001, device rows to stream 7 of device 0, unless told.
#pragma once

#include <string>
#include <string_view>

#include "run/run.h"
#include "store/trace.h"

namespace culprit::run::testing {

inline constexpr Nanos kUs = 1'000;

class TraceMaker {
 public:
  store::Trace trace;

  TraceMaker() {
    trace.info.path = "trace.json";
    trace.info.devices.push_back({0, "NVIDIA H200", 150'754'820'096, 132, 9, 0, 0});
    host = thread("4001", "4001");
    stream = thread("0", "7");
  }

  store::ThreadId host, stream;  // where rows go

  store::StringId text(std::string_view s) { return trace.strings.intern(s); }
  store::ThreadId thread(std::string_view pid, std::string_view tid, std::string_view rank = "") {
    trace.threads.push_back({text(pid), text(tid), text(rank)});
    return store::ThreadId{trace.threads.size() - 1};
  }

  store::DeviceRow kernel_ns(std::string_view name, Nanos begin, Nanos dur,
                             std::int64_t correlation, store::Dim3 grid = {1, 1, 1}) {
    return device(store::DeviceKind::kKernel, name, begin, dur, correlation, grid);
  }
  store::DeviceRow kernel(std::string_view name, Nanos begin, Nanos dur, std::int64_t correlation,
                          store::Dim3 grid = {1, 1, 1}) {
    return kernel_ns(name, begin * kUs, dur * kUs, correlation, grid);
  }
  store::DeviceRow copy(std::string_view name, Nanos begin, Nanos dur, std::int64_t correlation) {
    return device(store::DeviceKind::kMemcpy, name, begin * kUs, dur * kUs, correlation, {});
  }
  store::CallRow call(std::string_view name, Nanos begin, Nanos dur, std::int64_t correlation,
                      std::int64_t external = store::kNoId) {
    auto& t = trace.calls;
    t.begin.push_back(begin * kUs);
    t.dur.push_back(dur * kUs);
    t.name.push_back(text(name));
    t.thread.push_back(host);
    t.correlation.push_back(correlation);
    t.external.push_back(external);
    t.kernel.push_back(text(""));
    return store::CallRow{t.size() - 1};
  }
  // A launch of 2 us and its kernel.
  store::DeviceRow launched(std::string_view name, Nanos launch, Nanos begin, Nanos dur,
                            store::Dim3 grid = {1, 1, 1}) {
    call("cudaLaunchKernel", launch, 2, ++last_correlation);
    return kernel(name, begin, dur, last_correlation, grid);
  }
  store::OpRow op(std::string_view name, Nanos begin, Nanos dur,
                  std::int64_t external = store::kNoId, std::string_view dims = "") {
    auto& t = trace.ops;
    t.begin.push_back(begin * kUs);
    t.dur.push_back(dur * kUs);
    t.name.push_back(text(name));
    t.thread.push_back(host);
    t.external.push_back(external);
    t.dims.push_back(text(dims));
    t.types.push_back(text(""));
    return store::OpRow{t.size() - 1};
  }
  store::FrameRow frame(std::string_view name, Nanos begin, Nanos dur,
                        std::string_view call_from = "") {
    auto& t = trace.frames;
    t.begin.push_back(begin * kUs);
    t.dur.push_back(dur * kUs);
    t.name.push_back(text(name));
    t.thread.push_back(host);
    t.call_from.push_back(text(call_from));
    return store::FrameRow{t.size() - 1};
  }
  void mark(std::string_view name, Nanos begin, Nanos dur) {
    mark_ns(name, begin * kUs, dur * kUs, host, store::MarkKind::kHost);
  }
  void device_mark(std::string_view name, Nanos begin, Nanos dur) {  // as drawn: wider by 1 ns each
    mark_ns(name, begin * kUs - 1, dur * kUs + 2, stream, store::MarkKind::kDevice);
  }
  void mark_ns(std::string_view name, Nanos begin, Nanos dur, store::ThreadId on,
               store::MarkKind kind) {
    auto& t = trace.marks;
    t.begin.push_back(begin);
    t.dur.push_back(dur);
    t.name.push_back(text(name));
    t.thread.push_back(on);
    t.kind.push_back(kind);
  }

  std::int64_t last_correlation = 0;
  std::int32_t device_id = 0;

 private:
  store::DeviceRow device(store::DeviceKind kind, std::string_view name, Nanos begin, Nanos dur,
                          std::int64_t correlation, store::Dim3 grid) {
    auto& t = trace.device;
    t.begin.push_back(begin);
    t.dur.push_back(dur);
    t.name.push_back(text(name));
    t.thread.push_back(stream);
    t.device.push_back(device_id);
    t.stream.push_back(7);
    t.correlation.push_back(correlation);
    t.external.push_back(store::kNoId);
    t.graph_node.push_back(store::kNoId);
    t.grid.push_back(grid);
    t.block.push_back(grid == store::Dim3{} ? grid : store::Dim3{128, 1, 1});
    t.bytes.push_back(-1);
    t.kind.push_back(kind);
    t.collective.push_back(0);
    return store::DeviceRow{t.size() - 1};
  }
};

}  // namespace culprit::run::testing
