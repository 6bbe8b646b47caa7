/* Keys of IPSec as its kernel uses them: AES round keys and table, SHA-1 of HMAC's padded keys. */
#include "functions/ipsec/ipsec.h"
#include "gpu/kernels/ipsec.h"
#include "gpu/state/state.h"

_Static_assert(OUTER_TTL == IPSEC_TTL && ESP_IV == IPSEC_IV && ESP_ICV == IPSEC_ICV,
	       "as in the function in C");

/* Times x in the field of AES. */
static u8 doubled(u8 byte)
{
	return (u8)(byte << 1 ^ (byte & 0x80 ? 0x1b : 0));
}

/* The S-box of FIPS 197, section 5.1.1, by the powers of the generator 3 and of its inverse. */
static void fill_s_box(u8 box[256])
{
	u8 power = 1, inverse = 1;

	do {
		u8 rotated;

		power = (u8)(power ^ doubled(power));
		inverse ^= (u8)(inverse << 1);
		inverse ^= (u8)(inverse << 2);
		inverse ^= (u8)(inverse << 4);
		inverse ^= inverse & 0x80 ? 0x09 : 0;
		rotated = inverse;
		box[power] = 0x63 ^ inverse;
		for (int i = 0; i < 4; i++) {
			rotated = (u8)(rotated << 1 | rotated >> 7);
			box[power] ^= rotated;
		}
	} while (power != 1);
	box[0] = 0x63;
}

static void fill_table(u32 table[256], const u8 box[256])
{
	for (int i = 0; i < 256; i++) {
		const u32 once = box[i], twice = doubled(box[i]);

		table[i] = twice << 24 | once << 16 | once << 8 | (once ^ twice);
	}
}

static u32 substituted(const u8 box[256], u32 word)
{
	return (u32)box[word >> 24] << 24 | (u32)box[word >> 16 & 255] << 16 |
	       (u32)box[word >> 8 & 255] << 8 | box[word & 255];
}

/* FIPS 197, section 5.2. */
static void expand_key(u32 keys[AES_ROUND_KEY_WORDS], const u8 key[16], const u8 box[256])
{
	u8 constant = 1;

	for (int i = 0; i < 4; i++)
		keys[i] = bytes32(key + i * 4);
	for (int i = 4; i < AES_ROUND_KEY_WORDS; i++) {
		u32 word = keys[i - 1];

		if (i % 4 == 0) {
			word = substituted(box, word << 8 | word >> 24) ^ (u32)constant << 24;
			constant = doubled(constant);
		}
		keys[i] = keys[i - 4] ^ word;
	}
}

/* SHA-1 of one block: HMAC's key, padded by `pad`. */
static void hash_key(u32 hash[SHA1_WORDS], const u8 key[20], u8 pad)
{
	static const struct sha1 start = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
					  0xc3d2e1f0};
	u8 block[64];
	u32 words[16];
	struct sha1 h;

	memset(block, pad, sizeof(block));
	for (int i = 0; i < 20; i++)
		block[i] ^= key[i];
	for (int i = 0; i < 16; i++)
		words[i] = bytes32(block + i * 4);
	h = sha1_block(start, words);
	memcpy(hash, (const u32[]){h.a, h.b, h.c, h.d, h.e}, SHA1_WORDS * sizeof(*hash));
}

static bool build(const struct nf *nf, struct gpu_state *state)
{
	struct ipsec_settings settings;
	struct ipsec_state *keys;
	u8 box[256];

	if (!ipsec_settings_of(nf, &settings))
		return false;
	keys = (struct ipsec_state *)gpu_state_room(nf, state, sizeof(*keys));
	if (!keys)
		return false;
	fill_s_box(box);
	fill_table(keys->table, box);
	expand_key(keys->round_keys, settings.keys.cipher, box);
	hash_key(keys->inner, settings.keys.hmac, 0x36);
	hash_key(keys->outer, settings.keys.hmac, 0x5c);
	keys->nonce = bytes32(settings.keys.nonce);
	keys->spi = settings.spi;
	keys->seed = settings.seed;
	keys->tunnel = settings.tunnel;
	keys->encrypted = settings.encrypted;
	memcpy(keys->ends, settings.ends, sizeof(keys->ends));
	return true;
}

GPU_BUILDER_REGISTER(GPU_IPSEC, build)
