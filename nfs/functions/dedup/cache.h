/* The last payloads of a direction: a packet cache as both ends of a link have it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DEDUP_LEAST 64 /* bytes of a payload that is stored */
#define DEDUP_MOST 2048

struct cached {
	uint64_t hash;
	uint32_t number;
	uint16_t length;
	uint8_t generation; /* 0: it was sent whole; else one more than what it was encoded from */
};

struct cache {
	uint32_t size;   /* payloads; a power of two */
	uint32_t newest; /* number of the last one stored; the first one has 1 */
	struct cached *payloads;
	uint8_t (*bytes)[DEDUP_MOST];
};

/* 0, or a negative errno after printing why in the name of `name`; it is destroyed either way. */
int cache_create(struct cache *cache, const char *name, uint32_t size);
void cache_destroy(struct cache *cache);

static inline bool cache_takes(uint16_t length)
{
	return length >= DEDUP_LEAST && length <= DEDUP_MOST;
}

/* The payload that the next one replaces. */
static inline struct cached *cache_next(struct cache *cache)
{
	return &cache->payloads[(cache->newest + 1) & (cache->size - 1)];
}

/* Store a payload in place of the oldest one; the caller sets its other fields. */
static inline struct cached *cache_add(struct cache *cache, const uint8_t *payload, uint16_t length,
				       uint64_t hash)
{
	struct cached *cached = cache_next(cache);

	cached->number = ++cache->newest;
	cached->length = length;
	cached->hash = hash;
	memcpy(cache->bytes[cached - cache->payloads], payload, length);
	return cached;
}

/* A payload by its number; NULL if it was replaced. */
static inline const struct cached *cache_find(const struct cache *cache, uint32_t number)
{
	const struct cached *cached = &cache->payloads[number & (cache->size - 1)];

	return cached->number == number && cached->length > 0 ? cached : NULL;
}

static inline const uint8_t *cache_bytes(const struct cache *cache, const struct cached *cached)
{
	return cache->bytes[cached - cache->payloads];
}
