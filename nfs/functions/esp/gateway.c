#include "functions/esp/gateway.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "functions/esp/association.h"
#include "functions/esp/packet.h"

#define AES_BLOCK 16
#define SALT 4

struct gateway {
	struct crypto *crypto;
	struct esp_format format;
	bool cbc;
	enum nf_side encrypted; /* packets that come from here are encrypted */
	uint8_t salt[SALT];
	uint32_t window;
	struct association associations[2]; /* by the side from which packets come */
};

/* A packet whose encryption or decryption was requested. */
struct task {
	struct crypto_job *job;
	struct esp_parts parts;
	uint16_t l3;
	uint32_t sequence;
};

struct burst {
	uint16_t n;
	struct task tasks[NF_BURST];
	struct crypto_job jobs[NF_BURST];
};

int esp_read_hex(const struct nf *nf, unsigned int parameter, uint8_t *bytes, size_t length)
{
	const char *text = nf->texts[parameter];
	size_t digits = 0;

	while (isxdigit((unsigned char)text[digits]))
		digits++;
	if (digits != 2 * length || text[digits] != '\0') {
		fprintf(stderr, "%s: %s must be %zu hexadecimal digits\n", nf->kind->name,
			nf->kind->parameters[parameter].name, 2 * length);
		return -EINVAL;
	}
	for (size_t i = 0; i < length; i++)
		sscanf(text + 2 * i, "%2hhx", &bytes[i]);
	return 0;
}

static struct esp_format format_of(enum crypto_algorithm algorithm, bool in_udp)
{
	const bool cbc = algorithm != CRYPTO_CHACHA20_POLY1305;

	return (struct esp_format){
		.iv = cbc ? AES_BLOCK : sizeof(rte_be64_t),
		.icv = algorithm == CRYPTO_AES_CBC ? 0 : CRYPTO_ICV,
		.block = cbc ? AES_BLOCK : 4,
		.in_udp = in_udp,
	};
}

int esp_create(struct nf *nf, const struct crypto_keys *keys, const uint8_t salt[SALT],
	       bool reversed)
{
	const uint32_t spi = (uint32_t)nf->settings[ESP_SPI];
	const uint32_t seed = (uint32_t)nf->settings[ESP_SEED];
	struct gateway *gateway = nf_zalloc_for(nf->kind->name, sizeof(*gateway));

	if (!gateway)
		return -ENOMEM;
	gateway->crypto = crypto_create(nf->kind->name, nf->texts[ESP_DRIVER], keys);
	if (!gateway->crypto) {
		nf_free(gateway);
		return -ENODEV;
	}
	gateway->cbc = keys->algorithm != CRYPTO_CHACHA20_POLY1305;
	gateway->format = format_of(keys->algorithm, nf->settings[ESP_IN_UDP] == 1);
	gateway->encrypted = reversed ? NF_OUTSIDE : NF_INSIDE;
	memcpy(gateway->salt, salt, SALT);
	gateway->window = (uint32_t)nf->settings[ESP_REPLAY_WINDOW];
	gateway->associations[NF_INSIDE] = association_of(spi, seed, nf->first, false);
	gateway->associations[NF_OUTSIDE] = association_of(spi, seed, nf->first, true);
	nf->state = gateway;
	return 0;
}

void esp_destroy(struct nf *nf)
{
	struct gateway *gateway = nf->state;

	crypto_destroy(gateway->crypto);
	nf_free(gateway);
}

/*
 * Set the initialization vector of a packet to encrypt. In CBC it is the block before the text,
 * encrypted with it.
 */
static void set_iv_to_send(struct gateway *gateway, struct association *association,
			   struct crypto_job *job)
{
	uint8_t *iv;

	iv = rte_pktmbuf_mtod_offset(job->packet, uint8_t *, job->text - gateway->format.iv);
	if (gateway->cbc) {
		association_next_block(association, iv);
		memset(job->iv, 0, AES_BLOCK);
		job->text -= AES_BLOCK;
		job->length += AES_BLOCK;
	} else {
		const rte_be64_t count = association_next_count(association);

		memcpy(iv, &count, sizeof(count));
		memcpy(job->iv, gateway->salt, SALT);
		memcpy(job->iv + SALT, &count, sizeof(count));
	}
}

static void set_received_iv(const struct gateway *gateway, struct crypto_job *job)
{
	const uint8_t *iv = rte_pktmbuf_mtod_offset(job->packet, const uint8_t *,
						    job->text - gateway->format.iv);

	if (!gateway->cbc)
		memcpy(job->iv, gateway->salt, SALT);
	memcpy(job->iv + (gateway->cbc ? 0 : SALT), iv, gateway->format.iv);
}

static struct task *add_task(struct burst *burst, struct rte_mbuf *made, uint16_t l3,
			     const struct esp_parts *parts, bool encrypts)
{
	struct task *task = &burst->tasks[burst->n];

	task->job = &burst->jobs[burst->n++];
	task->parts = *parts;
	task->l3 = l3;
	*task->job = (struct crypto_job){
		.packet = made,
		.header = parts->esp,
		.text = parts->text,
		.length = parts->length,
		.encrypts = encrypts,
	};
	return task;
}

