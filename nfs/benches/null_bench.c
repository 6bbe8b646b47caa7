/*
 * null-bench: works in registers, and loads nothing but the execution units of its core.
 *
 * What beside it makes it slower is not contention for memory: a core that is not one's own, a
 * clock that changes, a hypervisor. It tells how well a machine can measure at all.
 */
#include <stddef.h>

#include "core/bench.h"

#define ROUNDS 1024

static int create(struct bench *bench)
{
	(void)bench;
	return 0;
}

/* Four chains that do not wait for each other keep the units busy; the asm keeps the chains. */
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

static void destroy(struct bench *bench)
{
	(void)bench;
}

static struct bench_kind kind = {
	.name = "null-bench",
	.help = "works in registers only",
	.unit = "rounds",
	.create = create,
	.step = step,
	.destroy = destroy,
};

BENCH_REGISTER(kind)
