/* The peers of functions that encrypt: packets of one are understood by the other. */
#include "cycles/peer.h"
#include "tests/support.h"

#define PACKETS 8
#define LENGTH 700 /* of the first packet's payload; each next one has a byte more */

static struct peer *peers;

void peer_register(struct peer *peer)
{
	peer->next = peers;
	peers = peer;
}

static const struct peer *peer_of(const char *function)
{
	const struct peer *peer = peers;

	while (peer && strcmp(peer->function, function) != 0)
		peer = peer->next;
	assert_non_null(peer);
	return peer;
}

/* Packets of all lengths that padding can have. */
static void make_packets(struct rig *rig, struct rte_mbuf **packets)
{
	uint8_t payload[LENGTH + PACKETS];

	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(3 * i);
	for (uint16_t i = 0; i < PACKETS; i++)
		packets[i] = packet_from_spec(
			rig, &(struct packet_spec){.source = RTE_IPV4(10, 0, 0, 1),
						   .destination = RTE_IPV4(10, 9, 0, 1),
						   .payload = payload,
						   .payload_length = LENGTH + i});
}

/* Fail unless packets have the bytes of those that make_packets() makes. */
static void assert_originals(struct rig *rig, const struct nf_out *out)
{
	struct rte_mbuf *originals[PACKETS];

	make_packets(rig, originals);
	assert_int_equal(out->n, PACKETS);
	for (uint16_t i = 0; i < PACKETS; i++) {
		const uint16_t length = rte_pktmbuf_data_len(originals[i]);

		assert_int_equal(rte_pktmbuf_data_len(out->packets[i]), length);
		assert_memory_equal(rte_pktmbuf_mtod(out->packets[i], void *),
				    rte_pktmbuf_mtod(originals[i], void *), length);
	}
	rte_pktmbuf_free_bulk(originals, PACKETS);
}

/* A function decrypts what the peer of another one encrypts. */
static void check_encrypts(struct rig *rig, const char *function, const char *other,
			   const struct nf_setting *settings, unsigned int n_settings)
{
	const struct peer *peer = peer_of(function);
	void *state = peer->create();
	static struct nf_out out;
	struct rte_mbuf *packets[PACKETS];

	assert_non_null(state);
	rig_make(rig, other, settings, n_settings);
	make_packets(rig, packets);
	peer->process(state, packets, PACKETS, &out);
	assert_int_equal(out.n, PACKETS);
	for (uint16_t i = 0; i < PACKETS; i++) {
		assert_header_checksum(out.packets[i]);
		metadata_begin(out.packets[i], NF_INSIDE, i);
	}
	rig_offer_burst(rig, out.packets, PACKETS, 1);
	assert_originals(rig, &rig->out);
	out.n = 0;
	peer->destroy(state);
}

RIG_TEST(decrypt_understands_the_peer_of_encrypt)
{
	check_encrypts(rig, "Encrypt", "Decrypt", NULL, 0);
}

RIG_TEST(fast_encrypt_understands_its_peer)
{
	check_encrypts(rig, "FastEncrypt", "FastEncrypt", &(struct nf_setting){"decrypt", 1}, 1);
}

RIG_TEST(the_peer_of_decrypt_understands_encrypt)
{
	const struct peer *peer = peer_of("Decrypt");
	void *of_peer = peer->create();
	struct rte_mbuf *packets[PACKETS];
	static struct nf_out out;

	assert_non_null(of_peer);
	make_packets(rig, packets);
	assert_int_equal(peer->prepare(of_peer, packets, PACKETS), PACKETS);
	peer->process(of_peer, packets, PACKETS, &out);
	assert_originals(rig, &out);
	nf_out_free(&out);
	peer->destroy(of_peer);
}
