/* What the tests of functions that use accelerators share. */
#ifndef NFS_TESTS_OFFLOADING_H
#define NFS_TESTS_OFFLOADING_H

#include "tests/support.h"

/* Fixtures: a rig whose function executes so, with every accelerator that works here. */
int setup_pipeline(void **state);
int setup_to_completion(void **state);

/* A test of both executions. */
#define BOTH(test)                                                                                 \
	{#test " (pipeline)", test, setup_pipeline, teardown, NULL},                               \
	{                                                                                          \
		#test " (run to completion)", test, setup_to_completion, teardown, NULL            \
	}

/* The witness of a rule by its name. */
const char *witness_of(const char *rule);

/* A UDP packet of a flow, told by a number, with a text as its payload. */
struct rte_mbuf *packet_with(struct rig *rig, uint16_t flow, const char *payload);

/* Offer a burst, without waiting for what the function keeps; `rig->out` is what it sent. */
void rig_offer_undrained(struct rig *rig, struct rte_mbuf **packets, uint16_t n);

/*
 * Offer hundreds of packets with and without payload, none of which the function drops: they must
 * leave once each, in the order in which they came, whatever the number of queues, the window and
 * the execution, and whoever serves.
 */
void keeps_the_order(struct rig *rig, const char *name);

/* Malformed and hostile packets, IPv6, ARP, tags: no crash, and nothing leaks. */
void bears_anything(struct rig *rig, const char *name);

/*
 * What lies in several segments is scanned whole where the first has room for it. Where not, and
 * non-initial fragments, which cannot be scanned, are counted, and `passes` or are dropped.
 */
void bears_segments(struct rig *rig, const char *name, bool passes);

#endif
