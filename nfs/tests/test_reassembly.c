#include "tests/reassembly_rig.h"

#define LONGEST 4000
#define MOST_PARTS 40

static void fill(uint8_t *bytes, uint16_t n, uint64_t *random)
{
	for (uint16_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)random_next(random);
}

/* Cut bytes into fragments of random lengths; returns their number. */
static uint16_t cut_at_random(struct rig *rig, const uint8_t *bytes, uint16_t n,
			      struct rte_mbuf **parts, uint64_t *random)
{
	uint16_t made = 0;

	for (uint16_t at = 0, length; at < n; at += length) {
		length = 8 * (1 + random_below(random, 150));
		if (made == MOST_PARTS - 1 || length >= n - at)
			length = RTE_MIN(n - at, 1400);
		parts[made++] =
			fragment_of(rig, 7, at, bytes + at, length, at + length < n ? LATER : 0);
	}
	return made;
}

/* A copy of a packet, often in two segments whose memory ends where they end. */
static struct rte_mbuf *again(struct rig *rig, struct rte_mbuf *packet, uint64_t *random)
{
	uint8_t bytes[2000];
	const uint16_t length = packet_bytes(packet, bytes, sizeof(bytes));
	struct rte_mbuf *copy = packet_of(rig, bytes, length);

	return random_below(random, 2) ? in_two(rig, copy, 34 + random_below(random, length - 34))
				       : copy;
}

/* Fragments in any order, any of them several times, make the datagram, which is complete once. */
TABLE_TEST(any_order_with_duplicates_makes_the_datagram)
{
	uint64_t random = 1;

	for (int i = 0; i < 500; i++) {
		const uint16_t n = 1 + random_below(&random, LONGEST);
		struct rte_mbuf *parts[MOST_PARTS];
		struct reassembled whole = {0};
		uint8_t bytes[LONGEST];
		uint16_t left, n_parts;

		fill(bytes, n, &random);
		left = n_parts = cut_at_random(rig, bytes, n, parts, &random);
		if (n_parts == 1) { /* not a fragment */
			rte_pktmbuf_free(parts[0]);
			continue;
		}
		memset(counted, 0, sizeof(counted));
		while (left > 0) {
			const uint32_t next = random_below(&random, left);
			const bool repeated = random_below(&random, 3) == 0 && left > 1;

			if (repeated)
				offer_part(again(rig, parts[next], &random), 1);
			assert_int_equal(
				offer_fragment(again(rig, parts[next], &random), 1, &whole),
				left == 1);
			assert_int_equal(counted[REASSEMBLY_DUPLICATES], all_counted());
			rte_pktmbuf_free(parts[next]);
			parts[next] = parts[--left];
		}
		assert_whole(&whole, bytes, n);
		assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
	}
}

/* A duplicate of any fragment, in order, does not lose the datagram, and is counted. */
TABLE_TEST(duplicates_do_no_harm)
{
	const uint8_t bytes[32] = "the bytes of a small datagram.";

	for (uint16_t twice = 0; twice < 3; twice++) {
		struct reassembled whole;

		for (uint16_t i = 0; i < 3; i++)
			for (int copies = i == twice ? 2 : 1; copies > 0; copies--)
				offer_part(fragment_of(rig, 1, 8 * i, bytes + 8 * i, 8, LATER), 1);
		assert_true(offer_fragment(fragment_of(rig, 1, 24, bytes + 24, 8, 0), 1, &whole));
		assert_whole(&whole, bytes, 32);
		assert_int_equal(counted[REASSEMBLY_DUPLICATES], twice + 1);
		assert_int_equal(all_counted(), twice + 1);
	}
}

enum kind { MORE, LAST, OTHER /* its bytes differ from those of the others */ };

struct part {
	uint16_t begin, n;
	enum kind kind;
};

/* Offer parts of a datagram of letters in turn; returns whether the last one completes it. */
static bool offer_parts(struct rig *rig, const struct part *parts, size_t n,
			struct reassembled *whole)
{
	static uint16_t id;
	bool done = false;

