#include "known/floor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace culprit::known {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kNsPerSecond = 1e9;
constexpr double kAllReduceLatency = 4e-6;  // seconds; see the header
constexpr double kIndexScaleBytes = 4;

constexpr std::array<std::string_view, kComponentCount> kNames = {
    "attention weights", "indexer weights", "dense MLP",        "routed experts",
    "shared experts",    "router",          "embedding",        "LM head",
    "KV cache",          "index cache",     "all-reduce bytes", "all-reduce latency",
};

std::optional<Component> component_of(Part part) {
  switch (part) {
    case Part::kAttention:
      return Component::kAttention;
    case Part::kIndexer:
      return Component::kIndexer;
    case Part::kDenseMlp:
      return Component::kDenseMlp;
    case Part::kExperts:
      return Component::kExperts;
    case Part::kSharedExperts:
      return Component::kSharedExperts;
    case Part::kRouter:
      return Component::kRouter;
    case Part::kEmbedding:
      return Component::kEmbedding;
    case Part::kLmHead:
      return Component::kLmHead;
    default:
      return std::nullopt;
  }
}

// Arithmetic peak for weights of a type. Without units for it they are widened first.
double peak_flops(const Gpu& gpu, Dtype dtype) {
  const double fp8 = std::max(gpu.fp8_tflops, gpu.half_tflops);
  if (dtype == Dtype::kFp4) return kTera * std::max(gpu.fp4_tflops, fp8);
  if (bits(dtype) == 8) return kTera * fp8;
  return kTera * gpu.half_tflops;
}

// Models of any size come from files; what no integer holds is cut off there.
Nanos whole(double x) {
  constexpr double kMost = 1e17;
  return std::llround(std::clamp(x, 0.0, kMost));
}

// Bytes of `elements` cached values. NVFP4: one scale byte per 16.
double cache_bytes(double elements, Dtype dtype) {
  constexpr double kNvfp4 = 9.0 / 16;
  return dtype == Dtype::kFp4 ? elements * kNvfp4 : elements * bits(dtype) / 8;
}

class Calculator {
 public:
  explicit Calculator(const FloorCase& given)
      : model_(given.model),
        deployment_(given.deployment),
        gpu_(given.gpu),
        context_(given.context),
        tokens_(static_cast<double>(given.deployment.batch.value_or(1))),
        attention_tokens_(std::ceil(tokens_ / static_cast<double>(given.deployment.attention_dp))) {
    floor_.kv_dtype = deployment_.kv_dtype.value_or(model_.kv_dtype.value_or(model_.weight_dtype));
    seconds_.fill(0);
    compute_.fill(0);
  }

  Floor run() {
    weights();
    cache();
    communication();
    finish();
    notes();
    return std::move(floor_);
  }

 private:
  FloorPart& part(Component component) {
    FloorPart& part = parts_[static_cast<std::size_t>(component)];
    part.component = component;
    return part;
  }

  // One operation, `times` a step.
  void operation(Component component, double bytes, double flops, double peak, double times) {
    const double memory = bytes / (gpu_.peak_gbps * kGiga);
    const double compute = peak > 0 ? flops / peak : 0;
    const auto index = static_cast<std::size_t>(component);
    seconds_[index] += times * std::max(memory, compute);
    if (compute > memory) compute_[index] += times * compute;
    part(component).bytes += times * bytes;
    part(component).flops += times * flops;
  }

