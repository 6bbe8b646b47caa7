/*
 * What the tests of functions share: packets to put in, and a rig that notices what leaks.
 *
 * A test is packets in, packets out, counters. `setup` and `teardown` are cmocka fixtures: each
 * test gets a `struct rig` with a fresh pool, and fails if not every packet came back to it.
 */
#ifndef NFS_TESTS_SUPPORT_H
#define NFS_TESTS_SUPPORT_H

#include "core/nf.h"
#include "tests/packets.h"

#define RIG_PACKETS 1023
#define SECOND 1000000ull /* of the clock that functions are told */

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

/* Offer a burst at `now_us`; `rig->out` then holds what was sent, and the earlier is freed. */
void rig_process(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);

/* The same, and have sent or freed what the function keeps: a packet in, and what becomes of it. */
void rig_offer_burst(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us);
void rig_offer(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us);

/* The only packet that was sent. */
struct rte_mbuf *rig_sent(const struct rig *rig);

/* Every way that a packet can be wrong, one after another, offered to the function. */
void offer_malformed(struct rig *rig);

/* EAL without hugepages, devices or telemetry, then the tests. For main(). */
int test_main(const char *name, const struct CMUnitTest *tests, size_t n);

#endif
