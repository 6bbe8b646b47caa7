/* Chains: gates, merges, ways back, shares, cores, service headers, and what is refused. */
#include <pthread.h>

#include "core/chain.h"
#include "core/ipv4.h"
#include "core/nsh.h"
#include "core/split_hash.h"
#include "tests/hostile.h"
#include "tests/udp.h"

#define MOST_LEFT 4096

struct ends_of_chain {
	unsigned int n[2]; /* by enum chain_end */
	struct rte_mbuf *left[2][MOST_LEFT];
};

static void collect(void *state, unsigned int core, enum chain_end end, struct rte_mbuf **packets,
		    uint16_t n)
{
	struct ends_of_chain *ends = state;

	(void)core;
	assert_true(n <= NF_BURST);
	for (uint16_t i = 0; i < n; i++)
		ends->left[end][ends->n[end]++] = packets[i];
}

static struct ends_of_chain ends;

static void forget(void)
{
	for (int end = 0; end < 2; end++)
		rte_pktmbuf_free_bulk(ends.left[end], ends.n[end]);
	memset(&ends, 0, sizeof(ends));
}

static unsigned int add(struct chain_spec *spec, const char *name, const char *kind)
{
	struct chain_function *function = &spec->functions[spec->n_functions];

	*function = (struct chain_function){.kind = nf_find(kind)};
	snprintf(function->name, sizeof(function->name), "%s", name);
	assert_non_null(function->kind);
	if (spec->n_cores == 0)
		spec->n_cores = 1;
	return spec->n_functions++;
}

static void set(struct chain_spec *spec, unsigned int at, const char *name, double value)
{
	struct chain_function *function = &spec->functions[at];

	function->settings[function->n_settings++] = (struct nf_setting){name, value};
}

static void edge(struct chain_spec *spec, int from, uint8_t gate, int to, double share)
{
	spec->edges[spec->n_edges++] =
		(struct chain_edge){.from = from,
				    .to = to,
				    .gate = gate,
				    .share = {(uint64_t)(share * 1000), 1000}};
}

static struct chain *make(const struct rig *rig, const struct chain_spec *spec)
{
	const struct chain_config config = {.spare = rig->spare, .sink = collect, .state = &ends};
	struct chain *chain;

	forget();
	assert_int_equal(chain_spec_check(spec), 0);
	chain = chain_create(spec, &config);
	assert_non_null(chain);
	return chain;
}

static void enter(struct chain *chain, struct rte_mbuf *packet)
{
	chain_enter(chain, &packet, 1, 1);
}

static void end(struct chain *chain)
{
	forget();
	chain_destroy(chain);
}

static const uint32_t nat_addresses = RTE_IPV4(203, 0, 113, 0); /* by default */

/* Functions work one after the other, each on what the one before it made. */
RIG_TEST(functions_follow_each_other)
{
	struct chain_spec spec = {0};
	const unsigned int nat = add(&spec, "nat", "NAT");
	const unsigned int tunnel = add(&spec, "tunnel", "IPTunnel");
	struct chain *chain;
	const struct rte_ipv4_hdr *outer;

	edge(&spec, (int)nat, NF_FORWARD, (int)tunnel, 1);
	chain = make(rig, &spec);
	enter(chain, packet_from_spec(rig, &udp));
	assert_int_equal(ends.n[CHAIN_FORWARD], 1);
	outer = ipv4_of(ends.left[CHAIN_FORWARD][0]);
	assert_int_equal(outer->next_proto_id, IPPROTO_IPIP);
	assert_int_equal(rte_be_to_cpu_32(outer[1].src_addr) >> 8, nat_addresses >> 8);
	assert_int_equal(chain_counts_of(chain, nat).sent, 1);
	assert_int_equal(chain_counts_of(chain, tunnel).entered, 1);
	end(chain);
}

