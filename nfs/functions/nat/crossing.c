/*
 * Fragments through a NAT (RFC 4787, REQ-14): only the first one has ports, and it may come late.
 * Datagrams are reassembled before they are translated, and then fragmented again.
 */
#include "functions/nat/crossing.h"

#include <errno.h>

#include <rte_prefetch.h>

#include "core/fragment.h"
#include "core/ipv4.h"
#include "core/rewrite.h"

#define LEAST_MTU 68 /* of every link (RFC 791, section 3.2) */

/* The counter of a fragment that cannot be translated; FRAGMENTS if it may be. */
static enum nat_counter fragment_counter(const struct sessions *sessions, struct rte_mbuf *fragment,
					 const struct packet *packet)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(fragment, packet);

	if (nat_protocol(packet->protocol) == NAT_PROTOCOLS)
		return UNSUPPORTED;
	if (!ipv4_checksum_is_right(ip)) /* the datagram gets a new one */
		return MALFORMED;
	if (packet_from(fragment) == NF_OUTSIDE && !sessions_own(sessions, ip->dst_addr))
		return UNMAPPED;
	return FRAGMENTS;
}

/*
 * Take over a fragment, and count it. Returns whether it completes a datagram: `whole->mbuf`, to be
 * sent by `nat_send`. Fragments that cannot be translated are freed before they take any room.
 */
static bool nat_reassemble(struct nf *nf, struct reassembly *reassembly,
			   const struct sessions *sessions, struct rte_mbuf *fragment,
			   const struct packet *packet, struct reassembled *whole)
{
	const enum nat_counter counter = fragment_counter(sessions, fragment, packet);

	if (counter != FRAGMENTS) {
		nf_drop(nf, fragment, counter);
		return false;
	}
	nf->counters[FRAGMENTS]++;
	if (!reassembly_add(reassembly, fragment, packet, packet_from(fragment), nf->now_us, whole))
		return false;
	if (!reassembled_join_marks(whole)) {
		nf_drop(nf, whole->mbuf, CONGESTED);
		return false;
	}
	nf->counters[REASSEMBLED]++;
	return true;
}

/* Send a datagram in fragments, none longer than `largest`, but 68 bytes pass every link. */
static void nat_send_fragments(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			       uint16_t largest, struct nf_out *out)
{
	const uint16_t mtu = RTE_MAX(largest, LEAST_MTU);
	struct rte_mbuf *fragments[FRAGMENTS_MOST];
	int n = -ENOMEM;

	if (nf->spare)
		n = ipv4_fragment(mbuf, packet, mtu, nf->spare, fragments);
	if (n < 0) {
		nf_drop(nf, mbuf, n == -ENOMEM ? NO_ROOM : MALFORMED);
		return;
	}
	nf->counters[FRAGMENTS_SENT] += n;
	nf_send_bulk(out, fragments, (uint16_t)n);
}

/* Send a packet, which arrived in fragments if `largest` is not 0. */
static inline void nat_send(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
			    uint16_t largest, struct nf_out *out)
{
	if (unlikely(largest != 0))
		nat_send_fragments(nf, mbuf, packet, largest, out);
	else
		nf_send(out, mbuf);
}

/* ICMP through a NAT (RFC 5508): queries, and errors about translated packets. */

/* Types of queries with an identifier, besides echo (RFC 792, RFC 950). */
enum {
	ICMP_TIMESTAMP = 13,
	ICMP_TIMESTAMP_REPLY = 14,
	ICMP_ADDRESS_MASK = 17,
	ICMP_ADDRESS_MASK_REPLY = 18,
};

/* Whether a query of this type may pass in this direction: requests out, replies in (REQ-1). */
static bool icmp_query_may_pass(uint8_t type, bool outward)
{
	switch (type) {
	case RTE_IP_ICMP_ECHO_REQUEST:
	case ICMP_TIMESTAMP:
	case ICMP_ADDRESS_MASK:
		return outward;
	case RTE_IP_ICMP_ECHO_REPLY:
	case ICMP_TIMESTAMP_REPLY:
	case ICMP_ADDRESS_MASK_REPLY:
		return !outward;
	default:
		return false;
	}
}

