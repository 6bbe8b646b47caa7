/* Two ports that forward by rules, as far as DOCA Flow's user can tell; it confirms when asked. */
#ifndef NFS_TESTS_DOCA_FAKE_FLOW_H
#define NFS_TESTS_DOCA_FAKE_FLOW_H

#include <doca_flow.h>

#define FAKE_FLOW_DEPTH                                                                            \
	128 /* changes that its queue holds, as DOCA's does unless told otherwise                  \
	     */

struct fake_flow {
	bool refusing;         /* told by the test: rules are refused, when they are confirmed */
	uint64_t forwarded;    /* told by the test: packets by each rule */
	unsigned int inits;    /* of DOCA Flow */
	unsigned int ports;    /* that are started */
	unsigned int rules;    /* of connections that are there */
	unsigned int queued;   /* changes that are not confirmed */
	unsigned int refused;  /* for want of room in the queue */
	unsigned int dangling; /* uses of a rule that is not there */
};

extern struct fake_flow fake_flow;

#endif
