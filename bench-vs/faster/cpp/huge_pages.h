// Included before every source of FASTER: what it allocates in large pieces (log pages, hash table,
// overflow buckets) comes from `bench_aligned_alloc`, on 2 MiB pages as Sapwood's memory is.
#pragma once

// Before the name means something else.
#include <cstdlib>
#include <memory>

extern "C" void* bench_aligned_alloc(size_t alignment, size_t size) noexcept;

#define aligned_alloc bench_aligned_alloc
