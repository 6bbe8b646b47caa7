/* Payloads that match the rules at a given rate. */
#pragma once

#include <stdint.h>

/* A stream of payloads; later payloads compensate for too few or too many matches. */
struct payloads {
	uint64_t random;
	double per_byte; /* requested matches */
	double due_us;   /* requested matches that earlier payloads do not have */
	uint64_t bytes, matches;
};

struct payloads payloads_at(double mtbr, uint64_t seed);

/* Fill `room` bytes; returns how many rules they match. */
uint32_t payloads_fill(struct payloads *payloads, uint8_t *payload, uint16_t room);

/* Matches per 10^6 bytes so far. */
double payloads_mtbr(const struct payloads *payloads);

/* Marsaglia's xorshift; a number below `n`. */
static inline uint32_t chance(uint64_t *random, uint32_t n)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(((*random >> 32) * n) >> 32);
}
