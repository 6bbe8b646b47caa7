/*
 * Gives the same packets to a function in C and to its kernel on every engine of the build, and
 * compares: verdict by verdict, byte by byte.
 */
#pragma once

#include "gpu/backends/backend.h"
#include "gpu/state/state.h"
#include "tests/hostile.h"

#define GPU_RIG_BATCH 256
#define GPU_RIG_LONGEST 1800
#define GPU_RIG_STRIDE 1920
#define GPU_RIG_ENGINES 4

struct gpu_engine {
	const struct gpu_backend *backend;
	void *device;
};

struct gpu_rig;

/* Called with every packet and the head of its result, before the function in C gets it. */
typedef void (*gpu_check)(struct gpu_rig *gpu, struct rte_mbuf *packet,
			  const struct gpu_slot *head);

struct gpu_rig {
	struct rig *rig;
	enum gpu_nf nf;
	struct gpu_state state;
	struct gpu_engine engines[GPU_RIG_ENGINES];
	unsigned int n_engines;
	unsigned int n;     /* packets of the batch */
	uint64_t offered;   /* packets of earlier batches */
	gpu_check check;    /* NULL: none */
	uint32_t most_held; /* bytes of a frame that slots get; all if 0 */
	struct rte_mbuf *packets[GPU_RIG_BATCH];
};

/* The function with settings, its tables, and all engines that have a device. */
struct gpu_rig *gpu_rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
			     unsigned int n_settings);

/* Add a packet, as one segment, to the batch; a full batch runs. */
void gpu_rig_add(struct gpu_rig *gpu, struct rte_mbuf *packet);
/* Run the batch on all engines and in C; fails unless all results are the same. */
void gpu_rig_run(struct gpu_rig *gpu);

/* Packets to offer: `usual` ones, or as many as the environment's GPU_PACKETS says. */
unsigned int gpu_rig_count(unsigned int usual);

/* The same of `n` hostile packets, half of whose addresses are among those given. */
void gpu_rig_offer_hostile(struct gpu_rig *gpu, const uint32_t *addresses, unsigned int n_addresses,
			   unsigned int n);
