/*
 * IPSec: packets from inside leave as ESP by AES-128-CTR (RFC 3686) and HMAC-SHA1-96 (RFC 2404), in
 * tunnel or transport mode (RFC 4303); those from outside are decrypted. The other end of the link
 * is another IPSec with `reversed` set.
 *
 * Every packet that arrives takes a number, whether it is encrypted or not; sequence numbers are
 * these, with gaps: so a batch on a GPU has its numbers before its packets are read.
 *
 * In a tunnel, a packet that must not be fragmented and is too long for the path, as ICMP errors say,
 * is freed and reported to its sender.
 *
 * Not implemented: a window against replays, IPv6, fragments in transport mode and of ESP (freed,
 * counted), key exchange, extended sequence numbers, fragmentation, the inner time to live (routers
 * decrement it).
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "core/icmp_report.h"
#include "core/ipv4.h"
#include "core/memory.h"
#include "functions/esp/gateway.h"
#include "functions/esp/packet.h"
#include "functions/ipsec/path_mtu.h"

/* Tunnel mode of ESP (RFC 4303, section 3.1.2): a whole IPv4 packet behind an outer header. */

#define OUTER sizeof(struct rte_ipv4_hdr)

/* The outer header of a packet of `total` bytes (RFC 4301, section 5.1.2.1; RFC 6040). */
static struct rte_ipv4_hdr outer_of(const struct rte_ipv4_hdr *inner, enum nf_side from,
				    const struct ipsec_settings *settings, uint32_t total,
				    uint32_t sequence)
{
	const rte_be16_t unfragmented = inner->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	struct rte_ipv4_hdr outer = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = inner->type_of_service,
		.total_length = rte_cpu_to_be_16((uint16_t)total),
		.packet_id = unfragmented ? 0 : rte_cpu_to_be_16((uint16_t)sequence),
		.fragment_offset = unfragmented,
		.time_to_live = IPSEC_TTL,
		.next_proto_id = IPPROTO_ESP,
		.src_addr = rte_cpu_to_be_32(settings->ends[from]),
		.dst_addr = rte_cpu_to_be_32(settings->ends[!from]),
	};

	outer.hdr_checksum = rte_ipv4_cksum(&outer);
	return outer;
}

/* Write the padding and the tail behind `content` bytes. */
static void pad(uint8_t *padding, uint32_t length, uint32_t content)
{
	const uint8_t padded = (uint8_t)(length - content - sizeof(struct rte_esp_tail));

	for (uint8_t i = 0; i < padded; i++)
		padding[i] = i + 1;
	padding[padded] = padded;
	padding[padded + 1] = IPPROTO_IPIP;
}

/* A buffer of `length` bytes; see tunnel_wrap(). */
static struct rte_mbuf *begin(struct rte_mempool *pool, uint32_t length, bool *too_long)
{
	struct rte_mbuf *made = pool ? rte_pktmbuf_alloc(pool) : NULL;

	*too_long = made && length > rte_pktmbuf_tailroom(made);
	if (*too_long) {
		rte_pktmbuf_free(made);
		return NULL;
	}
	if (made)
		rte_pktmbuf_append(made, (uint16_t)length);
	return made;
}

/*
 * A copy of a packet in a tunnel, as esp_wrap() makes it: not encrypted yet, without vector and
 * sequence number. NULL without a buffer or if it does not fit one, which sets `*too_long`.
 */
static struct rte_mbuf *tunnel_wrap(struct rte_mempool *pool, struct rte_mbuf *mbuf,
				    const struct packet *packet,
				    const struct ipsec_settings *settings, uint32_t sequence,
				    struct esp_parts *parts, bool *too_long)
{
	const struct rte_ipv4_hdr *inner = packet_ipv4(mbuf, packet);
	const uint32_t content = rte_be_to_cpu_16(inner->total_length);
	const uint32_t length = RTE_ALIGN_CEIL(content + sizeof(struct rte_esp_tail), 4);
	const uint16_t l3 = packet->l3, esp = l3 + OUTER;
	const uint16_t text = esp + sizeof(struct rte_esp_hdr) + IPSEC_IV;
	struct rte_mbuf *made = begin(pool, text + length + IPSEC_ICV, too_long);
	struct rte_ipv4_hdr outer;
	uint8_t *bytes;

