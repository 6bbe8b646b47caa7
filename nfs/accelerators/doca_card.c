#include "accelerators/doca_card.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

bool doca_card_ok(const struct doca_card *card, doca_error_t status, const char *what)
{
	if (status == DOCA_SUCCESS)
		return true;
	fprintf(stderr, "%s: cannot %s: %s\n", card->engine->name, what,
		doca_get_error_string(status));
	return false;
}

static bool open_device(struct doca_card *card)
{
	struct doca_devinfo **devices;
	uint32_t n;

	if (!doca_card_ok(card, doca_devinfo_list_create(&devices, &n), "list devices"))
		return false;
	for (uint32_t i = 0; i < n && !card->device; i++)
		if (card->engine->supports(devices[i]) == DOCA_SUCCESS &&
		    doca_dev_open(devices[i], &card->device) != DOCA_SUCCESS)
			card->device = NULL;
	doca_devinfo_list_destroy(devices);
	if (!card->device)
		fprintf(stderr, "%s: none of %u devices supports this\n", card->engine->name, n);
	return card->device != NULL;
}

static bool make_engine(struct doca_card *card)
{
	if (!card->engine->make(card))
		return false;
	card->has_device = doca_card_ok(card, doca_ctx_dev_add(card->context, card->device),
					"add the device to the engine");
	return card->has_device && (!card->engine->set_up || card->engine->set_up(card));
}

static bool start_memory(struct doca_card *card)
{
	const size_t bytes = (size_t)DOCA_CARD_JOBS * (DOCA_CARD_INPUT + DOCA_CARD_OUTPUT);

	card->bytes = nf_zalloc(bytes);
	return doca_card_ok(card, card->bytes ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY,
			    "allocate the jobs' memory") &&
	       doca_card_ok(card, doca_mmap_create(NULL, &card->memory), "map memory") &&
	       doca_card_ok(card, doca_mmap_dev_add(card->memory, card->device),
			    "add the device to the memory") &&
	       doca_card_ok(card, doca_mmap_set_memrange(card->memory, card->bytes, bytes),
			    "set the memory's range") &&
	       doca_card_ok(card, doca_mmap_start(card->memory), "start the memory") &&
	       doca_card_ok(card,
			    doca_buf_inventory_create(NULL, 2 * DOCA_CARD_JOBS,
						      DOCA_BUF_EXTENSION_NONE, &card->buffers),
			    "create buffers") &&
	       doca_card_ok(card, doca_buf_inventory_start(card->buffers), "start buffers");
}

static uint8_t *input_of(const struct doca_card *card, unsigned int number)
{
	return card->bytes + (size_t)number * DOCA_CARD_INPUT;
}

static bool make_buffers(struct doca_card *card)
{
	uint8_t *outputs = input_of(card, DOCA_CARD_JOBS);

	for (unsigned int i = 0; i < DOCA_CARD_JOBS; i++) {
		struct doca_card_job *job = &card->jobs[i];
		uint8_t *out = outputs + (size_t)i * DOCA_CARD_OUTPUT;

		if (!doca_card_ok(card,
				  doca_buf_inventory_buf_by_addr(card->buffers, card->memory,
								 input_of(card, i), DOCA_CARD_INPUT,
								 &job->in),
				  "create a job's input buffer") ||
		    !doca_card_ok(card,
				  doca_buf_inventory_buf_by_addr(card->buffers, card->memory, out,
								 DOCA_CARD_OUTPUT, &job->out),
				  "create a job's output buffer"))
			return false;
	}
	return true;
}

static bool start(struct doca_card *card)
{
	card->started = doca_card_ok(card, doca_ctx_start(card->context), "start the engine");
	if (!card->started || !doca_card_ok(card, doca_workq_create(DOCA_CARD_JOBS, &card->queue),
					    "create a work queue"))
		return false;
	card->has_queue = doca_card_ok(card, doca_ctx_workq_add(card->context, card->queue),
				       "attach the work queue");
	return card->has_queue;
}

void *doca_card_create(const struct doca_card_engine *engine)
{
	struct doca_card *card = nf_zalloc(engine->bytes);

	if (!card) {
		fprintf(stderr, "%s: no memory\n", engine->name);
		return NULL;
	}
	card->engine = engine;
	if (open_device(card) && make_engine(card) && start_memory(card) && make_buffers(card) &&
	    start(card))
		return card;
	doca_card_destroy(card);
	return NULL;
}

