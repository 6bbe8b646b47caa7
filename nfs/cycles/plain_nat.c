#include "cycles/peer.h"
#include "cycles/plain_table.h"

#define SESSIONS (1 << 20)

struct session {
	uint64_t last;
	rte_be32_t address;
	rte_be16_t port;
};

struct nat {
	struct rte_hash *table;
	struct session *sessions;
	uint64_t now;
	uint32_t started;
};

static void *create(uint32_t flows)
{
	struct nat *state = nf_zalloc(sizeof(*state));

	(void)flows;
	state->table = plain_table("plain_nat", SESSIONS);
	state->sessions = plain_entries(state->table, sizeof(*state->sessions));
	return state;
}

/* Create a session for a new flow: the next address and port, never freed. */
static int32_t start(struct nat *state, const struct flow_key *key)
{
	const int32_t place = rte_hash_add_key(state->table, key);
	const uint32_t next = state->started++;

	state->sessions[place].address = rte_cpu_to_be_32(RTE_IPV4(203, 0, 113, 0) + next / 60000);
	state->sessions[place].port = rte_cpu_to_be_16(1024 + next % 60000);
	return place;
}

static inline void rewrite(struct rte_mbuf *packet, const struct session *session)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *,
							  sizeof(struct rte_ether_hdr));
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	ip->hdr_checksum = checksum_changed32(ip->hdr_checksum, ip->src_addr, session->address);
	if (udp->dgram_cksum != 0) {
		udp->dgram_cksum =
			checksum_changed32(udp->dgram_cksum, ip->src_addr, session->address);
		udp->dgram_cksum = checksum_changed(udp->dgram_cksum, udp->src_port, session->port);
	}
	ip->src_addr = session->address;
	udp->src_port = session->port;
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct nat *state = of;
	struct rte_mbuf *outward[NF_BURST];
	struct flow_key keys[NF_BURST];
	const void *wanted[NF_BURST];
	int32_t places[NF_BURST];
	uint16_t n_outward = 0;

	state->now++;
	for (uint16_t i = 0; i < n; i++) {
		if (packet_from(packets[i]) !=
		    NF_INSIDE) { /* the reverse direction, which this traffic does not use */
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		keys[n_outward] = packet_plain_flow(packets[i]);
		wanted[n_outward] = &keys[n_outward];
		outward[n_outward++] = packets[i];
	}
	rte_hash_lookup_bulk(state->table, wanted, n_outward, places);
	for (uint16_t i = 0; i < n_outward; i++) {
		int32_t place = places[i] >= 0 ? places[i] : start(state, &keys[i]);

		state->sessions[place].last = state->now;
		rewrite(outward[i], &state->sessions[place]);
		nf_send(out, outward[i]);
	}
}

static void destroy(void *of)
{
	struct nat *state = of;

	rte_hash_free(state->table);
	nf_free(state->sessions);
	nf_free(state);
}

PLAIN_PEER("NAT", "rte_hash_lookup_bulk of the inside endpoint, address, port and checksums "
	   "rewritten")