	if (!made)
		return NULL;
	metadata_inherit(made, mbuf);
	bytes = rte_pktmbuf_mtod(made, uint8_t *);
	outer = outer_of(inner, packet_from(mbuf), settings, rte_pktmbuf_data_len(made) - l3,
			 sequence);
	*parts = (struct esp_parts){.esp = esp, .text = text, .length = (uint16_t)length};
	packet_copy(mbuf, 0, l3, bytes);
	memcpy(bytes + l3, &outer, sizeof(outer));
	esp_header(made, parts)->spi = rte_cpu_to_be_32(settings->spi + packet_from(mbuf));
	packet_copy(mbuf, l3, content, bytes + text);
	pad(bytes + text + content, length, content);
	return made;
}

/* What became of a decrypted packet in a tunnel. */
enum tunnelled { TUNNELLED_WHOLE, TUNNELLED_GARBLED, TUNNELLED_CONGESTED };

/* Take the outer header off a decrypted packet, but its ECN mark. */
static enum tunnelled tunnel_unwrap(struct rte_mbuf *mbuf, uint16_t l3)
{
	struct rte_ipv4_hdr *outer = rte_pktmbuf_mtod_offset(mbuf, struct rte_ipv4_hdr *, l3);
	const uint8_t marks = outer->type_of_service;
	const uint16_t header = rte_ipv4_hdr_len(outer);
	uint8_t *start = rte_pktmbuf_mtod(mbuf, uint8_t *);
	struct packet inner;

	if (outer->next_proto_id != IPPROTO_IPIP)
		return TUNNELLED_GARBLED;
	memmove(start + header, start, l3);
	rte_pktmbuf_adj(mbuf, header);
	inner = packet_parse_any(mbuf);
	if (!packet_has_ipv4(&inner))
		return TUNNELLED_GARBLED;
	if (!ipv4_join_mark(packet_ipv4(mbuf, &inner), marks))
		return TUNNELLED_CONGESTED;
	rte_pktmbuf_trim(mbuf, rte_pktmbuf_data_len(mbuf) - l3 -
				       rte_be_to_cpu_16(packet_ipv4(mbuf, &inner)->total_length));
	return TUNNELLED_WHOLE;
}

enum { KEY, NONCE, HMAC_KEY, SPI, SEED, TUNNEL, LOCAL, REMOTE, REVERSED, PATH_MTU, ERRORS };
static const struct nf_parameter parameters[] = {
	[KEY] = {"key", "key of AES, 32 hexadecimal digits",
		 .text = "000102030405060708090a0b0c0d0e0f"},
	[NONCE] = {"nonce", "first bytes of counter blocks, 8 hexadecimal digits",
		   .text = "00000030"},
	[HMAC_KEY] = {"hmac_key", "key of HMAC, 40 hexadecimal digits",
		      .text = "202122232425262728292a2b2c2d2e2f30313233"},
	[SPI] = {"spi", "SPI of packets to outside; of those to inside: one more", 256, 4294967294,
		 256},
	[SEED] = {"seed",
		  "upper bits of initialization vectors; links with the same key need different "
		  "ones",
		  0, 2147483647, 1},
	[TUNNEL] = {"tunnel", "1: tunnel mode; 0: transport mode", 0, 1, 1},
	[LOCAL] = {"local", "outer address inside, as a number; 192.0.2.1", 0, 4294967295,
		   RTE_IPV4(192, 0, 2, 1)},
	[REMOTE] = {"remote", "outer address outside, as a number; 198.51.100.1", 0, 4294967295,
		    RTE_IPV4(198, 51, 100, 1)},
	[REVERSED] = {"reversed", "1: the other end, which encrypts what comes from outside", 0, 1,
		      0},
	[PATH_MTU] = {"path_mtu", "1: a tunnel learns the MTU of its path", 0, 1, 1},
	ICMP_REPORT_PARAMETERS(ERRORS),
	NF_OTHER_PARAMETERS(ERRORS + 2, "drop", "drop"),
};