/*
 * A work queue must be detached while the context runs; a device must be removed, and the context
 * destroyed, after it is stopped.
 */
static void end_engine(struct doca_card *card)
{
	if (card->has_queue)
		doca_card_ok(card, doca_ctx_workq_rm(card->context, card->queue),
			     "detach the work queue");
	if (card->queue)
		doca_card_ok(card, doca_workq_destroy(card->queue), "destroy the work queue");
	if (card->started)
		doca_card_ok(card, doca_ctx_stop(card->context), "stop the engine");
	if (card->has_device)
		doca_card_ok(card, doca_ctx_dev_rm(card->context, card->device),
			     "remove the engine's device");
	if (card->context)
		doca_card_ok(card, card->engine->unmake(card), "destroy the engine");
}

/* Memory can be destroyed only when it has no buffers. */
static void end_memory(struct doca_card *card)
{
	for (unsigned int i = 0; i < DOCA_CARD_JOBS; i++) {
		if (card->jobs[i].in)
			doca_card_ok(card, doca_buf_refcount_rm(card->jobs[i].in, NULL),
				     "release a job's input buffer");
		if (card->jobs[i].out)
			doca_card_ok(card, doca_buf_refcount_rm(card->jobs[i].out, NULL),
				     "release a job's output buffer");
	}
	if (card->buffers)
		doca_card_ok(card, doca_buf_inventory_destroy(card->buffers), "destroy buffers");
	if (card->memory)
		doca_card_ok(card, doca_mmap_destroy(card->memory), "destroy the memory");
	nf_free(card->bytes);
}

void doca_card_destroy(void *state)
{
	struct doca_card *card = state;

	end_engine(card);
	end_memory(card);
	if (card->device)
		doca_card_ok(card, doca_dev_close(card->device), "close the device");
	nf_free(card);
}

enum backend_status doca_card_next(struct doca_card *card, struct accelerator_job *job,
				   struct doca_card_job **next)
{
	const unsigned int number = card->tail % DOCA_CARD_JOBS;
	uint8_t *in = input_of(card, number);

	backend_begin(job);
	if (job->length > DOCA_CARD_INPUT) {
		job->status = -EMSGSIZE;
		return BACKEND_DONE;
	}
	if (card->tail - card->head == DOCA_CARD_JOBS)
		return BACKEND_FULL;
	*next = &card->jobs[number];
	(*next)->job = job;
	(*next)->done = false;
	memcpy(in, job->input, job->length);
	doca_buf_set_data((*next)->in, in, job->length);
	return BACKEND_TAKEN;
}

enum backend_status doca_card_submit(struct doca_card *card, const struct doca_job *request)
{
	const doca_error_t status = doca_workq_submit(card->queue, request);

	if (status == DOCA_SUCCESS) {
		card->tail++;
		return BACKEND_TAKEN;
	}
	if (status == DOCA_ERROR_NO_MEMORY) /* the work queue is full */
		return BACKEND_FULL;
	card->jobs[card->tail % DOCA_CARD_JOBS].job->status = -EIO;
	return BACKEND_DONE;
}

/* Retrieve completed jobs, in any order. */
static void take_answers(struct doca_card *card)
{
	for (;;) {
		struct doca_event event = {0};
		const doca_error_t status = doca_workq_progress_retrieve(
			card->queue, &event, DOCA_WORKQ_RETRIEVE_FLAGS_NONE);
		struct doca_card_job *done = &card->jobs[event.user_data.u64 % DOCA_CARD_JOBS];

		if (status == DOCA_SUCCESS)
			card->engine->finish(done, &event);
		else if (status == DOCA_ERROR_IO_FAILED) /* the job failed, not the queue */
			done->job->status = -EIO;
		else
			return;
		done->done = true;
	}
}

uint16_t doca_card_poll(void *state, struct accelerator_job **jobs, uint16_t n)
{
	struct doca_card *card = state;
	uint16_t back = 0;

	take_answers(card);
	for (; back < n && card->head != card->tail; card->head++) {
		const struct doca_card_job *oldest = &card->jobs[card->head % DOCA_CARD_JOBS];

		if (!oldest->done)
			break;
		jobs[back++] = oldest->job;
	}
	return back;
}
