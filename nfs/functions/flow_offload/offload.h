/*
 * The table of connections: a lookup table for the cores and, with a capable card, rules by which
 * the card forwards packets of established connections.
 *
 * A backend is one file in this folder, which registers itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/packet.h"

struct flow_offload_backend {
	const char *name;
	const char *help;
	int preference; /* the working backend with the highest one is used */

	/* NULL after printing why: no such device, no memory. */
	void *(*create)(uint32_t connections, int socket);
	/* Upper bound of indices. */
	uint32_t (*places)(const void *state);
	/* The indices of the `n` keys of a burst, negative if unknown. */
	void (*lookup)(void *state, const struct flow_key *keys, uint16_t n, int32_t *places);
	/* The index of a key, added if missing; negative if the table is full. */
	int32_t (*insert)(void *state, const struct flow_key *key);
	void (*remove)(void *state, uint32_t place);
	void (*destroy)(void *state);

	/*
	 * Let the card forward the packets of a connection in both directions, except those that
	 * open or close it; its key is that of packets received on `port`. False if the card
	 * cannot; if it rejects the rule later, the cores process the packets. This and the next
	 * two are NULL without a card.
	 */
	bool (*forward)(void *state, uint32_t place, uint16_t port);
	/* Let the cores process its packets again. */
	void (*withdraw)(void *state, uint32_t place);
	/* Whether the card forwarded packets of it since the last query. */
	bool (*active)(void *state, uint32_t place);

	struct flow_offload_backend *next;
};

void flow_offload_register(struct flow_offload_backend *backend);

#define FLOW_OFFLOAD_REGISTER(backend)                                                             \
	__attribute__((constructor)) static void flow_offload_register_##backend(void)             \
	{                                                                                          \
		flow_offload_register(&(backend));                                                 \
	}

struct flow_offload {
	const struct flow_offload_backend *backend;
	void *state;
};

/* Open the first backend that works; false after printing why none does. */
bool flow_offload_create(struct flow_offload *offload, uint32_t connections, int socket);
void flow_offload_destroy(struct flow_offload *offload);
