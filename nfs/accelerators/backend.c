#include "accelerators/backend.h"

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