enum {
	ENCRYPTED,
	DECRYPTED,
	UNAUTHENTIC,
	GARBLED,
	FOREIGN,
	DUMMIES,
	CONGESTED,
	FRAGMENTS,
	EXHAUSTED,
	TOO_LONG,
	NO_BUFFER,
	FAILED,
	OTHER, /* NF_OTHER_COUNTERS from here */
	MALFORMED = OTHER + 2,
	LEARNT,
	TOO_BIG,
	ERRORS_SENT, /* ICMP_REPORT_COUNTERS from here */
};
static const struct nf_counter counters[] = {
	[ENCRYPTED] = {"encrypted", "packets encrypted"},
	[DECRYPTED] = {"decrypted", "packets decrypted"},
	[UNAUTHENTIC] = {"unauthentic", "packets with a wrong integrity check value, freed"},
	[GARBLED] = {"garbled", "decrypted packets with wrong padding or content, freed"},
	[FOREIGN] = {"foreign", "packets to decrypt that are not ESP of this link, freed"},
	[DUMMIES] = {"dummies", "dummy packets, freed (RFC 4303, section 2.6)"},
	[CONGESTED] = {"congested",
		       "packets marked as congested in the tunnel whose sender lacks ECN, freed"},
	[FRAGMENTS] = {"fragments", "fragments in transport mode or of ESP, freed"},
	[EXHAUSTED] = {"exhausted", "packets beyond the last sequence number, freed"},
	[TOO_LONG] = {"too_long", "packets that do not fit a buffer, freed"},
	[NO_BUFFER] = {"no_buffer", "packets freed without a buffer"},
	[FAILED] = {"failed", "packets that OpenSSL cannot handle, freed"},
	NF_OTHER_COUNTERS(OTHER),
	[LEARNT] = {"learnt", "ICMP errors that packets of the tunnel are too big, freed"},
	[TOO_BIG] = {"too_big", "packets too long for the path that must not be fragmented, freed"},
	ICMP_REPORT_COUNTERS(ERRORS_SENT),
};

static const struct esp_format format = {.iv = IPSEC_IV, .icv = IPSEC_ICV, .block = 4};

struct ipsec {
	struct ipsec_settings settings;
	struct ipsec_cipher *cipher;
	uint64_t arrived; /* packets, which their numbers follow */
	struct path_mtu path;
	struct icmp_reporter reporter;
};

bool ipsec_settings_of(const struct nf *nf, struct ipsec_settings *settings)
{
	*settings = (struct ipsec_settings){
		.spi = (uint32_t)nf->settings[SPI],
		/* of 31 bits */
		.seed = (uint32_t)nf->settings[SEED] ^ (uint32_t)(nf->first >> 33),
		.tunnel = nf->settings[TUNNEL] == 1,
		.ends = {(uint32_t)nf->settings[LOCAL], (uint32_t)nf->settings[REMOTE]},
		.encrypted = nf->settings[REVERSED] == 1 ? NF_OUTSIDE : NF_INSIDE,
	};
	return esp_read_hex(nf, KEY, settings->keys.cipher, sizeof(settings->keys.cipher)) == 0 &&
	       esp_read_hex(nf, NONCE, settings->keys.nonce, sizeof(settings->keys.nonce)) == 0 &&
	       esp_read_hex(nf, HMAC_KEY, settings->keys.hmac, sizeof(settings->keys.hmac)) == 0;
}

static int create(struct nf *nf)
{
	struct ipsec *ipsec = nf->state;

	if (ipsec_settings_of(nf, &ipsec->settings))
		ipsec->cipher = ipsec_cipher_create(nf->kind->name, &ipsec->settings.keys);
	if (!ipsec->cipher)
		return -EINVAL;
	ipsec->reporter =
		icmp_reporter_for(rte_cpu_to_be_32(ipsec->settings.ends[ipsec->settings.encrypted]),
				  nf->spare, &nf->settings[ERRORS]);
	return 0;
}

