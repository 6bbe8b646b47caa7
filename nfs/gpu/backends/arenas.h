/* The host's copies of arenas, and on devices that are the host the device's, too. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backends/backend.h"

/* Whether a copy stays inside its arena; prints if not. */
static inline bool arena_has(const struct gpu_sizes *sizes, enum gpu_arena arena, size_t at,
			     size_t n)
{
	if (at <= sizes->bytes[arena] && n <= sizes->bytes[arena] - at)
		return true;
	fprintf(stderr, "gpu: %zu bytes at %zu exceed an arena of %zu\n", n, at,
		sizes->bytes[arena]);
	return false;
}

/* Zeroed memory of an arena, which free() frees; NULL after printing why. */
static inline u8 *arena_allocate(size_t bytes)
{
	const size_t aligned = (bytes + GPU_ARENA_ALIGNMENT) & ~(size_t)(GPU_ARENA_ALIGNMENT - 1);
	u8 *memory = aligned_alloc(GPU_ARENA_ALIGNMENT, aligned);

	if (!memory) {
		fprintf(stderr, "gpu: no memory for an arena of %zu bytes\n", bytes);
		return NULL;
	}
	return memset(memory, 0, aligned);
}
