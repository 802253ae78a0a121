// What a kernel moved: elements and element types from recorded shapes where every call agrees
// (evidence), else from grid and name (inference); then bytes, GB/s and the share of the peak.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using known::Dtype;
using known::Owner;
using Shape = std::vector<std::int64_t>;

// Far above any tensor; keeps products of hostile shapes inside 64 bits, with room for bytes.
constexpr std::int64_t kMostElements = std::int64_t{1} << 55;

std::optional<std::int64_t> product(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) {
    if (extent <= 0 || n > kMostElements / extent) return std::nullopt;
    n *= extent;
  }
  return n;
}

std::int64_t bytes_of(std::int64_t elements, Dtype dtype) {
  return (elements * known::bits(dtype) + 7) / 8;
}

struct Recorded {
  std::vector<Shape> dims;
  std::vector<std::string> types;
  Dtype type(std::size_t i) const {
    return i < types.size() ? known::dtype_from_torch(types[i]) : Dtype::kUnknown;
  }
};

// The shapes that all calls of the group share; none where one call differs or recorded nothing.
std::optional<Recorded> recorded(const run::Run& run, std::span<const run::ActivityId> members) {
  std::optional<std::string_view> dims, types;
  for (const run::ActivityId id : members) {
    const run::Origin origin = run::origin_of(run, run.activities[id.index]);
    if (!origin.op.valid() || !origin.shapes) return std::nullopt;
    const store::Trace& trace = *origin.run->trace;
    const std::string_view its_dims = trace.strings.or_empty(trace.ops.dims[origin.op.index]);
    const std::string_view its_types = trace.strings.or_empty(trace.ops.types[origin.op.index]);
    if (dims && (*dims != its_dims || *types != its_types)) return std::nullopt;
    dims = its_dims;
    types = its_types;
  }
  if (!dims) return std::nullopt;
  auto shapes = run::parse_dims(*dims);
  if (!shapes || shapes->empty()) return std::nullopt;
  return Recorded{std::move(*shapes),
                  run::parse_types(*types).value_or(std::vector<std::string>{})};
}

bool copies_by_op(std::string_view op) {
  return op == "aten::copy_" || op == "aten::_to_copy" || op == "aten::to" || op == "aten::clone" ||
         op == "aten::contiguous";
}

// One launch may be a part of the tensor: 32-bit indexing splits large ones.
bool splits(const Shape& shape, std::int64_t elements, Dtype in, Dtype out) {
  const int widest = std::max({known::bits(in), known::bits(out), 16}) / 8;
  return known::launches_for_32bit_indexing(shape.front(), elements / shape.front(), widest) > 1;
}

void take_copy(const Recorded& shapes, std::string_view op, KernelFigures& figures) {
  const bool into = op == "aten::copy_";  // (destination, source); the others: (source)
  const Shape& written = shapes.dims.front();
  const std::size_t source = into ? 1 : 0;
  if (const Dtype type = shapes.type(source); type != Dtype::kUnknown) {
    figures.dtype_in = type;
    figures.dtype_in_how = "dims";
  }
  if (const Dtype type = shapes.type(0); into && type != Dtype::kUnknown) figures.dtype_out = type;
  const std::optional<std::int64_t> n = product(written);
  if (!n) return;
  figures.dims = written;
  if (figures.elements && !figures.elements->contains(*n)) {
    if (splits(written, *n, figures.dtype_in, figures.dtype_out)) return;
    figures.doubt = fmt::format("the grid speaks of {} to {} elements, the recorded shape of {}",
                                figures.elements->min, figures.elements->max, *n);
    figures.elements.reset();
  }
  if (!figures.elements) figures.elements = known::ElementInterval{*n, *n};
  figures.elements_exact = *n;
  figures.elements_how = "dims";
  if (known::bits(figures.dtype_in) == 0 || known::bits(figures.dtype_out) == 0) return;
  // A broadcast source is read once, whatever the destination's size.
  const std::int64_t read =
      source < shapes.dims.size() ? product(shapes.dims[source]).value_or(*n) : *n;
  figures.bytes = bytes_of(read, figures.dtype_in) + bytes_of(*n, figures.dtype_out);
}

// A tensor that a copy engine copied as a whole: the shape counts where its bytes are those moved.
void take_engine_shape(const Recorded& shapes, KernelFigures& figures) {
  const Dtype type = shapes.type(0);
  const std::optional<std::int64_t> n = product(shapes.dims.front());
  if (!copies_by_op(figures.op) || !n || known::bits(type) == 0) return;
  if (figures.bytes != 2 * bytes_of(*n, type)) return;  // read and written
  figures.dims = shapes.dims.front();
  figures.elements = known::ElementInterval{*n, *n};
  figures.elements_exact = *n;
  figures.elements_how = "dims";
  figures.dtype_in = figures.dtype_out = type;
  figures.dtype_in_how = "dims";
}

