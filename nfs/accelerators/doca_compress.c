/*
 * Compresses payloads with a BlueField-2's compression engine (DOCA Compress 2.2): raw DEFLATE. It
 * has not run on a card yet.
 */
#include <errno.h>
#include <string.h>

#include <doca_compress.h>

#include "accelerators/doca_card.h"

struct compress_engine {
	struct doca_card card;
	struct doca_compress *compress;
};

static doca_error_t supports(struct doca_devinfo *device)
{
	return doca_compress_job_get_supported(device, DOCA_COMPRESS_DEFLATE_JOB);
}

static bool make(struct doca_card *card)
{
	struct compress_engine *engine = (struct compress_engine *)card;

	if (!doca_card_ok(card, doca_compress_create(&engine->compress), "create an engine"))
		return false;
	card->context = doca_compress_as_ctx(engine->compress);
	return true;
}

static doca_error_t unmake(struct doca_card *card)
{
	return doca_compress_destroy(((struct compress_engine *)card)->compress);
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	struct doca_card *card = state;
	struct doca_card_job *next;
	const enum backend_status status = doca_card_next(card, job, &next);

	if (status != BACKEND_TAKEN)
		return status;
	doca_buf_reset_data_len(next->out);

	const struct doca_compress_deflate_job deflate = {
		.base = {.type = DOCA_COMPRESS_DEFLATE_JOB,
			 .flags = DOCA_JOB_FLAGS_NONE,
			 .ctx = card->context,
			 .user_data = {.u64 = doca_card_number(card, next)}},
		.dst_buff = next->out,
		.src_buff = next->in,
	};

	return doca_card_submit(card, &deflate.base);
}

/* Output larger than the buffer counts as incompressible. */
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

static const struct doca_card_engine engine = {
	.name = "doca-compress",
	.bytes = sizeof(struct compress_engine),
	.supports = supports,
	.make = make,
	.unmake = unmake,
	.finish = finish,
};

DOCA_BACKEND("doca-compress", "the compression engine of a BlueField-2 (untested on a card)",
	     ACCELERATOR_COMPRESSION)
