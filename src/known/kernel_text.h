// KernelText: a kernel's name taken apart. Kineto, ROCm and Nsight spell one template three ways
// ("4", "(int)4"; "{lambda(int)#1}",
// "[lambda(int) (instance 1)]"), and C++ demanglers leave some names mangled; after this all look
// alike. Any bytes are accepted; cost is linear in the name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::known {

struct KernelText {
  std::string name;  // one spelling, without return type, parameters and lambda wrapping
  std::string_view
      head;  // "at::native::vectorized_elementwise_kernel": qualified, without template arguments
  std::string_view base;  // "vectorized_elementwise_kernel"; with its scope where it says nothing
                          // ("gemvx::kernel")
  std::string_view
      args;  // between the outermost < and >; of a mangled name its remaining identifiers

  explicit KernelText(std::string_view raw);
  KernelText(const KernelText&) = delete;  // the views point into `name`
  KernelText& operator=(const KernelText&) = delete;
};

// Top-level pieces of template arguments, trimmed: "4, F<int, 2>, 3" -> {"4", "F<int, 2>", "3"}.
std::vector<std::string_view> split_arguments(std::string_view args);
// What stands between the first '<' after `from` and its partner; empty where there is none.
std::string_view angle_content(std::string_view text, std::size_t from);
// A non-negative decimal of at most 9 digits, with or without suffix ("4", "2ul"); none for
// anything else.
std::optional<int> small_integer(std::string_view text);
std::string lower_case(std::string_view text);

}  // namespace culprit::known
