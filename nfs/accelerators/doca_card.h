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
#define DOCA_CARD_ROOM 2048

/* A job that the card has. */
struct doca_card_job {
	struct accelerator_job *job;
	struct doca_buf *in, *out;
	bool done;
};

struct doca_card {
	const char *name;
	struct doca_dev *device;
	struct doca_ctx *context;
	struct doca_workq *queue;
	struct doca_mmap *memory;
	struct doca_buf_inventory *buffers;
	uint8_t *bytes; /* DOCA_CARD_ROOM for each job's input, then as many for the outputs */
	struct doca_card_job jobs[DOCA_CARD_JOBS]; /* a ring: jobs go back in their order */
	unsigned int head, tail;
};

/* Whether what DOCA answered is success; else prints what could not be done. */
bool doca_card_did(const struct doca_card *card, doca_error_t answer, const char *what);

/* Open the first device that `supports` what is wanted. */
bool doca_card_open(struct doca_card *card, doca_error_t (*supports)(struct doca_devinfo *));
/* Start `card->context`, its work queue and the jobs' memory. */
bool doca_card_start(struct doca_card *card);
/* Undo both, as far as they came; the context's own library is destroyed by the caller. */
void doca_card_stop(struct doca_card *card);

/* The next job, its input copied; NULL when the card has as many as it may. */
struct doca_card_job *doca_card_next(struct doca_card *card, struct accelerator_job *job);
/* Give the next job to the card. */
enum backend_answer doca_card_submit(struct doca_card *card, const struct doca_job *request);
/* Let `finish` read what the card answered, and hand jobs back in their order. */
uint16_t doca_card_poll(struct doca_card *card, struct accelerator_job **jobs, uint16_t n,
			void (*finish)(struct doca_card_job *done, const struct doca_event *event));

static inline unsigned int doca_card_number(const struct doca_card *card,
					    const struct doca_card_job *job)
{
	return (unsigned int)(job - card->jobs);
}

#endif
