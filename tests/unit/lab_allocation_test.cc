// A step allocates nothing: counted by an operator new of this program's own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "lab/engine/engine.h"
#include "unit/lab_tiny_weights.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

// Out of line: a compiler that sees `free` behind `new` takes them for a mismatch.
[[gnu::noinline]] void release(void* block) noexcept { std::free(block); }

void* counted_or_throw(std::size_t size) {
  if (void* block = counted(size)) return block;
  throw std::bad_alloc();
}
}  // namespace

// All forms, so that none is freed by another allocator than its own.
void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new[](std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { release(block); }

namespace culprit::lab {
namespace {

TEST(Engine, AStepAllocatesNothing) {
  ModelConfig sparse = tiny_mla();
  sparse.indexer = {.heads = 2, .head_dim = 16, .top_k = 12, .rope = RopeStyle::kHalfSplit};
  for (const ModelConfig& config : {sparse, tiny_gqa()}) {
    TinyWeights tiny(config);
    for (const Reading reading : {Reading::kPoolCast, Reading::kGatherCast, Reading::kFused}) {
      EngineOptions options;
      options.launch = reading == Reading::kPoolCast ? LaunchMode::kEager : LaunchMode::kGraph;
      options.threads = 2;
      options.isa = best_isa();
      options.reading = reading;
      options.pool_format = KvFormat::kE4m3;
      options.pool_tokens = 96;  // too few for all: evictions are steps, too
      options.page = 4;
      options.longest = 64;
      options.batch = 3;
      options.chunk = 8;
      auto engine = Engine::make(*tiny, options);
      ASSERT_TRUE(engine.ok());
      for (int i = 0; i < 4; ++i) {
        Request request;
        request.prompt.assign(static_cast<std::size_t>(10 + i), 7);
        request.new_tokens = 25;
        request.context = i == 3 ? 9 : 0;
        request.sampling = {.temperature = 1, .top_k = 5 * i, .top_p = 0.9, .seed = 4};
        ASSERT_TRUE((*engine)->submit(request).ok());
      }
      const std::int64_t before = allocations.load();
      std::int64_t evicted = 0;
      while (!(*engine)->idle()) evicted += (*engine)->step().evicted;
      EXPECT_EQ(allocations.load(), before) << reading_name(reading);
      EXPECT_GT(evicted, 0);
    }
  }
}

}  // namespace
}  // namespace culprit::lab
