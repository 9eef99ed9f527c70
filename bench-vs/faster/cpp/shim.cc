// FASTER behind functions of C: a store in memory with keys and values of 8 bytes, configured as
// FASTER's own benchmark is, and a store on a file system with values of 100 bytes.
//
// Every thread enters a store before its calls and leaves it after them. In between it refreshes its
// epoch and completes what is pending as often as FASTER's benchmark does.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "core/faster.h"
#include "device/file_system_disk.h"
#include "device/null_disk.h"

namespace {

using FASTER::core::CallbackContext;
using FASTER::core::IAsyncContext;
using FASTER::core::KeyHash;
using FASTER::core::Status;
using FASTER::core::Utility;

constexpr uint64_t kRefreshInterval = 64;
constexpr uint64_t kCompletePendingInterval = 1600;

class Key {
 public:
  explicit Key(uint64_t key)
    : key_{ key } {
  }
  static constexpr uint32_t size() {
    return static_cast<uint32_t>(sizeof(Key));
  }
  KeyHash GetHash() const {
    return KeyHash{ Utility::GetHashCode(key_) };
  }
  bool operator==(const Key& other) const {
    return key_ == other.key_;
  }
  bool operator!=(const Key& other) const {
    return key_ != other.key_;
  }

 private:
  uint64_t key_;
};

// What every context has: its key, and a copy on the heap where an operation has to wait.
template <class Context, class Value>
class Keyed : public IAsyncContext {
 public:
  typedef Key key_t;
  typedef Value value_t;

  explicit Keyed(uint64_t key)
    : key_{ key } {
  }
  const Key& key() const {
    return key_;
  }
  static constexpr uint32_t value_size() {
    return static_cast<uint32_t>(sizeof(Value));
  }
  static constexpr uint32_t value_size(const Value&) {
    return static_cast<uint32_t>(sizeof(Value));
  }

 protected:
  Status DeepCopy_Internal(IAsyncContext*& context_copy) {
    return IAsyncContext::DeepCopy_Internal(static_cast<Context&>(*this), context_copy);
  }

 private:
  Key key_;
};

// Frees the copy of a context whose operation had to wait.
template <class Context>
void Completed(IAsyncContext* context, Status) {
  CallbackContext<Context> freed{ context };
}

// ---- in memory: 8 bytes, read and changed as a whole ----

class Word {
 public:
  static constexpr uint32_t size() {
    return static_cast<uint32_t>(sizeof(Word));
  }

  union {
    uint64_t plain;
    std::atomic<uint64_t> atomic;
  };
};
static_assert(sizeof(Word) == 8, "a value has 8 bytes");

class WordRead : public Keyed<WordRead, Word> {
 public:
  explicit WordRead(uint64_t key)
    : Keyed{ key }
    , value{ 0 } {
  }
  void Get(const Word& found) {
    value = found.plain;
  }
  void GetAtomic(const Word& found) {
    value = found.atomic.load();
  }

  uint64_t value;
};

class WordUpsert : public Keyed<WordUpsert, Word> {
 public:
  WordUpsert(uint64_t key, uint64_t value)
    : Keyed{ key }
    , value_{ value } {
  }
  void Put(Word& value) {
    value.plain = value_;
  }
  bool PutAtomic(Word& value) {
    value.atomic.store(value_);
    return true;
  }

 private:
  uint64_t value_;
};

class WordIncrement : public Keyed<WordIncrement, Word> {
 public:
  explicit WordIncrement(uint64_t key)
    : Keyed{ key } {
  }
  void RmwInitial(Word& value) {
    value.plain = 1;
  }
  void RmwCopy(const Word& old_value, Word& value) {
    value.plain = old_value.plain + 1;
  }
  bool RmwAtomic(Word& value) {
    value.atomic.fetch_add(1);
    return true;
  }
};

typedef FASTER::core::FasterKv<Key, Word, FASTER::device::NullDisk> Memory;

// ---- larger than memory: 100 bytes, of which the first 8 are a number ----

constexpr size_t kBlobBytes = 100;

// A lock and a version stand in what would be padding: readers try again where a writer was.
class Blob {
 public:
  static constexpr uint32_t size() {
    return static_cast<uint32_t>(sizeof(Blob));
  }