	memset(counted, 0, sizeof(counted));
	id++;
	for (size_t i = 0; i < n && parts[i].n > 0; i++) {
		uint8_t bytes[64];

		assert_false(done);
		for (uint16_t at = 0; at < parts[i].n; at++)
			bytes[at] = (uint8_t)('a' + parts[i].begin + at);
		bytes[parts[i].n - 1] ^= parts[i].kind == OTHER;
		done = offer_fragment(fragment_of(rig, id, parts[i].begin, bytes, parts[i].n,
						  parts[i].kind == LAST ? 0 : LATER),
				      1, whole);
	}
	return done;
}

/* Fragments that contradict each other are freed with all of their datagram (RFC 8200, 4.5). */
TABLE_TEST(contradicting_fragments_are_freed)
{
	static const struct part cases[][4] = {
		{{0, 16, MORE}, {0, 16, OTHER}},
		{{0, 16, MORE}, {8, 16, MORE}, {16, 8, OTHER}},
		{{0, 24, MORE}, {8, 8, OTHER}},
		{{8, 8, OTHER}, {0, 24, MORE}},
		{{8, 16, MORE}, {24, 8, LAST}, {24, 16, LAST}},
		{{0, 16, MORE}, {24, 8, LAST}, {16, 8, LAST}},
		{{0, 8, MORE}, {16, 8, LAST}, {24, 8, MORE}},
		{{0, 8, MORE}, {16, 8, LAST}, {16, 8, MORE}},
		{{0, 8, MORE}, {16, 8, MORE}, {16, 8, LAST}},
		{{8, 16, MORE}, {0, 8, LAST}},
	};
	struct reassembled whole;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint64_t n = 0;

		while (n < RTE_DIM(cases[i]) && cases[i][n].n > 0)
			n++;
		assert_false(offer_parts(rig, cases[i], RTE_DIM(cases[i]), &whole));
		assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
		assert_int_equal(counted[REASSEMBLY_OVERLAPPING], n);
		assert_int_equal(all_counted(), n);
	}
}

/* Fragments may overlap if their bytes agree, as after a retransmission over another path. */
TABLE_TEST(overlaps_that_agree_make_the_datagram)
{
	static const struct {
		struct part parts[5];
		uint16_t freed;
	} cases[] = {
		{{{0, 16, MORE}, {8, 16, MORE}, {16, 10, LAST}}, 0},
		{{{16, 10, LAST}, {8, 16, MORE}, {0, 16, MORE}}, 1},
		{{{16, 10, LAST}, {8, 8, MORE}, {0, 24, MORE}}, 1},
		{{{8, 8, MORE}, {16, 8, MORE}, {0, 24, MORE}, {24, 2, LAST}}, 2},
		{{{0, 24, MORE}, {8, 8, MORE}, {16, 8, MORE}, {24, 2, LAST}}, 2},
		{{{0, 8, MORE}, {16, 10, LAST}, {0, 24, MORE}}, 0},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct reassembled whole;

		assert_true(offer_parts(rig, cases[i].parts, RTE_DIM(cases[i].parts), &whole));
		assert_whole(&whole, "abcdefghijklmnopqrstuvwxyz", 26);
		assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
		assert_int_equal(counted[REASSEMBLY_DUPLICATES], cases[i].freed);
		assert_int_equal(all_counted(), cases[i].freed);
	}
}

/* Fragments without bytes, of a length that leaves a hole, or beyond 64 KB are freed alone. */
TABLE_TEST(invalid_fragments_are_freed_alone)
{
	static const struct {
		uint16_t begin, n, more;
	} cases[] = {{8, 0, LATER}, {16, 0, 0}, {8, 7, LATER}, {0, 12, LATER}, {65528, 8, 0}};
	struct reassembled whole;
	const uint8_t bytes[64] = {0};

	offer_part(fragment_of(rig, 1, 0, bytes, 8, LATER), 1);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		offer_part(fragment_of(rig, 1, cases[i].begin, bytes, cases[i].n, cases[i].more),
			   1);
		assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], i + 1);
	}
	assert_true(offer_fragment(fragment_of(rig, 1, 8, bytes, 8, 0), 1, &whole));
	assert_whole(&whole, bytes, 16);
}

