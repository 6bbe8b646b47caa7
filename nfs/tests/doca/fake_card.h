/*
 * A simulated card: DOCA as far as an engine's backend uses it. It rejects calls in an order that
 * DOCA's documentation forbids, and completes the latest job first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>

#define FAKE_CARD_DEPTH 100 /* capacity of its queue, whatever depth was requested */

struct fake_card {
	/* set by the test */
	unsigned int failing;   /* number of the step that fails, from 1; 0: none */
	doca_error_t rejection; /* immediate result of the next job */
	bool breaking;          /* jobs fail after submission */

	/* results for the test */
	unsigned int steps; /* steps that created something */
	unsigned int wrong; /* calls in a forbidden order */
	bool listed, device, has_library, has_device, started, queue, has_queue, memory,
		memory_has_device, memory_started, inventory, inventory_started;
	unsigned int buffers, matches; /* currently in use */
};

extern struct fake_card fake_card;

/* One of each resource, besides buffers. */
extern char fake_thing[1];
#define THE(type) ((struct type *)(void *)fake_thing)

struct doca_buf {
	uint8_t *data;
	size_t length, room;
};

/* Create a resource or destroy it; it must exist only if destroyed, and `allowed` must be true. */
doca_error_t fake_step(bool allowed, bool *is, bool packet_spec);