static void destroy(struct nf *nf)
{
	struct ipsec *ipsec = nf->state;

	ipsec_cipher_destroy(ipsec->cipher);
}

/* Fill in sequence number, vector, ciphertext and integrity check value. */
static bool seal(struct ipsec *ipsec, struct rte_mbuf *made, const struct esp_parts *parts,
		 uint32_t sequence)
{
	const rte_be64_t iv =
		rte_cpu_to_be_64(ipsec_iv(&ipsec->settings, ipsec->settings.encrypted, sequence));
	uint8_t *bytes = rte_pktmbuf_mtod(made, uint8_t *);

	esp_header(made, parts)->seq = rte_cpu_to_be_32(sequence);
	memcpy(bytes + parts->text - IPSEC_IV, &iv, sizeof(iv));
	return ipsec_crypt(ipsec->cipher, (const uint8_t *)&iv, bytes + parts->text,
			   parts->length) &&
	       ipsec_authenticate(ipsec->cipher, bytes + parts->esp,
				  parts->text + parts->length - parts->esp,
				  bytes + parts->text + parts->length);
}

/* Whether a packet that must not be fragmented is too long for the path of the tunnel. */
static bool is_too_big(const struct ipsec *ipsec, const struct rte_ipv4_hdr *ip, uint64_t now_us)
{
	return rte_be_to_cpu_16(ip->total_length) > path_mtu_inner(&ipsec->path, now_us) &&
	       ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
}

/* Let routers fragment a packet in a tunnel. */
static void let_fragment(struct rte_mbuf *made, uint16_t l3, uint32_t sequence)
{
	struct rte_ipv4_hdr *outer = rte_pktmbuf_mtod_offset(made, struct rte_ipv4_hdr *, l3);

	outer->fragment_offset = 0;
	outer->packet_id = rte_cpu_to_be_16((uint16_t)sequence);
	outer->hdr_checksum = 0;
	outer->hdr_checksum = rte_ipv4_cksum(outer);
}

/* Encrypt a packet into `*made`; returns its counter. */
static int encrypt(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		   uint64_t number, struct rte_mbuf **made)
{
	struct ipsec *ipsec = nf->state;
	const struct ipsec_settings *settings = &ipsec->settings;
	const uint32_t sequence = (uint32_t)number + 1;
	struct esp_parts parts;
	bool too_long;

	if (unlikely(packet->fragment && !settings->tunnel))
		return FRAGMENTS;
	if (unlikely(number >= UINT32_MAX))
		return EXHAUSTED;
	if (unlikely(settings->tunnel && is_too_big(ipsec, packet_ipv4(mbuf, packet), nf->now_us)))
		return TOO_BIG;
	if (settings->tunnel)
		*made = tunnel_wrap(nf->spare, mbuf, packet, settings, sequence, &parts, &too_long);
	else
		*made = esp_wrap(nf->spare, mbuf, packet, &format,
				 settings->spi + settings->encrypted, &parts, &too_long);
	if (!*made)
		return too_long ? TOO_LONG : NO_BUFFER;
	if (settings->tunnel && path_mtu_fragments(&ipsec->path, nf->now_us))
		let_fragment(*made, packet->l3, sequence);
	return seal(ipsec, *made, &parts, sequence) ? ENCRYPTED : FAILED;
}

static int unwrap(const struct ipsec *ipsec, struct rte_mbuf *made, uint16_t l3,
		  const struct esp_parts *parts)
{
	switch (esp_unwrap(made, l3, &format, parts)) {
	case ESP_DUMMY:
		return DUMMIES;
	case ESP_GARBLED:
		return GARBLED;
	case ESP_CONTENT:
		break;
	}
	if (!ipsec->settings.tunnel)
		return DECRYPTED;
	switch (tunnel_unwrap(made, l3)) {
	case TUNNELLED_GARBLED:
		return GARBLED;
	case TUNNELLED_CONGESTED:
		return CONGESTED;
	case TUNNELLED_WHOLE:
		break;
	}
	return DECRYPTED;
}

