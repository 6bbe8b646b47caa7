#include "gpu/state/nids/patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/state/nids/expression.h"

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
