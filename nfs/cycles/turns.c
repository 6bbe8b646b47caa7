#include "cycles/turns.h"

#include <stdio.h>
#include <string.h>

#include "core/random.h"

#define INSTANCES 3 /* their memory lies elsewhere in the caches */

static bool is_same(const struct runner *one, const struct runner *other)
{
	return one->parsed == other->parsed &&
	       memcmp(one->kinds, other->kinds, sizeof(one->kinds)) == 0 &&
	       memcmp(one->makers, other->makers, sizeof(one->makers)) == 0;
}

static bool make(struct turns *turns, struct runner *runner)
{
	if (!runner_create(runner, turns->spare))
		return false;
	runner_warm(runner, turns->traffic, turns->flows);
	return true;
}

const struct runner *turns_obtain(struct turns *turns, const struct runner *wanted)
{
	for (unsigned int i = 0; i < turns->n; i++)
		if (is_same(&turns->runners[i], wanted))
			return &turns->runners[i];
	if (turns->n == TURNS_MOST) {
		fprintf(stderr, "cycles: more than %d chains and functions\n", TURNS_MOST);
		return NULL;
	}
	turns->runners[turns->n] = *wanted;
	return make(turns, &turns->runners[turns->n]) ? &turns->runners[turns->n++] : NULL;
}

/*
 * A round of each, in another order every time: one that lowers the clock, as wide vector
 * instructions do, slows down whichever comes next.
 */
static void take_turns(struct turns *turns, unsigned int round)
{
	struct runner *order[TURNS_MOST];

	for (unsigned int i = 0; i < turns->n; i++) {
		const uint32_t at = random_below(&turns->random, i + 1);

		order[i] = order[at];
		order[at] = &turns->runners[i];
	}
	for (unsigned int i = 0; i < turns->n; i++)
		runner_round(order[i], turns->traffic, round);
}

void turns_end(struct turns *turns)
{
	for (unsigned int i = 0; i < turns->n; i++)
		runner_destroy(&turns->runners[i]);
}

/* Go on with other instances. */
static bool renew(struct turns *turns)
{
	turns_end(turns);
	for (unsigned int i = 0; i < turns->n; i++)
		if (!make(turns, &turns->runners[i]))
			return false;
	return true;
}

bool turns_run(struct turns *turns)
{
	for (unsigned int batch = 0; batch < RUNNER_BATCHES; batch++) {
		if (batch > 0 && batch % (RUNNER_BATCHES / INSTANCES) == 0 && !renew(turns))
			return false;
		for (unsigned int round = 0; round < RUNNER_ROUNDS; round++)
			take_turns(turns, round);
		for (unsigned int i = 0; i < turns->n; i++)
			runner_batch(&turns->runners[i], batch);
	}
	return true;
}
