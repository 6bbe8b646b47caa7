#include "tests/esp_rig.h"

#include <stdlib.h>

#include "core/random.h"

#define LONGEST 2048

static void free_link(void *owned)
{
	struct esp_link *link = owned;

	nf_out_free(&link->out);
	nf_destroy(link->far);
	free(link);
}

struct esp_link *esp_link_make(struct rig *rig, const char *near, const char *far,
			       const struct nf_setting *settings, unsigned int n_settings)
{
	const bool ipsec = strcmp(far, "IPSec") == 0;
	struct nf_setting both[ESP_RIG_SETTINGS] = {{ipsec ? "reversed" : "decrypt", 1}};
	const unsigned int first = ipsec || strcmp(far, "FastEncrypt") == 0;
	const struct nf_config config = {.name = far, .spare = rig->spare};
	struct esp_link *link = calloc(1, sizeof(*link));

	assert_non_null(link);
	assert_true(n_settings < ESP_RIG_SETTINGS);
	if (n_settings > 0)
		memcpy(both + first, settings, n_settings * sizeof(*settings));
	link->rig = rig;
	rig_make(rig, near, settings, n_settings);
	link->far = nf_create(&config, both, first + n_settings);
	assert_non_null(link->far);
	rig_own(rig, link, free_link);
	return link;
}

struct rte_mbuf *esp_some_packet(struct rig *rig)
{
	return packet_from_spec(rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
							   .destination = RTE_IPV4(10, 9, 0, 1),
							   .payload_length = 1000});
}

struct rte_mbuf *esp_sealed(struct rig *rig, struct rte_mbuf *packet)
{
	struct rte_mbuf *sealed;

	rig_offer(rig, packet, 1);
	sealed = rig_sent(rig);
	rig->out.n = 0;
	return sealed;
}

bool esp_far_passes(struct esp_link *link, struct rte_mbuf *packet)
{
	nf_out_free(&link->out);
	nf_process(link->far, &packet, 1, &link->out);
	return link->out.n == 1;
}

/* Send a packet over the link, from its near end if it comes from inside. */
static struct rte_mbuf *carried(struct esp_link *link, struct rte_mbuf *packet)
{
	struct nf *ends[] = {link->rig->nf, link->far};
	const bool back = packet_from(packet) == NF_OUTSIDE;

	for (int i = 0; i < 2; i++) {
		struct rte_mbuf *one = i == 0 ? packet : link->out.packets[0];

		link->out.n = 0;
		nf_process(ends[back ? 1 - i : i], &one, 1, &link->out);
		assert_int_equal(link->out.n, 1);
	}
	link->out.n = 0;
	return link->out.packets[0];
}

static void check_round_trip(struct esp_link *link, const struct packet_spec *packet_spec)
{
	struct rte_mbuf *packet = packet_from_spec(link->rig, packet_spec), *after;
	uint8_t before[LONGEST], behind[LONGEST];
	const uint16_t length = packet_bytes(packet, before, LONGEST);

	after = carried(link, packet);
	assert_int_equal(packet_bytes(after, behind, LONGEST), length);
	assert_memory_equal(behind, before, length);
	assert_int_equal(packet_from(after), packet_spec->from);
	rte_pktmbuf_free(after);
}

void esp_check_round_trips(struct esp_link *link)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP,  IPPROTO_ICMP,
					    IPPROTO_ESP, IPPROTO_IPIP, IPPROTO_GRE};
	uint8_t payload[1500];
	uint64_t random = 1, n = 0;

	for (uint16_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)random_next(&random);
	for (uint16_t length = 0; length <= 1400; length += length < 40 ? 1 : 97) {
		for (unsigned int i = 0; i < 2 * RTE_DIM(protocols); i++, n++)
			check_round_trip(link, &(struct packet_spec){
						       .source = RTE_IPV4(10, 0, 0, 1),
						       .destination = RTE_IPV4(10, 9, 0, 1),
						       .protocol = protocols[i / 2],
						       .vlan = length % 3 ? 0 : 9,
						       .payload = payload,
						       .payload_length = length,
						       .from = i % 2 ? NF_OUTSIDE : NF_INSIDE});
	}
	assert_int_equal(rig_count(link->rig, "encrypted"), n / 2);
	assert_int_equal(rig_count(link->rig, "decrypted"), n / 2);
	assert_int_equal(nf_count(link->far, "encrypted"), n / 2);
	assert_int_equal(nf_count(link->far, "decrypted"), n / 2);
}

/* A copy of bytes of a packet as one from inside. */
static struct rte_mbuf *copy_of(struct rig *rig, const uint8_t *bytes, uint16_t length)
{
	struct rte_mbuf *packet = packet_of(rig, bytes, length);

