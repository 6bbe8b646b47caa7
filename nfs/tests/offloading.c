#include "tests/offloading.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accelerators/accelerator.h"
#include "core/random.h"
#include "core/rules.h"
#include "tests/hostile.h"

#define BURSTS 20

/* Created once: rules take long to compile. */
static struct accelerator *shared[ACCELERATOR_KINDS];

static int setup_as(void **state, enum nf_execution execution)
{
	struct rig *rig;

	if (setup(state) != 0)
		return -1;
	rig = *state;
	rig->execution = execution;
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		if (!shared[kind])
			shared[kind] = accelerator_create((enum accelerator_kind)kind);
		rig->accelerators[kind] = shared[kind];
	}
	return 0;
}

int setup_pipeline(void **state)
{
	return setup_as(state, NF_PIPELINE);
}

int setup_to_completion(void **state)
{
	return setup_as(state, NF_RUN_TO_COMPLETION);
}

int setup_engines_in_folder(void **state)
{
	char folder[] = "/tmp/nfs_XXXXXX";

	return mkdtemp(folder) && chdir(folder) == 0 ? setup_to_completion(state) : -1;
}

void queue_run(struct accelerator_queue *queue, struct accelerator_job *job)
{
	assert_int_equal(accelerator_submit(queue, &job, 1), 1);
	while (accelerator_collect(queue, &job, 1) == 0)
		;
}

const char *witness_of(const char *rule)
{
	unsigned int n;
	const struct rule *all = rules(&n);

	for (unsigned int i = 0; i < n; i++)
		if (strcmp(all[i].name, rule) == 0)
			return all[i].witness;
	fail_msg("there is no rule %s", rule);
	return "";
}

struct rte_mbuf *packet_with(struct rig *rig, uint16_t flow, const char *payload)
{
	return packet_from_spec(rig,
				&(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
						      .destination = RTE_IPV4(10, 0, 2, 1),
						      .source_port = flow,
						      .destination_port = 4000,
						      .payload = payload,
						      .payload_length = (uint16_t)strlen(payload)});
}

void rig_offer_unflushed(struct rig *rig, struct rte_mbuf **packets, uint16_t n)
{
	nf_out_free(&rig->out);
	nf_process(rig->nf, packets, n, &rig->out);
}

