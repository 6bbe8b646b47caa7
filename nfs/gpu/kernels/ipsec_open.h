/* The way back of IPSec on the device: checks and decrypts ESP; and the kernel of both ways. */
#pragma once

#include "gpu/kernels/ipsec.h"

/* Decrypt the job's content to `to`. */
DEVICE void ipsec_decrypt_text(GLOBAL const struct ipsec_state *state, const struct ipsec_job *job,
			       GLOBAL u8 *to)
{
	GLOBAL const u8 *text = job->frame + job->content;
	const u32 iv_high = get32(text - ESP_IV), iv_low = get32(text - ESP_IV + 4);

	for (u32 at = 0; at < job->length; at += 16) {
		const struct aes_block key = ipsec_stream(state, iv_high, iv_low, 1 + at / 16);

		put32(to + at, get32(text + at) ^ key.a);
		if (at + 4 < job->length)
			put32(to + at + 4, get32(text + at + 4) ^ key.b);
		if (at + 8 < job->length)
			put32(to + at + 8, get32(text + at + 8) ^ key.c);
		if (at + 12 < job->length)
			put32(to + at + 12, get32(text + at + 12) ^ key.d);
	}
}

/* Whether the integrity check value behind the content is right. */
DEVICE u32 ipsec_is_authentic(GLOBAL const struct ipsec_state *state, const struct ipsec_job *job)
{
	GLOBAL const u8 *esp = job->frame + job->content - ESP_IV - ESP_HEAD;
	GLOBAL const u8 *sent = job->frame + job->content + job->length;
	const struct sha1 icv =
		sha1_hmac(state->inner, state->outer, esp, (ESP_HEAD + ESP_IV + job->length) / 4);

	return ((get32(sent) ^ icv.a) | (get32(sent + 4) ^ icv.b) | (get32(sent + 8) ^ icv.c)) == 0;
}

/* Bytes of decrypted content without padding, which must be 1, 2, ...; 0xffffffff if it is not. */
DEVICE u32 ipsec_unpadded(GLOBAL const u8 *text, u32 length)
{
	const u32 padded = text[length - ESP_TAIL];

	if (padded + ESP_TAIL > length)
		return 0xffffffffu;
	for (u32 i = 0; i < padded; i++)
		if (text[length - ESP_TAIL - padded + i] != i + 1)
			return 0xffffffffu;
	return length - ESP_TAIL - padded;
}

/*
 * Copy the ECN mark of the outer header to the inner one: ipv4_join_mark() of core/ipv4.h. Whether
 * the packet goes on.
 */
DEVICE u32 ipsec_join_mark(GLOBAL u8 *ip, u32 outer)
{
	const u32 mark = ip[1] & 3, before = bytes16(ip);
	u32 sum;

	outer &= 3;
	if (mark == 0)
		return outer != 3;
	if (outer != 3 && !(outer == 1 && mark != 3))
		return 1;
	ip[1] = (u8)((ip[1] & ~3u) | outer);
	sum = sum_changed(bytes16(ip + 10), before, bytes16(ip));
	ip[10] = (u8)(sum >> 8);
	ip[11] = (u8)sum;
	return 1;
}

/*
 * The packet in a tunnel, whose frame has `length` bytes, behind a header with `marks`:
 * IPSEC_DECRYPTED if it is whole and goes on.
 */
DEVICE u32 ipsec_inner(GLOBAL u8 *frame, u32 marks, u32 *length)
{
	const struct view inner = view_of(frame, *length, *length);

	if (!view_has_ipv4(&inner))
		return IPSEC_GARBLED;
	if (!ipsec_join_mark(frame + inner.l3, marks))
		return IPSEC_CONGESTED;
	*length = inner.l3 + inner.total;
	return IPSEC_DECRYPTED;
}

