// Memory on 2 MiB pages for FASTER, which frees it with `free`.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace {
constexpr size_t kHugePage = size_t{ 2 } << 20;
}

extern "C" void* bench_aligned_alloc(size_t alignment, size_t size) noexcept {
  if(size < kHugePage) {
    return std::aligned_alloc(alignment, size);
  }
  const size_t rounded = (size + kHugePage - 1) & ~(kHugePage - 1);
  void* memory = std::aligned_alloc(std::max(alignment, kHugePage), rounded);
  if(memory != nullptr) {
    // Where the system refuses, small pages do.
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
  }
  return memory;
}
