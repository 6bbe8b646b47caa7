/*
 * NIDS on the device: finds which rules match a payload, as the engine in C does.
 *
 * Each rule is one or more patterns: items one after another, some optional, some repeated. Of most
 * patterns every match has a literal. One pass of Aho-Corasick finds all literals, ignoring case;
 * around each that is found, a bit-parallel automaton (Navarro and Raffinot, 2002: extended
 * Shift-And) decides whether its pattern matches. Patterns without a literal run over the payload.
 *
 * `detail` has the lowest matching rule, how many match, and a bit for each of their classes: the
 * fields of an accelerator's job. Flows and alerts are the host's.
 */
#pragma once

#include "gpu/kernels/packet.h"

enum nids_verdict {
	NIDS_SCANNED,
	NIDS_WITHOUT_PAYLOAD,
	NIDS_FRAGMENTS,
	NIDS_DROPPED, /* scanned, too */
	NIDS_OTHER,
	NIDS_MALFORMED,
};

#define NIDS_MOST_RULES 1024u
#define NIDS_MOST_PATTERNS 1024u
#define NIDS_WORDS 4u      /* of 64 items each, in a pattern */
#define NIDS_FOUND 0x8000u /* in a transition: literals end there */
#define NIDS_UNLIMITED 0xffffffffu

#define NIDS_RULE(detail) ((detail)&1023)
#define NIDS_MATCHES(detail) ((detail) >> 10 & 2047)
#define NIDS_CLASSES(detail) ((detail) >> 21 & 255)

/* Where tables are, in bytes from this head. */
struct nids_head {
	u32 dropped_classes; /* a bit for each class whose packets are freed */
	u32 n_patterns, patterns_at;
	u32 n_always, always_at; /* patterns without a literal */
	u32 symbols, symbols_at; /* how many, and the symbol of each byte */
	u32 transitions_at;      /* of each state: the next one by symbol, in 16 bits */
	u32 founds_at;           /* of each state: where in `found` its literals' patterns begin */
	u32 found_at;
};

/* A pattern; its bits are its items. */
struct nids_pattern {
	u64 optional[NIDS_WORDS]; /* items that may be left out */
	u64 before[NIDS_WORDS];   /* the item before each run of such */
	u64 last[NIDS_WORDS];     /* the last item of each run */
	u64 loops[NIDS_WORDS];    /* items that may repeat */
	u32 rule, class_bit;
	u32 first_of_rule, n_of_rule; /* patterns of the same rule */
	u32 items;
	u32 literal;       /* its bytes; 0 without */
	u32 ahead, behind; /* most bytes of a match before and behind the literal */
	u32 sets_at,
		masks_at; /* the set of each byte, and the items that have the bytes of a set */
};

/* What a scan has found. */
struct nids_result {
	u32 rule, matches, classes;
	u32 done[NIDS_MOST_PATTERNS / 32]; /* patterns that need not run again */
};

struct nids_bits {
	u64 w[NIDS_WORDS];
};

/* Let optional items behind active ones be left out: sets all of a run behind its lowest one. */
DEVICE void nids_skip(GLOBAL const struct nids_pattern *pattern, struct nids_bits *bits, u32 words)
{
	u64 borrow = 0;

	UNROLL for (u32 i = 0; i < NIDS_WORDS; i++)
	{
		if (i < words) {
			const u64 with_last = bits->w[i] | pattern->last[i];
			const u64 less = with_last - pattern->before[i];
			const u64 difference = less - borrow;

			borrow = (with_last < pattern->before[i]) | (less < borrow);
			bits->w[i] |= pattern->optional[i] & (~difference ^ with_last);
		}
	}
}

/* Whether a pattern matches in bytes from `from` to before `to`. */
DEVICE u32 nids_runs(GLOBAL const u8 *state, GLOBAL const struct nids_pattern *pattern,
		     GLOBAL const u8 *payload, u32 from, u32 to)
{
	GLOBAL const u8 *sets = state + pattern->sets_at;
	GLOBAL const u64 *masks = (GLOBAL const u64 *)(state + pattern->masks_at);
	const u32 words = (pattern->items + 63) / 64, end = pattern->items - 1;
	struct nids_bits bits;

	UNROLL for (u32 i = 0; i < NIDS_WORDS; i++) bits.w[i] = 0;
	for (u32 at = from; at < to; at++) {
		GLOBAL const u64 *mask = masks + sets[payload[at]] * words;
		u64 carry = 1, reached = 0;

		UNROLL for (u32 i = 0; i < NIDS_WORDS; i++)
		{
			if (i < words) {
				const u64 was = bits.w[i];

				bits.w[i] =
					(was << 1 | carry | (was & pattern->loops[i])) & mask[i];
				carry = was >> 63;
			}
		}
		nids_skip(pattern, &bits, words);
		UNROLL for (u32 i = 0; i < NIDS_WORDS; i++) reached |=
			i == end / 64 ? bits.w[i] : 0;
		if (reached >> end % 64 & 1)
			return 1;
	}
	return 0;
}

