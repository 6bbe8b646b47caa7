/*
 * Fingerprints of payloads: where in the cache windows of 64 bytes occurred.
 *
 * Windows are sampled by their content, so that repeated bytes are found wherever they are in a
 * payload (Spring and Wetherall, SIGCOMM 2000; Anand et al., SIGCOMM 2008). Instead of Rabin's, the
 * fingerprint is a gear hash (Xia et al., FastCDC, USENIX ATC 2016): a shift and an addition per
 * byte, and what is older than 64 bytes has been shifted out. Behind a sample some bytes are
 * skipped, as in SAMPLEBYTE (Aggarwal et al., EndRE, NSDI 2010): else one byte in a row would make
 * a sample of every window.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "functions/dedup/cache.h"

#define DEDUP_WINDOW 64
#define DEDUP_SAMPLE_BITS 4 /* one of 16 windows is sampled */
#define DEDUP_SPACING 16    /* bytes between the ends of samples, at least */
#define DEDUP_MOST_SAMPLES ((DEDUP_MOST - DEDUP_WINDOW) / DEDUP_SPACING + 1)

/* A sampled window, by the offset of its last byte. */
struct sample {
	uint64_t fingerprint;
	uint16_t end;
};

struct place {
	uint32_t number; /* of the cached payload */
	uint16_t end;
	uint16_t tag; /* a part of the fingerprint */
};

struct fingerprints {
	uint64_t gear[256];
	uint32_t shift; /* fingerprint to place */
	struct place *places;
};

/*
 * For a cache of `size` payloads, with the gear of a seed. 0, or a negative errno after printing
 * why in the name of `name`.
 */
int fingerprints_create(struct fingerprints *fingerprints, const char *name, uint32_t size,
			uint64_t seed);
void fingerprints_destroy(struct fingerprints *fingerprints);

/* Sample the windows of a payload of at least DEDUP_WINDOW and at most DEDUP_MOST bytes. */
uint16_t fingerprints_sample(const struct fingerprints *fingerprints, const uint8_t *payload,
			     uint16_t length, struct sample samples[DEDUP_MOST_SAMPLES]);

/* Where a window like this may be; NULL if that is unknown. Its bytes are to be compared. */
const struct place *fingerprints_find(const struct fingerprints *fingerprints,
				      const struct sample *sample);

/* Note where the samples of a cached payload are; places of older ones are taken. */
void fingerprints_note(struct fingerprints *fingerprints, const struct sample *samples, uint16_t n,
		       uint32_t number);
