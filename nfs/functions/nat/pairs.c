#include "functions/nat/pairs.h"

#include "core/flow_index.h"
#include "core/memory.h"

#define MOST_TRIED 16 /* pairs considered to be given up for another one */

/* A struct flow_entry. Its key is of the external and the outside address. */
struct pair {
	struct flow_key key;
	uint64_t last_us;
	rte_be32_t inside;
} __rte_aligned(sizeof(struct flow_entry));

struct pairs {
	struct flow_index index;
	uint64_t timeout_us;
	uint32_t hand; /* the next one to be considered to be given up */
};

struct pairs *pairs_create(uint32_t most, uint64_t timeout_us)
{
	struct pairs *pairs = nf_zalloc_for("NAT", sizeof(*pairs));

	if (!pairs)
		return NULL;
	pairs->timeout_us = timeout_us;
	if (flow_index_create(&pairs->index, most) == 0)
		return pairs;
	fprintf(stderr, "NAT: no memory for %u pairs of addresses\n", most);
	nf_free(pairs);
	return NULL;
}

void pairs_destroy(struct pairs *pairs)
{
	if (!pairs)
		return;
	flow_index_destroy(&pairs->index);
	nf_free(pairs);
}

static struct pair *pair_at(const struct pairs *pairs, int32_t place)
{
	return (struct pair *)&pairs->index.entries[place];
}

/* The key of a packet between an external and an outside address; false if it is cut off. */
static bool key_of(struct rte_mbuf *mbuf, const struct packet *packet, rte_be32_t external,
		   bool outward, struct flow_key *key)
{
	const struct rte_ipv4_hdr *ip = packet_ipv4(mbuf, packet);
	const uint32_t l4 = packet->l3 + rte_ipv4_hdr_len(ip), end = l4 + 12; /* ports, tag, checksum */

	*key = (struct flow_key){
		.protocol = packet->protocol,
		.source = external,
		.destination = outward ? ip->dst_addr : ip->src_addr,
	};
	if (packet->protocol != IPPROTO_SCTP)
		return true;
	if (packet->l3 + (uint32_t)rte_be_to_cpu_16(ip->total_length) < end ||
	    rte_pktmbuf_data_len(mbuf) < end)
		return false;
	memcpy(outward ? &key->source_port : &key->destination_port,
	       rte_pktmbuf_mtod_offset(mbuf, const void *, l4), sizeof(rte_be16_t));
	memcpy(outward ? &key->destination_port : &key->source_port,
	       rte_pktmbuf_mtod_offset(mbuf, const void *, l4 + 2), sizeof(rte_be16_t));
	return true;
}

static bool is_silent(const struct pairs *pairs, const struct pair *pair, uint64_t now_us)
{
	return now_us - pair->last_us >= pairs->timeout_us;
}

/* The place for a key, in which an old pair may be given up; negative without room. */
static int32_t place_for(struct pairs *pairs, const struct flow_key *key, uint64_t now_us)
{
	const uint32_t hash = flow_index_hash(&pairs->index, key);
	int32_t place = flow_index_add(&pairs->index, key, hash);

	for (uint32_t i = 0; place < 0 && i < MOST_TRIED; i++) {
		const uint32_t tried = pairs->hand;

		pairs->hand = tried + 1 < pairs->index.most ? tried + 1 : 0;
		if (!is_silent(pairs, pair_at(pairs, (int32_t)tried), now_us))
			continue;
		flow_index_remove(&pairs->index, tried);
		place = flow_index_add(&pairs->index, key, hash);
	}
	return place;
}

enum pair_result pair_outward(struct pairs *pairs, struct rte_mbuf *mbuf,
			      const struct packet *packet, rte_be32_t external, uint64_t now_us)
{
	const rte_be32_t inside = packet_ipv4(mbuf, packet)->src_addr;
	struct flow_key key;
	struct pair *pair;
	int32_t place;

	if (!key_of(mbuf, packet, external, true, &key))
		return PAIR_CUT;
	place = place_for(pairs, &key, now_us);
	if (place < 0)
		return PAIR_FULL;
	pair = pair_at(pairs, place);
	if (pair->last_us != 0 && pair->inside != inside && !is_silent(pairs, pair, now_us))
		return PAIR_TAKEN;
	pair->inside = inside;
	pair->last_us = now_us;
	address_rewrite(mbuf, packet, END_SOURCE, external);
	return PAIR_TRANSLATED;
}

enum pair_result pair_inward(struct pairs *pairs, struct rte_mbuf *mbuf,
			     const struct packet *packet, uint64_t now_us)
{
	struct flow_key key;
	int32_t place;

	if (!key_of(mbuf, packet, packet_ipv4(mbuf, packet)->dst_addr, false, &key))
		return PAIR_CUT;
	place = flow_index_find(&pairs->index, &key, flow_index_hash(&pairs->index, &key));
	if (place < 0 || is_silent(pairs, pair_at(pairs, place), now_us))
		return PAIR_UNKNOWN;
	address_rewrite(mbuf, packet, END_DESTINATION, pair_at(pairs, place)->inside);
	return PAIR_TRANSLATED;
}
