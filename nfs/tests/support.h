/*
 * Shared by the tests of functions: a rig that offers packets to a function and detects leaks.
 *
 * A test offers packets and checks the packets sent and the counters. `setup` and `teardown` are
 * cmocka fixtures: each test gets a `struct rig` with a fresh pool, and fails unless every packet
 * returned to it.
 */
#pragma once

#include "core/nf.h"
#include "tests/packets.h"

#define RIG_PACKETS 1023
#define SECOND 1000000ull /* of the functions' clock */

struct rig {
	struct rte_mempool *pool;                            /* offered packets */
	struct rte_mempool *spare;                           /* packets that functions create */
	struct nf *nf;                                       /* created by rig_make */
	struct nf_out out;                                   /* packets sent for the last offer */
	struct accelerator *accelerators[ACCELERATOR_KINDS]; /* those of tests/offloading.h */
	enum nf_execution execution;                         /* 0: the function's default */
};

int setup(void **state);
int teardown(void **state);

/* Create a function with settings, which must succeed; it is destroyed with the rig. */
struct nf *rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
		    unsigned int n_settings);

/* The value of a named counter. */
uint64_t rig_count(const struct rig *rig, const char *counter);

/* Offer a burst at `now_us`; `rig->out` then holds what was sent, and earlier packets are freed. */
void rig_process(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);

/* The same, then flush the function: all packets are sent or freed. */
void rig_offer_burst(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);
void rig_offer(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us);

/* The only packet that was sent. */
struct rte_mbuf *rig_sent(const struct rig *rig);

/* Offer packets that are malformed in every way, one after another. */
void offer_malformed(struct rig *rig);

/* Initialize EAL without hugepages, devices or telemetry, then run the tests. For main(). */
int test_main(const char *name, const struct CMUnitTest *tests, size_t n);
