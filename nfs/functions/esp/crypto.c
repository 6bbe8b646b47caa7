#include "functions/esp/crypto.h"

#include <stdio.h>
#include <string.h>

#include <rte_crypto.h>
#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "core/memory.h"

#define DESCRIPTORS 64
#define AES_BLOCK 16
#define CHACHA20_NONCE 12

/* The fastest first; the first two need an x86 processor. */
static const char *const drivers[] = {"crypto_aesni_mb", "crypto_chacha20_poly1305",
				      "crypto_openssl"};

enum { DECRYPT, ENCRYPT, WAYS };

struct crypto {
	char device[RTE_DEV_NAME_MAX_LEN];
	uint8_t id;
	bool configured;
	enum crypto_algorithm algorithm;
	struct rte_mempool *operations_pool, *sessions_pool;
	void *sessions[WAYS];
	struct rte_crypto_op *operations[NF_BURST];
};

/* What follows an operation and its symmetric part. */
struct private_part {
	uint8_t iv[CRYPTO_MOST_IV];
	struct crypto_job *job;
};

#define PRIVATE_AT (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))

static struct private_part *private_of(struct rte_crypto_op *operation)
{
	return rte_crypto_op_ctod_offset(operation, struct private_part *, PRIVATE_AT);
}

static struct rte_crypto_sym_xform cipher_of(const struct crypto_keys *keys, bool encrypts)
{
	return (struct rte_crypto_sym_xform){
		.type = RTE_CRYPTO_SYM_XFORM_CIPHER,
		.cipher = {.op = encrypts ? RTE_CRYPTO_CIPHER_OP_ENCRYPT
					  : RTE_CRYPTO_CIPHER_OP_DECRYPT,
			   .algo = RTE_CRYPTO_CIPHER_AES_CBC,
			   .key = {keys->cipher, AES_BLOCK},
			   .iv = {PRIVATE_AT, AES_BLOCK}},
	};
}

static struct rte_crypto_sym_xform hmac_of(const struct crypto_keys *keys, bool encrypts)
{
	return (struct rte_crypto_sym_xform){
		.type = RTE_CRYPTO_SYM_XFORM_AUTH,
		.auth = {.op = encrypts ? RTE_CRYPTO_AUTH_OP_GENERATE : RTE_CRYPTO_AUTH_OP_VERIFY,
			 .algo = RTE_CRYPTO_AUTH_SHA256_HMAC,
			 .key = {keys->hmac, sizeof(keys->hmac)},
			 .digest_length = CRYPTO_ICV},
	};
}

static struct rte_crypto_sym_xform chacha20_of(const struct crypto_keys *keys, bool encrypts)
{
	return (struct rte_crypto_sym_xform){
		.type = RTE_CRYPTO_SYM_XFORM_AEAD,
		.aead = {.op = encrypts ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT,
			 .algo = RTE_CRYPTO_AEAD_CHACHA20_POLY1305,
			 .key = {keys->cipher, sizeof(keys->cipher)},
			 .iv = {PRIVATE_AT, CHACHA20_NONCE},
			 .digest_length = CRYPTO_ICV,
			 .aad_length = CRYPTO_HEADER},
	};
}

static bool can_cipher(uint8_t id)
{
	const struct rte_cryptodev_sym_capability_idx aes = {
		.type = RTE_CRYPTO_SYM_XFORM_CIPHER, .algo.cipher = RTE_CRYPTO_CIPHER_AES_CBC};
	const struct rte_cryptodev_symmetric_capability *can =
		rte_cryptodev_sym_capability_get(id, &aes);

	return can && rte_cryptodev_sym_capability_check_cipher(can, AES_BLOCK, AES_BLOCK) == 0;
}

static bool can_authenticate(uint8_t id)
{
	const struct rte_cryptodev_sym_capability_idx hmac = {
		.type = RTE_CRYPTO_SYM_XFORM_AUTH, .algo.auth = RTE_CRYPTO_AUTH_SHA256_HMAC};
	const struct rte_cryptodev_symmetric_capability *can =
		rte_cryptodev_sym_capability_get(id, &hmac);

	return can && rte_cryptodev_sym_capability_check_auth(can, 32, CRYPTO_ICV, 0) == 0;
}