/* Decrypt a packet into `*made`; returns its counter. */
static int decrypt(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		   struct rte_mbuf **made)
{
	struct ipsec *ipsec = nf->state;
	const uint32_t spi = ipsec->settings.spi + !ipsec->settings.encrypted;
	struct esp_parts parts;
	uint8_t icv[IPSEC_ICV], *bytes;
	uint32_t sequence;
	bool too_long;

	if (unlikely(packet->fragment))
		return FRAGMENTS;
	switch (esp_find(mbuf, packet, &format, spi, &sequence, &parts)) {
	case ESP_FOREIGN:
		return FOREIGN;
	case ESP_MALFORMED:
		return MALFORMED;
	case ESP_OURS:
		break;
	}
	*made = esp_copy(nf->spare, mbuf, packet, &too_long);
	if (!*made)
		return too_long ? TOO_LONG : NO_BUFFER;
	bytes = rte_pktmbuf_mtod(*made, uint8_t *);
	if (!ipsec_authenticate(ipsec->cipher, bytes + parts.esp,
				parts.text + parts.length - parts.esp, icv))
		return FAILED;
	if (CRYPTO_memcmp(icv, bytes + parts.text + parts.length, sizeof(icv)) != 0)
		return UNAUTHENTIC;
	if (!ipsec_crypt(ipsec->cipher, bytes + parts.text - IPSEC_IV, bytes + parts.text,
			 parts.length))
		return FAILED;
	return unwrap(ipsec, *made, packet->l3, &parts);
}

/* The counter of a packet, and in `*made` what is sent in its place if it is sent. */
static int take(struct nf *nf, struct rte_mbuf *mbuf, struct rte_mbuf **made)
{
	struct ipsec *ipsec = nf->state;
	const struct packet packet = packet_headers(mbuf);
	const uint64_t number = ipsec->arrived++;

	if (unlikely(!packet_has_ipv4(&packet)))
		return OTHER;
	if (packet_from(mbuf) == ipsec->settings.encrypted)
		return encrypt(nf, mbuf, &packet, number, made);
	if (unlikely(ipsec->settings.tunnel && nf->settings[PATH_MTU] == 1 &&
		     path_mtu_learn(&ipsec->path, mbuf, &packet, &ipsec->settings, ipsec->arrived,
				    nf->now_us)))
		return LEARNT;
	return decrypt(nf, mbuf, &packet, made);
}

/* Send an error with what the tunnel takes to the sender of a packet. */
static void report_too_big(struct nf *nf, struct rte_mbuf *mbuf, struct nf_out *out)
{
	struct ipsec *ipsec = nf->state;
	const struct packet packet = packet_headers(mbuf);

	icmp_report_problem(&ipsec->reporter, mbuf, &packet, ICMP_FRAGMENTATION_NEEDED,
			    path_mtu_inner(&ipsec->path, nf->now_us), nf->now_us,
			    &nf->counters[ERRORS_SENT], out);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct ipsec *ipsec = nf->state;

	path_mtu_begin(&ipsec->path, ipsec->arrived, nf->now_us);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *made = NULL;
		const int counter = take(nf, packets[i], &made);

		if (unlikely(counter == OTHER)) {
			nf_other(nf, packets[i], packet_headers(packets[i]).type, OTHER, out);
			packets[i] = NULL;
			continue;
		}
		nf->counters[counter]++;
		if (counter == ENCRYPTED || counter == DECRYPTED)
			nf_send(out, made);
		else
			rte_pktmbuf_free(made);
		if (unlikely(counter == TOO_BIG))
			report_too_big(nf, packets[i], out);
	}
	rte_pktmbuf_free_bulk(packets, n);
}

NF_KIND("IPSec",
	"encrypts what goes outside (ESP, AES-128-CTR, HMAC-SHA1-96), decrypts what comes back",
	.alters = true, .state_bytes = sizeof(struct ipsec), .create = create, .process = process,
	.destroy = destroy)
