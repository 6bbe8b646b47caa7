#include "tests/tunnel_rig.h"

#include "tests/hostile.h"

const struct packet_spec from_inside = {.source = RTE_IPV4(10, 0, 0, 1),
					.destination = RTE_IPV4(198, 51, 100, 7),
					.source_port = 1000,
					.destination_port = 53,
					.payload_length = 8,
					.from = NF_INSIDE};

/* The same bytes, received from outside. */
static struct rte_mbuf *arrived(struct rig *rig, struct rte_mbuf *packet)
{
	uint8_t bytes[2000];
	struct rte_mbuf *copy;

	assert_true(rte_pktmbuf_pkt_len(packet) <= sizeof(bytes));
	copy = packet_of(rig, bytes, packet_bytes(packet, bytes, sizeof(bytes)));
	metadata_of(copy)->from = NF_OUTSIDE;
	return copy;
}

void decapsulate_at_other_end(struct rig *rig)
{
	struct rte_mbuf *burst[NF_BURST];
	const uint16_t n = (uint16_t)rig->out.n;

	assert_true(n <= NF_BURST);
	for (uint16_t i = 0; i < n; i++)
		burst[i] = arrived(rig, rig->out.packets[i]);
	RIG_MAKE(rig, "IPTunnel", {"local", TUNNEL_REMOTE}, {"remote", TUNNEL_LOCAL});
	rig_offer_burst(rig, burst, n, 1);
}

uint16_t tunnelled(struct rig *rig, uint16_t id, uint16_t size, struct rte_mbuf **fragments,
		   struct rte_mbuf **original)
{
	uint8_t payload[1400], bytes[2000];
	struct packet_spec inner = from_inside, outer = {.source = TUNNEL_REMOTE,
							 .destination = TUNNEL_LOCAL,
							 .protocol = IPPROTO_IPIP,
							 .id = id,
							 .from = NF_OUTSIDE};
	struct rte_mbuf *packet;
	uint16_t whole, n = 0;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7);
	inner.payload = payload;
	inner.payload_length = sizeof(payload);
	packet = packet_from_spec(rig, &inner);
	whole = packet_bytes(packet, bytes, sizeof(bytes)) - 14;
	for (uint16_t at = 0; at < whole; at += size) {
		outer.payload = bytes + 14 + at;
		outer.payload_length = RTE_MIN(size, whole - at);
		outer.fragment = at / 8 | (at + size < whole ? RTE_IPV4_HDR_MF_FLAG : 0);
		assert_true(n < TUNNELLED_MOST);
		fragments[n++] = packet_from_spec(rig, &outer);
	}
	if (original)
		*original = packet;
	else
		rte_pktmbuf_free(packet);
	return n;
}
