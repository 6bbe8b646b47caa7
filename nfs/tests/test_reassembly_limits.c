#include "core/reassembly.h"
#include "tests/reassembly_rig.h"

/* The first of two fragments, from one of many sources. */
static struct rte_mbuf *first_of(struct rig *rig, uint32_t source, uint16_t id)
{
	const struct packet_spec spec = {
		.source = source,
		.destination = RECEIVER,
		.protocol = RAW_PROTOCOL,
		.id = id,
		.fragment = LATER,
		.payload = "12345678",
		.payload_length = 8,
	};

	return packet_from_spec(rig, &spec);
}

/* Whether the second fragment completes the datagram that the first one began. */
static bool second_completes(struct rig *rig, uint32_t source, uint16_t id, uint64_t now_us)
{
	struct rte_mbuf *second = first_of(rig, source, id);
	struct reassembled whole;

	ipv4_of(second)->fragment_offset = RTE_BE16(1);
	if (!offer_fragment(second, now_us, &whole))
		return false;
	assert_whole(&whole, "1234567812345678", 16);
	return true;
}

/* A datagram is complete up to its timeout, counted from its first fragment; later it is freed. */
TABLE_TEST(datagrams_time_out)
{
	offer_part(first_of(rig, 1, 1), 1);
	offer_part(first_of(rig, 1, 1), 20 * SECOND);
	assert_true(second_completes(rig, 1, 1, 30 * SECOND + 1));
	assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], 0);
	offer_part(first_of(rig, 1, 1), 31 * SECOND);
	assert_false(second_completes(rig, 1, 1, 61 * SECOND + 1));
	assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], 1);
	reassembly_expire(table, 91 * SECOND + 1);
	assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], 1);
	reassembly_expire(table, 91 * SECOND + 2);
	assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], 2);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
}

/* Above the number of datagrams, the oldest one is freed, whether or not it grew since. */
TABLE_TEST(the_oldest_datagram_is_evicted)
{
	const struct reassembly_limits limits = reassembly_limits(4, 30);

	make_table(&limits);
	for (uint16_t id = 0; id < 4; id++)
		offer_part(first_of(rig, 1, id), 1 + id);
	offer_part(fragment_of(rig, 0, 24, "12345678", 8, LATER), 9);
	assert_int_equal(counted[REASSEMBLY_EVICTED], 1); /* another source */
	assert_false(second_completes(rig, 1, 0, 10));
	assert_int_equal(counted[REASSEMBLY_EVICTED], 2);
	for (uint16_t id = 2; id < 4; id++)
		assert_true(second_completes(rig, 1, id, 11));
}

/* A source that has another share of this table, whose keys are drawn, than source 1. */
static uint32_t source_apart(struct rig *rig)
{
	for (uint32_t source = 2;; source++) {
		int shares = 0;

		offer_part(first_of(rig, 1, 0), 1);
		offer_part(first_of(rig, source, 0), 1);
		for (int of = 0; of < PENDING_SOURCES; of++)
			shares += !TAILQ_EMPTY(&table->of_source[of]);
		reassembly_free_all(table);
		if (shares == 2)
			return source;
	}
}

/*
 * The buffers and bytes that are held are limited, too: a packet above a limit is freed, while
 * fragments that complete datagrams evict none.
 */
TABLE_TEST(buffers_and_bytes_are_limited)
{
	const uint64_t buffer = RTE_MBUF_DEFAULT_BUF_SIZE;
	const struct reassembly_limits cases[] = {{100, 8, 100 * buffer, SECOND},
						  {100, 100, 8 * buffer, SECOND}};
	struct rte_mbuf *large;
	uint32_t other;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		make_table(&cases[i]);
		other = source_apart(rig);
		for (uint16_t id = 0; id < 20; id++) {
			offer_part(first_of(rig, 1, id), 1);
			assert_true(rte_mempool_in_use_count(rig->pool) <= 8);
		}
		assert_int_equal(counted[REASSEMBLY_EVICTED], 12);
		large = first_of(rig, other, 20);
		for (int segments = 1; segments < 9; segments++)
			assert_return_code(rte_pktmbuf_chain(large, packet_of(rig, "12345678", 8)),
					   0);
		ipv4_of(large)->total_length = RTE_BE16(20 + 9 * 8);
		offer_part(large, 1);
		assert_int_equal(counted[REASSEMBLY_EVICTED], 13);
		for (uint16_t id = 12; id < 20; id++)
			assert_true(second_completes(rig, 1, id, 2));
	}
}

