#include "tests/offloading.h"

#include "core/rules.h"
#include "core/stream.h"
#include "tests/files.h"
#include "tests/ipv6.h"

/* A packet that matches any rule is dropped. */
BOTH_TEST(matching_packets_are_dropped)
{
	unsigned int n;
	const struct rule *all = rules(&n);

	rig_make(rig, "PacketFilter", NULL, 0);
	for (unsigned int i = 0; i < n; i++) {
		rig_frees(rig, packet_with(rig, 1, all[i].witness), 1);
	}
	assert_counts(rig, {"dropped", n}, {"matches", n});
}

/* Packets without a match pass in order, also between dropped ones. */
BOTH_TEST(other_packets_pass_in_order)
{
	const char *ssh = witness_of("ssh");
	struct rte_mbuf *burst[] = {packet_with(rig, 1, ssh), packet_with(rig, 2, "a"),
				    packet_with(rig, 3, ""), packet_with(rig, 4, ssh),
				    packet_with(rig, 5, "b")};
	struct rte_mbuf *passing[] = {burst[1], burst[2], burst[4]};

	rig_make(rig, "PacketFilter", NULL, 0);
	rig_offer_burst(rig, burst, 5, 1);
	assert_int_equal(rig->out.n, 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(rig->out.packets[i], passing[i]);
	assert_int_equal(rig_count(rig, "dropped"), 2);
}

/* Payloads of IPv6 are scanned behind extension headers; frames that cannot be read are dropped. */
BOTH_TEST(nothing_passes_unread)
{
	const uint8_t options[8] = {IPPROTO_TCP}, later[8] = {IPPROTO_TCP, 0, 0, 8};
	const char *ssh = witness_of("ssh");
	struct ipv6_spec spec = {.protocol = IPPROTO_TCP, .tcp_flags = RTE_TCP_ACK_FLAG, .payload = ssh,
				 .payload_length = (uint16_t)strlen(ssh), .first = 60,
				 .extensions = options, .extension_bytes = 8};
	const uint8_t lldp[60] = {[12] = 0x88, [13] = 0xcc};

	rig_make(rig, "PacketFilter", NULL, 0);
	rig_frees(rig, ipv6_packet(rig, &spec), 1);
	spec.first = 44;
	spec.extensions = later;
	rig_frees(rig, ipv6_packet(rig, &spec), 1);
	rig_frees(rig, packet_of(rig, lldp, sizeof(lldp)), 1);
	spec.first = 60;
	spec.extensions = options;
	spec.source_port = 7; /* another stream */
	spec.payload = "nothing";
	spec.payload_length = 7;
	rig_offer(rig, ipv6_packet(rig, &spec), 1);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"dropped", 2}, {"unknown", 1}, {"fragments", 1}, {"scanned", 2});
}

SCANNING_TESTS("PacketFilter")

/* Packets that cannot be scanned completely are dropped and counted. */
BOTH_TEST(unscannable_packets_are_dropped)
{
	check_segments(rig, "PacketFilter", false);
}

#define BEGIN 0xffffff00u

/* A segment of TCP of a flow, `at` bytes behind the begin. */
static struct rte_mbuf *segment(struct rig *rig, uint16_t flow, uint32_t at, const char *text,
				uint8_t flags)
{
	const uint16_t length = text ? (uint16_t)strlen(text) : 1000;
	struct rte_mbuf *packet = packet_from_spec(
		rig, &(struct packet_spec){.source = 1, .destination = 2, .source_port = flow,
					   .protocol = IPPROTO_TCP,
					   .tcp_flags = flags ? flags : RTE_TCP_ACK_FLAG,
					   .payload = text, .payload_length = length});

	rte_pktmbuf_mtod_offset(packet, struct rte_tcp_hdr *, 34)->sent_seq =
		rte_cpu_to_be_32(BEGIN + at);
	return packet;
}

