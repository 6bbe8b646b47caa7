#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "core/traffic.h"
#include "tests/support.h"

static const struct traffic_profile default_profile = {
	.flows = 1000, .packet_size = 1500, .mtbr = 600};

/* Receive `n` packets in bursts; call a function on each and free it. */
static void look(struct traffic *traffic, unsigned int n,
		 void (*see)(struct rte_mbuf *packet, void *state), void *state)
{
	struct rte_mbuf *packets[NF_BURST];

	for (unsigned int seen = 0; seen < n;) {
		uint16_t got = traffic_receive(traffic, packets, NF_BURST);

		assert_int_equal(got, NF_BURST);
		for (uint16_t i = 0; i < got; i++, seen++)
			see(packets[i], state);
		rte_pktmbuf_free_bulk(packets, got);
	}
}

static void see_sound(struct rte_mbuf *mbuf, void *state)
{
	const struct packet packet = packet_parse(mbuf);
	const uint16_t *size = state;

	assert_int_equal(packet.type, PACKET_IPV4);
	assert_int_equal(packet.protocol, IPPROTO_UDP);
	assert_int_equal(rte_pktmbuf_pkt_len(mbuf), *size - 4);
	assert_int_equal(packet.payload_length, *size - 4 - 42);
	assert_true(checksums_right(mbuf));
}

/* Packets of every size have correct lengths and checksums. */
TEST(packets_are_valid)
{
	const uint16_t sizes[] = {64, 65, 128, 1000, 1500};

	for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
		struct traffic_profile profile = default_profile;
		struct traffic *traffic;
		uint16_t size = sizes[i];

		profile.packet_size = size;
		traffic = traffic_create(&profile, 1);
		assert_non_null(traffic);
		look(traffic, 4096, see_sound, &size);
		traffic_destroy(traffic);
	}
}

struct flows {
	uint32_t seen[200000];
};

static void see_flow(struct rte_mbuf *mbuf, void *state)
{
	const struct packet packet = packet_parse(mbuf);
	const uint32_t source = rte_be_to_cpu_32(packet_ipv4(mbuf, &packet)->src_addr);
	const uint32_t flow = source - RTE_IPV4(10, 0, 0, 1);
	struct flows *flows = state;

	assert_true(flow < RTE_DIM(flows->seen));
	flows->seen[flow]++;
}

/* How often each flow is among `n` packets; the next call writes there again. */
static const uint32_t *seen_of(const struct traffic_profile *profile, bool sweep, uint32_t n)
{
	struct traffic *traffic = traffic_create(profile, 1);
	static struct flows flows;

	assert_non_null(traffic);
	if (sweep)
		traffic_sweep(traffic);
	flows = (struct flows){0};
	look(traffic, n, see_flow, &flows);
	traffic_destroy(traffic);
	return flows.seen;
}

/* Flows are equally popular: of 100,000 packets each of 1,000 flows has 100 +- 60. */
TEST(flows_are_equally_popular)
{
	const uint32_t *seen = seen_of(&default_profile, false, 100000);

	for (int i = 0; i < 1000; i++)
		assert_in_range(seen[i], 40, 160);
}

/* A sweep sends every flow once before random draws, also if most are rare. */
TEST(a_sweep_sends_every_flow)
{
	struct traffic_profile profile = default_profile;
	const uint32_t *seen;

	profile.zipf = 2;
	seen = seen_of(&profile, true, 1000);
	for (int i = 0; i < 1000; i++)
		assert_true(seen[i] >= 1);
}

/*
 * By Zipf's law with exponent 1 the first of 1,000 flows has 1/7.49 of the packets, the tenth a
 * tenth of that.
 */
TEST(popularity_follows_zipf)
{
	struct traffic_profile profile = default_profile;
	const uint32_t *seen;

	profile.zipf = 1;
	seen = seen_of(&profile, false, 100000);
	assert_in_range(seen[0], 12500, 14200);
	assert_in_range(seen[9], 1150, 1520);
}

