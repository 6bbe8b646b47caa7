/*
 * What the two backends of a BlueField card have in common (DOCA 2.2): the device, a work queue,
 * and memory that the card may read and write. None of this has run on a card yet.
 *
 * Packets lie in memory that the card does not know. Each job's bytes are copied to memory that it
 * does: a copy costs less than telling the card about each packet.
 */
#ifndef NFS_ACCELERATORS_DOCA_CARD_H
#define NFS_ACCELERATORS_DOCA_CARD_H

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_mmap.h>

#include "accelerators/backend.h"

#define DOCA_CARD_JOBS 128
#define DOCA_CARD_INPUT 2048
/* What does not shrink grows: by an eighth, where each byte is a literal of a fixed code. */
#define DOCA_CARD_OUTPUT (2 * DOCA_CARD_INPUT)

/* A job that the card has. */
struct doca_card_job {
	struct accelerator_job *job;
	struct doca_buf *in, *out;
	bool done;
};

struct doca_card {
	const struct doca_card_engine *engine;
	struct doca_dev *device;
	struct doca_ctx *context;
	bool has_device, started, has_queue; /* the context */
	struct doca_workq *queue;
	struct doca_mmap *memory;
	struct doca_buf_inventory *buffers;
	uint8_t *bytes;                            /* each job's input, then each one's output */
	struct doca_card_job jobs[DOCA_CARD_JOBS]; /* a ring: jobs go back in their order */
	unsigned int head, tail;
};

/* What an engine of the card adds. */
struct doca_card_engine {
	const char *name;
	size_t bytes; /* of its state, which begins with a doca_card */
	doca_error_t (*supports)(struct doca_devinfo *device);
	/* Create the engine's own library, and set `card->context`. */
	bool (*make)(struct doca_card *card);
	/* With its device, before it starts; NULL: nothing. */
	bool (*set_up)(struct doca_card *card);
	/* Undo `make`. */
	doca_error_t (*unmake)(struct doca_card *card);
	/* Read what the card answered. */
	void (*finish)(struct doca_card_job *done, const struct doca_event *event);
};

/* Whether what DOCA answered is success; else prints what could not be done. */
bool doca_card_did(const struct doca_card *card, doca_error_t answer, const char *what);

/* An engine on the first device that can do what it does; NULL after printing why. */
void *doca_card_create(const struct doca_card_engine *engine);

/* What backends do with jobs, and in the end. */
uint16_t doca_card_poll(void *state, struct accelerator_job **jobs, uint16_t n);
void doca_card_destroy(void *state);

/* TAKEN: `next` is to be submitted, its input is copied. Else that is the answer. */
enum backend_status doca_card_next(struct doca_card *card, struct accelerator_job *job,
				   struct doca_card_job **next);
enum backend_status doca_card_submit(struct doca_card *card, const struct doca_job *request);

static inline unsigned int doca_card_number(const struct doca_card *card,
					    const struct doca_card_job *job)
{
	return (unsigned int)(job - card->jobs);
}

#endif
