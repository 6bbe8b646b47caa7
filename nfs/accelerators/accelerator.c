#include "accelerators/accelerator.h"

#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_debug.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <rte_ticketlock.h>

#include "core/memory.h"
#include "tables/rule_file.h"

static struct accelerator_backend *backends;

void backend_register(struct accelerator_backend *backend)
{
	struct accelerator_backend **place = &backends;

	while (*place && (*place)->preference >= backend->preference)
		place = &(*place)->next;
	backend->next = *place;
	*place = backend;
}

const struct accelerator_backend *backend_first(void)
{
	return backends;
}

#define POLLED 32
#define LEAST_PER_US 8 /* time after which unserved requests mean that no engine is running */
#define MOST_REST_US 10u

struct accelerator_queue {
	struct accelerator *accelerator;
	struct rte_ring *requests, *done;
	unsigned int depth;
	/* used by the queue's owner */
	unsigned int under_way;
	uint64_t next_check; /* time stamp counter */
	/* used by the server */
	struct accelerator_job *next
		__rte_cache_aligned; /* taken from the ring; the backend was full */
} __rte_cache_aligned;

struct accelerator {
	const struct accelerator_backend *backend;
	void *state;
	unsigned int servers; /* threads in accelerator_serve_until */
	/* written in every round; kept off the cache lines that users read */
	rte_ticketlock_t round
		__rte_cache_aligned; /* held for a round, or to attach or detach a queue */
	unsigned int places;         /* length of the used part of `queues` */
	unsigned int turn;           /* slot to serve next */
	struct accelerator_queue *queues[ACCELERATOR_MOST_QUEUES];
};

/* With the backend's usual rules if `set` is NULL. */
static struct accelerator *create_with(const struct accelerator_backend *backend,
				       const struct rule_set *set)
{
	struct accelerator *accelerator = nf_zalloc(sizeof(*accelerator));

	if (!accelerator) {
		fprintf(stderr, "%s: no memory for an accelerator\n", backend->name);
		return NULL;
	}
	accelerator->backend = backend;
	rte_ticketlock_init(&accelerator->round);
	accelerator->state = set ? backend->create_rules(set) : backend->create();
	if (!accelerator->state) {
		nf_free(accelerator);
		return NULL;
	}
	return accelerator;
}

static struct accelerator *create_of(const struct accelerator_backend *backend)
{
	return create_with(backend, NULL);
}

struct accelerator *accelerator_create_rules(const char *of, const char *path)
{
	const struct accelerator_backend *backend = backend_first();
	struct accelerator *accelerator;
	struct rule_set set;

	while (backend && !backend->create_rules)
		backend = backend->next;
	if (!backend) {
		fprintf(stderr, "%s: no engine takes the rules of a file\n", of);
		return NULL;
	}
	if (!rule_file_read(of, path, backend->fault, &set))
		return NULL;
	accelerator = create_with(backend, &set);
	rule_file_free(&set);
	return accelerator;
}

struct accelerator *accelerator_create(enum accelerator_kind kind)
{
	const struct accelerator_backend *backend;

	for (backend = backend_first(); backend; backend = backend->next) {
		struct accelerator *accelerator = backend->kind == kind ? create_of(backend) : NULL;

		if (accelerator)
			return accelerator;
	}
	fprintf(stderr, "no backend works for accelerators of kind %d\n", kind);
	return NULL;
}

struct accelerator *accelerator_create_by(const char *name)
{
	const struct accelerator_backend *backend = backend_first();

	while (backend && strcmp(backend->name, name) != 0)
		backend = backend->next;
	if (backend)
		return create_of(backend);
	fprintf(stderr, "%s: unknown accelerator backend\n", name);
	return NULL;
}

void accelerator_destroy(struct accelerator *accelerator)
{
	if (!accelerator)
		return;
	accelerator->backend->destroy(accelerator->state);
	nf_free(accelerator);
}

uint32_t accelerator_span(const struct accelerator *accelerator)
{
	return accelerator->backend->span ? accelerator->backend->span(accelerator->state)
					  : UINT32_MAX;
}

const char *accelerator_backend(const struct accelerator *accelerator)
{
	return accelerator->backend->name;
}

/* A ring of one producer and one consumer for `entries` jobs. */
static struct rte_ring *ring_of(unsigned int entries)
{
	const unsigned int count = rte_align32pow2(entries + 1);
	struct rte_ring *ring = nf_zalloc((size_t)rte_ring_get_memsize(count));

	if (ring && rte_ring_init(ring, "jobs", count, RING_F_SP_ENQ | RING_F_SC_DEQ) < 0) {
		nf_free(ring);
		return NULL;
	}
	return ring;
}

static void queue_free(struct accelerator_queue *queue)
{
	nf_free(queue->requests);
	nf_free(queue->done);
	nf_free(queue);
}

static struct accelerator_queue *queue_of(struct accelerator *accelerator, unsigned int depth)
{
	struct accelerator_queue *queue = nf_zalloc(sizeof(*queue));

	if (!queue)
		return NULL;
	queue->accelerator = accelerator;
	queue->depth = depth;
	queue->requests = ring_of(depth);
	queue->done = ring_of(depth);
	if (!queue->requests || !queue->done) {
		queue_free(queue);
		return NULL;
	}
	return queue;
}

/* Add the queue to the round robin. */
static bool add_queue(struct accelerator *accelerator, struct accelerator_queue *queue)
{
	unsigned int place = 0;

	rte_ticketlock_lock(&accelerator->round);
	while (place < accelerator->places && accelerator->queues[place])
		place++;
	if (place < ACCELERATOR_MOST_QUEUES) {
		accelerator->queues[place] = queue;
		accelerator->places = RTE_MAX(accelerator->places, place + 1);
	}
	rte_ticketlock_unlock(&accelerator->round);
	return place < ACCELERATOR_MOST_QUEUES;
}

