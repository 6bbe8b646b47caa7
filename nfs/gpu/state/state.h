/*
 * The tables of a function as its kernel reads them: one flat piece of memory without pointers,
 * from the settings of an instance of the function in C, so that both have the same tables.
 */
#pragma once

#include "core/nf.h"
#include "gpu/kernels/task.h"

struct gpu_state {
	u8 *bytes; /* aligned to GPU_ARENA_ALIGNMENT of backends/backend.h */
	size_t n;
};

/* The kernel for a function; GPU_NFS if there is none. */
enum gpu_nf gpu_nf_of(const char *name);
/* The name of the function in C. */
const char *gpu_nf_name(enum gpu_nf nf);

/* The name of the counter of the function in C that counts a verdict; NULL if none does. */
const char *gpu_verdict_name(enum gpu_nf nf, u32 verdict);

/* Build the tables of an instance; false after printing why. gpu_state_free() frees them. */
bool gpu_state_build(const struct nf *nf, struct gpu_state *state);
void gpu_state_free(struct gpu_state *state);

/* What builders of tables share, one file each: zeroed room; NULL after printing why. */
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
