/* The state of nf-switch, and its parts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>

#include "rack/control.h"
#include "rack/interface.h"
#include "rack/link.h"
#include "run/captures.h"

/* Packets that the pipeline may work on at a time: its threads. */
#define SWITCH_MOST_IN_FLIGHT 16

struct switch_link_option {
	const char *name, *path;
};

struct switch_options {
	const char *spec, *entries, *names, *in, *out, *report;
	const char *rules; /* in place of a program: the last link, to a process that runs rules */
	struct switch_link_option links[LINKS_MOST];
	int n_links;
	unsigned int memory_mb, in_flight;
	bool check;          /* only read the program and its entries */
	bool control;        /* stay up, and take orders */
};

/* As command_line_read(). */
int switch_options_read(struct switch_options *options, int argc, char **argv);

/* In the private area of each packet. */
struct switch_packet {
	uint64_t time_us; /* when it came in from the world */
};

/* In front of each packet, for a program with a header of this shape, `arrival`: it meters by that. */
struct switch_arrival {
	rte_be64_t time_us;
	rte_be32_t bytes;
} __rte_packed;

struct switch_port {
	struct switch_state *state;
	int link;        /* -1: the world, or no link */
	uint64_t answer; /* the last round that the other end flushed */
};

struct switch_counts {
	uint64_t received, sent; /* from and to the world */
	uint64_t malformed;      /* of them; they do not enter the pipeline */
	uint64_t dropped;        /* at the last port */
	uint64_t nowhere;        /* sent to a port that is not there */
	uint64_t broken;         /* left the pipeline with a length that no packet has */
	uint64_t unsent;         /* the interface to the world did not take them */
};

struct switch_state {
	const struct switch_options *options;
	struct rte_swx_pipeline *pipeline;
	struct rte_swx_ctl_pipeline *control;
	struct rte_mempool *pool;
	struct capture_reader *in;
	struct capture_writer *out;
	struct interface *world_in, *world_out; /* in place of captures */
	struct control orders;
	struct links *links;
	struct switch_port ports[LINKS_MOST + 2]; /* the world, links, and where packets end */
	struct switch_counts counts;
	struct switch_names *names;      /* NULL: none */
	struct switch_names *next_names; /* of the tables that are prepared */
	bool prepared;                   /* tables, for the next order to swap */
	bool has_arrivals;
	unsigned int in_flight; /* packets in the pipeline */
	uint64_t moves;         /* whatever was received */
	bool paused;            /* nothing is let in from the world */
	bool draining;          /* until nothing moves, which is answered */
	bool world_ended;
	bool ending; /* what already waits is the last that comes from the world */
	bool failed; /* to write, to send, or for want of memory */
	bool bad;    /* input */
};

/* Make the ports of the pipeline: world, links, and the last one, which drops. */
bool switch_ports_make(struct switch_state *state);

/* What ports do at the end that is the world: the next packet, or NULL; and send one, and free it. */
struct rte_mbuf *switch_world_next(struct switch_state *state);
void switch_world_send(struct switch_state *state, struct rte_mbuf *mbuf);
/* A packet as a message, whose bytes are its own; and a message as a packet, or NULL. */
struct link_message switch_message_of(const struct rte_mbuf *mbuf);
struct rte_mbuf *switch_packet_of(struct switch_state *state, const struct link_message *message);

/* Let packets pass between the world, links and the process that runs rules, some at a time. */
void switch_rules_run(struct switch_state *state);

/* Names of places in the register arrays. */
struct switch_names;
struct switch_names *switch_names_read(const char *path, struct rte_swx_pipeline *pipeline);
void switch_names_free(struct switch_names *names);
/* Go on with the names of other tables, whose rules are counted from 0. */
void switch_names_replace(struct switch_state *state);

/* Write the report to a file, or to stdout. False after printing why. */
bool switch_report_write(const struct switch_state *state, bool interrupted);
