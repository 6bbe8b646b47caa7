#include "gpu/state/nids/sequences.h"

#include <stdlib.h>
#include <string.h>

static const char no_memory[] = "no memory";

/* Another sequence at the end; NULL without room, with the reason in `*why`. */
static struct sequence *another(struct sequences *sequences, const char **why)
{
	struct sequence *all = sequences->all;

	*why = sequences->n == SEQUENCES_MOST ? "more than 256 alternatives" : NULL;
	if (*why)
		return NULL;
	if (sequences->n == sequences->room) {
		const unsigned int room = sequences->room ? 2 * sequences->room : 1;

		all = realloc(all, room * sizeof(*all));
		if (!all) {
			*why = no_memory;
			return NULL;
		}
		sequences->all = all;
		sequences->room = room;
	}
	return &all[sequences->n++];
}

static const char *add(struct sequences *to, const struct sequence *sequence)
{
	const char *why;
	struct sequence *place = another(to, &why);

	if (!place)
		return why;
	place->n = sequence->n;
	memcpy(place->items, sequence->items, sequence->n * sizeof(sequence->items[0]));
	return NULL;
}

const char *sequences_of_nothing(struct sequences *made)
{
	static const struct sequence empty;

	*made = (struct sequences){0};
	return add(made, &empty);
}

const char *sequences_unite(struct sequences *to, const struct sequences *more)
{
	const char *why = NULL;

	for (unsigned int i = 0; i < more->n && !why; i++)
		why = add(to, &more->all[i]);
	return why;
}

const char *sequences_copy(struct sequences *made, const struct sequences *from)
{
	*made = (struct sequences){0};
	return sequences_unite(made, from);
}

static const char *append_one(struct sequence *to, const struct item *item)
{
	if (to->n == SEQUENCE_MOST_ITEMS)
		return "longer than 256 bytes";
	to->items[to->n++] = *item;
	return NULL;
}

static const char *append_times(struct sequence *to, struct item item, int least, int most)
{
	const char *why = NULL;
	const int times = most < 0 ? (least > 0 ? least : 1) : most;

	for (int i = 0; i < times && !why; i++) {
		item.optional = i >= least;
		item.loops = most < 0 && i == times - 1;
		why = append_one(to, &item);
	}
	return why;
}

const char *sequences_append(struct sequences *to, const struct item *item, int least, int most)
{
	const char *why = NULL;

	for (unsigned int i = 0; i < to->n && !why; i++)
		why = append_times(&to->all[i], *item, least, most);
	return why;
}

static const char *join(struct sequence *to, const struct sequence *more)
{
	const char *why = NULL;

	for (unsigned int i = 0; i < more->n && !why; i++)
		why = append_one(to, &more->items[i]);
	return why;
}

const char *sequences_multiply(struct sequences *to, const struct sequences *more)
{
	struct sequences product = {0};
	const char *why = NULL;

	for (unsigned int i = 0; i < to->n && !why; i++)
		for (unsigned int k = 0; k < more->n && !why; k++) {
			why = add(&product, &to->all[i]);
			if (!why)
				why = join(&product.all[product.n - 1], &more->all[k]);
		}
	sequences_free(to);
	*to = product;
	return why;
}

void sequences_free(struct sequences *sequences)
{
	free(sequences->all);
	*sequences = (struct sequences){0};
}

const char *sequences_trim(struct sequences *sequences)
{
	for (unsigned int i = 0; i < sequences->n; i++) {
		struct sequence *sequence = &sequences->all[i];
		unsigned int first = 0;

		while (first < sequence->n && sequence->items[first].optional)
			first++;
		while (sequence->n > first && sequence->items[sequence->n - 1].optional)
			sequence->n--;
		if (first == sequence->n)
			return "matches without any byte";
		sequence->n -= first;
		memmove(sequence->items, sequence->items + first,
			sequence->n * sizeof(sequence->items[0]));
		sequence->items[0].loops = false;
		sequence->items[sequence->n - 1].loops = false;
	}
	return NULL;
}
