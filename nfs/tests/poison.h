/*
 * Marks bytes beyond a packet for the address sanitizer, which does not know the packets in DPDK's
 * heap.
 */
#pragma once

#include <rte_mbuf.h>

#include "core/memory.h"

#ifdef NFS_WATCHED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

/* Forbid access beyond the data of each segment. */
static inline void packet_poison(const struct rte_mbuf *packet)
{
	for (; packet; packet = packet->next)
		ASAN_POISON_MEMORY_REGION(rte_pktmbuf_mtod_offset(packet, char *, packet->data_len),
					  rte_pktmbuf_tailroom(packet));
}

static inline void buffer_unpoison(struct rte_mempool *pool, void *unused, void *object,
				   unsigned int i)
{
	const struct rte_mbuf *packet = object;

	(void)pool;
	(void)unused;
	(void)i;
	ASAN_UNPOISON_MEMORY_REGION(packet->buf_addr, packet->buf_len);
}

/* Allow access to all buffers of a pool. */
static inline void pool_unpoison(struct rte_mempool *pool)
{
#ifdef NFS_WATCHED
	rte_mempool_obj_iter(pool, buffer_unpoison, NULL);
#else
	(void)pool;
	(void)buffer_unpoison;
#endif
}
