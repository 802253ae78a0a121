#include "known/kernel_aten.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::known {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool begins_with(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}
bool ends_with(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && text.substr(text.size() - part.size()) == part;
}

// Which template argument is the functor, and which are threads and values per thread (-1: none).
struct Shape {
  std::string_view base;
  int functor, threads, per_thread;
};
constexpr std::array<Shape, 11> kShapes = {{
    {"vectorized_elementwise_kernel", 1, -1, -1},
    {"unrolled_elementwise_kernel", 0, -1, 2},
    {"elementwise_kernel", 2, 0, 1},
    {"elementwise_kernel_manual_unroll", 2, 0, 1},
    {"index_elementwise_kernel", 2, 0, 1},
    {"_scatter_gather_elementwise_kernel", 2, 0, 1},
    {"vectorized_templated_elementwise_kernel", 1, -1, -1},
    {"unrolled_elementwise_kernel_for_multi_outputs", 1, -1, -1},
    {"elementwise_kernel_with_index", 1, -1, -1},
    {"distribution_elementwise_grid_stride_kernel", 2, -1, -1},
    {"reduce_kernel", 2, -1, -1},
}};

const Shape* shape_of(const KernelText& text) {
  for (const Shape& shape : kShapes) {
    if (text.base == shape.base) return &shape;
  }
  return nullptr;
}

std::string_view argument(const std::vector<std::string_view>& arguments, int index) {
  const auto i = static_cast<std::size_t>(index);
  return index >= 0 && i < arguments.size() ? arguments[i] : std::string_view{};
}

// How the functor is wrapped. gpu_kernel_impl without "_nocast" casts, but before PyTorch 2.1 it
// stood for both; see casts_under_impl.
enum class Wrapper : std::uint8_t { kNone, kImpl, kNoCast };

struct Functor {
  std::string text;  // unwrapped, as printed
  std::string name;  // "silu", "mul", "direct_copy", "arg_max"
  // Its result, or where a lambda is all that is printed, the lambda's last parameter.
  Dtype type = Dtype::kUnknown;
  Wrapper wrapper = Wrapper::kNone;
  int wrapper_lambda = 1;  // N of the wrapper's own "{lambda(int)#N}"
};

// "GeluCUDAKernelImpl" -> "gelu", "CUDAFunctorOnSelf_add" -> "add", "compare_scalar_kernel" ->
// "compare_scalar".
std::string plain_name(std::string_view id) {
  constexpr std::array<std::string_view, 5> kBefore = {"CUDAFunctorOnSelf_", "CUDAFunctorOnOther_",
                                                       "CUDAFunctor_", "launch_", "_cuda_"};
  constexpr std::array<std::string_view, 11> kAfter = {
      "_kernel_cuda", "_cuda_kernel", "_kernel_impl", "CUDAKernelImpl", "KernelImpl", "_kernel",
      "_cuda_out",    "NanFunctor",   "Functor",      "_functor",       "Ops"};
  for (const std::string_view before : kBefore) {
    if (begins_with(id, before)) id.remove_prefix(before.size());
  }
  for (const std::string_view after : kAfter) {
    if (id.size() > after.size() && ends_with(id, after)) {
      id.remove_suffix(after.size());
      break;
    }
  }
  std::string name;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool upper = id[i] >= 'A' && id[i] <= 'Z';
    const bool after_lower = i > 0 && id[i - 1] >= 'a' && id[i - 1] <= 'z';
    if (upper && after_lower) name += '_';
    name += upper ? static_cast<char>(id[i] - 'A' + 'a') : id[i];
  }
  return name;
}