// Any other elementwise kernel: the largest operand has the shape written, if the grid agrees.
void take_elementwise(const Recorded& shapes, KernelFigures& figures) {
  std::int64_t largest = 0, read = 0;
  std::size_t at = 0;
  bool typed = true, same = true;
  for (std::size_t i = 0; i < shapes.dims.size(); ++i) {
    if (shapes.dims[i].empty()) continue;  // a scalar
    const std::optional<std::int64_t> n = product(shapes.dims[i]);
    if (!n) return;
    typed = typed && known::bits(shapes.type(i)) > 0;
    same = same && (largest == 0 || shapes.type(i) == shapes.type(at));
    read += bytes_of(*n, shapes.type(i));
    if (*n > largest) largest = *n, at = i;
  }
  if (largest == 0 || !figures.elements || !figures.elements->contains(largest)) return;
  figures.elements_exact = largest;
  figures.elements_how = "dims";
  figures.dims = shapes.dims[at];
  if (!typed) return;
  figures.dtype_in = shapes.type(at);
  figures.dtype_in_how = "dims";
  if (same && figures.dtype_out == Dtype::kUnknown) figures.dtype_out = figures.dtype_in;
  if (figures.dtype_out == Dtype::kUnknown) return;
  figures.bytes = read + bytes_of(largest, figures.dtype_out);
}

// Which argument of a matrix operator is its left operand; the right one follows. None: no such operator.
std::optional<std::size_t> left_operand(std::string_view op) {
  if (op == "aten::addmm" || op == "aten::baddbmm") return 1;  // (bias, a, b)
  for (const std::string_view plain : {"aten::mm", "aten::bmm", "aten::matmul", "aten::_scaled_mm",
                                       "aten::linear", "aten::_linear"}) {
    if (op == plain) return 0;
  }
  return std::nullopt;
}

// Both operands must be matrices or stacks of them, and no tensor of the product beyond any that is.
std::optional<Matmul> matmul_of(std::string_view op, const Shape& a, const Shape& b) {
  const bool transposed = op == "aten::linear" || op == "aten::_linear";  // weight is [n, k]
  if (a.size() < 2 || b.size() < 2 || b.size() > 3) return std::nullopt;
  const std::optional<std::int64_t> rows = product(a);
  if (!rows || !product(b)) return std::nullopt;
  const std::int64_t last = b.back(), before = b[b.size() - 2];
  Matmul result;
  result.k = a.back();
  result.n = transposed ? before : last;
  result.batch = b.size() == 3 ? b.front() : 1;
  result.m = *rows / result.k / result.batch;
  const bool fits = (transposed ? last : before) == result.k && result.m > 0;
  if (!fits || !product({result.batch, result.m, result.n})) return std::nullopt;
  return result;
}

void take_matmul(const Recorded& shapes, std::string_view op, KernelFigures& figures) {
  const std::optional<std::size_t> left = left_operand(op);
  if (!left || shapes.dims.size() < *left + 2) return;
  figures.matmul = matmul_of(op, shapes.dims[*left], shapes.dims[*left + 1]);
  const Dtype a = shapes.type(*left), b = shapes.type(*left + 1);
  if (!figures.matmul || known::bits(a) == 0 || known::bits(b) == 0) return;
  const auto& [batch, m, n, k] = *figures.matmul;
  figures.dtype_in = b;
  figures.dtype_in_how = "dims";
  // What it writes is 16 bits or more; of narrow operands the output's type is not recorded.
  const Dtype out = known::bits(a) >= 16 ? a : Dtype::kBf16;
  figures.bytes =
      bytes_of(batch * m * k, a) + bytes_of(batch * k * n, b) + bytes_of(batch * m * n, out);
}

// Copies and sets carry their bytes. A copy inside the device reads and writes each of them.
void take_copy_engine(const run::Run& run, std::span<const run::ActivityId> members,
                      const run::Group& group, KernelFigures& figures) {
  const store::DeviceTable& device = run.trace->device;
  double total = 0;
  for (const run::ActivityId id : members) {
    const std::int64_t bytes = device.bytes[run.activities[id.index].row.index];
    if (bytes < 0) return;
    total += static_cast<double>(bytes);
  }
  const known::CopyInfo copy = known::decode_copy(run.trace->strings.or_empty(group.name));
  const bool inside = group.device_kind == store::DeviceKind::kMemcpy &&
                      copy.direction == known::CopyInfo::Direction::kDtoD;
  const double each = std::round((inside ? 2 : 1) * total / static_cast<double>(members.size()));
  if (each < static_cast<double>(kMostElements)) figures.bytes = static_cast<std::int64_t>(each);
}

// Dense peak of the matrix units for operands of this type, FLOP per ns; 0: unknown.
double arithmetic_peak(const run::Run& run, Dtype dtype) {
  if (!run.gpu) return 0;
  const known::Gpu& gpu = run.gpu->gpu;
  const int bits = known::bits(dtype);
  const double tflops = bits == 16 ? gpu.half_tflops : bits == 8 ? gpu.fp8_tflops : 0;
  return tflops * 1e3;
}

