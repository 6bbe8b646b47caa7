/*
 * Payloads compressed by a BlueField-2's compression engine (DOCA Compress 2.2): raw DEFLATE. It
 * has not run on a card yet.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <doca_compress.h>

#include "accelerators/doca_card.h"
#include "core/memory.h"

struct engine {
	struct doca_card card;
	struct doca_compress *compress;
};

static void destroy(void *state)
{
	struct engine *engine = state;

	doca_card_stop(&engine->card);
	if (engine->compress)
		doca_compress_destroy(engine->compress);
	nf_free(engine);
}

static doca_error_t supports(struct doca_devinfo *device)
{
	return doca_compress_job_get_supported(device, DOCA_COMPRESS_DEFLATE_JOB);
}

static bool start(struct engine *engine)
{
	struct doca_card *card = &engine->card;

	if (!doca_card_open(card, supports) ||
	    !doca_card_did(card, doca_compress_create(&engine->compress), "make an engine"))
		return false;
	card->context = doca_compress_as_ctx(engine->compress);
	return doca_card_did(card, doca_ctx_dev_add(card->context, card->device),
			     "give the engine its device") &&
	       doca_card_start(card);
}

static void *create(void)
{
	struct engine *engine = nf_zalloc(sizeof(*engine));

	if (!engine) {
		fprintf(stderr, "doca-compress: no memory\n");
		return NULL;
	}
	engine->card.name = "doca-compress";
	if (!start(engine)) {
		destroy(engine);
		return NULL;
	}
	return engine;
}

static enum backend_answer submit(void *state, struct accelerator_job *job)
{
	struct engine *engine = state;
	struct doca_card_job *next;

	job->produced = 0;
	job->rule = -1;
	if (job->length > DOCA_CARD_ROOM) {
		job->status = -EMSGSIZE;
		return BACKEND_DONE;
	}
	next = doca_card_next(&engine->card, job);
	if (!next)
		return BACKEND_FULL;
	doca_buf_reset_data_len(next->out);

	const struct doca_compress_deflate_job deflate = {
		.base = {.type = DOCA_COMPRESS_DEFLATE_JOB,
			 .flags = DOCA_JOB_FLAGS_NONE,
			 .ctx = engine->card.context,
			 .user_data = {.u64 = doca_card_number(&engine->card, next)}},
		.dst_buff = next->out,
		.src_buff = next->in,
	};

	return doca_card_submit(&engine->card, &deflate.base);
}

/* What is longer than the room that it may have has not shrunk enough. */
static void finish(struct doca_card_job *done, const struct doca_event *event)
{
	struct accelerator_job *job = done->job;
	void *data = NULL;
	size_t length = 0;

	if (event->result.u64 != DOCA_SUCCESS ||
	    doca_buf_get_data(done->out, &data) != DOCA_SUCCESS ||
	    doca_buf_get_data_len(done->out, &length) != DOCA_SUCCESS) {
		job->status = -EIO;
		return;
	}
	job->status = length <= job->room ? 0 : -ENOSPC;
	if (job->status == 0) {
		memcpy(job->output, data, length);
		job->produced = (uint32_t)length;
	}
}

static uint16_t poll(void *state, struct accelerator_job **jobs, uint16_t n)
{
	struct engine *engine = state;

	return doca_card_poll(&engine->card, jobs, n, finish);
}

static struct accelerator_backend backend = {
	.name = "doca-compress",
	.help = "the compression engine of a BlueField-2 (has not run on a card yet)",
	.kind = ACCELERATOR_COMPRESSION,
	.preference = 100,
	.create = create,
	.submit = submit,
	.poll = poll,
	.destroy = destroy,
};

BACKEND_REGISTER(backend)
