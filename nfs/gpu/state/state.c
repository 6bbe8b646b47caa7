#include "gpu/state/state.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/backends/backend.h"

static const char *const names[GPU_NFS] = {
	[GPU_IP_ROUTER] = "IPRouter",
	[GPU_ACL] = "ACL",
	[GPU_NIDS] = "NIDS",
	[GPU_IPSEC] = "IPSec",
};

/* NULL if the build lacks what a function needs. */
static gpu_builder builders[GPU_NFS];

void gpu_builder_register(enum gpu_nf nf, gpu_builder builder)
{
	builders[nf] = builder;
}

enum gpu_nf gpu_nf_of(const char *name)
{
	enum gpu_nf nf = 0;

	while (nf < GPU_NFS && strcmp(names[nf], name) != 0)
		nf++;
	return nf;
}

const char *gpu_nf_name(enum gpu_nf nf)
{
	return names[nf];
}

bool gpu_state_build(const struct nf *nf, struct gpu_state *state)
{
	const enum gpu_nf of = gpu_nf_of(nf->kind->name);

	*state = (struct gpu_state){0};
	if (of == GPU_NFS || !builders[of]) {
		fprintf(stderr, "%s: there is no kernel of it\n", nf->kind->name);
		return false;
	}
	if (builders[of](nf, state))
		return true;
	gpu_state_free(state);
	return false;
}

void gpu_state_free(struct gpu_state *state)
{
	free(state->bytes);
	*state = (struct gpu_state){0};
}

u8 *gpu_state_room(const struct nf *nf, struct gpu_state *state, size_t bytes)
{
	state->n = (bytes + GPU_ARENA_ALIGNMENT) & ~(size_t)(GPU_ARENA_ALIGNMENT - 1);
	state->bytes = aligned_alloc(GPU_ARENA_ALIGNMENT, state->n);
	if (state->bytes)
		return memset(state->bytes, 0, state->n);
	fprintf(stderr, "%s: no memory for tables of %zu bytes\n", nf->kind->name, state->n);
	return NULL;
}

static unsigned int place_of(const struct nf *nf, const char *name)
{
	unsigned int i = 0;

	while (i < nf->kind->n_parameters && strcmp(nf->kind->parameters[i].name, name) != 0)
		i++;
	if (i < nf->kind->n_parameters)
		return i;
	fprintf(stderr, "%s: has no parameter %s\n", nf->kind->name, name);
	abort();
}

double gpu_setting(const struct nf *nf, const char *name)
{
	return nf->settings[place_of(nf, name)];
}

const char *gpu_text(const struct nf *nf, const char *name)
{
	return nf->texts[place_of(nf, name)];
}