  void weights() {
    const double experts_here =
        std::ceil(static_cast<double>(model_.experts) / static_cast<double>(deployment_.ep));
    for (const Tensor& tensor : tensors(model_, deployment_)) {
      const std::optional<Component> component = component_of(tensor.part);
      if (!component || !tensor.is_weight) continue;
      const double bytes = static_cast<double>(tensor.bytes());
      const double times = static_cast<double>(tensor.per_rank);
      if (!tensor.view) floor_.held_bytes += bytes * times;
      if (tensor.view && *component != Component::kEmbedding) continue;
      if (tensor.dtype == Dtype::kUnknown)
        unknown_types_ += (unknown_types_.empty() ? "" : ", ") + tensor.name;
      const bool scale = tensor.name.ends_with("_scale");
      const double elements = scale ? 0 : static_cast<double>(tensor.elements);
      const double peak = peak_flops(gpu_, tensor.dtype);
      if (*component == Component::kExperts) {
        const double routed = tokens_ * static_cast<double>(model_.experts_per_token) /
                              static_cast<double>(model_.experts) * experts_here;
        operation(*component, bytes / experts_here * hit(experts_here),
                  2 * routed * elements / experts_here, peak, times);
      } else if (*component == Component::kEmbedding) {
        operation(*component, tokens_ * static_cast<double>(model_.hidden) * bits(tensor.dtype) / 8,
                  0, 0, 1);
      } else {
        const bool attends = *component == Component::kAttention ||
                             *component == Component::kIndexer || *component == Component::kRouter;
        operation(*component, bytes, 2 * (attends ? attention_tokens_ : tokens_) * elements, peak,
                  times);
      }
    }
    describe_weights(experts_here);
  }

  // Of the experts of one GPU, those that some token of the step goes to.
  double hit(double experts_here) const {
    if (model_.experts_per_token <= 0) return experts_here;
    const double share = static_cast<double>(std::min(model_.experts_per_token, model_.experts)) /
                         static_cast<double>(model_.experts);
    return experts_here * (1 - std::pow(1 - share, tokens_));
  }

  // With experts spread over GPUs, all may be on another one.
  Nanos least_of_experts(Nanos expected) const {
    if (deployment_.ep > 1) return 0;
    const double all = hit(static_cast<double>(model_.experts));
    const double least = static_cast<double>(model_.experts_per_token);
    return all <= least ? expected : whole(static_cast<double>(expected) * least / all);
  }

  void describe_weights(double experts_here) {
    if (model_.experts > 0) {
      part(Component::kExperts).how =
          fmt::format("{} of {} experts on a GPU hit, {} layers", text::number(hit(experts_here)),
                      text::number(experts_here), model_.moe_count());
    }
    part(Component::kAttention).how = fmt::format("{} layers", model_.attention_count());
    part(Component::kIndexer).how = fmt::format("{} layers, replicated", model_.index_count());
    part(Component::kDenseMlp).how = fmt::format("{} layers", model_.dense_count());
    part(Component::kSharedExperts).how = fmt::format("{} layers", model_.moe_count());
    part(Component::kRouter).how = fmt::format("{} layers, replicated", model_.moe_count());
    part(Component::kEmbedding).how = fmt::format("{} rows", text::count(std::llround(tokens_)));
    part(Component::kLmHead).how = fmt::format("{} words", text::count(model_.vocab));
  }

  void cache() {
    const double row =
        static_cast<double>(kv_row_elements(model_, deployment_)) * (model_.is_mla() ? 1 : 2);
    if (!context_ || row <= 0) return;
    const double full = static_cast<double>(*context_);
    const double seen =
        model_.index_topk > 0 ? std::min(full, static_cast<double>(model_.index_topk)) : full;
    const double windowed = std::min(seen, static_cast<double>(model_.sliding_window));
    const std::int64_t sliding = std::min(model_.sliding_layers, model_.attention_count());
    read_cache(row, seen, model_.attention_count() - sliding);
    read_cache(row, windowed, sliding);
    part(Component::kKvCache).how = fmt::format(
        "{} of {} tokens, {} bytes each, {} layers", text::number(seen), text::number(full),
        text::number(cache_bytes(row, floor_.kv_dtype)), model_.attention_count());
    if (model_.index_count() == 0) return;
    const double index_row = static_cast<double>(model_.index_head_dim) + kIndexScaleBytes;
    operation(Component::kIndexCache, attention_tokens_ * full * index_row,
              2 * attention_tokens_ * full *
                  static_cast<double>(model_.index_heads * model_.index_head_dim),
              peak_flops(gpu_, Dtype::kFp8E4m3), static_cast<double>(model_.index_count()));
    part(Component::kIndexCache).how = fmt::format(
        "{} tokens, {} bytes each, {} layers", text::number(full), index_row, model_.index_count());
  }

