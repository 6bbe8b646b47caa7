/* What the tests of NAT share: a host inside, a server outside, and what passes between them. */
#ifndef NFS_TESTS_NAT_RIG_H
#define NFS_TESTS_NAT_RIG_H

#include "tests/hostile.h"

#define SECOND 1000000ull

static const uint32_t host = RTE_IPV4(10, 0, 0, 1);
static const uint32_t server = RTE_IPV4(198, 51, 100, 7);
static const uint32_t outside = RTE_IPV4(203, 0, 113, 0);

static const struct nf_setting one_address[] = {{"addresses", 1}, {"sessions", 1024}};

static const struct made udp = {.source = RTE_IPV4(10, 0, 0, 1),
				.destination = RTE_IPV4(198, 51, 100, 7),
				.source_port = 1001,
				.destination_port = 53,
				.payload = "question",
				.payload_length = 8,
				.port = NF_INSIDE};

/* The ports of UDP and TCP; the identifier of ICMP as both. */
struct ends {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
};

struct ends ends_of(struct rte_mbuf *mbuf);

/* The only packet that was sent, as somebody on its way has it. */
struct rte_mbuf *copy_sent(struct rig *rig);

/*
 * Fail unless it has left with the address outside, or come in to another one, and with a right
 * header checksum if it had one before.
 */
void check_crossed(struct rte_mbuf *mbuf);

/* What is sent for a packet; its checksums must be right. */
struct ends offered(struct rig *rig, const struct made *made, uint64_t now_us);

/* The answer to what left with these ends. */
struct made answer(const struct made *made, struct ends left);

#endif