// Type of the last parameter of the first lambda that has any: "{lambda(bool, float)#1}" -> float.
Dtype lambda_type(std::string_view text) {
  constexpr std::string_view kLambda = "{lambda(";
  for (std::size_t at = text.find(kLambda); at != std::string_view::npos;
       at = text.find(kLambda, at + 1)) {
    const std::size_t open = at + kLambda.size();
    const std::size_t close = text.find(')', open);
    if (close == std::string_view::npos) break;
    const auto parameters = split_arguments(text.substr(open, close - open));
    if (parameters.empty()) continue;
    // masked_fill(value, mask) is the one that ends in its condition.
    const Dtype last = dtype_from_torch(parameters.back());
    return last == Dtype::kBool ? dtype_from_torch(parameters.front()) : last;
  }
  return Dtype::kUnknown;
}

int trailing_lambda_number(std::string_view text) {
  const std::size_t hash = text.rfind('#');
  const std::size_t close = text.rfind('}');
  if (hash == std::string_view::npos || close == std::string_view::npos || close < hash) return 1;
  return small_integer(text.substr(hash + 1, close - hash - 1)).value_or(1);
}

// BinaryFunctor<float, float, float, MulFunctor<float>>: the operation is the last argument.
bool adapts(std::string_view id) {
  return id == "BinaryFunctor" || id == "AUnaryFunctor" || id == "BUnaryFunctor" ||
         id == "ReduceOp" || id == "func_wrapper_t";
}

bool returns_bool(std::string_view name) {
  return begins_with(name, "compare") || begins_with(name, "logical") || begins_with(name, "is");
}

// Their lambdas take positions, which are no element type.
bool lambda_takes_index(std::string_view base) {
  return base == "index_elementwise_kernel" || base == "_scatter_gather_elementwise_kernel" ||
         base == "elementwise_kernel_with_index";
}

// Takes one layer off functor.text and returns true, or names what is left.
bool unwrap(Functor& functor) {
  while (ends_with(functor.text, " ")) functor.text.pop_back();
  const KernelText parts(functor.text);
  const auto arguments = split_arguments(parts.args);
  const bool is_impl = begins_with(parts.base, "gpu_kernel_impl");
  if (is_impl || parts.base == "gpu_index_kernel") {
    if (is_impl) {
      functor.wrapper = ends_with(parts.base, "_nocast") ? Wrapper::kNoCast : Wrapper::kImpl;
      functor.wrapper_lambda = trailing_lambda_number(functor.text);
    }
    functor.text = parts.args;
    return true;
  }
  functor.name = plain_name(parts.base);
  const bool untyped = functor.type == Dtype::kUnknown;
  if (!adapts(parts.base) || arguments.empty()) {
    const bool lambda = contains(functor.text, "{lambda(");
    if (untyped && lambda && !returns_bool(functor.name)) functor.type = lambda_type(functor.text);
    if (untyped && !lambda && !arguments.empty()) functor.type = dtype_from_torch(arguments[0]);
    return false;
  }
  // Reductions name their operation second, elementwise adapters last, after its result type.
  const bool reduces = parts.base == "ReduceOp" || parts.base == "func_wrapper_t";
  const std::size_t result = parts.base == "ReduceOp" ? 3 : reduces ? 0 : 2;
  if (untyped && arguments.size() > result) functor.type = dtype_from_torch(arguments[result]);
  functor.text = arguments[reduces && arguments.size() > 1 ? 1 : arguments.size() - 1];
  return true;
}

Functor read_functor(std::string_view text) {
  Functor functor;
  functor.text = text;
  constexpr int kDeepest = 4;  // impl<BinaryFunctor<MulFunctor>>, ReduceOp<func_wrapper_t<sum>>
  for (int depth = 0; depth < kDeepest && unwrap(functor); ++depth) {
  }
  return functor;
}

// Before PyTorch 2.1 gpu_kernel_impl was the only name and {lambda(int)#1} its path without a cast,
// which uses 2 values per thread from 4 bytes up. From the direct copy's third dispatch on (Float8
// came in) the tree is new. What stays undecided is called a plain copy.
bool casts_under_impl(const Functor& functor, std::string_view base, int threads, int per_thread) {
  if (functor.wrapper != Wrapper::kImpl || per_thread == 2) return false;
  constexpr int kRocmThreads = 512;
  constexpr int kWordBits = 32;
  const std::size_t dispatch = functor.text.find("::{lambda()#");
  const bool new_tree =
      dispatch != std::string_view::npos && functor.text.substr(dispatch + 12, 1) >= "3";
  return base != "elementwise_kernel" || threads == kRocmThreads || new_tree ||
         functor.wrapper_lambda > 1 || bits(functor.type) >= kWordBits;
}