static bool can_chacha20(uint8_t id)
{
	const struct rte_cryptodev_sym_capability_idx chacha20 = {
		.type = RTE_CRYPTO_SYM_XFORM_AEAD, .algo.aead = RTE_CRYPTO_AEAD_CHACHA20_POLY1305};
	const struct rte_cryptodev_symmetric_capability *can =
		rte_cryptodev_sym_capability_get(id, &chacha20);

	return can && rte_cryptodev_sym_capability_check_aead(can, 32, CRYPTO_ICV, CRYPTO_HEADER,
							      CHACHA20_NONCE) == 0;
}

static bool is_capable(uint8_t id, enum crypto_algorithm algorithm)
{
	switch (algorithm) {
	case CRYPTO_AES_CBC:
		return can_cipher(id);
	case CRYPTO_AES_CBC_HMAC:
		return can_cipher(id) && can_authenticate(id);
	case CRYPTO_CHACHA20_POLY1305:
		return can_chacha20(id);
	}
	return false;
}

/* One session for each way; in ESP integrity covers the ciphertext. */
static bool make_sessions(struct crypto *crypto, const struct crypto_keys *keys)
{
	for (int way = 0; way < WAYS; way++) {
		struct rte_crypto_sym_xform cipher = cipher_of(keys, way == ENCRYPT),
					    hmac = hmac_of(keys, way == ENCRYPT),
					    chacha20 = chacha20_of(keys, way == ENCRYPT),
					    *first = &cipher;

		if (keys->algorithm == CRYPTO_CHACHA20_POLY1305) {
			first = &chacha20;
		} else if (keys->algorithm == CRYPTO_AES_CBC_HMAC) {
			first = way == ENCRYPT ? &cipher : &hmac;
			first->next = way == ENCRYPT ? &hmac : &cipher;
		}
		crypto->sessions[way] =
			rte_cryptodev_sym_session_create(crypto->id, first, crypto->sessions_pool);
		if (!crypto->sessions[way])
			return false;
	}
	return true;
}

static bool start(struct crypto *crypto)
{
	struct rte_cryptodev_config config = {.socket_id = SOCKET_ID_ANY, .nb_queue_pairs = 1};
	struct rte_cryptodev_qp_conf queue = {.nb_descriptors = DESCRIPTORS,
					      .mp_session = crypto->sessions_pool};

	crypto->configured = true;
	return rte_cryptodev_configure(crypto->id, &config) == 0 &&
	       rte_cryptodev_queue_pair_setup(crypto->id, 0, &queue, rte_socket_id()) == 0 &&
	       rte_cryptodev_start(crypto->id) == 0;
}

static bool make_pools(struct crypto *crypto)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "s_%.22s", crypto->device);
	crypto->sessions_pool = rte_cryptodev_sym_session_pool_create(
		name, WAYS, rte_cryptodev_sym_get_private_session_size(crypto->id), 0, 0,
		SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "o_%.22s", crypto->device);
	crypto->operations_pool =
		rte_crypto_op_pool_create(name, RTE_CRYPTO_OP_TYPE_SYMMETRIC, NF_BURST, 0,
					  sizeof(struct private_part), SOCKET_ID_ANY);
	return crypto->sessions_pool && crypto->operations_pool &&
	       rte_crypto_op_bulk_alloc(crypto->operations_pool, RTE_CRYPTO_OP_TYPE_SYMMETRIC,
					crypto->operations, NF_BURST) == NF_BURST;
}

void crypto_destroy(struct crypto *crypto)
{
	if (!crypto)
		return;
	if (crypto->operations[0])
		rte_mempool_put_bulk(crypto->operations_pool, (void **)crypto->operations,
				     NF_BURST);
	if (crypto->configured)
		rte_cryptodev_stop(crypto->id);
	for (int way = 0; way < WAYS; way++)
		if (crypto->sessions[way])
			rte_cryptodev_sym_session_free(crypto->id, crypto->sessions[way]);
	rte_eal_hotplug_remove("vdev", crypto->device);
	rte_mempool_free(crypto->operations_pool);
	rte_mempool_free(crypto->sessions_pool);
	nf_free(crypto);
}

