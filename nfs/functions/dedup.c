/*
 * Dedup: redundancy elimination between the two ends of a link. The one that encodes replaces
 * regions of UDP and TCP payloads that it has sent before by references to them; the one that
 * restores, with `restore` set, puts the same bytes back. What comes from outside is treated in
 * reverse.
 *
 * Both keep a cache of the last payloads of each direction, which packets must traverse in order.
 * Payloads are known by a keyed hash, so a lost packet costs no more than the packets that refer to
 * it, directly or through others, of which `depth` at most build on each other: those cannot be
 * restored, and are freed. A hash of the original proves every restored payload, so that no packet
 * ever has wrong bytes. TCP segments sent again are never encoded: their receiver may lack them.
 *
 * Other packets pass as they are: fragments, other protocols, payloads of less than 64 or more than
 * 2048 bytes.
 */
#include <errno.h>

#include "core/memory.h"
#include "core/metadata.h"
#include "core/nf.h"
#include "functions/dedup/decoder.h"
#include "functions/dedup/encoder.h"

/*
 * Payloads of UDP and TCP, and their replacement by other bytes. Headers stay in place, so that
 * functions on the link still see addresses and ports, and may translate them.
 */

/* Whether it is a whole datagram of UDP or TCP. */
static inline bool payload_is_carried(const struct packet *packet)
{
	return packet->type == PACKET_IPV4 && packet->payload != 0 && !packet->fragment &&
	       (packet->protocol == IPPROTO_UDP || packet->protocol == IPPROTO_TCP);
}

static inline uint8_t *payload_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, uint8_t *, packet->payload);
}

static struct rte_udp_hdr *udp_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_udp_hdr *, packet->l4);
}

static struct rte_tcp_hdr *tcp_of(struct rte_mbuf *mbuf, const struct packet *packet)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_tcp_hdr *, packet->l4);
}

/*
 * Whether the headers can be restored after a change of lengths and checksums: UDP has the length
 * of IPv4, and no checksum is the second form of 0 in ones' complement, which no sender writes.
 */
static bool payload_is_restorable(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet_ipv4(mbuf, packet)->hdr_checksum == UINT16_MAX)
		return false;
	if (packet->protocol == IPPROTO_UDP)
		return rte_be_to_cpu_16(udp_of(mbuf, packet)->dgram_len) ==
		       sizeof(struct rte_udp_hdr) + packet->payload_length;
	return tcp_of(mbuf, packet)->cksum != UINT16_MAX;
}

/*
 * A copy of a packet's headers with `length` bytes of payload, not set yet. NULL without a buffer
 * that is large enough.
 */
static struct rte_mbuf *payload_room(struct rte_mempool *pool, struct rte_mbuf *mbuf,
				     const struct packet *packet, uint16_t length)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;
	char *to;

	if (!made)
		return NULL;
	to = rte_pktmbuf_append(made, packet->payload + length);
	if (!to) {
		rte_pktmbuf_free(made);
		return NULL;
	}
	memcpy(to, rte_pktmbuf_mtod(mbuf, char *), packet->payload);
	metadata_inherit(made, mbuf);
	return made;
}

