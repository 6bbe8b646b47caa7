/*
 * Shared by the tests of functions: a rig that offers packets to a function and detects leaks.
 *
 * A test is a function named by the fact that could be false, and registers itself: main.c runs
 * those of a program in the order of its text. RIG_TEST(fact) offers packets and checks the packets
 * sent and the counters: it gets a `struct rig` with a fresh pool, and fails unless every packet
 * returned to it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/metadata.h"
#include "core/nf.h"

struct rig;

/* A packet of these bytes. */
struct rte_mbuf *packet_of(struct rig *rig, const void *bytes, uint16_t length);

/* Description of an IPv4 packet; fields default to 0 or as noted. */
struct packet_spec {
	uint32_t source, destination; /* in host byte order; RTE_IPV4(192, 0, 2, 1) */
	uint16_t source_port, destination_port;
	uint8_t protocol; /* UDP when 0 */
	uint8_t ttl;      /* 64 when 0 */
	uint8_t tcp_flags;
	uint16_t id;
	uint16_t fragment; /* RTE_IPV4_HDR_DF_FLAG, RTE_IPV4_HDR_MF_FLAG, offset in 8 bytes */
	uint16_t vlan;     /* tagged when not 0 */
	const void *payload;
	uint16_t payload_length; /* zeros if there is a length but no payload */
	enum nf_side from;
};

/* A packet with correct lengths and checksums. */
struct rte_mbuf *packet_from_spec(struct rig *rig, const struct packet_spec *packet_spec);

/* The side to which a function sent a packet. */
static inline enum nf_side side_of(const struct rte_mbuf *packet)
{
	const struct metadata *metadata = metadata_of_const(packet);

	assert_true(metadata->gate == NF_FORWARD || metadata->gate == NF_BACK);
	return metadata->gate == NF_BACK ? metadata->from : !metadata->from;
}

/* The IPv4 header behind an Ethernet header without tags. */
static inline struct rte_ipv4_hdr *ipv4_of(struct rte_mbuf *packet)
{
	return rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
}

/* Recompute the checksum of a changed header. */
static inline void header_checksum_set(struct rte_ipv4_hdr *ip)
{
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

/* Fail unless it is an IPv4 packet with a correct header checksum. */
void assert_header_checksum(struct rte_mbuf *packet);

/* Whether the checksums of the IPv4 header and, unless fragmented, of UDP or TCP are correct. */
bool checksums_right(struct rte_mbuf *packet);

#define RIG_PACKETS 1023
#define SECOND 1000000ull /* of the functions' clock */

struct rig {
	struct rte_mempool *pool;                            /* offered packets */
	struct rte_mempool *spare;                           /* packets that functions create */
	struct nf *nf;                                       /* created by rig_make */
	struct nf_out out;                                   /* packets sent for the last offer */
	struct accelerator *accelerators[ACCELERATOR_KINDS]; /* those of tests/offloading.h */
	enum nf_execution execution;                         /* 0: the function's default */
	void *owned;                                         /* see rig_own() */
	void (*owned_free)(void *owned);
};

int setup(void **state);
int teardown(void **state);

/* Create a function with settings, which must succeed; it is destroyed with the rig. */
struct nf *rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
		    unsigned int n_settings);

/* Settings in braces, and how many: RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 64}). */
#define SETTINGS(...)                                                                              \
	(const struct nf_setting[]){__VA_ARGS__},                                                  \
		RTE_DIM(((const struct nf_setting[]){__VA_ARGS__}))
#define RIG_MAKE(rig, name, ...) rig_make(rig, name, SETTINGS(__VA_ARGS__))

/* Let the rig free what a test made with it: at its end, or when it owns something else. */
void rig_own(struct rig *rig, void *owned, void (*owned_free)(void *owned));

/* The value of a named counter. */
uint64_t nf_count(const struct nf *nf, const char *counter);
uint64_t rig_count(const struct rig *rig, const char *counter);

struct rig_counted {
	const char *counter;
	uint64_t n;
};

/* Fail unless counters have these values: assert_counts(rig, {"outward", 3}, {"inward", 1}). */
void rig_check_counts(const struct rig *rig, const struct rig_counted *counts, size_t n);
#define assert_counts(rig, ...)                                                                    \
	rig_check_counts(rig, (const struct rig_counted[]){__VA_ARGS__},                           \
			 RTE_DIM(((const struct rig_counted[]){__VA_ARGS__})))

/* Offer a burst at `now_us`; `rig->out` then holds what was sent, and earlier packets are freed. */
void rig_process(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);

/* The same, then flush the function: all packets are sent or freed. */
void rig_offer_burst(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);
void rig_offer(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us);

/* Offer a packet that is not sent. */
void rig_frees(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us);

/* The only packet that was sent. */
struct rte_mbuf *rig_sent(const struct rig *rig);

/* A function of IPv4 frees ARP and IPv6, or lets them pass, as it is set. */
void rig_check_unknown(struct rig *rig, const char *name);

/* Offer packets that are malformed in every way, one after another. */
void offer_malformed(struct rig *rig);

/* Initialize EAL without hugepages, devices or telemetry, then run the tests. For main(). */
int test_main(const char *name, const struct CMUnitTest *tests, size_t n);

void test_register(struct CMUnitTest test);

#define TEST_ENTRY(test, way, setup, teardown)                                                     \
	__attribute__((constructor)) static void register_##test##way(void)                        \
	{                                                                                          \
		test_register((struct CMUnitTest){#test #way, run_##test, setup, teardown, NULL}); \
	}

#define TEST_FUNCTION(test, argument)                                                              \
	static void test(argument);                                                                \
	static void run_##test(void **state)                                                       \
	{                                                                                          \
		test(*state);                                                                      \
	}

/* A test whose argument is what cmocka's fixtures `setup` and `teardown` make and check. */
#define TEST_WITH(test, argument, setup, teardown)                                                 \
	TEST_FUNCTION(test, argument)                                                              \
	TEST_ENTRY(test, , setup, teardown)                                                        \
	static void test(__rte_unused argument)

#define RIG_TEST(test) TEST_WITH(test, struct rig *rig, setup, teardown)
#define TEST(test) TEST_WITH(test, void *no_fixture, NULL, NULL)