// Whether the peak of the device memory is the roof: not so for copies over PCIe or a link.
bool device_memory_bound(const run::Run& run, const run::Group& group,
                         const KernelFigures& figures) {
  if (figures.matmul) return true;  // or its arithmetic: see rate()
  if (group.device_kind == store::DeviceKind::kKernel) {
    return group.kind == Owner::kCast || group.kind == Owner::kCopy ||
           group.kind == Owner::kElementwise || group.kind == Owner::kActivation ||
           group.kind == Owner::kMemset || group.info.is_copy;
  }
  return group.device_kind == store::DeviceKind::kMemset ||
         known::decode_copy(run.trace->strings.or_empty(group.name)).direction ==
             known::CopyInfo::Direction::kDtoD;
}

}  // namespace

void weigh(const run::Run& run, std::span<const run::ActivityId> members, KernelFigures& figures) {
  const run::Group& group = run.groups[figures.group.index];
  if (group.device_kind != store::DeviceKind::kKernel) {
    take_copy_engine(run, members, group, figures);
    if (const std::optional<Recorded> shapes = recorded(run, members)) {
      take_engine_shape(*shapes, figures);
    }
    return;
  }
  figures.elements = known::elements_from_grid(group.info, {group.grid, group.block});
  if (figures.elements) {
    figures.elements_how = "grid";
    if (figures.elements->min == figures.elements->max) {
      figures.elements_exact = figures.elements->min;
    }
  }
  figures.dtype_out = group.info.dtype_out;
  figures.dtype_in = group.info.dtype_in;
  if (group.info.is_copy && !group.info.casts && figures.dtype_in == Dtype::kUnknown) {
    figures.dtype_in = figures.dtype_out;
  }
  if (figures.dtype_in != Dtype::kUnknown) figures.dtype_in_how = "name";
  const std::optional<Recorded> shapes = recorded(run, members);
  if (!shapes) return;
  const std::string_view op = figures.op;
  if (copies_by_op(op)) {
    take_copy(*shapes, op, figures);
  } else if (op == "aten::cat") {
    figures.dims = shapes->dims.front();  // of the first tensor: what is written is larger
  } else if (group.kind == Owner::kGemm) {
    take_matmul(*shapes, op, figures);
  } else if (group.info.grid_rule == known::GridRule::kLinear) {
    take_elementwise(*shapes, figures);
  }
}

void rate(const run::Run& run, const Peak& peak, Nanos fastest, KernelFigures& figures) {
  const run::Group& group = run.groups[figures.group.index];
  if (!figures.bytes && group.info.is_copy && figures.elements &&
      known::bits(figures.dtype_in) > 0 && known::bits(figures.dtype_out) > 0) {
    // An interval of one launch is far below 1 % of a tensor that matters; the upper end is exact
    // for whole blocks.
    const std::int64_t n = figures.elements_exact.value_or(figures.elements->max);
    if (figures.elements_exact || figures.elements->min >= n - n / 100) {
      figures.bytes = bytes_of(n, figures.dtype_in) + bytes_of(n, figures.dtype_out);
    }
  }
  if (known::is_comm(group.kind)) figures.regime = Regime::kCommunication;
  if (!figures.bytes || figures.avg_ns <= 0) return;
  const auto bytes = static_cast<double>(*figures.bytes);
  figures.gbps = bytes / static_cast<double>(figures.avg_ns);  // 1 B/ns = 1 GB/s
  if (peak.gbps <= 0 || !device_memory_bound(run, group, figures)) return;
  const double arithmetic =
      figures.matmul ? arithmetic_peak(run, figures.dtype_in) * static_cast<double>(figures.avg_ns)
                     : 0;
  const double memory_share = *figures.gbps / peak.gbps;
  const double compute_share = arithmetic > 0 ? figures.matmul->flops() / arithmetic : 0;
  const bool compute = compute_share > memory_share;
  const double share = compute ? compute_share : memory_share;
  // Facts on GPUs, section 6: what takes less than the run's fastest kernel at the roof is bound by
  // latency, not by memory.
  figures.regime = bytes / peak.gbps < static_cast<double>(fastest) ? Regime::kLatency
                   : compute                                        ? Regime::kCompute
                                                                    : Regime::kMemory;
  if (share <= 1) {
    figures.of_peak = share;
  } else {
    figures.doubts_peak =
        peak.source == "trace" && figures.elements_how == "dims" && figures.dtype_in_how == "dims";
    figures.doubt = fmt::format(
        "{:.0f} GB/s would be {:.2f} times the peak: the element count, an element type or the "
        "peak "
        "is wrong, or the data stayed in the cache",
        *figures.gbps, share);
  }
}

}  // namespace culprit::evidence
