/*
 * Code shared by both backends of a BlueField card (DOCA 2.2): the device, a work queue, and memory
 * registered with the card. It has not run on a card yet.
 *
 * Packets lie in memory that is not registered. Each job's bytes are copied to registered memory: a
 * copy costs less than registering each packet.
 */
#pragma once

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_mmap.h>

#include "accelerators/accelerator.h"

#define DOCA_CARD_JOBS 128
#define DOCA_CARD_INPUT 2048
/*
 * Incompressible data grows by an eighth: in a fixed Huffman code each literal takes up to 9 bits.
 */
#define DOCA_CARD_OUTPUT (2 * DOCA_CARD_INPUT)

/* A job that was submitted to the card. */
struct doca_card_job {
	struct accelerator_job *job;
	struct doca_buf *in, *out;
	bool done;
};

struct doca_card {
	const struct doca_card_engine *engine;
	struct doca_dev *device;
	struct doca_ctx *context;
	bool has_device, started, has_queue; /* the DOCA context */
	struct doca_workq *queue;
	struct doca_mmap *memory;
	struct doca_buf_inventory *buffers;
	uint8_t *bytes;                            /* the inputs of all jobs, then their outputs */
	struct doca_card_job jobs[DOCA_CARD_JOBS]; /* a ring: jobs are returned in order */
	unsigned int head, tail;
};

/* Operations of one kind of engine. */
struct doca_card_engine {
	const char *name;
	size_t bytes; /* size of its state, which begins with a doca_card */
	doca_error_t (*supports)(struct doca_devinfo *device);
	/* Create the engine's library and set `card->context`. */
	bool (*make)(struct doca_card *card);
	/* Called with the device before the context starts; may be NULL. */
	bool (*set_up)(struct doca_card *card);
	/* Undo `make`. */
	doca_error_t (*unmake)(struct doca_card *card);
	/* Read the result of a completed job. */
	void (*finish)(struct doca_card_job *done, const struct doca_event *event);
};

/* Whether `answer` is success; otherwise prints `what` failed. */
bool doca_card_ok(const struct doca_card *card, doca_error_t status, const char *what);

/* Open an engine on the first capable device; NULL after printing why. */
void *doca_card_create(const struct doca_card_engine *engine);

/* The callbacks of a backend. */
uint16_t doca_card_poll(void *state, struct accelerator_job **jobs, uint16_t n);
void doca_card_destroy(void *state);

/* If TAKEN, the input is copied and `next` must be submitted; otherwise the result of `submit`. */
enum backend_status doca_card_next(struct doca_card *card, struct accelerator_job *job,
				   struct doca_card_job **next);
enum backend_status doca_card_submit(struct doca_card *card, const struct doca_job *request);

static inline unsigned int doca_card_number(const struct doca_card *card,
					    const struct doca_card_job *job)
{
	return (unsigned int)(job - card->jobs);
}

/* Register a backend whose file has an `engine`, supports() and submit(). */
#define DOCA_BACKEND(engine_name, engine_help, engine_kind)                                        \
	static void *create(void)                                                                  \
	{                                                                                          \
		return doca_card_create(&engine);                                                  \
	}                                                                                          \
	BACKEND(backend, engine_name, engine_help, .kind = engine_kind, .preference = 100,         \
		.create = create, .submit = submit, .poll = doca_card_poll,                        \
		.destroy = doca_card_destroy)
