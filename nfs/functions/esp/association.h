/*
 * Security associations of ESP (RFC 4303, section 3): one for each direction of the link between
 * two ends, with its sequence numbers and initialization vectors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "core/random.h"

#define ESP_MOST_WINDOW 64

struct association {
	uint32_t spi;
	uint32_t sequence; /* the last one sent, or the highest one received */
	uint64_t seen;     /* received ones: bit k is `sequence` - k */
	uint64_t sent;     /* packets, from `first` on, for initialization vectors */
	uint32_t seed;
	bool inward; /* of the two directions */
};

/* `first`: what initialization vectors count from. */
static inline struct association association_of(uint32_t spi, uint32_t seed, uint64_t first,
						bool inward)
{
	/* numbers begin with 1 */
	return (struct association){
		.spi = spi + inward, .seen = 1, .sent = first, .seed = seed, .inward = inward};
}

/*
 * The next number to send. False if it would repeat a number, which a receiver with a window takes
 * for a replay (RFC 4303, section 3.3.3).
 */
static inline bool association_next_number(struct association *association, uint32_t window,
					   uint32_t *sequence)
{
	if (window > 0 && association->sequence == UINT32_MAX)
		return false;
	*sequence = ++association->sequence;
	return true;
}

/*
 * A block to encrypt as initialization vector of CBC: so encrypted it is unpredictable without the
 * key, and it never repeats (NIST SP 800-38A, appendix C).
 */
static inline void association_next_block(struct association *association, uint8_t block[16])
{
	const rte_be32_t head[2] = {rte_cpu_to_be_32(association->inward),
				    rte_cpu_to_be_32(association->seed)};
	const rte_be64_t count = rte_cpu_to_be_64(association->sent++);

	memcpy(block, head, sizeof(head));
	memcpy(block + sizeof(head), &count, sizeof(count));
}

/*
 * An initialization vector of ChaCha20-Poly1305, which only must not repeat: a counter (RFC 7634,
 * section 2). Directions share a key, so one bit is theirs.
 */
static inline rte_be64_t association_next_count(struct association *association)
{
	uint64_t seed = association->seed;
	const uint64_t count = random_next(&seed) + association->sent++;

	return rte_cpu_to_be_64(count << 1 >> 1 | (uint64_t)association->inward << 63);
}

/*
 * Whether a sequence number is new; of those left of the window it is unknown (RFC 4303, section
 * 3.4.3). With a window of 0 every number is new.
 */
static inline bool association_is_new(const struct association *association, uint32_t sequence,
				      uint32_t window)
{
	const uint32_t behind = association->sequence - sequence;

	if (window == 0 || sequence > association->sequence)
		return true;
	return behind < window && !(association->seen & UINT64_C(1) << behind);
}

/* Note the number of a packet whose integrity is verified. */
static inline void association_note(struct association *association, uint32_t sequence)
{
	if (sequence > association->sequence) {
		const uint32_t ahead = sequence - association->sequence;

		association->seen = ahead < ESP_MOST_WINDOW ? association->seen << ahead : 0;
		association->sequence = sequence;
	}
	if (association->sequence - sequence < ESP_MOST_WINDOW)
		association->seen |= UINT64_C(1) << (association->sequence - sequence);
}
