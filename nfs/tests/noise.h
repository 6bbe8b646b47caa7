/* Random readings for simulations of measurements. */
#pragma once

#include <math.h>

#include "core/random.h"

/* Uniform between 0, excluded, and 1. */
static inline double noise_uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 1) / 0x1p53;
}

/* Normal with mean 0 and deviation 1 (Box and Muller, 1958). */
static inline double noise_normal(uint64_t *state)
{
	const double length = sqrt(-2 * log(noise_uniform(state)));

	return length * cos(2 * M_PI * noise_uniform(state));
}
