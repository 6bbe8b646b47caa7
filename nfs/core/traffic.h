/*
 * Traffic for a network function, generated in memory: packets of many flows, of one size, whose
 * payload matches the rules at a given rate; or those of a capture.
 *
 * Payloads are written once, when the packets are created. A burst only gets new headers, as a NIC
 * would write them into the cache. Packets are reused: what the function frees first is received
 * first.
 */
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>

#define TRAFFIC_LEAST_SIZE 60  /* bytes of a frame without its checksum; 64 with it */
#define TRAFFIC_PACKETS 511    /* most packets in use, in a function and its accelerators */

struct traffic_profile {
	uint32_t flows;       /* concurrent */
	uint16_t packet_size; /* bytes of a frame, with the 4 of its checksum */
	double mtbr;          /* matches per 10^6 bytes of payload */
	double zipf;          /* exponent of the flows' popularity; 0: all equal */
};

struct traffic;

/* NULL after printing why. The same seed gives the same packets. */
struct traffic *traffic_create(const struct traffic_profile *profile, uint64_t seed);
/* The first packets of a capture in a loop; packets larger than a buffer are skipped. */
struct traffic *traffic_create_pcap(const char *path);
void traffic_destroy(struct traffic *traffic);

/* Up to `n` packets; fewer if the function holds the others. */
uint16_t traffic_receive(struct traffic *traffic, struct rte_mbuf **packets, uint16_t n);

/*
 * From now on write the payload of every packet again: a function changes them in place. 0,
 * -ENOMEM, or -ENOTSUP for a capture.
 */
int traffic_renew(struct traffic *traffic);

/* Send one packet of each flow next, to fill tables; no effect on a capture. */
void traffic_sweep(struct traffic *traffic);

/* The actual matches per 10^6 bytes of the payloads. */
double traffic_mtbr(const struct traffic *traffic);