  void read_cache(double row, double read, std::int64_t layers) {
    if (layers <= 0) return;
    const std::int64_t ranks = std::max<std::int64_t>(1, deployment_.tp / deployment_.attention_dp);
    const double heads = std::ceil(static_cast<double>(model_.heads) / static_cast<double>(ranks));
    const double per_token = model_.is_mla() ? 2 * (row + static_cast<double>(model_.kv_lora_rank))
                                             : 4 * static_cast<double>(model_.head_dim);
    operation(Component::kKvCache, attention_tokens_ * read * cache_bytes(row, floor_.kv_dtype),
              attention_tokens_ * read * heads * per_token, peak_flops(gpu_, floor_.kv_dtype),
              static_cast<double>(layers));
  }

  void communication() {
    const double ranks = static_cast<double>(deployment_.tp);
    if (deployment_.tp <= 1) return;
    const double row = static_cast<double>(model_.hidden) * bits(model_.weight_dtype) / 8;
    const double link = kGiga * (gpu_.link_gbps > 0 ? gpu_.link_gbps : gpu_.pcie_gbps);
    const bool spread = deployment_.attention_dp > 1;
    const double calls = spread ? 2.0 * static_cast<double>(model_.layers)
                                : 2.0 * static_cast<double>(model_.layers) + 1;
    double bytes = 0, hops = 1;
    if (spread) {
      const double copies = std::min(
          ranks - 1, static_cast<double>(std::max<std::int64_t>(1, model_.experts_per_token)));
      bytes = attention_tokens_ * copies * row;
    } else {
      const double one_shot = (ranks - 1) * tokens_ * row;
      const double two_shot = 2 * (ranks - 1) / ranks * tokens_ * row;
      const bool once = link <= 0 || one_shot / link <= kAllReduceLatency + two_shot / link;
      bytes = once ? one_shot : two_shot;
      hops = once ? 1 : 2;
    }
    FloorPart& moved = part(Component::kCommBytes);
    moved.bytes = calls * bytes;
    moved.bound = FloorBound::kLink;
    moved.how = fmt::format("{} {}, {} each over {} GB/s of {}", text::number(calls),
                            spread     ? "exchanges"
                            : hops > 1 ? "two-shot"
                                       : "one-shot",
                            text::bytes(whole(bytes)), text::number(link / kGiga),
                            gpu_.link_gbps > 0 ? "link" : "PCIe");
    if (link > 0) seconds_[static_cast<std::size_t>(Component::kCommBytes)] = calls * bytes / link;
    FloorPart& latency = part(Component::kCommLatency);
    latency.bound = FloorBound::kLatency;
    latency.how = fmt::format("{} x {} us", text::number(calls * hops), kAllReduceLatency * 1e6);
    seconds_[static_cast<std::size_t>(Component::kCommLatency)] = calls * hops * kAllReduceLatency;
    if (link <= 0)
      note("the table has no link bandwidth for this GPU: bytes between GPUs cost nothing here");
  }

