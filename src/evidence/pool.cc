// Pool reads: casts or plain copies, once per layer and step, of a buffer as large as a KV pool.
// Signature: facts on the public whole-pool casts, section 12. Evidence in the order in which it is believed: recorded
// shapes; else elements from the grid held against the model's KV row; else against the common
// latent row, which is an assumption and said so.
#include "evidence/pool.h"

#include <algorithm>
#include <array>

#include "evidence/measures.h"

namespace culprit::evidence {
namespace {

using known::Dtype;
using known::Owner;

constexpr std::int64_t kLatentRow = 576;  // kv_lora_rank 512 + rope 64: DeepSeek V3, Kimi K2, GLM-5
constexpr std::array<std::int64_t, 2> kMlaRows{kLatentRow, 656};  // 656: FP8 with scales (DSA)
constexpr std::array<std::int64_t, 9> kHeadDims{64, 80, 96, 112, 128, 160, 192, 256, 512};
constexpr std::int64_t kMostHeads = 256;
// A pool of fewer rows holds one request; its cast costs next to nothing.
constexpr std::int64_t kFewestRows = 1'024;
// Rows per token of the step above which a tensor follows the pool, not the batch.
constexpr std::int64_t kRowsPerToken = 2;
// Wider than any activation row between two layers (128 heads x 576 absorbed queries: 73,728).
constexpr std::int64_t kWidestActivation = 131'072;

template <class Values, class Value>
bool among(const Values& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_narrow(Dtype dtype) { return known::bits(dtype) > 0 && known::bits(dtype) <= 8; }
bool is_half(Dtype dtype) { return dtype == Dtype::kBf16 || dtype == Dtype::kF16; }

// What one group says about being a pool read; groups of one buffer are joined later.
struct Candidate {
  std::size_t kernel = 0;
  bool copies = false;     // within one type
  std::int64_t calls = 0;  // in each used step
  PoolShape shape;         // from dims; rows 0: none recorded
  std::optional<known::ElementInterval> elements;
};

class PoolSearch {
 public:
  PoolSearch(const Basis& basis, const Members& members, const Evidence& evidence)
      : run_(basis.run), members_(members), evidence_(evidence), steps_(basis.steps) {
    const Knowledge& known = evidence.known;
    if (known.model) model_row_ = known::kv_row_elements(*known.model, known.deployment);
    find_kv_dtype();
    for (const KernelFigures& kernel : evidence.kernels) {
      const Owner kind = run_.groups[kernel.group.index].kind;
      if (kind == Owner::kAttention) attention_calls_.push_back(kernel.calls / steps_);
      if (kind == Owner::kAttention || kind == Owner::kKvStore) find_buffers(kernel.group);
    }
  }

  std::vector<PoolRead> find() const {
    std::vector<std::vector<Candidate>> buffers;
    for (std::size_t i = 0; i < evidence_.kernels.size(); ++i) {
      if (const std::optional<Candidate> candidate = examine(i)) join(*candidate, buffers);
    }
    std::vector<PoolRead> reads;
    for (const std::vector<Candidate>& buffer : buffers) {
      if (std::optional<PoolRead> read = fit(buffer)) reads.push_back(std::move(*read));
    }
    return reads;
  }

  Dtype kv_dtype() const { return kv_dtype_; }
  const std::string& kv_dtype_from() const { return kv_dtype_from_; }

 private:
  void find_kv_dtype() {
    const Knowledge& known = evidence_.known;
    if (known.deployment.kv_dtype) {
      kv_dtype_ = *known.deployment.kv_dtype;
      kv_dtype_from_ = known.kv_dtype_from_flag ? "flag" : "server";
    } else if (known.model && known.model->kv_dtype) {
      kv_dtype_ = *known.model->kv_dtype;
      kv_dtype_from_ = "config";
    }
  }

  // Tensors that attention reads, or that new keys are stored in: whatever their rows are, a tensor
  // of one of these shapes is a pool or its copy.
  void find_buffers(run::GroupId group) {
    const std::span<const run::ActivityId> calls = members_.of(group);
    if (calls.empty()) return;
    const run::Origin origin = run::origin_of(run_, run_.activities[calls.front().index]);
    if (!origin.op.valid() || !origin.shapes) return;
    const store::Trace& trace = *origin.run->trace;
    const auto shapes = run::parse_dims(trace.strings.or_empty(trace.ops.dims[origin.op.index]));
    if (!shapes) return;
    for (const std::vector<std::int64_t>& shape : *shapes)
      if (shape.size() == 3 && shape[0] >= kFewestRows) buffers_.push_back(shape);
  }

  PoolShape shape_of(const std::vector<std::int64_t>& dims) const {
    const PoolShape known = pool_shape(dims, model_row_);
    if (known.rows > 0 || !among(buffers_, dims)) return known;
    return {dims[0], dims[1] * dims[2]};
  }

  const KernelFigures& figures(std::size_t kernel) const { return evidence_.kernels[kernel]; }

  // A cast from a narrow type to one that attention computes in; the source may be unknown.
  bool widens(const KernelFigures& kernel) const {
    const run::Group& group = run_.groups[kernel.group.index];
    const std::string_view op = kernel.op;
    const bool casts = group.kind == Owner::kCast || group.info.casts;
    const bool by_op = is_narrow(kernel.dtype_in) && kernel.dtype_in_how == "dims" &&
                       (op == "aten::_to_copy" || op == "aten::copy_" || op == "aten::to");
    if (!casts && !by_op) return false;
    if (kernel.dtype_in == Dtype::kUnknown) {
      return is_half(kernel.dtype_out) && (kv_dtype_ == Dtype::kUnknown || is_narrow(kv_dtype_));
    }
    return is_narrow(kernel.dtype_in) &&
           (kernel.dtype_out == Dtype::kUnknown || !is_narrow(kernel.dtype_out));
  }

  // A copy within one type: of the pool where it was sliced, updated and put together again.
  bool copies(const KernelFigures& kernel) const {
    const run::Group& group = run_.groups[kernel.group.index];
    if (group.device_kind == store::DeviceKind::kMemcpy) {
      return known::decode_copy(run_.trace->strings.or_empty(group.name)).direction ==
             known::CopyInfo::Direction::kDtoD;
    }
    const bool same = kernel.dtype_in == Dtype::kUnknown || kernel.dtype_in == kernel.dtype_out;
    return group.kind == Owner::kCopy && !group.info.casts && same;
  }

  // Of a copy engine's call, if it copied what the model's pool consists of: read and written.
  std::optional<known::ElementInterval> elements_copied(const KernelFigures& kernel) const {
    const Knowledge& known = evidence_.known;
    if (!known.model || !kernel.bytes) return std::nullopt;
    const Dtype type = kv_dtype_ != Dtype::kUnknown ? kv_dtype_ : known.model->weight_dtype;
    if (known::bits(type) == 0) return std::nullopt;
    const std::int64_t elements = *kernel.bytes / 2 * 8 / known::bits(type);
    return known::ElementInterval{elements, elements};
  }

  bool stated(const PoolRead& read) const {
    return read.row_from == "model" &&
           known::is_stated_pool(read.rows, evidence_.known.deployment).value_or(false);
  }

  // Calls in every used step, the same number in each; 0 where it varies.
  std::int64_t steady_calls(run::GroupId group) const {
    std::vector<std::int64_t> per_step(run_.steps.size(), 0);
    for (const run::ActivityId id : members_.of(group)) {
      const run::StepIndex step = run_.activities[id.index].step;
      if (step >= 0) ++per_step[static_cast<std::size_t>(step)];
    }
    std::int64_t calls = -1;
    for (std::size_t i = 0; i < per_step.size(); ++i) {
      if (!run_.steps[i].used) continue;
      if (calls >= 0 && per_step[i] != calls) return 0;
      calls = per_step[i];
    }
    return std::max<std::int64_t>(calls, 0);
  }

  std::optional<Candidate> examine(std::size_t index) const {
    const KernelFigures& kernel = figures(index);
    const bool widens = this->widens(kernel);
    if (run_.kind == run::StepKind::kTraining || !(widens || copies(kernel))) return std::nullopt;
    Candidate candidate;
    candidate.kernel = index;
    candidate.copies = !widens;
    candidate.calls = steady_calls(kernel.group);
    candidate.elements = kernel.elements ? kernel.elements : elements_copied(kernel);
    if (candidate.calls < 2) return std::nullopt;
    const std::optional<std::int64_t> tokens = evidence_.steps.tokens;
    if (!kernel.dims.empty()) {
      candidate.shape = shape_of(kernel.dims);
      const std::int64_t rows = candidate.shape.rows;
      if (rows < kFewestRows || rows < kRowsPerToken * tokens.value_or(0)) return std::nullopt;
      return candidate;
    }
    if (!candidate.elements || !tokens) return std::nullopt;
    if (candidate.elements->min / kWidestActivation < *tokens) return std::nullopt;
    return candidate;
  }

  // Pieces of one buffer share its recorded shape, or, without shapes, the kernel's name.
  void join(const Candidate& candidate, std::vector<std::vector<Candidate>>& buffers) const {
    const KernelFigures& kernel = figures(candidate.kernel);
    for (std::vector<Candidate>& buffer : buffers) {
      const KernelFigures& other = figures(buffer.front().kernel);
      if (candidate.copies != buffer.front().copies) continue;
      const bool same =
          kernel.dims.empty() && other.dims.empty()
              ? run_.groups[kernel.group.index].name == run_.groups[other.group.index].name
              : kernel.dims == other.dims;
      if (same) return buffer.push_back(candidate);
    }
    buffers.push_back({candidate});
  }

  // calls = layers x a power of two (key and value pools, pieces): which count of layers fits? Copies
  // may be any number a layer (slice, update, put together).
  void count_layers(std::int64_t calls, PoolRead& read) const {
    const auto fits = [&](std::int64_t layers) {
      if (layers < 2 || calls % layers != 0) return false;
      if (read.copies) return calls / layers <= 8;
      const auto times = static_cast<std::uint64_t>(calls / layers);
      return (times & (times - 1)) == 0;
    };
    const auto take = [&](std::int64_t layers, std::string_view from) {
      if (read.layers == 0 && fits(layers)) read.layers = layers, read.layers_from = from;
    };
    take(run_.layers.count.value_or(0), "layers");
    for (const std::int64_t layers : attention_calls_) take(layers, "attention calls");
    if (evidence_.known.model) take(evidence_.known.model->attention_count(), "model");
  }

  // Share of the calls that read what a gather wrote just before, on the same stream: live entries,
  // not the pool.
  double behind_gather(run::GroupId group) const {
    std::int64_t gathered = 0;
    const std::span<const run::ActivityId> calls = members_.of(group);
    for (const run::ActivityId id : calls) {
      if (id.index == 0) continue;
      const run::Activity& before = run_.activities[id.index - 1];
      const std::string_view name =
          run_.trace->strings.or_empty(run_.groups[before.group.index].name);
      gathered += name.find("gather") != std::string_view::npos ||
                          name.find("index_elementwise") != std::string_view::npos ||
                          name.find("indexSelect") != std::string_view::npos
                      ? 1
                      : 0;
    }
    return static_cast<double>(gathered) /
           static_cast<double>(std::max<std::size_t>(1, calls.size()));
  }

  // Share of the calls after which attention comes before any matrix multiplication.
  double before_attention(run::GroupId group) const {
    constexpr std::size_t kSamples = 128, kHorizon = 64;
    const std::span<const run::ActivityId> calls = members_.of(group);
    const std::size_t stride = std::max<std::size_t>(1, calls.size() / kSamples) | 1U;
    std::int64_t asked = 0, attention = 0;
    for (std::size_t i = 0; i < calls.size(); i += stride) {
      ++asked;
      const std::size_t from = calls[i].index + 1;
      const std::size_t to = std::min(run_.activities.size(), from + kHorizon);
      for (std::size_t next = from; next < to; ++next) {
        const Owner kind = run_.activities[next].kind;
        if (kind == Owner::kAttention) ++attention;
        if (kind == Owner::kAttention || kind == Owner::kGemm || kind == Owner::kMoeGemm) break;
      }
    }
    return asked > 0 ? static_cast<double>(attention) / static_cast<double>(asked) : 0;
  }

  std::optional<PoolRead> fit(const std::vector<Candidate>& buffer) const {
    PoolRead read;
    std::int64_t calls = 0;
    for (const Candidate& candidate : buffer) {
      read.kernels.push_back(candidate.kernel);
      calls += candidate.calls;
    }
    const KernelFigures& largest = figures(read.kernels.front());
    read.calls_per_step = static_cast<double>(calls);
    read.copies = buffer.front().copies;
    if (behind_gather(largest.group) > 0.5) return std::nullopt;
    read.attention_seen = !attention_calls_.empty();
    read.before_attention = before_attention(largest.group);
    count_layers(calls, read);
    const std::int64_t times = read.layers > 0 ? calls / read.layers : 1;
    const PoolShape& shape = buffer.front().shape;
    if (shape.rows > 0) {
      fit_shape(shape, largest, times, read);
    } else if (!fit_grid(buffer, calls, times, read)) {
      return std::nullopt;
    }
    // Weights are cast before a GEMM, a pool before attention. A recorded pool shape says so itself.
    const bool plausible = shape.rows > 0 ? read.layers > 0 || read.before_attention > 0.5
                                          : read.layers > 0 && supported(read, largest);
    if (!plausible) return std::nullopt;
    // A size alone proves no pool, unless it is the one that was stated.
    if (read.copies && shape.rows == 0 && !stated(read)) return std::nullopt;
    return read;
  }

  // Without shapes the call must be an attention's: by what follows it, or by the line it stands in.
  static bool supported(const PoolRead& read, const KernelFigures& kernel) {
    if (read.before_attention > 0.5) return true;
    if (read.attention_seen || !kernel.source) return false;
    return kernel.source->file.find("attention") != std::string::npos ||
           kernel.source->file.find("mla") != std::string::npos;
  }

  static void fit_shape(const PoolShape& shape, const KernelFigures& kernel, std::int64_t times,
                        PoolRead& read) {
    read.shape = kernel.dims;
    read.rows = shape.rows;
    read.row = shape.row;
    read.elements = shape.rows * shape.row;
    read.match = "exact";
    read.row_from = "dims";
    const int launches = known::launches_for_32bit_indexing(shape.rows, shape.row, 2);
    read.pieces = times % launches == 0 ? launches : 1;
    read.tensors = times / read.pieces;
  }

  // Elements of one buffer from the grids of its launches, and the pool rows that they leave room for.
  bool fit_grid(const std::vector<Candidate>& buffer, std::int64_t calls, std::int64_t times,
                PoolRead& read) const {
    known::ElementInterval all;
    for (const Candidate& candidate : buffer) {
      const known::ElementInterval& each = *candidate.elements;
      all.min += each.min * candidate.calls;
      all.max += each.max * candidate.calls;
    }
    const std::int64_t layers = calls / times;
    if (layers == 0) return false;
    known::ElementInterval layer{(all.min + layers - 1) / layers, all.max / layers};
    const std::int64_t row = model_row_ > 0 ? model_row_ : kLatentRow;
    // Several launches per layer are the pieces of one tensor only if that is large enough to split.
    const int launches = known::launches_for_32bit_indexing(layer.max / row, row, 2);
    read.pieces = launches == times && !read.copies ? times : 1;  // keys and values, else
    read.tensors = times / read.pieces;
    layer.min = (layer.min + read.tensors - 1) / read.tensors;
    layer.max /= read.tensors;
    read.elements = layer.max;
    read.match = "inferred";
    const std::optional<known::ElementInterval> rows = known::multiples_within(layer, row);
    if (!rows) return model_row_ == 0;  // the model's own row does not fit: not its pool
    const bool model = model_row_ > 0;
    // Two tensors per layer are keys and values: no latent pool. And a loose interval proves no row.
    const bool latent = read.tensors == 1 && row > layer.max - layer.min;
    if (!model && !latent) return true;
    read.row = row;
    read.row_from = model ? "model" : "assumed";
    read.rows = rows->max / row;
    read.elements = rows->max;
    const std::int64_t dim = model && !evidence_.known.model->is_mla() ? model_head_dim() : row;
    read.shape = {read.rows, row / dim, dim};
    if (model) read.match = rows->min == rows->max ? "exact" : "within-launch-rounding";
    return true;
  }

  std::int64_t model_head_dim() const {
    const std::int64_t dim = evidence_.known.model->head_dim;
    return dim > 0 && model_row_ % dim == 0 ? dim : model_row_;
  }

  const run::Run& run_;
  const Members& members_;
  const Evidence& evidence_;
  std::int64_t steps_ = 0;
  std::int64_t model_row_ = 0;  // 0: no model given
  Dtype kv_dtype_ = Dtype::kUnknown;
  std::string kv_dtype_from_;
  std::vector<std::int64_t> attention_calls_;       // per step, of each attention kernel
  std::vector<std::vector<std::int64_t>> buffers_;  // [rows, heads, dim], recorded beside those
};

}  // namespace

PoolShape pool_shape(const std::vector<std::int64_t>& dims, std::int64_t model_row) {
  const std::size_t n = dims.size();
  if (n < 2) return {};
  std::int64_t total = 1;
  for (const std::int64_t extent : dims) total *= extent;
  const std::int64_t last = dims[n - 1], heads = dims[n - 2];
  const auto with_row = [&](std::int64_t row) { return PoolShape{total / row, row}; };
  if (last == model_row || among(kMlaRows, last)) return with_row(last);
  if (n < 3 || heads > kMostHeads) return {};
  if (last * heads == model_row || among(kHeadDims, last)) return with_row(last * heads);
  return {};
}

std::vector<PoolRead> find_pool_reads(const Basis& basis, const Members& members,
                                      Evidence& evidence) {
  if (basis.steps == 0) return {};
  const PoolSearch search(basis, members, evidence);
  std::vector<PoolRead> reads = search.find();
  for (const PoolRead& read : reads) {
    for (const std::size_t index : read.kernels) {
      KernelFigures& kernel = evidence.kernels[index];
      if (!read.copies && kernel.dtype_in == Dtype::kUnknown) {
        // A cast to 16 bit by a copy functor: an FP32 source has kernels of its own (facts on kernel
        // forensics, section 5), so a pool that is cast is an 8-bit one.
        const bool told = search.kv_dtype() != Dtype::kUnknown;
        kernel.dtype_in = told ? search.kv_dtype() : Dtype::kFp8E4m3;
        kernel.dtype_in_how = told ? search.kv_dtype_from() : "inferred";
      }
      if (!kernel.elements_exact && read.match == "exact" && read.pieces == 1) {
        kernel.elements_exact = read.elements;
        kernel.elements_how = "grid + " + std::to_string(read.row) + " divides";
      }
    }
  }
  return reads;
}

}  // namespace culprit::evidence