/* Of 200,000 nearly equal flows, nearly all occur. */
TEST(nearly_all_of_many_flows_occur)
{
	const struct traffic_profile profile = {.flows = 200000, .packet_size = 64, .zipf = 0.01};
	const uint32_t *seen = seen_of(&profile, false, 800000);
	uint32_t met = 0;

	for (uint32_t i = 0; i < profile.flows; i++)
		met += seen[i] > 0;
	assert_in_range(met, 195000, 199000); /* 1 - exp(-4) of them */
}

static void see_bytes(struct rte_mbuf *mbuf, void *state)
{
	uint64_t *sum = state;
	const uint8_t *bytes = rte_pktmbuf_mtod(mbuf, const uint8_t *);

	for (uint16_t i = 0; i < rte_pktmbuf_data_len(mbuf); i++)
		*sum = *sum * 31 + bytes[i];
}

static uint64_t sum_of(uint64_t seed)
{
	struct traffic *traffic = traffic_create(&default_profile, seed);
	uint64_t sum = 0;

	assert_non_null(traffic);
	look(traffic, 2048, see_bytes, &sum);
	traffic_destroy(traffic);
	return sum;
}

/* The same seed gives the same bytes, another one different ones. */
TEST(packets_depend_on_the_seed_only)
{
	assert_true(sum_of(7) == sum_of(7));
	assert_true(sum_of(7) != sum_of(8));
}

/* Packets that a function holds are not received again; traffic goes on once they are freed. */
TEST(held_packets_are_not_reused)
{
	struct traffic *traffic = traffic_create(&default_profile, 1);
	struct rte_mbuf *kept[TRAFFIC_PACKETS + 1];
	uint16_t n = 0, got;

	assert_non_null(traffic);
	while ((got = traffic_receive(traffic, kept + n, RTE_MIN(NF_BURST, TRAFFIC_PACKETS - n))) >
	       0)
		n += got;
	assert_int_equal(n, TRAFFIC_PACKETS);
	assert_int_equal(traffic_receive(traffic, kept + n, 1), 0);
	rte_pktmbuf_free_bulk(kept, n);
	assert_int_equal(traffic_receive(traffic, kept, NF_BURST), NF_BURST);
	rte_pktmbuf_free_bulk(kept, NF_BURST);
	traffic_destroy(traffic);
}

/* Invalid traffic profiles are rejected. */
TEST(rejects_invalid_profiles)
{
	const struct traffic_profile wrong[] = {
		{.flows = 0, .packet_size = 1500},
		{.flows = 1 << 24, .packet_size = 1500}, /* more than there are addresses */
		{.flows = 1, .packet_size = 63},
		{.flows = 1, .packet_size = 9000},
		{.flows = 1, .packet_size = 1500, .mtbr = -1},
	};

	for (unsigned int i = 0; i < RTE_DIM(wrong); i++)
		assert_null(traffic_create(&wrong[i], 1));
	assert_null(traffic_create_pcap("no-such-file.pcap"));
}

static void write_capture(const char *path, const uint16_t *lengths, unsigned int n)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *file = pcap_dump_open(dead, path);
	uint8_t bytes[4096];

	assert_non_null(file);
	for (unsigned int i = 0; i < n; i++) {
		struct pcap_pkthdr header = {.caplen = lengths[i], .len = lengths[i]};

		memset(bytes, (int)i, sizeof(bytes));
		pcap_dump((u_char *)file, &header, bytes);
	}
	pcap_dump_close(file);
	pcap_close(dead);
}

/* A capture that ends within a packet is rejected. */
TEST(truncated_captures_are_rejected)
{
	const uint16_t lengths[] = {60, 1500};
	char path[] = "capture-XXXXXX";
	int file = mkstemp(path);

	assert_return_code(file, 0);
	write_capture(path, lengths, RTE_DIM(lengths));
	assert_return_code(ftruncate(file, 1000), 0);
	close(file);
	assert_null(traffic_create_pcap(path));
	unlink(path);
}

/*
 * A capture repeats in order with its original bytes, though a function changed them; packets
 * larger than a buffer are skipped.
 */
