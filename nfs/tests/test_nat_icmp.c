#include "tests/files.h"
#include "tests/nat_rig.h"

#include <stdlib.h>

static void make_icmp(struct rte_mbuf *packet, uint8_t type, uint16_t length)
{
	struct rte_icmp_hdr *icmp = rte_pktmbuf_mtod_offset(packet, struct rte_icmp_hdr *, 34);

	icmp->icmp_type = type;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (rte_be16_t)~rte_raw_cksum(icmp, length);
}

/* A query gets an external identifier, and its reply returns to its host (RFC 5508, REQ-1). */
RIG_TEST(queries_return_to_their_host)
{
	static const struct {
		uint8_t request, reply;
	} types[] = {{8, 0}, {13, 14}, {17, 18}};

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		struct packet_spec request = udp, reply;
		struct rte_mbuf *packet;
		struct ends left;

		request.protocol = IPPROTO_ICMP;
		rig_make(rig, "NAT", one_address, 2);
		packet = packet_from_spec(rig, &request);
		make_icmp(packet, types[i].request, 16);
		rig_offer(rig, packet, 1);
		assert_true(checksums_right(rig_sent(rig)));
		left = ends_of(rig_sent(rig));
		assert_int_equal(left.source, outside);
		reply = reply_of(&request, left);
		reply.source_port = left.source_port;
		packet = packet_from_spec(rig, &reply);
		make_icmp(packet, types[i].reply, 16);
		rig_offer(rig, packet, 2);
		assert_true(checksums_right(rig_sent(rig)));
		assert_int_equal(ends_of(rig_sent(rig)).destination, host);
		assert_int_equal(ends_of(rig_sent(rig)).source_port, request.source_port);
	}
}

/* Requests from outside, replies from inside and other types are freed. */
RIG_TEST(queries_in_the_wrong_direction_are_freed)
{
	static const uint8_t in[] = {8, 13, 17, 9}, out[] = {0, 14, 18, 10};
	struct packet_spec packet_spec = udp, back;
	struct rte_mbuf *packet;

	packet_spec.protocol = IPPROTO_ICMP;
	rig_make(rig, "NAT", one_address, 2);
	back = reply_of(&packet_spec, offered(rig, &packet_spec, 1));
	for (size_t i = 0; i < RTE_DIM(in); i++) {
		packet = packet_from_spec(rig, &back);
		make_icmp(packet, in[i], 16);
		rig_frees(rig, packet, 1);
		packet = packet_from_spec(rig, &packet_spec);
		make_icmp(packet, out[i], 16);
		rig_frees(rig, packet, 1);
	}
	assert_int_equal(rig_count(rig, "unsupported"), 2 * RTE_DIM(in));
}

/* An ICMP error about a packet, quoting `quoted` bytes of it; the packet is freed. */
static struct rte_mbuf *error_about(struct rig *rig, struct rte_mbuf *packet, uint16_t quoted,
				    uint32_t source, uint32_t to, enum nf_side from)
{
	struct packet_spec packet_spec = {
		.source = source,
		.destination = to,
		.protocol = IPPROTO_ICMP,
		.payload = rte_pktmbuf_mtod_offset(packet, const void *, 14),
		.payload_length = quoted,
		.from = from,
	};
	struct rte_mbuf *error = packet_from_spec(rig, &packet_spec);

	make_icmp(error, 3, 8 + quoted);
	rte_pktmbuf_free(packet);
	return error;
}

/* An error from outside reaches the inside host and quotes its own packet (RFC 5508). */
RIG_TEST(errors_from_outside_are_translated)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP};
	static const uint16_t quotes[] = {28, 36, 40};

	for (size_t i = 0; i < RTE_DIM(protocols) * RTE_DIM(quotes); i++) {
		const uint16_t quoted = quotes[i / RTE_DIM(protocols)];
		struct packet_spec packet_spec = udp;
		struct rte_mbuf *original, *error;

		packet_spec.protocol = protocols[i % RTE_DIM(protocols)];
		packet_spec.payload_length = 0;
		if (packet_spec.protocol != IPPROTO_TCP && quoted > 28)
			continue;
		rig_make(rig, "NAT", one_address, 2);
		offered(rig, &packet_spec, 1);
		error = error_about(rig, copy_sent(rig), quoted, server + 77, outside, NF_OUTSIDE);
		rig_offer(rig, error, 1);
		assert_true(checksums_right(rig_sent(rig)));
		assert_int_equal(ends_of(rig_sent(rig)).source, server + 77);
		assert_int_equal(ends_of(rig_sent(rig)).destination, host);
		assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
		original = packet_from_spec(rig, &packet_spec);
		assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, 42),
				    rte_pktmbuf_mtod_offset(original, uint8_t *, 14), quoted);
		rte_pktmbuf_free(original);
		assert_int_equal(rig_count(rig, "errors"), 1);
	}
}

/* An error from inside leaves with the external address and quotes the packet from outside. */
RIG_TEST(errors_from_inside_are_translated)
{
	struct packet_spec back;
	struct rte_mbuf *came;

	rig_make(rig, "NAT", one_address, 2);
	back = reply_of(&udp, offered(rig, &udp, 1));
	offered(rig, &back, 1);
	rig_offer(rig, error_about(rig, copy_sent(rig), 36, host, server, NF_INSIDE), 1);
	assert_true(checksums_right(rig_sent(rig)));
	assert_int_equal(ends_of(rig_sent(rig)).source, outside);
	assert_int_equal(ends_of(rig_sent(rig)).destination, server);
	came = packet_from_spec(rig, &back);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, 42),
			    rte_pktmbuf_mtod_offset(came, uint8_t *, 14), 36);
	rte_pktmbuf_free(came);
}