/* A ones' complement sum without some words and with others (RFC 1624, equation 3). */
static uint16_t changed(uint16_t checksum, uint32_t without, uint32_t with)
{
	uint32_t sum = (uint16_t)~checksum + (UINT16_MAX - without) + with;

	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

static void set_udp(struct rte_udp_hdr *udp, uint32_t without, uint32_t with, rte_be16_t length)
{
	uint16_t checksum = changed(udp->dgram_cksum, without, with);

	/* of the header, and of the pseudo header */
	checksum = checksum_changed(checksum, udp->dgram_len, length);
	checksum = checksum_changed(checksum, udp->dgram_len, length);
	udp->dgram_len = length;
	if (udp->dgram_cksum != 0) /* there is one */
		udp->dgram_cksum = checksum == 0 ? UINT16_MAX : checksum;
}

/* Set lengths and checksums of headers for the new payload, by their change. */
static void payload_replaced(struct rte_mbuf *made, const struct packet *packet, const uint8_t *was,
			     uint16_t was_length)
{
	const uint16_t headers = packet->payload - packet->l4;
	const uint16_t length = rte_pktmbuf_data_len(made) - packet->payload;
	const uint32_t without = rte_raw_cksum(was, was_length);
	const uint32_t with = rte_raw_cksum(payload_of(made, packet), length);
	struct rte_ipv4_hdr *ip = packet_ipv4(made, packet);
	const rte_be16_t total = rte_cpu_to_be_16(rte_pktmbuf_data_len(made) - packet->l3);

	ip->hdr_checksum = checksum_changed(ip->hdr_checksum, ip->total_length, total);
	ip->total_length = total;
	if (packet->protocol == IPPROTO_UDP) {
		set_udp(udp_of(made, packet), without, with, rte_cpu_to_be_16(headers + length));
	} else {
		struct rte_tcp_hdr *tcp = tcp_of(made, packet);

		tcp->cksum = checksum_changed(changed(tcp->cksum, without, with),
					      rte_cpu_to_be_16(headers + was_length),
					      rte_cpu_to_be_16(headers + length));
	}
}

enum { PACKETS, DEPTH, SEED, RESTORE };
static const struct nf_parameter parameters[] = {
	[PACKETS] = {"packets", "payloads in each cache, of 2 KiB; rounded up to a power of two",
		     64, 65536, 4096},
	[DEPTH] = {"depth", "encoded payloads that may build on each other", 1, 255, 8},
	[SEED] = {"seed", "seed of fingerprints and hashes; both ends need the same", 0, 4294967295,
		  1},
	[RESTORE] = {"restore", "1: packets from inside are restored, those from outside encoded",
		     0, 1, 0},
};

enum {
	ENCODED,
	UNMATCHED,
	RETRANSMITTED,
	REGIONS,
	BYTES_IN,
	BYTES_OUT,
	RESTORED,
	WHOLE,
	LOST,
	DAMAGED,
	UNENCODABLE,
	UNBUFFERED,
	PASSED,
	MALFORMED,
};
static const struct nf_counter counters[] = {
	[ENCODED] = {"encoded", "packets encoded"},
	[UNMATCHED] = {"unmatched", "packets without a region that is worth it, sent whole"},
	[RETRANSMITTED] = {"retransmitted", "TCP segments sent again, sent whole"},
	[REGIONS] = {"regions", "regions replaced by references"},
	[BYTES_IN] = {"bytes_in", "bytes of payloads to encode"},
	[BYTES_OUT] = {"bytes_out", "bytes of those payloads as sent"},
	[RESTORED] = {"restored", "packets restored"},
	[WHOLE] = {"whole", "packets received whole"},
	[LOST] = {"lost", "packets that refer to a payload that was not received, freed"},
	[DAMAGED] = {"damaged", "encoded packets with wrong bytes, freed"},
	[UNENCODABLE] = {"unencodable",
			 "packets that would be taken for encoded ones, and cannot be, freed"},
	[UNBUFFERED] = {"unbuffered", "packets sent whole or freed for want of a large buffer"},
	[PASSED] = {"passed", "other packets, sent on as they are"},
	[MALFORMED] = {"malformed", "packets freed"},
};

struct dedup {
	struct encoder encoder;
	struct decoder decoder;
	enum nf_side encoded; /* packets that come from here are encoded */
};

static int create(struct nf *nf)
{
	const uint32_t size = rte_align32pow2((uint32_t)nf->settings[PACKETS]);
	const uint64_t seed = (uint64_t)nf->settings[SEED];
	struct dedup *dedup = nf->state;

	dedup->encoded = nf->settings[RESTORE] == 1 ? NF_OUTSIDE : NF_INSIDE;
	if (encoder_create(&dedup->encoder, nf->kind->name, size, seed,
			   (uint8_t)nf->settings[DEPTH]) < 0)
		return -ENOMEM;
	return decoder_create(&dedup->decoder, nf->kind->name, size, seed);
}

/* The payload, in `room` if it is in several segments. */
static const uint8_t *read_payload(struct rte_mbuf *mbuf, const struct packet *packet,
				   uint8_t room[DEDUP_MOST])
{
	return rte_pktmbuf_read(mbuf, packet->payload, packet->payload_length, room);
}

static bool has_magic(struct rte_mbuf *mbuf, const struct packet *packet)
{
	rte_be32_t room;
	const void *magic;

	if (packet->payload_length < sizeof(room))
		return false;
	magic = rte_pktmbuf_read(mbuf, packet->payload, sizeof(room), &room);
	memcpy(&room, magic, sizeof(room));
	return room == RTE_BE32(DEDUP_MAGIC);
}

/* Whether a packet has bytes of a TCP stream that were sent before. */
static bool is_sent_again(struct dedup *dedup, struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct flow_key flow = packet_flow(mbuf, packet);
	const struct rte_tcp_hdr *tcp;

	if (packet->protocol != IPPROTO_TCP)
		return false;
	tcp = rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4);
	return streams_sent_again(&dedup->encoder.streams, &flow, rte_be_to_cpu_32(tcp->sent_seq),
				  packet->payload_length);
}

/* The encoded packet; NULL without a buffer for it. */
static struct rte_mbuf *encoded_packet(struct nf *nf, struct rte_mbuf *mbuf,
				       const struct packet *packet, const struct plan *plan,
				       const uint8_t *payload)
{
	struct rte_mbuf *made = payload_room(nf->spare, mbuf, packet, plan->length);

	if (!made)
		return NULL;
	encoder_write(plan, payload, packet->payload_length, payload_of(made, packet));
	payload_replaced(made, packet, payload, packet->payload_length);
	return made;
}

