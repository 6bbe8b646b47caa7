#include <pcap/pcap.h>

#include "tests/hostile.h"
#include "tests/refusal.h"
#include "tests/udp.h"

static void make(struct rig *rig, const char *filters, bool drop_unmatched)
{
	const struct nf_setting settings[] = {{"filters", .text = filters},
					      {"drop_unmatched", drop_unmatched}};

	rig_make(rig, "Match", settings, RTE_DIM(settings));
}

/* The gate by which a packet of a protocol leaves. */
static int gate_of(struct rig *rig, uint8_t protocol)
{
	struct packet_spec packet_spec = udp;

	packet_spec.protocol = protocol;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	return metadata_of(rig_sent(rig))->gate;
}

/* The first filter that matches chooses the gate, even if others match; none: the last gate. */
RIG_TEST(first_match_chooses_the_gate)
{
	make(rig, " tcp port 53 ;host 10.0.0.1 and port 53; udp;tcp\n", false);
	assert_int_equal(nf_branches(rig->nf), 5);
	assert_int_equal(gate_of(rig, IPPROTO_TCP), NF_BRANCH);
	assert_int_equal(gate_of(rig, IPPROTO_UDP), NF_BRANCH + 1);
	assert_int_equal(gate_of(rig, IPPROTO_ICMP), NF_BRANCH + 4);
	assert_counts(rig, {"matched", 2}, {"unmatched", 1});
}

/* With drop_unmatched a packet without a match is freed, and there is no gate for it. */
RIG_TEST(unmatched_packets_are_freed_on_request)
{
	struct packet_spec ping = udp;

	ping.protocol = IPPROTO_ICMP;
	make(rig, "udp; tcp", true);
	assert_int_equal(nf_branches(rig->nf), 2);
	rig_frees(rig, packet_from_spec(rig, &ping), 1);
	assert_int_equal(rig_count(rig, "unmatched"), 1);
	assert_int_equal(gate_of(rig, IPPROTO_TCP), NF_BRANCH + 1);
}

/* One filter that drops all else is no branch: what it matches goes forward, from either side. */
RIG_TEST(one_gate_is_forward)
{
	struct packet_spec from_outside = udp;

	from_outside.from = NF_OUTSIDE;
	make(rig, "udp", true);
	assert_int_equal(nf_branches(rig->nf), 0);
	assert_int_equal(gate_of(rig, IPPROTO_UDP), NF_FORWARD);
	rig_offer(rig, packet_from_spec(rig, &from_outside), 1);
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
}

/* An expression looks behind a VLAN tag only after the word `vlan`. */
RIG_TEST(tags_are_matched_as_tcpdump_does)
{
	struct packet_spec tagged = udp;

	tagged.vlan = 7;
	make(rig, "udp; vlan 8; vlan 7 and udp port 53", false);
	rig_offer(rig, packet_from_spec(rig, &tagged), 1);
	assert_int_equal(metadata_of(rig_sent(rig))->gate, NF_BRANCH + 2);
}

/* As many filters as gates are possible, but not one more. */
RIG_TEST(filters_are_as_many_as_gates)
{
	char many[65 * 12] = "";

	for (int i = 0; i < 64; i++)
		sprintf(many + strlen(many), "%sport %d", i ? ";" : "", 1000 + i);
	make(rig, many, true);
	assert_int_equal(nf_branches(rig->nf), 64);
	assert_int_equal(gate_of(rig, IPPROTO_UDP), NF_BRANCH);
	assert_string_equal(refusal("Match", (struct nf_setting[]){{"filters", .text = many}}, 1),
			    "Match: 63 filters are most\nhint: with drop_unmatched 1, 64\n");
}

/* Every wrong expression is named, with libpcap's message. */
TEST(wrong_expressions_are_refused)
{
	assert_string_equal(
		refusal("Match",
			(struct nf_setting[]){{"filters", .text = "tcp; udp prot 5;; udp"}}, 1),
		"Match: filter 2, \"udp prot 5\": can't parse filter expression: syntax error\n"
		"hint: the syntax is that of tcpdump, see pcap-filter(7)\n"
		"Match: filter 3 is empty\n"
		"hint: write `greater 0` to match all packets\n");
}

/* Expressions of every kind of instruction. */
static const char *const expressions[] = {
	"tcp",
	"udp port 53",
	"src net 10.0.0.0/9 and not dst port 2",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
	"tcp[0] % 3 = 1",
	"ip[2] ^ ip[3] = 5",
	"ip[ip[3]] > 100",
	"(udp[1] * 7 - ip[8]) / 3 = 2 or udp[3] << 3 >> 1 = 12",
	"udp[4:2] + 20 != ip[2:2]",
	"len > 100 and greater 200 and less 1000",
	"vlan 5 and udp",
	"portrange 1-2",
	"icmp[icmptype] = icmp-unreach and icmp[17] = 6",
	"ip6 or arp",
	"ether[0] & 1 = 1",
	"ip[6:2] & 0x1fff != 0",
	"ip[1000:4] & 0xff = 17",
	"not ip",
	"ip proto 4 and ip[29] = 6",
	"ip[2:2] / (ip[8] - 1) > 30",
};

static struct bpf_program programs[RTE_DIM(expressions)];

/* The gate by the packet's bytes in one piece. */
static unsigned int gate_by_libpcap(const uint8_t *bytes, uint16_t length)
{
	unsigned int i = 0;

	while (i < RTE_DIM(expressions) && !bpf_filter(programs[i].bf_insns, bytes, length, length))
		i++;
	return NF_BRANCH + i;
}

static unsigned int seen[RTE_DIM(expressions) + 1];

static void leaves_where_libpcap_says(struct rte_mbuf *sent)
{
	uint8_t bytes[4096];
	const uint16_t length = packet_bytes(sent, bytes, sizeof(bytes));
	const unsigned int gate = metadata_of(sent)->gate;

	assert_int_equal(gate, gate_by_libpcap(bytes, length));
	seen[gate - NF_BRANCH]++;
}

/* Packets in segments, malformed or not, match as the same bytes in one piece. */
RIG_TEST(hostile_packets_match_as_in_libpcap)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1), RTE_IPV4(10, 200, 0, 1)};
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	char filters[4096] = "";

	/* the last first, so that few packets match the earlier ones */
	for (unsigned int i = 0; i < RTE_DIM(expressions); i++) {
		const char *expression = expressions[RTE_DIM(expressions) - 1 - i];

		assert_int_equal(
			pcap_compile(pcap, &programs[i], expression, 1, PCAP_NETMASK_UNKNOWN), 0);
		sprintf(filters + strlen(filters), "%s%s", i ? ";" : "", expression);
	}
	make(rig, filters, false);
	offer_malformed(rig);
	offer_hostile(rig, addresses, RTE_DIM(addresses), leaves_where_libpcap_says);
	assert_true(rig_count(rig, "matched") + rig_count(rig, "unmatched") >= HOSTILE_PACKETS);
	for (unsigned int i = 0; i < RTE_DIM(expressions); i++)
		pcap_freecode(&programs[i]);
	pcap_close(pcap);
	for (unsigned int i = 0, n = 0; i < RTE_DIM(seen); i++) {
		n += seen[i] > 0;
		assert_true(i + 1 < RTE_DIM(seen) || n > 15);
	}
}
