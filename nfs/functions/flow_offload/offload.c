#include "functions/flow_offload/offload.h"

static struct flow_offload_backend *backends;

void flow_offload_register(struct flow_offload_backend *backend)
{
	struct flow_offload_backend **place = &backends;

	while (*place && (*place)->preference >= backend->preference)
		place = &(*place)->next;
	backend->next = *place;
	*place = backend;
}

bool flow_offload_create(struct flow_offload *offload, uint32_t connections, int socket)
{
	for (offload->backend = backends; offload->backend;
	     offload->backend = offload->backend->next) {
		offload->state = offload->backend->create(connections, socket);
		if (offload->state)
			return true;
	}
	return false;
}

void flow_offload_destroy(struct flow_offload *offload)
{
	if (offload->backend)
		offload->backend->destroy(offload->state);
}