/* The datagram of the largest length is made; one that its first header makes longer is freed. */
TABLE_TEST(the_largest_datagram_is_made)
{
	enum { PART = 1480, ALL = 65515 };
	static uint8_t bytes[ALL];
	uint64_t random = 3;

	fill(bytes, ALL, &random);
	for (int longer = 0; longer < 2; longer++) {
		struct reassembled whole;
		bool done = false;
		uint64_t n = 0;

		for (uint32_t at = 0; at < ALL; at += PART, n++) {
			const uint16_t length = RTE_MIN(PART, ALL - at);
			struct rte_mbuf *part = fragment_of(rig, 1, at, bytes + at, length,
							    at + length < ALL ? LATER : 0);

			if (at == 0 && longer) { /* four bytes become options */
				ipv4_of(part)->version_ihl++;
				ipv4_of(part)->total_length = RTE_BE16(24 + PART);
				assert_non_null(rte_pktmbuf_append(part, 4));
			}
			done = offer_fragment(part, 1, &whole);
		}
		assert_int_equal(done, !longer);
		if (done)
			assert_whole(&whole, bytes, ALL);
		else
			assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], n);
	}
}

/* DF is kept if the largest fragment had it, whose length is reported; marks are joined. */
TABLE_TEST(flags_and_marks_of_fragments_are_kept)
{
	static const struct {
		uint16_t df[2]; /* of fragments with 16 and 8 bytes */
		uint8_t marks[2];
		uint16_t expected_df;
		uint8_t expected_mark;
		bool joined;
	} cases[] = {
		{{0, 0}, {2, 2}, 0, 2, true},
		{{RTE_IPV4_HDR_DF_FLAG, 0}, {2, 3}, RTE_IPV4_HDR_DF_FLAG, 3, true},
		{{0, RTE_IPV4_HDR_DF_FLAG}, {3, 1}, 0, 3, true},
		{{0, 0}, {0, 3}, 0, 3, false},
		{{0, 0}, {0, 2}, 0, 0, true},
	};
	const uint8_t bytes[24] = "of two fragments";

	for (size_t i = 0; i < 2 * RTE_DIM(cases); i++) {
		struct rte_mbuf *parts[] = {fragment_of(rig, 1, 0, bytes, 16, LATER),
					    fragment_of(rig, 1, 16, bytes + 16, 8, 0)};
		struct reassembled whole;

		for (int j = 0; j < 2; j++) {
			ipv4_of(parts[j])->fragment_offset |= rte_cpu_to_be_16(cases[i / 2].df[j]);
			ipv4_of(parts[j])->type_of_service = 0xb8 | cases[i / 2].marks[j];
		}
		offer_part(parts[i % 2], 1);
		assert_true(offer_fragment(parts[!(i % 2)], 1, &whole));
		assert_int_equal(whole.largest, 36);
		assert_int_equal(reassembled_join_marks(&whole), cases[i / 2].joined);
		assert_int_equal(ipv4_of(whole.mbuf)->type_of_service,
				 0xb8 | cases[i / 2].expected_mark);
		assert_int_equal(ipv4_of(whole.mbuf)->fragment_offset,
				 rte_cpu_to_be_16(cases[i / 2].expected_df));
		assert_whole(&whole, bytes, 24);
	}
}

/* The headers of tiny fragments are moved to the first segment. */
TABLE_TEST(headers_are_in_the_first_segment)
{
	enum { ALL = 5000, TINY = 240 };
	static uint8_t bytes[ALL];
	struct reassembled whole;
	uint64_t random = 5;

	fill(bytes, ALL, &random);
	for (uint16_t at = 0; at < TINY; at += 8)
		offer_part(fragment_of(rig, 1, at, bytes + at, 8, LATER), 1);
	for (uint16_t at = TINY; at < ALL - 1190; at += 1190 & ~7)
		offer_part(fragment_of(rig, 1, at, bytes + at, 1190 & ~7, LATER), 1);
	assert_true(offer_fragment(fragment_of(rig, 1, 4976, bytes + 4976, 24, 0), 1, &whole));
	assert_true(rte_pktmbuf_data_len(whole.mbuf) >= 192);
	assert_true(whole.mbuf->nb_segs > 1);
	assert_whole(&whole, bytes, ALL);
}
