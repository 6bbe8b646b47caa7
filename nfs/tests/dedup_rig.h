/* A link of two Dedups: the rig's function encodes, the far one restores. */
#pragma once

#include "functions/dedup/format.h"
#include "tests/hostile.h"

#define DEDUP_MOST_FRAME 4096

struct dedup_link {
	struct rig *rig;
	struct nf *far;
	struct nf_out out; /* what the far end sent */
};

/* Both ends with the same settings; freed with the rig, or by its next link. */
struct dedup_link *dedup_link_make(struct rig *rig, const struct nf_setting *settings,
				   unsigned int n_settings);

/* A packet as the near end sends it; NULL if it sent none. The caller frees it. */
struct rte_mbuf *dedup_encoded(struct dedup_link *link, struct rte_mbuf *packet);

/* Offer a packet to the far end; returns what it sent, or NULL, until the next call. */
struct rte_mbuf *dedup_restored(struct dedup_link *link, struct rte_mbuf *packet);

/* A packet crosses the link, and must come out as it was; returns its length on the link. */
uint16_t dedup_crosses(struct dedup_link *link, struct rte_mbuf *packet);

/* A packet with a payload, of UDP unless it has a place in a TCP stream. */
struct rte_mbuf *dedup_packet(struct rig *rig, const void *payload, uint16_t length);
struct rte_mbuf *dedup_segment(struct rig *rig, const void *payload, uint16_t length,
			       uint32_t sequence);

/* Random bytes, of `symbols` kinds. */
void random_bytes(uint64_t *random, uint8_t *bytes, uint16_t length, uint32_t symbols);
