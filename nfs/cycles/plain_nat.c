#include "cycles/peer.h"
#include "cycles/plain_table.h"

#define SESSIONS (1 << 20)

struct session {
	uint64_t last;
	rte_be32_t address;
	rte_be16_t port;
};

struct nat {
	struct plain_flows flows;
	uint32_t started;
};

static void *create(void)
{
	return plain_flows_create("plain_nat", sizeof(struct nat), SESSIONS,
				  sizeof(struct session));
}

/* Create a session for a new flow: the next address and port, never freed. */
static int32_t start(struct nat *state, const struct flow_key *key)
{
	const int32_t place = rte_hash_add_key(state->flows.table, key);
	const uint32_t next = state->started++;
	struct session *session = (struct session *)state->flows.entries + place;

	session->address = rte_cpu_to_be_32(RTE_IPV4(203, 0, 113, 0) + next / 60000);
	session->port = rte_cpu_to_be_16(1024 + next % 60000);
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
	struct session *sessions = state->flows.entries;
	struct rte_mbuf *outward[NF_BURST];
	struct flow_key keys[NF_BURST];
	const void *wanted[NF_BURST];
	int32_t places[NF_BURST];
	uint16_t n_outward = 0;

	state->flows.now++;
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
	rte_hash_lookup_bulk(state->flows.table, wanted, n_outward, places);
	for (uint16_t i = 0; i < n_outward; i++) {
		int32_t place = places[i] >= 0 ? places[i] : start(state, &keys[i]);

		sessions[place].last = state->flows.now;
		rewrite(outward[i], &sessions[place]);
		nf_send(out, outward[i]);
	}
}

PLAIN_PEER_FREED(
	"NAT", "rte_hash_lookup_bulk of the inside endpoint, address, port and checksums rewritten",
	plain_flows_destroy)
