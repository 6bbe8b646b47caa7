/* Consistent hashing: equal shares, and few changes when a backend leaves. */
#include "core/random.h"
#include "functions/lb/maglev.h"
#include "tests/support.h"

#define SIZE 65537

/* Primes are recognized, as a sieve does. */
TEST(primes_are_recognized)
{
	static bool composite[10000];

	assert_false(maglev_is_prime(0));
	assert_false(maglev_is_prime(1));
	for (uint32_t number = 2; number < RTE_DIM(composite); number++) {
		assert_int_equal(maglev_is_prime(number), !composite[number]);
		for (uint32_t multiple = 2 * number; multiple < RTE_DIM(composite);
		     multiple += number)
			composite[multiple] = true;
	}
	assert_true(maglev_is_prime(4294967291));
	assert_false(maglev_is_prime(4294967295));
}

/* Without a backend that is up every entry says so; a table of two entries works. */
TEST(smallest_tables_are_filled)
{
	const bool up[] = {true, true}, down[] = {false, false};
	uint16_t table[2];

	assert_int_equal(maglev_fill(table, 2, up, 2, 1), 0);
	assert_int_equal(table[0] + table[1], 1);
	assert_int_equal(maglev_fill(table, 2, down, 2, 1), 0);
	assert_int_equal(table[0], MAGLEV_NONE);
	assert_int_equal(table[1], MAGLEV_NONE);
}

/* A table of a power of two is filled, too, with the same share for each. */
TEST(powers_of_two_are_filled)
{
	static uint16_t table[65536];
	const bool up[] = {true, false, true, true};

	for (uint32_t size = 4; size <= RTE_DIM(table); size *= 2)
		for (uint64_t seed = 0; seed < 20; seed++) {
			uint32_t entries[4] = {0};

			assert_int_equal(maglev_fill(table, size, up, 4, seed), 0);
			for (uint32_t at = 0; at < size; at++)
				entries[table[at]]++;
			assert_int_equal(entries[1], 0);
			for (uint32_t backend = 0; backend < 4; backend++)
				if (up[backend])
					assert_in_range(entries[backend], size / 3, size / 3 + 1);
		}
}

/* Every backend that is up has the same share of the table. */
TEST(entries_are_shared_equally)
{
	static const uint32_t numbers[] = {1, 2, 3, 10, 97, 1000};
	static uint16_t table[SIZE];

	for (unsigned int i = 0; i < RTE_DIM(numbers); i++) {
		uint32_t entries[1000] = {0};
		bool up[1000];

		memset(up, true, sizeof(up));
		assert_int_equal(maglev_fill(table, SIZE, up, numbers[i], i), 0);
		for (uint32_t at = 0; at < SIZE; at++)
			entries[table[at]]++;
		for (uint32_t backend = 0; backend < numbers[i]; backend++)
			assert_in_range(entries[backend], SIZE / numbers[i], SIZE / numbers[i] + 1);
	}
}

/*
 * When a backend leaves, its entries go to the others; of the others' entries at most one in fifty
 * moves, with 64 backends or less.
 */
TEST(few_flows_move_when_a_backend_leaves)
{
	static const uint32_t numbers[] = {2, 3, 8, 16, 64};
	static uint16_t before[SIZE], after[SIZE];
	uint64_t random = 1;

	for (int round = 0; round < 20; round++) {
		const uint32_t backends = numbers[round % RTE_DIM(numbers)];
		const uint32_t left = random_below(&random, backends);
		uint32_t moved = 0, stayed = 0;
		bool up[64];

		memset(up, true, sizeof(up));
		assert_int_equal(maglev_fill(before, SIZE, up, backends, (uint64_t)round), 0);
		up[left] = false;
		assert_int_equal(maglev_fill(after, SIZE, up, backends, (uint64_t)round), 0);
		for (uint32_t at = 0; at < SIZE; at++) {
			assert_int_not_equal(after[at], left);
			moved += before[at] != left && before[at] != after[at];
			stayed += before[at] == after[at];
		}
		if (moved * 50 > moved + stayed)
			fail_msg("%u of %u entries moved with %u backends", moved, moved + stayed,
				 backends);
	}
}