static bool passes(struct rig *rig, struct rte_mbuf *packet)
{
	rig_offer(rig, packet, 1);
	return rig->out.n == 1;
}

/* A match may be in two segments; what would complete it is freed however often it comes. */
BOTH_TEST(matches_over_segments_are_dropped)
{
	struct rte_mbuf *burst[] = {segment(rig, 1, 0, "SSH-2", 0), segment(rig, 1, 5, ".0-Any_9.2", 0),
				    segment(rig, 1, 5, ".0-Any_9.2", 0), segment(rig, 2, 5, ".0-Any_9.2", 0)};

	rig_make(rig, "PacketFilter", NULL, 0);
	rig_offer_burst(rig, burst, 4, 1);
	assert_int_equal(rig->out.n, 2);
	assert_false(passes(rig, segment(rig, 1, 0, "SSH-1", 0)));
	assert_counts(rig, {"dropped", 2}, {"differing", 1}, {"matches", 2});
}

/* Of a stream without its SYN, a segment in front of all others is scanned by itself. */
BOTH_TEST(streams_are_followed_from_their_first_segment_on)
{
	rig_make(rig, "PacketFilter", NULL, 0);
	assert_true(passes(rig, segment(rig, 1, 5, ".0-Any_9.2", 0)));
	assert_true(passes(rig, segment(rig, 1, 0, "SSH-2", 0)));
	assert_true(passes(rig, segment(rig, 2, UINT32_MAX, "", RTE_TCP_SYN_FLAG)));
	assert_true(passes(rig, segment(rig, 2, 5, ".0-Any_9.2", 0)));
	assert_false(passes(rig, segment(rig, 2, 0, "SSH-2", 0)));
}

/* Bytes that are no longer known are scanned by themselves; those before a stream are freed. */
BOTH_TEST(forgotten_bytes_are_scanned_alone)
{
	rig_make(rig, "PacketFilter", NULL, 0);
	assert_true(passes(rig, segment(rig, 1, UINT32_MAX, "", RTE_TCP_SYN_FLAG)));
	for (uint32_t at = 0; at < 20000; at += 1000)
		assert_true(passes(rig, segment(rig, 1, at, NULL, 0)));
	assert_true(passes(rig, segment(rig, 1, 0, "anything", 0)));
	assert_false(passes(rig, segment(rig, 1, 0, witness_of("ssh"), 0)));
	assert_false(passes(rig, segment(rig, 1, -100u, "anything", 0)));
	assert_false(passes(rig, segment(rig, 1, 40000, "anything", 0)));
	assert_false(passes(rig, segment(rig, 1, 18000, "other", 0)));
	assert_true(passes(rig, segment(rig, 1, 18000, NULL, 0)));
	assert_counts(rig, {"behind", 2}, {"outside", 2}, {"differing", 1}, {"dropped", 1});
}

/* Where a segment is lost, 6 kB behind it pass, also late in a stream. */
BOTH_TEST(a_loss_holds_up_little)
{
	rig_make(rig, "PacketFilter", NULL, 0);
	assert_true(passes(rig, segment(rig, 1, UINT32_MAX, "", RTE_TCP_SYN_FLAG)));
	for (uint32_t lost = 0; lost < 70000; lost += 7000) {
		for (uint32_t at = lost + 1000; at < lost + 7000; at += 1000)
			assert_true(passes(rig, segment(rig, 1, at, NULL, 0)));
		assert_true(passes(rig, segment(rig, 1, lost, NULL, 0)));
	}
	assert_false(passes(rig, segment(rig, 1, 78192, "a", 0)));
	assert_counts(rig, {"outside", 1});
}

