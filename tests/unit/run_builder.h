// RunBuilder: a Run made by hand for the tests of evidence and verdict: kernels, launches, operators
// and steps are stated one by one; `build` puts them into the order that run.h promises.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "run/run.h"

namespace culprit {

class RunBuilder {
 public:
  RunBuilder() {
    run_.kind = run::StepKind::kDecode;
    run_.how = run::StepsHow::kMarked;
    stream_ = thread("stream 7");
  }

  store::ThreadId thread(std::string_view tid) {
    trace_.threads.push_back({text("1"), text(tid), {}});
    return store::ThreadId(trace_.threads.size() - 1);
  }

  run::GroupId group(std::string_view name, known::Owner kind, store::Dim3 grid = {1, 1, 1},
                     store::Dim3 block = {128, 1, 1}) {
    run::Group group;
    group.name = text(name);
    group.kind = kind;
    group.info.kind = kind;
    group.info.short_name = name;
    group.grid = grid;
    group.block = block;
    group.device_kind = kind == known::Owner::kMemcpy   ? store::DeviceKind::kMemcpy
                        : kind == known::Owner::kMemset ? store::DeviceKind::kMemset
                                                        : store::DeviceKind::kKernel;
    run_.groups.push_back(group);
    return run::GroupId(run_.groups.size() - 1);
  }
  run::Group& at(run::GroupId id) { return run_.groups[id.index]; }

  // The copy kernel of `.to(bfloat16)`: 4 x 128 elements per block, source type not in the name.
  run::GroupId cast_group(std::int32_t blocks) {
    const run::GroupId id = group("unrolled_elementwise_kernel<direct_copy, LoadWithCast<1>>",
                                  known::Owner::kCast, {blocks, 1, 1});
    known::KernelInfo& info = at(id).info;
    info.is_copy = info.casts = true;
    info.dtype_out = known::Dtype::kBf16;
    info.grid_rule = known::GridRule::kLinear;
    info.threads_per_block = 128;
    info.work_per_block = 512;
    return id;
  }

  store::CallRow call(std::string_view name, store::ThreadId thread, Nanos begin, Nanos dur) {
    auto& calls = trace_.calls;
    calls.begin.push_back(begin);
    calls.dur.push_back(dur);
    calls.name.push_back(text(name));
    calls.thread.push_back(thread);
    calls.correlation.push_back(static_cast<std::int64_t>(calls.size()));
    calls.external.push_back(store::kNoId);
    calls.kernel.push_back(store::StringId(0));
    return store::CallRow(calls.size() - 1);
  }

  store::OpRow op(std::string_view name, store::ThreadId thread, Nanos begin, Nanos dur,
                  std::string_view dims = {}, std::string_view types = {}) {
    auto& ops = trace_.ops;
    ops.begin.push_back(begin);
    ops.dur.push_back(dur);
    ops.name.push_back(text(name));
    ops.thread.push_back(thread);
    ops.external.push_back(store::kNoId);
    ops.dims.push_back(text(dims));
    ops.types.push_back(text(types));
    run_.op_parent.push_back({});
    return store::OpRow(ops.size() - 1);
  }

  // Ids of activities are places in order of begin: they are known after build().
  void kernel(run::GroupId group, Nanos begin, Nanos dur, store::CallRow call = {},
              store::OpRow op = {}, bool in_graph = false, std::int64_t bytes = -1,
              store::ThreadId stream = {}) {
    run::Activity activity;
    activity.begin = begin;
    activity.end = begin + dur;
    activity.group = group;
    activity.call = call;
    activity.op = op;
    activity.in_graph = in_graph;
    activity.row = store::DeviceRow(run_.activities.size());
    trace_.device.begin.push_back(begin);
    trace_.device.dur.push_back(dur);
    trace_.device.bytes.push_back(bytes);
    trace_.device.collective.push_back(0);
    trace_.device.thread.push_back(stream.valid() ? stream : stream_);
    run_.activities.push_back(activity);
  }

  void step(Nanos begin, Nanos end, bool used = true, std::optional<std::int64_t> batch = {}) {
    run::Step step;
    step.begin = begin;
    step.end = end;
    step.used = used;
    step.batch = batch;
    step.kind = run_.kind;
    run_.steps.push_back(step);
  }

  store::Trace& trace() { return trace_; }
  run::Run& run() { return run_; }

  const run::Run& build() {
    std::stable_sort(run_.activities.begin(), run_.activities.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (run::Activity& activity : run_.activities) {
      activity.kind = run_.groups[activity.group.index].kind;
      activity.step = -1;
    }
    for (std::size_t i = 0; i < run_.steps.size(); ++i) {
      run::Step& step = run_.steps[i];
      const auto place = [&](Nanos t) {
        return std::lower_bound(run_.activities.begin(), run_.activities.end(), t,
                                [](const auto& a, Nanos at) { return a.begin < at; }) -
               run_.activities.begin();
      };
      step.first = place(step.begin);
      step.last = place(step.end);
      for (std::int64_t k = step.first; k < step.last; ++k) {
        run_.activities[static_cast<std::size_t>(k)].step = static_cast<run::StepIndex>(i);
      }
    }
    trace_.device.name.resize(trace_.device.begin.size());
    run_.trace = &trace_;
    run_.call_frame.resize(trace_.calls.size());
    run_.call_op.resize(trace_.calls.size());
    return run_;
  }

 private:
  store::StringId text(std::string_view words) { return trace_.strings.intern(words); }

  store::Trace trace_;
  run::Run run_;
  store::ThreadId stream_;  // of kernels that name none
};

}  // namespace culprit
