#include "gpu/backends/backend.h"

#include <string.h>

static struct gpu_backend *backends;

_Thread_local struct plain_place plain_place = {.groups = 1};

void gpu_backend_register(struct gpu_backend *backend)
{
	struct gpu_backend **place = &backends;

	while (*place && strcmp((*place)->name, backend->name) < 0)
		place = &(*place)->next;
	backend->next = *place;
	*place = backend;
}

const struct gpu_backend *gpu_backend_first(void)
{
	return backends;
}

const struct gpu_backend *gpu_backend_find(const char *name)
{
	const struct gpu_backend *backend = backends;

	while (backend && strcmp(backend->name, name) != 0)
		backend = backend->next;
	return backend;
}
