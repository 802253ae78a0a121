// Faults whose time is the host's, the other ranks' or that of other steps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "forge/kernels.h"
#include "forge/planted.h"
#include "forge/sglang.h"

namespace culprit::forge {
namespace {

using namespace sglang;  // the vocabulary of this file

constexpr std::string_view kOutput = "managers/scheduler_output_processor_mixin.py";

Wish any_batch(Random&) { return {}; }

Nanos part_of(Nanos time, double share) {
  return static_cast<Nanos>(share * static_cast<double>(time));
}

// Host time of a call that takes `time` on this draft's host.
Nanos host_work(const Draft& draft, Nanos time) { return time * 1'000 / draft.run.host_scale; }

Wish small_messages(Random& random) {
  Wish wish;
  wish.most_requests = 16;
  wish.least_world = 2;
  wish.linked = random.coin();
  wish.pcie = !wish.linked;
  wish.most_world = wish.linked ? 8 : 4;
  wish.most_layer = 260'000;
  return wish;
}

// The custom all-reduce is off: NCCL carries a few kB.
void comm_latency(Scene& scene, Random& random) {
  const Geometry& model = scene.draft.geometry;
  const Nanos time = random.between(19'000, 42'000);
  replace(scene.draft.layer, Role::kReduce,
          {all_reduce(reduce_frames(), model.requests, model.hidden, model.world, {time, 9'200})});
}

Wish large_messages(Random&) {
  Wish wish;
  wish.pcie = true;
  wish.least_world = 2;
  wish.most_world = 8;
  wish.least_requests = 192;
  wish.most_requests = 320;
  wish.most_context = 700;
  wish.most_vocab = 32'000;  // else gathering the logits of so many requests counts
  return wish;
}

// Of a whole batch; half of it fits under the shorter of the other half's two stages.
Nanos transfer(const Draft& draft, Random& random) {
  Geometry half = draft.geometry;
  half.requests /= 2;
  std::vector<Nanos> stages(1, 0);
  for (const Part& part : make_draft(half, 0).layer) {
    if (part.role == Role::kReduce) {
      stages.push_back(0);
    } else {
      stages.back() += part.call.launches.front().device;
    }
  }
  return part_of(2 * std::min(stages[0], stages[1]), random.share(0.6, 0.85));
}

// PCIe carries every all-reduce while the device has nothing else to do.
void exposed_comm(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  const Nanos time = transfer(draft, random);
  replace(draft.layer, Role::kReduce,
          {all_reduce(reduce_frames(), model.requests, model.hidden, model.world, {time, 9'200})});
}

// Two batches take turns: one's all-reduce runs on a second stream below the other's kernels.
void two_batches(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  Geometry half = draft.geometry;
  half.requests /= 2;
  const Nanos time = transfer(draft, random) / 2;
  Call reduce = all_reduce(reduce_frames(), half.requests, half.hidden, half.world, {time, 9'200});
  reduce.launches.front().aside = true;
  Parts both;
  Parts stage;
  for (const Part& part : make_draft(half, 0).layer) {
    if (part.role != Role::kReduce) {
      stage.push_back(part);
      continue;
    }
    stage.front().call.launches.front().joins = true;
    stage.push_back({Role::kReduce, reduce});
    for (int batch = 0; batch < 2; ++batch) both.insert(both.end(), stage.begin(), stage.end());
    stage.clear();
  }
  draft.layer = both;
  balance(draft, draft.geometry.host_share);
}

void host_launch(Scene& scene, Random& random) { balance(scene.draft, random.share(1.7, 3.6)); }

std::vector<Frame> plan_frames() {
  return in_metadata() +
         std::vector<Frame>{
             frame("layers/attention/flashinfer_backend.py", 289, "init_forward_metadata",
                   "model_executor/model_runner.py", 2603),
             Frame{"flashinfer/decode.py(612): plan",
                   fmt::format("{}layers/attention/flashinfer_backend.py:738", kTree)}};
}

// A value is read back, each time with work on the host behind it.
Call read_back(Nanos host, int line) {
  Call call = copy_to_host({Frame{fmt::format("<built-in {}>", kTensorTo),
                                  fmt::format("flashinfer/decode.py:{}", line)}},
                           2, {1'500, host});
  return call;
}

// The attention plan of each step, or a check in each layer, reads a value on the host.
void host_sync(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  if (!scene.graph && random.coin()) {
    Call item = copy_to_host(
        draft.frames_of(Role::kStore) + builtin("method item of Tensor object at 0x7f3990d31e50",
                                                "mem_cache/memory_pool.py", 1051),
        1, {1'500, host_work(draft, random.between(16'000, 30'000))});
    item.ops = {{0, "aten::item", {tensor("bool", {1})}, false},
                {1, "aten::_local_scalar_dense", {tensor("bool", {1})}, false}};
    after(draft.layer, Role::kStore, {item});
    return;
  }
  const Nanos idle = part_of(device_time(draft), random.share(0.12, 0.3));
  for (int i = 0; i < 3; ++i) {
    Call call = read_back(host_work(draft, idle / 3), 351 + i);
    call.stack = plan_frames() + call.stack;
    draft.prepare.push_back({Role::kAdded, call});
  }
}

Wish some_requests(Random&) {
  Wish wish;
  wish.least_requests = 12;
  wish.most_requests = 40;
  wish.most_context = 1'024;
  wish.most_layer = 200'000;
  wish.least_vocab = 100'000;
  return wish;
}

// Logit biases of all requests come from pageable memory: staged by the host, which waits.
void blocking_copy(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Geometry& model = draft.geometry;
  const std::int64_t elements = model.requests * model.vocab;
  const Nanos time = part_of(elements * 4, 1 / random.share(4, 9));
  Call copy =
      copy_to_device(draft.frames_of(Role::kSample) + builtin(kTensorTo, "layers/sampler.py", 214),
                     elements, {time, 16'000});
  for (Op& op : copy.ops) {
    for (Value& value : op.inputs) {
      if (!value.dims.empty()) value = tensor("float", {model.requests, model.vocab});
    }
  }
  Launch& launch = copy.launches.front();
  launch.name = "Memcpy HtoD (Pageable -> Device)";
  launch.bytes = elements * 4;
  launch.blocking = true;
  before(draft.sample, Role::kSample,
         {copy, elementwise(draft.frames_of(Role::kSample) +
                                builtin("method add_ of Tensor object at 0x7f3990d2d1f0",
                                        "layers/sampler.py", 215),
                            "aten::add_",
                            {tensor("float", {model.requests, model.vocab}),
                             tensor("float", {model.requests, model.vocab}), scalar("1")},
                            kernel::add(kernel::Element::kFloat), elements, 512,
                            {small_time(model, elements * 12), 9'000})});
}

// Steps of one request more than the largest captured batch, in turn with smaller ones.
void add_larger_batch(Scene& scene, Random& random, bool captured) {
  Geometry larger = scene.draft.geometry;
  larger.requests += random.between(1, std::max<std::int64_t>(1, larger.requests / 4));
  Draft draft = make_draft(larger, 0);
  draft.run.host_scale = scene.draft.run.host_scale;
  scene.more.push_back({draft, captured, "DECODE", 0});
  scene.pattern = {0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  scene.steps = 10;
}
void graph_missing(Scene& scene, Random& random) {
  balance(scene.draft, random.share(2.2, 3.8));
  add_larger_batch(scene, random, false);
}
void all_captured(Scene& scene, Random& random) {
  balance(scene.draft, random.share(2.2, 3.8));
  add_larger_batch(scene, random, true);
}

Wish quick_layers(Random&) {
  Wish wish;
  wish.most_requests = 16;
  wish.most_layer = 150'000;
  return wish;
}

// A graph for each layer, whose launch takes longer than its kernels.
void graph_launch(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const Nanos layer = device_time(draft) / draft.geometry.layers;
  const Nanos piece = part_of(layer, random.share(1.5, 2.3));
  draft.pieces = true;
  draft.piece_launch = piece * 3 / 5;
  draft.piece_host = piece * 2 / 5;
}

// Python between two steps, longer than the device has work: grammar, sampling or bookkeeping.
void host_work_between(Scene& scene, Random& random) {
  Draft& draft = scene.draft;
  const std::array<std::vector<Frame>, 3> works{
      std::vector<Frame>{frame(kOutput, 812, "stream_output", kOutput, 418),
                         frame(kOutput, 829, "stream_output_generation", kOutput, 821)},
      std::vector<Frame>{frame("constrained/xgrammar_backend.py", 96, "accept_token", kOutput, 402),
                         frame("constrained/xgrammar_backend.py", 131, "fill_vocab_mask",
                               "constrained/xgrammar_backend.py", 118)},
      std::vector<Frame>{
          frame("managers/schedule_policy.py", 118, "calc_priority", "managers/scheduler.py", 2101),
          frame("mem_cache/radix_cache.py", 301, "match_prefix", "managers/schedule_policy.py",
                160)}};
  Call work;
  work.stack = works[random.next() % works.size()];
  work.host = host_work(draft, part_of(device_time(draft), random.share(1.2, 2.0)));
  draft.results.push_back({Role::kAdded, work});
}

// Another process has the device in turn with this one.
void outside_process(Scene& scene, Random& random) {
  const Nanos step = device_time(scene.draft);
  scene.draft.run.away_every = std::max<Nanos>(1'600'000, part_of(step, random.share(0.3, 0.6)));
  scene.draft.run.away_for = part_of(scene.draft.run.away_every, random.share(0.3, 0.5));
}

void prefill_between(Scene& scene, Random& random) {
  const std::int64_t tokens = random.one_of({2'048, 4'096, 6'144, 8'192});
  Geometry one = scene.draft.geometry;
  one.requests = 1;
  Draft draft = make_draft(one, tokens);
  draft.run.host_scale = scene.draft.run.host_scale;
  scene.more.push_back({draft, false, "EXTEND", static_cast<int>(tokens)});
  scene.pattern = {0, 0, 0, 0, 1};
  scene.steps = 15;
}
void only_decode(Scene& scene, Random&) { scene.steps = 12; }

// One step compiles a kernel for a shape that it has not seen.
void compile_stall(Scene& scene, Random& random) {
  Call compile;
  compile.stack = {
      {"triton/runtime/jit.py(571): run", fmt::format("{}layers/sampler.py:133", kTree)},
      {"triton/compiler/compiler.py(226): compile", "triton/runtime/jit.py:634"},
      {"triton/backends/nvidia/compiler.py(341): make_cubin", "triton/compiler/compiler.py:301"},
      {"subprocess.py(512): run", "triton/backends/nvidia/compiler.py:377"}};
  compile.host = host_work(scene.draft, random.between(300, 2'000) * 1'000'000);
  Draft draft = scene.draft;
  draft.sample.insert(draft.sample.begin(), {Role::kAdded, compile});
  scene.more.push_back({draft, scene.graph, "DECODE", 0});
  scene.pattern.assign(12, 0);
  scene.pattern[static_cast<std::size_t>(random.between(3, 9))] = 1;
  scene.steps = 12;
}

}  // namespace

std::span<const Planted> host_faults() {
  static const std::array kFaults{
      Planted{"comm-latency", "NCCL carries all-reduces of a few kB", small_messages, comm_latency,
              nullptr},
      Planted{"exposed-comm", "all-reduces over PCIe with nothing beside them; twin: two batches",
              large_messages, exposed_comm, two_batches},
      Planted{"host-launch", "eager, and the host takes longer than the device", any_batch,
              host_launch, nullptr},
      Planted{"host-sync", "values are read back on the way of each step", any_batch, host_sync,
              nullptr},
      Planted{"blocking-copy", "logit biases are copied from pageable memory", some_requests,
              blocking_copy, nullptr},
      Planted{"graph-missing", "batches above the largest captured one run eagerly (--graph)",
              any_batch, graph_missing, all_captured},
      Planted{"graph-launch", "each layer is a graph, whose launch outlasts its kernels (--graph)",
              quick_layers, graph_launch, nullptr},
      Planted{"host-work", "Python between the steps outlasts the device's work", any_batch,
              host_work_between, nullptr},
      Planted{"outside-process", "another process has the device in turn", any_batch,
              outside_process, nullptr},
      Planted{"prefill-interference", "a prefill after every fourth decode step", any_batch,
              prefill_between, only_decode},
      Planted{"step-stall", "one step compiles a kernel", any_batch, compile_stall, only_decode}};
  return kFaults;
}

}  // namespace culprit::forge
