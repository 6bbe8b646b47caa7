/*
 * IPSec on the device: ESP by AES-128-CTR and HMAC-SHA1-96, in tunnel or transport mode; see
 * functions/ipsec.c. `detail` of a packet that comes is its side (enum nf_side).
 *
 * A packet's number is the task's `first` plus its place in the task. All parts of a packet from
 * the IPv4 header on are aligned to 4 bytes (kernels/task.h), so that bytes move as words.
 */
#pragma once

#include "gpu/kernels/aes.h"
#include "gpu/kernels/packet.h"
#include "gpu/kernels/sha1.h"

enum ipsec_verdict {
	IPSEC_ENCRYPTED,
	IPSEC_DECRYPTED,
	IPSEC_UNAUTHENTIC,
	IPSEC_GARBLED,
	IPSEC_FOREIGN,
	IPSEC_DUMMIES,
	IPSEC_CONGESTED,
	IPSEC_FRAGMENTS,
	IPSEC_EXHAUSTED,
	IPSEC_TOO_LONG,
	IPSEC_OTHER,
	IPSEC_MALFORMED,
};

#define PROTOCOL_IPIP 4u
#define PROTOCOL_ESP 50u
#define PROTOCOL_NONE 59u

#define ESP_HEAD 8u /* SPI and sequence number */
#define ESP_IV 8u
#define ESP_ICV 12u
#define ESP_TAIL 2u /* bytes of padding, and the protocol inside */
#define OUTER_TTL 64u

/* Keys and settings. */
struct ipsec_state {
	u32 table[256]; /* of AES */
	u32 round_keys[AES_ROUND_KEY_WORDS];
	u32 inner[SHA1_WORDS], outer[SHA1_WORDS]; /* SHA-1 of the padded keys */
	u32 nonce, spi, seed;
	u32 tunnel;    /* bool */
	u32 encrypted; /* side whose packets are encrypted */
	u32 ends[2];   /* outer addresses by side */
};

/* A packet under way: where it comes from, and where its parts go. */
struct ipsec_job {
	GLOBAL const u8 *frame;
	GLOBAL u8 *to;
	u32 l3;      /* as in the frame */
	u32 header;  /* of the IPv4 header before ESP */
	u32 content; /* offset in the frame of what is encrypted */
	u32 length;  /* of it */
	u32 next;    /* its protocol */
	u32 room;    /* bytes at `to` */
};

DEVICE void put16(GLOBAL u8 *to, u32 value)
{
	to[0] = (u8)(value >> 8);
	to[1] = (u8)value;
}

/* At an aligned address. */
DEVICE void put32(GLOBAL u8 *to, u32 value)
{
	*(GLOBAL u32 *)to = swapped32(value);
}

DEVICE u32 get32(GLOBAL const u8 *from)
{
	return swapped32(*(GLOBAL const u32 *)from);
}

/* RFC 1624, equation 3: checksum_changed() of core/packet.h. */
DEVICE u32 sum_changed(u32 checksum, u32 before, u32 after)
{
	u32 sum = (~checksum & 0xffff) + (~before & 0xffff) + after;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* Set the length and protocol of an IPv4 header. */
DEVICE void ipsec_set_header(GLOBAL u8 *ip, u32 total, u32 protocol)
{
	u32 sum = sum_changed(bytes16(ip + 10), bytes16(ip + 2), total);

	sum = sum_changed(sum, bytes16(ip + 8), (u32)ip[8] << 8 | protocol);
	put16(ip + 2, total);
	ip[9] = (u8)protocol;
	put16(ip + 10, sum);
}

/* The outer header of tunnel mode, around the packet at `inner`. */
DEVICE void ipsec_outer(GLOBAL const struct ipsec_state *state, GLOBAL u8 *ip,
			GLOBAL const u8 *inner, u32 total, u32 sequence)
{
	const u32 unfragmented = inner[6] & 0x40u, from = state->encrypted;
	u32 sum = 0;

	ip[0] = 0x45;
	ip[1] = inner[1];
	put16(ip + 2, total);
	put16(ip + 4, unfragmented ? 0 : sequence & 0xffff);
	put16(ip + 6, unfragmented << 8);
	ip[8] = OUTER_TTL;
	ip[9] = PROTOCOL_ESP;
	put16(ip + 10, 0);
	put32(ip + 12, state->ends[from]);
	put32(ip + 16, state->ends[1 - from]);
	for (u32 at = 0; at < IPV4_BYTES; at += 2)
		sum += bytes16(ip + at);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum & 0xffff);
}

