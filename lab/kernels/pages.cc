#include "lab/kernels/pages.h"

#include <sys/mman.h>

#include <cstring>

#include "base/text.h"

namespace culprit::lab {
namespace {

constexpr std::int64_t kHuge = 2 << 20;

}  // namespace

void Pages::Unmap::operator()(void* mapping) const {
  munmap(mapping, static_cast<std::size_t>(bytes));
}

Result<Pages> Pages::reserve(std::int64_t bytes) {
  bytes = (bytes + kHuge - 1) / kHuge * kHuge;
  const std::int64_t mapped = bytes + kHuge;  // room to begin at a multiple
  void* const mapping = mmap(nullptr, static_cast<std::size_t>(mapped), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return Error{Error::Code::kCannotRead, "no memory for " + text::bytes(bytes), "this machine",
                 "ask for fewer bytes, or free some"};
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  auto* const data = static_cast<std::byte*>(mapping) + (kHuge - address % kHuge) % kHuge;
  madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // refused: small pages do too
  return Pages(mapping, mapped, data, bytes);
}

}  // namespace culprit::lab
