#include "core/random.h"
#include "cycles/line_table.h"
#include "tests/support.h"

#define KEYS 200
#define MOST 61
#define TIMEOUT_US 1000

/* What a table should hold of a flow; `last_us` is 0 without one. */
struct expected {
	uint64_t packets, bytes, last_us;
};

static struct line_key key_of(uint32_t i)
{
	return (struct line_key){.addresses = i, .ports_and_protocol = 17};
}

static bool is_old(const struct expected *flow, uint64_t now_us)
{
	return now_us - flow->last_us >= TIMEOUT_US;
}

/* The flows that a sweep may have removed are gone, and no others. */
static uint32_t compare(const struct line_table *table, struct expected *flows, uint64_t now_us)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		const struct line *line = line_table_find(table, key_of(i));

		if (line) {
			assert_int_equal(line->packets, flows[i].packets);
			assert_int_equal(line->bytes, flows[i].bytes);
			assert_int_equal(line->last_us, flows[i].last_us);
			n++;
		} else if (flows[i].last_us != 0) {
			assert_true(is_old(&flows[i], now_us));
			flows[i] = (struct expected){0};
		}
	}
	assert_int_equal(n, table->used);
	return n;
}

static void count(struct line_table *table, struct expected *flow, uint32_t i, uint64_t now_us)
{
	const struct line_key key = key_of(i);
	const bool full = table->used == MOST && flow->last_us == 0;
	const struct line *line = line_table_count(table, key, line_hash(key), i, now_us);

	assert_int_equal(line == NULL, full);
	if (full)
		return;
	if (is_old(flow, now_us))
		*flow = (struct expected){0};
	flow->packets++;
	flow->bytes += i;
	flow->last_us = now_us;
}

/* Packets of random flows, with pauses, are counted as in a plain array; old flows leave. */
TEST(agrees_with_an_array)
{
	struct expected flows[KEYS] = {0};
	struct line_table table;
	uint64_t random = 1, now_us = 1;
	bool was_full = false;

	assert_true(line_table_create(&table, MOST, TIMEOUT_US));
	for (int i = 0; i < 100000; i++) {
		const uint32_t key = random_below(&random, KEYS);

		now_us += random_below(&random, 40);
		line_table_age(&table, now_us);
		was_full |= compare(&table, flows, now_us) == MOST;
		count(&table, &flows[key], key, now_us);
	}
	assert_true(was_full);
	assert_true(table.aged > 1000);
	for (int i = 0; i < 100; i++)
		line_table_age(&table, now_us += TIMEOUT_US / 20);
	assert_int_equal(table.used, 0);
	assert_int_equal(table.started, table.aged);
	line_table_destroy(&table);
}

/* Any flow can be removed, and all others are found afterwards. */
TEST(removals_lose_no_other_flow)
{
	struct expected flows[KEYS] = {0};
	struct line_table table;
	uint64_t random = 2;

	assert_true(line_table_create(&table, KEYS, UINT64_MAX));
	for (int i = 0; i < 20000; i++) {
		const uint32_t key = random_below(&random, KEYS);
		struct line *line = line_table_find(&table, key_of(key));

		if (line) {
			line_table_remove(&table, line);
			flows[key] = (struct expected){0};
		} else {
			line_table_add(&table, key_of(key), line_hash(key_of(key)), 1);
			flows[key].last_us = 1;
		}
		compare(&table, flows, 1);
	}
	line_table_destroy(&table);
}