/* The mapping of the quoted packet's sender, who receives the error; or NULL. */
static struct mapping *sender_of(struct sessions *sessions, struct rte_mbuf *mbuf,
				 const struct packet *packet, const struct packet *quoted)
{
	const struct endpoint sender = endpoint_of(mbuf, quoted, END_SOURCE);

	if (sender.address != packet_ipv4(mbuf, packet)->dst_addr ||
	    !sessions_own(sessions, sender.address))
		return NULL;
	return mapping_live(
		sessions, mapping_outside(sessions, nat_protocol(quoted->protocol), sender));
}

/* The mapping of the quoted packet's receiver; or NULL. */
static struct mapping *receiver_of(struct sessions *sessions, struct rte_mbuf *mbuf,
				   const struct packet *quoted)
{
	return mapping_live(sessions, mapping_inside(sessions, quoted->protocol,
						     endpoint_of(mbuf, quoted, END_DESTINATION)));
}

/*
 * Undo the translation in the packet that an error quotes, translate the error itself, and set its
 * port: outside if it came from inside, but inside if the quoted packet was hairpinned (REQ-7).
 * False, with the packet unchanged, if there is no mapping or the error is invalid.
 */
static bool icmp_error_translate(struct sessions *sessions, struct rte_mbuf *mbuf,
				 const struct packet *packet)
{
	const bool outward = packet_from(mbuf) == NF_INSIDE;
	const bool inward = !outward || sessions_own(sessions, packet_ipv4(mbuf, packet)->dst_addr);
	const struct mapping *sender = NULL, *receiver = NULL;
	struct packet quoted;

	if (!quoted_packet(mbuf, packet, &quoted) || nat_protocol(quoted.protocol) == NAT_PROTOCOLS)
		return false;
	if (outward && !(receiver = receiver_of(sessions, mbuf, &quoted)))
		return false;
	if (inward && !(sender = sender_of(sessions, mbuf, packet, &quoted)))
		return false;
	if (receiver) {
		endpoint_rewrite(mbuf, &quoted, END_DESTINATION, receiver->outside);
		address_rewrite(mbuf, packet, END_SOURCE, receiver->outside.address);
	}
	if (sender) {
		endpoint_rewrite(mbuf, &quoted, END_SOURCE, sender->inside);
		address_rewrite(mbuf, packet, END_DESTINATION, sender->inside.address);
	}
	icmp_checksum_set(mbuf, packet);
	packet_send_to(mbuf, inward ? NF_INSIDE : NF_OUTSIDE);
	return true;
}

/* What a NAT looks up for a packet: mappings and session keys of its endpoints. */

/* 0 unless it is TCP. */
static inline uint8_t tcp_flags(struct rte_mbuf *mbuf, const struct packet *packet)
{
	if (packet->protocol != IPPROTO_TCP)
		return 0;
	return rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4)->tcp_flags;
}

/* The mapping of a packet's destination, which may have timed out; NULL if there is none. */
static struct mapping *mapping_at(const struct sessions *sessions, struct rte_mbuf *mbuf,
				  const struct packet *packet)
{
	const struct endpoint to = endpoint_of(mbuf, packet, END_DESTINATION);

	if (!sessions_own(sessions, to.address))
		return NULL;
	return mapping_outside(sessions, nat_protocol(packet->protocol), to);
}

/* The session key of a packet from inside. */
static struct flow_key key_outward(struct rte_mbuf *mbuf, const struct packet *packet)
{
	const struct endpoint source = endpoint_of(mbuf, packet, END_SOURCE);
	const struct endpoint to = endpoint_of(mbuf, packet, END_DESTINATION);

	return (struct flow_key){
		.source = source.address,
		.destination = to.address,
		.source_port = source.port,
		.destination_port = packet->protocol == IPPROTO_ICMP ? 0 : to.port,
		.protocol = packet->protocol,
	};
}

/* The session key of a packet from outside, with the endpoint that its destination maps to. */
static struct flow_key key_inward(struct rte_mbuf *mbuf, const struct packet *packet,
				  const struct mapping *mapping)
{
	const struct endpoint remote = endpoint_of(mbuf, packet, END_SOURCE);

	return (struct flow_key){
		.source = mapping->inside.address,
		.destination = remote.address,
		.source_port = mapping->inside.port,
		.destination_port = packet->protocol == IPPROTO_ICMP ? 0 : remote.port,
		.protocol = packet->protocol,
	};
}

