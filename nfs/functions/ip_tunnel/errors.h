/* ICMP errors of routers within a tunnel, about packets of it (RFC 2003, section 4). */
#pragma once

#include "core/icmp_report.h"

struct tunnel_error {
	bool is_relayed; /* the sender of the packet in the tunnel's gets an error: */
	enum icmp_problem problem;
	uint16_t mtu; /* of the packets in the tunnel's, if one is too big; else 0 */
	bool has_inner;
	struct packet inner; /* the packet in the tunnel's, if enough of it is quoted */
};

/* Whether a packet is an ICMP error about one from `local` to `remote`; also reads it. */
bool tunnel_error_read(struct rte_mbuf *mbuf, const struct packet *packet, rte_be32_t local,
		       rte_be32_t remote, struct tunnel_error *error);
