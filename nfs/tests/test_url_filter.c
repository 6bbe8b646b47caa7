#include "tests/hostile.h"
#include "tests/url_rig.h"

/* A domain covers itself and its subdomains, and nothing that merely ends alike. */
RIG_TEST(domains_cover_subdomains)
{
	url_filter_make(rig, "example.org\nads.example.com\n", NULL, 0);
	assert_false(url_request_passes(rig, "example.org", "/"));
	assert_false(url_request_passes(rig, "www.example.org", "/a/b?c"));
	assert_false(url_request_passes(rig, "a.b.example.org", "/"));
	assert_false(url_request_passes(rig, "ads.example.com", "/"));
	assert_true(url_request_passes(rig, "badexample.org", "/"));
	assert_true(url_request_passes(rig, "example.com", "/"));
	assert_true(url_request_passes(rig, "org", "/"));
	assert_true(url_request_passes(rig, "example.org.net", "/"));
	assert_true(url_request_passes(rig, "", "/"));
	assert_counts(rig, {"blocked", 4}, {"passed", 5}, {"requests", 9});
}

/* A path covers what is below it, by whole segments, and so on subdomains. */
RIG_TEST(paths_cover_what_is_below)
{
	url_filter_make(rig, "example.org/ads\nexample.org/a/b/c/\nexample.com/x\ncom/y\n", NULL,
			0);
	assert_false(url_request_passes(rig, "example.org", "/ads"));
	assert_false(url_request_passes(rig, "example.org", "/ads/"));
	assert_false(url_request_passes(rig, "example.org", "/ads?id=1"));
	assert_false(url_request_passes(rig, "www.example.org", "/ads/banner.png"));
	assert_false(url_request_passes(rig, "example.org", "/a/b/c"));
	assert_false(url_request_passes(rig, "example.com", "/y"));
	assert_true(url_request_passes(rig, "example.org", "/"));
	assert_true(url_request_passes(rig, "example.org", "/adserver"));
	assert_true(url_request_passes(rig, "example.org", "/ADS"));
	assert_true(url_request_passes(rig, "example.org", "/b?/ads"));
	assert_true(url_request_passes(rig, "example.org", "/a/b"));
	assert_true(url_request_passes(rig, "example.org", "/a/b/d"));
	assert_true(url_request_passes(rig, "example.org", "/x"));
}

/* Other spellings of a URL are the same URL (RFC 3986, section 6.2.2). */
RIG_TEST(spellings_do_not_matter)
{
	static const char *const targets[] = {
		"/ads/x",        "/%61ds/x",    "/%61%64%73/x", "/./ads/x",
		"/a/../ads/x",   "//ads//x",    "/ads/./x/",    "/../ads/x/y",
		"/b/.././ads/x", "/ads/x/z/..", "/ads/%78",
	};

	url_filter_make(rig, "Example.ORG/ads/x  # comment\n", NULL, 0);
	for (unsigned int i = 0; i < RTE_DIM(targets); i++)
		assert_false(url_request_passes(rig, "example.org", targets[i]));
	assert_false(url_request_passes(rig, "EXAMPLE.org", "/ads/x"));
	assert_false(url_request_passes(rig, "example.org.", "/ads/x"));
	assert_false(url_request_passes(rig, "example.org:8080", "/ads/x"));
	assert_false(url_request_passes(rig, "  example.org\t", "/ads/x"));
	assert_true(url_request_passes(rig, "example.org", "/ads%2Fx"));
	assert_true(url_request_passes(rig, "example.org", "/ads/x/.."));
	assert_true(url_request_passes(rig, "example.org", "/ads/%"));
}

