#include "core/payloads.h"

#include <stdbool.h>
#include <string.h>

#include "core/rules.h"

#define MOST_WITNESSES 16 /* per payload */
#define MOST_RULES 256
/*
 * The background: no rule starts with this byte or continues with it, so it neither makes nor
 * breaks a match.
 */
static const char background[] = "qzvwxkjQZVWXKJ";

struct payloads payloads_at(double mtbr, uint64_t seed)
{
	struct payloads payloads = {
		.random = seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull,
		.per_byte = mtbr / 1e6,
	};

	return payloads;
}

/* Whether a rule matches anywhere, not only at the start of a payload. */
static bool is_unanchored(const struct rule *rule)
{
	return rule->expression[0] != '^';
}

/* An unused rule whose witness fits together with one byte of background; NULL if there is none. */
static const struct rule *choose(struct payloads *payloads, uint16_t room, bool *taken)
{
	unsigned int n;
	const struct rule *all = rules(&n);
	unsigned int first;

	n = n < MOST_RULES ? n : MOST_RULES;
	first = chance(&payloads->random, n);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int at = (first + i) % n;

		if (taken[at] || !is_unanchored(&all[at]) || strlen(all[at].witness) >= room)
			continue;
		taken[at] = true;
		return &all[at];
	}
	return NULL;
}

uint32_t payloads_fill(struct payloads *payloads, uint8_t *payload, uint16_t room)
{
	bool taken[MOST_RULES] = {false};
	uint16_t used = 0;
	uint32_t matches = 0;

	for (uint16_t i = 0; i < room; i++)
		payload[i] = background[chance(&payloads->random, sizeof(background) - 1)];
	payloads->bytes += room;
	payloads->due_us += payloads->per_byte * room;
	while (payloads->due_us >= 1 && matches < MOST_WITNESSES) {
		const struct rule *rule = choose(payloads, room - used, taken);
		uint16_t length;

		if (!rule)
			break;
		length = strlen(rule->witness);
		/* at a random place: it decides how much is scanned */
		used += chance(&payloads->random, (room - used - length) / 2 + 1);
		memcpy(payload + used, rule->witness, length);
		used += length + 1;
		matches++;
		payloads->due_us -= 1;
	}
	payloads->matches += matches;
	return matches;
}

double payloads_mtbr(const struct payloads *payloads)
{
	return payloads->bytes ? 1e6 * payloads->matches / payloads->bytes : 0;
}