/* A device by one driver; NULL after printing why. */
static struct crypto *create_by(const char *name, const char *driver,
				const struct crypto_keys *keys)
{
	static unsigned int n_created;
	struct crypto *crypto = nf_zalloc_for(name, sizeof(*crypto));
	int error, id;

	if (!crypto)
		return NULL;
	/* short, because names of memory pools are */
	snprintf(crypto->device, sizeof(crypto->device), "%.24s%u", driver,
		 __atomic_fetch_add(&n_created, 1, __ATOMIC_RELAXED));
	error = rte_eal_hotplug_add("vdev", crypto->device, "max_nb_queue_pairs=1");
	id = error < 0 ? -1 : rte_cryptodev_get_dev_id(crypto->device);
	if (id < 0) {
		fprintf(stderr, "%s: no device %s: error %d\n", name, crypto->device, error);
		nf_free(crypto);
		return NULL;
	}
	crypto->id = (uint8_t)id;
	crypto->algorithm = keys->algorithm;
	if (!is_capable(crypto->id, keys->algorithm))
		fprintf(stderr, "%s: %s does not have the algorithm\n", name, driver);
	else if (make_pools(crypto) && start(crypto) && make_sessions(crypto, keys))
		return crypto;
	else
		fprintf(stderr, "%s: %s cannot be configured: %s\n", name, driver,
			rte_strerror(rte_errno));
	crypto_destroy(crypto);
	return NULL;
}

struct crypto *crypto_create(const char *name, const char *driver, const struct crypto_keys *keys)
{
	/* drivers announce each device */
	rte_log_set_level_pattern("lib.cryptodev", RTE_LOG_WARNING);
	rte_log_set_level_pattern("pmd.crypto.*", RTE_LOG_WARNING);
	for (unsigned int i = 0; i < RTE_DIM(drivers); i++) {
		struct crypto *crypto = NULL;

		if (driver[0] == '\0' || strcmp(driver, drivers[i]) == 0)
			crypto = create_by(name, drivers[i], keys);
		if (crypto)
			return crypto;
	}
	fprintf(stderr, "%s: no driver%s%s of cryptodev works\nhint: one of", name,
		driver[0] ? " " : "", driver);
	for (unsigned int i = 0; i < RTE_DIM(drivers); i++)
		fprintf(stderr, " %s", drivers[i]);
	fputc('\n', stderr);
	return NULL;
}

static void fill(const struct crypto *crypto, struct rte_crypto_op *operation,
		 struct crypto_job *job)
{
	struct rte_crypto_sym_op *sym = operation->sym;
	struct private_part *private_part = private_of(operation);
	uint8_t *icv = rte_pktmbuf_mtod_offset(job->packet, uint8_t *, job->text + job->length);

	memcpy(private_part->iv, job->iv, sizeof(job->iv));
	private_part->job = job;
	operation->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
	rte_crypto_op_attach_sym_session(operation, crypto->sessions[job->encrypts]);
	sym->m_src = job->packet;
	sym->m_dst = NULL;
	if (crypto->algorithm == CRYPTO_CHACHA20_POLY1305) {
		sym->aead.data.offset = job->text;
		sym->aead.data.length = job->length;
		sym->aead.digest.data = icv;
		sym->aead.aad.data = rte_pktmbuf_mtod_offset(job->packet, uint8_t *, job->header);
		return;
	}
	sym->cipher.data.offset = job->text;
	sym->cipher.data.length = job->length;
	sym->auth.data.offset = job->header;
	sym->auth.data.length = job->text + job->length - job->header;
	sym->auth.digest.data = icv;
}

void crypto_run(struct crypto *crypto, struct crypto_job *jobs, uint16_t n)
{
	struct rte_crypto_op *done[NF_BURST];
	uint16_t submitted = 0, finished = 0;

	for (uint16_t i = 0; i < n; i++)
		fill(crypto, crypto->operations[i], &jobs[i]);
	while (finished < n) {
		uint16_t ready;

		submitted += rte_cryptodev_enqueue_burst(
			crypto->id, 0, crypto->operations + submitted, n - submitted);
		ready = rte_cryptodev_dequeue_burst(crypto->id, 0, done, n - finished);
		for (uint16_t i = 0; i < ready; i++)
			private_of(done[i])->job->succeeded =
				done[i]->status == RTE_CRYPTO_OP_STATUS_SUCCESS;
		finished += ready;
	}
}
