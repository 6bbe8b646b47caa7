/*
 * The light mode of FastEncrypt, which also fits a SmartNIC's few instructions: the first blocks of
 * a payload are combined with a key stream of ChaCha20 by exclusive or.
 *
 * Nothing is authenticated, and the nonce is made of the packet's headers (addresses,
 * identification, protocol): packets with equal ones have equal key streams, so that a listener
 * learns the difference of their payloads. It is a load to place and to measure, no protection. It
 * is its own inverse, and packets do not become longer.
 */
#pragma once

#include "core/nf.h"
#include "functions/fast_encrypt/chacha20.h"

#define LIGHT_MOST_BLOCKS 64

struct light {
	uint8_t key[CHACHA20_KEY];
	unsigned int blocks;
	uint8_t bytes[LIGHT_MOST_BLOCKS * CHACHA20_BLOCK]; /* of a payload in several segments */
};

enum light_result {
	LIGHT_DONE,
	LIGHT_NOTHING, /* no payload of UDP or TCP, or a fragment */
};

/* Encrypt or decrypt a packet in place, and update its checksum. */
enum light_result light_apply(struct light *light, struct rte_mbuf *mbuf,
			      const struct packet *packet);
