#include "core/reassembly.h"

#include <stdio.h>


#include "core/fragment.h"
#include "core/memory.h"

#define EXPIRED_AT_ONCE 64 /* most datagrams freed per burst after their timeout */

/*
 * Multilinear hashing (Lemire and Kaser, 2014) with random keys: senders that do not know them
 * cannot choose packets that collide.
 */
static struct pending_bucket *bucket_of(const struct reassembly *reassembly,
					const struct datagram_key *key)
{
	const uint64_t *keys = reassembly->keys;
	const uint32_t rest = (uint32_t)key->id << 16 | key->protocol << 8 | key->side;
	const uint64_t hash =
		keys[0] + keys[1] * key->source + keys[2] * key->destination + keys[3] * rest;

	return &reassembly->buckets[hash >> 32 & reassembly->bucket_mask];
}

static uint8_t source_of(const struct reassembly *reassembly, const struct datagram_key *key)
{
	return (reassembly->keys[4] + reassembly->keys[5] * key->source) >> 32 &
	       (PENDING_SOURCES - 1);
}

static bool allocate(struct reassembly *reassembly, const struct reassembly_limits *limits)
{
	const uint32_t buckets = rte_align32pow2(limits->datagrams);

	reassembly->buckets = nf_zalloc(buckets * sizeof(*reassembly->buckets));
	reassembly->slots = nf_zalloc(limits->datagrams * sizeof(*reassembly->slots));
	reassembly->piece_slots =
		nf_zalloc((limits->buffers + 1) * sizeof(*reassembly->piece_slots));
	reassembly->bucket_mask = buckets - 1;
	return reassembly->buckets && reassembly->slots && reassembly->piece_slots;
}

static void release(struct reassembly *reassembly)
{
	if (!reassembly)
		return;
	nf_free(reassembly->buckets);
	nf_free(reassembly->slots);
	nf_free(reassembly->piece_slots);
	nf_free(reassembly);
}

static void begin_lists(struct reassembly *reassembly, const struct reassembly_limits *limits)
{
	TAILQ_INIT(&reassembly->free);
	TAILQ_INIT(&reassembly->free_pieces);
	TAILQ_INIT(&reassembly->by_age);
	for (int source = 0; source < PENDING_SOURCES; source++)
		TAILQ_INIT(&reassembly->of_source[source]);
	for (uint32_t i = 0; i < limits->datagrams; i++)
		TAILQ_INSERT_TAIL(&reassembly->free, &reassembly->slots[i], by_age);
	for (uint32_t i = 0; i < limits->buffers + 1; i++)
		TAILQ_INSERT_TAIL(&reassembly->free_pieces, &reassembly->piece_slots[i], entry);
}

struct reassembly *reassembly_create(const char *name, const struct reassembly_limits *limits,
				     uint64_t *counters)
{
	struct reassembly *reassembly = nf_zalloc(sizeof(*reassembly));

	if (!reassembly || !allocate(reassembly, limits)) {
		fprintf(stderr, "%s: no memory to reassemble %u datagrams\n", name,
			limits->datagrams);
		release(reassembly);
		return NULL;
	}
	begin_lists(reassembly, limits);
	draw_secrets(reassembly->keys, RTE_DIM(reassembly->keys));
	reassembly->most[PENDING_DATAGRAMS] = limits->datagrams;
	reassembly->most[PENDING_BUFFERS] = limits->buffers;
	reassembly->most[PENDING_BYTES] = limits->bytes;
	reassembly->timeout_us = limits->timeout_us;
	reassembly->counters = counters;
	return reassembly;
}

void reassembly_destroy(struct reassembly *reassembly)
{
	if (reassembly)
		reassembly_free_all(reassembly);
	release(reassembly);
}

/* What a packet holds. */
static void pending_measure(const struct rte_mbuf *mbuf, uint64_t holding[PENDING_RESOURCES])
{
	memset(holding, 0, PENDING_RESOURCES * sizeof(*holding));
	for (; mbuf; mbuf = mbuf->next) {
		holding[PENDING_BUFFERS]++;
		holding[PENDING_BYTES] += mbuf->buf_len;
	}
}

/* Add to what a datagram holds, or subtract from it. */
static void pending_charge(struct reassembly *reassembly, struct pending *pending,
			   const uint64_t holding[PENDING_RESOURCES], bool more)
{
	for (int resource = 0; resource < PENDING_RESOURCES; resource++) {
		const uint64_t change = more ? holding[resource] : -holding[resource];

		pending->holds[resource] += change;
		reassembly->held[resource] += change;
		reassembly->held_of_source[resource][pending->source] += change;
	}
}

