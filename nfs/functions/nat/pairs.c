#include "functions/nat/pairs.h"

#include "core/flow_index.h"
#include "core/memory.h"

#define HOST_SHARE 16 /* no inside host has more than 1 / 16 of the pairs (RFC 6888, REQ-4) */
#define ROUNDS 16     /* searches for silent pairs within their timeout, at most */

/* A struct flow_entry. Its key is of the external and the outside address. */
struct pair {
	struct flow_key key;
	uint64_t last_us;
	rte_be32_t inside;
	bool used;
} __rte_aligned(sizeof(struct flow_entry));

/* A struct flow_entry. Its key is of the inside address. */
struct pair_host {
	struct flow_key key;
	uint32_t pairs;
} __rte_aligned(sizeof(struct flow_entry));

struct pairs {
	struct flow_index index, hosts;
	uint64_t timeout_us;
	uint64_t searched_us; /* when silent pairs were searched */
};

struct pairs *pairs_create(uint32_t most, uint64_t timeout_us)
{
	struct pairs *pairs = nf_zalloc_for("NAT", sizeof(*pairs));

	if (!pairs)
		return NULL;
	pairs->timeout_us = timeout_us;
	if (flow_index_create(&pairs->index, most) == 0) {
		if (flow_index_create(&pairs->hosts, most) == 0)
			return pairs;
		flow_index_destroy(&pairs->index);
	}
	fprintf(stderr, "NAT: no memory for %u pairs of addresses\n", most);
	nf_free(pairs);
	return NULL;
}

void pairs_destroy(struct pairs *pairs)
{
	if (!pairs)
		return;
	flow_index_destroy(&pairs->index);
	flow_index_destroy(&pairs->hosts);
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

/* The place of a host, which is added if it is not known; negative without room. */
static int32_t host_place(struct pairs *pairs, rte_be32_t inside)
{
	const struct flow_key key = {.source = inside};

	return flow_index_add(&pairs->hosts, &key, flow_index_hash(&pairs->hosts, &key));
}

static struct pair_host *host_at(const struct pairs *pairs, int32_t place)
{
	return (struct pair_host *)&pairs->hosts.entries[place];
}

static void remove_pair(struct pairs *pairs, uint32_t place)
{
	const int32_t host = host_place(pairs, pair_at(pairs, (int32_t)place)->inside);

	flow_index_remove(&pairs->index, place);
	if (--host_at(pairs, host)->pairs == 0)
		flow_index_remove(&pairs->hosts, (uint32_t)host);
}

/* Remove all silent pairs, unless that was done just now; true if it is done. */
static bool remove_silent_pairs(struct pairs *pairs, uint64_t now_us)
{
	if (now_us - pairs->searched_us < pairs->timeout_us / ROUNDS)
		return false;
	pairs->searched_us = now_us;
	for (uint32_t place = 0; place < pairs->index.begun; place++) {
		const struct pair *pair = pair_at(pairs, (int32_t)place);

		if (pair->used && is_silent(pairs, pair, now_us))
			remove_pair(pairs, place);
	}
	return true;
}

/* Add a pair of an inside host, PAIR_TRANSLATED, unless there is no room. */
static enum pair_result add_pair(struct pairs *pairs, const struct flow_key *key, rte_be32_t inside,
				 struct pair **pair)
{
	const uint32_t most = RTE_MAX(pairs->index.most / HOST_SHARE, 1u);
	const int32_t place = host_place(pairs, inside);
	struct pair_host *host = host_at(pairs, place);
	int32_t at = -1;

	if (place < 0)
		return PAIR_FULL;
	if (host->pairs >= most)
		return PAIR_TAKEN;
	at = flow_index_add(&pairs->index, key, flow_index_hash(&pairs->index, key));
	if (at < 0) {
		if (host->pairs == 0)
			flow_index_remove(&pairs->hosts, (uint32_t)place);
		return PAIR_FULL;
	}
	host->pairs++;
	*pair = pair_at(pairs, at);
	(*pair)->inside = inside;
	(*pair)->used = true;
	return PAIR_TRANSLATED;
}

enum pair_result pair_outward(struct pairs *pairs, struct rte_mbuf *mbuf,
			      const struct packet *packet, rte_be32_t external, uint64_t now_us)
{
	const rte_be32_t inside = packet_ipv4(mbuf, packet)->src_addr;
	enum pair_result result = PAIR_TRANSLATED;
	struct flow_key key;
	struct pair *pair;
	int32_t place;

	if (!key_of(mbuf, packet, external, true, &key))
		return PAIR_CUT;
	place = flow_index_find(&pairs->index, &key, flow_index_hash(&pairs->index, &key));
	pair = pair_at(pairs, place);
	if (place >= 0 && pair->inside != inside) {
		if (!is_silent(pairs, pair, now_us))
			return PAIR_TAKEN;
		remove_pair(pairs, (uint32_t)place);
		place = -1;
	}
	if (place < 0) {
		result = add_pair(pairs, &key, inside, &pair);
		if (result != PAIR_TRANSLATED && remove_silent_pairs(pairs, now_us))
			result = add_pair(pairs, &key, inside, &pair);
	}
	if (result != PAIR_TRANSLATED)
		return result;
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
