#include "gpu/state/nids/patterns.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/state/nids/expression.h"

#define MOST_STATES 0x7fff
#define NO_STATE 0xffff

static const char no_memory[] = "no memory";

/* The byte of a set with one byte, or one letter in both cases, in lower case; else -1. */
static int single(const struct byte_set *set)
{
	int byte = -1;

	for (unsigned int i = 0; i < 256; i++) {
		if (!byte_set_has(set, i))
			continue;
		if (byte >= 0 && byte != tolower((int)i))
			return -1;
		byte = tolower((int)i);
	}
	return byte;
}

static bool is_literal(const struct item *item)
{
	return !item->optional && !item->loops && single(&item->set) >= 0;
}

static struct literal literal_of(const struct sequence *sequence)
{
	struct literal best = {.n = 0};
	unsigned int run = 0;

	for (unsigned int i = 0; i < sequence->n; i++) {
		run = is_literal(&sequence->items[i]) ? run + 1 : 0;
		if (run > best.n && run <= LITERAL_LONGEST) {
			best.n = run;
			best.at = i + 1 - run;
		}
	}
	for (unsigned int i = 0; i < best.n; i++)
		best.bytes[i] = (uint8_t)single(&sequence->items[best.at + i].set);
	return best;
}

/* Number the bytes of literals from 1 on, letters of both cases alike. */
static void number_symbols(struct trie *trie, const struct literal *literals, unsigned int n)
{
	trie->symbols = 1;
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < literals[i].n; k++) {
			const uint8_t byte = literals[i].bytes[k];

			if (trie->symbol_of[byte])
				continue;
			trie->symbol_of[byte] = trie->symbol_of[toupper(byte)] =
				(uint8_t)trie->symbols++;
		}
}

const char *trie_begin(struct trie *trie, const struct literal *literals, unsigned int n)
{
	unsigned int room = 1;

	*trie = (struct trie){.n = 1};
	number_symbols(trie, literals, n);
	for (unsigned int i = 0; i < n; i++)
		room += literals[i].n;
	trie->room = room;
	if (room > MOST_STATES)
		return "too many literals";
	trie->next = malloc((size_t)room * trie->symbols * sizeof(*trie->next));
	trie->fail = calloc(room, sizeof(*trie->fail));
	if (!trie->next || !trie->fail)
		return no_memory;
	memset(trie->next, 0xff, (size_t)room * trie->symbols * sizeof(*trie->next));
	return NULL;
}

void trie_free(struct trie *trie)
{
	free(trie->next);
	free(trie->fail);
	free(trie->found);
	*trie = (struct trie){0};
}

static const char *note(struct trie *trie, uint16_t state, uint32_t pattern)
{
	if (trie->n_found == trie->found_room) {
		const unsigned int room = trie->found_room ? 2 * trie->found_room : 64;
		struct found *found = realloc(trie->found, room * sizeof(*found));

		if (!found)
			return no_memory;
		trie->found = found;
		trie->found_room = room;
	}
	trie->found[trie->n_found++] = (struct found){state, pattern};
	return NULL;
}

static uint16_t *transition(struct trie *trie, unsigned int state, unsigned int symbol)
{
	return &trie->next[(size_t)state * trie->symbols + symbol];
}

const char *trie_add(struct trie *trie, const struct literal *literal, uint32_t pattern)
{
	uint16_t state = 0;

	for (unsigned int i = 0; i < literal->n; i++) {
		uint16_t *next = transition(trie, state, trie->symbol_of[literal->bytes[i]]);

		if (*next == NO_STATE)
			*next = (uint16_t)trie->n++;
		state = *next;
	}
	return note(trie, state, pattern);
}

/* What ends with a state's suffix ends with the state, too. */
static const char *inherit(struct trie *trie, uint16_t state)
{
	const unsigned int n = trie->n_found;
	const char *why = NULL;

	for (unsigned int i = 0; i < n && !why; i++)
		if (trie->found[i].state == trie->fail[state])
			why = note(trie, state, trie->found[i].pattern);
	return why;
}

/* Complete the transitions of a state, whose suffix is complete; append its successors. */
static void complete_state(struct trie *trie, uint16_t state, uint16_t *queue, unsigned int *queued)
{
	for (unsigned int symbol = 0; symbol < trie->symbols; symbol++) {
		uint16_t *next = transition(trie, state, symbol);
		const uint16_t otherwise = state ? *transition(trie, trie->fail[state], symbol) : 0;

		if (*next == NO_STATE) {
			*next = otherwise;
			continue;
		}
		trie->fail[*next] = otherwise;
		queue[(*queued)++] = *next;
	}
}

static int by_state(const void *one, const void *other)
{
	const struct found *a = one, *b = other;

	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return a->pattern < b->pattern ? -1 : a->pattern > b->pattern;
}

const char *trie_complete(struct trie *trie)
{
	uint16_t *queue = malloc(trie->n * sizeof(*queue));
	unsigned int queued = 1;
	const char *why = queue ? NULL : no_memory;

	if (queue)
		queue[0] = 0;
	for (unsigned int i = 0; !why && i < queued; i++) {
		complete_state(trie, queue[i], queue, &queued);
		if (queue[i])
			why = inherit(trie, queue[i]);
	}
	free(queue);
	if (!why && trie->n_found)
		qsort(trie->found, trie->n_found, sizeof(*trie->found), by_state);
	return why;
}

