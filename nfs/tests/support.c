#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "tests/poison.h"

int setup(void **state)
{
	static unsigned int n_created;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	snprintf(name, sizeof(name), "packets_%u", n_created);
	rig->pool = rte_pktmbuf_pool_create(name, RIG_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					    SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "spare_%u", n_created++);
	rig->spare = rte_pktmbuf_pool_create(name, RIG_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					     SOCKET_ID_ANY);
	assert_non_null(rig->pool);
	assert_non_null(rig->spare);
	*state = rig;
	return 0;
}

int teardown(void **state)
{
	struct rig *rig = *state;

	nf_out_free(&rig->out);
	if (rig->nf) {
		nf_flush(rig->nf, &rig->out);
		nf_out_free(&rig->out);
	}
	nf_destroy(rig->nf);
	assert_int_equal(rte_mempool_in_use_count(rig->pool), 0);
	assert_int_equal(rte_mempool_in_use_count(rig->spare), 0);
	rte_mempool_free(rig->pool);
	rte_mempool_free(rig->spare);
	free(rig);
	return 0;
}

struct nf *rig_make(struct rig *rig, const char *name, const struct nf_setting *settings,
		    unsigned int n_settings)
{
	struct nf_config config = {.name = name, .spare = rig->spare, .execution = rig->execution};

	memcpy(config.accelerators, rig->accelerators, sizeof(config.accelerators));
	nf_destroy(rig->nf);
	rig->nf = nf_create(&config, settings, n_settings);
	assert_non_null(rig->nf);
	return rig->nf;
}

uint64_t rig_count(const struct rig *rig, const char *counter)
{
	const struct nf_kind *kind = rig->nf->kind;

	for (unsigned int i = 0; i < kind->n_counters; i++)
		if (strcmp(kind->counters[i].name, counter) == 0)
			return rig->nf->counters[i];
	fail_msg("%s has no counter %s", kind->name, counter);
	return 0;
}

#define MOST_BUFFERS 1024

void rig_process(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	struct buffer {
		void *bytes;
		uint16_t length;
	} buffers[MOST_BUFFERS];
	unsigned int poisoned = 0;

	nf_out_free(&rig->out);
	rig->nf->now_us = now_us;
	for (uint16_t i = 0; i < n; i++) {
		packet_poison(packets[i]);
		/* noted here, because a function may free them; a whole pool takes long to walk */
		for (struct rte_mbuf *at = packets[i]; at; at = at->next) {
			assert_true(poisoned < MOST_BUFFERS);
			buffers[poisoned++] = (struct buffer){at->buf_addr, at->buf_len};
		}
	}
	nf_process(rig->nf, packets, n, &rig->out);
	for (unsigned int i = 0; i < poisoned; i++)
		ASAN_UNPOISON_MEMORY_REGION(buffers[i].bytes, buffers[i].length);
}

void rig_offer_burst(struct rig *rig, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	rig_process(rig, packets, n, now_us);
	nf_flush(rig->nf, &rig->out);
}

void rig_offer(struct rig *rig, struct rte_mbuf *packet, uint64_t now_us)
{
	rig_offer_burst(rig, &packet, 1, now_us);
}

struct rte_mbuf *rig_sent(const struct rig *rig)
{
	assert_int_equal(rig->out.n, 1);
	return rig->out.packets[0];
}

/* A valid TCP packet of 40 bytes behind Ethernet with one invalid part. */
static struct rte_mbuf *malformed_packet(struct rig *rig, int part)
{
	struct rte_mbuf *packet =
		packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
							    .destination = RTE_IPV4(10, 0, 0, 2),
							    .protocol = IPPROTO_TCP,
							    .source_port = 1,
							    .destination_port = 2});
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr *, 14);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(ip + 1);

	switch (part) {
	case 0: /* invalid version */
		ip->version_ihl = 0x35;
		break;
	case 1: /* header length below the minimum */
		ip->version_ihl = 0x44;
		break;
	case 2: /* missing options */
		ip->version_ihl = 0x4f;
		rte_pktmbuf_trim(packet, 10);
		break;
	case 3: /* total length above the packet's */
		ip->total_length = RTE_BE16(1500);
		break;
	case 4: /* total length below the header's */
		ip->total_length = RTE_BE16(19);
		break;
	case 5: /* TCP header length below the minimum */
		tcp->data_off = 4 << 4;
		break;
	case 6: /* missing TCP options */
		tcp->data_off = 15 << 4;
		break;
	default:
		rte_pktmbuf_free(packet);
		return NULL;
	}
	return packet;
}

void offer_malformed(struct rig *rig)
{
	static const uint8_t zeros[64];
	struct rte_mbuf *packet;

	for (uint16_t length = 0; length < 14; length++)
		rig_offer(rig, packet_of(rig, zeros, length), 1);
	for (int part = 0; (packet = malformed_packet(rig, part)) != NULL; part++)
		rig_offer(rig, packet, 1);
	for (uint16_t shorter = 1; shorter <= 40;
	     shorter++) { /* truncated at every byte behind Ethernet */
		packet = packet_from_spec(rig, &(struct packet_spec){.protocol = IPPROTO_TCP});
		assert_return_code(rte_pktmbuf_trim(packet, shorter), 0);
		rig_offer(rig, packet, 1);
	}
}

int test_main(const char *name, const struct CMUnitTest *tests, size_t n)
{
	char *eal[] = {(char *)(uintptr_t)name,
		       "-l",
		       "0",
		       "--no-pci",
		       "--no-huge",
		       "-m",
		       "512",
		       "--no-telemetry",
		       "--no-shconf",
		       "--log-level",
		       "lib.eal:error"};
	int failed;

	if (rte_eal_init(RTE_DIM(eal), eal) < 0) {
		fprintf(stderr, "%s: cannot start EAL: %s\n", name, rte_strerror(rte_errno));
		return EXIT_FAILURE;
	}
	failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
	rte_eal_cleanup();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
