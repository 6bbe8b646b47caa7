#include "functions/ipsec/cipher.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "core/memory.h"

#define SHA1_BLOCK 64
#define SHA1_BYTES 20

struct ipsec_cipher {
	EVP_CIPHER_CTX *aes;
	EVP_MD_CTX *inner, *outer; /* of HMAC (RFC 2104), with the padded key already hashed */
	EVP_MD_CTX *work;
	uint8_t nonce[4];
};

/* Begin a hash with the key, padded by `pad`. */
static bool begin(EVP_MD_CTX *hash, const uint8_t key[20], uint8_t pad)
{
	uint8_t block[SHA1_BLOCK];

	memset(block, pad, sizeof(block));
	for (int i = 0; i < 20; i++)
		block[i] ^= key[i];
	return EVP_DigestInit_ex(hash, EVP_sha1(), NULL) == 1 &&
	       EVP_DigestUpdate(hash, block, sizeof(block)) == 1;
}

static bool prepare(struct ipsec_cipher *cipher, const struct ipsec_keys *keys)
{
	cipher->aes = EVP_CIPHER_CTX_new();
	cipher->inner = EVP_MD_CTX_new();
	cipher->outer = EVP_MD_CTX_new();
	cipher->work = EVP_MD_CTX_new();
	memcpy(cipher->nonce, keys->nonce, sizeof(cipher->nonce));
	return cipher->aes && cipher->inner && cipher->outer && cipher->work &&
	       EVP_EncryptInit_ex(cipher->aes, EVP_aes_128_ctr(), NULL, keys->cipher, NULL) == 1 &&
	       begin(cipher->inner, keys->hmac, 0x36) && begin(cipher->outer, keys->hmac, 0x5c);
}

struct ipsec_cipher *ipsec_cipher_create(const char *of, const struct ipsec_keys *keys)
{
	struct ipsec_cipher *cipher = nf_zalloc_for(of, sizeof(*cipher));

	if (!cipher || prepare(cipher, keys))
		return cipher;
	fprintf(stderr, "%s: OpenSSL has no AES-128-CTR, no SHA-1, or no memory\n", of);
	ipsec_cipher_destroy(cipher);
	return NULL;
}

void ipsec_cipher_destroy(struct ipsec_cipher *cipher)
{
	if (!cipher)
		return;
	EVP_CIPHER_CTX_free(cipher->aes);
	EVP_MD_CTX_free(cipher->inner);
	EVP_MD_CTX_free(cipher->outer);
	EVP_MD_CTX_free(cipher->work);
	nf_free(cipher);
}

bool ipsec_crypt(struct ipsec_cipher *cipher, const uint8_t iv[IPSEC_IV], uint8_t *bytes, size_t n)
{
	uint8_t block[16] = {[15] = 1}; /* RFC 3686, section 4: nonce, vector, counter from 1 on */
	int written = 0;

	memcpy(block, cipher->nonce, sizeof(cipher->nonce));
	memcpy(block + sizeof(cipher->nonce), iv, IPSEC_IV);
	return EVP_EncryptInit_ex(cipher->aes, NULL, NULL, NULL, block) == 1 &&
	       EVP_EncryptUpdate(cipher->aes, bytes, &written, bytes, (int)n) == 1 &&
	       written == (int)n;
}

bool ipsec_authenticate(struct ipsec_cipher *cipher, const uint8_t *bytes, size_t n,
			uint8_t icv[IPSEC_ICV])
{
	uint8_t digest[SHA1_BYTES];

	if (EVP_MD_CTX_copy_ex(cipher->work, cipher->inner) != 1 ||
	    EVP_DigestUpdate(cipher->work, bytes, n) != 1 ||
	    EVP_DigestFinal_ex(cipher->work, digest, NULL) != 1 ||
	    EVP_MD_CTX_copy_ex(cipher->work, cipher->outer) != 1 ||
	    EVP_DigestUpdate(cipher->work, digest, sizeof(digest)) != 1 ||
	    EVP_DigestFinal_ex(cipher->work, digest, NULL) != 1)
		return false;
	memcpy(icv, digest, IPSEC_ICV);
	return true;
}