/* An ICMP error about a packet passes the functions before it, in reverse order. */
RIG_TEST(what_goes_back_passes_the_functions_before)
{
	struct packet_spec large = udp;
	struct chain_spec spec = {0};
	const unsigned int nat = add(&spec, "nat", "NAT");
	const unsigned int tunnel = add(&spec, "tunnel", "IPTunnel");
	struct chain *chain;
	const struct rte_ipv4_hdr *ip, *quoted;

	edge(&spec, (int)nat, NF_FORWARD, (int)tunnel, 1);
	set(&spec, tunnel, "mtu", 600);
	chain = make(rig, &spec);
	large.payload_length = 1000;
	large.fragment = RTE_IPV4_HDR_DF_FLAG;
	enter(chain, packet_from_spec(rig, &large));
	assert_int_equal(ends.n[CHAIN_FORWARD], 0);
	assert_int_equal(ends.n[CHAIN_BACK], 1);
	ip = ipv4_of(ends.left[CHAIN_BACK][0]);
	assert_int_equal(ip->next_proto_id, IPPROTO_ICMP);
	assert_int_equal(rte_be_to_cpu_32(ip->dst_addr), RTE_IPV4(10, 0, 0, 1));
	/* the quoted packet has its inside address again */
	quoted = (const struct rte_ipv4_hdr *)((const char *)(ip + 1) +
					       sizeof(struct rte_icmp_hdr));
	assert_int_equal(rte_be_to_cpu_32(quoted->src_addr), RTE_IPV4(10, 0, 0, 1));
	assert_int_equal(chain_counts_of(chain, tunnel).sent_back, 1);
	end(chain);
}

/* A reply from outside takes the way back to the host that it is for. */
RIG_TEST(replies_take_the_way_back)
{
	struct chain_spec spec = {0};
	const unsigned int acl = add(&spec, "acl", "ACL"), nat = add(&spec, "nat", "NAT");
	struct packet_spec reply = udp;
	struct chain *chain;
	const struct rte_ipv4_hdr *ip;

	set(&spec, acl, "filters", 0);
	edge(&spec, (int)acl, NF_FORWARD, (int)nat, 1);
	chain = make(rig, &spec);
	enter(chain, packet_from_spec(rig, &udp));
	ip = ipv4_of(ends.left[CHAIN_FORWARD][0]);
	reply.from = NF_OUTSIDE;
	reply.source = udp.destination;
	reply.source_port = udp.destination_port;
	reply.destination = rte_be_to_cpu_32(ip->src_addr);
	reply.destination_port = rte_be_to_cpu_16(((const struct rte_udp_hdr *)(ip + 1))->src_port);
	enter(chain, packet_from_spec(rig, &reply));
	assert_int_equal(ends.n[CHAIN_BACK], 1);
	assert_int_equal(rte_be_to_cpu_32(ipv4_of(ends.left[CHAIN_BACK][0])->dst_addr), udp.source);
	assert_int_equal(chain_counts_of(chain, acl).entered, 2);
	end(chain);
}

static uint32_t destination_of(struct rte_mbuf *packet)
{
	return rte_be_to_cpu_32(ipv4_of(packet)->dst_addr);
}

/* Numbered gates branch and merge again; every packet takes the branch of its next hop. */
RIG_TEST(branches_merge_again)
{
	struct chain_spec spec = {0};
	const unsigned int router = add(&spec, "router", "IPRouter");
	unsigned int branches[3], last;
	struct chain *chain;
	uint64_t entered = 0;

	set(&spec, router, "routes", 100000);
	set(&spec, router, "ports", 3);
	for (int i = 0; i < 3; i++) {
		branches[i] = add(&spec, (const char *[]){"a", "b", "c"}[i], "FlowStats");
		edge(&spec, (int)router, NF_BRANCH + i, (int)branches[i], 1);
	}
	last = add(&spec, "last", "FlowStats");
	for (int i = 0; i < 3; i++)
		edge(&spec, (int)branches[i], NF_FORWARD, (int)last, 1);
	chain = make(rig, &spec);
	for (uint32_t i = 0; i < 200; i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.destination = RTE_IPV4(20, 0, 0, 1) + i * 0x9e3779b1u % 0x40000000u;
		enter(chain, packet_from_spec(rig, &packet_spec));
		assert_int_equal(destination_of(ends.left[CHAIN_FORWARD][i]),
				 packet_spec.destination);
	}
	for (int i = 0; i < 3; i++) {
		assert_true(chain_counts_of(chain, branches[i]).entered > 0);
		entered += chain_counts_of(chain, branches[i]).entered;
	}
	assert_int_equal(entered, 200);
	assert_int_equal(chain_counts_of(chain, last).entered, 200);
	end(chain);
}

