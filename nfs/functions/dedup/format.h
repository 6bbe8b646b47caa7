/*
 * Encoded payloads: a header, regions that are copied from cached payloads, then the bytes between
 * them.
 *
 * A cached payload is named by its hash, not by its place: so both ends need not count alike, and
 * after a loss only what refers to the lost payload cannot be restored. The hash of the original
 * proves what was restored.
 */
#pragma once

#include <rte_byteorder.h>

#define DEDUP_MAGIC 0x44445550u /* "DDUP"; a payload that begins so is always encoded */
#define DEDUP_MOST_REGIONS 16

struct dedup_hdr {
	rte_be32_t magic;
	uint8_t regions;
	uint8_t version;   /* 0 */
	rte_be16_t length; /* of the original */
	rte_be64_t hash;   /* of the original */
} __rte_packed;

/* Bytes of the original from `at` on; regions are in order and do not overlap. */
struct dedup_region {
	rte_be64_t source; /* hash of the cached payload */
	rte_be16_t offset; /* in the cached payload */
	rte_be16_t length;
	rte_be16_t at;
} __rte_packed;
