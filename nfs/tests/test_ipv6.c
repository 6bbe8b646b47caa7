/* Headers of IPv6 behind extension headers (RFC 8200), and flows of IPv6. */
#include <rte_hash_crc.h>

#include "core/random.h"
#include "tests/ipv6.h"

#define EXTENSIONS(...)                                                                            \
	.extensions = (const uint8_t[]){__VA_ARGS__},                                              \
	.extension_bytes = sizeof((const uint8_t[]){__VA_ARGS__})

enum { HOPS = 0, UDP = 17, ROUTING = 43, FRAGMENT = 44, AUTHENTICATION = 51, OPTIONS = 60 };

static struct packet headers_of(struct rig *rig, const struct ipv6_spec *spec)
{
	struct rte_mbuf *packet = ipv6_packet(rig, spec);
	const struct packet headers = packet_ip_headers(packet);

	rte_pktmbuf_free(packet);
	return headers;
}

/* UDP is found behind any extension headers, as long as each says. */
RIG_TEST(headers_are_found_behind_extensions)
{
	const struct ipv6_spec specs[] = {
		{.payload_length = 10},
		{.first = HOPS, .payload_length = 10, EXTENSIONS(UDP, 0, 0, 0, 0, 0, 0, 0)},
		{.first = OPTIONS,
		 .payload_length = 10,
		 EXTENSIONS(ROUTING, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UDP, 0, 0, 0, 0,
			    0, 0, 0)},
		{.first = AUTHENTICATION,
		 .payload_length = 10,
		 EXTENSIONS(UDP, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			    0)},
		{.first = FRAGMENT, .payload_length = 10, EXTENSIONS(UDP, 0, 0, 0, 1, 2, 3, 4)},
	};

	for (size_t i = 0; i < RTE_DIM(specs); i++) {
		const struct packet headers = headers_of(rig, &specs[i]);

		assert_int_equal(headers.type, PACKET_IPV6);
		assert_int_equal(headers.l4, 54 + specs[i].extension_bytes);
		assert_int_equal(headers.protocol, UDP);
		assert_int_equal(headers.payload_length, 10);
		assert_false(headers.fragment);
	}
}

/* The first fragment has ports, a later one has not, whatever bytes it begins with. */
RIG_TEST(fragments_are_told_apart)
{
	const struct ipv6_spec first = {.first = FRAGMENT, .payload_length = 8,
					EXTENSIONS(UDP, 0, 0, 1, 0, 0, 0, 7)};
	const struct ipv6_spec later = {.first = FRAGMENT, .payload_length = 8,
					EXTENSIONS(UDP, 0, 0, 8, 0, 0, 0, 7)};
	struct packet headers = headers_of(rig, &first);

	assert_true(headers.fragment && !headers.non_initial_fragment && headers.l4 == 62);
	headers = headers_of(rig, &later);
	assert_true(headers.fragment && headers.non_initial_fragment && headers.l4 == 0);
	assert_int_equal(headers.protocol, UDP);
}

/* What hosts do not take, or may take for something else, is malformed. */
RIG_TEST(ambiguous_headers_are_malformed)
{
	const struct ipv6_spec specs[] = {
		/* hop-by-hop options that are not first (RFC 8200, 4.1) */
		{.first = OPTIONS, EXTENSIONS(HOPS, 0, 0, 0, 0, 0, 0, 0, UDP, 0, 0, 0, 0, 0, 0, 0)},
		/* two fragment headers */
		{.first = FRAGMENT,
		 EXTENSIONS(FRAGMENT, 0, 0, 0, 0, 0, 0, 1, UDP, 0, 0, 0, 0, 0, 0, 1)},
		/* a first fragment whose headers go on in the next one (RFC 7112) */
		{.first = FRAGMENT,
		 EXTENSIONS(OPTIONS, 0, 0, 1, 0, 0, 0, 1, UDP, 9, 0, 0, 0, 0, 0, 0)},
		/* a fragment before others of a length that is no multiple of 8 (RFC 8200, 4.5) */
		{.first = FRAGMENT, .payload_length = 3, EXTENSIONS(UDP, 0, 0, 1, 0, 0, 0, 1)},
		/* a fragment that ends behind 65,535 bytes */
		{.first = FRAGMENT, .payload_length = 8, EXTENSIONS(UDP, 0, 0xff, 0xf8, 0, 0, 0, 1)},
		/* a header that is longer than the packet */
		{.first = OPTIONS, EXTENSIONS(UDP, 3, 0, 0, 0, 0, 0, 0)},
	};

	for (size_t i = 0; i < RTE_DIM(specs); i++)
		assert_int_equal(headers_of(rig, &specs[i]).type, PACKET_MALFORMED);
}

