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

bool passes(struct rig *rig, const struct packet_spec *packet_spec, bool reply, uint8_t flags,
	    uint64_t now_us)
{
	struct packet_spec packet = reply ? reply_to(packet_spec) : *packet_spec;

	packet.tcp_flags = flags;
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