static void take_error(struct nf *nf, const struct crossing *error, struct nf_out *out)
{
	if (!icmp_error_translate(sessions_of(nf), error->mbuf, &error->packet)) {
		nf_drop(nf, error->mbuf, UNMAPPED);
		return;
	}
	nf->counters[ERRORS]++;
	nat_send(nf, error->mbuf, &error->packet, error->largest, out);
}

/* Replace a fragment by the datagram that it completes; false if it is held or freed. */
static bool complete(struct nf *nf, struct crossing *crossing)
{
	const struct nat *nat = nf->state;
	struct reassembled whole;

	if (!nat_reassemble(nf, nat->reassembly, nat->sessions, crossing->mbuf, &crossing->packet,
			    &whole))
		return false;
	*crossing = (struct crossing){
		.mbuf = whole.mbuf,
		.packet = packet_headers(whole.mbuf),
		.largest = whole.largest,
	};
	return true;
}

/* Translate and send a packet whose ports stay as they are. */
static void send_of_pair(struct nf *nf, const struct crossing *crossing, bool outward,
			 struct nf_out *out)
{
	static const enum nat_counter freed[] = {
		[PAIR_TAKEN] = EXHAUSTED,
		[PAIR_FULL] = FULL,
		[PAIR_UNKNOWN] = UNMAPPED,
		[PAIR_CUT] = MALFORMED,
	};
	const struct nat *nat = nf->state;
	struct rte_mbuf *mbuf = crossing->mbuf;
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, &crossing->packet);
	const bool own = sessions_own(nat->sessions, ip->dst_addr);
	enum pair_result result = PAIR_UNKNOWN;

	if (outward && !own)
		result = pair_outward(nat->pairs, mbuf, &crossing->packet,
				      sessions_address_of(nat->sessions, ip->src_addr), nf->now_us);
	else if (!outward && own)
		result = pair_inward(nat->pairs, mbuf, &crossing->packet, nf->now_us);
	if (result != PAIR_TRANSLATED) {
		nf_drop(nf, mbuf, freed[result]);
		return;
	}
	nf->counters[outward ? OUTWARD : INWARD]++;
	packet_send_to(mbuf, outward ? NF_OUTSIDE : NF_INSIDE);
	nf_send(out, mbuf);
}

/* Whether a packet needs a lookup; otherwise it is finished. */
static bool is_looked_up(struct nf *nf, struct crossing *crossing, bool outward, struct nf_out *out)
{
	const struct nat *nat = nf->state;
	uint8_t type;

	if (unlikely(nat->pairs && pairs_take(&crossing->packet))) {
		send_of_pair(nf, crossing, outward, out);
		return false;
	}
	if (unlikely(crossing->packet.fragment) && !complete(nf, crossing))
		return false;
	if (unlikely(crossing->packet.type != PACKET_IPV4)) {
		nf_other(nf, crossing->mbuf, crossing->packet.type, OTHER, out);
		return false;
	}
	if (unlikely(crossing->packet.l4 == 0)) {
		nf_drop(nf, crossing->mbuf, UNSUPPORTED);
		return false;
	}
	if (crossing->packet.protocol != IPPROTO_ICMP)
		return true;
	type = icmp_type(crossing->mbuf, &crossing->packet);
	if (icmp_is_error(type)) {
		take_error(nf, crossing, out);
		return false;
	}
	if (!icmp_query_may_pass(type, outward)) {
		nf_drop(nf, crossing->mbuf, UNSUPPORTED);
		return false;
	}
	return true;
}

void crossings_add(struct nf *nf, struct crossings *crossings, struct rte_mbuf *mbuf,
		   struct nf_out *out)
{
	struct crossing *next = &crossings->of[crossings->n];
	const bool outward = packet_from(mbuf) == NF_INSIDE;

	*next = (struct crossing){.mbuf = mbuf, .packet = packet_headers(mbuf)};
	if (!is_looked_up(nf, next, outward, out))
		return;
	if (outward) {
		crossings->keys[crossings->n] = key_outward(next->mbuf, &next->packet);
	} else {
		next->mapping = mapping_at(sessions_of(nf), next->mbuf, &next->packet);
		if (!next->mapping) {
			nf_drop(nf, next->mbuf, UNMAPPED);
			return;
		}
		crossings->keys[crossings->n] =
			key_inward(next->mbuf, &next->packet, next->mapping);
	}
	crossings->n++;
}

