/*
 * What the trees need of PMDK's header of this name, which Debian's package does not have.
 */
#ifndef EX_COMMON_H
#define EX_COMMON_H

#include <stdint.h>

/* The place of the highest bit that is set; the lowest bit is 0. */
static inline int find_last_set_64(uint64_t bits)
{
	return 63 - __builtin_clzll(bits);
}

#endif