TEST(captures_repeat)
{
	const uint16_t lengths[] = {60, 3000, 1500, 200};
	const uint16_t expected[] = {60, 1500, 200};
	const uint8_t filled[] = {0, 2, 3};
	char path[] = "capture-XXXXXX";
	struct traffic *traffic;
	int file = mkstemp(path);

	assert_return_code(file, 0);
	close(file);
	write_capture(path, lengths, RTE_DIM(lengths));
	traffic = traffic_create_pcap(path);
	unlink(path);
	assert_non_null(traffic);
	for (int i = 0; i < 10; i++) {
		struct rte_mbuf *packet;
		uint8_t *bytes;

		assert_int_equal(traffic_receive(traffic, &packet, 1), 1);
		assert_int_equal(rte_pktmbuf_pkt_len(packet), expected[i % 3]);
		bytes = rte_pktmbuf_mtod(packet, uint8_t *);
		for (uint16_t at = 0; at < expected[i % 3]; at++)
			assert_int_equal(bytes[at], filled[i % 3]);
		memset(bytes, 0xee, 60);
		rte_pktmbuf_free(packet);
	}
	traffic_destroy(traffic);
}

#define FREED_AT_ONCE 250
#define FREE_ROUNDS 300

struct freeing {
	unsigned int *ready; /* both spin until it is 2, so that they begin together */
	bool first;
	struct rte_mbuf *packets[FREED_AT_ONCE];
};

/* EAL has pinned the main thread to one core, and threads inherit that. */
static void run_on_any_core(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void *free_one_by_one(void *argument)
{
	struct freeing *freeing = argument;

	if (!freeing->first)
		run_on_any_core();
	__atomic_add_fetch(freeing->ready, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(freeing->ready, __ATOMIC_ACQUIRE) < 2)
		;
	for (int i = 0; i < FREED_AT_ONCE; i++)
		rte_pktmbuf_free(freeing->packets[i]);
	return NULL;
}

/* No buffer is lost when functions on two cores free packets at the same time. */
TEST(two_cores_may_free)
{
	struct traffic *traffic = traffic_create(&default_profile, 1);
	struct freeing freeing[2];

	assert_non_null(traffic);
	for (int round = 0; round < FREE_ROUNDS; round++) {
		unsigned int ready = 0;
		pthread_t other;

		for (int i = 0; i < 2; i++) {
			freeing[i].ready = &ready;
			freeing[i].first = i == 0;
			assert_int_equal(
				traffic_receive(traffic, freeing[i].packets, FREED_AT_ONCE),
				FREED_AT_ONCE);
		}
		/* the race is rare on a busy machine, so the kind of pool is checked, too */
		assert_string_equal(
			rte_mempool_get_ops(freeing[0].packets[0]->pool->ops_index)->name,
			"ring_mp_sc");
		assert_int_equal(pthread_create(&other, NULL, free_one_by_one, &freeing[1]), 0);
		free_one_by_one(&freeing[0]);
		assert_int_equal(pthread_join(other, NULL), 0);
	}
	traffic_destroy(traffic);
}

/* Payloads that a function has changed are written again, the same ones as without changes. */
TEST(changed_payloads_are_renewed)
{
	const struct traffic_profile profile = {.flows = 10, .packet_size = 256, .mtbr = 1000};
	struct traffic *changed = traffic_create(&profile, 3), *left = traffic_create(&profile, 3);

	assert_int_equal(traffic_renew(changed), 0);
	for (unsigned int i = 0; i < 2 * TRAFFIC_PACKETS; i++) {
		struct rte_mbuf *one, *other;
		const uint32_t length = 252; /* without the frame's checksum */

		assert_int_equal(traffic_receive(changed, &one, 1), 1);
		assert_int_equal(traffic_receive(left, &other, 1), 1);
		assert_memory_equal(rte_pktmbuf_mtod(one, void *), rte_pktmbuf_mtod(other, void *),
				    length);
		memset(rte_pktmbuf_mtod(one, void *), 'x', length);
		rte_pktmbuf_free(one);
		rte_pktmbuf_free(other);
	}
	traffic_destroy(changed);
	traffic_destroy(left);
}
