/* Fragments put together again, by rte_ip_frag; those that stay alone are freed in time. */
#ifndef NFS_FUNCTIONS_IP_TUNNEL_REASSEMBLY_H
#define NFS_FUNCTIONS_IP_TUNNEL_REASSEMBLY_H

#include "core/packet.h"

struct reassembly;

/* For so many datagrams at once; NULL after printing why. */
struct reassembly *reassembly_create(uint32_t datagrams, uint64_t timeout_us, int socket);
void reassembly_destroy(struct reassembly *reassembly);

/*
 * Takes over a fragment. The datagram that it completes, in one segment where there is room; NULL
 * when parts are missing yet. Its IPv4 header is `l2_len` bytes into it, for each part may have had
 * other tags, and is right but for its checksum.
 */
struct rte_mbuf *reassembly_add(struct reassembly *reassembly, struct rte_mbuf *fragment,
				const struct packet *packet, uint64_t now_us);

/* Free what cannot become a datagram any more. */
void reassembly_free_dead(struct reassembly *reassembly);

/* Free all that waits. */
void reassembly_forget(struct reassembly *reassembly);

#endif
