/*
 * Reads a chain from a text file:
 *
 *     # functions, with their parameters
 *     acl: ACL filters=100 seed=7
 *     lb: LB gates=1 backends=2
 *     nat: NAT
 *     # edges, by numbered gates and with shares of the flows
 *     acl -> lb
 *     lb[0] -> nat 1/3
 *     lb[0] -> out 2/3
 *     lb[1] -> nat
 *     # which functions run on which core; without such lines all on one
 *     core 0: acl lb
 *     core 1: nat
 *     # service paths and indices (RFC 8300) by which packets enter and leave
 *     nsh 5 255 -> nat
 *     nat -> nsh 5 254
 *     # replicas share the flows that enter
 *     nsh 6 255 -> acl.0 1/2
 *     nsh 6 255 -> acl.1 1/2
 *     # salts of the hash by which flows are split, behind a function or at an entry; else 0
 *     split lb 2836281472
 *     split nsh 6 255 17
 */
#pragma once

#include "core/chain.h"

struct chain_file {
	struct chain_spec spec;
	char *text; /* to which settings point */
};

/* False after printing every fault as FILE:LINE: what is wrong. Either way, free it. */
bool chain_file_read(struct chain_file *file, const char *path);
void chain_file_free(struct chain_file *file);