/* Requests are read as servers read them (RFC 9112). */
RIG_TEST(requests_are_read_as_servers_do)
{
	static const char *const blocked[] = {
		"POST / HTTP/1.0\nhost:example.org\n\n",
		"\r\n\r\nGET / HTTP/1.1\r\nHOST: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nHost: other.net\r\n\r\n",
		"GET HTTPS://user@EXAMPLE.org:444/x HTTP/1.1\r\n\r\n",
		"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
		"GET http://other.net/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: other.net\r\nHost: example.org\r\n\r\n",
		("GET / HTTP/1.1\r\nHost: other.net\r\n\r\nGET / HTTP/1.1\r\nHost: "
		 "example.org\r\n\r\n"),
		"BREW / HTTP/1.1\r\nHost : example.org\r\n\r\n",
		"VERSION-CONTROL / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"-GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"_GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"M!#$%&'*+.^_`|~09azA / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.org\r\nCookie: goes on in the next",
	};
	static const char *const passing[] = {
		"GET / HTTP/2.0\r\nHost: example.org\r\n\r\n",
		"get / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET / http/1.1\r\nHost: example.org\r\n\r\n",
		"G(T / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"HTTP/1.1 200 OK\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\r\nReferer: http://example.org/\r\nHost: other.net\r\n\r\n",
		"GET / HTTP/1.1\r\nX-Host: example.org\r\nHostile: example.org\r\n\r\n",
		("POST / HTTP/1.1\r\nHost: other.net\r\nContent-Length: 44\r\n\r\n"
		 "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"),
		"GET / HTTP/1.1\r\nHost: other.net\r\n\r\nHost: example.org\r\n",
		"example.org",
	};

	url_filter_make(rig, "example.org", NULL, 0);
	for (unsigned int i = 0; i < RTE_DIM(blocked); i++)
		assert_false(url_text_passes(rig, blocked[i]));
	for (unsigned int i = 0; i < RTE_DIM(passing); i++)
		assert_true(url_text_passes(rig, passing[i]));
	assert_int_equal(rig_count(rig, "incomplete"), 0);
}

/* A request without a host in its segment is incomplete: it url_text_passes, or is blocked if so
 * set. */
RIG_TEST(incomplete_requests_pass_unless_set)
{
	static const char request[] =
		"GET /a HTTP/1.1\r\nAccept: text\r\nHost: example.org\r\n\r\n";

	for (int block = 0; block < 2; block++) {
		url_filter_make(rig, "example.org", "block_incomplete", block);
		for (size_t length = 4; length < sizeof(request) - 1; length++) {
			/* the Host field ends before the empty line */
			const bool whole = length >= sizeof(request) - 1 - 2;

			assert_int_equal(url_bytes_pass(rig, request, length), !whole && !block);
		}
		assert_int_equal(rig_count(rig, "incomplete"), sizeof(request) - 1 - 2 - 4);
		assert_true(url_text_passes(rig, "something else"));
		assert_true(url_text_passes(rig, ""));
	}
}

/* A TLS handshake is judged by its server name; paths do not matter, since they are encrypted. */
RIG_TEST(server_names_are_judged)
{
	uint8_t bytes[512];
	size_t length;

	url_filter_make(rig, "example.org\nexample.com/path\n", NULL, 0);
	length = client_hello(bytes, "www.Example.org");
	assert_false(url_bytes_pass(rig, bytes, length));
	for (size_t cut = 1; cut < length - 6; cut++) /* the name is missing, or what follows it */
		assert_int_equal(url_bytes_pass(rig, bytes, length - cut), cut > 4);
	assert_counts(rig, {"handshakes", 5}, {"incomplete", length - 6 - 5});
	assert_true(url_bytes_pass(rig, bytes, client_hello(bytes, "example.com")));
	assert_true(url_bytes_pass(rig, bytes, client_hello(bytes, "example.net")));
	length = client_hello(bytes, "example.org");
	bytes[5] = 2; /* a ServerHello */
	assert_true(url_bytes_pass(rig, bytes, length));
}

/* A ClientHello in two records, cut anywhere, is judged as one in a single record (RFC 8446, 5.1). */
RIG_TEST(handshakes_in_two_records_are_judged)
{
	uint8_t hello[MOST_TEXT], cut[MOST_TEXT];
	const size_t length = client_hello(hello, "www.example.org");

	url_filter_make(rig, "example.org", NULL, 0);
	for (size_t first = 1; first + 5 < length; first++) {
		const size_t rest = length - 5 - first;

		memcpy(cut, hello, 5 + first);
		cut[3] = (uint8_t)(first >> 8);
		cut[4] = (uint8_t)first;
		memcpy(cut + 5 + first, hello, 3);
		cut[5 + first + 3] = (uint8_t)(rest >> 8);
		cut[5 + first + 4] = (uint8_t)rest;
		memcpy(cut + 10 + first, hello + 5 + first, rest);
		assert_false(url_bytes_pass(rig, cut, length + 5));
	}
	assert_int_equal(rig_count(rig, "handshakes"), length - 6);
}