DEVICE void nids_set_done(struct nids_result *result, u32 pattern)
{
	result->done[pattern / 32] |= 1u << pattern % 32;
}

/* Note that a rule matches: its patterns need not run again. */
DEVICE void nids_note(GLOBAL const struct nids_pattern *pattern, struct nids_result *result)
{
	if (result->matches++ == 0 || pattern->rule < result->rule)
		result->rule = pattern->rule;
	result->classes |= pattern->class_bit;
	for (u32 i = 0; i < pattern->n_of_rule; i++)
		nids_set_done(result, pattern->first_of_rule + i);
}

/* Try a pattern whose literal ends before `end`; in the whole payload if a match has no limit. */
DEVICE void nids_try(GLOBAL const u8 *state, u32 which, GLOBAL const u8 *payload, u32 length,
		     u32 end, struct nids_result *result)
{
	GLOBAL const struct nids_head *head = (GLOBAL const struct nids_head *)state;
	GLOBAL const struct nids_pattern *pattern =
		(GLOBAL const struct nids_pattern *)(state + head->patterns_at) + which;
	u32 from = 0, to = length;

	if (result->done[which / 32] >> which % 32 & 1)
		return;
	if (pattern->ahead == NIDS_UNLIMITED) {
		nids_set_done(result, which);
	} else {
		const u32 begin = end - pattern->literal;

		from = begin > pattern->ahead ? begin - pattern->ahead : 0;
		to = length - end > pattern->behind ? end + pattern->behind : length;
	}
	if (nids_runs(state, pattern, payload, from, to))
		nids_note(pattern, result);
}

/* Find the rules that match a payload of at least one byte. */
DEVICE void nids_scan(GLOBAL const u8 *state, GLOBAL const u8 *payload, u32 length,
		      struct nids_result *result)
{
	GLOBAL const struct nids_head *head = (GLOBAL const struct nids_head *)state;
	GLOBAL const u32 *always = (GLOBAL const u32 *)(state + head->always_at);
	GLOBAL const u8 *symbols = state + head->symbols_at;
	GLOBAL const u16 *transitions = (GLOBAL const u16 *)(state + head->transitions_at);
	GLOBAL const u32 *founds = (GLOBAL const u32 *)(state + head->founds_at);
	GLOBAL const u32 *found = (GLOBAL const u32 *)(state + head->found_at);
	u32 at_state = 0;

	result->rule = result->matches = result->classes = 0;
	for (u32 i = 0; i < (head->n_patterns + 31) / 32; i++)
		result->done[i] = 0;
	for (u32 i = 0; i < head->n_always; i++)
		nids_try(state, always[i], payload, length, 0, result);
	for (u32 at = 0; at < length; at++) {
		const u32 next = transitions[at_state * head->symbols + symbols[payload[at]]];

		at_state = next & ~NIDS_FOUND;
		if (next & NIDS_FOUND)
			for (u32 i = founds[at_state]; i < founds[at_state + 1]; i++)
				nids_try(state, found[i], payload, length, at + 1, result);
	}
}

/* Bytes of a payload in the slot. */
DEVICE u32 nids_held(const struct view *view, u32 held)
{
	if (view->payload == 0)
		return 0;
	held -= view->payload;
	return held < view->payload_length ? held : view->payload_length;
}

DEVICE void nids_packet(GLOBAL const struct gpu_slot *slot, GLOBAL struct gpu_slot *to,
			GLOBAL const u8 *state)
{
	GLOBAL const struct nids_head *head = (GLOBAL const struct nids_head *)state;
	GLOBAL const u8 *frame = gpu_frame(slot);
	const struct view view = view_of(frame, slot->length, slot->held);
	const u32 length = view.kind == VIEW_IPV4 ? nids_held(&view, slot->held) : 0;
	u32 verdict = view.non_initial_fragment ? NIDS_FRAGMENTS : NIDS_WITHOUT_PAYLOAD, detail = 0;
	struct nids_result result;

	if (view.non_initial_fragment && head->dropped_classes)
		verdict |= GPU_FREED;

	if (length > 0) {
		nids_scan(state, frame + view.payload, length, &result);
		detail = result.rule | result.matches << 10 | result.classes << 21;
		verdict = result.classes & head->dropped_classes ||
					  (head->dropped_classes && length < view.payload_length)
				  ? NIDS_DROPPED | GPU_FREED
				  : NIDS_SCANNED;
	} else if (view.kind != VIEW_IPV4) {
		verdict = view.kind == VIEW_OTHER ? NIDS_OTHER : NIDS_MALFORMED | GPU_FREED;
	}
	gpu_result(to, verdict, detail, slot->length, 0);
}

DEVICE void nf_nids(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
		    const struct gpu_task *task, u32 lane, u32 lanes)
{
	for (u32 i = lane; i < task->n; i += lanes)
		nids_packet(gpu_slot_in(in, task, i), gpu_slot_out(out, task, i),
			    state + task->state_at);
}
