/*
 * The fragments of one IPv4 datagram until it is complete (RFC 791, section 3.2).
 *
 * Bytes that arrive again must be the same as before: otherwise what a host behind us reassembles
 * would depend on its order of fragments (RFC 1858, RFC 3128, RFC 5722).
 */
#pragma once

#include <sys/queue.h>

#include "core/packet.h"

/* A fragment, or what no other fragment has of it. */
struct piece {
	TAILQ_ENTRY(piece) entry;
	struct rte_mbuf *mbuf;
	uint16_t begin, end; /* its bytes of the datagram, counted behind the IPv4 header */
	uint16_t at;         /* offset of byte `begin` from the start of the packet */
};
TAILQ_HEAD(piece_list, piece);

struct datagram {
	struct piece_list pieces; /* disjoint, in the order of their bytes */
	uint32_t n;               /* of pieces */
	uint32_t received;        /* bytes in them */
	uint32_t end;             /* of the last fragment; 0 before it arrives */
	uint32_t more_behind;     /* largest end of the other fragments */
};

enum datagram_change {
	DATAGRAM_GREW,
	DATAGRAM_SAME,        /* other fragments already have all bytes of this one */
	DATAGRAM_CONTRADICTED /* by other bytes at the same place, or by another end */
};

static inline void datagram_begin(struct datagram *datagram)
{
	*datagram = (struct datagram){0};
	TAILQ_INIT(&datagram->pieces);
}

/*
 * Add a fragment; `last` if none follows it. If the datagram grew, it holds the piece, and the
 * pieces that are no longer needed are moved to `replaced`; otherwise the piece stays the caller's.
 */
enum datagram_change datagram_add(struct datagram *datagram, struct piece *piece, bool last,
				  struct piece_list *replaced);

static inline bool datagram_is_complete(const struct datagram *datagram)
{
	return datagram->end != 0 && datagram->received == datagram->end;
}

/*
 * Join the packets of a complete datagram to one, which begins with all of the first fragment's
 * headers, unchanged. The pieces stay the caller's; their packets are no longer theirs.
 */
struct rte_mbuf *datagram_join(struct datagram *datagram);

/* Bytes that should be in the first segment: IPv4, ICMP, then IPv4 and TCP, or less. */
#define DATAGRAM_HEADERS 192

/* Move a packet's first bytes into its first segment: all if there is room, or the headers. */
void datagram_gather(struct rte_mbuf *mbuf);
