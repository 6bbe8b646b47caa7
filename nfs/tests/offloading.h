/* Shared by the tests of functions that use accelerators. */
#pragma once

#include <pthread.h>

#include "accelerators/accelerator.h"
#include "tests/support.h"

/* Fixtures: a rig whose function executes in this way, with every available accelerator. */
int setup_pipeline(void **state);
int setup_to_completion(void **state);
/* The same in a new current folder, for teardown_folder(). */
int setup_engines_in_folder(void **state);

/* A test in both ways of execution. */
#define BOTH_TEST(test)                                                                            \
	TEST_FUNCTION(test, struct rig *rig)                                                       \
	TEST_ENTRY(test, _pipeline, setup_pipeline, teardown)                                      \
	TEST_ENTRY(test, _to_completion, setup_to_completion, teardown)                            \
	static void test(struct rig *rig)

/* A thread that serves an accelerator. */
struct server {
	pthread_t thread;
	struct accelerator *accelerator;
	bool stop;
};

void server_start(struct server *server);
void server_stop(struct server *server);

/* Run a job, waiting for it. */
void queue_run(struct accelerator_queue *queue, struct accelerator_job *job);

/* The witness of a named rule. */
const char *witness_of(const char *rule);

/* A UDP packet of flow number `flow`, with a text as its payload. */
struct rte_mbuf *packet_with(struct rig *rig, uint16_t flow, const char *payload);

/* Offer a burst without flushing the function; `rig->out` holds what it sent. */
void rig_offer_unflushed(struct rig *rig, struct rte_mbuf **packets, uint16_t n);

/*
 * Offer hundreds of packets with and without payload, none of which the function drops: each must
 * leave once, in order, for any number of queues, window, execution and serving thread.
 */
void check_order_kept(struct rig *rig, const char *name);

/* Malformed and hostile packets, IPv6, ARP, tags: no crash and no leak. */
void check_survives_any_packet(struct rig *rig, const char *name);

/*
 * Segmented packets are scanned completely if the first segment has room. Otherwise they and
 * non-initial fragments are counted, and pass if `passes`, else they are dropped.
 */
void check_segments(struct rig *rig, const char *name, bool passes);

/*
 * Of each function that scans: packets leave once each and in order, for any number of queues and
 * window; and no packet makes it crash or leak, and malformed ones are freed.
 */
#define SCANNING_TESTS(name)                                                                       \
	BOTH_TEST(packets_keep_their_order)                                                        \
	{                                                                                          \
		check_order_kept(rig, name);                                                       \
	}                                                                                          \
	BOTH_TEST(survives_any_packet)                                                             \
	{                                                                                          \
		check_survives_any_packet(rig, name);                                              \
	}