DEVICE void copy_bytes(GLOBAL u8 *to, GLOBAL const u8 *from, u32 n)
{
	for (u32 i = 0; i < n; i++)
		to[i] = from[i];
}

/* A block of the key stream. */
DEVICE struct aes_block ipsec_stream(GLOBAL const struct ipsec_state *state, u32 iv_high,
				     u32 iv_low, u32 counter)
{
	struct aes_block block;

	block.a = state->nonce;
	block.b = iv_high;
	block.c = iv_low;
	block.d = counter;
	return aes_encrypted(state->table, state->round_keys, block);
}

/* A byte of what is encrypted: content, then padding of 1, 2, ..., its length, the protocol. */
DEVICE u32 ipsec_plain_byte(const struct ipsec_job *job, u32 at, u32 text)
{
	if (at < job->length)
		return job->frame[job->content + at];
	if (at < text - ESP_TAIL)
		return at - job->length + 1;
	return at == text - ESP_TAIL ? text - ESP_TAIL - job->length : job->next;
}

/* Four such bytes. */
DEVICE u32 ipsec_plain_word(const struct ipsec_job *job, u32 at, u32 text)
{
	u32 word = 0;

	if (at + 4 <= job->length)
		return get32(job->frame + job->content + at);
	for (u32 i = 0; i < 4; i++)
		word = word << 8 | ipsec_plain_byte(job, at + i, text);
	return word;
}

/* Encrypt `text` bytes to `to`. */
DEVICE void ipsec_encrypt_text(GLOBAL const struct ipsec_state *state, const struct ipsec_job *job,
			       GLOBAL u8 *to, u32 text, u32 iv_high, u32 iv_low)
{
	for (u32 at = 0; at < text; at += 16) {
		const struct aes_block key = ipsec_stream(state, iv_high, iv_low, 1 + at / 16);

		put32(to + at, ipsec_plain_word(job, at, text) ^ key.a);
		if (at + 4 < text)
			put32(to + at + 4, ipsec_plain_word(job, at + 4, text) ^ key.b);
		if (at + 8 < text)
			put32(to + at + 8, ipsec_plain_word(job, at + 8, text) ^ key.c);
		if (at + 12 < text)
			put32(to + at + 12, ipsec_plain_word(job, at + 12, text) ^ key.d);
	}
}

/* Write a packet with ESP; returns its length, 0 without room. */
DEVICE u32 ipsec_seal(GLOBAL const struct ipsec_state *state, const struct ipsec_job *job,
		      u32 sequence)
{
	const u32 text = (job->length + ESP_TAIL + 3) & ~3u, esp = job->l3 + job->header;
	const u32 end = esp + ESP_HEAD + ESP_IV + text, total = end + ESP_ICV - job->l3;
	const u32 iv_high = state->encrypted << 31 | state->seed;
	struct sha1 icv;

	if (end + ESP_ICV > job->room || total > 0xffff)
		return 0;
	copy_bytes(job->to, job->frame, state->tunnel ? job->l3 : esp);
	if (state->tunnel)
		ipsec_outer(state, job->to + job->l3, job->frame + job->l3, total, sequence);
	else
		ipsec_set_header(job->to + job->l3, total, PROTOCOL_ESP);
	put32(job->to + esp, state->spi + state->encrypted);
	put32(job->to + esp + 4, sequence);
	put32(job->to + esp + 8, iv_high);
	put32(job->to + esp + 12, sequence);
	ipsec_encrypt_text(state, job, job->to + esp + ESP_HEAD + ESP_IV, text, iv_high, sequence);
	icv = sha1_hmac(state->inner, state->outer, job->to + esp, (end - esp) / 4);
	put32(job->to + end, icv.a);
	put32(job->to + end + 4, icv.b);
	put32(job->to + end + 8, icv.c);
	return end + ESP_ICV;
}

DEVICE u32 ipsec_encrypt(GLOBAL const struct ipsec_state *state, struct ipsec_job *job,
			 const struct view *view, u64 number, u32 *length)
{
	if (view->fragment && !state->tunnel)
		return IPSEC_FRAGMENTS;
	if (number >= 0xffffffffu)
		return IPSEC_EXHAUSTED;
	job->header = state->tunnel ? IPV4_BYTES : view->header;
	job->content = view->l3 + (state->tunnel ? 0 : view->header);
	job->length = view->l3 + view->total - job->content;
	job->next = state->tunnel ? PROTOCOL_IPIP : view->protocol;
	*length = ipsec_seal(state, job, (u32)number + 1);
	return *length ? IPSEC_ENCRYPTED : IPSEC_TOO_LONG;
}
