/* Reassembles fragments with rte_ip_frag; incomplete datagrams are freed after a timeout. */
#ifndef NFS_FUNCTIONS_IP_TUNNEL_REASSEMBLY_H
#define NFS_FUNCTIONS_IP_TUNNEL_REASSEMBLY_H

#include "core/packet.h"

struct reassembly;

/*
 * For `n` concurrent datagrams; NULL after printing why. Freed fragments of invalid or expired
 * datagrams are counted in `unassembled`.
 */
struct reassembly *reassembly_create(uint32_t datagrams, uint64_t timeout_us, int socket,
				     uint64_t *unassembled);
void reassembly_destroy(struct reassembly *reassembly);

/*
 * Take over a fragment. Returns the datagram that it completes, with each fragment's ECN mark in
 * its segments, or NULL while fragments are missing. The IPv4 header is at `l2_len`, because
 * fragments may have different tags; it is valid except for its checksum.
 */
struct rte_mbuf *reassembly_add(struct reassembly *reassembly, struct rte_mbuf *fragment,
				const struct packet *packet, uint64_t now_us);

/* Free some expired datagrams; returns whether there were any. */
bool reassembly_expire(struct reassembly *reassembly, uint64_t now_us);

/* Free all stored fragments. */
void reassembly_free_all(struct reassembly *reassembly);

#endif
