/*
 * What the tests of functions share: packets to put in, and a rig that notices what leaks.
 *
 * A test is packets in, packets out, counters. `setup` and `teardown` are cmocka fixtures: each
 * test gets a `struct rig` with a fresh pool, and fails if not every packet came back to it.
 */
#ifndef NFS_TESTS_SUPPORT_H
#define NFS_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/nf.h"
#include "core/packet.h"

#define RIG_PACKETS 1023

struct rig {
	struct rte_mempool *pool;                            /* packets that go in */
	struct rte_mempool *spare;                           /* packets that functions make */
	struct nf *nf;                                       /* made by rig_make */
	struct nf_out out;                                   /* what the last offer sent */
	struct accelerator *accelerators[ACCELERATOR_KINDS]; /* those of tests/offloading.h */
	enum nf_execution execution;                         /* the function's usual one when 0 */
};

int setup(void **state);
int teardown(void **state);

/* A function with settings, which must succeed; it is destroyed with the rig. */
struct nf *rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
		    unsigned int n_settings);

/* The value of a counter by its name. */
uint64_t rig_count(const struct rig *rig, const char *counter);

/* Offer one packet at `now_us`; `rig->out` then holds what was sent, and the earlier is freed. */
void rig_offer(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us);
void rig_offer_burst(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);

/* A packet from bytes, as they are. */
struct rte_mbuf *packet_of(struct rig *rig, const void *bytes, uint16_t length);

/* What an IPv4 packet is made of; what is not said is 0 or as the comment tells. */
struct made {
	uint32_t source, destination; /* in host order; RTE_IPV4(192, 0, 2, 1) */
	uint16_t source_port, destination_port;
	uint8_t protocol; /* UDP when 0 */
	uint8_t ttl;      /* 64 when 0 */
	uint8_t tcp_flags;
	uint16_t id;
	uint16_t fragment; /* RTE_IPV4_HDR_DF_FLAG, RTE_IPV4_HDR_MF_FLAG, offset in 8 bytes */
	uint16_t vlan;     /* tagged when not 0 */
	const void *payload;
	uint16_t payload_length; /* zeros when there is a length but no payload */
	uint16_t port;           /* NF_INSIDE or NF_OUTSIDE */
};

/* A packet with right lengths and checksums. */
struct rte_mbuf *packet_made(struct rig *rig, const struct made *made);

/* Whether the IPv4 header checksum, and the one of UDP or TCP when whole, are right. */
bool checksums_right(struct rte_mbuf *packet);

/* Every way that a packet can be wrong, one after another, offered to the function on the rig.
 */
void offer_malformed(struct rig *rig);

/* EAL without hugepages, devices or telemetry, then the tests. For main(). */
int test_main(const char *name, const struct CMUnitTest *tests, size_t n);

#endif