/* Request the encryption of a packet; returns the counter of why not. */
static int encrypt(struct nf *nf, struct burst *burst, struct rte_mbuf *mbuf,
		   const struct packet *packet)
{
	struct gateway *gateway = nf->state;
	struct association *association = &gateway->associations[packet_from(mbuf)];
	struct esp_parts parts;
	struct rte_mbuf *made;
	uint32_t sequence;
	bool too_long;

	made = esp_wrap(nf->spare, mbuf, packet, &gateway->format, association->spi, &parts,
			&too_long);
	if (!made)
		return too_long ? ESP_TOO_LONG : ESP_NO_BUFFER;
	if (!association_next_number(association, gateway->window, &sequence)) {
		rte_pktmbuf_free(made);
		return ESP_EXHAUSTED;
	}
	esp_header(made, &parts)->seq = rte_cpu_to_be_32(sequence);
	set_iv_to_send(gateway, association, add_task(burst, made, packet->l3, &parts, true)->job);
	return ESP_ENCRYPTED;
}

/* Request the decryption of a packet; returns the counter of why not. */
static int decrypt(struct nf *nf, struct burst *burst, struct rte_mbuf *mbuf,
		   const struct packet *packet)
{
	struct gateway *gateway = nf->state;
	struct association *association = &gateway->associations[packet_from(mbuf)];
	struct esp_parts parts;
	struct rte_mbuf *made;
	struct task *task;
	uint32_t sequence;
	bool too_long;

	switch (esp_find(mbuf, packet, &gateway->format, association->spi, &sequence, &parts)) {
	case ESP_FOREIGN:
		return ESP_FOREIGN_PACKETS;
	case ESP_MALFORMED:
		return ESP_MALFORMED_PACKETS;
	case ESP_OURS:
		break;
	}
	if (!association_is_new(association, sequence, gateway->window))
		return ESP_REPLAYED;
	made = esp_copy(nf->spare, mbuf, packet, &too_long);
	if (!made)
		return too_long ? ESP_TOO_LONG : ESP_NO_BUFFER;
	task = add_task(burst, made, packet->l3, &parts, false);
	task->sequence = sequence;
	set_received_iv(gateway, task->job);
	return ESP_DECRYPTED;
}

/* Remove ESP from a packet whose decryption is complete; returns its counter. */
static int opened(struct gateway *gateway, const struct task *task)
{
	struct rte_mbuf *mbuf = task->job->packet;
	struct association *association = &gateway->associations[packet_from(mbuf)];

	if (!task->job->succeeded)
		return ESP_UNAUTHENTIC;
	/* again: its copy may be in the same burst */
	if (!association_is_new(association, task->sequence, gateway->window))
		return ESP_REPLAYED;
	association_note(association, task->sequence);
	switch (esp_unwrap(mbuf, task->l3, &gateway->format, &task->parts)) {
	case ESP_DUMMY:
		return ESP_DUMMIES;
	case ESP_GARBLED:
		return ESP_GARBLED_PACKETS;
	case ESP_CONTENT:
		break;
	}
	return ESP_DECRYPTED;
}

static void finish(struct nf *nf, const struct task *task, struct nf_out *out)
{
	const int counter = task->job->encrypts ? ESP_ENCRYPTED : opened(nf->state, task);

	nf->counters[counter]++;
	if (counter == ESP_ENCRYPTED || counter == ESP_DECRYPTED)
		nf_send(out, task->job->packet);
	else
		rte_pktmbuf_free(task->job->packet);
}

/* Request what is to be done with a packet; returns the counter of why nothing. */
static int request(struct nf *nf, struct burst *burst, struct rte_mbuf *mbuf)
{
	const struct gateway *gateway = nf->state;
	const struct packet packet = packet_headers(mbuf);

	if (unlikely(!packet_has_ipv4(&packet)))
		return ESP_OTHER; /* or malformed, by nf_other() */
	if (unlikely(packet.fragment))
		return ESP_FRAGMENTS;
	return packet_from(mbuf) == gateway->encrypted ? encrypt(nf, burst, mbuf, &packet)
						       : decrypt(nf, burst, mbuf, &packet);
}

void esp_process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct gateway *gateway = nf->state;
	struct burst burst;

	burst.n = 0;
	for (uint16_t i = 0; i < n; i++) {
		const int counter = request(nf, &burst, packets[i]);

		if (unlikely(counter == ESP_OTHER)) {
			nf_other(nf, packets[i], packet_headers(packets[i]).type, ESP_OTHER, out);
			packets[i] = NULL;
		} else if (counter != ESP_ENCRYPTED && counter != ESP_DECRYPTED) {
			nf->counters[counter]++;
		}
	}
	rte_pktmbuf_free_bulk(packets, n); /* copies are sent */
	crypto_run(gateway->crypto, burst.jobs, burst.n);
	for (uint16_t i = 0; i < burst.n; i++)
		finish(nf, &burst.tasks[i], out);
}
