/* The state of nf-switch-bench, and its parts. */
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>

#define BENCH_MOST_PROGRAMS 4
#define BENCH_MOST_LINKS 8
#define BENCH_MOST_ROUNDS 10000
#define BENCH_MOST_IN_FLIGHT 16

struct bench_program {
	const char *spec, *entries;
};

struct bench_options {
	const char *in;
	struct bench_program programs[BENCH_MOST_PROGRAMS];
	unsigned int n_programs, links, in_flight, rounds;
};

/* An exit status, 0 after --help, 2 after printing what is wrong; -1 to go on. */
int bench_options_read(struct bench_options *options, int argc, char **argv);

#define ROUND 256
#define MOST_PACKETS 4096
/* Where packets enter: the world, and the first link. */
#define ENDS 2
/* Ports: the world, links, and where packets are dropped. */
#define MOST_PORTS (BENCH_MOST_LINKS + 2)

struct bench;

/* Packets that enter at a port; those of a round are copies. */
struct bench_end {
	struct rte_mbuf *packets[MOST_PACKETS], *round[ROUND];
	unsigned int n, first;      /* packets, and which of them begins the next round */
	unsigned int size, entered; /* of the round */
};

struct bench_port {
	struct bench *bench;
	uint32_t number;
};

struct bench_run {
	struct rte_swx_pipeline *pipeline;
	struct rte_swx_ctl_pipeline *control;
	double *cycles, *ratios; /* per round */
};

struct bench {
	struct bench_options options;
	struct rte_mempool *pool;
	struct bench_end ends[ENDS];
	struct bench_port ports[MOST_PORTS];
	struct bench_run runs[BENCH_MOST_PROGRAMS];
	unsigned int in_flight, left; /* packets in the pipeline; how many of the round left it */
	uint32_t left_at;             /* the port of the packet that left last */
	struct rte_swx_pkt last;
};