/*
 * An inside host's error about a packet of another inside host to its external address is
 * hairpinned and quotes the original packet (RFC 5508, REQ-7), unless either end has no mapping.
 */
RIG_TEST(errors_are_hairpinned)
{
	struct packet_spec other = udp, packet_spec = udp;
	struct rte_mbuf *came, *original;
	struct ends outside_other;

	other.source = host + 5;
	rig_make(rig, "NAT", one_address, 2);
	outside_other = offered(rig, &other, 1);
	packet_spec.destination = outside_other.source;
	packet_spec.destination_port = outside_other.source_port;
	assert_int_equal(offered(rig, &packet_spec, 1).destination, other.source);
	came = copy_sent(rig);
	rig_offer(rig, error_about(rig, came, 36, other.source, outside, NF_INSIDE), 1);
	assert_true(checksums_right(rig_sent(rig)));
	assert_int_equal(ends_of(rig_sent(rig)).source, outside);
	assert_int_equal(ends_of(rig_sent(rig)).destination, host);
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
	original = packet_from_spec(rig, &packet_spec);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, 42),
			    rte_pktmbuf_mtod_offset(original, uint8_t *, 14), 36);
	rig_offer(rig, error_about(rig, original, 36, other.source, outside, NF_INSIDE), 1);
	assert_int_equal(rig->out.n, 0); /* about an untranslated packet */
	assert_int_equal(rig_count(rig, "errors"), 1);
}

/* Padding behind a short error stays unchanged. */
RIG_TEST(padding_behind_errors_stays)
{
	struct packet_spec packet_spec = udp;
	struct rte_mbuf *error;
	uint8_t padding[30];
	char *end;

	packet_spec.protocol = IPPROTO_TCP;
	memset(padding, 0xaa, sizeof(padding));
	rig_make(rig, "NAT", one_address, 2);
	offered(rig, &packet_spec, 1);
	error = error_about(rig, copy_sent(rig), 28, server, outside, NF_OUTSIDE);
	end = rte_pktmbuf_append(error, sizeof(padding));
	if (!end)
		abort();
	memcpy(end, padding, sizeof(padding));
	rig_offer(rig, error, 1);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, 42 + 28), padding,
			    sizeof(padding));
}

/* Errors about unknown packets, with wrong checksums, or truncated are freed. */
RIG_TEST(invalid_errors_are_freed)
{
	struct rte_mbuf *error;

	rig_make(rig, "NAT", one_address, 2);
	offered(rig, &udp, 1);
	for (uint16_t quoted = 0; quoted < 28; quoted += 3) {
		error = error_about(rig, copy_sent(rig), quoted, server, outside, NF_OUTSIDE);
		rig_frees(rig, error, 1);
		offered(rig, &udp, 1);
	}
	error = error_about(rig, copy_sent(rig), 28, server, outside, NF_OUTSIDE);
	rte_pktmbuf_mtod_offset(error, uint8_t *, 42)[27] ^= 1;
	rig_frees(rig, error, 1);
	error = error_about(rig, packet_from_spec(rig, &udp), 28, server, outside, NF_OUTSIDE);
	rig_frees(rig, error, 1);
}

/* An error to another address than the quoted one is freed. */
RIG_TEST(errors_to_another_address_are_freed)
{
	uint32_t address;

	rig_make(rig, "NAT", NULL, 0);
	for (uint32_t other = 0; other < 2; other++) {
		address = offered(rig, &udp, 1).source;
		rig_offer(rig,
			  error_about(rig, copy_sent(rig), 28, server,
				      other ? outside + (address - outside + 1) % 16 : address,
				      NF_OUTSIDE),
			  1);
		assert_int_equal(rig->out.n, !other);
	}
}

/* Mutated errors are translated or freed. */
RIG_TEST(mutated_errors_are_translated_or_freed)
{
	rig_make(rig, "NAT", one_address, 2);
	for (int i = 0; i < 2; i++) {
		struct packet_spec packet_spec = udp;
		struct rte_mbuf *error;

		packet_spec.protocol = i ? IPPROTO_TCP : IPPROTO_UDP;
		offered(rig, &packet_spec, rig->nf->now_us);
		error = error_about(rig, copy_sent(rig), 28 + 8 * i, server, outside, NF_OUTSIDE);
		offer_mutations_of(rig, &error, 1, check_crossed);
	}
	assert_true(rig_count(rig, "errors") > 1000);
}

/* An error about what left from a forwarded port reaches its host, which no session has sent before. */
FOLDER_TEST(errors_about_forwarded_flows_are_translated)
{
	struct packet_spec packet = udp, original;
	struct rte_mbuf *error;

	packet.source_port = 53;
	write_file("file", "udp 203.0.113.0:2000 10.0.0.1:53\n");
	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 64}, {"forwards", .text = "file"});
	original = packet;
	original.source = outside;
	original.source_port = 2000;
	error = error_about(rig, packet_from_spec(rig, &original), 28, server + 77, outside, NF_OUTSIDE);
	rig_offer(rig, error, 1);
	assert_int_equal(side_of(rig_sent(rig)), NF_INSIDE);
	assert_int_equal(ends_of(rig_sent(rig)).destination, host);
	error = packet_from_spec(rig, &packet);
	assert_memory_equal(rte_pktmbuf_mtod_offset(rig_sent(rig), uint8_t *, 42),
			    rte_pktmbuf_mtod_offset(error, uint8_t *, 14), 24);
	rte_pktmbuf_free(error);
	assert_int_equal(rig_count(rig, "errors"), 1);
	unlink("file");
}
