/* The engine, with backends that only record their calls. */
#include "tests/offloading.h"

#define JOBS 64
#define CARD_CAPACITY 3

/* The jobs in the order of submission. */
struct served {
	unsigned int n;
	void *owners[4 * JOBS];
	unsigned int n_taken;
	struct accelerator_job *taken[CARD_CAPACITY];
};

static struct served served;

static void *start_record(void)
{
	served = (struct served){0};
	return &served;
}

static void record_job(struct served *record, struct accelerator_job *job)
{
	job->status = 0;
	if (record->n < RTE_DIM(record->owners))
		record->owners[record->n++] = job->owner;
}

static enum backend_status run_at_once(void *state, struct accelerator_job *job)
{
	record_job(state, job);
	return BACKEND_DONE;
}

static enum backend_status take(void *state, struct accelerator_job *job)
{
	struct served *record = state;

	if (record->n_taken == CARD_CAPACITY)
		return BACKEND_FULL;
	record_job(record, job);
	record->taken[record->n_taken++] = job;
	return BACKEND_TAKEN;
}

/* One job is completed per poll, the oldest first. */
static uint16_t poll_one(void *state, struct accelerator_job **jobs, uint16_t n)
{
	struct served *record = state;

	if (n == 0 || record->n_taken == 0)
		return 0;
	jobs[0] = record->taken[0];
	record->n_taken--;
	memmove(record->taken, record->taken + 1, record->n_taken * sizeof(record->taken[0]));
	return 1;
}

static void ignore(void *state)
{
	(void)state;
}

BACKEND(library, "library", "", .preference = -1, .create = start_record, .submit = run_at_once,
	.destroy = ignore)
BACKEND(card, "card", "", .preference = -2, .create = start_record, .submit = take,
	.poll = poll_one, .destroy = ignore)

static struct accelerator_job jobs[4][JOBS];

static struct accelerator_queue *queue_with(struct accelerator *accelerator, unsigned int which,
					    unsigned int n)
{
	struct accelerator_queue *queue = accelerator_attach(accelerator, JOBS);

	assert_non_null(queue);
	for (unsigned int i = 0; i < n; i++) {
		struct accelerator_job *job = &jobs[which][i];

		*job = (struct accelerator_job){.owner = (void *)(uintptr_t)which};
		assert_int_equal(accelerator_submit(queue, &job, 1), 1);
	}
	return queue;
}

static void collect_all(struct accelerator_queue *queue, unsigned int which, unsigned int n)
{
	for (unsigned int i = 0; i < n;) {
		struct accelerator_job *job;

		if (accelerator_collect(queue, &job, 1) == 0)
			continue;
		assert_ptr_equal(job, &jobs[which][i]);
		i++;
	}
	assert_int_equal(accelerator_under_way(queue), 0);
	accelerator_detach(queue);
}

static unsigned int served_of(unsigned int which)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < served.n; i++)
		n += served.owners[i] == (void *)(uintptr_t)which;
	return n;
}

