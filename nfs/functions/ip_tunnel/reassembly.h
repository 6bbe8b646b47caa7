/* Fragments put together again, by rte_ip_frag; those that stay alone are freed in time. */
#ifndef NFS_FUNCTIONS_IP_TUNNEL_REASSEMBLY_H
#define NFS_FUNCTIONS_IP_TUNNEL_REASSEMBLY_H

#include "core/packet.h"

struct reassembly;

/*
 * For so many datagrams at once; NULL after printing why. Fragments that are freed, because they
 * cannot become a datagram or have not in time, are counted in `unassembled`.
 */
struct reassembly *reassembly_create(uint32_t datagrams, uint64_t timeout_us, int socket,
				     uint64_t *unassembled);
void reassembly_destroy(struct reassembly *reassembly);

/*
 * Takes over a fragment. The datagram that it completes, each fragment's segments with its mark of
 * congestion; NULL when some are missing yet. Its IPv4 header is `l2_len` bytes into it, for each
 * fragment may have had other tags, and is right but for its checksum.
 */
struct rte_mbuf *reassembly_add(struct reassembly *reassembly, struct rte_mbuf *fragment,
				const struct packet *packet, uint64_t now_us);

/* Free what cannot become a datagram any more, by so many a time; whether there was any. */
bool reassembly_expire(struct reassembly *reassembly, uint64_t now_us);

/* Free all that waits. */
void reassembly_forget(struct reassembly *reassembly);

#endif
