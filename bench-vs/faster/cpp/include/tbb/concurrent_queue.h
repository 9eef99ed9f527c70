// What FASTER calls of oneTBB's queue, which need not be installed. FASTER keeps completed reads and
// free buffers of the disk in it: some calls for each read of the disk, none for what is in memory.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <thread>

namespace tbb {

template <typename T>
class concurrent_queue {
 public:
  concurrent_queue()
    : items_{ new std::deque<T>{} } {
  }

  void push(const T& item) {
    Lock lock{ busy_ };
    items_->push_back(item);
  }

  bool try_pop(T& item) {
    Lock lock{ busy_ };
    if(items_->empty()) {
      return false;
    }
    item = items_->front();
    items_->pop_front();
    return true;
  }

  bool empty() const {
    Lock lock{ busy_ };
    return items_->empty();
  }

  void clear() {
    Lock lock{ busy_ };
    items_->clear();
  }

 private:
  // Held for some instructions. A mutex would be larger than FASTER's assertions about its own
  // structures allow.
  class Lock {
   public:
    explicit Lock(std::atomic<bool>& busy)
      : busy_{ busy } {
      while(busy_.exchange(true, std::memory_order_acquire)) {
        std::this_thread::yield();
      }
    }
    ~Lock() {
      busy_.store(false, std::memory_order_release);
    }

   private:
    std::atomic<bool>& busy_;
  };

  mutable std::atomic<bool> busy_{ false };
  std::unique_ptr<std::deque<T>> items_;
};

}
