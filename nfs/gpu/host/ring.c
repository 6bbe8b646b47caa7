#include "gpu/host/ring.h"

#include <stdlib.h>

bool gpu_ring_create(struct gpu_ring *ring, uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	ring->items = calloc(size, sizeof(*ring->items));
	ring->mask = size - 1;
	atomic_init(&ring->head, 0);
	atomic_init(&ring->tail, 0);
	return ring->items != NULL;
}

void gpu_ring_destroy(struct gpu_ring *ring)
{
	free(ring->items);
	ring->items = NULL;
}

bool gpu_ring_put(struct gpu_ring *ring, const struct gpu_item *item)
{
	const uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) > ring->mask)
		return false;
	ring->items[head & ring->mask] = *item;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return true;
}

uint32_t gpu_ring_take(struct gpu_ring *ring, struct gpu_item *items, uint32_t n)
{
	const uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	const uint32_t there = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
	const uint32_t taken = there < n ? there : n;

	for (uint32_t i = 0; i < taken; i++)
		items[i] = ring->items[(tail + i) & ring->mask];
	atomic_store_explicit(&ring->tail, tail + taken, memory_order_release);
	return taken;
}