/* The mapping of a hairpinned packet's destination; NULL if there is none. */
static struct mapping *hairpin_target(struct sessions *sessions, const struct crossing *crossing)
{
	if (crossing->packet.protocol == IPPROTO_ICMP)
		return NULL;
	return mapping_live(sessions, mapping_at(sessions, crossing->mbuf, &crossing->packet));
}

static void send_inward(struct nf *nf, const struct crossing *crossing, int32_t place,
			struct nf_out *out)
{
	struct sessions *sessions = sessions_of(nf);
	struct rte_mbuf *mbuf = crossing->mbuf;

	/*
	 * a packet without a session passes, too: filtering is endpoint-independent (REQ-8)
	 */
	if (place >= 0)
		session_seen(&sessions->sessions[place], false, tcp_flags(mbuf, &crossing->packet),
			     nf->now_us);
	endpoint_rewrite(mbuf, &crossing->packet, END_DESTINATION, crossing->mapping->inside);
	packet_send_to(mbuf, NF_INSIDE);
	nat_send(nf, mbuf, &crossing->packet, crossing->largest, out);
}

/* Hairpin a packet to an external address (RFC 4787, REQ-9). */
static void hairpin(struct nf *nf, const struct crossing *crossing, struct nf_out *out)
{
	struct sessions *sessions = sessions_of(nf);
	const struct flow_key key =
		key_inward(crossing->mbuf, &crossing->packet, crossing->mapping);

	nf->counters[HAIRPINNED]++;
	send_inward(nf, crossing, session_live(sessions, rte_hash_lookup(sessions->table, &key)),
		    out);
}

void crossing_send_outward(struct nf *nf, struct crossing *crossing, const struct flow_key *key,
			   int32_t place, struct nf_out *out)
{
	struct sessions *sessions = sessions_of(nf);
	struct rte_mbuf *mbuf = crossing->mbuf;
	const bool hairpins = sessions_own(sessions, key->destination);
	struct session *session;

	if (hairpins) {
		crossing->mapping = hairpin_target(sessions, crossing);
		if (!crossing->mapping) {
			nf_drop(nf, mbuf, UNMAPPED);
			return;
		}
	}
	if (place < 0) {
		place = session_start(sessions, key, &nf->counters[STARTED]);
		if (place < 0) {
			nf_drop(nf, mbuf, place == NO_PORT ? EXHAUSTED : FULL);
			return;
		}
	}
	session = &sessions->sessions[place];
	session_seen(session, true, tcp_flags(mbuf, &crossing->packet), nf->now_us);
	endpoint_rewrite(mbuf, &crossing->packet, END_SOURCE, session_outside(session));
	nf->counters[OUTWARD]++;
	if (hairpins) {
		hairpin(nf, crossing, out);
		return;
	}
	nat_send(nf, mbuf, &crossing->packet, crossing->largest, out);
}

void sessions_look_up(struct sessions *sessions, const struct flow_key *keys, uint16_t n,
		      int32_t *places)
{
	const void *key_pointers[NF_BURST];

	for (uint16_t i = 0; i < n; i++)
		key_pointers[i] = &keys[i];
	rte_hash_lookup_bulk(sessions->table, key_pointers, n, places);
	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(&sessions->sessions[places[i]]); /* harmless for an invalid address */
	for (uint16_t i = 0; i < n; i++)
		places[i] = session_live(sessions, places[i]);
}

void crossings_send(struct nf *nf, struct crossings *crossings, struct nf_out *out)
{
	struct sessions *sessions = sessions_of(nf);
	int32_t places[NF_BURST];

	sessions_look_up(sessions, crossings->keys, crossings->n, places);
	for (uint16_t i = 0; i < crossings->n; i++) {
		struct crossing *crossing = &crossings->of[i];

		if (!crossing->mapping) {
			crossing_send_outward(nf, crossing, &crossings->keys[i], places[i], out);
			continue;
		}
		/* a session that was found keeps the mapping */
		if (places[i] < 0)
			crossing->mapping = mapping_live(
				sessions, mapping_at(sessions, crossing->mbuf, &crossing->packet));
		if (!crossing->mapping) {
			nf_drop(nf, crossing->mbuf, UNMAPPED);
			continue;
		}
		nf->counters[INWARD]++;
		send_inward(nf, crossing, places[i], out);
	}
}