/* Shares split flows, not packets, in proportion. */
RIG_TEST(shares_split_flows)
{
	struct chain_spec spec = {0};
	const unsigned int acl = add(&spec, "acl", "ACL");
	const unsigned int one = add(&spec, "one", "FlowStats");
	const unsigned int two = add(&spec, "two", "FlowStats");
	struct chain *chain;

	set(&spec, acl, "filters", 0);
	edge(&spec, (int)acl, NF_FORWARD, (int)one, 0.25);
	edge(&spec, (int)acl, NF_FORWARD, (int)two, 0.75);
	chain = make(rig, &spec);
	for (int i = 0; i < 4000; i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.source_port = (uint16_t)(i % 2000);
		enter(chain, packet_from_spec(rig, &packet_spec));
		if (ends.n[CHAIN_FORWARD] == 500)
			forget();
	}
	assert_in_range(chain_counts_of(chain, one).entered, 800, 1200);
	assert_int_equal(chain_counts_of(chain, one).entered % 2, 0);
	assert_int_equal(chain_counts_of(chain, one).entered + chain_counts_of(chain, two).entered,
			 4000);
	end(chain);
}

/* Two functions that split by the same salt take the same flows apart; by another one, others. */
RIG_TEST(salts_decide_where_flows_go)
{
	const uint32_t salts[] = {0, 0, 77};
	bool first[3][200];

	for (int round = 0; round < 3; round++) {
		struct chain_spec spec = {0};
		const unsigned int acl = add(&spec, "acl", "ACL");
		const unsigned int one = add(&spec, "one", "FlowStats");
		struct chain *chain;

		set(&spec, acl, "filters", 0);
		spec.functions[acl].salt = salts[round];
		edge(&spec, (int)acl, NF_FORWARD, (int)one, 0.25);
		edge(&spec, (int)acl, NF_FORWARD, CHAIN_OUT, 0.75);
		chain = make(rig, &spec);
		for (uint16_t i = 0; i < 200; i++) {
			struct packet_spec packet_spec = udp;
			const uint64_t before = chain_counts_of(chain, one).entered;

			packet_spec.source_port = i;
			enter(chain, packet_from_spec(rig, &packet_spec));
			first[round][i] = chain_counts_of(chain, one).entered > before;
			assert_int_equal(first[round][i],
					 split_hash_of(salts[round], udp.source, udp.destination,
						       (uint32_t)i << 16 | 53, 17) < 16384);
		}
		end(chain);
	}
	assert_memory_equal(first[0], first[1], sizeof(first[0]));
	assert_memory_not_equal(first[0], first[2], sizeof(first[0]));
}

/* Replicas share the flows that enter by a service; each takes whole flows. */
RIG_TEST(replicas_share_a_service)
{
	struct chain_spec spec = {0};
	uint64_t expected[3] = {0};
	struct chain *chain;

	for (int i = 0; i < 3; i++) {
		add(&spec, (const char *[]){"a", "b", "c"}[i], "FlowStats");
		edge(&spec, CHAIN_OUT_NSH, 0, i, 1);
		spec.edges[2 * i].share = (struct share){1, 3};
		spec.edges[2 * i].service = (struct service){9, 255};
		spec.edges[2 * i].salt = 5;
		edge(&spec, i, NF_FORWARD, CHAIN_OUT, 1);
	}
	chain = make(rig, &spec);
	for (uint16_t i = 0; i < 600; i++) {
		struct packet_spec packet_spec = udp;
		struct rte_mbuf *packet;
		uint32_t value;

		packet_spec.source_port = i % 300;
		packet = packet_from_spec(rig, &packet_spec);
		assert_true(nsh_push(packet, (struct service){9, 255}));
		enter(chain, packet);
		value = split_hash_of(5, udp.source, udp.destination, (i % 300u) << 16 | 53, 17);
		expected[value < 21845 ? 0 : value < 43690 ? 1 : 2]++;
		for (unsigned int at = 0; at < 3; at++)
			assert_int_equal(chain_counts_of(chain, at).entered, expected[at]);
	}
	for (unsigned int at = 0; at < 3; at++)
		assert_in_range(chain_counts_of(chain, at).entered, 120, 280);
	assert_int_equal(chain_lost(chain), 0);
	end(chain);
}

