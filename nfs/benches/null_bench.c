/*
 * null-bench: works in registers and loads only the execution units of its core.
 *
 * If a neighbour slows it down, the cause is not memory contention, but shared cores, a changing
 * clock, or a hypervisor. It shows how well a machine can measure at all.
 */

#include "core/bench.h"

#define ROUNDS 1024

/* Four independent chains keep the units busy; the asm stops the compiler from merging them. */
static uint64_t step(struct bench *bench)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;

	(void)bench;
	for (int i = 0; i < ROUNDS; i++) {
		a = a * 5 + 1;
		b = b * 5 + 2;
		c = c * 5 + 3;
		d = d * 5 + 4;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	}
	return ROUNDS;
}

static struct bench_kind kind = {
	.name = "null-bench",
	.help = "works in registers only",
	.unit = "rounds",
	.step = step,
};

BENCH_REGISTER(kind)
