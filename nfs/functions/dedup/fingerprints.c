#include "functions/dedup/fingerprints.h"

#include <errno.h>

#include "core/memory.h"
#include "core/random.h"

#define PLACES_PER_PAYLOAD 32
#define TAG_BITS 16

int fingerprints_create(struct fingerprints *fingerprints, const char *name, uint32_t size,
			uint64_t seed)
{
	const uint32_t n = rte_align32pow2(size * PLACES_PER_PAYLOAD);

	for (int byte = 0; byte < 256; byte++)
		fingerprints->gear[byte] = random_next(&seed);
	/* zeros in a row are frequent: their window, minus this value, is sampled */
	fingerprints->gear[0] = -(fingerprints->gear[0] >> DEDUP_SAMPLE_BITS);
	fingerprints->shift = 64 - (uint32_t)rte_bsf32(n);
	fingerprints->places = nf_zalloc_for(name, n * sizeof(*fingerprints->places));
	return fingerprints->places ? 0 : -ENOMEM;
}

void fingerprints_destroy(struct fingerprints *fingerprints)
{
	nf_free(fingerprints->places);
}

uint16_t fingerprints_sample(const struct fingerprints *fingerprints, const uint8_t *payload,
			     uint16_t length, struct sample samples[DEDUP_MOST_SAMPLES])
{
	const uint64_t *gear = fingerprints->gear;
	size_t at = 0, next = DEDUP_WINDOW - 1; /* the last byte of the next window */
	uint64_t hash = 0;
	uint16_t n = 0;

	while (next < length) {
		while (at < next)
			hash = (hash << 1) + gear[payload[at++]];
		do
			hash = (hash << 1) + gear[payload[at++]];
		while (hash >> (64 - DEDUP_SAMPLE_BITS) != 0 && at < length);
		if (hash >> (64 - DEDUP_SAMPLE_BITS) == 0)
			samples[n++] = (struct sample){hash, (uint16_t)(at - 1)};
		next = at + DEDUP_SPACING - 1;
	}
	return n;
}

/* The upper bits depend on the whole window; those that sampled it are all 0. */
static struct place *place_of(const struct fingerprints *fingerprints, uint64_t fingerprint)
{
	return &fingerprints->places[fingerprint << DEDUP_SAMPLE_BITS >> fingerprints->shift];
}

static uint16_t tag_of(const struct fingerprints *fingerprints, uint64_t fingerprint)
{
	return (uint16_t)(fingerprint << DEDUP_SAMPLE_BITS << (64 - fingerprints->shift) >>
			  (64 - TAG_BITS));
}

const struct place *fingerprints_find(const struct fingerprints *fingerprints,
				      const struct sample *sample)
{
	const struct place *place = place_of(fingerprints, sample->fingerprint);

	return place->tag == tag_of(fingerprints, sample->fingerprint) ? place : NULL;
}

void fingerprints_note(struct fingerprints *fingerprints, const struct sample *samples, uint16_t n,
		       uint32_t number)
{
	for (uint16_t i = 0; i < n; i++)
		*place_of(fingerprints, samples[i].fingerprint) = (struct place){
			.number = number,
			.end = samples[i].end,
			.tag = tag_of(fingerprints, samples[i].fingerprint),
		};
}
