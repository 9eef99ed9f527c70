// What FASTER calls of libaio, as the system calls that libaio makes: its package need not be
// installed. The structures are those of the kernel on 64-bit little-endian machines.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

static_assert(sizeof(void*) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "other machines order the fields in another way");

struct io_context;
typedef io_context* io_context_t;

struct iocb {
  void* data;
  uint32_t key;
  uint32_t rw_flags;
  uint16_t opcode;
  int16_t priority;
  uint32_t fd;
  uint64_t buffer;
  uint64_t bytes;
  int64_t offset;
  uint64_t reserved;
  uint32_t flags;
  uint32_t event_fd;
};
static_assert(sizeof(iocb) == 64, "as the kernel has it");

struct io_event {
  void* data;
  iocb* obj;
  long res;
  long res2;
};

typedef void (*io_callback_t)(io_context_t context, iocb* request, long res, long res2);

inline long io_result(long result) {
  return result < 0 ? -errno : result;
}

inline int io_setup(int events, io_context_t* context) {
  return static_cast<int>(io_result(syscall(SYS_io_setup, events, context)));
}

inline int io_destroy(io_context_t context) {
  return static_cast<int>(io_result(syscall(SYS_io_destroy, context)));
}

inline int io_submit(io_context_t context, long count, iocb** requests) {
  return static_cast<int>(io_result(syscall(SYS_io_submit, context, count, requests)));
}

// The head of the ring of completions, which the kernel maps at the context's address.
struct io_ring {
  uint32_t id;
  uint32_t entries;
  uint32_t head;
  uint32_t tail;
  uint32_t magic;
};

inline int io_getevents(io_context_t context, long least, long most, io_event* events,
                        timespec* timeout) {
  // As libaio does: an empty ring, and no time to wait, need no system call.
  const io_ring* ring = reinterpret_cast<const io_ring*>(context);
  constexpr uint32_t kMagic = 0xA10A10A1;
  if(ring != nullptr && __atomic_load_n(&ring->magic, __ATOMIC_RELAXED) == kMagic &&
      timeout != nullptr && timeout->tv_sec == 0 && timeout->tv_nsec == 0 &&
      __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) ==
      __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) {
    return 0;
  }
  return static_cast<int>(io_result(syscall(SYS_io_getevents, context, least, most, events,
                                            timeout)));
}

inline void io_prepare(iocb* request, uint16_t opcode, int fd, void* buffer, size_t bytes,
                       int64_t offset) {
  *request = iocb{};
  request->opcode = opcode;
  request->fd = static_cast<uint32_t>(fd);
  request->buffer = reinterpret_cast<uint64_t>(buffer);
  request->bytes = bytes;
  request->offset = offset;
}

inline void io_prep_pread(iocb* request, int fd, void* buffer, size_t bytes, int64_t offset) {
  io_prepare(request, 0, fd, buffer, bytes, offset);
}

inline void io_prep_pwrite(iocb* request, int fd, void* buffer, size_t bytes, int64_t offset) {
  io_prepare(request, 1, fd, buffer, bytes, offset);
}

inline void io_set_callback(iocb* request, io_callback_t callback) {
  request->data = reinterpret_cast<void*>(callback);
}
