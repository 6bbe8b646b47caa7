#include "functions/dedup/encoder.h"

#include <errno.h>

#include "core/memory.h"
#include "core/random.h"

#define PLACES_PER_PAYLOAD 32
#define TAG_BITS 16

/*
 * For a cache of `size` payloads, with the gear of a seed. 0, or a negative errno after printing
 * why in the name of `name`.
 */
static int fingerprints_create(struct fingerprints *fingerprints, const char *name, uint32_t size,
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

static void fingerprints_destroy(struct fingerprints *fingerprints)
{
	nf_free(fingerprints->places);
}

/* Sample the windows of a payload of at least DEDUP_WINDOW and at most DEDUP_MOST bytes. */
static uint16_t fingerprints_sample(const struct fingerprints *fingerprints, const uint8_t *payload,
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

/* Where a window like this may be; NULL if that is unknown. Its bytes are to be compared. */
static const struct place *fingerprints_find(const struct fingerprints *fingerprints,
					     const struct sample *sample)
{
	const struct place *place = place_of(fingerprints, sample->fingerprint);

	return place->tag == tag_of(fingerprints, sample->fingerprint) ? place : NULL;
}

/* Note where the samples of a cached payload are; places of older ones are taken. */
static void fingerprints_note(struct fingerprints *fingerprints, const struct sample *samples,
			      uint16_t n, uint32_t number)
{
	for (uint16_t i = 0; i < n; i++)
		*place_of(fingerprints, samples[i].fingerprint) = (struct place){
			.number = number,
			.end = samples[i].end,
			.tag = tag_of(fingerprints, samples[i].fingerprint),
		};
}

void encoder_destroy(struct encoder *encoder)
{
	nf_free(encoder->streams.streams);
	fingerprints_destroy(&encoder->fingerprints);
	cache_destroy(&encoder->cache);
}

int encoder_create(struct encoder *encoder, const char *name, uint32_t size, uint64_t seed,
		   uint8_t depth)
{
	encoder->depth = depth;
	encoder->key.halves[0] = random_next(&seed);
	encoder->key.halves[1] = random_next(&seed);
	encoder->streams.key = encoder->key;
	encoder->streams.mask = size - 1;
	encoder->streams.streams = nf_zalloc_for(name, size * sizeof(*encoder->streams.streams));
	if (encoder->streams.streams && cache_create(&encoder->cache, name, size) == 0 &&
	    fingerprints_create(&encoder->fingerprints, name, size, seed) == 0)
		return 0;
	return -ENOMEM;
}

/* The cached payload with a sampled window; NULL if there is none. */
static const struct cached *source_of(const struct encoder *encoder, const uint8_t *payload,
				      const struct sample *sample, uint16_t *end)
{
	const struct place *place = fingerprints_find(&encoder->fingerprints, sample);
	const struct cached *cached = place ? cache_find(&encoder->cache, place->number) : NULL;

	if (!cached || cached->generation >= encoder->depth || place->end >= cached->length ||
	    memcmp(cache_bytes(&encoder->cache, cached) + place->end - (DEDUP_WINDOW - 1),
		   payload + sample->end - (DEDUP_WINDOW - 1), DEDUP_WINDOW) != 0)
		return NULL;
	*end = place->end;
	return cached;
}

/* How many bytes are equal, `most` at most. */
static uint16_t equal_bytes(const uint8_t *one, const uint8_t *other, uint16_t most)
{
	uint64_t words[2];
	uint16_t n = 0;

	for (; n + sizeof(words[0]) <= most; n += sizeof(words[0])) {
		memcpy(&words[0], one + n, sizeof(words[0]));
		memcpy(&words[1], other + n, sizeof(words[1]));
		if (words[0] != words[1])
			break;
	}
	while (n < most && one[n] == other[n])
		n++;
	return n;
}

/* Extend a window that occurs in both to all bytes around it that do, from `least` on. */
static struct region extended(const struct encoder *encoder, const struct cached *source,
			      uint16_t source_end, const uint8_t *payload, uint16_t length,
			      uint16_t end, uint16_t least)
{
	const uint8_t *bytes = cache_bytes(&encoder->cache, source);
	uint16_t at = end - (DEDUP_WINDOW - 1), offset = source_end - (DEDUP_WINDOW - 1);
	const uint16_t most = RTE_MIN(length - end, source->length - source_end) - 1;

	while (at > least && offset > 0 && payload[at - 1] == bytes[offset - 1]) {
		at--;
		offset--;
	}
	end += equal_bytes(payload + end + 1, bytes + source_end + 1, most);
	return (struct region){
		.source = source, .offset = offset, .length = end + 1 - at, .at = at};
}

/* Find the region around a sampled window, behind `done` bytes; false if there is none. */
static bool find_region(const struct encoder *encoder, const uint8_t *payload, uint16_t length,
			const struct sample *sample, uint16_t done, struct region *region)
{
	const struct cached *source;
	uint16_t source_end;

	if (sample->end - (DEDUP_WINDOW - 1) < done)
		return false;
	source = source_of(encoder, payload, sample, &source_end);
	if (source)
		*region = extended(encoder, source, source_end, payload, length, sample->end, done);
	return source != NULL;
}

void encoder_plan(const struct encoder *encoder, const uint8_t *payload, uint16_t length,
		  bool whole, struct plan *plan)
{
	uint16_t done = 0; /* bytes before the end of the last region */

	plan->hash = siphash(&encoder->key, payload, length);
	plan->generation = 0;
	plan->n_regions = 0;
	plan->length = sizeof(struct dedup_hdr) + length;
	plan->n_samples = 0;
	if (!cache_takes(length))
		return;
	plan->n_samples =
		fingerprints_sample(&encoder->fingerprints, payload, length, plan->samples);
	if (whole)
		return;
	for (uint16_t i = 0; i < plan->n_samples && plan->n_regions < DEDUP_MOST_REGIONS; i++) {
		struct region *region = &plan->regions[plan->n_regions];

		if (!find_region(encoder, payload, length, &plan->samples[i], done, region))
			continue;
		done = region->at + region->length;
		plan->n_regions++;
		plan->generation = RTE_MAX(plan->generation, region->source->generation + 1);
		plan->length -= region->length - sizeof(struct dedup_region);
	}
}

void encoder_write(const struct plan *plan, const uint8_t *payload, uint16_t length, uint8_t *to)
{
	struct dedup_hdr *header = (struct dedup_hdr *)to;
	struct dedup_region *regions = (struct dedup_region *)(header + 1);
	uint8_t *literal = (uint8_t *)(regions + plan->n_regions);
	uint16_t done = 0;

	*header = (struct dedup_hdr){
		.magic = RTE_BE32(DEDUP_MAGIC),
		.regions = plan->n_regions,
		.length = rte_cpu_to_be_16(length),
		.hash = rte_cpu_to_be_64(plan->hash),
	};
	for (uint8_t i = 0; i < plan->n_regions; i++) {
		const struct region *region = &plan->regions[i];

		regions[i] = (struct dedup_region){
			.source = rte_cpu_to_be_64(region->source->hash),
			.offset = rte_cpu_to_be_16(region->offset),
			.length = rte_cpu_to_be_16(region->length),
			.at = rte_cpu_to_be_16(region->at),
		};
		memcpy(literal, payload + done, region->at - done);
		literal += region->at - done;
		done = region->at + region->length;
	}
	memcpy(literal, payload + done, length - done);
}

void encoder_store(struct encoder *encoder, const struct plan *plan, const uint8_t *payload,
		   uint16_t length, bool encoded)
{
	struct cached *cached = cache_add(&encoder->cache, payload, length, plan->hash);

	cached->generation = encoded ? plan->generation : 0;
	fingerprints_note(&encoder->fingerprints, plan->samples, plan->n_samples, cached->number);
}
