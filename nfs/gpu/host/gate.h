/*
 * The gate of one direction of the bus: transfers in a configured order.
 *
 * Of the workers that wait, the one with the smallest order is next; a transfer that has begun is
 * never interrupted, and there is one at a time. Grus (section IV-A) gives a worker a time slot of
 * now + alpha * order instead: it then waits while the bus is free, and with an alpha that is too
 * small is overtaken. gpu/model/gate.pml is a model of this file.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gate_turn {
	uint32_t order;
	bool waiting;
	atomic_bool granted;
};

struct gate {
	pthread_mutex_t lock;
	bool busy;
	unsigned int n;
	struct gate_turn *turns;
};

/* A gate for `n` workers; false without memory. */
bool gate_create(struct gate *gate, unsigned int n);
void gate_destroy(struct gate *gate);

/* Of workers with the same order, the first one is first. Also while the worker waits. */
void gate_set_order(struct gate *gate, unsigned int worker, uint32_t order);

/* Ask for the bus; gate_is_granted() says from when on the worker has it. */
void gate_request(struct gate *gate, unsigned int worker);
bool gate_is_granted(struct gate *gate, unsigned int worker);
/* After the transfer. */
void gate_release(struct gate *gate, unsigned int worker);
