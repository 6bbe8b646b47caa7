/*
 * Where connections are known: a table that the cores look packets up in, and, where there is a
 * card that can, rules by which it forwards packets of established connections without them.
 *
 * A backend is one file in this folder, which registers itself.
 */
#ifndef NFS_FUNCTIONS_FLOW_OFFLOAD_OFFLOAD_H
#define NFS_FUNCTIONS_FLOW_OFFLOAD_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/packet.h"

struct flow_offload_backend {
	const char *name;
	const char *help;
	int preference; /* the highest that works is used */

	/* NULL after printing why: no such device, no memory. */
	void *(*create)(uint32_t connections, int socket);
	/* Places are below this. */
	uint32_t (*places)(const void *state);
	/* The places of the `n` keys of a burst, negative where there is none. */
	void (*lookup)(void *state, const void **keys, uint16_t n, int32_t *places);
	/* The place of a key, new if it must be; negative when there is no room. */
	int32_t (*insert)(void *state, const struct flow_key *key);
	void (*remove)(void *state, uint32_t place);
	void (*destroy)(void *state);

	/*
	 * Forward the packets of a connection without the cores, whichever end they are from, but
	 * those that begin or end it; its key is seen from the end whose packets come in on `port`.
	 * False when the card cannot; one that refuses it later leaves its packets to the cores.
	 * These three are NULL where there is no card.
	 */
	bool (*forward)(void *state, uint32_t place, uint16_t port);
	/* Let the cores have its packets again. */
	void (*withdraw)(void *state, uint32_t place);
	/* Whether packets of it were forwarded since this was last asked. */
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

/* By the first backend that works; false after printing why none does. */
bool flow_offload_create(struct flow_offload *offload, uint32_t connections, int socket);
void flow_offload_destroy(struct flow_offload *offload);

#endif
