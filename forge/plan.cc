#include "forge/plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "forge/filler.h"

namespace culprit::forge {
namespace {

std::uint64_t evenly(std::uint64_t total, std::size_t at, std::size_t of) {
  return total * (at + 1) / of - total * at / of;
}

// One entry of the stack that is open while a call runs.
struct Open {
  bool annotation = false;
  std::uint32_t text = 0;
  std::uint32_t generation = 0;  // entries of different generations are different calls
  std::uint32_t span = 0;        // index in frames or ops
  friend bool same(const Open& a, const Open& b) {
    return a.annotation == b.annotation && a.text == b.text && a.generation == b.generation;
  }
};

class Planner {
 public:
  Planner(const PlanOptions& options, Plan& plan) : options_(options), plan_(plan) {}

  // The calls numbered [from, to) of a step, in eighths of all.
  StepPlan step(const Step& step, int from, int to);

 private:
  struct Flat {
    const Block* block = nullptr;
    const Call* call = nullptr;
    int layer = 0;
    std::uint32_t generation = 0;
    std::vector<const Launch*> launches;
    bool graph = false;
  };

  std::vector<Flat> flatten(const Step& step) const;
  std::vector<Open> stack_of(const Step& step, const Flat& flat, bool begun_before);
  void enter(StepPlan& out, const Flat& flat, const std::vector<Open>& wanted,
             std::uint64_t filler);
  void leave(StepPlan& out, std::size_t keep);
  template <class Filler, class Text>
  void add_fillers(StepPlan& out, std::vector<Span>& spans, const std::vector<Filler>& fillers,
                   Text text, std::uint64_t count, std::uint32_t& slot);
  void add_filler(StepPlan& out, std::uint64_t count, std::uint32_t& slot);
  void add_ops(StepPlan& out, const Flat& flat, std::uint32_t& slot);
  std::int32_t parent(const std::vector<Open>& open) const;
  std::uint32_t frame_text(const Frame& frame);
  std::uint32_t op_text(const Op& op, const Call* call);
  std::uint32_t annotation_text(const std::string& name);
  std::string mark_of(const Step& step) const;