/* Send a packet whole or, if `made` is not NULL, that in its place. */
static void send_planned(struct nf *nf, struct rte_mbuf *mbuf, struct rte_mbuf *made,
			 const struct packet *packet, const struct plan *plan, bool again,
			 struct nf_out *out)
{
	nf->counters[BYTES_IN] += packet->payload_length;
	nf->counters[BYTES_OUT] += made ? plan->length : packet->payload_length;
	if (!made) {
		nf->counters[again ? RETRANSMITTED : UNMATCHED]++;
		nf_send(out, mbuf);
		return;
	}
	nf->counters[ENCODED]++;
	nf->counters[REGIONS] += plan->n_regions;
	rte_pktmbuf_free(mbuf);
	nf_send(out, made);
}

/* Encode a payload if that makes it shorter, or it would be taken for an encoded one. */
static void encode(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet, bool escapes,
		   struct nf_out *out)
{
	struct dedup *dedup = nf->state;
	const uint16_t length = packet->payload_length;
	const bool again = is_sent_again(dedup, mbuf, packet);
	struct rte_mbuf *made = NULL;
	uint8_t room[DEDUP_MOST];
	const uint8_t *payload = read_payload(mbuf, packet, room);
	struct plan plan;

	encoder_plan(&dedup->encoder, payload, length, again, &plan);
	if (escapes || plan.length < length) {
		made = encoded_packet(nf, mbuf, packet, &plan, payload);
		nf->counters[UNBUFFERED] += made == NULL;
	}
	if (escapes && !made) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	if (cache_takes(length))
		encoder_store(&dedup->encoder, &plan, payload, length, made != NULL);
	send_planned(nf, mbuf, made, packet, &plan, again, out);
}

/* Restore an encoded packet; returns its counter. */
static int restore(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		   const uint8_t *encoded, struct nf_out *out)
{
	struct dedup *dedup = nf->state;
	const uint16_t length = decoder_length(encoded, packet->payload_length);
	struct rte_mbuf *made;
	enum decoded result;

	if (length == 0)
		return DAMAGED;
	made = payload_room(nf->spare, mbuf, packet, length);
	if (!made)
		return UNBUFFERED;
	result = decoder_restore(&dedup->decoder, encoded, packet->payload_length,
				 payload_of(made, packet));
	if (result != DECODED) {
		rte_pktmbuf_free(made);
		return result == DECODED_LOST ? LOST : DAMAGED;
	}
	payload_replaced(made, packet, encoded, packet->payload_length);
	if (cache_takes(length))
		decoder_store(&dedup->decoder, payload_of(made, packet), length);
	nf_send(out, made);
	return RESTORED;
}

static void receive(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet, bool encoded,
		    struct nf_out *out)
{
	struct dedup *dedup = nf->state;
	uint8_t room[DEDUP_MOST];
	const uint8_t *payload = read_payload(mbuf, packet, room);

	if (encoded) {
		nf->counters[restore(nf, mbuf, packet, payload, out)]++;
		rte_pktmbuf_free(mbuf);
		return;
	}
	decoder_store(&dedup->decoder, payload, packet->payload_length);
	nf->counters[WHOLE]++;
	nf_send(out, mbuf);
}

static void take(struct nf *nf, struct rte_mbuf *mbuf, struct nf_out *out)
{
	struct dedup *dedup = nf->state;
	const struct packet packet = packet_headers(mbuf);
	const bool encodes = packet_from(mbuf) == dedup->encoded;
	bool magic, fit;

	if (unlikely(packet.type == PACKET_MALFORMED)) {
		nf_drop(nf, mbuf, MALFORMED);
		return;
	}
	magic = payload_is_carried(&packet) && has_magic(mbuf, &packet);
	fit = payload_is_carried(&packet) && packet.payload_length <= DEDUP_MOST &&
	      payload_is_restorable(mbuf, &packet);
	if (magic && !fit) {
		nf_drop(nf, mbuf, encodes ? UNENCODABLE : DAMAGED);
	} else if (magic || (fit && cache_takes(packet.payload_length))) {
		if (encodes)
			encode(nf, mbuf, &packet, magic, out);
		else
			receive(nf, mbuf, &packet, magic, out);
	} else {
		nf->counters[PASSED]++;
		nf_send(out, mbuf);
	}
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++)
		take(nf, packets[i], out);
}

static void destroy(struct nf *nf)
{
	struct dedup *dedup = nf->state;

	encoder_destroy(&dedup->encoder);
	decoder_destroy(&dedup->decoder);
}

NF_KIND("Dedup",
	"replaces payload bytes sent before by references; the link's other end restores them",
	.alters = true, .state_bytes = sizeof(struct dedup), .create = create, .process = process,
	.destroy = destroy)