/* A server name that is no host name is none, wherever the segment ends (RFC 6066, section 3). */
RIG_TEST(names_of_another_type_are_none)
{
	uint8_t bytes[512];
	const size_t length = client_hello(bytes, "example.org");

	bytes[length - 4 - strlen("example.org") - 3] = 1;
	url_filter_make(rig, "example.org", "block_incomplete", 1);
	for (size_t cut = 0; cut < 4 + strlen("example.org"); cut++)
		assert_true(url_bytes_pass(rig, bytes, length - cut));
	assert_counts(rig, {"incomplete", 0}, {"handshakes", 0});
}

/* An asterisk names no host: the Host field, which may come later, does (RFC 9112, 3.2.4). */
RIG_TEST(an_asterisk_is_no_host)
{
	url_filter_make(rig, "example.org", "block_incomplete", 1);
	assert_false(url_text_passes(rig, "OPTIONS * HTTP/1.1\r\nAccept: */*\r\n"));
	assert_counts(rig, {"incomplete", 1}, {"requests", 0});
	assert_false(url_text_passes(rig, "OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n"));
	assert_true(url_text_passes(rig, "OPTIONS * HTTP/1.1\r\nHost: other.net\r\n\r\n"));
	assert_int_equal(rig_count(rig, "requests"), 2);
}

/* Only TCP is judged; segments of a buffer make no difference. */
RIG_TEST(only_tcp_is_judged)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
	struct packet_spec packet_spec = url_segment(request, sizeof(request) - 1);
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06}, ipv6[60] = {
		[12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 59};

	url_filter_make(rig, "example.org", NULL, 0);
	for (uint16_t first = 54; first < 70; first++) {
		rig_frees(rig, in_two(rig, packet_from_spec(rig, &packet_spec), first), 1);
	}
	packet_spec.vlan = 3;
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	/* which parts of a request are in fragments is not known */
	packet_spec.fragment = 10;
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	packet_spec.fragment = RTE_IPV4_HDR_MF_FLAG;
	packet_spec.payload_length = 24;
	rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig_count(rig, "fragments"), 2);
	packet_spec.payload_length = sizeof(request) - 1;
	packet_spec.fragment = 0;
	packet_spec.protocol = IPPROTO_UDP;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_of(rig, arp, sizeof(arp)), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_of(rig, ipv6, sizeof(ipv6)), 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "other"), 1);
}

static const struct rte_tcp_hdr *tcp_of(struct rte_mbuf *packet)
{
	assert_true(checksums_right(packet));
	return (const struct rte_tcp_hdr *)(ipv4_of(packet) + 1);
}

/* If so set, both ends of a blocked connection get a reset that they accept (RFC 9293). */
RIG_TEST(blocked_connections_are_reset)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";

	url_filter_make(rig, "example.org", "reset", 1);
	for (int acknowledges = 0; acknowledges < 2; acknowledges++) {
		struct packet_spec packet_spec = url_segment(request, sizeof(request) - 1);
		struct rte_mbuf *packet;
		struct rte_tcp_hdr *sent;
		const struct rte_tcp_hdr *tcp;

		packet_spec.tcp_flags = acknowledges ? RTE_TCP_ACK_FLAG : RTE_TCP_FIN_FLAG;
		packet = packet_from_spec(rig, &packet_spec);
		sent = (struct rte_tcp_hdr *)(ipv4_of(packet) + 1);
		sent->sent_seq = RTE_BE32(1000);
		sent->recv_ack = RTE_BE32(5000);
		rig_offer(rig, packet, 1);
		assert_int_equal(rig->out.n, 2);
		tcp = tcp_of(rig->out.packets[0]);
		assert_int_equal(side_of(rig->out.packets[0]), NF_OUTSIDE);
		assert_int_equal(rte_be_to_cpu_16(tcp->dst_port), 80);
		assert_int_equal(rte_be_to_cpu_32(tcp->sent_seq), 1000);
		assert_int_equal(tcp->tcp_flags, RTE_TCP_RST_FLAG);
		tcp = tcp_of(rig->out.packets[1]);
		assert_int_equal(side_of(rig->out.packets[1]), NF_INSIDE);
		assert_int_equal(rte_be_to_cpu_32(ipv4_of(rig->out.packets[1])->dst_addr),
				 RTE_IPV4(10, 0, 0, 1));
		assert_int_equal(rte_be_to_cpu_16(tcp->src_port), 80);
		assert_int_equal(rte_be_to_cpu_32(tcp->sent_seq), acknowledges ? 5000 : 0);
		assert_int_equal(rte_be_to_cpu_32(tcp->recv_ack),
				 acknowledges ? 0 : 1000 + sizeof(request) - 1 + 1);
		assert_int_equal(tcp->tcp_flags,
				 RTE_TCP_RST_FLAG | (acknowledges ? 0 : RTE_TCP_ACK_FLAG));
	}
	assert_int_equal(rig_count(rig, "resets"), 4);
	rig->nf->spare = NULL;
	assert_false(url_text_passes(rig, request));
	assert_int_equal(rig_count(rig, "unbuffered"), 2);
}

