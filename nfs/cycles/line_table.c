#include "cycles/line_table.h"

#include <stdio.h>

#include "core/memory.h"

bool line_table_create(struct line_table *table, uint32_t most, uint64_t timeout_us)
{
	const uint32_t n = rte_align32pow2(2 * most);

	*table = (struct line_table){
		.lines = nf_zalloc(n * sizeof(struct line)),
		.mask = n - 1,
		.most = most,
		.timeout_us = timeout_us,
		.line_us = timeout_us / n + 1,
	};
	if (!table->lines) {
		fprintf(stderr, "cycles: no memory for a table of %u lines\n", n);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		table->lines[i].key.ports_and_protocol = LINE_FREE;
	return true;
}

void line_table_destroy(struct line_table *table)
{
	nf_free(table->lines);
}

static bool is_free(const struct line *line)
{
	return line->key.ports_and_protocol == LINE_FREE;
}

/* The line of a flow, or the free line that ends the search for it. */
static struct line *search(const struct line_table *table, struct line_key key, uint32_t hash)
{
	struct line *line = line_home(table, hash);

	while (!line_has(line, key) && !is_free(line))
		line = line_home(table, ++hash);
	return line;
}

struct line *line_table_find(const struct line_table *table, struct line_key key)
{
	struct line *line = search(table, key, line_hash(key));

	return is_free(line) ? NULL : line;
}

struct line *line_table_add(struct line_table *table, struct line_key key, uint32_t hash,
			    uint64_t now_us)
{
	struct line *line = search(table, key, hash);

	if (!is_free(line))
		return line;
	if (table->used == table->most)
		return NULL;
	*line = (struct line){.key = key, .hash = hash, .last_us = now_us};
	table->used++;
	table->started++;
	return line;
}

void line_table_restart(struct line_table *table, struct line *line)
{
	*line = (struct line){.key = line->key, .hash = line->hash};
	table->aged++;
	table->started++;
}

/* Knuth, The Art of Computer Programming, volume 3, algorithm 6.4R. */
void line_table_remove(struct line_table *table, struct line *line)
{
	uint32_t hole = (uint32_t)(line - table->lines), at = hole;

	table->used--;
	for (;;) {
		const struct line *next;

		at = (at + 1) & table->mask;
		next = &table->lines[at];
		if (is_free(next))
			break;
		/* it moves up unless its search begins behind the hole */
		if (((at - next->hash) & table->mask) >= ((at - hole) & table->mask)) {
			table->lines[hole] = *next;
			hole = at;
		}
	}
	table->lines[hole] = (struct line){.key.ports_and_protocol = LINE_FREE};
}

void line_table_sweep(struct line_table *table, uint64_t now_us)
{
	uint64_t due = (now_us - table->swept_us) / table->line_us;

	table->swept_us = due > LINE_SWEPT ? now_us : table->swept_us + due * table->line_us;
	for (due = RTE_MIN(due, LINE_SWEPT); due > 0; due--) {
		struct line *line = &table->lines[table->swept];

		if (is_free(line) || now_us - line->last_us < table->timeout_us) {
			table->swept = (table->swept + 1) & table->mask;
			continue;
		}
		/* another flow may move into the line, which is checked next */
		line_table_remove(table, line);
		table->aged++;
	}
}
