#include "gpu/host/gate.h"

#include <stdlib.h>

bool gate_create(struct gate *gate, unsigned int n)
{
	*gate = (struct gate){.n = n, .turns = calloc(n, sizeof(*gate->turns))};
	if (!gate->turns)
		return false;
	if (pthread_mutex_init(&gate->lock, NULL) == 0)
		return true;
	free(gate->turns);
	gate->turns = NULL;
	return false;
}

void gate_destroy(struct gate *gate)
{
	if (!gate->turns)
		return;
	pthread_mutex_destroy(&gate->lock);
	free(gate->turns);
	gate->turns = NULL;
}

/* Give a free bus to the first of those that wait; the caller holds the lock. */
static void grant(struct gate *gate)
{
	struct gate_turn *first = NULL;

	if (gate->busy)
		return;
	for (unsigned int i = 0; i < gate->n; i++) {
		struct gate_turn *turn = &gate->turns[i];

		if (turn->waiting && (!first || turn->order < first->order))
			first = turn;
	}
	if (!first)
		return;
	gate->busy = true;
	first->waiting = false;
	atomic_store_explicit(&first->granted, true, memory_order_release);
}

void gate_set_order(struct gate *gate, unsigned int worker, uint32_t order)
{
	pthread_mutex_lock(&gate->lock);
	gate->turns[worker].order = order;
	pthread_mutex_unlock(&gate->lock);
}

void gate_request(struct gate *gate, unsigned int worker)
{
	pthread_mutex_lock(&gate->lock);
	gate->turns[worker].waiting = true;
	grant(gate);
	pthread_mutex_unlock(&gate->lock);
}

bool gate_is_granted(struct gate *gate, unsigned int worker)
{
	return atomic_load_explicit(&gate->turns[worker].granted, memory_order_acquire);
}

void gate_release(struct gate *gate, unsigned int worker)
{
	pthread_mutex_lock(&gate->lock);
	atomic_store_explicit(&gate->turns[worker].granted, false, memory_order_relaxed);
	gate->busy = false;
	grant(gate);
	pthread_mutex_unlock(&gate->lock);
}