/* Three queues with requests are served one each per round. */
TEST(queues_get_equal_shares)
{
	struct accelerator *accelerator = accelerator_create_by("library");
	struct accelerator_queue *queues[3];

	assert_non_null(accelerator);
	for (unsigned int i = 0; i < 3; i++)
		queues[i] = queue_with(accelerator, i, JOBS);
	for (int round = 0; round < 20; round++)
		assert_int_equal(accelerator_serve(accelerator), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(served_of(i), 20);
	for (unsigned int i = 0; i < 3; i++)
		collect_all(queues[i], i, JOBS);
	accelerator_destroy(accelerator);
}

/* Two queues get two turns per round; a user with few requests gets all of them served. */
TEST(two_queues_get_two_shares)
{
	struct accelerator *accelerator = accelerator_create_by("library");
	struct accelerator_queue *queues[4];

	assert_non_null(accelerator);
	queues[0] = queue_with(accelerator, 0, JOBS);
	queues[1] = queue_with(accelerator, 0, 0);
	for (unsigned int i = 0; i < JOBS; i++) {
		struct accelerator_job *job = &jobs[3][i];

		*job = (struct accelerator_job){.owner = NULL};
		assert_int_equal(accelerator_submit(queues[1], &job, 1), 1);
	}
	queues[2] = queue_with(accelerator, 1, JOBS);
	queues[3] = queue_with(accelerator, 2, 5);
	for (int round = 0; round < 30; round++)
		accelerator_serve(accelerator);
	assert_int_equal(served_of(0), 60);
	assert_int_equal(served_of(1), 30);
	assert_int_equal(served_of(2), 5);
	collect_all(queues[0], 0, JOBS);
	collect_all(queues[1], 3, JOBS);
	collect_all(queues[2], 1, JOBS);
	collect_all(queues[3], 2, 5);
	accelerator_destroy(accelerator);
}

/* At most `depth` requests are under way; rejected ones can be submitted after a collect. */
TEST(depth_limits_requests_under_way)
{
	struct accelerator *accelerator = accelerator_create_by("library");
	struct accelerator_queue *queue;
	struct accelerator_job *all[10], *done[10];

	assert_non_null(accelerator);
	queue = accelerator_attach(accelerator, 7);
	assert_non_null(queue);
	for (int i = 0; i < 10; i++)
		all[i] = &jobs[0][i];
	assert_int_equal(accelerator_submit(queue, all, 10), 7);
	assert_int_equal(accelerator_submit(queue, all + 7, 3), 0);
	while (accelerator_collect(queue, done, 1) == 0)
		;
	assert_ptr_equal(done[0], all[0]);
	assert_int_equal(accelerator_submit(queue, all + 7, 3), 1);
	for (unsigned int n = 0; n < 7;)
		n += accelerator_collect(queue, done + n, 10);
	assert_ptr_equal(done[6], all[7]);
	accelerator_detach(queue);
	accelerator_destroy(accelerator);
}

/* A full card keeps turn and order: equal shares, and each queue's jobs as submitted. */
TEST(a_full_card_keeps_turn_and_order)
{
	struct accelerator *accelerator = accelerator_create_by("card");
	struct accelerator_queue *queues[2];

	assert_non_null(accelerator);
	queues[0] = queue_with(accelerator, 0, JOBS);
	queues[1] = queue_with(accelerator, 1, JOBS);
	for (int round = 0; round < 40; round++)
		accelerator_serve(accelerator);
	assert_in_range(served.n, 40, 40 + CARD_CAPACITY);
	for (unsigned int i = 0; i < served.n; i++)
		assert_ptr_equal(served.owners[i], (void *)(uintptr_t)(i % 2));
	collect_all(queues[0], 0, JOBS);
	collect_all(queues[1], 1, JOBS);
	accelerator_destroy(accelerator);
}

/*
 * With a server, and queues attached and detached meanwhile, each job is returned once, in order.
 */
TEST(no_job_is_lost_with_a_server)
{
	struct server server = {.accelerator = accelerator_create_by("library")};

	assert_non_null(server.accelerator);
	server_start(&server);
	for (int again = 0; again < 40; again++) {
		struct accelerator_queue *queues[3];

		for (unsigned int i = 0; i < 3; i++)
			queues[i] = queue_with(server.accelerator, i, JOBS);
		for (unsigned int i = 0; i < 3; i++)
			collect_all(queues[i], i, JOBS);
	}
	server_stop(&server);
	assert_int_equal(served.n, RTE_DIM(served.owners));
	/* without the server, the users serve again */
	collect_all(queue_with(server.accelerator, 0, JOBS), 0, JOBS);
	accelerator_destroy(server.accelerator);
}

/* Invalid arguments are rejected: unknown backend, depth 0 or too large, too many queues. */
TEST(rejects_invalid_arguments)
{
	struct accelerator_queue *queues[ACCELERATOR_MOST_QUEUES];
	struct accelerator *accelerator = accelerator_create_by("library");

	assert_null(accelerator_create_by("abacus"));
	assert_non_null(accelerator);
	assert_null(accelerator_attach(accelerator, 0));
	assert_null(accelerator_attach(accelerator, ACCELERATOR_MOST_DEPTH + 1));
	for (unsigned int i = 0; i < ACCELERATOR_MOST_QUEUES; i++) {
		queues[i] = accelerator_attach(accelerator, 1);
		assert_non_null(queues[i]);
	}
	assert_null(accelerator_attach(accelerator, 1));
	accelerator_detach(queues[5]);
	queues[5] = accelerator_attach(accelerator, 1);
	assert_non_null(queues[5]);
	for (unsigned int i = 0; i < ACCELERATOR_MOST_QUEUES; i++)
		accelerator_detach(queues[i]);
	accelerator_destroy(accelerator);
}
