#include "functions/dedup/cache.h"

#include <errno.h>

#include "core/memory.h"

int cache_create(struct cache *cache, const char *name, uint32_t size)
{
	cache->size = size;
	cache->newest = 0;
	cache->payloads = nf_zalloc_for(name, size * sizeof(*cache->payloads));
	cache->bytes = nf_zalloc_for(name, size * sizeof(*cache->bytes));
	return cache->payloads && cache->bytes ? 0 : -ENOMEM;
}

void cache_destroy(struct cache *cache)
{
	nf_free(cache->payloads);
	nf_free(cache->bytes);
}
