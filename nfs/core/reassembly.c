#include "core/reassembly.h"

#include "core/fragment.h"
#include "core/pending.h"

#define OFFSET_UNIT 8 /* bytes */

static void free_fragment(struct reassembly *reassembly, struct rte_mbuf *mbuf, int counter)
{
	reassembly->counters[counter]++;
	rte_pktmbuf_free(mbuf);
}

static void complete_header(struct rte_ipv4_hdr *ip, uint16_t length, bool df)
{
	ip->total_length = rte_cpu_to_be_16(length);
	ip->fragment_offset = df ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static bool complete(struct reassembly *reassembly, struct pending *pending,
		     struct reassembled *whole)
{
	struct rte_mbuf *mbuf = datagram_join(&pending->datagram);
	const struct packet packet = packet_parse_any(mbuf);
	struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, &packet);
	const uint32_t length = rte_ipv4_hdr_len(ip) + pending->datagram.end;
	/* the first fragment may have options that the others lack */
	const bool fits = length <= UINT16_MAX;

	if (fits) {
		complete_header(ip, (uint16_t)length, pending->largest_has_df);
		datagram_gather(mbuf);
		packet_changed(mbuf);
		*whole = (struct reassembled){mbuf, packet.l3, pending->largest, pending->marks};
	} else {
		reassembly->counters[REASSEMBLY_UNASSEMBLED] += pending->datagram.n;
		rte_pktmbuf_free(mbuf);
	}
	pending_forget(reassembly, pending);
	return fits;
}

/* Its bytes; false if it is invalid: without any, or beyond the largest datagram. */
static bool read_piece(struct piece *piece, struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const uint16_t flags = rte_be_to_cpu_16(ip->fragment_offset);
	const uint32_t begin = (flags & RTE_IPV4_HDR_OFFSET_MASK) * OFFSET_UNIT;
	const uint32_t header = rte_ipv4_hdr_len(ip), total = rte_be_to_cpu_16(ip->total_length);

	if (total == header || begin + total > UINT16_MAX ||
	    ((flags & RTE_IPV4_HDR_MF_FLAG) && (total - header) % OFFSET_UNIT != 0))
		return false;
	*piece = (struct piece){
		.mbuf = mbuf,
		.begin = (uint16_t)begin,
		.end = (uint16_t)(begin + total - header),
		.at = (uint16_t)(packet->l3 + header),
	};
	return true;
}

/* Record what the datagram has from a fragment besides its bytes. */
static void note(struct reassembly *reassembly, struct pending *pending, struct rte_mbuf *mbuf,
		 const struct rte_ipv4_hdr *ip)
{
	const uint16_t length = rte_be_to_cpu_16(ip->total_length);
	const bool df = ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	uint64_t holding[PENDING_RESOURCES];

	pending_measure(mbuf, holding);
	pending_charge(reassembly, pending, holding, true);
	pending->marks |= 1u << (ip->type_of_service & RTE_IPV4_HDR_ECN_MASK);
	if (length > pending->largest)
		pending->largest_has_df = false;
	if (length >= pending->largest) {
		pending->largest = length;
		pending->largest_has_df |= df;
	}
}

/* Free the pieces whose bytes came again in a larger one. */
static void free_replaced(struct reassembly *reassembly, struct pending *pending,
			  struct piece_list *replaced)
{
	uint64_t holding[PENDING_RESOURCES];
	struct piece *piece;

	TAILQ_FOREACH(piece, replaced, entry) {
		pending_measure(piece->mbuf, holding);
		pending_charge(reassembly, pending, holding, false);
		free_fragment(reassembly, piece->mbuf, REASSEMBLY_DUPLICATES);
	}
	TAILQ_CONCAT(&reassembly->free_pieces, replaced, entry);
}

/* Add a fragment, described by `read`, to a datagram. */
static bool add_to(struct reassembly *reassembly, struct pending *pending, const struct piece *read,
		   const struct rte_ipv4_hdr *ip, struct reassembled *whole)
{
	const bool last = !(ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG));
	struct piece *piece = TAILQ_FIRST(&reassembly->free_pieces);
	struct piece_list replaced = TAILQ_HEAD_INITIALIZER(replaced);
	enum datagram_change change;

	TAILQ_REMOVE(&reassembly->free_pieces, piece, entry);
	*piece = *read;
	change = datagram_add(&pending->datagram, piece, last, &replaced);
	if (change != DATAGRAM_GREW) {
		TAILQ_INSERT_HEAD(&reassembly->free_pieces, piece, entry);
		free_fragment(reassembly, read->mbuf,
			      change == DATAGRAM_SAME ? REASSEMBLY_DUPLICATES
						      : REASSEMBLY_OVERLAPPING);
		if (change == DATAGRAM_CONTRADICTED)
			pending_discard(reassembly, pending, REASSEMBLY_OVERLAPPING);
		return false;
	}
	note(reassembly, pending, read->mbuf, ip);
	free_replaced(reassembly, pending, &replaced);
	if (pending->datagram.n > REASSEMBLY_PIECES) {
		pending_discard(reassembly, pending, REASSEMBLY_UNASSEMBLED);
		return false;
	}
	if (datagram_is_complete(&pending->datagram))
		return complete(reassembly, pending, whole);
	pending_make_room(reassembly, PENDING_BUFFERS, 0);
	pending_make_room(reassembly, PENDING_BYTES, 0);
	return false;
}

bool reassembly_add(struct reassembly *reassembly, struct rte_mbuf *fragment,
		    const struct packet *packet, uint8_t side, uint64_t now_us,
		    struct reassembled *whole)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(fragment, packet);
	const struct datagram_key key = {ip->src_addr, ip->dst_addr, ip->packet_id,
					 ip->next_proto_id, side};
	struct piece piece;

	packet_unpad(fragment, packet->l3);
	if (!read_piece(&piece, fragment, packet)) {
		free_fragment(reassembly, fragment, REASSEMBLY_UNASSEMBLED);
		return false;
	}
	return add_to(reassembly, pending_of(reassembly, &key, now_us), &piece, ip, whole);
}

bool reassembled_join_marks(const struct reassembled *whole)
{
	struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(whole->mbuf, struct rte_ipv4_hdr *, whole->l3);

	if (!(whole->marks & 1u << RTE_IPV4_HDR_ECN_CE))
		return true;
	ip->type_of_service |= RTE_IPV4_HDR_ECN_CE;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return !(whole->marks & 1u << 0);
}