	header_checksum_set(ipv4_of(packet));
	return packet;
}

void esp_check_changes_are_noticed(struct esp_link *link)
{
	struct rig *rig = link->rig;
	struct packet_spec packet_spec = {.payload_length = 50};
	struct rte_mbuf *sealed = esp_sealed(rig, packet_from_spec(rig, &packet_spec));
	const uint16_t behind_ipv4 = sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr);
	uint8_t bytes[LONGEST];
	const uint16_t length = packet_bytes(sealed, bytes, LONGEST);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + sizeof(struct rte_ether_hdr));

	for (uint16_t at = behind_ipv4; at < length; at++) {
		bytes[at] ^= 1 << at % 8;
		assert_false(esp_far_passes(link, copy_of(rig, bytes, length)));
		bytes[at] ^= 1 << at % 8;
	}
	assert_int_equal(nf_count(link->far, "foreign"), 4); /* bytes of the SPI */
	assert_int_equal(nf_count(link->far, "unauthentic"), length - behind_ipv4 - 4);
	for (uint16_t cut = 1; cut < length - behind_ipv4; cut++) {
		ip->total_length = rte_cpu_to_be_16(length - sizeof(struct rte_ether_hdr) - cut);
		assert_false(esp_far_passes(link, copy_of(rig, bytes, length - cut)));
	}
	assert_true(nf_count(link->far, "malformed") > 30);
	assert_int_equal(nf_count(link->far, "decrypted"), 0);
	assert_true(esp_far_passes(link, sealed));
}

static void is_valid(struct rte_mbuf *sent)
{
	const struct packet packet = packet_parse(sent);

	assert_true(packet_has_ipv4(&packet));
	assert_int_equal(sent->nb_segs, 1);
}

void esp_check_hostile(struct esp_link *link)
{
	const uint32_t addresses[] = {RTE_IPV4(10, 0, 0, 1)};
	struct rig *rig = link->rig;
	struct rte_mbuf *sealed[4];
	struct nf *near = rig->nf;

	offer_malformed(rig);
	assert_true(rig_count(rig, "malformed") > 14);
	offer_hostile(rig, addresses, 1, is_valid);
	assert_true(rig_count(rig, "encrypted") > 1000);
	for (unsigned int i = 0; i < RTE_DIM(sealed); i++)
		sealed[i] = esp_sealed(rig, esp_some_packet(rig));
	nf_out_free(&rig->out);
	rig->nf = link->far; /* the rig's helpers offer to its function */
	offer_malformed(rig);
	offer_hostile(rig, addresses, 1, is_valid);
	offer_mutations_of(rig, sealed, RTE_DIM(sealed), is_valid);
	nf_out_free(&rig->out);
	rig->nf = near;
	assert_true(nf_count(link->far, "decrypted") > 100);
}

void esp_check_replays(struct rig *rig, const char *near, const char *far)
{
	for (int window = 0; window <= 64; window += 32) {
		const struct nf_setting settings[] = {{"replay_window", window}};
		struct esp_link *link = esp_link_make(rig, near, far, settings, 1);
		struct rte_mbuf *sealed[100], *copy;

		for (int i = 0; i < 100; i++)
			sealed[i] = esp_sealed(rig, esp_some_packet(rig));
		copy = rte_pktmbuf_copy(sealed[99], rig->pool, 0, UINT32_MAX);
		metadata_inherit(copy, sealed[99]);
		assert_true(esp_far_passes(link, sealed[99]));
		assert_int_equal(esp_far_passes(link, copy), window == 0);
		for (int i = 98; i >= 0; i--) /* late ones pass, within the window */
			assert_int_equal(esp_far_passes(link, sealed[i]),
					 window == 0 || 99 - i < window);
		assert_int_equal(nf_count(link->far, "replayed"),
				 window == 0 ? 0 : 1 + 100 - window);
	}
}

void esp_check_unchanged(struct rig *rig)
{
	struct rte_mbuf *packet = esp_some_packet(rig);
	uint8_t before[LONGEST], after[LONGEST];
	const uint16_t length = packet_bytes(packet, before, sizeof(before));

	rte_mbuf_refcnt_update(packet, 1);
	rig_offer(rig, packet, 1);
	assert_int_equal(packet_bytes(packet, after, sizeof(after)), length);
	assert_memory_equal(after, before, length);
	rte_pktmbuf_free(packet);
}

void esp_check_refused(struct rig *rig, const char *name, const struct nf_setting *wrong,
		       unsigned int n)
{
	const struct nf_config config = {.name = name, .spare = rig->spare};

	for (unsigned int i = 0; i < n; i++)
		assert_null(nf_create(&config, &wrong[i], 1));
}