/* Write the packet inside an authentic one. */
DEVICE u32 ipsec_unwrap(GLOBAL const struct ipsec_state *state, const struct ipsec_job *job,
			u32 *length)
{
	const u32 text = job->l3 + (state->tunnel ? 0 : job->header);
	u32 n, next;

	if (text + job->length > job->room)
		return IPSEC_TOO_LONG;
	copy_bytes(job->to, job->frame, text);
	ipsec_decrypt_text(state, job, job->to + text);
	n = ipsec_unpadded(job->to + text, job->length);
	if (n == 0xffffffffu)
		return IPSEC_GARBLED;
	next = job->to[text + job->length - 1];
	if (next == PROTOCOL_NONE)
		return IPSEC_DUMMIES;
	*length = text + n;
	if (state->tunnel)
		return next == PROTOCOL_IPIP
			       ? ipsec_inner(job->to, job->frame[job->l3 + 1], length)
			       : IPSEC_GARBLED;
	ipsec_set_header(job->to + job->l3, job->header + n, next);
	return IPSEC_DECRYPTED;
}

DEVICE u32 ipsec_decrypt(GLOBAL const struct ipsec_state *state, struct ipsec_job *job,
			 const struct view *view, u32 *length)
{
	const u32 esp = view->l3 + view->header, end = view->l3 + view->total;

	if (view->fragment)
		return IPSEC_FRAGMENTS;
	if (view->protocol != PROTOCOL_ESP)
		return IPSEC_FOREIGN;
	if (end < esp + ESP_HEAD)
		return IPSEC_MALFORMED;
	if (get32(job->frame + esp) != state->spi + 1 - state->encrypted)
		return IPSEC_FOREIGN;
	job->content = esp + ESP_HEAD + ESP_IV;
	if (end < job->content + 4 + ESP_ICV || (end - job->content - ESP_ICV) % 4 != 0)
		return IPSEC_MALFORMED;
	job->header = view->header;
	job->length = end - job->content - ESP_ICV;
	if (!ipsec_is_authentic(state, job))
		return IPSEC_UNAUTHENTIC;
	return ipsec_unwrap(state, job, length);
}

/* Of a frame that is only held in part, as much is missing as its headers promise. */
DEVICE u32 ipsec_handle(GLOBAL const struct ipsec_state *state, struct ipsec_job *job,
			GLOBAL const struct gpu_slot *slot, u64 number, u32 *length)
{
	const struct view view = view_of(job->frame, slot->length, slot->held);

	if (!view_has_ipv4(&view))
		return view.kind == VIEW_OTHER ? IPSEC_OTHER : IPSEC_MALFORMED;
	if (view.l3 + view.total > slot->held)
		return IPSEC_MALFORMED;
	job->l3 = view.l3;
	return slot->detail == state->encrypted ? ipsec_encrypt(state, job, &view, number, length)
						: ipsec_decrypt(state, job, &view, length);
}

DEVICE void ipsec_packet(GLOBAL const struct gpu_slot *slot, GLOBAL struct gpu_slot *result,
			 GLOBAL const struct ipsec_state *state, u64 number, u32 room)
{
	struct ipsec_job job;
	u32 verdict, length = 0;

	job.frame = gpu_frame(slot);
	job.to = (GLOBAL u8 *)result + GPU_FRAME_AT;
	job.room = room;
	verdict = ipsec_handle(state, &job, slot, number, &length);
	if (verdict == IPSEC_ENCRYPTED || verdict == IPSEC_DECRYPTED)
		gpu_result(result, verdict, 0, length, length);
	else
		gpu_result(result, verdict | GPU_FREED, 0, slot->length, 0);
}

DEVICE void nf_ipsec(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
		     const struct gpu_task *task, u32 lane, u32 lanes)
{
	const u64 first = (u64)task->first_high << 32 | task->first_low;

	for (u32 i = lane; i < task->n; i += lanes)
		ipsec_packet(gpu_slot_in(in, task, i), gpu_slot_out(out, task, i),
			     (GLOBAL const struct ipsec_state *)(state + task->state_at), first + i,
			     GPU_ROOM(task));
}