  void finish() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      FloorPart& part = parts_[i];
      if (part.bytes <= 0 && seconds_[i] <= 0) continue;
      part.ns = whole(seconds_[i] * kNsPerSecond);
      part.least = part.component == Component::kExperts ? least_of_experts(part.ns) : part.ns;
      if (compute_[i] > seconds_[i] / 2) part.bound = FloorBound::kCompute;
      floor_.step += part.ns;
      if (is_weights(part.component) && part.component != Component::kEmbedding) {
        floor_.weight_bytes += part.bytes;
      }
      floor_.parts.push_back(std::move(part));
    }
    for (const Tensor& tensor : tensors(model_, deployment_)) {
      if (!tensor.follows_pool || tensor.view) continue;
      const double bytes = tensor.dtype == Dtype::kUnknown
                               ? cache_bytes(static_cast<double>(tensor.elements), floor_.kv_dtype)
                               : static_cast<double>(tensor.bytes());
      if (std::exchange(seen_[tensor.part == Part::kIndexCache], true)) continue;
      floor_.pool_bytes =
          floor_.pool_bytes.value_or(0) + bytes * static_cast<double>(tensor.per_rank);
    }
  }

  void note(std::string text) { floor_.notes.push_back(std::move(text)); }

  void notes() {
    if (!context_) {
      note("no context given: the KV cache is not counted (--context N tokens per request)");
    }
    for (const FloorPart& part : floor_.parts) {
      if (part.least == part.ns) continue;
      note(fmt::format(
          "routing taken as even: {}; tokens that are alike hit fewer, and take {} less at "
          "the most",
          part.how, text::duration(part.ns - part.least, false)));
    }
    if (model_.attention_unknown()) {
      note(
          "this model's attention is of a design that is not known: its K and V weights and its "
          "cache are not counted");
    }
    const std::int64_t mlp = model_.moe_count() + model_.dense_count();
    const std::int64_t blocks = mlp < model_.layers ? mlp : 0;
    const std::int64_t others = model_.layers - model_.attention_count() - blocks;
    if (others > 0) {
      note(fmt::format(
          "{} layers of linear attention or state space: their weights are not counted", others));
    }
    if (!unknown_types_.empty()) {
      note(fmt::format("element type not known, not counted: {}", unknown_types_));
    }
    if (gpu_.half_tflops <= 0)
      note("the table has no arithmetic peak for this GPU: only bytes count");
    if (!deployment_.kv_dtype && !model_.kv_dtype && context_) {
      note(fmt::format("KV cache taken as {}, the model's own type (--kv-dtype)",
                       dtype_name(floor_.kv_dtype)));
    }
    const double held = floor_.held_bytes + floor_.pool_bytes.value_or(0);
    if (gpu_.memory_gb > 0 && held > gpu_.memory_gb * 1024 * 1024 * 1024) {
      note(fmt::format(
          "does not fit: {} of weights{} on a GPU of {} GB", text::bytes(whole(floor_.held_bytes)),
          floor_.pool_bytes ? " and " + text::bytes(whole(*floor_.pool_bytes)) + " of KV pool" : "",
          text::number(gpu_.memory_gb)));
    }
    unverified();
  }

  void unverified() {
    if (!gpu_.table.empty()) note(fmt::format("peaks of {} from {}", gpu_.name, gpu_.table));
    if (!model_.table.empty()) note(fmt::format("{} from {}", model_.name, model_.table));
    std::string cells;
    for (const std::string& column : gpu_.unverified) {
      const bool link = column == (gpu_.link_gbps > 0 ? "link_gb_per_s_per_direction"
                                                      : "pcie_gb_per_s_per_direction");
      const bool used = column == "memory_bandwidth_gb_per_s" ||
                        column.ends_with("_dense_tflops") || (link && deployment_.tp > 1);
      if (used) cells += (cells.empty() ? "" : ", ") + column;
    }
    if (!cells.empty()) note(fmt::format("not verified for {}: {}", gpu_.name, cells));
    std::string fields;
    for (const std::string& column : model_.unverified)
      fields += (fields.empty() ? "" : ", ") + column;
    if (!fields.empty()) note(fmt::format("not verified for {}: {}", model_.name, fields));
  }

  const Model& model_;
  const Deployment& deployment_;
  const Gpu& gpu_;
  std::optional<std::int64_t> context_;
  double tokens_, attention_tokens_;
  std::array<FloorPart, kComponentCount> parts_;
  std::array<double, kComponentCount> seconds_{}, compute_{};
  std::array<bool, 2> seen_{};
  std::string unknown_types_;
  Floor floor_;
};

