/* A scan for all rules without queues, shared by the plain loops of functions that scan. */
#pragma once

#include <hs/hs.h>
#include <rte_mbuf.h>

struct plain_scan {
	hs_database_t *database;
	hs_scratch_t *scratch;
};

/* False after printing why. */
bool plain_scan_create(struct plain_scan *scan);
void plain_scan_destroy(struct plain_scan *scan);

/* The number of rules that the payload of a plain UDP packet matches. */
unsigned int plain_scan_packet(const struct plain_scan *scan, const struct rte_mbuf *packet);