/* What cannot enter is freed, and counted by its cause. */
RIG_TEST(losses_have_causes)
{
	struct chain_spec spec = {0};
	struct rte_mbuf *packet;
	struct chain *chain;

	add(&spec, "a", "FlowStats");
	edge(&spec, CHAIN_OUT_NSH, 0, 0, 1);
	spec.edges[0].service = (struct service){1, 255};
	edge(&spec, 0, NF_FORWARD, CHAIN_OUT, 1);
	chain = make(rig, &spec);
	enter(chain, packet_from_spec(rig, &udp)); /* a header is the only way in */
	assert_int_equal(chain_lost_by(chain, CHAIN_WITHOUT_NSH), 1);
	packet = packet_from_spec(rig, &udp);
	assert_true(nsh_push(packet, (struct service){1, 254}));
	enter(chain, packet);
	assert_int_equal(chain_lost_by(chain, CHAIN_UNKNOWN_PATH), 1);
	packet = packet_from_spec(rig, &udp);
	assert_true(nsh_push(packet, (struct service){1, 255}));
	*rte_pktmbuf_mtod_offset(packet, uint8_t *, 14) ^= 0x40; /* another version */
	enter(chain, packet);
	assert_int_equal(chain_lost_by(chain, CHAIN_INVALID_NSH), 1);
	assert_int_equal(chain_lost(chain), 3);
	assert_int_equal(ends.n[CHAIN_FORWARD], 0);
	end(chain);
}

struct far_core {
	struct chain *chain;
	bool stop;
};

static void *play_core_1(void *argument)
{
	struct far_core *far = argument;

	while (!__atomic_load_n(&far->stop, __ATOMIC_ACQUIRE))
		chain_step(far->chain, 1, 1);
	return NULL;
}

/* Over two cores the same packets leave in the same order as on one. */
RIG_TEST(cores_change_nothing)
{
	enum { PACKETS = 1000 };
	struct chain_spec spec = {0};
	const unsigned int acl = add(&spec, "acl", "ACL"), nat = add(&spec, "nat", "NAT");
	struct far_core far = {0};
	pthread_t thread;

	set(&spec, acl, "filters", 0);
	edge(&spec, (int)acl, NF_FORWARD, (int)nat, 1);
	spec.n_cores = 2;
	spec.functions[nat].core = 1;
	far.chain = make(rig, &spec);
	assert_int_equal(pthread_create(&thread, NULL, play_core_1, &far), 0);
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct packet_spec packet_spec = udp;
		struct rte_mbuf *packet;

		packet_spec.id = (uint16_t)i;
		packet = packet_from_spec(rig, &packet_spec);
		chain_enter(far.chain, &packet, 1, 1);
	}
	__atomic_store_n(&far.stop, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	chain_flush(far.chain, 1);
	assert_int_equal(ends.n[CHAIN_FORWARD], PACKETS);
	assert_int_equal(chain_lost(far.chain), 0);
	for (uint32_t i = 0; i < PACKETS; i++)
		assert_int_equal(
			rte_be_to_cpu_16(ipv4_of(ends.left[CHAIN_FORWARD][i])->packet_id), i);
	end(far.chain);
}

/* A packet with a service header enters at its function, and leaves with the next one's. */
RIG_TEST(service_headers_lead_into_the_chain_and_on)
{
	struct chain_spec spec = {0};
	const unsigned int acl = add(&spec, "acl", "ACL"), nat = add(&spec, "nat", "NAT");
	struct rte_mbuf *packet = packet_from_spec(rig, &udp);
	struct service service;
	struct chain *chain;

	set(&spec, acl, "filters", 0);
	edge(&spec, (int)acl, NF_FORWARD, (int)nat, 1);
	edge(&spec, CHAIN_OUT_NSH, 0, (int)nat, 1);
	spec.edges[1].service = (struct service){5, 254};
	edge(&spec, (int)nat, NF_FORWARD, CHAIN_OUT_NSH, 1);
	spec.edges[2].service = (struct service){5, 253};
	chain = make(rig, &spec);
	assert_true(nsh_push(packet, (struct service){5, 254}));
	enter(chain, packet);
	assert_int_equal(chain_counts_of(chain, acl).entered, 0);
	assert_int_equal(chain_counts_of(chain, nat).entered, 1);
	assert_int_equal(ends.n[CHAIN_FORWARD], 1);
	assert_int_equal(nsh_pop(ends.left[CHAIN_FORWARD][0], &service), NSH_POPPED);
	assert_int_equal(service.path, 5);
	assert_int_equal(service.index, 253);
	assert_true(checksums_right(ends.left[CHAIN_FORWARD][0]));
	packet = packet_from_spec(rig, &udp);
	assert_true(nsh_push(packet, (struct service){6, 254}));
	enter(chain, packet); /* an unknown path */
	assert_int_equal(chain_lost(chain), 1);
	end(chain);
}

