/*
 * Two simulated ports that forward by rules, as far as DOCA Flow's users can see; changes are
 * confirmed when polled.
 */
#pragma once

#include <doca_flow.h>

#define FAKE_FLOW_DEPTH 128 /* capacity of its queue, DOCA's default */

struct fake_flow {
	bool rejection;        /* set by the test: rules are rejected at confirmation */
	uint64_t forwarded;    /* set by the test: packets per rule */
	unsigned int inits;    /* starts of DOCA Flow */
	unsigned int ports;    /* started ports */
	unsigned int rules;    /* existing rules of connections */
	unsigned int queued;   /* unconfirmed changes */
	unsigned int rejected; /* rejected because the queue was full */
	unsigned int dangling; /* uses of a rule that does not exist */
};

extern struct fake_flow fake_flow;
