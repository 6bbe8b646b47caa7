/*
 * Traffic for a network function, made without a wire: packets of many flows, of one size, whose
 * payload matches the rules at a wanted rate; or those of a capture.
 *
 * Payloads are written once, when the packets are made. A burst only gets its headers, as a NIC
 * would bring them into the cache: nothing is copied. The packets go round: what the function
 * frees is received again, first freed first received.
 */
#ifndef NFS_CORE_TRAFFIC_H
#define NFS_CORE_TRAFFIC_H

#include <stdint.h>

#include <rte_mbuf.h>

#define TRAFFIC_LEAST_SIZE 60  /* bytes of a frame without its checksum; 64 with it */
#define TRAFFIC_PACKETS 511    /* under way at once, in a function and its accelerators */
#define TRAFFIC_CAPTURED 65535 /* packets that are taken of a capture, at most */

struct traffic_profile {
	uint32_t flows;       /* concurrent */
	uint16_t packet_size; /* bytes of a frame, with the 4 of its checksum */
	double mtbr;          /* matches per 10^6 bytes of payload */
	double zipf;          /* exponent of the flows' popularity; 0: all alike */
};

struct traffic;

/* NULL after printing why on stderr. The same seed gives the same packets. */
struct traffic *traffic_create(const struct traffic_profile *profile, uint64_t seed);
/* The first packets of a capture, round and round; those larger than a buffer are left out. */
struct traffic *traffic_create_pcap(const char *path);
void traffic_destroy(struct traffic *traffic);

/* At most `n` packets; fewer when the function holds the others. */
uint16_t traffic_receive(struct traffic *traffic, struct rte_mbuf **packets, uint16_t n);

/* The next packets are one of each flow, for tables that are to be filled; a capture has none. */
void traffic_sweep(struct traffic *traffic);

/* Matches per 10^6 bytes that the payloads really have. */
double traffic_mtbr(const struct traffic *traffic);

#endif
