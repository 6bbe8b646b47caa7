#include "testbed/rounds.h"

#define ACCURATE_ROUNDS 2

double rounds_error_pct(const struct rounds *rounds, unsigned int load)
{
	const struct readings *means = &rounds->means[load];
	const double error = fmax(readings_stated_error(means),
				  readings_stated_error(&rounds->windows[load]));

	return means->n < 2 ? INFINITY : 100 * EARLY_END * error / means->mean;
}

bool ending_reached(struct ending *ending, double error_pct, double limit_pct)
{
	ending->rounds++;
	ending->accurate_rounds = error_pct <= limit_pct ? ending->accurate_rounds + 1 : 0;
	return ending->rounds >= LEAST_ROUNDS && ending->accurate_rounds >= ACCURATE_ROUNDS;
}