Error misfit(std::string what, std::string hint) {
  return Error{Error::Code::kUsage, std::move(what), "", std::move(hint)};
}

// "1, 2, 4, 8": what divides n.
std::string divisors(std::int64_t n) {
  constexpr std::int64_t kMost = 128;
  std::string out;
  for (std::int64_t i = 1; i <= std::min(n, kMost); ++i) {
    if (n % i == 0) out += fmt::format("{}{}", out.empty() ? "" : ", ", i);
  }
  return out;
}

}  // namespace

std::string_view component_name(Component component) {
  return kNames[std::min(static_cast<std::size_t>(component), kNames.size() - 1)];
}

std::string_view bound_name(FloorBound bound) {
  constexpr std::array<std::string_view, 4> kBounds = {"memory", "compute", "link", "latency"};
  return kBounds[std::min(static_cast<std::size_t>(bound), kBounds.size() - 1)];
}

Status check_deployment(const Model& model, const Deployment& deployment) {
  const std::int64_t tp = deployment.tp, ep = deployment.ep, dp = deployment.attention_dp;
  if (tp < 1 || ep < 1 || dp < 1) return misfit("parallel sizes are 1 or more", "--tp N");
  if (tp % dp != 0) {
    return misfit(fmt::format("--attention-dp {} does not divide --tp {}", dp, tp),
                  fmt::format("one of {}", divisors(tp)));
  }
  if (model.heads > 0 && model.heads % (tp / dp) != 0) {
    return misfit(fmt::format("{} GPUs cannot share the {} attention heads of {}", tp / dp,
                              model.heads, model.name),
                  fmt::format("--tp: one of {}", divisors(model.heads)));
  }
  if (ep == 1) return Ok{};
  if (model.experts == 0) {
    return misfit(fmt::format("{} has no experts to spread over --ep {}", model.name, ep),
                  "leave --ep out");
  }
  if (tp % ep != 0) {
    return misfit(fmt::format("--ep {} does not divide --tp {}", ep, tp),
                  fmt::format("--tp counts all GPUs; one of {}", divisors(tp)));
  }
  if (model.experts % ep != 0) {
    return misfit(
        fmt::format("{} GPUs cannot share the {} experts of {}", ep, model.experts, model.name),
        fmt::format("--ep: one of {}", divisors(model.experts)));
  }
  return Ok{};
}

Result<Floor> floor_of(const FloorCase& given) {
  constexpr std::int64_t kMostTokens = 1'000'000, kMostContext = 100'000'000;
  const Status fits = check_deployment(given.model, given.deployment);
  if (!fits.ok()) return fits.error();
  const std::int64_t batch = given.deployment.batch.value_or(1);
  const std::int64_t context = given.context.value_or(1);
  if (batch < 1 || batch > kMostTokens || context < 1 || context > kMostContext) {
    return misfit(fmt::format("a step of {} tokens with {} of context each is none that a GPU runs",
                              text::count(batch), text::count(context)),
                  fmt::format("--batch up to {}, --context up to {}", text::count(kMostTokens),
                              text::count(kMostContext)));
  }
  if (given.gpu.peak_gbps <= 0) {
    return misfit(fmt::format("the table has no memory bandwidth for {}", given.gpu.name),
                  "add a row for it to a table of your own: --gpu-table FILE");
  }
  Floor floor = Calculator(given).run();
  FloorCase once = given;
  once.deployment.tp = once.deployment.ep = once.deployment.attention_dp = 1;
  floor.weight_bytes_once = Calculator(once).run().weight_bytes;
  return floor;
}

}  // namespace culprit::known
