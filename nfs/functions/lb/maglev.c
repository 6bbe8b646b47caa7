#include "functions/lb/maglev.h"

#include <errno.h>

#include "core/memory.h"
#include "core/random.h"

bool maglev_is_prime(uint32_t number)
{
	for (uint32_t divisor = 2; divisor <= number / divisor; divisor++)
		if (number % divisor == 0)
			return false;
	return number > 1;
}

/* The order in which a backend claims entries: every `skip`-th, modulo the table's size. */
struct permutation {
	uint32_t next, skip;
};

static struct permutation permutation_of(uint32_t backend, uint64_t seed, uint32_t size)
{
	uint64_t random = seed << 16 | backend;
	const uint32_t offset = random_below(&random, size);

	const uint32_t skip = 1 + random_below(&random, size - 1);

	/* without a common divisor with the size, so that all entries are reached */
	return (struct permutation){.next = offset, .skip = size % 2 == 0 ? skip | 1 : skip};
}

/* Claim the next free entry in a backend's order. */
static void claim(uint16_t *table, uint32_t size, struct permutation *order, uint16_t backend)
{
	while (table[order->next] != MAGLEV_NONE)
		order->next = (order->next + order->skip) % size;
	table[order->next] = backend;
}

int maglev_fill(uint16_t *table, uint32_t size, const bool *up, uint32_t backends, uint64_t seed)
{
	struct permutation *orders = nf_zalloc(backends * sizeof(*orders));
	uint32_t filled = 0, n_up = 0;

	if (!orders)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		table[i] = MAGLEV_NONE;
	for (uint32_t i = 0; i < backends; i++) {
		orders[i] = permutation_of(i, seed, size);
		n_up += up[i];
	}
	while (n_up > 0 && filled < size)
		for (uint32_t i = 0; i < backends && filled < size; i++)
			if (up[i]) {
				claim(table, size, &orders[i], (uint16_t)i);
				filled++;
			}
	nf_free(orders);
	return 0;
}