/* A SYN in a stream is freed and changes nothing: its receiver ignores it. Later it opens another. */
BOTH_TEST(blind_syns_change_nothing)
{
	rig_make(rig, "PacketFilter", NULL, 0);
	assert_true(passes(rig, segment(rig, 1, UINT32_MAX, "", RTE_TCP_SYN_FLAG)));
	assert_true(passes(rig, segment(rig, 1, 0, "abc", 0)));
	assert_false(passes(rig, segment(rig, 1, 100000, "", RTE_TCP_SYN_FLAG)));
	assert_false(passes(rig, segment(rig, 1, 2, "", RTE_TCP_SYN_FLAG)));
	assert_true(passes(rig, segment(rig, 1, 3, "SSH-2", 0)));
	assert_false(passes(rig, segment(rig, 1, 8, ".0-Any_9.2", 0)));
	assert_true(passes(rig, segment(rig, 1, UINT32_MAX, "", RTE_TCP_SYN_FLAG)));
	rig_offer(rig, segment(rig, 1, 100000, "", RTE_TCP_SYN_FLAG), 1 + STREAM_SYN_WAIT_US);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"outside", 2}, {"dropped", 1});
}

/* Where all streams wait, a further one is not followed and freed; given up is one that does not, or
 * whose SYN was not seen.
 */
BOTH_TEST(streams_are_limited)
{
	RIG_MAKE(rig, "PacketFilter", {"streams", 1});
	assert_true(passes(rig, segment(rig, 1, 0, "a", 0)));
	assert_true(passes(rig, segment(rig, 2, UINT32_MAX, "a", RTE_TCP_SYN_FLAG)));
	assert_true(passes(rig, segment(rig, 2, 2, "a", 0)));
	assert_false(passes(rig, segment(rig, 3, 0, "a", 0)));
	rig_offer(rig, segment(rig, 3, 0, "a", 0), 1 + STREAM_WAIT_US);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"given_up", 2}, {"unfollowed", 1});
	assert_true(passes(rig, segment(rig, 3, 2, "a", 0)));
	assert_true(passes(rig, segment(rig, 4, 0, "a", 0)));
	assert_int_equal(rig_count(rig, "given_up"), 3);
}

/* Other settings do not end streams, unless there is room for another number of them. */
BOTH_TEST(another_filter_takes_over_streams)
{
	for (double streams = 1; streams <= 2; streams++) {
		struct nf *before;

		RIG_MAKE(rig, "PacketFilter", {"streams", 1});
		assert_true(passes(rig, segment(rig, 1, 0, "a", 0)));
		assert_true(passes(rig, segment(rig, 2, 0, "SSH-2", 0)));
		before = rig->nf;
		rig->nf = NULL;
		RIG_MAKE(rig, "PacketFilter", {"streams", streams});
		memcpy(rig->nf->counters, before->counters, sizeof(before->counters));
		rig->nf->kind->take_over(rig->nf, before);
		nf_destroy(before);
		assert_int_equal(passes(rig, segment(rig, 2, 5, ".0-Any_9.2", 0)), streams > 1);
		assert_true(passes(rig, segment(rig, 3, 0, "a", 0)));
		assert_true(passes(rig, segment(rig, 4, 0, "a", 0)));
		assert_int_equal(rig_count(rig, "given_up"), streams > 1 ? 2 : 3);
	}
}

/* Anchors of a file's rules hold in a payload by itself, too; each rule counts once. */
TEST_WITH(anchors_are_those_of_payloads, struct rig *rig, setup_engines_in_folder, teardown_folder)
{
	write_file("rules", "web ^GET\nweb bad\nchat end$\n");
	RIG_MAKE(rig, "PacketFilter", {"file", .text = "rules"});
	assert_true(passes(rig, segment(rig, 1, 0, "xxb", 0)));
	assert_false(passes(rig, segment(rig, 1, 3, "GET bad", 0)));
	assert_true(passes(rig, segment(rig, 2, UINT32_MAX, "", RTE_TCP_SYN_FLAG)));
	assert_true(passes(rig, segment(rig, 2, 3, "xx", 0)));
	assert_false(passes(rig, segment(rig, 2, 0, "end", 0)));
	assert_int_equal(rig_count(rig, "matches"), 3);
	unlink("rules");
}
