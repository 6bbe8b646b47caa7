/* A testbed: the machine, who works on it, and what it offers. */
#ifndef NFS_TESTBED_TESTBED_H
#define NFS_TESTBED_TESTBED_H

#include "testbed/counts.h"
#include "testbed/machine.h"
#include "testbed/measure.h"
#include "testbed/options.h"

/* How still the machine holds while it counts in registers. */
struct null_control {
	double taken_s; /* clock_ns(); 0: not yet */
	double alone_mops;
	double beside_pct; /* change of the slowest core when all cores count */
	double repeat_pct; /* change when the same is measured again */
	double standard_error_pct;
	bool too_noisy;
};

/* Workloads that may share a core. */
#define MOST_SHARING 8

struct testbed {
	struct options options;
	struct run_limits limits; /* of the options, until the answer at hand is due */
	struct machine machine;
	struct workers workers;
	struct engines engines;
	struct counting counting;
	struct null_control null_control;
	char name[96];
	const volatile bool *stop;
};

/* Look at the machine, start its workers and engines. 0, or a negative errno after printing why. */
int testbed_open(struct testbed *testbed, const volatile bool *stop);
void testbed_close(struct testbed *testbed);

/* Cores that workloads may take while every accelerator has its engine. */
unsigned int testbed_cores(const struct testbed *testbed);

/*
 * Why what uses these accelerators, a sum of NF_USES(), cannot be run beside a bench here, as text;
 * empty when it can.
 */
void testbed_missing(const struct testbed *testbed, unsigned int accelerators, char *text,
		     size_t size);
/* Whether the bench is offered. */
bool testbed_offers(const struct testbed *testbed, const struct bench_kind *bench);

/* The null control, when none was taken or the last is old; says on stderr what it found. */
void testbed_check_null(struct testbed *testbed);

#endif
