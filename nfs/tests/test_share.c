/* Shares: exact limits, and the hash that is compared with them. */
#include "core/share.h"
#include "core/split_hash.h"
#include "tests/support.h"

#define ADDRESS 0x0a000001u /* 10.0.0.1 */
#define OTHER 0xc6336407u /* 198.51.100.7 */

/* The hash is the one that all platforms compute; values from the definition, in Python. */
TEST(the_hash_is_the_same_everywhere)
{
	assert_int_equal(split_hash_of(0, ADDRESS, OTHER, 1000 << 16 | 53, 17), 41860);
	assert_int_equal(split_hash_of(0, ADDRESS, OTHER, 0, 1), 41353);
	assert_int_equal(split_hash_of(1, ADDRESS, OTHER, 1000 << 16 | 53, 17), 5825);
	assert_int_equal(split_hash_of(0xffffffff, ADDRESS, OTHER, 0, 1), 21832);
	assert_int_equal(split_hash_of(2836339264, ADDRESS, OTHER, 1000 << 16 | 53, 17), 43829);
}

/* Ports count unless a packet is a fragment, the first included; other than IPv4 has 0. */
RIG_TEST(fragments_and_tags_are_seen)
{
	const uint16_t fragments[] = {0, RTE_IPV4_HDR_DF_FLAG, RTE_IPV4_HDR_MF_FLAG, 5};
	struct packet_spec packet_spec = {.source = ADDRESS,
					  .destination = OTHER,
					  .source_port = 1000,
					  .destination_port = 53,
					  .payload_length = 40};

	for (unsigned int i = 0; i < 2 * RTE_DIM(fragments); i++) {
		struct rte_mbuf *packet;
		struct packet headers;

		packet_spec.fragment = fragments[i / 2];
		packet_spec.vlan = i % 2 ? 100 : 0;
		packet = packet_from_spec(rig, &packet_spec);
		headers = packet_parse(packet);
		assert_int_equal(split_hash(packet, &headers, 7),
				 split_hash_of(7, ADDRESS, OTHER, i < 4 ? 1000 << 16 | 53 : 0, 17));
		rte_pktmbuf_mtod(packet, uint8_t *)[12] = 0x77;
		headers = packet_parse(packet);
		assert_int_equal(split_hash(packet, &headers, 7), 0);
		rte_pktmbuf_free(packet);
	}
}

/* Values are spread evenly, whatever the salt. */
TEST(values_are_spread)
{
	for (uint32_t salt = 0; salt < 20; salt++) {
		unsigned int below = 0;

		for (uint32_t i = 0; i < 4000; i++)
			below += split_hash_of(salt * 0x9e3779b1u, ADDRESS + i % 50, OTHER,
					       i << 16 | 80, 6) < SPLIT_RANGE / 4;
		assert_in_range(below, 840, 1160);
	}
}

/* Fractions and decimals are read exactly; nothing else is. */
TEST(shares_are_read)
{
	static const char *const wrong[] = {"",    "0",	  "0/3", "4/3",	 "1/0",
					    "-1/3", "1/3x", "1.5", "0.5/2", "1/",
					    ".",   "x",	  "1e0", "0.0000000000000000001"};
	struct share share;

	assert_true(share_read("1/3", &share) && share.part == 1 && share.of == 3);
	assert_true(share_read("0.25", &share) && share.part == 25 && share.of == 100);
	assert_true(share_read(".5", &share) && share.part == 5 && share.of == 10);
	assert_true(share_read("1", &share) && share.part == 1 && share.of == 1);
	for (unsigned int i = 0; i < RTE_DIM(wrong); i++)
		assert_false(share_read(wrong[i], &share));
}

/* Limits are floors of exact sums, in proportion, and the last one is the whole range. */
TEST(limits_are_exact)
{
	const struct share thirds[] = {{1, 3}, {1, 3}, {1, 3}};
	const struct share mixed[] = {{1, 2}, {333333333333333333, SHARE_MOST}, {1, 6}};
	const struct share half_in_all[] = {{1, 8}, {3, 8}};
	struct share primes[] = {{1, SHARE_MOST - 11}, {1, SHARE_MOST - 33}};
	uint32_t limits[3];

	assert_true(share_limits(thirds, 3, SPLIT_RANGE, limits));
	assert_int_equal(limits[0], 21845);
	assert_int_equal(limits[1], 43690);
	assert_int_equal(limits[2], 65536);
	assert_true(share_limits(mixed, 3, SPLIT_RANGE, limits));
	assert_int_equal(limits[0], 32768);
	assert_int_equal(limits[1], 54613);
	assert_int_equal(limits[2], 65536);
	assert_true(share_limits(half_in_all, 2, SPLIT_RANGE, limits));
	assert_int_equal(limits[0], 16384);
	assert_int_equal(limits[1], 65536);
	assert_false(share_limits(primes, 2, SPLIT_RANGE, limits)); /* no common denominator */
}