  void Put(const uint8_t* bytes) {
    std::memcpy(bytes_, bytes, kBlobBytes);
    version_.store(0, std::memory_order_relaxed);
  }
  void PutLocked(const uint8_t* bytes) {
    const uint32_t version = Lock();
    std::memcpy(bytes_, bytes, kBlobBytes);
    version_.store(version + 2, std::memory_order_release);
  }
  void Increment() {
    uint64_t number;
    std::memcpy(&number, bytes_, sizeof(number));
    ++number;
    std::memcpy(bytes_, &number, sizeof(number));
  }
  void IncrementLocked() {
    const uint32_t version = Lock();
    Increment();
    version_.store(version + 2, std::memory_order_release);
  }
  void Get(uint8_t* bytes) const {
    std::memcpy(bytes, bytes_, kBlobBytes);
  }
  void GetUnlocked(uint8_t* bytes) const {
    while(true) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      if(before % 2 == 0) {
        Get(bytes);
        std::atomic_thread_fence(std::memory_order_acquire);
        if(version_.load(std::memory_order_relaxed) == before) {
          return;
        }
      }
      std::this_thread::yield();
    }
  }
  const uint8_t* bytes() const {
    return bytes_;
  }

 private:
  // The version before, which is even.
  uint32_t Lock() {
    while(true) {
      uint32_t version = version_.load(std::memory_order_relaxed);
      if(version % 2 == 0 &&
          version_.compare_exchange_weak(version, version + 1, std::memory_order_acquire)) {
        // Readers see the odd version before a changed byte.
        std::atomic_thread_fence(std::memory_order_release);
        return version;
      }
      std::this_thread::yield();
    }
  }

  alignas(8) uint8_t bytes_[kBlobBytes];
  std::atomic<uint32_t> version_;
};
static_assert(sizeof(Blob) == 104, "no more than 100 bytes padded");

class BlobRead : public Keyed<BlobRead, Blob> {
 public:
  BlobRead(uint64_t key, uint8_t* bytes, bool* is_found)
    : Keyed{ key }
    , bytes_{ bytes }
    , is_found_{ is_found } {
  }
  void Get(const Blob& found) {
    found.Get(bytes_);
    *is_found_ = true;
  }
  void GetAtomic(const Blob& found) {
    found.GetUnlocked(bytes_);
    *is_found_ = true;
  }

 private:
  // The caller's: they outlive the read, as the caller waits for it.
  uint8_t* bytes_;
  bool* is_found_;
};

class BlobUpsert : public Keyed<BlobUpsert, Blob> {
 public:
  BlobUpsert(uint64_t key, const uint8_t* bytes)
    : Keyed{ key }
    , bytes_{ bytes } {
  }
  void Put(Blob& value) {
    value.Put(bytes_);
  }
  bool PutAtomic(Blob& value) {
    value.PutLocked(bytes_);
    return true;
  }

 private:
  const uint8_t* bytes_;
};

class BlobIncrement : public Keyed<BlobIncrement, Blob> {
 public:
  explicit BlobIncrement(uint64_t key)
    : Keyed{ key } {
  }
  void RmwInitial(Blob& value) {
    const uint8_t one[kBlobBytes] = { 1 };
    value.Put(one);
  }
  void RmwCopy(const Blob& old_value, Blob& value) {
    value.Put(old_value.bytes());
    value.Increment();
  }
  bool RmwAtomic(Blob& value) {
    value.IncrementLocked();
    return true;
  }
};

// Segments of 1 GiB, as in FASTER's benchmark.
typedef FASTER::device::FileSystemDisk<FASTER::environment::QueueIoHandler, 1073741824ull> Disk;
typedef FASTER::core::FasterKv<Key, Blob, Disk> Spill;

// Calls of this thread on a store that spills, for the intervals.
thread_local uint64_t calls_ = 0;

void KeepUp(Spill& store) {
  if(++calls_ % kRefreshInterval == 0) {
    store.Refresh();
    if(calls_ % kCompletePendingInterval == 0) {
      store.CompletePending(false);
    }
  }
}

template <class Open>
auto Opened(Open open, char* error, size_t error_bytes) -> decltype(open()) {
  try {
    return open();
  } catch(const std::exception& exception) {
    std::strncpy(error, exception.what(), error_bytes - 1);
    error[error_bytes - 1] = 0;
    return nullptr;
  }
}

}  // namespace

