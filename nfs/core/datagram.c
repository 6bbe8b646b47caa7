#include "core/datagram.h"

#include "core/fragment.h"
#include "core/memory.h"

#define COMPARED 256 /* bytes at once */

static const void *bytes_at(const struct piece *piece, uint32_t byte, uint32_t n, void *room)
{
	return rte_pktmbuf_read(piece->mbuf, piece->at + byte - piece->begin, n, room);
}

static bool same_bytes(const struct piece *one, const struct piece *other, uint32_t begin,
		       uint32_t end)
{
	uint8_t rooms[2][COMPARED];

	for (uint32_t n; begin < end; begin += n) {
		const void *bytes[2];

		n = RTE_MIN(end - begin, (uint32_t)COMPARED);
		bytes[0] = bytes_at(one, begin, n, rooms[0]);
		bytes[1] = bytes_at(other, begin, n, rooms[1]);
		if (!bytes[0] || !bytes[1] || memcmp(bytes[0], bytes[1], n) != 0)
			return false;
	}
	return true;
}

/* The number of bytes that others have of a fragment; -1 if they are not the same. */
static int32_t bytes_known(const struct datagram *datagram, const struct piece *piece)
{
	const struct piece *other;
	int32_t known = 0;

	TAILQ_FOREACH_REVERSE(other, &datagram->pieces, piece_list, entry) {
		const uint32_t begin = RTE_MAX(other->begin, piece->begin);
		const uint32_t end = RTE_MIN(other->end, piece->end);

		if (other->end <= piece->begin)
			break;
		if (begin >= end)
			continue;
		if (!same_bytes(other, piece, begin, end))
			return -1;
		known += end - begin;
	}
	return known;
}

/* The last piece that begins no later; NULL if there is none. In order, it is the last one. */
static struct piece *piece_before(const struct datagram *datagram, const struct piece *piece)
{
	struct piece *before;

	TAILQ_FOREACH_REVERSE(before, &datagram->pieces, piece_list, entry) {
		if (before->begin <= piece->begin)
			break;
	}
	return before;
}

static void replace(struct datagram *datagram, struct piece *piece, struct piece_list *replaced)
{
	TAILQ_REMOVE(&datagram->pieces, piece, entry);
	TAILQ_INSERT_TAIL(replaced, piece, entry);
	datagram->received -= piece->end - piece->begin;
	datagram->n--;
}

/* Store a piece behind `before`, without the bytes that others have at its ends. */
static void store(struct datagram *datagram, struct piece *before, struct piece *piece,
		  struct piece_list *replaced)
{
	struct piece *next;

	if (before && before->end > piece->begin) {
		piece->at += before->end - piece->begin;
		piece->begin = before->end;
	}
	while ((next = before ? TAILQ_NEXT(before, entry) : TAILQ_FIRST(&datagram->pieces)) &&
	       next->end <= piece->end)
		replace(datagram, next, replaced);
	if (next && next->begin < piece->end)
		piece->end = next->begin;
	if (before)
		TAILQ_INSERT_AFTER(&datagram->pieces, before, piece, entry);
	else
		TAILQ_INSERT_HEAD(&datagram->pieces, piece, entry);
	datagram->received += piece->end - piece->begin;
	datagram->n++;
}

enum datagram_change datagram_add(struct datagram *datagram, struct piece *piece, bool last,
				  struct piece_list *replaced)
{
	const uint32_t end = last ? piece->end : datagram->end;
	const uint32_t more_behind =
		last ? datagram->more_behind : RTE_MAX(datagram->more_behind, (uint32_t)piece->end);
	int32_t known;

	if (datagram->end != 0 && end != datagram->end)
		return DATAGRAM_CONTRADICTED;
	if (end != 0 && more_behind >= end)
		return DATAGRAM_CONTRADICTED;
	known = bytes_known(datagram, piece);
	if (known < 0)
		return DATAGRAM_CONTRADICTED;
	if (known == piece->end - piece->begin)
		return DATAGRAM_SAME;
	datagram->end = end;
	datagram->more_behind = more_behind;
	store(datagram, piece_before(datagram, piece), piece, replaced);
	return DATAGRAM_GREW;
}

/* Remove `length` bytes, fewer than there are, from the front of a chain; returns the rest. */
static struct rte_mbuf *without_front(struct rte_mbuf *segment, uint32_t length)
{
	while (length >= rte_pktmbuf_data_len(segment)) {
		struct rte_mbuf *next = segment->next;

		length -= rte_pktmbuf_data_len(segment);
		rte_pktmbuf_free_seg(segment);
		segment = next;
	}
	segment->data_off += length;
	segment->data_len -= length;
	return segment;
}

static void count_segments(struct rte_mbuf *mbuf)
{
	mbuf->nb_segs = 0;
	mbuf->pkt_len = 0;
	for (const struct rte_mbuf *segment = mbuf; segment; segment = segment->next) {
		mbuf->nb_segs++;
		mbuf->pkt_len += rte_pktmbuf_data_len(segment);
	}
}

struct rte_mbuf *datagram_join(struct datagram *datagram)
{
	struct rte_mbuf *whole = NULL, *last = NULL;
	struct piece *piece;

	TAILQ_FOREACH(piece, &datagram->pieces, entry) {
		struct rte_mbuf *part = piece->mbuf;

		packet_cut(part, piece->at + piece->end - piece->begin);
		if (last)
			last->next = without_front(part, piece->at);
		else
			whole = part;
		last = rte_pktmbuf_lastseg(last ? last->next : whole);
	}
	count_segments(whole);
	return whole;
}

void datagram_gather(struct rte_mbuf *mbuf)
{
	const uint16_t here = rte_pktmbuf_data_len(mbuf), room = rte_pktmbuf_tailroom(mbuf);
	char *end = rte_pktmbuf_mtod_offset(mbuf, char *, here);
	const uint16_t missing = RTE_MAX(here, DATAGRAM_HEADERS) - here;
	const void *from;

	nf_allow(end, room);
	/* now there are more bytes behind `end` than room, or all are in the first segment */
	if (rte_pktmbuf_linearize(mbuf) == 0 || missing == 0 || room < missing)
		return;
	from = rte_pktmbuf_read(mbuf, here, missing, end);
	if (from && from != end)
		memcpy(end, from, missing);
	mbuf->data_len += missing;
	mbuf->next = without_front(mbuf->next, missing);
	count_segments(mbuf);
}
