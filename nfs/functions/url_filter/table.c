#include "functions/url_filter/table.h"

#include <string.h>

#include <rte_common.h>

#include "core/memory.h"

#define FNV_OFFSET 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull
#define BLOCK 65536 /* bytes; longer than any text */

/* A host of the list, with or without a path. */
struct entry {
	uint64_t hash;
	const char *text; /* host, then path; NULL: free */
	uint16_t path_length;
	uint8_t host_length;
	uint8_t deepest; /* of a host: most segments of its paths */
	bool listed;     /* it is an entry of the list; else only paths on the host are */
};

/* Texts are many and short: they share blocks of memory. */
struct block {
	struct block *next;
	size_t used;
	char bytes[BLOCK];
};

struct url_table {
	struct block *blocks;
	uint32_t mask;
	struct entry entries[];
};

/* A part of a name to look up. */
struct key {
	uint64_t hash;
	const char *host, *path;
	size_t host_length, path_length;
};

/* FNV-1a */
static uint64_t hashed(uint64_t hash, char byte)
{
	return (hash ^ (uint8_t)byte) * FNV_PRIME;
}

static uint64_t hash_of_host(const char *host, size_t length)
{
	uint64_t hash = FNV_OFFSET;

	while (length > 0)
		hash = hashed(hash, host[--length]);
	return hash;
}

struct url_table *url_table_create(const char *name, uint32_t n)
{
	/* each may add a host and a path; at most half of the places are used */
	const uint32_t places = rte_align32pow2(4 * (n + 1));
	struct url_table *table =
		nf_zalloc_for(name, sizeof(*table) + (size_t)places * sizeof(struct entry));

	if (table)
		table->mask = places - 1;
	return table;
}

void url_table_destroy(struct url_table *table)
{
	struct block *block = table ? table->blocks : NULL;

	while (block) {
		struct block *next = block->next;

		nf_free(block);
		block = next;
	}
	nf_free(table);
}

/* Memory for a text; NULL if there is none. */
static char *text_of(struct url_table *table, size_t length)
{
	struct block *block = table->blocks;

	if (!block || BLOCK - block->used < length) {
		block = nf_zalloc(sizeof(*block));
		if (!block)
			return NULL;
		block->next = table->blocks;
		table->blocks = block;
	}
	block->used += length;
	return block->bytes + block->used - length;
}

static bool is_same(const struct entry *entry, const struct key *key)
{
	return entry->hash == key->hash && entry->host_length == key->host_length &&
	       entry->path_length == key->path_length &&
	       memcmp(entry->text, key->host, key->host_length) == 0 &&
	       memcmp(entry->text + key->host_length, key->path, key->path_length) == 0;
}

/* The key's place, used or free. */
static uint32_t find(const struct url_table *table, const struct key *key)
{
	uint32_t place = (key->hash ^ key->hash >> 32) & table->mask;

	while (table->entries[place].text && !is_same(&table->entries[place], key))
		place = (place + 1) & table->mask;
	return place;
}

static struct entry *find_or_add(struct url_table *table, const struct key *key)
{
	struct entry *entry = &table->entries[find(table, key)];
	char *text;

	if (entry->text)
		return entry;
	text = text_of(table, key->host_length + key->path_length);
	if (!text)
		return NULL;
	memcpy(text, key->host, key->host_length);
	memcpy(text + key->host_length, key->path, key->path_length);
	entry->text = text;
	entry->hash = key->hash;
	entry->host_length = (uint8_t)key->host_length;
	entry->path_length = (uint16_t)key->path_length;
	return entry;
}

static uint8_t depth_of(const char *path, size_t length)
{
	uint8_t depth = 0;

	for (size_t i = 0; i < length; i++)
		depth += path[i] == '/';
	return depth;
}

bool url_table_add(struct url_table *table, const char *host, size_t host_length, const char *path,
		   size_t path_length)
{
	struct key key = {.hash = hash_of_host(host, host_length),
			  .host = host,
			  .host_length = host_length,
			  .path = path};
	struct entry *entry = find_or_add(table, &key);

	if (!entry)
		return false;
	entry->deepest = RTE_MAX(entry->deepest, depth_of(path, path_length));
	for (size_t i = 0; i < path_length; i++)
		key.hash = hashed(key.hash, path[i]);
	key.path_length = path_length;
	entry = find_or_add(table, &key);
	if (entry)
		entry->listed = true;
	return entry != NULL;
}

/* Whether an entry is the path or one above it, by segments. */
static bool covers_path(const struct url_table *table, struct key *key, uint8_t deepest,
			size_t length)
{
	for (size_t i = 0; i < length && deepest > 0; i++) {
		key->hash = hashed(key->hash, key->path[i]);
		if (i + 1 < length && key->path[i + 1] != '/')
			continue;
		key->path_length = i + 1;
		if (table->entries[find(table, key)].text)
			return true;
		deepest--;
	}
	return false;
}

bool url_table_covers(const struct url_table *table, const char *host, size_t host_length,
		      const char *path, size_t path_length)
{
	uint64_t hash = FNV_OFFSET;

	for (size_t i = host_length; i > 0; i--) {
		struct key key = {.host = host + i - 1, .host_length = host_length - i + 1};
		const struct entry *entry;

		hash = hashed(hash, host[i - 1]);
		if (i > 1 && host[i - 2] != '.')
			continue;
		key.hash = hash;
		key.path = path;
		entry = &table->entries[find(table, &key)];
		if (entry->text &&
		    (entry->listed || covers_path(table, &key, entry->deepest, path_length)))
			return true;
	}
	return false;
}
