/*
 * A card that is none: what DOCA does as far as an engine's backend can tell. It refuses what comes
 * in an order that DOCA's documentation rules out, and answers the latest job first.
 */
#ifndef NFS_TESTS_DOCA_FAKE_CARD_H
#define NFS_TESTS_DOCA_FAKE_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>

#define FAKE_CARD_DEPTH 100 /* jobs that its queue takes, of as many as it was asked for */

struct fake_card {
	/* told by the test */
	unsigned int failing;  /* the step that fails, counted from 1; 0: none */
	doca_error_t refusing; /* what the next job is answered with at once */
	bool breaking;         /* jobs fail after they were taken */

	/* told to the test */
	unsigned int steps; /* that made something */
	unsigned int wrong; /* that came out of order */
	bool listed, device, has_library, has_device, started, queue, has_queue, memory,
		memory_has_device, memory_started, inventory, inventory_started;
	unsigned int buffers, matches; /* that are in use */
};

extern struct fake_card fake_card;

/* There is one of everything but buffers. */
extern char fake_thing[1];
#define THE(type) ((struct type *)(void *)fake_thing)

struct doca_buf {
	uint8_t *data;
	size_t length, room;
};

/* Make something, or undo it: it must be the other way round, and that be `allowed` now. */
doca_error_t fake_step(bool allowed, bool *is, bool made);

#endif