struct accelerator_queue *accelerator_attach(struct accelerator *accelerator, unsigned int depth)
{
	const char *name = accelerator_backend(accelerator);
	struct accelerator_queue *queue;

	if (depth == 0 || depth > ACCELERATOR_MOST_DEPTH) {
		fprintf(stderr, "%s: queue depth %u is not supported\n", name, depth);
		return NULL;
	}
	queue = queue_of(accelerator, depth);
	if (!queue) {
		fprintf(stderr, "%s: no memory for a queue of depth %u\n", name, depth);
		return NULL;
	}
	if (!add_queue(accelerator, queue)) {
		fprintf(stderr, "%s: has %d queues already\n", name, ACCELERATOR_MOST_QUEUES);
		queue_free(queue);
		return NULL;
	}
	return queue;
}

void accelerator_detach(struct accelerator_queue *queue)
{
	struct accelerator *accelerator;

	if (!queue)
		return;
	accelerator = queue->accelerator;
	rte_ticketlock_lock(&accelerator->round);
	for (unsigned int place = 0; place < accelerator->places; place++)
		if (accelerator->queues[place] == queue)
			accelerator->queues[place] = NULL;
	rte_ticketlock_unlock(&accelerator->round);
	queue_free(queue);
}

uint16_t accelerator_submit(struct accelerator_queue *queue, struct accelerator_job **jobs,
			    uint16_t n)
{
	const unsigned int taken = RTE_MIN((unsigned int)n, queue->depth - queue->under_way);

	for (unsigned int i = 0; i < taken; i++)
		jobs[i]->queue = queue;
	if (taken == 0 || rte_ring_enqueue_bulk(queue->requests, (void **)jobs, taken, NULL) == 0)
		return 0;
	queue->under_way += taken;
	return (uint16_t)taken;
}

/*
 * When to check again for completed jobs. Each check takes the ring's cache line from the server,
 * which then waits for it: checking all the time halved the engine's throughput. A queue with many
 * requests under way does not run dry in between.
 */
static uint64_t next_check_time(const struct accelerator_queue *queue)
{
	const unsigned int us = RTE_MIN(queue->under_way / LEAST_PER_US, MOST_REST_US);

	return rte_rdtsc() + us * (rte_get_tsc_hz() / US_PER_S);
}

uint16_t accelerator_collect(struct accelerator_queue *queue, struct accelerator_job **jobs,
			     uint16_t n)
{
	const bool served = __atomic_load_n(&queue->accelerator->servers, __ATOMIC_RELAXED) > 0;
	unsigned int collected;

	if (served && rte_rdtsc() < queue->next_check)
		return 0;
	if (queue->under_way > 0 && !served)
		accelerator_serve(queue->accelerator);
	collected = rte_ring_dequeue_burst(queue->done, (void **)jobs, n, NULL);
	queue->under_way -= collected;
	if (served && collected < n)
		queue->next_check = next_check_time(queue);
	return (uint16_t)collected;
}

unsigned int accelerator_under_way(const struct accelerator_queue *queue)
{
	return queue->under_way;
}

/* Return a completed job to its queue, whose ring has room for all of its jobs. */
static void done(struct accelerator_job *job)
{
	if (rte_ring_enqueue(job->queue->done, job) < 0)
		rte_panic("a queue has more completed than submitted jobs\n");
}

/* Serve the queue's next request, if any. False if the backend is full. */
static bool serve_one(struct accelerator *accelerator, struct accelerator_queue *queue,
		      unsigned int *served)
{
	void *job = queue->next;

	if (!job && rte_ring_dequeue(queue->requests, &job) < 0)
		return true;
	queue->next = NULL;
	switch (accelerator->backend->submit(accelerator->state, job)) {
	case BACKEND_FULL:
		queue->next = job;
		return false;
	case BACKEND_DONE:
		done(job);
		break;
	case BACKEND_TAKEN:
		break;
	}
	(*served)++;
	return true;
}

static void poll(struct accelerator *accelerator)
{
	struct accelerator_job *jobs[POLLED];
	uint16_t n;

	if (!accelerator->backend->poll)
		return;
	n = accelerator->backend->poll(accelerator->state, jobs, POLLED);
	for (uint16_t i = 0; i < n; i++)
		done(jobs[i]);
}

/* Serve one round, starting with the queue whose turn it is; a full backend keeps the turn. */
static unsigned int serve_round(struct accelerator *accelerator)
{
	unsigned int served = 0;

	for (unsigned int checked = 0; checked < accelerator->places; checked++) {
		struct accelerator_queue *queue = accelerator->queues[accelerator->turn];

		if (queue && !serve_one(accelerator, queue, &served))
			break;
		accelerator->turn =
			accelerator->turn + 1 < accelerator->places ? accelerator->turn + 1 : 0;
	}
	poll(accelerator);
	return served;
}

unsigned int accelerator_serve(struct accelerator *accelerator)
{
	unsigned int served = 0;

	/* another thread that serves completes this user's jobs, too */
	if (rte_ticketlock_trylock(&accelerator->round)) {
		served = serve_round(accelerator);
		rte_ticketlock_unlock(&accelerator->round);
	}
	return served;
}

void accelerator_serve_until(struct accelerator *accelerator, const bool *stop)
{
	__atomic_add_fetch(&accelerator->servers, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		unsigned int served;

		rte_ticketlock_lock(&accelerator->round);
		served = serve_round(accelerator);
		rte_ticketlock_unlock(&accelerator->round);
		if (served == 0)
			rte_pause();
	}
	__atomic_sub_fetch(&accelerator->servers, 1, __ATOMIC_RELAXED);
}