/* A packet that every function passes; its source port identifies it. */
static struct rte_mbuf *numbered(struct rig *rig, uint64_t *random, uint16_t number)
{
	static const uint8_t ipv6[60] = {
				  [12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 59};
	static const char *const texts[] = {"", "", "x", "nothing of note",
					    "qqqqqqqqqqqqqqqqqqqqq"};
	const uint32_t which = random_below(random, RTE_DIM(texts) + 2);
	struct rte_mbuf *packet;

	if (which < RTE_DIM(texts))
		packet = packet_with(rig, number % 7, texts[which]);
	else if (which == RTE_DIM(texts))
		packet = packet_of(rig, ipv6, sizeof(ipv6));
	else
		packet = packet_from_spec(rig, &(struct packet_spec){.payload_length = 1000});
	metadata_of(packet)->number = number;
	return packet;
}

static void check_order(const struct rig *rig, uint16_t *next)
{
	for (uint32_t i = 0; i < rig->out.n; i++)
		assert_int_equal(metadata_of(rig->out.packets[i])->number, (*next)++);
}

static void run_in_order(struct rig *rig, uint64_t *random)
{
	uint16_t offered = 0, next = 0;

	for (int burst = 0; burst < BURSTS; burst++) {
		struct rte_mbuf *packets[NF_BURST];
		const uint16_t n = random_below(random, NF_BURST + 1);

		for (uint16_t i = 0; i < n; i++)
			packets[i] = numbered(rig, random, offered++);
		rig_offer_unflushed(rig, packets, n);
		check_order(rig, &next);
		if (rig->execution == NF_RUN_TO_COMPLETION)
			assert_int_equal(next, offered);
	}
	nf_out_free(&rig->out);
	nf_flush(rig->nf, &rig->out);
	check_order(rig, &next);
	assert_int_equal(next, offered);
}

static void *serve(void *argument)
{
	struct server *server = argument;

	accelerator_serve_until(server->accelerator, &server->stop);
	return NULL;
}

void server_start(struct server *server)
{
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

void server_stop(struct server *server)
{
	__atomic_store_n(&server->stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(server->thread, NULL), 0);
}

/* With a thread per accelerator, as on a core of its own. */
static void run_beside_servers(struct rig *rig, uint64_t *random)
{
	struct server servers[ACCELERATOR_KINDS] = {0};

	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++) {
		servers[kind].accelerator = rig->accelerators[kind];
		if (rig->accelerators[kind])
			server_start(&servers[kind]);
	}
	run_in_order(rig, random);
	for (int kind = 0; kind < ACCELERATOR_KINDS; kind++)
		if (rig->accelerators[kind])
			server_stop(&servers[kind]);
}

void check_order_kept(struct rig *rig, const char *name)
{
	static const double queues[] = {1, 2, 8}, windows[] = {1, 5, 128};
	uint64_t random = 1;

	for (unsigned int i = 0; i < RTE_DIM(queues); i++) {
		for (unsigned int j = 0; j < RTE_DIM(windows); j++) {
			const struct nf_setting settings[] = {{"queues", queues[i]},
							      {"window", windows[j]}};

			rig_make(rig, name, settings, RTE_DIM(settings));
			run_in_order(rig, &random);
		}
	}
	run_beside_servers(rig, &random);
}

void check_survives_any_packet(struct rig *rig, const char *name)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1)};
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06}, ipv6[60] = {
		[12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 59};
	struct packet_spec packet_spec = {.payload_length = 64, .vlan = 7};

	rig_make(rig, name, NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "malformed") > 0, 1);
	assert_int_equal(rig_count(rig, "scanned"), 0);
	rig_offer(rig, packet_of(rig, arp, sizeof(arp)), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_of(rig, ipv6, sizeof(ipv6)), 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "other"), strcmp(name, "IPCompGateway") == 0 ? 2 : 1);
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig->out.n, 1);
	assert_int_equal(rig_count(rig, "scanned"), 1);
	offer_hostile(rig, addresses, RTE_DIM(addresses), NULL);
}

/* The same bytes in two segments, with room behind the first. */
static struct rte_mbuf *in_roomy_two(struct rig *rig, struct rte_mbuf *packet, uint16_t first)
{
	uint8_t bytes[2048];
	const uint16_t length = packet_bytes(packet, bytes, sizeof(bytes));
	struct rte_mbuf *head = packet_of(rig, bytes, first);

	assert_int_equal(rte_pktmbuf_chain(head, packet_of(rig, bytes + first, length - first)), 0);
	rte_pktmbuf_free(packet);
	return head;
}

void check_segments(struct rig *rig, const char *name, bool passes)
{
	const char *witness = witness_of("ssh");
	const uint16_t headers = 14 + 20 + 8;
	struct packet_spec packet_spec = {.payload = witness,
					  .payload_length = (uint16_t)strlen(witness)};

	rig_make(rig, name, NULL, 0);
	for (uint16_t first = headers; first < headers + 2; first++) { /* few or no bytes of it */
		rig_offer(rig, in_two(rig, packet_from_spec(rig, &packet_spec), first), 1);
		assert_int_equal(rig->out.n, passes);
		assert_counts(rig, {"partial", 1 + first - headers}, {"scanned", first - headers});
	}
	assert_int_equal(rig_count(rig, "matches"), 0);
	for (uint16_t first = headers; first < headers + 2; first++)
		rig_offer(rig, in_roomy_two(rig, packet_from_spec(rig, &packet_spec), first), 1);
	assert_counts(rig, {"partial", 2}, {"matches", 2});
	packet_spec.fragment = 100;
	rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	assert_int_equal(rig->out.n, passes);
	assert_counts(rig, {"fragments", 1}, {"scanned", 3});
}
