/*
 * A probe of a core's speed: a fixed number of additions that fill its issue slots, a few times per
 * millisecond between bursts. What slows it down, slows down the workload, too, and shows nowhere
 * else: another virtual machine on the other hyperthread of the core, or a lower clock. They are
 * done twice and timed the second time: what a workload leaves in the caches does not count.
 */
#pragma once

#include <stdint.h>

#include <rte_cycles.h>

#define PROBE_ADDITIONS 512
#define PROBE_EVERY 200000 /* TSC cycles; it takes less than 1 % of the time */

/* The probes of one worker, which alone writes it. */
struct probe {
	uint64_t last;   /* TSC when the last one ended */
	uint64_t cycles; /* of all of them */
	uint64_t n;
} __rte_cache_aligned;

/* Take a probe if it is time. */
static inline void probe_take(struct probe *probe)
{
	uint64_t begin = rte_rdtsc();
	uint64_t a = begin, b = 1, c = 2, d = 3;

	if (begin - probe->last < PROBE_EVERY)
		return;
	for (unsigned int time = 0; time < 2; time++) {
		begin = rte_rdtsc();
		for (unsigned int i = 0; i < PROBE_ADDITIONS; i++) {
			a += i, b += i, c += i, d += i;
			__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
		}
	}
	probe->last = rte_rdtsc();
	__atomic_store_n(&probe->cycles, probe->cycles + probe->last - begin, __ATOMIC_RELAXED);
	__atomic_store_n(&probe->n, probe->n + 1, __ATOMIC_RELAXED);
}
