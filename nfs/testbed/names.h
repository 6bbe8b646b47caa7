/* How the protocol names things. */
#ifndef NFS_TESTBED_NAMES_H
#define NFS_TESTBED_NAMES_H

#include "core/nf.h"

extern const char *const accelerator_names[ACCELERATOR_KINDS];

/* The kind of a name, or -1. */
int accelerator_kind_named(const char *name);

/* Traffic attributes of every network function, and parameters that a bench must be given. */
extern const struct nf_parameter traffic_attributes[];
/* One more that traffic may be told to have, and that is not among what is profiled. */
extern const struct nf_parameter traffic_zipf;
enum { FLOWS, PACKET_SIZE, MTBR, TRAFFIC_ATTRIBUTES };

/*
 * The range in which the protocol offers a bench parameter, or NULL when it is not asked for and
 * keeps its usual value: what a bench can do beyond is no use to who measures contention.
 */
const struct nf_parameter *offered_parameter(const char *name);

#endif