/* Pushing and popping a service header restores the packet; damaged headers are invalid. */
RIG_TEST(service_headers_are_checked)
{
	struct rte_mbuf *packet = packet_from_spec(rig, &udp);
	uint8_t before[200], after[200];
	const uint16_t length = packet_bytes(packet, before, sizeof(before));
	struct service service;

	assert_int_equal(nsh_pop(packet, &service), NSH_NONE);
	assert_true(nsh_push(packet, (struct service){0xabcdef, 7}));
	assert_int_equal(rte_pktmbuf_pkt_len(packet), length + 14 + NSH_BYTES);
	assert_int_equal(nsh_pop(packet, &service), NSH_POPPED);
	assert_int_equal(service.path, 0xabcdef);
	assert_int_equal(service.index, 7);
	assert_int_equal(packet_bytes(packet, after, sizeof(after)), length);
	assert_memory_equal(before, after, length);
	for (uint16_t at = 14; at < 18; at++) {
		uint8_t *byte;

		assert_true(nsh_push(packet, (struct service){1, 1}));
		byte = rte_pktmbuf_mtod_offset(packet, uint8_t *, at);
		*byte ^= (uint8_t[]){0x40, 0x3f, 0, 0x01}[at - 14];
		if (at == 16) { /* the MD type alone does not matter */
			assert_int_equal(nsh_pop(packet, &service), NSH_POPPED);
			continue;
		}
		assert_int_equal(nsh_pop(packet, &service), NSH_INVALID);
		*byte ^= (uint8_t[]){0x40, 0x3f, 0, 0x01}[at - 14];
		assert_int_equal(nsh_pop(packet, &service), NSH_POPPED);
	}
	for (uint16_t kept = 14; kept < 36; kept++) {
		struct rte_mbuf *cut = packet_from_spec(rig, &udp);

		assert_true(nsh_push(cut, (struct service){1, 1}));
		assert_return_code(rte_pktmbuf_trim(cut, rte_pktmbuf_data_len(cut) - kept), 0);
		assert_int_equal(nsh_pop(cut, &service), NSH_INVALID);
		rte_pktmbuf_free(cut);
	}
	rte_pktmbuf_free(packet);
}

/* A cycle, two entries, shares that do not add up, and a gate that leads nowhere are refused. */
RIG_TEST(faults_are_found)
{
	const struct chain_config config = {.sink = collect, .state = &ends};
	struct chain_spec spec = {0}, good;
	const unsigned int a = add(&spec, "a", "FlowStats"), b = add(&spec, "b", "FlowStats");

	(void)rig;
	assert_int_equal(chain_spec_check(&spec), 1); /* two entries */
	edge(&spec, (int)a, NF_FORWARD, (int)b, 1);
	assert_int_equal(chain_spec_check(&spec), 0);
	good = spec;
	edge(&spec, (int)b, NF_FORWARD, (int)a, 1);
	assert_int_equal(chain_spec_check(&spec), 1); /* a cycle */
	spec = good;
	spec.edges[0].share = (struct share){1, 2};
	assert_int_equal(chain_spec_check(&spec), 1);
	spec = good;
	edge(&spec, CHAIN_OUT_NSH, 0, (int)a, 0.5); /* half of a service enters nowhere */
	assert_int_equal(chain_spec_check(&spec), 1);
	edge(&spec, CHAIN_OUT_NSH, 0, (int)b, 0.5);
	assert_int_equal(chain_spec_check(&spec), 0);
	spec.edges[2].to = (int)a;
	assert_int_equal(chain_spec_check(&spec), 1); /* twice the same edge */
	spec = good;
	edge(&spec, (int)b, NF_BRANCH + 1, CHAIN_OUT, 1);
	assert_int_equal(chain_spec_check(&spec), 0); /* only an instance knows its gates */
	assert_null(chain_create(&spec, &config));
	spec = good;
	spec.functions[a].kind = nf_find("IPRouter");
	set(&spec, a, "routes", 0);
	set(&spec, a, "ports", 2);
	assert_null(chain_create(&spec, &config));
	spec = (struct chain_spec){0};
	assert_int_equal(chain_spec_check(&spec), 1); /* nothing */
}