/* A long target has no path to compare; its domain is judged. */
RIG_TEST(long_targets_are_judged_by_domain)
{
	char text[1400] = "GET /", *at = text + strlen(text);

	url_filter_make(rig, "example.org/ads\nexample.com\n", NULL, 0);
	for (int i = 0; i < 600; i++)
		at += sprintf(at, "%s", i % 2 ? "%" : "a/");
	strcpy(at, " HTTP/1.1\r\nHost: example.com\r\n\r\n");
	assert_false(url_text_passes(rig, text));
}

/* The second part of a request, behind `length` bytes of it; whether it passes. */
static bool rest_passes(struct rig *rig, const char *rest, uint32_t length)
{
	const struct packet_spec packet_spec = url_segment(rest, strlen(rest));
	struct rte_mbuf *packet = packet_from_spec(rig, &packet_spec);
	struct rte_tcp_hdr *tcp =
		rte_pktmbuf_mtod_offset(packet, struct rte_tcp_hdr *,
					sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr));

	tcp->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(tcp->sent_seq) + length);
	rig_offer(rig, packet, 1);
	return rig->out.n == 1;
}

/* A request that began before its filter got another list is followed, and judged by that one. */
RIG_TEST(another_list_takes_over_requests_in_parts)
{
	static const char begin[] = "GET /a HTTP/1.1\r\nHost: exam", end[] = "ple.org\r\n\r\n";
	struct nf *before;

	for (int knows = 0; knows < 2; knows++) {
		url_filter_make(rig, "other.net", "streams", 16);
		assert_true(url_text_passes(rig, begin));
		before = rig->nf;
		rig->nf = NULL;
		url_filter_make(rig, "example.org", "streams", 16);
		if (knows)
			rig->nf->kind->take_over(rig->nf, before);
		nf_destroy(before);
		assert_int_equal(rest_passes(rig, end, sizeof(begin) - 1), !knows);
	}
}

/* Mutated requests and handshakes neither crash it nor are read beyond their end. */
RIG_TEST(survives_hostile_packets)
{
	static const char *const requests[] = {
		"GET /%61/../b?c HTTP/1.1\r\nHost: example.org:80\r\n\r\n",
		"POST http://u@example.org/x HTTP/1.1\r\nHost: a\r\nHost: b\r\nHost: c\r\n"
		"Host: d\r\nHost: e\r\n\r\nGET / HTTP/1.0\n\n",
	};
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1)};
	struct rte_mbuf *packets[RTE_DIM(requests) + 1];
	uint8_t bytes[512];
	struct packet_spec packet_spec = url_segment(bytes, client_hello(bytes, "example.org"));

	url_filter_make(rig, "example.org/x\nexample.org/b/c\n", "reset", 1);
	packets[0] = packet_from_spec(rig, &packet_spec);
	for (unsigned int i = 0; i < RTE_DIM(requests); i++) {
		packet_spec = url_segment(requests[i], strlen(requests[i]));
		packets[1 + i] = packet_from_spec(rig, &packet_spec);
	}
	offer_malformed(rig);
	assert_true(rig_count(rig, "malformed") > 0);
	assert_int_equal(rig_count(rig, "blocked"), 0);
	offer_hostile(rig, addresses, 1, NULL);
	offer_mutations_of(rig, packets, RTE_DIM(packets), NULL);
	assert_true(rig_count(rig, "blocked") > 100);
	assert_true(rig_count(rig, "handshakes") > 100);
}
