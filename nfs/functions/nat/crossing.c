#include "functions/nat/crossing.h"

#include <rte_prefetch.h>

#include "core/ipv4.h"
#include "functions/nat/icmp.h"
#include "functions/nat/rewrite.h"

static void take_error(struct nf *nf, const struct crossing *error, struct nf_out *out)
{
	if (!icmp_error_translate(sessions_of(nf), error->mbuf, &error->packet)) {
		drop(nf, error->mbuf, UNMAPPED);
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

/* The counter of a packet that cannot be translated; -1 if it can. */
static int reject_reason(const struct packet *packet)
{
	if (packet->type != PACKET_IPV4)
		return packet->type == PACKET_MALFORMED ? MALFORMED : OTHER;
	return packet->l4 == 0 ? UNSUPPORTED : -1;
}

/* Whether a packet needs a lookup; otherwise it is finished. */
static bool is_looked_up(struct nf *nf, struct crossing *crossing, bool outward, struct nf_out *out)
{
	int reason;
	uint8_t type;

	if (unlikely(crossing->packet.fragment) && !complete(nf, crossing))
		return false;
	reason = reject_reason(&crossing->packet);
	if (unlikely(reason >= 0)) {
		drop(nf, crossing->mbuf, reason);
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
		drop(nf, crossing->mbuf, UNSUPPORTED);
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
			drop(nf, next->mbuf, UNMAPPED);
			return;
		}
		crossings->keys[crossings->n] =
			key_inward(next->mbuf, &next->packet, next->mapping);
	}
	crossings->key_pointers[crossings->n] = &crossings->keys[crossings->n];
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
			drop(nf, mbuf, UNMAPPED);
			return;
		}
	}
	if (place < 0) {
		place = session_start(sessions, key, &nf->counters[STARTED]);
		if (place < 0) {
			drop(nf, mbuf, place == NO_PORT ? EXHAUSTED : FULL);
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

void sessions_look_up(struct sessions *sessions, const void **key_pointers, uint16_t n,
		      int32_t *places)
{
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

	sessions_look_up(sessions, crossings->key_pointers, crossings->n, places);
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
			drop(nf, crossing->mbuf, UNMAPPED);
			continue;
		}
		nf->counters[INWARD]++;
		send_inward(nf, crossing, places[i], out);
	}
}
