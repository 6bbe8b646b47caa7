/* Memory for a function's state: from DPDK's heap, or from libc under a sanitizer. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#if defined(__SANITIZE_ADDRESS__)
#define NFS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NFS_WATCHED 1
#endif
#endif

#ifdef NFS_WATCHED
#include <sanitizer/asan_interface.h>
#endif

/* Zeroed memory aligned to a cache line, or NULL. */
static inline void *nf_zalloc(size_t bytes)
{
#ifdef NFS_WATCHED
	const size_t lines = RTE_CACHE_LINE_ROUNDUP(bytes);
	void *memory = aligned_alloc(RTE_CACHE_LINE_SIZE, lines);

	return memory ? memset(memory, 0, lines) : NULL;
#else
	return rte_zmalloc(NULL, bytes, RTE_CACHE_LINE_SIZE);
#endif
}

/* The same, printing an error in the name of `name`. */
static inline void *nf_zalloc_for(const char *name, size_t bytes)
{
	void *memory = nf_zalloc(bytes);

	if (!memory)
		fprintf(stderr, "%s: no memory for %zu bytes of state\n", name, bytes);
	return memory;
}

static inline void nf_free(void *memory)
{
#ifdef NFS_WATCHED
	free(memory);
#else
	rte_free(memory);
#endif
}

/* Begin to use a buffer's room behind a packet, which a sanitizer may watch for stray accesses. */
static inline void nf_allow(void *memory, size_t bytes)
{
#ifdef NFS_WATCHED
	ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#else
	(void)memory;
	(void)bytes;
#endif
}
