#include "functions/lb/maglev.h"

#include <errno.h>

#include <rte_common.h>

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
	uint32_t credit; /* towards its next turn */
};

static struct permutation permutation_of(uint64_t random, uint32_t size)
{
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

/* Deal all entries out in rounds, of which each adds its weight to the credit of a member. */
static void deal(uint16_t *table, uint32_t size, const struct maglev_member *members, uint32_t n,
		 struct permutation *orders)
{
	uint32_t filled = 0, largest = 0;

	for (uint32_t i = 0; i < size; i++)
		table[i] = MAGLEV_NONE;
	for (uint32_t i = 0; i < n; i++) {
		orders[i] = permutation_of(members[i].seed, size);
		largest = RTE_MAX(largest, members[i].weight);
	}
	while (largest > 0 && filled < size)
		for (uint32_t i = 0; i < n && filled < size; i++) {
			orders[i].credit += members[i].weight;
			if (orders[i].credit < largest)
				continue;
			orders[i].credit -= largest;
			claim(table, size, &orders[i], (uint16_t)i);
			filled++;
		}
}

int maglev_deal(uint16_t *table, uint32_t size, const struct maglev_member *members, uint32_t n)
{
	struct permutation *orders = nf_zalloc(n * sizeof(*orders));

	if (!orders)
		return -ENOMEM;
	deal(table, size, members, n, orders);
	nf_free(orders);
	return 0;
}

int maglev_fill(uint16_t *table, uint32_t size, const bool *up, uint32_t backends, uint64_t seed)
{
	struct maglev_member *members = nf_zalloc(backends * sizeof(*members));
	int result;

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < backends; i++)
		members[i] = (struct maglev_member){.seed = seed << 16 | i, .weight = up[i]};
	result = maglev_deal(table, size, members, backends);
	nf_free(members);
	return result;
}
