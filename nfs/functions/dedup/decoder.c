#include "functions/dedup/decoder.h"

#include <errno.h>
#include <stdio.h>

#include <rte_errno.h>

#include "core/random.h"

int decoder_create(struct decoder *decoder, const char *name, uint32_t size, uint64_t seed)
{
	static unsigned int n_created;
	char hash_name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters parameters = {
		.name = hash_name,
		/* more than are used: it may be full before */
		.entries = 2 * size,
		.key_len = sizeof(uint64_t),
		.socket_id = SOCKET_ID_ANY,
	};

	decoder->key.halves[0] = random_next(&seed);
	decoder->key.halves[1] = random_next(&seed);
	if (cache_create(&decoder->cache, name, size) < 0)
		return -ENOMEM;
	snprintf(hash_name, sizeof(hash_name), "dedup_%u",
		 __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	decoder->places = rte_hash_create(&parameters);
	if (decoder->places)
		return 0;
	fprintf(stderr, "%s: no memory for hashes: %s\n", name, rte_strerror(rte_errno));
	return -ENOMEM;
}

void decoder_destroy(struct decoder *decoder)
{
	rte_hash_free(decoder->places);
	cache_destroy(&decoder->cache);
}

static const struct cached *find(const struct decoder *decoder, uint64_t hash)
{
	void *number;

	if (rte_hash_lookup_data(decoder->places, &hash, &number) < 0)
		return NULL;
	return cache_find(&decoder->cache, (uint32_t)(uintptr_t)number);
}

static struct dedup_hdr header_of(const uint8_t *encoded)
{
	struct dedup_hdr header;

	memcpy(&header, encoded, sizeof(header));
	return header;
}

uint16_t decoder_length(const uint8_t *encoded, uint16_t length)
{
	struct dedup_hdr header;
	uint16_t original;

	if (length < sizeof(header))
		return 0;
	header = header_of(encoded);
	original = rte_be_to_cpu_16(header.length);
	if (header.version != 0 || header.regions > DEDUP_MOST_REGIONS || original > DEDUP_MOST ||
	    length < sizeof(header) + header.regions * sizeof(struct dedup_region))
		return 0;
	return original;
}

/* Bytes that are copied one after another. */
struct copying {
	uint8_t *to;
	uint16_t done, length;
	const uint8_t *literal, *literal_end;
};

/* Copy literal bytes up to an offset of the original; false if there are not so many. */
static bool copy_literal(struct copying *copying, uint16_t until)
{
	if (until < copying->done || until > copying->length ||
	    copying->literal_end - copying->literal < until - copying->done)
		return false;
	memcpy(copying->to + copying->done, copying->literal, until - copying->done);
	copying->literal += until - copying->done;
	copying->done = until;
	return true;
}

static enum decoded copy_region(const struct decoder *decoder, struct copying *copying,
				const struct dedup_region *region)
{
	const uint16_t offset = rte_be_to_cpu_16(region->offset);
	const uint16_t length = rte_be_to_cpu_16(region->length);
	const struct cached *source;

	if (!copy_literal(copying, rte_be_to_cpu_16(region->at)) ||
	    length > copying->length - copying->done)
		return DECODED_DAMAGED;
	source = find(decoder, rte_be_to_cpu_64(region->source));
	if (!source)
		return DECODED_LOST;
	if (offset + length > source->length)
		return DECODED_DAMAGED;
	memcpy(copying->to + copying->done, cache_bytes(&decoder->cache, source) + offset, length);
	copying->done += length;
	return DECODED;
}

enum decoded decoder_restore(const struct decoder *decoder, const uint8_t *encoded, uint16_t length,
			     uint8_t *to)
{
	const struct dedup_hdr header = header_of(encoded);
	const uint8_t *regions = encoded + sizeof(header);
	struct copying copying = {
		.to = to,
		.length = rte_be_to_cpu_16(header.length),
		.literal = regions + header.regions * sizeof(struct dedup_region),
		.literal_end = encoded + length,
	};

	for (uint8_t i = 0; i < header.regions; i++) {
		struct dedup_region region;
		enum decoded result;

		memcpy(&region, regions + i * sizeof(region), sizeof(region));
		result = copy_region(decoder, &copying, &region);
		if (result != DECODED)
			return result;
	}
	if (!copy_literal(&copying, copying.length) || copying.literal != copying.literal_end ||
	    siphash(&decoder->key, to, copying.length) != rte_be_to_cpu_64(header.hash))
		return DECODED_DAMAGED;
	return DECODED;
}

/* Forget the payload that the next one replaces, unless it was stored again since. */
static void forget_oldest(struct decoder *decoder)
{
	const struct cached *oldest = cache_next(&decoder->cache);

	if (oldest->length > 0 && find(decoder, oldest->hash) == oldest)
		rte_hash_del_key(decoder->places, &oldest->hash);
}

void decoder_store(struct decoder *decoder, const uint8_t *payload, uint16_t length)
{
	const uint64_t hash = siphash(&decoder->key, payload, length);
	const struct cached *cached;

	forget_oldest(decoder);
	cached = cache_add(&decoder->cache, payload, length, hash);
	/* without room the payload is as lost */
	rte_hash_add_key_data(decoder->places, &hash, (void *)(uintptr_t)cached->number);
}
