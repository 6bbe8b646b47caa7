/* Packets from one thread to one other, in order. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpu_item {
	void *packet;
	uint64_t time_us;    /* the caller's clock */
	uint64_t arrived_ns; /* the runtime's */
};

struct gpu_ring {
	struct gpu_item *items;
	uint32_t mask;
	_Alignas(64) atomic_uint head; /* written by who puts */
	_Alignas(64) atomic_uint tail; /* written by who takes */
};

/* For at least `n` items; false without memory. */
bool gpu_ring_create(struct gpu_ring *ring, uint32_t n);
void gpu_ring_destroy(struct gpu_ring *ring);

/* False if the ring is full. */
bool gpu_ring_put(struct gpu_ring *ring, const struct gpu_item *item);
/* Up to `n` items; returns how many. */
uint32_t gpu_ring_take(struct gpu_ring *ring, struct gpu_item *items, uint32_t n);
