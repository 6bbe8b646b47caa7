#include "tests/flow_tracker_rig.h"

const char *const connection_states[CONNECTION_STATE_NAMES] = {
	"syn_sent",  "syn_received", "established", "fin_wait",    "last_ack",
	"time_wait", "closed",       "udp_new",     "udp_replied",
};

struct packet_spec reply_to(const struct packet_spec *packet_spec)
{
	struct packet_spec back = *packet_spec;

	RTE_SWAP(back.source, back.destination);
	RTE_SWAP(back.source_port, back.destination_port);
	back.from = !packet_spec->from;
	return back;
}

/* The next sequence number of each end. */
static uint32_t next_numbers[2];

bool passes_at(struct rig *rig, const struct packet_spec *packet_spec, bool reply,
	       uint32_t sequence, uint64_t now_us)
{
	const uint8_t flags = packet_spec->tcp_flags;
	/* an end that lost the connection opens it with other numbers, and learns the right ones */
	const bool lost = flags == SYN && rig_count(rig, "established") +
							  rig_count(rig, "fin_wait") +
							  rig_count(rig, "last_ack") > 0;
	struct rte_mbuf *packet = packet_from_spec(rig, packet_spec);
	struct rte_tcp_hdr *header = rte_pktmbuf_mtod_offset(
		packet, struct rte_tcp_hdr *, sizeof(struct rte_ether_hdr) + 20);

	header->sent_seq = rte_cpu_to_be_32(sequence);
	header->recv_ack = rte_cpu_to_be_32(next_numbers[!reply]);
	rig_offer(rig, packet, now_us);
	if (rig->out.n == 1 && sequence == next_numbers[reply] && !lost)
		next_numbers[reply] += packet_spec->payload_length + !!(flags & SYN) + !!(flags & FIN);
	return rig->out.n == 1;
}

uint32_t next_number(bool reply)
{
	return next_numbers[reply];
}

bool passes(struct rig *rig, const struct packet_spec *packet_spec, bool reply, uint8_t flags,
	    uint64_t now_us)
{
	struct packet_spec packet = reply ? reply_to(packet_spec) : *packet_spec;

	packet.tcp_flags = flags;
	if (packet.protocol == IPPROTO_TCP)
		return passes_at(rig, &packet, reply, next_numbers[reply], now_us);
	rig_offer(rig, packet_from_spec(rig, &packet), now_us);
	return rig->out.n == 1;
}

const char *state_now(struct rig *rig)
{
	const char *now = NULL;

	for (size_t i = 0; i < CONNECTION_STATE_NAMES; i++) {
		const uint64_t there = rig_count(rig, connection_states[i]);

		assert_in_range(there, 0, 1);
		if (there == 1) {
			assert_null(now);
			now = connection_states[i];
		}
	}
	return now ? now : "none";
}

bool forgotten_after(struct rig *rig, uint64_t from_us, double s)
{
	for (uint64_t now = from_us; now < from_us + (uint64_t)(s * 1e6); now += SECOND / 4)
		rig_offer_burst(rig, NULL, 0, now);
	return rig_count(rig, "aged") == 1;
}