  const PlanOptions& options_;
  Plan& plan_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> frame_texts_;
  std::map<const Op*, std::uint32_t> op_texts_;
  std::vector<Open> open_;
  std::uint64_t fillers_so_far_ = 0;
};

std::uint32_t Planner::frame_text(const Frame& frame) {
  const auto [at, is_new] = frame_texts_.try_emplace(
      {frame.name, frame.called_from}, static_cast<std::uint32_t>(plan_.frames.size()));
  if (is_new) plan_.frames.push_back(frame);
  return at->second;
}

std::uint32_t Planner::op_text(const Op& op, const Call* call) {
  const auto [at, is_new] =
      op_texts_.try_emplace(&op, static_cast<std::uint32_t>(plan_.ops.size()));
  if (is_new) {
    const bool collective = call != nullptr && op.name == "record_param_comms" &&
                            !call->launches.empty() && call->launches.front().collective;
    plan_.ops.push_back(op);
    plan_.collectives.push_back(collective ? &*call->launches.front().collective : nullptr);
  }
  return at->second;
}

std::uint32_t Planner::annotation_text(const std::string& name) {
  const auto at = std::find(plan_.annotations.begin(), plan_.annotations.end(), name);
  if (at != plan_.annotations.end())
    return static_cast<std::uint32_t>(at - plan_.annotations.begin());
  plan_.annotations.push_back(name);
  return static_cast<std::uint32_t>(plan_.annotations.size() - 1);
}

std::string Planner::mark_of(const Step& step) const {
  const std::string batch = std::to_string(step.batch);
  if (options_.marks == Marks::kSglang) {
    const std::string tokens = step.kind == "DECODE" ? "" : " toks=" + std::to_string(step.tokens);
    return "step[" + step.kind + " bs=" + batch + tokens + "]";
  }
  const bool decode = step.kind == "DECODE";
  const std::string work = batch + "(" + std::to_string(step.tokens) + ")";
  return "execute_context_" + (decode ? "0(0)" : work) + "_generation_" + (decode ? work : "0(0)");
}

std::vector<Planner::Flat> Planner::flatten(const Step& step) const {
  std::vector<Flat> calls;
  std::uint32_t generation = 1;
  for (const Block& block : step.blocks) {
    for (int i = 0; i < block.repeat; ++i, ++generation) {
      for (const Call& call : block.calls) {
        const bool new_graph = block.own_graph && &call == &block.calls.front();
        Flat flat{&block, &call, block.first_layer + i, generation, {}, false};
        for (const Launch& launch : call.launches) flat.launches.push_back(&launch);
        if (options_.graph && block.in_graph) {
          if (!calls.empty() && calls.back().graph && !new_graph) {
            auto& replayed = calls.back().launches;
            replayed.insert(replayed.end(), flat.launches.begin(), flat.launches.end());
            continue;
          }
          flat.graph = true;
          flat.call = &step.replay;
        }
        calls.push_back(std::move(flat));
      }
    }
  }
  return calls;
}

std::vector<Open> Planner::stack_of(const Step& step, const Flat& flat, bool begun_before) {
  std::vector<Open> stack;
  const auto push = [&](const std::vector<Frame>& frames, std::uint32_t generation) {
    if (!options_.stacks) return;
    for (const Frame& frame : frames) stack.push_back({false, frame_text(frame), generation, 0});
  };
  const auto& outer = flat.block->outer;
  const auto mark =
      std::find_if(outer.begin(), outer.end(), [](const Frame& f) { return f.name.empty(); });
  const bool engine = options_.marks == Marks::kSglang || options_.marks == Marks::kVllm;
  if (options_.marks == Marks::kProfiler && !begun_before) {
    stack.push_back({true, annotation_text("ProfilerStep#@"), 0, 0});
  }
  push({outer.begin(), mark}, 0);
  if (mark != outer.end()) {
    if (engine && !begun_before) stack.push_back({true, annotation_text(mark_of(step)), 0, 0});
    if (!flat.graph) push({mark + 1, outer.end()}, 0);
  }
  if (!flat.graph) push(flat.block->frames, flat.generation);
  push(flat.call->stack, flat.generation);
  return stack;
}

std::int32_t Planner::parent(const std::vector<Open>& open) const {
  for (auto at = open.rbegin(); at != open.rend(); ++at) {
    if (!at->annotation) return static_cast<std::int32_t>(at->span);
  }
  return -1;
}

// Closes what is open beyond `keep`, innermost first, in the tail of the last call.
void Planner::leave(StepPlan& out, std::size_t keep) {
  if (out.calls.empty()) return;
  PlannedCall& call = out.calls.back();
  const auto index = static_cast<std::uint32_t>(out.calls.size() - 1);
  while (open_.size() > keep) {
    const Open& innermost = open_.back();
    Span& span = (innermost.annotation ? out.ops : out.frames)[innermost.span];
    span.close = {index, call.tail_slots++, true};
    open_.pop_back();
  }
}

// `count` spans before what the call itself opens; depths are relative, so they nest by themselves.
template <class Filler, class Text>
void Planner::add_fillers(StepPlan& out, std::vector<Span>& spans,
                          const std::vector<Filler>& fillers, Text text, std::uint64_t count,
                          std::uint32_t& slot) {
  const auto call = static_cast<std::uint32_t>(out.calls.size() - 1);
  const std::int32_t outside = parent(open_);
  std::vector<std::size_t> nested;
  const auto close_to = [&](std::size_t depth) {
    for (; nested.size() > depth; nested.pop_back())
      spans[nested.back()].close = {call, slot, false};
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const Filler& filler = fillers[fillers_so_far_++ % fillers.size()];
    close_to(std::min(nested.size(), static_cast<std::size_t>(filler.depth)));
    Span span;
    span.text = text(filler);
    span.parent = nested.empty() ? outside : static_cast<std::int32_t>(nested.back());
    span.open = {call, slot++, false};
    nested.push_back(spans.size());
    spans.push_back(span);
  }
  close_to(0);
}

void Planner::add_filler(StepPlan& out, std::uint64_t count, std::uint32_t& slot) {
  if (options_.stacks) {
    const auto text = [&](const FillerFrame& filler) { return frame_text(filler.frame); };
    add_fillers(out, out.frames, filler_frames(), text, count, slot);
  } else {
    const auto text = [&](const Op& filler) { return op_text(filler, nullptr); };
    add_fillers(out, out.ops, filler_ops(), text, count, slot);
  }
}

// Operators of a call: those on the way to the last one stay open until the tail, the others until
// the next begins.
void Planner::add_ops(StepPlan& out, const Flat& flat, std::uint32_t& slot) {
  const auto index = static_cast<std::uint32_t>(out.calls.size() - 1);
  PlannedCall& call = out.calls.back();
  std::vector<std::pair<int, std::size_t>> nested;  // depth, span
  for (const Op& op : flat.call->ops) {
    while (!nested.empty() && nested.back().first >= op.depth) {
      out.ops[nested.back().second].close = {index, slot, false};
      nested.pop_back();
    }
    Span span;
    span.text = op.annotation ? annotation_text(op.name) : op_text(op, flat.call);
    span.annotation = op.annotation;
    span.layer = flat.layer;
    span.open = {index, slot++, false};
    if (!op.annotation) call.op = static_cast<std::int32_t>(out.ops.size());
    nested.emplace_back(op.depth, out.ops.size());
    out.ops.push_back(span);
  }
  while (!nested.empty()) {
    out.ops[nested.back().second].close = {index, call.tail_slots++, true};
    nested.pop_back();
  }
}

void Planner::enter(StepPlan& out, const Flat& flat, const std::vector<Open>& wanted,
                    std::uint64_t filler) {
  std::size_t common = 0;
  while (common < open_.size() && common < wanted.size() && same(open_[common], wanted[common]))
    ++common;
  // A call into C is a call of its own, even if the last one came from the same line.
  if (common == wanted.size() && !wanted.empty() && !wanted.back().annotation &&
      plan_.frames[wanted.back().text].name.starts_with('<')) {
    --common;
  }
  leave(out, common);

  PlannedCall call;
  call.call = flat.call;
  call.first_launch = static_cast<std::uint32_t>(out.launches.size());
  call.launches = static_cast<std::uint32_t>(flat.launches.size());
  call.graph = flat.graph;
  out.calls.push_back(call);
  out.launches.insert(out.launches.end(), flat.launches.begin(), flat.launches.end());

  const auto index = static_cast<std::uint32_t>(out.calls.size() - 1);
  std::uint32_t slot = 1;
  bool filled = false;
  for (std::size_t i = common; i < wanted.size(); ++i) {
    if (i + 1 == wanted.size() && options_.stacks) {
      add_filler(out, filler, slot);
      filled = true;
    }
    Open entry = wanted[i];
    Span span;
    span.text = entry.text;
    span.layer = flat.layer;
    span.annotation = entry.annotation;
    span.parent = parent(open_);
    span.open = {index, slot++, false};
    auto& spans = entry.annotation ? out.ops : out.frames;
    entry.span = static_cast<std::uint32_t>(spans.size());
    spans.push_back(span);
    open_.push_back(entry);
  }
  if (!filled) add_filler(out, filler, slot);
  add_ops(out, flat, slot);
  out.calls.back().lead_slots = slot;
}

StepPlan Planner::step(const Step& step, int from, int to) {
  const std::vector<Flat> flat = flatten(step);
  const std::size_t begin = flat.size() * static_cast<std::size_t>(from) / 8;
  const std::size_t end = flat.size() * static_cast<std::size_t>(to) / 8;
  StepPlan out;
  open_.clear();
  fillers_so_far_ = 0;
  for (std::size_t i = begin; i < end; ++i) {
    enter(out, flat[i], stack_of(step, flat[i], from != 0),
          evenly(options_.filler, i, flat.size()));
  }
  leave(out, 0);
  return out;
}

}  // namespace

Plan make_plan(const Run& run, const PlanOptions& options) {
  Plan plan;
  Planner planner(options, plan);
  for (const Step& step : run.steps) {
    plan.steps.push_back(planner.step(step, 0, 8));
    plan.first.push_back(planner.step(step, 3, 8));
    plan.last.push_back(planner.step(step, 0, 5));
  }
  return plan;
}

}  // namespace culprit::forge