_Static_assert(SEQUENCE_MOST_ITEMS == NIDS_WORDS * 64, "a bit for each item");

char *patterns_fault(const char *expression)
{
	struct sequences sequences = {0};
	const char *why = expression_read(expression, &sequences);

	sequences_free(&sequences);
	return why ? strdup(why) : NULL;
}

static void set_bit(u64 *words, unsigned int bit)
{
	words[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* The runs of optional items; the first and the last item are not optional. */
static void mark_items(struct nids_pattern *pattern, const struct sequence *sequence)
{
	const struct item *items = sequence->items;

	for (unsigned int i = 0; i < sequence->n; i++) {
		if (items[i].loops)
			set_bit(pattern->loops, i);
		if (!items[i].optional)
			continue;
		set_bit(pattern->optional, i);
		if (!items[i - 1].optional)
			set_bit(pattern->before, i - 1);
		if (!items[i + 1].optional)
			set_bit(pattern->last, i);
	}
}

/* Whether a match may have any number of bytes. */
static bool is_unlimited(const struct sequence *sequence)
{
	for (unsigned int i = 0; i < sequence->n; i++)
		if (sequence->items[i].loops)
			return true;
	return false;
}

static struct nids_pattern pattern_of(const struct sequence *sequence,
				      const struct literal *literal)
{
	struct nids_pattern pattern = {.items = sequence->n, .literal = literal->n};
	const bool limited = literal->n > 0 && !is_unlimited(sequence);

	pattern.ahead = limited ? literal->at : NIDS_UNLIMITED;
	pattern.behind = limited ? sequence->n - literal->at - literal->n : NIDS_UNLIMITED;
	mark_items(&pattern, sequence);
	return pattern;
}

/* Make room for `n` more; false without memory. */
static bool reserve(struct patterns *patterns, unsigned int n)
{
	const unsigned int room = patterns->n + n;
	struct nids_pattern *all = realloc(patterns->all, room * sizeof(*all));
	struct sequence *sequences;
	struct literal *literals;

	patterns->all = all ? all : patterns->all;
	sequences = realloc(patterns->sequences, room * sizeof(*sequences));
	patterns->sequences = sequences ? sequences : patterns->sequences;
	literals = realloc(patterns->literals, room * sizeof(*literals));
	patterns->literals = literals ? literals : patterns->literals;
	return all && sequences && literals;
}

static const char *add_rule(struct patterns *patterns, const struct rule *rule, unsigned int number)
{
	struct sequences sequences = {0};
	const unsigned int first = patterns->n;
	const char *why = expression_read(rule->expression, &sequences);

	if (!why && first + sequences.n > NIDS_MOST_PATTERNS)
		why = "with it there are more than 1024 patterns";
	if (!why && !reserve(patterns, sequences.n))
		why = "no memory";
	for (unsigned int i = 0; i < sequences.n && !why; i++) {
		const unsigned int at = patterns->n++;

		patterns->sequences[at] = sequences.all[i];
		patterns->literals[at] = literal_of(&sequences.all[i]);
		patterns->all[at] = pattern_of(&sequences.all[i], &patterns->literals[at]);
		patterns->all[at].rule = number;
		patterns->all[at].class_bit = 1u << rule->class;
		patterns->all[at].first_of_rule = first;
		patterns->all[at].n_of_rule = sequences.n;
	}
	sequences_free(&sequences);
	return why;
}

bool patterns_make(const char *of, const struct rule_set *set, struct patterns *patterns)
{
	*patterns = (struct patterns){0};
	if (set->n > NIDS_MOST_RULES) {
		fprintf(stderr, "%s: %u rules; the device has at most %u\n", of, set->n,
			NIDS_MOST_RULES);
		return false;
	}
	for (unsigned int i = 0; i < set->n; i++) {
		const char *why = add_rule(patterns, &set->rules[i], i);

		if (why) {
			fprintf(stderr, "%s: rule %s: %s\n", of, set->rules[i].name, why);
			return false;
		}
	}
	return true;
}

void patterns_free(struct patterns *patterns)
{
	free(patterns->all);
	free(patterns->sequences);
	free(patterns->literals);
	*patterns = (struct patterns){0};
}

/* The items that have a byte. */
static void items_of(const struct sequence *sequence, unsigned int byte, uint64_t mask[NIDS_WORDS])
{
	memset(mask, 0, NIDS_WORDS * sizeof(*mask));
	for (unsigned int i = 0; i < sequence->n; i++)
		if (byte_set_has(&sequence->items[i].set, byte))
			mask[i / 64] |= UINT64_C(1) << i % 64;
}

unsigned int patterns_sets(const struct sequence *sequence, uint8_t set_of[256], uint64_t *masks)
{
	const unsigned int words = (sequence->n + 63) / 64;
	uint64_t known[256][NIDS_WORDS];
	unsigned int n = 0;

	for (unsigned int byte = 0; byte < 256; byte++) {
		unsigned int set = 0;

		items_of(sequence, byte, known[n]);
		while (memcmp(known[set], known[n], sizeof(known[n])) != 0)
			set++;
		set_of[byte] = (uint8_t)set;
		n += set == n;
	}
	for (unsigned int set = 0; set < n && masks; set++)
		memcpy(masks + set * words, known[set], words * sizeof(*masks));
	return n;
}
