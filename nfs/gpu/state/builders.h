/* Builders of tables, one file each, and what they share. */
#pragma once

#include "gpu/state/state.h"

/* Zeroed room for tables; NULL after printing why. */
u8 *gpu_state_room(const struct nf *nf, struct gpu_state *state, size_t bytes);

/* The setting of a parameter by its name, which the function must have. */
double gpu_setting(const struct nf *nf, const char *name);
const char *gpu_text(const struct nf *nf, const char *name);

/* Builds the tables of an instance; false after printing why. */
typedef bool (*gpu_builder)(const struct nf *nf, struct gpu_state *state);

void gpu_builder_register(enum gpu_nf nf, gpu_builder builder);

#define GPU_BUILDER_REGISTER(nf, builder)                                                          \
	__attribute__((constructor)) static void gpu_builder_register_##builder(void)              \
	{                                                                                          \
		gpu_builder_register(nf, builder);                                                 \
	}
