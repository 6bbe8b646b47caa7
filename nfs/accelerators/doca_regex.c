/*
 * Scans payloads with a BlueField-2's regex engine (DOCA RegEx 2.2). It has not run on a card yet.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <doca_regex.h>
#include <doca_regex_mempool.h>

#include "accelerators/doca_card.h"
#include "core/memory.h"
#include "core/rules.h"

#define GROUP 1 /* the default group of rules */
#define MOST_MATCHES 16
#define RULE_FRAME 20 /* bytes of a rule's line besides its expression */

struct regex_engine {
	struct doca_card card;
	struct doca_regex *regex;
	struct doca_regex_search_result results[DOCA_CARD_JOBS];
};

/* One line per rule for the card's compiler: number from 1, expression; a dot matches any byte. */
static size_t write_rule(char *text, unsigned int number, const char *expression)
{
	size_t n = (size_t)sprintf(text, "%u, /", number);

	for (; *expression; expression++) {
		if (*expression == '/')
			text[n++] = '\\';
		text[n++] = *expression;
	}
	return n + (size_t)sprintf(text + n, "/s\n");
}

static bool set_rules(struct regex_engine *engine)
{
	unsigned int n;
	const struct rule *all = rules(&n);
	size_t room = 1, length = 0;
	char *text;
	bool ok;

	for (unsigned int i = 0; i < n; i++)
		room += 2 * strlen(all[i].expression) + RULE_FRAME;
	text = nf_zalloc(room);
	if (!text) {
		fprintf(stderr, "doca-regex: no memory for %u rules\n", n);
		return false;
	}
	for (unsigned int i = 0; i < n; i++)
		length += write_rule(text + length, i + 1, all[i].expression);
	ok = doca_card_ok(&engine->card,
			  doca_regex_set_hardware_uncompiled_rules(engine->regex, text, length),
			  "set the rules");
	nf_free(text);
	return ok;
}

static doca_error_t supports(struct doca_devinfo *device)
{
	return doca_regex_get_hardware_supported(device);
}

static bool make(struct doca_card *card)
{
	struct regex_engine *engine = (struct regex_engine *)card;

	if (!doca_card_ok(card, doca_regex_create(&engine->regex), "create an engine"))
		return false;
	card->context = doca_regex_as_ctx(engine->regex);
	return true;
}

static bool set_up(struct doca_card *card)
{
	struct regex_engine *engine = (struct regex_engine *)card;

	return doca_card_ok(card,
			    doca_regex_set_workq_matches_memory_pool_size(
				    engine->regex, DOCA_CARD_JOBS * MOST_MATCHES),
			    "create a pool of matches") &&
	       set_rules(engine);
}

static doca_error_t unmake(struct doca_card *card)
{
	return doca_regex_destroy(((struct regex_engine *)card)->regex);
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	struct regex_engine *engine = state;
	struct doca_card *card = &engine->card;
	struct doca_card_job *next;
	const enum backend_status status = doca_card_next(card, job, &next);
	unsigned int number;

	if (status != BACKEND_TAKEN)
		return status;
	number = doca_card_number(card, next);

	const struct doca_regex_job_search search = {
		.base = {.type = DOCA_REGEX_JOB_SEARCH,
			 .ctx = card->context,
			 .user_data = {.u64 = number}},
		.rule_group_ids = {GROUP},
		.buffer = next->in,
		.result = &engine->results[number],
	};

	return doca_card_submit(card, &search.base);
}

/* The card reports every match of a rule; each rule counts once. */
static void finish(struct doca_card_job *done, const struct doca_event *event)
{
	struct doca_regex_search_result *result = event->result.ptr;
	struct accelerator_job *job = done->job;
	uint64_t seen[4] = {0};

	job->status = result->status_flags & DOCA_REGEX_STATUS_SEARCH_FAILED ? -EIO : 0;
	for (struct doca_regex_match *match = result->matches, *next; match; match = next) {
		const uint32_t rule = match->rule_id - 1;
		const uint64_t bit = 1ull << rule % 64;

		if (!(seen[rule / 64 % 4] & bit))
			backend_matched(job, rule);
		seen[rule / 64 % 4] |= bit;
		next = match->next;
		doca_regex_mempool_put_obj(result->matches_mempool, match);
	}
	result->matches = NULL;
}

static const struct doca_card_engine engine = {
	.name = "doca-regex",
	.bytes = sizeof(struct regex_engine),
	.supports = supports,
	.make = make,
	.set_up = set_up,
	.unmake = unmake,
	.finish = finish,
};

DOCA_BACKEND("doca-regex", "the regex engine of a BlueField-2 (untested on a card)",
	     ACCELERATOR_REGEX)
