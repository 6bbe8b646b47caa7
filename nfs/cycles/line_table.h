/*
 * A table of flows for peers: open addressing with linear probing, one flow per cache line, so that
 * a packet costs one cache miss. It shares no code with core/: own keys, hash and layout.
 *
 * At most half of the lines are used. A removed flow leaves no mark: those behind it move up. Flows
 * that are silent for a timeout are removed by a sweep, or start again with their next packet. The
 * hash has no secret: peers see no hostile traffic.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_hash_crc.h>
#include <rte_mbuf.h>

#define LINE_SWEPT 256 /* most lines checked per burst, however long the last pause was */

/* The 13 bytes that identify a flow. */
struct line_key {
	uint64_t addresses;
	uint64_t ports_and_protocol;
};

#define LINE_FREE UINT64_MAX /* `ports_and_protocol` of a free line; no packet has it */

struct line {
	struct line_key key;
	uint64_t packets, bytes, last_us;
	uint64_t mark; /* for the peer, initially 0 */
	uint32_t hash;
} __rte_cache_aligned;

struct line_table {
	struct line *lines;
	uint32_t mask; /* number of lines - 1 */
	uint32_t used, most;
	uint32_t swept; /* next line to check */
	uint64_t started, aged;
	uint64_t timeout_us, swept_us, line_us; /* `line_us`: time per line of the sweep */
};

/* A table of at most `most` flows; false after printing why. */
bool line_table_create(struct line_table *table, uint32_t most, uint64_t timeout_us);
void line_table_destroy(struct line_table *table);

/* The key of a plain packet, at fixed offsets. */
static inline struct line_key line_key(const struct rte_mbuf *packet)
{
	enum { PROTOCOL = 14 + 9, ADDRESSES = 14 + 12, PORTS = 14 + 20 };
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
	struct line_key key;
	uint32_t ports;

	memcpy(&key.addresses, bytes + ADDRESSES, sizeof(key.addresses));
	memcpy(&ports, bytes + PORTS, sizeof(ports));
	key.ports_and_protocol = ports | (uint64_t)bytes[PROTOCOL] << 32;
	return key;
}

static inline uint32_t line_hash(struct line_key key)
{
	return rte_hash_crc_8byte(key.ports_and_protocol, rte_hash_crc_8byte(key.addresses, 0));
}

static inline bool line_has(const struct line *line, struct line_key key)
{
	return line->key.addresses == key.addresses &&
	       line->key.ports_and_protocol == key.ports_and_protocol;
}

/* The line where the search for a flow begins. */
static inline struct line *line_home(const struct line_table *table, uint32_t hash)
{
	return &table->lines[hash & table->mask];
}

/* The line of a flow; NULL if there is none. */
struct line *line_table_find(const struct line_table *table, struct line_key key);

/* The line of a flow, which starts if there is none; NULL while the table is full. */
struct line *line_table_add(struct line_table *table, struct line_key key, uint32_t hash,
			    uint64_t now_us);

/* Let a flow that was silent for too long start again. */
void line_table_restart(struct line_table *table, struct line *line);

void line_table_remove(struct line_table *table, struct line *line);

/* Count a packet of a flow; NULL while the table is full. */
static inline struct line *line_table_count(struct line_table *table, struct line_key key,
					    uint32_t hash, uint32_t bytes, uint64_t now_us)
{
	struct line *line = line_home(table, hash);

	if (unlikely(!line_has(line, key))) {
		line = line_table_add(table, key, hash, now_us);
		if (unlikely(!line))
			return NULL;
	}
	if (unlikely(now_us - line->last_us >= table->timeout_us))
		line_table_restart(table, line);
	line->packets++;
	line->bytes += bytes;
	line->last_us = now_us;
	return line;
}

/* Remove old flows among the lines that are due, so that all are checked once per timeout. */
void line_table_sweep(struct line_table *table, uint64_t now_us);

static inline void line_table_age(struct line_table *table, uint64_t now_us)
{
	if (unlikely(now_us - table->swept_us >= table->line_us))
		line_table_sweep(table, now_us);
}
