/* Shared by the tests of reassembly: a table, and fragments for it. */
#pragma once

#include <stdlib.h>

#include <rte_random.h>

#include "core/random.h"
#include "core/reassembly.h"
#include "tests/hostile.h"

#define RAW_PROTOCOL 253 /* for experiments (RFC 3692): no header behind that of IPv4 */
#define LATER RTE_IPV4_HDR_MF_FLAG
#define SENDER UINT32_C(0x0a000001)   /* 10.0.0.1 */
#define RECEIVER UINT32_C(0xc6336407) /* 198.51.100.7 */

static struct reassembly *table;
static uint64_t counted[REASSEMBLY_COUNTERS];

/* Make the table anew. */
static inline void make_table(const struct reassembly_limits *limits)
{
	reassembly_destroy(table);
	memset(counted, 0, sizeof(counted));
	table = reassembly_create("test", limits, counted);
	if (!table)
		abort();
}

static inline int setup_table(void **state)
{
	const struct reassembly_limits limits = reassembly_limits(64, 30);

	rte_srand(1); /* of the tables' hash functions */
	make_table(&limits);
	return setup(state);
}

static inline int teardown_table(void **state)
{
	reassembly_destroy(table);
	table = NULL;
	return teardown(state);
}

/* A fragment with these bytes at `begin`; `more` is LATER unless it is the last one. */
static inline struct rte_mbuf *fragment_of(struct rig *rig, uint16_t id, uint16_t begin,
					   const void *bytes, uint16_t n, uint16_t more)
{
	const struct packet_spec spec = {
		.source = SENDER,
		.destination = RECEIVER,
		.protocol = RAW_PROTOCOL,
		.id = id,
		.fragment = begin / 8 | more,
		.payload = bytes,
		.payload_length = n,
	};

	return packet_from_spec(rig, &spec);
}

/* Offer a fragment; returns whether it completes a datagram. */
static inline bool offer_fragment(struct rte_mbuf *fragment, uint64_t now_us,
				  struct reassembled *whole)
{
	const struct packet packet = packet_parse(fragment);

	return reassembly_add(table, fragment, &packet, NF_INSIDE, now_us, whole);
}

/* Offer a fragment that completes none. */
static inline void offer_part(struct rte_mbuf *fragment, uint64_t now_us)
{
	struct reassembled whole;

	assert_false(offer_fragment(fragment, now_us, &whole));
}

/* Fail unless the datagram has a valid header and these bytes behind it; free it. */
static inline void assert_whole(const struct reassembled *whole, const void *bytes, uint16_t n)
{
	static uint8_t room[65536 + 14];
	const uint32_t length = rte_pktmbuf_pkt_len(whole->mbuf);
	const uint8_t *all = rte_pktmbuf_read(whole->mbuf, 0, length, room);
	uint16_t header;

	assert_header_checksum(whole->mbuf);
	assert_non_null(all);
	header = rte_ipv4_hdr_len((const struct rte_ipv4_hdr *)(all + whole->l3));
	assert_int_equal(length, whole->l3 + header + n);
	assert_memory_equal(all + whole->l3 + header, bytes, n);
	rte_mbuf_sanity_check(whole->mbuf, 1);
	rte_pktmbuf_free(whole->mbuf);
}

/* Fragments that the counters say were freed. */
static inline uint64_t all_counted(void)
{
	return counted[REASSEMBLY_DUPLICATES] + counted[REASSEMBLY_OVERLAPPING] +
	       counted[REASSEMBLY_EVICTED] + counted[REASSEMBLY_UNASSEMBLED];
}

#define TABLE_TEST(test) TEST_WITH(test, struct rig *rig, setup_table, teardown_table)
