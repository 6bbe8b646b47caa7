/* One end of a packet, or of the packet that an ICMP error quotes, put in place of another. */
#ifndef NFS_FUNCTIONS_NAT_REWRITE_H
#define NFS_FUNCTIONS_NAT_REWRITE_H

#include "functions/nat/sessions.h"

enum end { END_SOURCE, END_DESTINATION };

/*
 * The port of UDP and TCP, the identifier of an ICMP query, of a packet whose first 8 bytes behind
 * the IPv4 header are there.
 */
struct endpoint endpoint_of(struct rte_mbuf *mbuf, const struct packet *packet, enum end end);

/* The key under which the session of a packet from inside is known. */
struct flow_key key_outward(struct rte_mbuf *mbuf, const struct packet *packet);
/* The same of a packet from outside, by what its destination is mapped to. */
struct flow_key key_inward(struct rte_mbuf *mbuf, const struct packet *packet,
			   const struct mapping *mapping);

/* Put an endpoint in, with all checksums kept right (RFC 3022, section 4.1). */
void endpoint_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		      struct endpoint to);

/* Put in an address alone, where no checksum but the IPv4 header's covers it. */
void address_rewrite(struct rte_mbuf *mbuf, const struct packet *packet, enum end end,
		     rte_be32_t to);

/*
 * Where the packet is that an ICMP error quotes, as far as a NAT needs it; `payload` is where the
 * quote ends. False when it has no ports, or a checksum is wrong (RFC 5508, REQ-3).
 */
bool quoted_packet(struct rte_mbuf *mbuf, const struct packet *error, struct packet *quoted);

/* Make the checksum of an ICMP message anew, of whose content any part was changed. */
void icmp_checksum_again(struct rte_mbuf *mbuf, const struct packet *packet);

#endif
