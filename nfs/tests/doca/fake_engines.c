/* The simulated card's queue, and its two engines. */
#include <stdlib.h>
#include <string.h>

#include <doca_compress.h>
#include <doca_regex.h>

#include "tests/doca/fake_card.h"

static struct doca_event events[FAKE_CARD_DEPTH];
static unsigned int n_events;

/* "Compressed" data is an eighth longer and ends with as many zeros. */
static void compress(const struct doca_compress_deflate_job *job)
{
	const struct doca_buf *in = job->src_buff;
	struct doca_buf *out = job->dst_buff;

	out->length = in->length + in->length / 8;
	if (out->length > out->room)
		abort();
	memset(out->data, 0, out->length);
	memcpy(out->data, in->data, in->length);
}

/* Each byte matches the rule of that number. */
static void search(const struct doca_regex_job_search *job)
{
	struct doca_regex_match **end = &job->result->matches;

	for (size_t i = 0; i < job->buffer->length; i++) {
		*end = calloc(1, sizeof(**end));
		(*end)->rule_id = job->buffer->data[i];
		end = &(*end)->next;
		fake_card.matches++;
	}
}

doca_error_t doca_workq_submit(struct doca_workq *workq, const struct doca_job *job)
{
	const doca_error_t rejection = fake_card.rejection;
	struct doca_event event = {.type = job->type, .user_data = job->user_data};

	(void)workq;
	fake_card.rejection = DOCA_SUCCESS;
	if (rejection != DOCA_SUCCESS)
		return rejection;
	if (n_events == FAKE_CARD_DEPTH)
		return DOCA_ERROR_NO_MEMORY;
	if (job->type == DOCA_REGEX_JOB_SEARCH) {
		event.result.ptr = ((const struct doca_regex_job_search *)job)->result;
		search((const struct doca_regex_job_search *)job);
	} else {
		event.result.u64 = DOCA_SUCCESS;
		compress((const struct doca_compress_deflate_job *)job);
	}
	events[n_events++] = event;
	return DOCA_SUCCESS;
}

doca_error_t doca_workq_progress_retrieve(struct doca_workq *workq, struct doca_event *event,
					  int flags)
{
	(void)workq, (void)flags;
	if (n_events == 0)
		return DOCA_ERROR_AGAIN;
	*event = events[--n_events];
	return fake_card.breaking ? DOCA_ERROR_IO_FAILED : DOCA_SUCCESS;
}

doca_error_t doca_compress_create(struct doca_compress **compress)
{
	const doca_error_t status = fake_step(true, &fake_card.has_library, true);

	if (status == DOCA_SUCCESS)
		*compress = THE(doca_compress);
	return status;
}

static doca_error_t end_library(void)
{
	return fake_step(!fake_card.started && !fake_card.has_queue, &fake_card.has_library, false);
}

doca_error_t doca_compress_destroy(struct doca_compress *compress)
{
	(void)compress;
	return end_library();
}

struct doca_ctx *doca_compress_as_ctx(struct doca_compress *compress)
{
	return (struct doca_ctx *)(void *)compress;
}

doca_error_t doca_compress_job_get_supported(struct doca_devinfo *info,
					     enum doca_compress_job_types type)
{
	return info && type == DOCA_COMPRESS_DEFLATE_JOB ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_regex_create(struct doca_regex **regex)
{
	const doca_error_t status = fake_step(true, &fake_card.has_library, true);

	if (status == DOCA_SUCCESS)
		*regex = THE(doca_regex);
	return status;
}

doca_error_t doca_regex_destroy(struct doca_regex *regex)
{
	(void)regex;
	return end_library();
}

struct doca_ctx *doca_regex_as_ctx(struct doca_regex *regex)
{
	return (struct doca_ctx *)(void *)regex;
}

doca_error_t doca_regex_get_hardware_supported(const struct doca_devinfo *info)
{
	return info ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_regex_set_hardware_uncompiled_rules(struct doca_regex *regex, const void *rules,
						      size_t length)
{
	(void)regex;
	return strnlen(rules, length) == length && length > 0 ? DOCA_SUCCESS
							      : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_regex_set_workq_matches_memory_pool_size(struct doca_regex *regex, uint32_t size)
{
	(void)regex;
	return size > 0 ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY;
}

void doca_regex_mempool_put_obj(struct doca_regex_mempool *pool, void *object)
{
	(void)pool;
	free(object);
	fake_card.matches--;
}