/* Forget a datagram whose pieces no longer have packets. */
static void pending_forget(struct reassembly *reassembly, struct pending *pending)
{
	uint64_t holds[PENDING_RESOURCES];

	memcpy(holds, pending->holds, sizeof(holds));
	pending_charge(reassembly, pending, holds, false);
	TAILQ_CONCAT(&reassembly->free_pieces, &pending->datagram.pieces, entry);
	TAILQ_REMOVE(&reassembly->by_age, pending, by_age);
	TAILQ_REMOVE(&reassembly->of_source[pending->source], pending, of_source);
	LIST_REMOVE(pending, in_bucket);
	TAILQ_INSERT_HEAD(&reassembly->free, pending, by_age);
}

/* Free a datagram with all its fragments, which are counted. */
static void pending_discard(struct reassembly *reassembly, struct pending *pending, int counter)
{
	struct piece *piece;

	TAILQ_FOREACH(piece, &pending->datagram.pieces, entry) {
		rte_pktmbuf_free(piece->mbuf);
	}
	reassembly->counters[counter] += pending->datagram.n;
	pending_forget(reassembly, pending);
}

/*
 * Make room for more of a resource: of the sources that hold most of it, the oldest datagrams are
 * freed until the limit is kept.
 */
static void pending_make_room(struct reassembly *reassembly, enum pending_resource resource,
			      uint64_t more)
{
	const uint64_t *held = reassembly->held_of_source[resource];

	while (reassembly->held[resource] + more > reassembly->most[resource]) {
		int most = 0;

		for (int source = 1; source < PENDING_SOURCES; source++)
			most = held[source] > held[most] ? source : most;
		pending_discard(reassembly, TAILQ_FIRST(&reassembly->of_source[most]),
				REASSEMBLY_EVICTED);
	}
}

static bool timed_out(const struct reassembly *reassembly, const struct pending *pending,
		      uint64_t now_us)
{
	return now_us - pending->begun_us > reassembly->timeout_us;
}

static struct pending *begin(struct reassembly *reassembly, struct pending_bucket *bucket,
			     const struct datagram_key *key, uint64_t now_us)
{
	struct pending *pending;

	pending_make_room(reassembly, PENDING_DATAGRAMS, 1);
	pending = TAILQ_FIRST(&reassembly->free);
	TAILQ_REMOVE(&reassembly->free, pending, by_age);
	*pending = (struct pending){
		.key = *key,
		.begun_us = now_us,
		.source = source_of(reassembly, key),
	};
	datagram_begin(&pending->datagram);
	pending_charge(reassembly, pending,
		       (const uint64_t[PENDING_RESOURCES]){[PENDING_DATAGRAMS] = 1}, true);
	TAILQ_INSERT_TAIL(&reassembly->by_age, pending, by_age);
	TAILQ_INSERT_TAIL(&reassembly->of_source[pending->source], pending, of_source);
	LIST_INSERT_HEAD(bucket, pending, in_bucket);
	return pending;
}

/* The datagram of a key, begun if there is none, or only one that timed out. */
static struct pending *pending_of(struct reassembly *reassembly, const struct datagram_key *key,
				  uint64_t now_us)
{
	struct pending_bucket *bucket = bucket_of(reassembly, key);
	struct pending *pending;

	LIST_FOREACH(pending, bucket, in_bucket) {
		if (memcmp(&pending->key, key, sizeof(*key)) == 0)
			break;
	}
	if (pending && timed_out(reassembly, pending, now_us)) {
		pending_discard(reassembly, pending, REASSEMBLY_UNASSEMBLED);
		pending = NULL;
	}
	return pending ? pending : begin(reassembly, bucket, key, now_us);
}

void reassembly_expire(struct reassembly *reassembly, uint64_t now_us)
{
	for (int n = 0; n < EXPIRED_AT_ONCE; n++) {
		struct pending *oldest = TAILQ_FIRST(&reassembly->by_age);

		if (likely(!oldest || !timed_out(reassembly, oldest, now_us)))
			return;
		pending_discard(reassembly, oldest, REASSEMBLY_UNASSEMBLED);
	}
}

void reassembly_free_all(struct reassembly *reassembly)
{
	struct pending *oldest;

	while ((oldest = TAILQ_FIRST(&reassembly->by_age)))
		pending_discard(reassembly, oldest, REASSEMBLY_UNASSEMBLED);
}

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

/* Free the pieces whose bytes a larger one repeated. */
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
