/* Shared by the tests of NAT: an inside host, an outside server, and their packets. */
#pragma once

#include "tests/hostile.h"

#define SECOND 1000000ull

static const uint32_t host = RTE_IPV4(10, 0, 0, 1);
static const uint32_t server = RTE_IPV4(198, 51, 100, 7);
static const uint32_t outside = RTE_IPV4(203, 0, 113, 0);

static const struct nf_setting one_address[] = {{"addresses", 1}, {"sessions", 1024}};

static const struct packet_spec udp = {.source = RTE_IPV4(10, 0, 0, 1),
				       .destination = RTE_IPV4(198, 51, 100, 7),
				       .source_port = 1001,
				       .destination_port = 53,
				       .payload = "question",
				       .payload_length = 8,
				       .from = NF_INSIDE};

/* The ports of UDP and TCP, or twice the identifier of ICMP. */
struct ends {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
};

struct ends ends_of(struct rte_mbuf *mbuf);

/* A copy of the only packet that was sent. */
struct rte_mbuf *copy_sent(struct rig *rig);

/*
 * Fail unless the packet was sent outside with the external address, or inside to a host, with a
 * correct header checksum if it arrived with one.
 */
void check_crossed(struct rte_mbuf *mbuf);

/* The endpoints of the packet sent for an offered one, whose checksums must be correct. */
struct ends offered(struct rig *rig, const struct packet_spec *packet_spec, uint64_t now_us);

/* The reply to a packet that was sent with these endpoints. */
struct packet_spec reply_of(const struct packet_spec *packet_spec, struct ends left);

#define LONG_PACKET 2000 /* most bytes of a payload, which a buffer has room for */

/* A packet with a random payload; a reply if it is ICMP from outside. */
struct rte_mbuf *long_packet(struct rig *rig, const struct packet_spec *like, uint16_t length,
			     uint64_t *random);

/* The same packet, from the same side. */
struct rte_mbuf *copy_of(struct rig *rig, struct rte_mbuf *packet);

/* The fragments of a copy of a packet, 2 to NF_BURST; returns their number. */
uint16_t fragments_of(struct rig *rig, struct rte_mbuf *packet, uint16_t mtu,
		      struct rte_mbuf **fragments);
