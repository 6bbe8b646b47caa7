#include "accelerators/doca_card.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

bool doca_card_did(const struct doca_card *card, doca_error_t answer, const char *what)
{
	if (answer == DOCA_SUCCESS)
		return true;
	fprintf(stderr, "%s: cannot %s: %s\n", card->name, what, doca_get_error_string(answer));
	return false;
}

bool doca_card_open(struct doca_card *card, doca_error_t (*supports)(struct doca_devinfo *))
{
	struct doca_devinfo **devices;
	uint32_t n;

	if (!doca_card_did(card, doca_devinfo_list_create(&devices, &n), "list devices"))
		return false;
	for (uint32_t i = 0; i < n && !card->device; i++)
		if (supports(devices[i]) == DOCA_SUCCESS &&
		    doca_dev_open(devices[i], &card->device) != DOCA_SUCCESS)
			card->device = NULL;
	doca_devinfo_list_destroy(devices);
	if (!card->device)
		fprintf(stderr, "%s: none of %u devices can do this\n", card->name, n);
	return card->device != NULL;
}

static bool start_memory(struct doca_card *card)
{
	const size_t bytes = 2 * (size_t)DOCA_CARD_JOBS * DOCA_CARD_ROOM;

	card->bytes = nf_zalloc(bytes);
	return doca_card_did(card, card->bytes ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY,
			     "allocate the jobs' memory") &&
	       doca_card_did(card, doca_mmap_create(NULL, &card->memory), "map memory") &&
	       doca_card_did(card, doca_mmap_dev_add(card->memory, card->device),
			     "let the device see the memory") &&
	       doca_card_did(card, doca_mmap_set_memrange(card->memory, card->bytes, bytes),
			     "set the memory's range") &&
	       doca_card_did(card, doca_mmap_start(card->memory), "start the memory") &&
	       doca_card_did(card,
			     doca_buf_inventory_create(NULL, 2 * DOCA_CARD_JOBS,
						       DOCA_BUF_EXTENSION_NONE, &card->buffers),
			     "make buffers") &&
	       doca_card_did(card, doca_buf_inventory_start(card->buffers), "start buffers");
}

static bool make_buffers(struct doca_card *card)
{
	for (unsigned int i = 0; i < DOCA_CARD_JOBS; i++) {
		uint8_t *in = card->bytes + (size_t)i * DOCA_CARD_ROOM;
		uint8_t *out = in + (size_t)DOCA_CARD_JOBS * DOCA_CARD_ROOM;

		if (!doca_card_did(card,
				   doca_buf_inventory_buf_by_addr(card->buffers, card->memory, in,
								  DOCA_CARD_ROOM,
								  &card->jobs[i].in),
				   "make a job's input") ||
		    !doca_card_did(card,
				   doca_buf_inventory_buf_by_addr(card->buffers, card->memory, out,
								  DOCA_CARD_ROOM,
								  &card->jobs[i].out),
				   "make a job's output"))
			return false;
	}
	return true;
}

bool doca_card_start(struct doca_card *card)
{
	return start_memory(card) && make_buffers(card) &&
	       doca_card_did(card, doca_ctx_start(card->context), "start the engine") &&
	       doca_card_did(card, doca_workq_create(DOCA_CARD_JOBS, &card->queue),
			     "make a work queue") &&
	       doca_card_did(card, doca_ctx_workq_add(card->context, card->queue),
			     "attach the work queue");
}

void doca_card_stop(struct doca_card *card)
{
	if (card->queue) {
		doca_ctx_workq_rm(card->context, card->queue);
		doca_workq_destroy(card->queue);
	}
	if (card->context)
		doca_ctx_stop(card->context);
	for (unsigned int i = 0; i < DOCA_CARD_JOBS; i++) {
		if (card->jobs[i].in)
			doca_buf_refcount_rm(card->jobs[i].in, NULL);
		if (card->jobs[i].out)
			doca_buf_refcount_rm(card->jobs[i].out, NULL);
	}
	if (card->buffers) {
		doca_buf_inventory_stop(card->buffers);
		doca_buf_inventory_destroy(card->buffers);
	}
	if (card->memory)
		doca_mmap_destroy(card->memory);
	nf_free(card->bytes);
	if (card->device)
		doca_dev_close(card->device);
}

struct doca_card_job *doca_card_next(struct doca_card *card, struct accelerator_job *job)
{
	const unsigned int number = card->tail % DOCA_CARD_JOBS;
	struct doca_card_job *next = &card->jobs[number];
	uint8_t *in = card->bytes + (size_t)number * DOCA_CARD_ROOM;

	if (card->tail - card->head == DOCA_CARD_JOBS)
		return NULL;
	next->job = job;
	next->done = false;
	memcpy(in, job->input, job->length);
	doca_buf_set_data(next->in, in, job->length);
	return next;
}

enum backend_answer doca_card_submit(struct doca_card *card, const struct doca_job *request)
{
	const doca_error_t answer = doca_workq_submit(card->queue, request);

	if (answer == DOCA_SUCCESS) {
		card->tail++;
		return BACKEND_TAKEN;
	}
	if (answer == DOCA_ERROR_NO_MEMORY) /* the work queue is full */
		return BACKEND_FULL;
	card->jobs[card->tail % DOCA_CARD_JOBS].job->status = -EIO;
	return BACKEND_DONE;
}

uint16_t doca_card_poll(struct doca_card *card, struct accelerator_job **jobs, uint16_t n,
			void (*finish)(struct doca_card_job *done, const struct doca_event *event))
{
	uint16_t back = 0;

	for (;;) {
		struct doca_event event = {0};
		const doca_error_t answer = doca_workq_progress_retrieve(
			card->queue, &event, DOCA_WORKQ_RETRIEVE_FLAGS_NONE);
		struct doca_card_job *done = &card->jobs[event.user_data.u64 % DOCA_CARD_JOBS];

		if (answer == DOCA_SUCCESS)
			finish(done, &event);
		else if (answer == DOCA_ERROR_IO_FAILED) /* the job did, not the queue */
			done->job->status = -EIO;
		else
			break;
		done->done = true;
	}
	for (; back < n && card->head != card->tail; card->head++) {
		const struct doca_card_job *oldest = &card->jobs[card->head % DOCA_CARD_JOBS];

		if (!oldest->done)
			break;
		jobs[back++] = oldest->job;
	}
	return back;
}
