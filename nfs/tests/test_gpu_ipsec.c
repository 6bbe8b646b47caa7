#include "core/random.h"
#include "tests/gpu_rig.h"

static const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1), RTE_IPV4(198, 51, 100, 1)};

/* Give a packet another ECN mark. */
static void mark(struct rte_mbuf *packet, uint8_t value)
{
	const struct packet headers = packet_parse_any(packet);
	struct rte_ipv4_hdr *ip = packet_ipv4(packet, &headers);

	ip->type_of_service = value;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = (rte_be16_t)~rte_raw_cksum(ip, rte_ipv4_hdr_len(ip));
}

/* Packets that the other end of the link has sealed, some with a changed byte or shortened. */
static void offer_sealed(struct gpu_rig *gpu, const struct nf_config *config,
			 const struct nf_setting *settings, unsigned int n_settings, int n)
{
	struct nf *far = nf_create(config, settings, n_settings);
	struct nf_out out = {.n = 0};
	uint64_t random = 5;

	assert_non_null(far);
	for (int i = 0; i < n;) {
		struct rte_mbuf *packet = hostile_packet(gpu->rig, addresses, 2, &random);
		uint16_t length;

		nf_process(far, &packet, 1, &out);
		if (out.n == 0)
			continue;
		out.n = 0;
		packet = out.packets[0];
		length = rte_pktmbuf_data_len(packet);
		mark(packet, (uint8_t)random_below(&random, 4));
		if (random_below(&random, 8) == 0)
			rte_pktmbuf_mtod(packet, uint8_t *)[random_below(&random, length)] ^= 4;
		if (random_below(&random, 16) == 0)
			rte_pktmbuf_trim(packet, random_below(&random, length));
		gpu_rig_add(gpu, packet);
		i++;
	}
	gpu_rig_run(gpu);
	nf_destroy(far);
}

/* Hostile packets, and those of the other end, have the same verdicts and bytes everywhere. */
static void offer(struct rig *rig, int is_tunnel, int reversed)
{
	const struct nf_setting settings[] = {
		{"tunnel", is_tunnel}, {"seed", 0x7fedcba9}, {"reversed", reversed}};
	const struct nf_setting far[] = {
		{"tunnel", is_tunnel}, {"seed", 3}, {"reversed", !reversed}};
	const struct nf_config config = {.name = "IPSec", .spare = rig->spare};
	struct gpu_rig *gpu = gpu_rig_make(rig, "IPSec", settings, RTE_DIM(settings));

	gpu_rig_offer_hostile(gpu, addresses, RTE_DIM(addresses), gpu_rig_count(12000) / 8);
	offer_sealed(gpu, &config, far, RTE_DIM(far), (int)gpu_rig_count(12000) / 8);
	assert_true(rig_count(rig, "encrypted") > 300);
	assert_true(rig_count(rig, "decrypted") > 500);
	assert_true(rig_count(rig, "unauthentic") > 50);
	assert_true(rig_count(rig, "foreign") > 100);
	assert_true(rig_count(rig, "malformed") > 100);
	assert_int_equal(rig_count(rig, "congested") > 50, is_tunnel);
}

RIG_TEST(transport_mode_equals_the_function_in_c)
{
	offer(rig, 0, 0);
	offer(rig, 0, 1);
}

RIG_TEST(tunnel_mode_equals_the_function_in_c)
{
	offer(rig, 1, 0);
	offer(rig, 1, 1);
}
