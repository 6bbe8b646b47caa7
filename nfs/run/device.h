/*
 * Runs the function of a chain on a device (gpu/host/runtime.h): its worker gives each packet to
 * the chain once the device's result is there. What a kernel leaves to the host, and packets
 * without a result, are processed by the function in C.
 */
#pragma once

#include "core/chain.h"
#include "gpu/kernels/task.h"

#define DEVICE_MOST_BATCH 1024

struct device_options {
	const char *backend; /* NULL: the functions in C */
	unsigned int batch;  /* packets */
	double flush_us;
	unsigned int executors;
};

/*
 * Print each fault of options for a function, or for a chain if NULL; "c" becomes NULL. Returns how
 * many there are. `tuned`: options other than the backend were given.
 */
unsigned int device_options_check(struct device_options *options, const char *nf, bool tuned);

/* Lets a packet enter the chain, on the thread of the worker. */
typedef void (*device_enter)(void *state, struct rte_mbuf *packet, uint64_t time_us);

struct device;

/* Before accelerators are created, of a chain that will be given to device_open(). */
void device_prepare(const struct chain_spec *spec);

/* Of a chain of one function. NULL after printing why. */
struct device *device_open(const struct device_options *options, struct chain *chain,
			   device_enter enter, void *state);

/*
 * Give a packet to the device, waiting while it has too many; the packet enters the chain once its
 * result is there, in the order of submission.
 */
void device_submit(struct device *device, struct rte_mbuf *packet, uint64_t time_us);
/* Wait until all packets have entered: the chain is the caller's until the next one. */
void device_drain(struct device *device);
/* The same for good. False if the device was given up; all packets have entered all the same. */
bool device_stop(struct device *device);
void device_close(struct device *device);
