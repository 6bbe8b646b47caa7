/* The state of a testbed: the machine, its workers and engines, and its options. */
#pragma once

#include "testbed/counts.h"
#include "testbed/machine.h"
#include "testbed/measure.h"
#include "testbed/options.h"

/* How stable the machine is, measured with a loop in registers. */
struct null_control {
	double taken_s; /* clock_ns() in s; 0: not yet */
	double alone_mops;
	double beside_pct; /* change of the slowest core when all cores run the loop */
	double repeat_pct; /* change when the measurement is repeated */
	double beside_error_pct, repeat_error_pct; /* standard errors of these changes */
	double standard_error_pct;                 /* of the loop alone */
	bool too_noisy;
};

/* Most workloads that may share a core. */
#define MOST_SHARING 8

struct testbed {
	struct options options;
	struct run_limits limits; /* limits of the current request */
	struct machine machine;
	struct workers workers;
	struct engines engines;
	struct counting counting;
	struct null_control null_control;
	unsigned int runs, best_efforts; /* answered so far, and how many of them by best effort */
	char name[96];
	const volatile bool *stop;
};

/* Read the machine, start workers and engines. 0, or a negative errno after printing why. */
int testbed_open(struct testbed *testbed, const volatile bool *stop);
void testbed_close(struct testbed *testbed);

/* Cores for workloads while every accelerator has its engine. */
unsigned int testbed_cores(const struct testbed *testbed);

/*
 * Why a load that uses `accelerators`, a sum of NF_USES(), cannot run beside a bench on this
 * machine; empty if it can.
 */
void testbed_missing(const struct testbed *testbed, unsigned int accelerators, char *text,
		     size_t size);
/* Whether a function can be given so many cores, where no other workload needs them. */
bool testbed_gives(const struct testbed *testbed, unsigned int cores);
/* Whether the bench is offered. */
bool testbed_offers(const struct testbed *testbed, const struct bench_kind *bench);

/* Take the null control if the last one is too old, and print it. */
void testbed_check_null(struct testbed *testbed);