extern "C" {

// One operation on a store in memory.
struct bench_call {
  uint64_t key;
  uint64_t value;
  uint64_t kind;
};

enum { kRead = 0, kUpsert = 1, kIncrement = 2 };

Memory* bench_memory_open(uint64_t buckets, uint64_t log_bytes, char* error, size_t error_bytes) {
  return Opened([=] { return new Memory{ buckets, log_bytes, "" }; }, error, error_bytes);
}

void bench_memory_close(Memory* store) {
  delete store;
}

void bench_memory_enter(Memory* store) {
  store->StartSession();
}

void bench_memory_leave(Memory* store) {
  store->CompletePending(true);
  store->StopSession();
}

// Does `count` operations one after the other; what reads find is put into `found`, one after the
// other, and counted. Negative where the store refuses an operation.
int64_t bench_memory_run(Memory* store, const bench_call* calls, size_t count, bool complete,
                         uint64_t* found) {
  store->Refresh();
  if(complete) {
    store->CompletePending(false);
  }
  int64_t found_count = 0;
  bool is_pending = false;
  for(size_t i = 0; i < count; ++i) {
    const bench_call& call = calls[i];
    switch(call.kind) {
    case kRead: {
      WordRead read{ call.key };
      const Status status = store->Read(read, Completed<WordRead>, 1);
      if(status == Status::Ok) {
        found[found_count++] = read.value;
      } else if(status != Status::NotFound) {
        return -1;
      }
      break;
    }
    case kUpsert: {
      WordUpsert upsert{ call.key, call.value };
      const Status status = store->Upsert(upsert, Completed<WordUpsert>, 1);
      is_pending |= status == Status::Pending;
      if(status != Status::Ok && status != Status::Pending) {
        return -1;
      }
      break;
    }
    default: {
      WordIncrement increment{ call.key };
      const Status status = store->Rmw(increment, Completed<WordIncrement>, 1);
      is_pending |= status == Status::Pending;
      if(status != Status::Ok && status != Status::Pending) {
        return -1;
      }
    }
    }
  }
  if(is_pending) {
    store->CompletePending(true);
  }
  return found_count;
}

Spill* bench_spill_open(const char* folder, uint64_t buckets, uint64_t log_bytes,
                        double mutable_fraction, char* error, size_t error_bytes) {
  return Opened(
           [=] { return new Spill{ buckets, log_bytes, folder, mutable_fraction }; },
           error, error_bytes);
}

void bench_spill_close(Spill* store) {
  delete store;
}

void bench_spill_enter(Spill* store) {
  store->StartSession();
}

void bench_spill_leave(Spill* store) {
  store->CompletePending(true);
  store->StopSession();
}

uint64_t bench_spill_log_bytes(const Spill* store) {
  return store->Size();
}

// Reads `count` keys, all of them in flight together. Value `i` is put at `values + 100 i`. Tells how
// many had to be fetched from the disk; negative where the store refuses.
int64_t bench_spill_read(Spill* store, const uint64_t* keys, size_t count, uint8_t* values,
                         bool* are_found) {
  int64_t fetched = 0;
  for(size_t i = 0; i < count; ++i) {
    KeepUp(*store);
    are_found[i] = false;
    BlobRead read{ keys[i], values + i * kBlobBytes, are_found + i };
    const Status status = store->Read(read, Completed<BlobRead>, 1);
    fetched += status == Status::Pending;
    if(status != Status::Ok && status != Status::NotFound && status != Status::Pending) {
      return -1;
    }
  }
  if(fetched != 0) {
    store->CompletePending(true);
  }
  return fetched;
}

bool bench_spill_upsert(Spill* store, uint64_t key, const uint8_t* value) {
  KeepUp(*store);
  BlobUpsert upsert{ key, value };
  const Status status = store->Upsert(upsert, Completed<BlobUpsert>, 1);
  if(status == Status::Pending) {
    // The value is the caller's, so that it must be written before this returns.
    store->CompletePending(true);
    return true;
  }
  return status == Status::Ok;
}

// Adds one to the numbers of `count` keys, all of them in flight together. As `bench_spill_read`.
int64_t bench_spill_increment(Spill* store, const uint64_t* keys, size_t count) {
  int64_t fetched = 0;
  for(size_t i = 0; i < count; ++i) {
    KeepUp(*store);
    BlobIncrement increment{ keys[i] };
    const Status status = store->Rmw(increment, Completed<BlobIncrement>, 1);
    fetched += status == Status::Pending;
    if(status != Status::Ok && status != Status::Pending) {
      return -1;
    }
  }
  if(fetched != 0) {
    store->CompletePending(true);
  }
  return fetched;
}

}
