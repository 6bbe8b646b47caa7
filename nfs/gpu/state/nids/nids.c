/* The tables of NIDS: patterns with their automata, and the automaton of their literals. */
#include <stdio.h>

#include "gpu/state/state.h"
#include "gpu/state/nids/patterns.h"
#include "tables/rule_file.h"

/* A part of the tables begins at a multiple of this. */
#define PART 16

static u32 part(u32 *end, size_t bytes)
{
	const u32 at = *end;

	*end = (u32)((at + bytes + PART - 1) & ~(size_t)(PART - 1));
	return at;
}

/* Places of the tables of all patterns, from `end` on; returns the end. */
static u32 place_patterns(struct patterns *patterns, u32 end)
{
	uint8_t set_of[256];

	for (unsigned int i = 0; i < patterns->n; i++) {
		struct nids_pattern *pattern = &patterns->all[i];
		const unsigned int n = patterns_sets(&patterns->sequences[i], set_of, NULL);

		pattern->sets_at = part(&end, sizeof(set_of));
		pattern->masks_at = part(&end, n * patterns_words(pattern) * sizeof(u64));
	}
	return end;
}

static u32 place(struct nids_head *head, struct patterns *patterns, const struct trie *trie)
{
	u32 end = PART * ((sizeof(*head) + PART - 1) / PART);

	head->n_patterns = patterns->n;
	head->symbols = trie->symbols;
	for (unsigned int i = 0; i < patterns->n; i++)
		head->n_always += patterns->literals[i].n == 0;
	head->patterns_at = part(&end, patterns->n * sizeof(*patterns->all));
	head->always_at = part(&end, head->n_always * sizeof(u32));
	head->symbols_at = part(&end, sizeof(trie->symbol_of));
	head->transitions_at = part(&end, (size_t)trie->n * trie->symbols * sizeof(u16));
	head->founds_at = part(&end, (trie->n + 1) * sizeof(u32));
	head->found_at = part(&end, trie->n_found * sizeof(u32));
	return place_patterns(patterns, end);
}

static void fill_patterns(u8 *room, const struct nids_head *head, const struct patterns *patterns)
{
	u32 *always = (u32 *)(room + head->always_at);

	memcpy(room + head->patterns_at, patterns->all, patterns->n * sizeof(*patterns->all));
	for (unsigned int i = 0; i < patterns->n; i++) {
		const struct nids_pattern *pattern = &patterns->all[i];

		if (patterns->literals[i].n == 0)
			*always++ = i;
		patterns_sets(&patterns->sequences[i], room + pattern->sets_at,
			      (uint64_t *)(room + pattern->masks_at));
	}
}

static void fill_trie(u8 *room, const struct nids_head *head, const struct trie *trie)
{
	u16 *transitions = (u16 *)(room + head->transitions_at);
	u32 *founds = (u32 *)(room + head->founds_at), *found = (u32 *)(room + head->found_at);

	memcpy(room + head->symbols_at, trie->symbol_of, sizeof(trie->symbol_of));
	for (unsigned int i = 0; i < trie->n_found; i++) {
		founds[trie->found[i].state + 1]++;
		found[i] = trie->found[i].pattern;
	}
	for (unsigned int state = 0; state < trie->n; state++)
		founds[state + 1] += founds[state];
	for (unsigned int i = 0; i < trie->n * trie->symbols; i++) {
		const u32 next = trie->next[i];

		transitions[i] = (u16)(next | (founds[next + 1] > founds[next] ? NIDS_FOUND : 0));
	}
}

/* The automaton of the literals; why not, or NULL. */
static const char *make_trie(struct trie *trie, const struct patterns *patterns)
{
	const char *why = trie_begin(trie, patterns->literals, patterns->n);

	for (unsigned int i = 0; i < patterns->n && !why; i++)
		if (patterns->literals[i].n > 0)
			why = trie_add(trie, &patterns->literals[i], i);
	return why ? why : trie_complete(trie);
}

static bool fill(const struct nf *nf, struct patterns *patterns, const struct trie *trie,
		 struct gpu_state *state)
{
	const unsigned int dropped = (unsigned int)gpu_setting(nf, "dropped_class");
	struct nids_head head = {.dropped_classes = dropped ? 1u << (dropped - 1) : 0};
	u8 *room = gpu_state_room(nf, state, place(&head, patterns, trie));

	if (!room)
		return false;
	memcpy(room, &head, sizeof(head));
	fill_patterns(room, &head, patterns);
	fill_trie(room, &head, trie);
	return true;
}

static bool build_of(const struct nf *nf, const struct rule_set *set, struct gpu_state *state)
{
	struct patterns patterns;
	struct trie trie = {0};
	bool good = patterns_make(nf->kind->name, set, &patterns);
	const char *why = good ? make_trie(&trie, &patterns) : NULL;

	if (why)
		fprintf(stderr, "%s: literals of rules: %s\n", nf->kind->name, why);
	good = good && !why && fill(nf, &patterns, &trie, state);
	trie_free(&trie);
	patterns_free(&patterns);
	return good;
}

static bool build(const struct nf *nf, struct gpu_state *state)
{
	const char *path = gpu_text(nf, "file");
	struct rule_set set;
	bool good;

	if (!*path) {
		set.rules = rules(&set.n);
		return build_of(nf, &set, state);
	}
	if (!rule_file_read(nf->kind->name, path, patterns_fault, &set))
		return false;
	good = build_of(nf, &set, state);
	rule_file_free(&set);
	return good;
}

GPU_BUILDER_REGISTER(GPU_NIDS, build)
