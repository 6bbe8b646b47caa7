/*
 * mem-bench: loads the memory subsystem by accesses to an array at a given size and rate.
 *
 * An access touches one cache line; every second one writes. The stream pattern walks line by line,
 * which a prefetcher follows; the step pattern jumps by `stride_bytes`, which it may not follow;
 * random accesses are unpredictable. Accesses do not depend on each other.
 */
#include <errno.h>
#include <stdio.h>

#include "core/bench.h"
#include "core/memory.h"
#include "core/pace.h"

#define LINE RTE_CACHE_LINE_SIZE
#define QUANTUM 256 /* accesses per step call: about a microsecond */

enum { WSS_MB, ACCESS_MOPS, PATTERN, STRIDE_BYTES };
static const struct nf_parameter parameters[] = {
	[WSS_MB] = {"wss_mb", "size of the array, 10^6 bytes", 0.01, 256, 8},
	[ACCESS_MOPS] = {"access_mops", "10^6 accesses/s; 0: unlimited", 0, 10000, 0},
	[PATTERN] = {"pattern", "0: stream, 1: step, 2: random", 0, 2, 0},
	[STRIDE_BYTES] = {"stride_bytes", "stride of the step pattern, bytes", LINE, 1 << 20,
			  4096 + LINE},
};

struct line {
	uint64_t words[LINE / sizeof(uint64_t)];
};

struct mem_bench {
	struct line *lines;
	uint64_t n_lines;
	uint64_t next;   /* current position */
	uint64_t stride; /* in lines */
	uint64_t random;
	int pattern;
	struct pace pace;
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int create(struct bench *bench)
{
	struct mem_bench *mem = nf_zalloc(sizeof(*mem));

	if (!mem)
		return -ENOMEM;
	mem->n_lines = RTE_MAX((uint64_t)(bench->settings[WSS_MB] * 1e6) / LINE, 2ull);
	mem->lines = nf_zalloc(mem->n_lines * LINE);
	if (!mem->lines) {
		fprintf(stderr, "mem-bench: no memory for %g MB\n", bench->settings[WSS_MB]);
		nf_free(mem);
		return -ENOMEM;
	}
	mem->pattern = (int)bench->settings[PATTERN];
	mem->stride = mem->pattern == 1 ? (uint64_t)bench->settings[STRIDE_BYTES] / LINE : 1;
	/* a stride that shares a factor with the array's size would visit only a part of it */
	while (gcd(mem->stride, mem->n_lines) != 1)
		mem->stride++;
	mem->stride %= mem->n_lines;
	mem->random = 0x9e3779b97f4a7c15ull;
	mem->pace = pace_at(bench->settings[ACCESS_MOPS] * 1e6);
	bench->state = mem;
	return 0;
}

/* Read one line and write another one, so that the write does not wait for the read. */
static inline void touch(struct mem_bench *mem, uint64_t read, uint64_t written)
{
	(void)*(volatile uint64_t *)&mem->lines[read].words[0];
	*(volatile uint64_t *)&mem->lines[written].words[0] = written;
}

static inline uint64_t next_position(struct mem_bench *mem)
{
	uint64_t here = mem->next;

	mem->next += mem->stride;
	if (mem->next >= mem->n_lines)
		mem->next -= mem->n_lines;
	return here;
}

/* Marsaglia's xorshift; the high bits of a product map it to a range without a division. */
static inline uint64_t random_position(struct mem_bench *mem)
{
	mem->random ^= mem->random << 13;
	mem->random ^= mem->random >> 7;
	mem->random ^= mem->random << 17;
	return (uint64_t)(((unsigned __int128)mem->random * mem->n_lines) >> 64);
}

static uint64_t step(struct bench *bench)
{
	struct mem_bench *mem = bench->state;

	if (!pace_may(&mem->pace, QUANTUM))
		return 0;
	for (int i = 0; i < QUANTUM; i += 2) {
		uint64_t read = mem->pattern == 2 ? random_position(mem) : next_position(mem);
		uint64_t written = mem->pattern == 2 ? random_position(mem) : next_position(mem);

		touch(mem, read, written);
	}
	return QUANTUM;
}

static void destroy(struct bench *bench)
{
	struct mem_bench *mem = bench->state;

	nf_free(mem->lines);
	nf_free(mem);
}

static struct bench_kind kind = {
	.name = "mem-bench",
	.help = "accesses an array of a given size at a given rate",
	.unit = "accesses",
	.parameters = parameters,
	.n_parameters = RTE_DIM(parameters),
	.create = create,
	.step = step,
	.destroy = destroy,
};

BENCH_REGISTER(kind)