// "bfloat16_copy_kernel_cuda(...)::{lambda(float)#1}": here the lambda's type is the SOURCE; the
// destination is in the function's name ("bfloat16tofloat32" has both).
bool dedicated_copy(const Functor& functor, KernelInfo& info) {
  constexpr std::string_view kCopy = "_copy";
  const bool floats = begins_with(functor.name, "float") || begins_with(functor.name, "bfloat");
  if (!floats || !ends_with(functor.name, kCopy)) return false;
  std::string_view to = functor.name;
  to.remove_suffix(kCopy.size());
  const std::size_t both = to.find("to");
  if (both != std::string_view::npos) to.remove_prefix(both + 2);
  info.is_copy = info.casts = true;
  info.dtype_in = functor.type;
  // "float8" alone stands for four types.
  info.dtype_out = to == "float8" ? Dtype::kUnknown : dtype_from_config(to);
  return true;
}

Owner kind_of_functor(std::string_view base, const Functor& functor) {
  constexpr std::array<std::string_view, 12> kActivations = {
      "silu", "gelu", "hardswish",  "hardsigmoid", "mish",          "softplus",
      "elu",  "glu",  "leaky_relu", "threshold",   "silu_backward", "gelu_backward"};
  for (const std::string_view activation : kActivations) {
    if (functor.name == activation) return Owner::kActivation;
  }
  // Greedy decoding is an argmax over the logits; exponential_ divides probabilities to draw one.
  if (functor.name == "arg_max" || contains(functor.text, "exponential_kernel")) {
    return Owner::kSampling;
  }
  if (base == "reduce_kernel") return Owner::kReduce;
  if (base == "index_elementwise_kernel" || base == "_scatter_gather_elementwise_kernel") {
    return Owner::kCopy;
  }
  return Owner::kElementwise;
}

// W of the vectorized kernel changed with the builds: 4 values per thread while its pointers came
// in at::detail::Array; from vec = 8 on (2.7) 8 of them on CUDA. Between the two the name cannot
// tell.
void work_of_vectorized(const KernelText& text, int vec, KernelInfo& info) {
  constexpr int kCudaThreads = 128;
  if (contains(text.args, "at::detail::Array")) {
    info.work_per_thread = 4;
    info.threads_per_block = kCudaThreads;
    info.work_per_block = std::int64_t{4} * kCudaThreads;
  } else if (vec == 8 && bits(info.dtype_out) > 8) {
    info.threads_per_block = kCudaThreads;
    info.work_per_block = std::int64_t{8} * kCudaThreads;
  } else {
    return;
  }
  info.grid_rule = GridRule::kLinear;
}

void work_of_shape(const KernelText& text, const Shape& shape,
                   const std::vector<std::string_view>& arguments, KernelInfo& info) {
  constexpr int kCudaThreads = 128;
  constexpr int kUnrolled = 4;  // trees before 2.5 do not print it
  if (text.base == "vectorized_elementwise_kernel") {
    return work_of_vectorized(text, small_integer(argument(arguments, 0)).value_or(0), info);
  }
  if (text.base == "unrolled_elementwise_kernel") {
    info.work_per_thread = small_integer(argument(arguments, shape.per_thread)).value_or(kUnrolled);
    info.threads_per_block = kCudaThreads;
  } else if (shape.threads >= 0) {
    const auto threads = small_integer(argument(arguments, shape.threads));
    const auto per_thread = small_integer(argument(arguments, shape.per_thread));
    if (!threads || !per_thread) return;
    info.threads_per_block = *threads;
    info.work_per_block = std::int64_t{*threads} * *per_thread;
  } else {
    return;
  }
  if (info.work_per_thread > 0) {
    info.work_per_block = std::int64_t{info.work_per_thread} * info.threads_per_block;
  }
  info.grid_rule = GridRule::kLinear;
}

