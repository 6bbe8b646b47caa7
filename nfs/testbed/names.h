/* Names and ranges in the testbed protocol. */
#pragma once

#include "core/nf.h"

extern const char *const accelerator_names[ACCELERATOR_KINDS];

/* The accelerator kind with this name, or -1. */
int accelerator_kind_named(const char *name);

/* Traffic attributes of every network function, in the order of the enum below. */
extern const struct nf_parameter traffic_attributes[];
/* An optional traffic attribute that is not profiled. */
extern const struct nf_parameter traffic_zipf;
enum { FLOWS, PACKET_SIZE, MTBR, TRAFFIC_ATTRIBUTES };

/*
 * The range that the testbed offers for a bench parameter. NULL if clients do not set the parameter
 * and it keeps its default.
 */
const struct nf_parameter *offered_parameter(const char *name);