/* A flood of fragments from some sources does not evict the datagrams of others. */
TABLE_TEST(a_flood_leaves_other_sources_their_share)
{
	const uint32_t flooder = SENDER, victim = SENDER + 1;
	uint16_t passed = 0;

	for (uint16_t round = 0; round < 64; round++) { /* with some keys both are of a class */
		const struct reassembly_limits limits = reassembly_limits(64, 30);
		uint16_t kept = 0;

		make_table(&limits);
		for (uint16_t id = 0; id < 8; id++)
			offer_part(first_of(rig, victim, id), 1);
		for (uint16_t id = 0; id < 500; id++)
			offer_part(first_of(rig, flooder, id), 2);
		for (uint16_t id = 0; id < 8; id++)
			kept += second_completes(rig, victim, id, 3);
		passed += kept == 8;
	}
	assert_true(passed >= 52);
}

/* The number of fragments of a datagram is limited, not that of its duplicates. */
TABLE_TEST(fragments_of_a_datagram_are_limited)
{
	uint8_t bytes[8 * REASSEMBLY_PIECES];
	struct reassembled whole;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (uint16_t at = 8; at < sizeof(bytes); at += 8)
		for (int copies = 0; copies < 3; copies++)
			offer_part(fragment_of(rig, 1, at, bytes + at, 8,
					       at + 8u < sizeof(bytes) ? LATER : 0),
				   1);
	assert_true(offer_fragment(fragment_of(rig, 1, 0, bytes, 8, LATER), 1, &whole));
	assert_whole(&whole, bytes, sizeof(bytes));
	for (uint16_t i = 0; i <= REASSEMBLY_PIECES; i++)
		offer_part(fragment_of(rig, 2, 16 * i, bytes, 8, LATER), 1);
	assert_int_equal(counted[REASSEMBLY_UNASSEMBLED], REASSEMBLY_PIECES + 1);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
}

/* The number of datagrams in the fullest bucket of a table after fragments with these numbers. */
static uint32_t fullest_after(struct rig *rig, const uint16_t *ids, uint16_t n)
{
	uint32_t fullest = 0;

	for (uint16_t i = 0; i < n; i++)
		offer_part(first_of(rig, 1, ids[i]), 1);
	for (uint32_t i = 0; i <= table->bucket_mask; i++) {
		const struct pending *pending;
		uint32_t here = 0;

		LIST_FOREACH(pending, &table->buckets[i], in_bucket)
			here++;
		fullest = RTE_MAX(fullest, here);
	}
	return fullest;
}

/* Datagrams that collide in one table do not in another, whose hash function has other keys. */
TABLE_TEST(chosen_datagrams_do_not_collide)
{
	enum { CHOSEN = 64 };
	const struct reassembly_limits limits = reassembly_limits(256, 30);
	uint16_t ids[CHOSEN], n = 0;

	make_table(&limits);
	for (uint32_t id = 0; id < 65536 && n < CHOSEN; id++) {
		offer_part(first_of(rig, 1, (uint16_t)id), 1);
		if (!LIST_EMPTY(&table->buckets[0]))
			ids[n++] = (uint16_t)id;
		reassembly_free_all(table);
	}
	assert_int_equal(n, CHOSEN);
	assert_int_equal(fullest_after(rig, ids, n), CHOSEN);
	make_table(&limits);
	assert_in_range(fullest_after(rig, ids, n), 1, 8);
}

/* Fragments that arrive on different sides, or differ in their datagram's key, are not joined. */
TABLE_TEST(keys_keep_datagrams_apart)
{
	struct reassembled whole;

	for (int field = 0; field < 6; field++) {
		struct rte_mbuf *second = first_of(rig, 1, 1);
		struct rte_ipv4_hdr *ip = ipv4_of(second);
		struct packet packet;

		offer_part(first_of(rig, 1, 1), 1);
		ip->fragment_offset = RTE_BE16(1);
		ip->src_addr += field == 1;
		ip->dst_addr += field == 2;
		ip->packet_id += field == 3;
		ip->next_proto_id += field == 4;
		packet = packet_parse(second);
		assert_int_equal(reassembly_add(table, second, &packet,
						field == 5 ? NF_OUTSIDE : NF_INSIDE, 1, &whole),
				 field == 0);
		if (field == 0)
			assert_whole(&whole, "1234567812345678", 16);
		reassembly_free_all(table);
	}
}