/* A packet that ends before a byte that its headers promise is malformed. */
RIG_TEST(cut_packets_are_malformed)
{
	const struct ipv6_spec spec = {.first = HOPS, .payload_length = 10,
				       EXTENSIONS(UDP, 0, 0, 0, 0, 0, 0, 0)};
	const uint16_t length = 54 + 8 + 8 + 10;

	for (uint16_t cut = 1; cut <= length - 14; cut++) {
		struct rte_mbuf *packet = ipv6_packet(rig, &spec);

		assert_int_equal(rte_pktmbuf_trim(packet, cut), 0);
		assert_int_equal(packet_ip_headers(packet).type, PACKET_MALFORMED);
		rte_pktmbuf_free(packet);
	}
}

/* Flows differ in each address, port and protocol, and from those of IPv4. */
RIG_TEST(flows_differ_in_every_field)
{
	const struct ipv6_spec specs[] = {
		{.source = 1, .destination = 2, .source_port = 3, .destination_port = 4},
		{.source = 2, .destination = 1, .source_port = 3, .destination_port = 4},
		{.source = 1, .destination = 3, .source_port = 3, .destination_port = 4},
		{.source = 1, .destination = 2, .source_port = 4, .destination_port = 3},
		{.source = 1, .destination = 2, .source_port = 3, .destination_port = 4,
		 .protocol = IPPROTO_TCP},
	};
	struct flow_key keys[RTE_DIM(specs)];

	assert_int_equal(metadata_register(), 0);
	for (size_t i = 0; i < RTE_DIM(specs); i++) {
		struct rte_mbuf *packet = ipv6_packet(rig, &specs[i]);
		const struct packet headers = packet_ip_headers(packet);

		keys[i] = packet_flow(packet, &headers);
		assert_int_equal(keys[i].family, FLOW_IPV6);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(&keys[i], &keys[k], sizeof(keys[i]));
		rte_pktmbuf_free(packet);
	}
}

/*
 * Flows of one network stay apart, even of one for which the product of half of the address is small:
 * its changes are in few bits of the sum.
 */
TEST(no_network_makes_flows_alike)
{
	uint64_t words[2][4] = {{0}}, random = 1;
	struct flow_key keys[2];
	int alike = 0;

	for (int i = 0; i < 1000; i++) {
		words[0][0] = (random_next(&random) >> 32) - packet_flow_secrets[0];
		for (int k = 1; k < 4; k++)
			words[0][k] = random_next(&random);
		memcpy(words[1], words[0], sizeof(words[0]));
		words[1][1] ^= 1;
		for (int k = 0; k < 2; k++)
			flow_between_ipv6(&keys[k], (const uint8_t *)words[k],
					  (const uint8_t *)(words[k] + 2), UDP, 0);
		alike += memcmp(&keys[0], &keys[1], sizeof(keys[0])) == 0;
	}
	assert_int_equal(alike, 0);
}

/* Keys that collide under a hash without a secret, whatever its seed, do not where all tables have one. */
TEST(tables_hash_with_a_secret)
{
	static const struct flow_key keys[] = {
		{.protocol = 17, .source = 0x54a0e708, .destination = 0xa22aabae},
		{.protocol = 17, .source = 0x0e330c8d, .destination = 0xe3b25ae8},
	};

	assert_int_equal(rte_hash_crc(&keys[0], sizeof(keys[0]), 7),
			 rte_hash_crc(&keys[1], sizeof(keys[1]), 7));
	assert_int_not_equal(flow_hash_of(&keys[0], sizeof(keys[0]), 7),
			     flow_hash_of(&keys[1], sizeof(keys[1]), 7));
}