std::string short_name_of(std::string_view base, const Functor& functor, const KernelInfo& info) {
  std::string name(base);
  if (!info.contiguous && info.is_copy) name += " strided";
  name += ' ';
  const bool direct = functor.name == "direct_copy" || info.is_copy;
  name += direct ? "copy" : functor.name == "arg_max" ? "argmax" : functor.name;
  const bool in = info.dtype_in != Dtype::kUnknown;
  const bool out = info.dtype_out != Dtype::kUnknown;
  if (in) (name += ' ') += dtype_name(info.dtype_in);
  if (out && (in || (info.is_copy && info.casts))) name += " ->";
  if (out) (name += ' ') += dtype_name(info.dtype_out);
  return name;
}

// multi_tensor_apply_kernel<..., at::native::Copy<int, long>>: torch._foreach_copy_, destination
// first.
bool decode_foreach(const KernelText& text, KernelInfo& info) {
  if (text.base != "multi_tensor_apply_kernel") return false;
  info.kind = Owner::kElementwise;
  info.family = "aten-foreach";
  info.short_name = text.base;
  const auto arguments = split_arguments(text.args);
  if (arguments.size() < 2) return true;
  const KernelText functor(arguments[1]);
  for (const std::string_view argument_text : arguments) {
    const KernelText operation(argument_text);
    const auto types = split_arguments(operation.args);
    if (operation.base != "Copy" || types.size() != 2) continue;
    info.is_copy = true;
    info.dtype_out = dtype_from_torch(types[0]);
    info.dtype_in = dtype_from_torch(types[1]);
    info.casts = info.dtype_out != info.dtype_in;
    info.kind = info.casts ? Owner::kCast : Owner::kCopy;
    info.short_name += " copy ";
    if (info.casts) info.short_name += std::string(dtype_name(info.dtype_in)) + " -> ";
    info.short_name += dtype_name(info.dtype_out);
    return true;
  }
  (info.short_name += ' ') += plain_name(functor.base);
  return true;
}

}  // namespace

bool decode_aten(const KernelText& text, KernelInfo& info) {
  if (decode_foreach(text, info)) return true;
  const Shape* shape = shape_of(text);
  if (shape == nullptr) return false;
  const auto arguments = split_arguments(text.args);
  const std::string_view functor_text = argument(arguments, shape->functor);
  if (functor_text.empty()) return false;
  Functor functor = read_functor(functor_text);
  if (lambda_takes_index(text.base)) functor.type = Dtype::kUnknown;

  const bool reduces = text.base == "reduce_kernel";
  info.family = reduces ? "aten-reduce" : "aten-elementwise";
  info.is_copy = functor.name == "direct_copy" || functor.name == "copy_device_to_device";
  if (!dedicated_copy(functor, info)) info.dtype_out = functor.type;
  info.is_gather = text.base == "index_elementwise_kernel" && functor.name == "index";
  const int threads = small_integer(argument(arguments, shape->threads)).value_or(0);
  const int per_thread = small_integer(argument(arguments, shape->per_thread)).value_or(0);
  info.casts = info.casts || contains(text.args, "LoadWithCast") ||
               casts_under_impl(functor, text.base, threads, per_thread);
  // ROCm casts contiguous tensors with the 512-thread kernel that CUDA keeps for strided ones.
  constexpr int kRocmThreads = 512;
  info.contiguous = text.base == "unrolled_elementwise_kernel"
                        ? !contains(text.args, " OffsetCalculator<")
                        : functor.wrapper == Wrapper::kNone || threads == kRocmThreads;
  info.kind = !info.is_copy ? kind_of_functor(text.base, functor)
              : info.casts  ? Owner::kCast
                            : Owner::kCopy;
  work_of_shape(text, *shape, arguments, info);
  info.short_name = short_name_of(text.base, functor, info);
  return true;
}

}  // namespace culprit::known
